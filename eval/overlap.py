"""`python -m eval.overlap`: the sentences of a benchmark that occur in a corpus, and in the samples of a study's runs.

<paths.reports>/overlap/<benchmark>-<corpus>.csv    of a corpus
<paths.reports>/<study>/overlap/<benchmark>-<corpus>.csv    of a study, with a column for each run
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.console import Console

from corpora.overlap import normalised, occurrences
from corpora.prepare import prepare
from corpora.text import SPLITS, TextStore
from corpora.word_counts import sample_again
from eval.benchmarks.config import SAMPLES
from eval.benchmarks.load import benchmark_of
from eval.config import EvalConfig
from eval.scores.schemas import SIDES
from pairscale.command.main import main
from pairscale.console import print_text
from pairscale.errors import ConfigError, RunError
from pairscale.tables import write_csv
from train.runs.folder import study_runs

Samples = dict[str, npt.NDArray[np.int64]]  # the sentences of each run's sample, as their places in the text


def run(config: EvalConfig) -> None:
    """Search the corpus, or those of the runs of `config.study`; write the sentences, print how many there are.

    Raises ConfigError for a benchmark without pairs of its own, NoCorpus and RunError where there is nothing to
    search, StoreError for a text that is not the runs'.
    """
    if not config.benchmark.has_pairs or config.benchmark.vocabulary in SAMPLES:
        raise ConfigError(f"benchmark={config.benchmark.name}: has no pairs that are the same for all models")
    pairs = benchmark_of(config.benchmark, config.paths, {}).pairs
    for text, samples in _texts_of_study(config) if config.study is not None else [(prepare(config).text, {})]:
        corpus = text.folder.parent.name
        path = Path(config.paths.reports, config.study or "", "overlap", f"{config.benchmark.label}-{corpus}.csv")
        found = overlap(pairs, text, samples)
        write_csv(path, found)
        sides = " and ".join(f"{(found['side'] == side).sum():,} {side}" for side in SIDES)
        affected = len(found[["paradigm", "pair_id"]].drop_duplicates())
        told = (
            f"{config.benchmark.label} in {corpus}: {len(found):,} of {2 * len(pairs):,} sentences occur in the text "
            f"({sides}), {found['train'].gt(0).sum():,} in its train split; they are of {affected:,} of {len(pairs):,} "
            "pairs"
        )
        if samples:
            counts = found[[*samples]].sum()
            told += f"; samples of {len(counts):,} runs have {counts.min():,} to {counts.max():,} of them"
        print_text(Console(highlight=False), f"{told}\n{path}")


def _texts_of_study(config: EvalConfig) -> list[tuple[TextStore, Samples]]:
    """Return the text of each corpus of a study, and the samples of the runs on it."""
    found: dict[str, tuple[TextStore, Samples]] = {}
    for folder in study_runs(config.paths.runs, str(config.study), config.run):
        if "sample" in (manifest := folder.read_manifest()).get("corpus", {}):
            described = folder.read_config()
            text, sample = sample_again(described, manifest, Path(config.paths.store))
            # A shuffled sample has the words of its sentences, but not the sentences.
            indices = sample.indices if described["sample"].get("shuffle") is None else sample.indices[:0]
            found.setdefault(described["corpus"]["name"], (text, {}))[1][folder.path.name] = indices
    if not found:
        raise RunError(f"study={config.study}: no run that was trained on a corpus here")
    return list(found.values())


def overlap(pairs: pd.DataFrame, text: TextStore, samples: Mapping[str, npt.NDArray[np.int64]]) -> pd.DataFrame:
    """Return the sentences of `pairs` (eval.scores.schemas.ITEMS) that occur in a text, a row each.

    Columns: paradigm, phenomenon, pair_id, side (good or bad), sentence, the occurrences in each split, and for each
    run of `samples` 1 if its sample has the sentence, else 0.
    """
    names = ["paradigm", "phenomenon", "pair_id"]
    sentences = pairs.melt(names, SIDES, "side", "sentence", ignore_index=False).sort_index(kind="stable")
    places = occurrences(text, sentences["sentence"])
    keys = sentences["sentence"].map(normalised)
    found = sentences[keys.isin(places)].reset_index(drop=True)
    there = [places[key] for key in keys[keys.isin(places)]]
    split = np.repeat(text.splits, np.diff(text.documents))
    counts = [np.bincount(split[indices], minlength=len(SPLITS)) for indices in there]
    found[[*SPLITS]] = np.array(counts, np.int64).reshape(-1, len(SPLITS))
    for name, sample in samples.items():
        sampled = np.zeros(len(split), bool)
        sampled[sample] = True
        found[name] = [int(sampled[indices].any()) for indices in there]
    return found


if __name__ == "__main__":
    main("overlap", run)
