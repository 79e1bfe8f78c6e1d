"""Estimate the words, steps, parameters, memory and disk space of a run, and its time on this machine.

Words, steps, parameters and disk follow from the configuration and the prepared corpus. Time is extrapolated from a few
training steps on random tokens. Memory is the sum of the weights, their gradients, the optimiser's state, and what a
step needs for its backward pass. Runs that differ only in size and seed share one measurement.
"""

import dataclasses
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.benchmark import Timer

from corpora.prepare import KnownSizes, SampleTokens, is_prepared, known_sizes
from corpora.sources.read import check_source
from pairscale.command.pool import Job
from pairscale.errors import PairscaleError
from pairscale.progress import working
from train.config import RunConfig, run_id
from train.loop.batches import Batches, Blocks, Columns
from train.loop.device import set_up_cpu, set_up_gpu
from train.loop.snapshots import moments
from train.models.base import LanguageModel
from train.models.build import build_model, check_context, parameter_count
from train.models.config import NgramConfig
from train.models.loss import GRADIENT_CHUNK_BYTES
from train.recipes import COLUMNS
from train.runs.folder import RunFolder

# Guesses for a corpus that is not prepared, by reference tokenizer. They are tokens per word for each tokenizer, number
# of different characters, words per character, and words per sentence, measured on local English and Chinese texts.
ENGLISH = {"char": 5.2, "unigram": 1.31, "bpe": 1.33}, 5_000, 0.24, 24.0
CHARACTERS = {"word": 0.6, "jieba": 0.58, "unigram": 0.7, "bpe": 0.7}, 9_000, 1.0, 40.0
JIEBA = {"char": 1.73, "unigram": 1.2, "bpe": 1.2}, 9_000, 0.58, 23.0
GUESSES = {"treebank": ENGLISH, "whitespace": ENGLISH, "characters": CHARACTERS, "jieba": JIEBA}

PROCESS_BYTES = 400 * 2**20  # memory of a process with torch and Lightning, but without a model (measured)
START_SECONDS = 3.0  # time to read the corpus, write checkpoints and export the model
BACKWARD = 1.5  # peak memory of a backward pass, relative to the tensors saved for it (measured on a CPU)
READING = 3  # speed of reading relative to training, used if only the speed of training is known
MEASURED_SECONDS = 0.5  # shortest time for which steps are measured
MEASURED_TOKENS = 2048  # most tokens per measured step on a CPU, as a login node may lack the memory for a whole batch
# For n-gram models of English words, measured on two cores.
NGRAM_TOKENS_PER_SECOND = {"estimating": 250_000, "scoring": 300_000}
NGRAM_BYTES, ARPA_BYTES = 11, 42  # bytes per n-gram in model.kenlm, and in temporary files during estimation


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of one run. The command `eval` adds the cost of scoring it."""

    config: RunConfig
    name: str
    done: bool
    words: int
    words_seen: int
    tokens: int
    steps: int
    parameters: int
    memory_bytes: int  # peak memory of its process, in fp32; that of the program if the run is done
    disk_bytes: int  # disk space of the finished run
    checkpoint_bytes: int  # additional disk space during training
    snapshots: tuple[int, ...]  # steps of the planned snapshots or, for a finished run, of the existing ones
    training_seconds: float
    tokens_per_word: float
    guessed: bool  # True if the corpus is not prepared, so that tokens per word and vocabulary are guesses
    words_per_s: float  # speed of training
    tokens_read_per_s: float  # speed of reading without gradients, as in scoring
    rate_is: str  # where the speed comes from
    scoring_seconds: float = 0.0  # time to compute the missing scores

    @property
    def snapshot_bytes(self) -> int:
        """Disk space of the snapshots, which `disk_bytes` includes."""
        return 4 * self.parameters * len(self.snapshots)

    @property
    def seconds(self) -> float:
        """Time for the remaining work in one process."""
        return (0.0 if self.done else self.training_seconds) + self.scoring_seconds


def estimate(config: RunConfig) -> Estimate:
    """Estimate the time and resources needed for a training run. Each kind of model is measured once per process.

    Raises:
        InputError: if the text is neither prepared nor available.
        ConfigError: if no corpus is chosen, or if blocks are longer than the model can read.
    """
    folder = RunFolder.of(config)  # raises ConfigError before anything is measured
    if not is_prepared(config):
        check_source(config.corpus)
    known = known_sizes(config)
    sizes = known or _guessed_sizes(config)
    words = round(config.sample.number * sizes.words_per_unit[config.sample.count])
    # Each sentence adds an <eos>.
    tokens = round(words * (sizes.tokens_per_word + 1 / sizes.words_per_unit["sentences"]))
    of_run: dict[str, Any] = {
        "config": config,
        "name": run_id(config),
        "done": folder.done,
        "words": words,
        "tokens": tokens,
        "tokens_per_word": sizes.tokens_per_word,
        "guessed": known is None,
    }
    if isinstance(config.model, NgramConfig):
        return _ngram_estimate(config.model, sizes.vocabulary, of_run)
    check_context(config.model, config.recipe, sizes.vocabulary)
    rate = config.dry_run_words_per_s
    if isinstance(rate, dict):
        rate = rate.get(config.model.name)
    kind = kind_of_run(config, sizes.vocabulary, timed=rate is None)
    per_s = rate or kind.training * words / tokens
    batches = _batches(config, words, tokens)
    words_seen = batches.words_seen(len(batches))
    snapshots = tuple(folder.snapshots if folder.done else moments(config.trainer.snapshots, batches))
    return Estimate(
        **of_run,
        words_seen=words_seen,
        steps=len(batches),
        parameters=kind.parameters,
        memory_bytes=PROCESS_BYTES if folder.done else kind.memory_bytes + 2 * tokens,
        disk_bytes=4 * kind.parameters * (1 + len(snapshots)),
        # Weights and the optimiser's state, in two checkpoints and a third one that is being written.
        checkpoint_bytes=3 * 4 * kind.parameters * (1 + config.recipe.moments),
        snapshots=snapshots,
        training_seconds=START_SECONDS + words_seen / per_s,
        words_per_s=per_s,
        tokens_read_per_s=kind.reading if rate is None else READING * rate * tokens / words,
        rate_is="measured on this machine" if rate is None else "from dry_run_words_per_s",
    )


def peak_memory(jobs: Sequence[Job], whole: Callable[[Estimate, Job], Estimate] = lambda run, job: run) -> int:
    """Return the memory in bytes of the largest job, or 0 if unknown. `whole` adds a job's scoring to its estimate."""
    largest = 0
    for job in jobs:
        with suppress(PairscaleError):  # the run's own process will raise the same error
            run = estimate(dataclasses.replace(job.config, dry_run_words_per_s=1.0))  # so that no time is measured
            largest = max(largest, run.memory_bytes)
            largest = max(largest, whole(run, job).memory_bytes)
    return largest


