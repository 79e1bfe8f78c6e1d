"""The long table of a study, from its run folders and score files. No other module of the analysis reads these.

    from analysis import accuracies
    accuracies("mine").groupby(["curve", "sample_words"])["accuracy"].mean()

docs/guides/table.md explains every column.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.config import COUNT
from analysis.formats import rows_of
from analysis.study.run_folders import PROBLEM_COLUMNS, RUN_COLUMNS, TOKENS, Studies, read_studies
from analysis.study.score_files import (
    FILE_COLUMNS,
    PAIR_COLUMNS,
    STANDS_FOR,
    by_pairs,
    count_correct,
    has_own_pairs,
    joined,
    pairs_of,
    read_judgements,
    score_files,
    settings_of,
)
from eval.benchmarks.known_items import faulty_note
from eval.scores.files import read_unavailable
from eval.scores.names import benchmark_name
from eval.sweeps import requested_runs
from pairscale.errors import first_few

ACCURACY_COLUMNS = (*RUN_COLUMNS, *FILE_COLUMNS, "pairs", "correct", "accuracy", "ties", "pairs_with_unk")


def runs(*studies: str | Studies, folder: str | Path = "runs") -> pd.DataFrame:
    """Return one row per finished run, with the columns of RUN_COLUMNS and more about its training.

    Args:
        studies: names of studies, which are folders in `folder`; "a+b" names two. To read them once for several tables,
            give what `read_studies` returned.
        folder: where studies are (`paths.runs`).

    Returns:
        `curve` names what differs between the runs, besides size and seed. `sample_words` counts what `unit` names, and
        is missing for a model whose amount of text is not known. `baseline` is "" for a run of a curve, "untrained", or
        how the words of its text were shuffled. `valid_ppl` is per reference word. `wall_s` counts seconds.

    Raises:
        ConfigError: without the name of a study.
        RunError: for a study that doesn't exist or has no finished run.
    """
    return read_studies(studies, folder).runs


def accuracies(
    *studies: str | Studies,
    benchmark: str | None = None,
    method: str | None = None,
    ties: str = "wrong",
    faulty_pairs: str = COUNT,
    unknown_words: str = COUNT,
    snapshots: bool = False,
    folder: str | Path = "runs",
) -> pd.DataFrame:
    """Return one row per run, benchmark, method and paradigm, with the columns of ACCURACY_COLUMNS.

    Args:
        studies: as for `runs`.
        benchmark: only this one, such as "blimp". Default: all.
        method: only this one, such as "lp". Masked models have no log-probability of a sentence, so their "pll" is
            taken instead, and the column `method` says so. Default: all.
        ties: what a pair with two equal scores counts as: "wrong" (0), "half" (.5) or "right" (1).
        faulty_pairs: "count" pairs that are known to be faulty, as published, or "leave_out" these.
        unknown_words: "count" all pairs, or "leave_out" those that contain an unknown word in any of the runs.
        snapshots: return `trajectories` instead.
        folder: where studies are (`paths.runs`).

    Returns:
        The columns of runs are those of `runs`. `accuracy`, from 0 to 1, is `correct` divided by `pairs`. If a method
        has several templates or trials, each pair counts with its mean over them. `benchmark` is the name of the
        folder of scores, which also names scoring settings that differ from the default ones. `pairs_with_unk` counts
        pairs with an unknown word in either sentence. Unfinished and damaged runs are left out: `problems` lists them.

    Raises:
        ConfigError: as `runs` does, and for another value of `ties`, `faulty_pairs` or `unknown_words`.
        RunError: as `runs` does, without such scores, for damaged files, and for scores that can't be compared: of
            other weights than the run's, other versions of a benchmark, or other settings with one tokenizer.
    """
    files = score_files(read_studies(studies, folder), benchmark, method, snapshots)
    table = count_correct(files, ties, faulty_pairs, unknown_words)
    return table.reindex(columns=[*ACCURACY_COLUMNS, *(["moment"] if snapshots else [])])


def trajectories(*studies: str | Studies, **options: Any) -> pd.DataFrame:
    """Return the accuracies of snapshots of models during their training; the arguments are those of `accuracies`.

    Returns:
        The columns of `accuracies` and `moment`, the name of the snapshot; no rows if no snapshot was scored.
        `sample_words` counts the words that the model had seen, with repeats (`unit` is "words seen"), and `run` is
        RUN@MOMENT. These are points of single trainings, so they never belong in a fit with other curves.

    Raises:
        ConfigError, RunError: as `accuracies` does, and if scores don't say how many words a snapshot had seen.
    """
    return accuracies(*studies, snapshots=True, **options)


def pairs(
    *studies: str | Studies,
    benchmark: str | None = None,
    method: str | None = None,
    runs: Collection[str] | None = None,
    folder: str | Path = "runs",
) -> pd.DataFrame:
    """Return one row per run, benchmark, method and minimal pair, with the columns of PAIR_COLUMNS and your own.

    A method with several templates or trials has a row for each of them. For `studies`, `benchmark`, `method` and
    `folder` see `accuracies`; `runs` are the names of the runs to read (default: all).

    Returns:
        `good` and `bad` are the sentences. `good_score` and `bad_score` are the method's scores of them, such as
        log-probabilities in nats. `correct` is True if the good sentence has the higher score. `good_tokens` and
        `bad_tokens` count scored tokens, `good_unk` and `bad_unk` unknown ones, and `good_words` and `bad_words` words
        of the corpus's reference tokenizer. `faulty` says what is wrong with a pair that is known to be faulty, and is
        "" for others. The benchmark's `field` and your own columns of its tables follow; a column of yours with a name
        that is taken is called item_NAME.

    Raises:
        ConfigError, RunError: as `accuracies` does.
    """
    files = score_files(read_studies(studies, folder), benchmark, method)
    tables = []
    for items, of_items in by_pairs(files if runs is None else files[files["run"].isin(list(runs))]):
        for file, part in ((file, part) for file, parts in read_judgements(items, of_items) for part in parts):
            scores = part.to_pandas().rename(columns={"good": "good_score", "bad": "bad_score"})
            scores["correct"] = scores["good_score"] > scores["bad_score"]
            tables.append((file, pd.concat([items, scores], axis=1)))
    table = joined(files[[*RUN_COLUMNS, "benchmark", "method"]], tables)
    own = [name for name in table if name not in {*PAIR_COLUMNS, "file"} and table[name].notna().any()]
    return table.reindex(columns=[*PAIR_COLUMNS, *own])


def problems(*studies: str | Studies, folder: str | Path = "runs") -> pd.DataFrame:
    """Return one row per run that the other tables leave out or have less of: study, run, status and reason.

    `status` is "missing" (a sweep requested the run), "unfinished", "failed", "damaged", "shared" (an earlier run is
    the same model) or "unscored" (without scores of a benchmark and method that other runs have).
    """
    found = read_studies(studies, folder)
    known = {*found.runs["run"], *found.problems["run"]}
    rows = [
        (study, request.point, "missing", "")
        for study in found.names
        for run, request in requested_runs(found.folder, study).items()
        if run not in known
    ]
    files = found.files[~found.files["is_snapshot"]]
    masked = files[files["method"].isin(STANDS_FOR)]  # their models have no other method, and others don't have this
    for (benchmark, method), of in files.groupby(["benchmark", files["method"].replace(STANDS_FOR)], sort=False):
        scored = {*of["row"], *masked.loc[masked["benchmark"] == benchmark, "row"]}
        unscored = found.runs.loc[~found.runs.index.isin(scored), ["study", "run"]].to_numpy()
        rows += [(*run, "unscored", f"no {method} scores of {benchmark}") for run in unscored]
    return pd.concat([found.problems, pd.DataFrame(rows, columns=list(PROBLEM_COLUMNS))], ignore_index=True)


def notes(
    *studies: str | Studies, benchmark: str | None = None, method: str | None = None, folder: str | Path = "runs"
) -> list[str]:
    """Return sentences that a reader of the accuracies should know; the arguments are those of `accuracies`.

    They are about texts, methods and settings that differ, missing seeds, faulty pairs and checkpoints of a training.
    """
    found = read_studies(studies, folder)
    files = score_files(found, benchmark, method)
    sentences = found.notes + _uneven_seeds(found.runs)
    if curves := sorted(set(found.runs.loc[found.runs["unit"] == TOKENS, "curve"])):
        sentences.append(
            f"The points of {' | '.join(curves)} are checkpoints of one training, by tokens seen with repeats. They "
            "depend on each other, so their curve has no confidence interval."
        )
    if method is not None and (listed := _by_curve(files["method"], files)):
        sentences.append(
            f"Curves were judged by different methods: {listed}. Masked models have no log-probability of a sentence "
            "(lp), only the sum of those of each token given all others (pll). Compare their levels with care."
        )
    for _, of_method in files.groupby(["benchmark", "method"]):
        for name, values in settings_of(of_method).items():
            if listed := _by_curve(values, of_method):
                sentences.append(f"The scoring setting {name} differs: {listed}. Compare their levels with care.")
    for file in rows_of(files.drop_duplicates("benchmark")):
        label = file.benchmark
        note = faulty_note(label.partition("+")[0], pairs_of(file))
        if has_own_pairs(label):
            places = [path.parent for path in files.loc[files["benchmark"] == label, "path"]]
            lacking = {name: why for place in places for name, why in read_unavailable(place).items()}
            note = "each run was scored on pairs of its own words, so runs are compared by the paradigms that all have"
            if lacking:
                note += f", without {', '.join(f'{name} ({why})' for name, why in sorted(lacking.items()))}"
        if note:
            sentences.append(f"{benchmark_name(label)}: {note}.")
    return list(dict.fromkeys(sentences))


def _uneven_seeds(runs: pd.DataFrame) -> list[str]:
    """Say at which sizes a curve lacks some of its seeds, unless every size has one run."""
    sentences = []
    for curve, of in runs[runs["baseline"].eq("") & runs["seed"].notna()].groupby("curve"):
        there = set(zip(of["size"], of["seed"], strict=True))
        wanted = product(of["size"].unique(), sorted(of["seed"].unique()))
        missing = [f"seed {seed} at {size}" for size, seed in wanted if (size, seed) not in there]
        if missing and of["size"].duplicated().any():
            sentences.append(f"{curve} has no finished run with {first_few(missing)}.")
    return sentences


def _by_curve(values: pd.Series, files: pd.DataFrame) -> str:
    """Return the curves that have each value of their files, "lp for a | b; pll for c"; "" for one value."""
    curves = files["curve"].groupby(values).agg(lambda of: " | ".join(sorted(set(of))))
    return "; ".join(f"{value} for {of}" for value, of in curves.items()) if len(curves) > 1 else ""
