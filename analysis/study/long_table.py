"""The long table of a study, from its run folders and score files. No other module of the analysis reads these.

    from analysis import accuracies
    accuracies("mine").groupby(["curve", "sample_words"])["accuracy"].mean()

docs/guides/table.md explains every column.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pandas as pd

from analysis.study.run_folders import PROBLEM_COLUMNS, RUN_COLUMNS, TOKENS, Studies, read_studies
from analysis.study.score_files import (
    COUNT,
    FAULTY_PAIRS,
    FILE_COLUMNS,
    OF_MASKED,
    PAIR_COLUMNS,
    ScoreFile,
    count_correct,
    has_own_pairs,
    joined,
    methods_of_runs,
    score_files,
    with_items,
)
from eval.benchmarks.known_items import faulty_note
from eval.scores.accuracy import TIE_WORTH
from eval.scores.files import read_unavailable
from eval.scores.names import benchmark_name
from eval.sweeps import requested_runs
from pairscale.errors import RunError, check_choice, first_few

COUNT_COLUMNS = ("pairs", "correct", "accuracy", "ties", "pairs_with_unk")
ACCURACY_COLUMNS = (*RUN_COLUMNS, *FILE_COLUMNS, *COUNT_COLUMNS)
MISSING, UNSCORED = "missing", "unscored"  # states of runs, beside those of run_folders.py
WORDS_SEEN = "words seen"


def runs(*studies: str, folder: str | Path = "runs") -> pd.DataFrame:
    """Return one row per finished run, with the columns of RUN_COLUMNS and more about its training.

    Args:
        studies: names of studies, which are folders in `folder`; "a+b" names two.
        folder: where studies are (`paths.runs`).

    Returns:
        `curve` names what differs between the runs, besides size and seed. `sample_words` counts what `unit` names:
        distinct training words or characters, or the tokens that a checkpoint of one training has seen. It is missing
        for a model whose amount of text is not known. `sample` is the digest of the training sample: runs with equal
        digests were trained on the same sentences. `baseline` is "" for a run of a curve, "untrained", or how the
        words of its text were shuffled. `words_seen` counts words with repeats. `valid_ppl` is per reference word.
        `overlap` is the share of text that two samples of this size have in common. `wall_s` counts seconds. A run
        whose text lacks a construction names it in `construction`, with the `action` and the `dose` that is left, and
        `base` is the name of its curve without this intervention.

    Raises:
        ConfigError: without the name of a study.
        RunError: for a study that doesn't exist or has no finished run.
    """
    return read_studies(studies, folder).runs


def accuracies(
    *studies: str,
    benchmark: str | None = None,
    method: str | None = None,
    ties: str = "wrong",
    faulty_pairs: str = COUNT,
    unknown_words: str = COUNT,
    folder: str | Path = "runs",
) -> pd.DataFrame:
    """Return one row per run, benchmark, method and paradigm, with the columns of ACCURACY_COLUMNS.

    Args:
        studies: names of studies, which are folders in `folder`; "a+b" names two.
        benchmark: only this one, such as "blimp". Default: all.
        method: only this one, such as "lp". Masked models have no log-probability of a sentence, so their "pll" is
            taken instead, and the column `method` says so. Default: all.
        ties: what a pair with two equal scores counts as: "wrong" (0), "half" (.5) or "right" (1).
        faulty_pairs: "count" pairs that are known to be faulty, as published, or "leave_out" these.
        unknown_words: "count" all pairs, or "leave_out" those that contain an unknown word in any of the runs.
        folder: where studies are (`paths.runs`).

    Returns:
        The columns of runs are those of `runs`. `accuracy`, from 0 to 1, is `correct` divided by `pairs`. If a method
        has several templates or trials, each pair counts with its mean over them. `benchmark` is the name of the
        folder of scores, which also names scoring settings that differ from the default ones. `pairs_with_unk` counts
        pairs with an unknown word in either sentence. Unfinished and damaged runs are left out: `problems` lists them.

    Raises:
        ConfigError: without the name of a study, or for another value of `ties`, `faulty_pairs` or
            `unknown_words`.
        RunError: for a study without finished runs or without such scores, for a damaged file, for scores of other
            weights than the run's, and if runs were scored on different versions of a benchmark, or under different
            scoring settings with one tokenizer.
    """
    check_choice("ties", ties, TIE_WORTH)
    check_choice("faulty_pairs", faulty_pairs, FAULTY_PAIRS)
    check_choice("unknown_words", unknown_words, FAULTY_PAIRS)
    found = read_studies(studies, folder)
    counts = count_correct(score_files(found, benchmark, method), ties, faulty_pairs, unknown_words)
    return _accuracies(found, counts)


def trajectories(
    *studies: str,
    benchmark: str | None = None,
    method: str | None = None,
    ties: str = "wrong",
    faulty_pairs: str = COUNT,
    folder: str | Path = "runs",
) -> pd.DataFrame:
    """Return the accuracies of snapshots of models during their training; the arguments are those of `accuracies`.

    Returns:
        The columns of `accuracies` and `moment`, the name of the snapshot; no rows if no snapshot was scored.
        `sample_words` counts the words that the model had seen, with repeats (`unit` is "words seen"), and `run` is
        RUN@MOMENT. These are points of single trainings, so they never belong in a fit with other curves.

    Raises:
        ConfigError, RunError: as `accuracies` does.
    """
    check_choice("ties", ties, TIE_WORTH)
    check_choice("faulty_pairs", faulty_pairs, FAULTY_PAIRS)
    found = read_studies(studies, folder)
    files = score_files(found, benchmark, method, snapshots=True)
    table = _accuracies(found, count_correct(files, ties, faulty_pairs), ["file"])
    moments = [file.metadata.get("moment") for file in files]
    seen = [file.metadata.get("words_seen") for file in files]
    for file, words in zip(files, seen, strict=True):
        if words is None:
            raise RunError(f"{file.path}: doesn't say how many words the model had seen. Score the snapshot again.")
    rows = table.pop("file").astype(int)
    table["moment"] = [moments[row] for row in rows]
    table["sample_words"] = pd.array([seen[row] for row in rows], dtype="Int64")
    table["run"] = table["run"] + "@" + table["moment"].astype(str)
    return table.assign(unit=WORDS_SEEN)


def pairs(
    *studies: str,
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
        of the corpus's reference tokenizer. `faulty` says what is wrong with a
        pair that is known to be faulty, and is "" for others. The benchmark's `field` and your own columns of its
        tables follow; a column of yours with a name that is taken is called item_NAME.

    Raises:
        ConfigError, RunError: as `accuracies` does.
    """
    found = read_studies(studies, folder)
    tables = []
    files = score_files(found, benchmark, method)
    files = [file for file in files if runs is None or found.runs.at[file.row, "run"] in runs]
    for file, items in with_items(files):
        for part in items.judgements(file):
            scores = part.to_pandas().rename(columns={"good": "good_score", "bad": "bad_score"})
            scores["correct"] = scores["good_score"] > scores["bad_score"]
            tables.append(file.named(pd.concat([items.table, scores], axis=1)))
    more = [str(name) for table in tables for name in table if name not in PAIR_COLUMNS and name != "row"]
    table = joined(found, tables, [*PAIR_COLUMNS[len(RUN_COLUMNS) :], *dict.fromkeys(more)])
    return table.drop(columns=[name for name in dict.fromkeys(more) if table[name].isna().all()])


