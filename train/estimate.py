"""Estimates of what a run takes: words, steps, parameters, memory, disk, and time measured on this machine."""

import dataclasses
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from rich.table import Table
from rich.text import Text
from torch._subclasses import FakeTensorMode

from corpora.prepare import SampleTokens, corpus_folder, is_prepared, known_filter, known_sizes, store_bytes
from corpora.sources.read import check_source
from pairscale.errors import PairscaleError
from pairscale.progress import working
from pairscale.sizes import clock
from train.config import RunConfig
from train.loop.batches import Batches, Blocks, Columns
from train.loop.device import set_up_cpu, set_up_gpu
from train.loop.snapshots import moments
from train.models.build import build_model, check_context, parameter_count
from train.models.config import NgramConfig
from train.models.loss import chunk_bytes
from train.recipes import COLUMNS
from train.runs.folder import RunFolder
from train.runs.identity import run_id

# For a corpus that is not prepared: tokens per word by reference tokenizer and kind of tokenizer, measured on the local
# English (treebank) and the local Chinese, whose jieba words have 1.73 characters.
GUESSED_TOKENS_PER_WORD = {
    "treebank": {"word": 1.0, "whitespace": 0.9, "jieba": 1.0, "char": 5.2, "unigram": 1.31, "bpe": 1.33},
    "whitespace": {"word": 1.0, "whitespace": 1.0, "jieba": 1.0, "char": 5.2, "unigram": 1.35, "bpe": 1.35},
    "characters": {"word": 0.6, "whitespace": 0.1, "jieba": 0.58, "char": 1.0, "unigram": 0.7, "bpe": 0.7},
    "jieba": {"word": 1.0, "whitespace": 0.2, "jieba": 1.0, "char": 1.73, "unigram": 1.2, "bpe": 1.2},
}
GUESSED_VOCABULARY = {"treebank": 5_000, "whitespace": 5_000, "characters": 9_000, "jieba": 9_000}  # of characters
GUESSED_WORDS_PER_UNIT = {
    "treebank": {"words": 1.0, "characters": 0.24, "sentences": 24.0},
    "whitespace": {"words": 1.0, "characters": 0.22, "sentences": 24.0},
    "characters": {"words": 1.0, "characters": 1.0, "sentences": 40.0},
    "jieba": {"words": 1.0, "characters": 0.58, "sentences": 23.0},
}
PROCESS_BYTES = 500 * 2**20  # resident with torch, Lightning and pandas before there is a model: measured
START_SECONDS = 3.0  # reading the corpus, checkpoints, export
BACKWARD = 1.5  # peak memory of a backward pass over that of the tensors saved for it: measured on a CPU
READING = 3  # speed of reading over that of training, if only the latter is known
MEASURED_STEPS = 6
MEASURED_SECONDS = 4.0
# Of n-gram models of English words, measured on two cores.
NGRAM_TOKENS_PER_SECOND = {"estimating": 250_000, "scoring": 300_000}
NGRAM_BYTES = 11  # of model.kenlm for each n-gram
ARPA_BYTES = 42  # of the files beside it during estimation


@dataclass(frozen=True)
class Speed:
    """Tokens a second, in training and in reading without a gradient."""

    training: float
    reading: float


@dataclass(frozen=True)
class Estimate:
    """The cost of training one run; `speed` serves to estimate scoring too."""

    run: str
    done: bool
    words: int
    words_seen: int
    tokens: int
    steps: int
    parameters: int
    memory_bytes: int  # weights, gradients, optimiser, activations of one step in fp32, and the program itself
    disk_bytes: int  # after training
    checkpoint_bytes: int  # during training
    snapshots: tuple[int, ...]  # their steps; of a run that is done, those on the disk
    seconds: float
    tokens_per_word: float
    speed: Speed
    guessed: bool  # True if the corpus is not prepared: tokens per word and vocabulary are guesses
    rate_is: str = "measured here"  # or its source
    counted: bool = False  # an n-gram model

    @property
    def words_per_s(self) -> float:
        """Speed of training."""
        return self.speed.training * self.words / self.tokens


