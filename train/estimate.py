"""What a run would take, before it is started: words, steps, parameters, memory, disk, and time measured here."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from rich.table import Table
from rich.text import Text

from corpora.prepare import corpus_folder, is_prepared, known_filter, known_sizes, store_bytes
from corpora.sources.read import check_source
from pairscale.errors import PairscaleError
from pairscale.progress import working
from pairscale.sizes import clock
from train.config import RunConfig
from train.loop.batches import Batches
from train.loop.device import set_up_cpu, set_up_gpu
from train.loop.snapshots import moments
from train.models.build import build_model, parameter_count
from train.models.config import NgramConfig
from train.models.loss import chunk_bytes
from train.runs.folder import RunFolder
from train.runs.identity import run_id

# Used, and said to be guesses, where the corpus is not prepared: of kinds of tokenizers by what a word is, read off the
# local English (treebank) and the local Chinese, whose words of jieba are 1.73 characters long.
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
PROCESS_BYTES = 500 * 2**20  # resident with torch, Lightning and pandas, before there is a model: measured
START_SECONDS = 3.0  # reading the corpus, checkpoints, export
BACKWARD = 1.5  # times what is kept for it, a backward pass takes at its peak: measured on a CPU
READING = 3  # times as fast as training is reading, where only the speed of training is given: no backward pass
MEASURED_STEPS = 6
MEASURED_SECONDS = 4.0
# Of n-gram models of English words, measured on two cores; what they need beyond that is what lmplz sorts.
NGRAM_TOKENS_PER_SECOND = {"estimating": 250_000, "scoring": 300_000}
NGRAM_BYTES = 11  # of model.kenlm, for each n-gram
ARPA_BYTES = 42  # of the files beside it while it is estimated


@dataclass(frozen=True)
class Speed:
    """Tokens a second, in training and in reading without a gradient."""

    training: float
    reading: float


@dataclass(frozen=True)
class Estimate:
    """What training one run takes; `speed` serves to estimate scoring too."""

    run: str
    done: bool
    words: int
    words_seen: int
    tokens: int
    steps: int
    parameters: int
    memory_bytes: int  # weights, gradients, optimiser, activations of one step in fp32, and the program itself
    disk_bytes: int  # that stay
    checkpoint_bytes: int  # on the disk while the run trains
    snapshots: tuple[int, ...]  # steps after which there is one; of a run that is done, those on the disk
    seconds: float
    tokens_per_word: float
    speed: Speed
    guessed: bool  # the corpus is not prepared: its tokens per word and vocabulary are guesses
    rate_is: str = "measured here"  # or given
    counted: bool = False  # an n-gram model

    @property
    def words_per_s(self) -> float:
        """In training."""
        return self.speed.training * self.words / self.tokens


def estimate(config: RunConfig) -> Estimate:
    """Measure a few steps of the run's model on made-up tokens, and extrapolate.

    The first call for a kind of model takes a few seconds, further ones nothing. Raises NoCorpus where none is chosen,
    InputError where its text is neither prepared nor there to be read.
    """
    folder = RunFolder.of(config)  # raises NoCorpus, before anything is measured
    if not is_prepared(config):
        check_source(config.corpus)
    sizes = known_sizes(config)
    kind, reference = config.tokenizer.kind, config.corpus.reference
    vocabulary = sizes.vocabulary if sizes else config.tokenizer.vocab_size or GUESSED_VOCABULARY[reference]
    per_word = sizes.tokens_per_word if sizes else GUESSED_TOKENS_PER_WORD[reference][kind]
    per_unit = sizes.words_per_unit if sizes else GUESSED_WORDS_PER_UNIT[reference]
    words = round(config.sample.number * per_unit[config.sample.count])
    tokens = round(words * (per_word + 1 / per_unit["sentences"]))  # each sentence adds an <eos>
    if isinstance(config.model, NgramConfig):
        return _ngram_estimate(config, config.model, words, tokens, vocabulary, per_word, sizes is None)
    batches = Batches(np.zeros(tokens, np.uint16), words, config.recipe)
    parameters = parameter_count(config.model, vocabulary)
    copies = 2 + config.recipe.moments  # weights, gradients, and what the optimiser keeps
    given = given_words_per_s(config)
    if given is None:
        speed = measured_speed(config, vocabulary)
    else:
        speed = Speed(given * tokens / words, READING * given * tokens / words)
    snapshots = tuple(folder.snapshots if folder.done else moments(config.trainer.snapshots, batches))
    return Estimate(
        run=run_id(config),
        done=folder.done,
        words=words,
        words_seen=batches.words_seen(len(batches)),
        tokens=tokens,
        steps=len(batches),
        parameters=parameters,
        memory_bytes=round(
            PROCESS_BYTES
            + 4 * parameters * copies
            + BACKWARD * activation_bytes(config, vocabulary)
            + chunk_bytes(config.recipe.batch * config.recipe.bptt, vocabulary, config.precision == "bf16")
            + tokens * 2
        ),
        disk_bytes=4 * parameters * (1 + len(snapshots)),
        # Until the run is done, two and a third while it is written.
        checkpoint_bytes=4 * parameters * 3 * (copies - 1),
        snapshots=snapshots,
        seconds=START_SECONDS + batches.words_seen(len(batches)) * tokens / words / speed.training,
        tokens_per_word=per_word,
        speed=speed,
        guessed=sizes is None,
        rate_is="measured here" if given is None else "given",
    )


def peak_memory(configs: Sequence[RunConfig]) -> int:
    """Bytes of the largest of the processes that train `configs`, from shapes alone; 0 where none can be estimated."""
    largest = 0
    for config in configs:
        with suppress(PairscaleError):  # what is refused, or not there to be read, its own process will say
            one = estimate(dataclasses.replace(config, dry_run_words_per_s=1.0))  # given, so that nothing is measured
            largest = max(largest, PROCESS_BYTES if one.done else one.memory_bytes)
    return largest


def _ngram_estimate(
    config: RunConfig, model: NgramConfig, words: int, tokens: int, vocabulary: int, per_word: float, guessed: bool
) -> Estimate:
    """The same of an n-gram model, from rates measured before; numbers of n-grams, and so of bytes, are upper limits.

    Each position of the text adds one n-gram of each order above 1 at most.
    """
    ngrams = vocabulary + tokens * (model.order - 1)
    speed = Speed(NGRAM_TOKENS_PER_SECOND["estimating"], NGRAM_TOKENS_PER_SECOND["scoring"])
    return Estimate(
        run=run_id(config),
        done=RunFolder.of(config).done,
        words=words,
        words_seen=words,
        tokens=tokens,
        steps=1,
        parameters=ngrams,
        memory_bytes=PROCESS_BYTES + _sorting_bytes(model.lmplz_memory),
        disk_bytes=ngrams * NGRAM_BYTES,
        checkpoint_bytes=ngrams * ARPA_BYTES,
        snapshots=(),
        seconds=START_SECONDS + tokens / speed.training,
        tokens_per_word=per_word,
        speed=speed,
        guessed=guessed,
        rate_is="measured once on two cores",
        counted=True,
    )


def _sorting_bytes(text: str) -> int:
    """ "1G" or "50%", as lmplz reads it."""
    number, unit = int(text[:-1]), text[-1]
    if unit == "%":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * number // 100
    return number << {"K": 10, "M": 20, "G": 30, "T": 40}[unit]


def given_words_per_s(config: RunConfig) -> float | None:
    """What `dry_run_words_per_s` says of the run's model; None where it says nothing."""
    given = config.dry_run_words_per_s
    return given.get(config.model.name) if isinstance(given, dict) else given