def problems(*studies: str, folder: str | Path = "runs") -> pd.DataFrame:
    """Return one row per run that the other tables leave out or have less of: study, run, status and reason.

    `status` is "missing" (a sweep requested the run), "unfinished", "failed", "damaged", "shared" (an earlier study
    has the same run) or "unscored" (without scores of a benchmark and method that other runs have).
    """
    found = read_studies(studies, folder)
    rows = []
    for study in found.names:
        known = [run for of, run in found.folders if of == study]
        known += list(found.problems.loc[found.problems["study"] == study, "run"])
        for run, request in requested_runs(folder, study).items():
            if run not in known:
                alike = [one for one in known if one.rpartition("-")[0] == run.rpartition("-")[0]]
                reason = f"{first_few(alike)} was trained with another configuration" if alike else ""
                rows.append({"study": study, "run": request.point, "status": MISSING, "reason": reason})
    methods = methods_of_runs(found)
    for benchmark in dict.fromkeys(label for of in methods.values() for label in of):
        for method in sorted({name for of in methods.values() for name in of.get(benchmark, [])}):
            # Masked models have pll and no other method, and others have no pll.
            names = {method, *OF_MASKED.values(), *(lp for lp, pll in OF_MASKED.items() if pll == method)}
            rows += [
                {"study": key[0], "run": key[1], "status": UNSCORED, "reason": f"no {method} scores of {benchmark}"}
                for key, of in methods.items()
                if names.isdisjoint(of.get(benchmark, []))
            ]
    more = pd.DataFrame(rows, columns=list(PROBLEM_COLUMNS))
    return pd.concat([found.problems, more], ignore_index=True)