def estimate(config: RunConfig) -> Estimate:
    """Measure a few steps of the run's model on random tokens, once for each kind of model, and extrapolate.

    Raises NoCorpus if none is chosen, InputError if its text is neither prepared nor available, ConfigError for blocks
    that are longer than the model reads.
    """
    folder = RunFolder.of(config)  # raises NoCorpus before anything is measured
    if not is_prepared(config):
        check_source(config.corpus)
    sizes = known_sizes(config)
    kind, reference = config.tokenizer.kind, config.corpus.reference
    vocabulary = sizes.vocabulary if sizes else config.tokenizer.vocab_size or GUESSED_VOCABULARY[reference]
    per_word = sizes.tokens_per_word if sizes else GUESSED_TOKENS_PER_WORD[reference][kind]
    per_unit = sizes.words_per_unit if sizes else GUESSED_WORDS_PER_UNIT[reference]
    words = round(config.sample.number * per_unit[config.sample.count])
    tokens = round(words * (per_word + 1 / per_unit["sentences"]))  # each sentence adds an <eos>
    of_run: dict[str, Any] = {
        "run": run_id(config),
        "done": folder.done,
        "words": words,
        "tokens": tokens,
        "tokens_per_word": per_word,
        "guessed": sizes is None,
    }
    if isinstance(config.model, NgramConfig):
        return _ngram_estimate(config.model, vocabulary, of_run)
    check_context(config.model, config.recipe, vocabulary)
    batches = _batches(config, words, tokens)
    parameters = parameter_count(config.model, vocabulary)
    copies = 2 + config.recipe.moments  # weights, gradients, and the state of the optimiser
    rate = given_words_per_s(config)
    if rate is None:
        speed = measured_speed(config, vocabulary)
    else:
        speed = Speed(rate * tokens / words, READING * rate * tokens / words)
    snapshots = tuple(folder.snapshots if folder.done else moments(config.trainer.snapshots, batches))
    return Estimate(
        **of_run,
        words_seen=batches.words_seen(len(batches)),
        steps=len(batches),
        parameters=parameters,
        memory_bytes=round(
            PROCESS_BYTES
            + 4 * parameters * copies
            + BACKWARD * activation_bytes(config, vocabulary)
            + chunk_bytes(rows(config) * config.recipe.bptt, vocabulary, config.precision == "bf16")
            + tokens * 2
        ),
        disk_bytes=4 * parameters * (1 + len(snapshots)),
        # Two, and a third while it is written.
        checkpoint_bytes=4 * parameters * 3 * (copies - 1),
        snapshots=snapshots,
        seconds=START_SECONDS + batches.words_seen(len(batches)) * tokens / words / speed.training,
        speed=speed,
        rate_is="measured here" if rate is None else "given",
    )


def _batches(config: RunConfig, words: int, tokens: int) -> Batches:
    """Return the batches of a sample of so many tokens; blocks of whole sentences count as if nothing were padding."""
    ids = np.ones(tokens, np.uint16)
    if config.recipe.packing == COLUMNS:
        return Columns(ids, words, config.recipe)
    return Blocks(SampleTokens(ids, words, 0, 0, ""), dataclasses.replace(config.recipe, packing="stream"), 0)


def peak_memory(configs: Sequence[RunConfig]) -> int:
    """Return the bytes of the largest process that trains one of `configs`; 0 if none can be estimated."""
    largest = 0
    for config in configs:
        with suppress(PairscaleError):  # which the run's own process raises, too
            one = estimate(dataclasses.replace(config, dry_run_words_per_s=1.0))  # so that nothing is measured
            largest = max(largest, PROCESS_BYTES if one.done else one.memory_bytes)
    return largest