_activation_bytes: dict[str, int] = {}


def activation_bytes(config: RunConfig, vocabulary: int) -> int:
    """Bytes that a training step keeps for its backward pass, in fp32: computed from shapes alone, nothing allocated.

    Within a tenth of what a process grows by on a CPU; bf16 keeps less.
    """
    batch, bptt = config.recipe.batch, config.recipe.bptt
    shape = config.model.of_fixed_shape()
    key = repr((shape, batch, bptt, vocabulary))
    if key in _activation_bytes:
        return _activation_bytes[key]
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.device("meta"):
        model = build_model(shape, vocabulary).train()
        tokens = torch.zeros(batch, bptt, dtype=torch.int64)
        _, state = model(tokens, model.initial_state(batch))  # a memory is full from the second step on
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            hidden, _ = model(tokens, state)
    weights = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    total = sum(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in weights)
    # The loss (train/models/loss.py) is left out above: it keeps its gradients, of the hidden states and the output
    # weights.
    _activation_bytes[key] = total + 4 * hidden.numel() + 4 * vocabulary * hidden.shape[-1]
    return _activation_bytes[key]


_speeds: dict[str, Speed] = {}


def measured_speed(config: RunConfig, vocabulary: int) -> Speed:
    """Tokens a second of the run's model on this machine, measured once a process for each kind of model."""
    key = repr((config.model, config.recipe.batch, config.recipe.bptt, vocabulary, config.precision, config.trainer))
    if key in _speeds:
        return _speeds[key]
    with working(f"measuring the speed of {config.model.name} here"):
        _speeds[key] = _measure(config, vocabulary)
    return _speeds[key]


