"""What a run would take, before it is started: words, steps, parameters, memory, disk, and time measured here."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from corpora.prepare import known_sizes
from corpora.progress import clock
from train.batches import Batches
from train.config import AdamCosineConfig, NgramConfig, RunConfig
from train.loss import CHUNK_BYTES
from train.models import build_model, parameter_count
from train.recipes import build_optimizer
from train.runs import RunFolder, run_id

# Used, and said to be guesses, where the corpus is not prepared: sizes of English, read off the local corpus.
GUESSED_TOKENS_PER_WORD = {"word": 1.04, "whitespace": 1.04, "jieba": 1.04, "char": 5.2, "unigram": 1.35, "bpe": 1.33}
GUESSED_VOCABULARY = 5_000  # of a character tokenizer without a limit
GUESSED_WORDS_PER_UNIT = {"words": 1.0, "characters": 0.2, "sentences": 24.0}
WORDS_PER_SENTENCE = 24  # each sentence adds an <eos>
START_SECONDS = 3.0  # reading the corpus, checkpoints, export
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
    memory_bytes: int  # weights, gradients, optimiser, activations of one step; without the program itself
    disk_bytes: int
    seconds: float
    tokens_per_word: float
    speed: Speed
    guessed: bool  # the corpus is not prepared: its tokens per word and vocabulary are guesses


def estimate(config: RunConfig) -> Estimate:
    """Measure a few steps of the run's model on made-up tokens, and extrapolate.

    The first call for a kind of model takes a few seconds, further ones nothing.
    """
    sizes = known_sizes(config)
    kind = config.tokenizer.kind
    vocabulary = sizes.vocabulary if sizes else config.tokenizer.vocab_size or GUESSED_VOCABULARY
    per_word = sizes.tokens_per_word if sizes else GUESSED_TOKENS_PER_WORD[kind]
    per_unit = (sizes.words_per_unit if sizes else GUESSED_WORDS_PER_UNIT)[config.sample.count]
    words = round(config.sample.number * per_unit)
    tokens = round(words * (per_word + 1 / WORDS_PER_SENTENCE))
    if isinstance(config.model, NgramConfig):
        return _ngram_estimate(config, config.model, words, tokens, vocabulary, per_word, sizes is None)
    batches = Batches(np.zeros(tokens, np.uint16), words, config.recipe)
    parameters = parameter_count(config.model, vocabulary)
    # weights, gradients, and Adam's two moments
    copies = 4 if isinstance(config.recipe, AdamCosineConfig) else 2
    speed = measured_speed(config, vocabulary)
    return Estimate(
        run=run_id(config),
        done=RunFolder.of(config).done,
        words=words,
        words_seen=batches.words_seen(len(batches)),
        tokens=tokens,
        steps=len(batches),
        parameters=parameters,
        memory_bytes=4 * parameters * copies + CHUNK_BYTES + tokens * 2,
        disk_bytes=4 * parameters * copies,  # the exported weights and, until the run is done, its checkpoint
        seconds=START_SECONDS + len(batches) * config.recipe.batch * config.recipe.bptt / speed.training,
        tokens_per_word=per_word,
        speed=speed,
        guessed=sizes is None,
    )


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
        memory_bytes=_sorting_bytes(model.lmplz_memory),
        disk_bytes=ngrams * (NGRAM_BYTES + ARPA_BYTES),
        seconds=START_SECONDS + tokens / speed.training,
        tokens_per_word=per_word,
        speed=speed,
        guessed=guessed,
    )


def _sorting_bytes(text: str) -> int:
    """ "1G" or "50%", as lmplz reads it."""
    number, unit = int(text[:-1]), text[-1]
    if unit == "%":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * number // 100
    return number << {"K": 10, "M": 20, "G": 30, "T": 40}[unit]


_speeds: dict[str, Speed] = {}


def measured_speed(config: RunConfig, vocabulary: int) -> Speed:
    """Tokens a second of the run's model on this machine, measured once a process for each kind of model."""
    batch, bptt = config.recipe.batch, config.recipe.bptt
    key = repr((config.model, batch, bptt, vocabulary, config.precision, config.trainer))
    if key in _speeds:
        return _speeds[key]
    if config.trainer.threads:
        torch.set_num_threads(config.trainer.threads)
    use_gpu = config.trainer.accelerator in ("auto", "gpu") and torch.cuda.is_available()
    device = torch.device("cuda" if use_gpu else "cpu")
    model = build_model(config.model, vocabulary).to(device)
    optimizer = build_optimizer(config.recipe, model.parameters())
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
        step()  # the first steps are slower and, with a memory, shorter
        step()
        steps, started = 0, time.monotonic()
        while steps < MEASURED_STEPS and time.monotonic() - started < MEASURED_SECONDS:
            step()
            steps += 1
        if use_gpu:
            torch.cuda.synchronize()
        rates.append(steps * batch * bptt / (time.monotonic() - started))
    _speeds[key] = Speed(*rates)
    return _speeds[key]


_total = {"runs": 0, "seconds": 0.0, "disk": 0}


def print_estimate(config: RunConfig, scoring_seconds: float = 0.0) -> None:
    """Print what the run would take and, in a sweep, what all runs so far would take together."""
    found = estimate(config)
    seconds = 0.0 if found.done else found.seconds
    _total["runs"] += 1
    _total["seconds"] += seconds + scoring_seconds
    _total["disk"] += found.disk_bytes
    table = Table(show_header=False, box=None, title=found.run, title_justify="left", title_style="bold")
    state = (
        "done already"
        if found.done
        else f"{clock(seconds)} at {found.speed.training / found.tokens_per_word:,.0f} words/s"
    )
    about = " (a guess: the corpus is not prepared)" if found.guessed else ""
    table.add_row("sample", f"{found.words:,} words, {found.tokens:,} tokens{about}")
    counted = isinstance(config.model, NgramConfig)
    how = "counted in one pass" if counted else f"seen in {found.steps:,} steps"
    table.add_row("training", f"{found.words_seen:,} words {how}: {state}")
    if scoring_seconds:
        table.add_row("scoring", clock(scoring_seconds))
    size, kept = ("n-grams at most", "for sorting") if counted else ("parameters", "with optimiser")
    table.add_row("model", f"{found.parameters:,} {size}, {found.memory_bytes / 2**20:,.0f} MiB {kept}")
    table.add_row("disk", f"{found.disk_bytes / 2**20:,.0f} MiB{' at most' if counted else ''}")
    table.add_row(
        "so far", f"{_total['runs']:,} runs, {clock(_total['seconds'])}, {_total['disk'] / 2**20:,.0f} MiB of disk"
    )
    Console(highlight=False).print(table)