def _ngram_estimate(model: NgramConfig, vocabulary: int, of_run: dict[str, Any]) -> Estimate:
    """Return upper limits: each position of the text adds at most one n-gram of each order above 1."""
    ngrams = vocabulary + of_run["tokens"] * (model.order - 1)
    speed = Speed(NGRAM_TOKENS_PER_SECOND["estimating"], NGRAM_TOKENS_PER_SECOND["scoring"])
    return Estimate(
        **of_run,
        words_seen=of_run["words"],
        steps=1,
        parameters=ngrams,
        memory_bytes=PROCESS_BYTES + _sorting_bytes(model.lmplz_memory),
        disk_bytes=ngrams * NGRAM_BYTES,
        checkpoint_bytes=ngrams * ARPA_BYTES,
        snapshots=(),
        seconds=START_SECONDS + of_run["tokens"] / speed.training,
        speed=speed,
        rate_is="measured once on two cores",
        counted=True,
    )


def _sorting_bytes(text: str) -> int:
    """Return the bytes of "1G" or "50%", as lmplz reads it."""
    number, unit = int(text[:-1]), text[-1]
    if unit == "%":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * number // 100
    return number << {"K": 10, "M": 20, "G": 30, "T": 40}[unit]


def given_words_per_s(config: RunConfig) -> float | None:
    """Return `dry_run_words_per_s` of the run's model; None if it is not set."""
    rate = config.dry_run_words_per_s
    return rate.get(config.model.name) if isinstance(rate, dict) else rate


