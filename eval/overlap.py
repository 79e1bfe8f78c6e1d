"""`python -m eval.overlap`: the sentences of a benchmark that occur in a corpus, and in the samples of a study's runs.

<paths.reports>/overlap/<benchmark>-<corpus>.csv    of a corpus
<paths.reports>/<study>/overlap/<benchmark>-<corpus>.csv    of a study, with a column for each run
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.console import Console
from rich.table import Table

from corpora.overlap import normalised, occurrences
from corpora.prepare import prepare
from corpora.text import SPLITS, TextStore
from corpora.word_counts import sample_again
from eval.benchmarks.load import benchmark_key, loaded_benchmark
from eval.config import EvalConfig
from pairscale.command.main import main
from pairscale.console import print_text
from pairscale.errors import ConfigError, RunError
from pairscale.tables import plain_table, print_table, write_csv
from train.runs.folder import study_runs

SIDES = ("good", "bad")


@dataclass
class Searched:
    """A text, and the sentences of the samples of each run on it."""

    text: TextStore
    runs: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the corpus."""
        return self.text.folder.parent.name


def run(config: EvalConfig) -> None:
    """Search the corpus, or those of the runs of `config.study`; print counts by paradigm, write the sentences.

    Raises ConfigError for a benchmark without pairs of its own, NoCorpus and RunError where there is nothing to
    search, StoreError for a text that is not the runs'.
    """
    if not config.benchmark.has_pairs or config.benchmark.vocabulary in ("run", "study"):
        raise ConfigError(f"benchmark={config.benchmark.name}: has no pairs that are the same for all models")
    benchmark = loaded_benchmark(benchmark_key(config, {}))
    console = Console(highlight=False)
    for searched in _searched(config):
        sentences = overlap(benchmark.pairs, searched)
        folder = Path(config.paths.reports) / (config.study or "") / "overlap"
        path = folder / f"{config.benchmark.label}-{searched.name}.csv"
        write_csv(path, sentences)
        if len(sentences):
            print_table(console, _by_paradigm(sentences, benchmark.pairs, searched.name))
        for line in summary(sentences, benchmark.pairs, searched):
            print_text(console, f"{config.benchmark.label} in {searched.name}: {line}")
        print_text(console, str(path))


def _searched(config: EvalConfig) -> Iterator[Searched]:
    if config.study is None:
        yield Searched(prepare(config).text)
        return
    by_corpus: dict[str, Searched] = {}
    for folder in study_runs(config.paths.runs, config.study, config.run):
        if "sample" in (manifest := folder.read_manifest()).get("corpus", {}):
            described = folder.read_config()
            text, sample = sample_again(described, manifest, Path(config.paths.store))
            of_corpus = by_corpus.setdefault(described["corpus"]["name"], Searched(text))
            # A shuffled sample has the words of its sentences, but not the sentences.
            indices = sample.indices if described["sample"].get("shuffle") is None else sample.indices[:0]
            of_corpus.runs[folder.path.name] = indices
    if not by_corpus:
        raise RunError(f"study={config.study}: no run that was trained on a corpus here")
    yield from by_corpus.values()


def overlap(pairs: pd.DataFrame, searched: Searched) -> pd.DataFrame:
    """Return the sentences of `pairs` (eval.scores.schemas.ITEMS) that occur in a text, a row each.

    Columns: paradigm, phenomenon, pair_id, side (good or bad), sentence, the occurrences in each split, and for each
    run 1 if its sample has the sentence, else 0.
    """
    places = occurrences(searched.text, [*pairs["good"], *pairs["bad"]])
    split = _split_of_sentences(searched.text)
    sampled = {name: set(indices.tolist()) for name, indices in searched.runs.items()}
    rows = []
    for pair in pairs.itertuples():
        for side in SIDES:
            sentence = str(getattr(pair, side))
            if (indices := places.get(normalised(sentence))) is not None:
                counts = np.bincount(split[indices], minlength=len(SPLITS)).tolist()
                in_runs = [int(not indices_of.isdisjoint(indices.tolist())) for indices_of in sampled.values()]
                rows.append((pair.paradigm, pair.phenomenon, pair.pair_id, side, sentence, *counts, *in_runs))
    columns = ["paradigm", "phenomenon", "pair_id", "side", "sentence", *SPLITS, *sampled]
    return pd.DataFrame(rows, columns=columns)


def summary(sentences: pd.DataFrame, pairs: pd.DataFrame, searched: Searched) -> list[str]:
    """Return a line on the text and, where there are runs, one on their samples."""
    affected = len(sentences[["paradigm", "pair_id"]].drop_duplicates())
    train = sentences[sentences["train"] > 0]
    sides = " and ".join(f"{(sentences['side'] == side).sum():,} {side}" for side in SIDES)
    lines = [
        f"{len(sentences):,} of {2 * len(pairs):,} sentences occur in the text ({sides}), {len(train):,} in its train "
        f"split; they are of {affected:,} of {len(pairs):,} pairs"
    ]
    if searched.runs:
        counts = sentences[list(searched.runs)].sum()
        lines.append(
            f"samples of {len(counts):,} runs have {counts.min():,} to {counts.max():,} of them (mean "
            f"{counts.mean():,.1f})"
        )
    return lines


def _split_of_sentences(text: TextStore) -> npt.NDArray[np.uint8]:
    return np.repeat(text.splits, np.diff(text.documents))


def _by_paradigm(sentences: pd.DataFrame, pairs: pd.DataFrame, corpus: str) -> Table:
    table = plain_table(f"sentences that occur in {corpus}")
    table.add_column("paradigm")
    for heading in ("pairs", *SIDES, *SPLITS):
        table.add_column(heading, justify="right")
    sizes = pairs["paradigm"].value_counts()
    for paradigm, rows in sentences.groupby("paradigm"):
        of_sides = [(rows["side"] == side).sum() for side in SIDES]
        of_splits = [(rows[split] > 0).sum() for split in SPLITS]
        table.add_row(str(paradigm), *(f"{count:,}" for count in (sizes[paradigm], *of_sides, *of_splits)))
    return table


if __name__ == "__main__":
    main("overlap", run)