def _guessed_sizes(config: RunConfig) -> KnownSizes:
    per_word, characters, per_character, per_sentence = GUESSES[config.corpus.reference]
    per_unit = {"words": 1.0, "characters": per_character, "sentences": per_sentence}
    vocabulary = config.tokenizer.vocab_size or characters
    return KnownSizes(vocabulary, per_word.get(config.tokenizer.kind, 1.0), per_unit)


def _batches(config: RunConfig, words: int, tokens: int) -> Batches:
    """Return the batches of a sample with this many words and tokens, as if blocks of sentences had no padding."""
    ids = np.ones(tokens, np.uint16)
    if config.recipe.packing == COLUMNS:
        return Columns(ids, words, config.recipe)
    return Blocks(SampleTokens(ids, words, 0, 0, ""), dataclasses.replace(config.recipe, packing="stream"), 0)


def _ngram_estimate(model: NgramConfig, vocabulary: int, of_run: dict[str, Any]) -> Estimate:
    """Return an upper limit, because each position of the text adds at most one n-gram of each order above 1."""
    ngrams = vocabulary + of_run["tokens"] * (model.order - 1)
    seconds = of_run["tokens"] / NGRAM_TOKENS_PER_SECOND["estimating"]
    return Estimate(
        **of_run,
        words_seen=of_run["words"],
        steps=1,
        parameters=ngrams,
        memory_bytes=PROCESS_BYTES + (0 if of_run["done"] else _sorting_bytes(model.lmplz_memory)),
        disk_bytes=ngrams * NGRAM_BYTES,
        checkpoint_bytes=ngrams * ARPA_BYTES,
        snapshots=(),
        training_seconds=START_SECONDS + seconds,
        words_per_s=of_run["words"] / seconds,
        tokens_read_per_s=NGRAM_TOKENS_PER_SECOND["scoring"],
        rate_is="measured once on two cores",
    )