def rows(config: RunConfig) -> int:
    """Return the texts that a run reads at a time in training."""
    return -(-config.recipe.batch // config.recipe.accumulate)


_activation_bytes: dict[str, int] = {}


def activation_bytes(config: RunConfig, vocabulary: int) -> int:
    """Return the bytes saved for a backward pass, fp32, from shapes: within a tenth of measured ones, bf16 less."""
    batch, bptt = rows(config), config.recipe.bptt
    shape = config.model.of_fixed_shape()
    key = repr((shape, batch, bptt, vocabulary))
    if key in _activation_bytes:
        return _activation_bytes[key]
    saved: dict[int, torch.Tensor] = {}

    def save(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage()._cdata] = tensor
        return tensor

    # Fake tensors, as transformers asks others for their values when it looks for packed sequences.
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("meta"):
        model = build_model(shape, vocabulary).train()
        tokens = torch.zeros(batch, bptt, dtype=torch.int64)
        _, state = model(tokens, model.initial_state(batch))  # a memory is full from the second step on
        with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
            hidden, _ = model(tokens, state)
    weights = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    total = sum(tensor.untyped_storage().nbytes() for place, tensor in saved.items() if place not in weights)
    # The loss (train/models/loss.py) saves its gradients by the hidden states and the output weights.
    _activation_bytes[key] = total + 4 * hidden.numel() + 4 * vocabulary * hidden.shape[-1]
    return _activation_bytes[key]


_speeds: dict[str, Speed] = {}


def measured_speed(config: RunConfig, vocabulary: int) -> Speed:
    """Return the speed of the run's model on this machine, measured once a process for each kind of model."""
    key = repr((config.model, rows(config), config.recipe.bptt, vocabulary, config.precision, config.trainer))
    if key in _speeds:
        return _speeds[key]
    with working(f"measuring the speed of {config.model.name} here"):
        _speeds[key] = _measure(config, vocabulary)
    return _speeds[key]


def _measure(config: RunConfig, vocabulary: int) -> Speed:
    batch, bptt = rows(config), config.recipe.bptt
    set_up_cpu(config.trainer, parameter_count(config.model, vocabulary))
    set_up_gpu(config.precision == "bf16")
    # A login node has no GPU, even if the run will.
    use_gpu = config.trainer.accelerator != "cpu" and torch.cuda.is_available()
    device = torch.device("cuda" if use_gpu else "cpu")
    model = build_model(config.model, vocabulary).to(device)
    optimizer = config.recipe.optimizer(model.parameters())
    # Word frequencies matter little for speed, but equal tokens would make the softmax too easy.
    tokens = torch.randint(vocabulary, (batch, bptt), device=device)
    autocast = torch.autocast(device.type, dtype=torch.bfloat16, enabled=config.precision == "bf16")
    state = model.initial_state(batch)

    def train_step() -> None:
        nonlocal state
        with autocast:
            hidden, state = model(tokens, state)
            loss = model.loss(hidden.flatten(0, 1), tokens.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.recipe.clip)
        optimizer.step()
        optimizer.zero_grad()

    def read_step() -> None:
        with autocast, torch.no_grad():
            hidden, _ = model(tokens, model.initial_state(batch))
            model.logprobs(hidden.flatten(0, 1), tokens.flatten())

    rates = []
    for step in (train_step, read_step):
        before = time.monotonic()
        step()  # the first steps are slower and, with a memory, shorter
        if time.monotonic() - before < MEASURED_SECONDS:
            step()
        steps, started = 0, time.monotonic()
        while steps == 0 or (steps < MEASURED_STEPS and time.monotonic() - started < MEASURED_SECONDS):
            step()
            steps += 1
        if use_gpu:
            torch.cuda.synchronize()
        rates.append(steps * batch * bptt / (time.monotonic() - started))
    return Speed(*rates)


def corpus_described(config: RunConfig) -> str:
    """Return the corpus of a run by name, with its store and the bytes that it takes, or would take, on the disk."""
    folder = corpus_folder(config)
    prepared, text = store_bytes(config)
    store = f"{prepared / 2**20:,.0f} MiB in {folder}" if prepared else f"not prepared in {folder}"
    return f"{config.corpus.name}: {store}" + (f", about {text / 2**20:,.0f} MiB more to be prepared" if text else "")


def estimate_table(
    config: RunConfig, estimated: Estimate, scoring_seconds: float, score_bytes: int, scoring_memory: int = 0
) -> Table:
    """Return the estimate of one run in full."""
    seconds = 0.0 if estimated.done else estimated.seconds
    table = Table(show_header=False, box=None, title=Text(estimated.run), title_justify="left", title_style="bold")
    rate = f"{estimated.words_per_s:,.0f} words/s ({estimated.rate_is})"
    state = "done already" if estimated.done else f"{clock(seconds)} at {rate}"
    about = " (a guess: the corpus is not prepared)" if estimated.guessed else ""
    table.add_row("corpus", Text(corpus_described(config)))
    table.add_row("sample", f"{estimated.words:,} words, {estimated.tokens:,} tokens{about}")
    if config.corpus.filter is not None:
        counts = known_filter(config)
        part = f"{counts['sentences']:,} sentences, {counts['words']:,} words" if counts else "an unknown part"
        table.add_row("filter", Text(f"{config.corpus.filter} takes {part} out of the train split"))
    if config.filter is not None and config.ablate.acts:
        table.add_row("ablation", Text(f"filter={config.filter.name}, ablate.action={' '.join(config.ablate.words)}"))
    how = "counted in one pass" if estimated.counted else f"seen in {estimated.steps:,} steps"
    table.add_row("training", f"{estimated.words_seen:,} words {how}: {state}")
    if estimated.snapshots:
        kept = f"{len(estimated.snapshots)} of the weights while it trains"
        table.add_row("snapshots", f"{kept}, {4 * estimated.parameters * len(estimated.snapshots) / 2**20:,.0f} MiB")
    if scoring_seconds:
        table.add_row("scoring", f"{clock(scoring_seconds)}, {scoring_memory / 2**20:,.0f} MiB of memory")
    memory = f"{estimated.memory_bytes / 2**20:,.0f} MiB"
    kind, work = ("n-grams at most", "estimating") if estimated.counted else ("parameters", "training")
    table.add_row("model", f"{estimated.parameters:,} {kind}, {memory} of memory in {work}, the program included")
    disk, more = (
        (estimated.disk_bytes + score_bytes) / 2**20,
        0 if estimated.done else estimated.checkpoint_bytes / 2**20,
    )
    row = f"{disk:,.0f} MiB{' at most' if estimated.counted else ''}"
    table.add_row("disk", row + (f", and {more:,.0f} MiB until it is trained" if more else ""))
    return table