def _measure(config: RunConfig, vocabulary: int) -> Speed:
    batch, bptt = config.recipe.batch, config.recipe.bptt
    set_up_cpu(config.trainer, parameter_count(config.model, vocabulary))
    set_up_gpu(config.precision == "bf16")
    # What is asked for may be elsewhere: a login node has no GPU.
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
    """The corpus of a run by name, with its store and what that takes, or would take, on the disk."""
    folder = corpus_folder(config)
    prepared, text = store_bytes(config)
    told = f"{prepared / 2**20:,.0f} MiB in {folder}" if prepared else f"not prepared in {folder}"
    return f"{config.corpus.name}: {told}" + (f", about {text / 2**20:,.0f} MiB more to be prepared" if text else "")


def estimate_table(
    config: RunConfig, found: Estimate, scoring_seconds: float, score_bytes: int, scoring_memory: int = 0
) -> Table:
    """One run in full."""
    seconds = 0.0 if found.done else found.seconds
    table = Table(show_header=False, box=None, title=Text(found.run), title_justify="left", title_style="bold")
    rate = f"{found.words_per_s:,.0f} words/s ({found.rate_is})"
    state = "done already" if found.done else f"{clock(seconds)} at {rate}"
    about = " (a guess: the corpus is not prepared)" if found.guessed else ""
    table.add_row("corpus", Text(corpus_described(config)))
    table.add_row("sample", f"{found.words:,} words, {found.tokens:,} tokens{about}")
    if config.corpus.filter is not None:
        known = known_filter(config)
        much = f"{known['sentences']:,} sentences, {known['words']:,} words" if known else "as yet unknown how much"
        table.add_row("filter", Text(f"{config.corpus.filter} takes {much} out of the train split"))
    how = "counted in one pass" if found.counted else f"seen in {found.steps:,} steps"
    table.add_row("training", f"{found.words_seen:,} words {how}: {state}")
    if found.snapshots:
        table.add_row("snapshots", f"{len(found.snapshots)} of the weights while it trains")
    if scoring_seconds:
        table.add_row("scoring", f"{clock(scoring_seconds)}, {scoring_memory / 2**20:,.0f} MiB of memory")
    memory = f"{found.memory_bytes / 2**20:,.0f} MiB"
    told = "n-grams at most" if found.counted else "parameters"
    told += f", {memory} of memory in {'estimating' if found.counted else 'training'}, the program included"
    table.add_row("model", f"{found.parameters:,} {told}")
    disk, more = (found.disk_bytes + score_bytes) / 2**20, 0 if found.done else found.checkpoint_bytes / 2**20
    told = f"{disk:,.0f} MiB{' at most' if found.counted else ''}"
    table.add_row("disk", told + (f", and {more:,.0f} MiB until it is trained" if more else ""))
    return table