def _sorting_bytes(text: str) -> int:
    """Convert a text such as "1G" or "50%" to bytes, as lmplz does."""
    number, unit = int(text[:-1]), text[-1]
    if unit == "%":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * number // 100
    return number << {"K": 10, "M": 20, "G": 30, "T": 40}[unit]


class Kind(NamedTuple):
    """Measurements that all runs of one kind of model share, whatever their sizes and seeds."""

    parameters: int
    memory_bytes: int
    training: float  # tokens per second in training; 0 if not measured
    reading: float  # tokens per second without gradients; 0 if not measured


_kinds: dict[str, Kind] = {}


def kind_of_run(config: RunConfig, vocabulary: int, timed: bool) -> Kind:
    """Build a run's model and measure it. Each kind is measured once per process."""
    shape = -(-config.recipe.batch // config.recipe.accumulate), config.recipe.bptt  # texts per pass, tokens per text
    model = dataclasses.replace(config.model, seed=None)
    key = repr((model, shape, type(config.recipe), vocabulary, config.precision, config.trainer, timed))
    if key not in _kinds:
        with working(f"measuring {config.model.name} on this machine"):
            _kinds[key] = _measure(config, vocabulary, shape, timed)
    return _kinds[key]


def _measure(config: RunConfig, vocabulary: int, shape: tuple[int, int], timed: bool) -> Kind:
    parameters, (rows, length) = parameter_count(config.model, vocabulary), shape
    set_up_cpu(config.trainer, parameters)
    set_up_gpu(config.precision == "bf16")
    model = build_model(config.model, vocabulary)
    kept, width = saved_of_row(model, length)
    memory = round(
        PROCESS_BYTES
        + 4 * parameters * (2 + config.recipe.moments)  # weights, gradients and optimiser state
        + BACKWARD * (rows * (kept + 4 * length * width) + 4 * vocabulary * width)  # see train/models/loss.py
        + min((2 if config.precision == "bf16" else 4) * rows * length * vocabulary, GRADIENT_CHUNK_BYTES)
    )
    return Kind(parameters, memory, *(_speeds(config, model, shape) if timed else (0.0, 0.0)))


def saved_of_row(model: LanguageModel, length: int) -> tuple[int, int]:
    """Return the bytes that the backward pass for a text of `length` tokens needs, and the width of hidden states."""
    saved: dict[int, torch.Tensor] = {}

    def save(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    tokens = torch.randint(model.vocabulary, (1, length))
    _, state = model(tokens, model.initial_state(1))  # the model's memory is full from the second step on
    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        hidden, _ = model(tokens, state)
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    return sum(one.untyped_storage().nbytes() for at, one in saved.items() if at not in weights), hidden.shape[-1]


def _speeds(config: RunConfig, model: LanguageModel, shape: tuple[int, int]) -> list[float]:
    """Return the tokens per second in training, and in reading without gradients."""
    # A login node has no GPU, even if the run will have one.
    device = torch.device("cuda" if config.trainer.accelerator != "cpu" and torch.cuda.is_available() else "cpu")
    model.to(device)
    optimizer = config.recipe.optimizer(model.parameters())
    if device.type == "cpu":
        shape = min(shape[0], max(1, MEASURED_TOKENS // shape[1])), shape[1]
    # Word frequencies hardly affect the speed, but a single repeated token would make the softmax too fast.
    tokens = torch.randint(model.vocabulary, shape, device=device)
    autocast = torch.autocast(device.type, dtype=torch.bfloat16, enabled=config.precision == "bf16")
    state = model.initial_state(len(tokens))

    def train_step() -> None:
        """Train on the tokens, continuing from the state of the previous step."""
        nonlocal state
        with autocast:
            hidden, state = model(tokens, state)
            loss = model.loss(hidden.flatten(0, 1), tokens.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.recipe.clip)
        optimizer.step()
        optimizer.zero_grad()

    def read_step() -> None:
        """Read the tokens as scoring does."""
        with autocast, torch.no_grad():
            hidden, _ = model(tokens, model.initial_state(len(tokens)))
            model.logprobs(hidden.flatten(0, 1), tokens.flatten())

    speeds = []
    for step in (train_step, read_step):
        timer = Timer("step()", globals={"step": step}, num_threads=torch.get_num_threads())
        speeds.append(tokens.numel() / timer.blocked_autorange(min_run_time=MEASURED_SECONDS).mean)
    return speeds
