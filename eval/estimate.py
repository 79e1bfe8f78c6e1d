"""Estimate the cost of scoring a run before it starts, in tokens to read, disk space and memory."""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from corpora.words import count_words, words
from eval.benchmarks.choices import compared
from eval.benchmarks.load import benchmark_of
from eval.config import EvalConfig, of_each_benchmark, score_label
from eval.kinds.items import KINDS, ItemsWork
from eval.scores.files import answers_metadata, score_path
from eval.scores.schemas import SIDES
from pairscale.command.line import Line
from pairscale.command.pool import Job
from train import estimate
from train.estimate import PROCESS_BYTES, Estimate
from train.runs.folder import RunFolder

ITEM_BYTES, SCORE_BYTES = 60, 45  # bytes on disk per pair, for its sentences and for one method (measured on BLiMP)
# A tiny LSTM needed 658, 762 and 1,525 MiB of memory for 3,350, 13,400 and 67,000 pairs, with the program itself.
SCORER_BYTES, PAIR_BYTES = 128 * 2**20, 12_500


@dataclass(frozen=True)
class ScoringEstimate:
    """The estimated cost of scoring."""

    tokens: float  # tokens to read; 0 if everything is already scored
    file_bytes: int  # total size of the score files
    memory_bytes: int  # memory of the whole process; 0 if everything is already scored


def estimate_scoring(config: EvalConfig, tokens_per_word: float, snapshots: Sequence[int] = ()) -> ScoringEstimate:
    """Estimate the cost of scoring the run of `config`. Raises the same errors as the benchmark's reader.

    If several sentences have the same beginning, it is counted once, except for n-gram models. Only the names of its
    files decide whether a run is already scored. `snapshots` are the training steps of the run's current or planned
    snapshots.
    """
    from eval.methods.method import fitting

    kind = KINDS[type(config.benchmark)]
    folder = RunFolder.of(config).scores(score_label(config.benchmark, config.policy))
    if issubclass(kind, ItemsWork):
        if answers_metadata(folder, *kind.files) is not None:
            return ScoringEstimate(0.0, 0, 0)
        texts = kind.read(config, {}).texts
        read = sum(count_words(text, config.corpus.reference) for text in texts)
        return ScoringEstimate(read * tokens_per_word + len(texts), 0, PROCESS_BYTES + SCORER_BYTES)
    models = [None, *(snapshots if config.scoring.snapshots else ())]
    methods = fitting(config.method, config.model.masked)
    missing = [[name for name in methods if not score_path(folder, name, step).exists()] for step in models]
    words_read = sum(_words_to_read(config, names) for names in missing if names)
    pairs = len(benchmark_of(config.benchmark, config.paths, dataclasses.asdict(config)).pairs)
    file_bytes = pairs * (ITEM_BYTES + SCORE_BYTES * len(methods) * len(models))
    memory_bytes = PROCESS_BYTES + SCORER_BYTES + pairs * PAIR_BYTES
    return ScoringEstimate(words_read * tokens_per_word, file_bytes, memory_bytes if words_read else 0)


def with_scoring(run: Estimate, configs: Sequence[EvalConfig]) -> Estimate:
    """Add the cost of scoring a run on the benchmark of each configuration. Raises the errors of `estimate_scoring`."""
    scoring = [estimate_scoring(one, run.tokens_per_word, run.snapshots) for one in configs]
    most = max(one.memory_bytes for one in scoring)
    beside = configs[0].is_live and not run.done  # in another process
    return dataclasses.replace(
        run,
        scoring_seconds=sum(one.tokens for one in scoring) / run.tokens_read_per_s,
        memory_bytes=run.memory_bytes + most if beside else max(run.memory_bytes, most),
        disk_bytes=run.disk_bytes + sum(one.file_bytes for one in scoring),
    )


def peak_memory(jobs: Sequence[Job]) -> int:
    """Return the memory in bytes of the largest of `jobs`, with scoring, or 0 if none can be estimated."""
    return estimate.peak_memory(
        jobs, lambda run, job: with_scoring(run, of_each_benchmark(job.config, Line.of(job.words)))
    )


def _words_to_read(config: EvalConfig, methods: list[str]) -> float:
    """Return how many reference words and begin symbols one model reads for `methods`."""
    from eval.methods.judging import template_reading

    reference = config.corpus.reference
    benchmark = benchmark_of(config.benchmark, config.paths, dataclasses.asdict(config))
    counts = scored = benchmark.words(reference)
    table = compared(benchmark.pairs)
    if "rival" in table:  # each option is read with its context
        sides = [side for name in SIDES for side in zip(table[f"{name}_context"], table[name], strict=True)]
        scored = {context + option: counts[option] for context, option in sides}
        counts = {text: count_words(text, reference) for text in scored}
    if config.model.masked:  # reads one copy of the text per scored word, with that word masked
        return float(sum(scored[text] * length for text, length in counts.items()))
    total = sum(counts.values()) + len(counts)
    read = total if config.model.counted else _distinct_words(tuple(counts), reference)
    chosen = {name: config.method[name] for name in methods}
    return read + template_reading(chosen, config.benchmark.language, counts, reference, read / total)


@functools.lru_cache(maxsize=2)
def _distinct_words(sentences: tuple[str, ...], reference: str) -> int:
    """Return the number of nodes in a prefix tree of all sentences. A node is a word; the begin symbol is the root."""
    texts = sorted(list(words(text, reference)) for text in sentences)
    shared = 0
    for before, text in pairwise(texts):
        shared += next(
            (n for n, (one, other) in enumerate(zip(before, text, strict=False)) if one != other), len(before)
        )
    return 1 + sum(map(len, texts)) - shared
