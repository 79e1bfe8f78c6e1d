"""What scoring a run would take, before it is started: tokens to read, bytes to write."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from corpora.words import words
from eval.config import EvalConfig, score_label
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.files import cloze_metadata
from eval.diagnostics.run import count_contexts
from eval.pairs import benchmark_key, loaded_benchmark, word_counts
from eval.scores.files import score_path
from pairscale.progress import working
from train.estimate import PROCESS_BYTES
from train.models.config import NgramConfig
from train.runs.folder import RunFolder

# Of each pair, its sentences and what a method says of them, measured on BLiMP; and how much is read at a time, which
# is the model's to say: it matters little here.
ITEM_BYTES, SCORE_BYTES = 60, 45
TREE_WORDS, BATCH_WORDS = 512, 8192
# Of memory, measured with a tiny LSTM on 3,350, 13,400 and 67,000 pairs: 658, 762 and 1,525 MiB with the program.
SCORER_BYTES, PAIR_BYTES = 128 * 2**20, 12_500


def scoring_tokens(config: EvalConfig, tokens_per_word: float, snapshots: Sequence[int] = ()) -> float:
    """About how many tokens the run of `config` has yet to read, for estimates of time: 0 where it is scored.

    `snapshots`: steps after which the run has some, or will have. What texts begin with in common counts once, as it is
    read once, but for n-gram models. Whether a run is scored is told from the names of its files alone. Raises as
    load_benchmark.
    """
    folder = RunFolder.of(config).scores(score_label(config.benchmark, config.policy))
    if isinstance(config.benchmark, DiagnosticConfig):
        if cloze_metadata(folder) is not None:
            return 0.0
        contexts = count_contexts(config.benchmark, config.corpus.reference)
        return sum(contexts) * tokens_per_word + len(contexts)
    models = [None, *(snapshots if config.scoring.snapshots else ())]
    read = sum(
        _words_to_read(config, [name for name in config.method if not score_path(folder, name, step).exists()])
        for step in models
    )
    return read * tokens_per_word


def _words_to_read(config: EvalConfig, lacking: list[str]) -> float:
    """Reference words, and begin symbols, that one model reads for the methods that lack."""
    if not lacking:
        return 0.0
    from eval.methods.judging import template_reading

    key, reference = benchmark_key(config, dataclasses.asdict(config)), config.corpus.reference
    counts = word_counts(key, reference)
    total = sum(counts.values())
    read = total + len(counts) if isinstance(config.model, NgramConfig) else _distinct_words(key, reference)
    methods = {name: config.method[name] for name in lacking}
    return read + template_reading(methods, config.benchmark.language, counts, reference, read / (total + len(counts)))


def score_bytes(config: EvalConfig, snapshots: Sequence[int] = ()) -> int:
    """About how many bytes the score files of a run of `config` take; `snapshots` as of `scoring_tokens`."""
    if isinstance(config.benchmark, DiagnosticConfig):
        return 0
    pairs = loaded_benchmark(benchmark_key(config, dataclasses.asdict(config))).pairs
    models = 1 + (len(snapshots) if config.scoring.snapshots else 0)
    return len(pairs) * (ITEM_BYTES + SCORE_BYTES * len(config.method) * models)


def scoring_memory(config: EvalConfig) -> int:
    """About how many bytes a process takes that scores a run of `config`, the program included."""
    if isinstance(config.benchmark, DiagnosticConfig):
        return PROCESS_BYTES + SCORER_BYTES
    pairs = loaded_benchmark(benchmark_key(config, dataclasses.asdict(config))).pairs
    return PROCESS_BYTES + SCORER_BYTES + len(pairs) * PAIR_BYTES


@functools.lru_cache(maxsize=2)
def _distinct_words(key: str, reference: str) -> int:
    """Reference words that are read of a benchmark's sentences, each after a begin symbol, by trees of them."""
    from eval.scorers.trees import forests

    numbers: dict[str, int] = {}
    texts = [
        np.asarray([0, *(numbers.setdefault(word, len(numbers) + 1) for word in words(text, reference)), 0])
        for text in word_counts(key, reference)
    ]
    with working("finding what sentences begin with in common"):
        trees = forests(texts, np.ones(len(texts), np.int64), TREE_WORDS, BATCH_WORDS)
        return sum(forest.tokens.size for forest in trees)