def notes(
    *studies: str, benchmark: str | None = None, method: str | None = None, folder: str | Path = "runs"
) -> list[str]:
    """Return sentences that a reader of the accuracies should know; the arguments are those of `accuracies`.

    They say if curves differ in more than their names, if runs were trained on different texts, scored by different
    methods or under different settings, if seeds are missing at some sizes, and if pairs are known to be faulty.
    """
    found = read_studies(studies, folder)
    files = score_files(found, benchmark, method)
    sentences = [*found.notes, *_one_training(found.runs), *_uneven_seeds(found.runs)]
    if method is not None:
        sentences += _two_methods(found, files)
    for label in dict.fromkeys(file.benchmark for file in files):
        of_label = [file for file in files if file.benchmark == label]
        sentences += _differing_settings(found, of_label)
        if has_own_pairs(label):
            sentences.append(_own_pairs(label, of_label))
            continue
        _, items = next(with_items(of_label))
        if note := faulty_note(label.partition("+")[0], items.table):
            sentences.append(f"{benchmark_name(label)}: {note}.")
    return list(dict.fromkeys(sentences))


def _accuracies(found: Studies, counts: pd.DataFrame, more: Sequence[str] = ()) -> pd.DataFrame:
    """Return accuracies with the columns of ACCURACY_COLUMNS and `more`."""
    tables = [counts.assign(accuracy=counts["correct"] / counts["pairs"])] if len(counts) else []
    return joined(found, tables, [*ACCURACY_COLUMNS[len(RUN_COLUMNS) :], *more]).astype({"pairs": "Int64"})


def _one_training(runs: pd.DataFrame) -> list[str]:
    curves = sorted(set(runs.loc[runs["unit"] == TOKENS, "curve"]))
    if not curves:
        return []
    return [
        f"The points of {' | '.join(curves)} are checkpoints of one training, by tokens seen with repeats. They depend "
        "on each other, so their curve has no confidence interval."
    ]


def _uneven_seeds(runs: pd.DataFrame) -> list[str]:
    """Say at which sizes a curve lacks some of its seeds, unless every size has one run."""
    sentences = []
    on_curves = runs[runs["baseline"].eq("") & runs["seed"].notna()]
    for curve, of_curve in on_curves.groupby("curve", sort=True):
        seeds, missing = set(of_curve["seed"]), []
        for size, of_size in of_curve.groupby("size", sort=False):
            absent = sorted(seeds - set(of_size["seed"]))
            if absent:
                missing.append(f"seed{'s' if len(absent) > 1 else ''} {', '.join(map(str, absent))} at {size}")
        if missing and of_curve["size"].duplicated().any():
            sentences.append(f"{curve} has no finished run with {'; with '.join(missing)}.")
    return sentences


def _own_pairs(label: str, files: Sequence[ScoreFile]) -> str:
    """Say that runs have different pairs, and which paradigms are left out since a run has no pairs of them."""
    reasons = {name: why for file in files for name, why in read_unavailable(file.path.parent).items()}
    left_out = "; ".join(f"{name} ({why})" for name, why in sorted(reasons.items()))
    of_runs = "each run was scored on pairs of its own words, so runs are compared by paradigm."
    return f"{benchmark_name(label)}: {of_runs}" + (
        f" Paradigms without pairs in some run are left out: {left_out}." if left_out else ""
    )


def _two_methods(found: Studies, files: Sequence[ScoreFile]) -> list[str]:
    """Say which curves were judged by the method that stands for the others' in masked models."""
    curves = _curves_by(found, files, [file.method for file in files])
    if len(curves) < 2:
        return []
    listed = "; ".join(f"{name} for {of}" for name, of in curves.items())
    return [
        f"Curves were judged by different methods: {listed}. Masked models have no log-probability of a sentence (lp), "
        "only the sum of those of each token given all others (pll). Compare their levels with care."
    ]


def _differing_settings(found: Studies, files: Sequence[ScoreFile]) -> list[str]:
    """Say which scoring settings of one method differ between tokenizers; one tokenizer has the same ones."""
    sentences = []
    for method in dict.fromkeys(file.method for file in files):
        of_method = [file for file in files if file.method == method]
        for name in sorted({name for file in of_method for name in file.settings}):
            curves = _curves_by(found, of_method, [file.settings.get(name, "null") for file in of_method])
            if len(curves) > 1:
                listed = "; ".join(f"{value} for {of}" for value, of in curves.items())
                sentences.append(f"The scoring setting {name} differs: {listed}. Compare their levels with care.")
    return sentences


def _curves_by(found: Studies, files: Sequence[ScoreFile], values: Sequence[str]) -> dict[str, str]:
    """Return the curves that have each of the values of their files, as text."""
    curves: dict[str, set[str]] = {}
    for file, value in zip(files, values, strict=True):
        curves.setdefault(value, set()).add(str(found.runs.at[file.row, "curve"]))
    return {value: " | ".join(sorted(curves[value])) for value in sorted(curves)}
