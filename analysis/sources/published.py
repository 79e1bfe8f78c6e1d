"""From rows of outcomes that others published to tables of accuracies, runs and pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from analysis.published import published_file
from analysis.sources.settings import ResultsConfig, unit_name
from analysis.sources.sizes import size_of, size_texts
from analysis.study.run_folders import FURTHER_COLUMNS, RUN_COLUMNS, UNTRAINED
from analysis.study.score_files import FILE_COLUMNS
from eval.benchmarks.cells import shown
from eval.config import is_of_pairs
from pairscale.errors import ConfigError, InputError, first_few
from train.runs.interventions import FULL_DOSE, FULL_TEXT

RUN = ["model", "removed", "size", "seed"]  # columns of rows that tell runs apart
# Of rows of outcomes; run: the run's name or "", pair: "" where a row is a paradigm, tests: whether the paradigm tests
# what is removed, place: file and line. A row without a paradigm is a phenomenon, and one with neither is a run.
COLUMNS = (*RUN, "run", "paradigm", "phenomenon", "pair", "accuracy", "n", "tests", "place")
COUNT_COLUMNS = ("pairs", "correct", "accuracy", "ties", "pairs_with_unk")
BLIMP, OVERALL = "blimp", "overall"
SAME_TEXT = (
    "Nothing says whether runs of one size were trained on the same text. If they were, intervals are for new "
    "initialisations only."
)
LEAST_WORDS = 2000  # of a largest size: below it, sizes may count thousands or millions of words


@dataclass
class Published:
    """Others' numbers.

    Attributes:
        accuracies: the table that `analysis.accuracies` gives, and `tests` (True for paradigms that test what is
            removed) if the source says that. `pairs` and `correct` are missing where they are not known, `paradigm`
            where only phenomena are.
        runs: the table that `analysis.runs` gives.
        pairs: one row per run and pair, with pair_id and correct; None without judgements of pairs.
        notes: sentences on what the source lacks.
    """

    accuracies: pd.DataFrame
    runs: pd.DataFrame
    pairs: pd.DataFrame | None = None
    notes: list[str] = field(default_factory=list)


@dataclass
class Outcomes:
    """The rows of a source (COLUMNS), what accuracies are called (`method`), and where they come from, in words."""

    rows: pd.DataFrame
    benchmark: str
    method: str
    origin: str
    seeded: Mapping[str, bool]  # file or model -> whether a seed is given
    notes: list[str] = field(default_factory=list)


def published(study: str, outcomes: Outcomes, settings: ResultsConfig) -> Published:
    """Return the tables of others' outcomes.

    Raises ConfigError for a benchmark's name that isn't one of pairs, and InputError for two rows of one thing, names
    in two spellings, a paradigm in two phenomena, and a name of a size that no run has.
    """
    if not is_of_pairs(outcomes.benchmark):
        raise ConfigError(f"results.benchmark={outcomes.benchmark}: this is not a benchmark of pairs; choose a name.")
    rows = outcomes.rows.reset_index(drop=True)
    _check_names(rows)
    rows = _with_phenomena(rows, outcomes)
    _check_rows(rows)
    _check_sizes(rows, settings, outcomes.origin)
    runs, curves = _runs(rows, study, settings)
    rows["run"] = rows[RUN].merge(curves, on=RUN, how="left")["run"]
    rows = rows.assign(benchmark=outcomes.benchmark, method=outcomes.method)
    notes = [*outcomes.notes, *_notes(outcomes, runs, settings)]
    pairs = _pairs(rows, runs) if (rows["pair"] != "").all() else None
    return Published(_accuracies(rows, runs), runs, pairs, notes)


def tested_paradigms(accuracies: pd.DataFrame, runs: pd.DataFrame) -> dict[str, set[str]]:
    """Return the paradigms that test each removed construction, as a source says in the column `tests`."""
    if "tests" not in accuracies:
        return {}
    removed = accuracies["run"].map(runs.set_index("run")["construction"])
    tested = accuracies[accuracies["tests"]].groupby(removed)["paradigm"]
    return {str(construction): set(names) for construction, names in tested}


def _check_names(rows: pd.DataFrame) -> None:
    """Raise InputError for names that can't be printed, and for one paradigm or phenomenon in two spellings."""
    for column in ("model", "removed", "paradigm", "phenomenon"):
        first: dict[str, tuple[str, str]] = {}
        for name, where in rows.drop_duplicates(column)[[column, "place"]].itertuples(index=False):
            if not name.isprintable():
                raise InputError(f"{where}: {column} is {shown(name)}, must consist of printable characters.")
            plain = " ".join(name.replace("_", " ").casefold().split())
            other, there = first.setdefault(plain, (name, where))
            if other != name and column in ("paradigm", "phenomenon"):
                raise InputError(f"{where}: {column} is {name!r}, but {other!r} at {there}. Write it in one way.")


def _with_phenomena(rows: pd.DataFrame, outcomes: Outcomes) -> pd.DataFrame:
    """Add the phenomena of paradigms that a source doesn't name: BLiMP's published ones, else the paradigm itself."""
    known: dict[str, str] = {}
    if outcomes.benchmark == BLIMP:
        table = published_file("blimp_paradigms")
        known = dict(zip(table["paradigm"], table["phenomenon"], strict=True))
    unnamed = (rows["phenomenon"] == "") & (rows["paradigm"] != "")
    rows.loc[unnamed, "phenomenon"] = [known.get(name, name) for name in rows.loc[unnamed, "paradigm"]]
    overall = (rows["phenomenon"].str.lower() == OVERALL) & (rows["paradigm"] == "")
    rows.loc[overall, "phenomenon"] = ""
    for paradigm, names in rows[rows["paradigm"] != ""].groupby("paradigm")["phenomenon"]:
        if names.nunique() > 1:
            listed = ", ".join(sorted(set(names)))
            raise InputError(f"{outcomes.origin}: paradigm {paradigm} is in several phenomena: {listed}.")
    return rows


def _check_rows(rows: pd.DataFrame) -> None:
    """Raise InputError for a phenomenon called overall, for rows of two kinds, and for two rows of one thing."""
    taken = rows[rows["phenomenon"].str.lower() == OVERALL]
    if len(taken):
        row = taken.iloc[0]
        raise InputError(f"{row['place']}: {row['phenomenon']!r} is the mean over all phenomena. Rename this one.")
    for column, what in (("pair", "the id of its pair"), ("paradigm", "its paradigm")):
        empty = rows[column] == ""
        mixed = empty.groupby([rows[name] for name in RUN]).transform("nunique") > 1
        if mixed.any() or (column == "pair" and 0 < empty.sum() < len(rows)):
            where = rows.loc[empty, "place"].iloc[0]
            raise InputError(f"{where}: this row doesn't give {what}, but others do. Give it in all rows or in none.")
    keys = [*RUN, "paradigm", "phenomenon", "pair"]
    twice = rows[rows.duplicated(keys)]
    if len(twice):
        row = twice.iloc[0]
        first = rows[(rows[keys] == row[keys]).all(axis=1)].iloc[0]
        named = ", ".join(f"{key} {row[key]}" for key in keys if row[key] != "")
        raise InputError(
            f"{row['place']}: a second row of {named} (the first: {first['place']}). If they are different runs, "
            "columns.model, columns.size or columns.seed of a table, or groups of results.pattern, tell them apart."
        )


def _check_sizes(rows: pd.DataFrame, settings: ResultsConfig, origin: str) -> None:
    sizes = set(rows["size"])
    unused = [name for name in settings.sizes or {} if size_of(name, settings, "results.sizes") not in sizes]
    if unused:
        texts = size_texts(sorted(sizes), unit_name(settings))
        there = first_few([texts[size] for size in sorted(sizes)], 5)
        raise InputError(f"results.sizes: no size in {origin} is named {first_few(unused)}. Sizes there: {there}.")


def _runs(rows: pd.DataFrame, study: str, settings: ResultsConfig) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the table of runs, and the name of each run by the columns of RUN."""
    found = rows[[*RUN, "run"]].drop_duplicates(RUN).sort_values(RUN, kind="stable", ignore_index=True)
    removed = found["removed"] != ""
    texts = (found["removed"] + " removed").where(removed, FULL_TEXT)
    curve = found["model"] + ", " + texts if removed.any() else found["model"]
    sizes = found["size"].map(size_texts(list(found["size"]), unit_name(settings)))
    made = curve + "-" + sizes.str.replace(" ", "-") + "-s" + found["seed"].astype(str)
    run = found["run"].where(found["run"] != "", made)
    if run.duplicated().any():
        name = run[run.duplicated()].iloc[0]
        raise InputError(f"run {name} has several models, sizes or seeds. Give each run a name of its own.")
    table = pd.DataFrame({
        "study": study, "run": run, "curve": curve, "model": found["model"], "size": sizes,
        "sample_words": found["size"].astype("Int64"), "seed": found["seed"].astype("Int64"), "nested": False,
        "unit": unit_name(settings), "baseline": (found["size"] == 0).map({True: UNTRAINED, False: ""}),
        "construction": found["removed"], "action": removed.map({True: "remove", False: "none"}),
        "dose": removed.map({True: "0", False: FULL_DOSE}), "base": found["model"],
    })  # fmt: skip
    columns = dict.fromkeys((*RUN_COLUMNS, *FURTHER_COLUMNS))
    return table.reindex(columns=list(columns)), found[RUN].assign(run=run)


def _accuracies(rows: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    keys = ["run", "benchmark", "phenomenon", "paradigm", "method"]
    how = {"accuracy": ("accuracy", "mean"), "pairs": ("n", lambda n: n.sum(min_count=1)), "tests": ("tests", "first")}
    table = rows.groupby(keys, as_index=False).agg(**how)  # sorted by phenomenon and paradigm
    table[["phenomenon", "paradigm"]] = table[["phenomenon", "paradigm"]].replace("", None)
    table["correct"] = table["accuracy"] * table["pairs"]
    more = ["tests"] if rows["tests"].any() else []
    return _with_runs(table, runs, [*FILE_COLUMNS, *COUNT_COLUMNS, *more]).astype({"pairs": "Int64"})


def _pairs(rows: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    table = rows.rename(columns={"pair": "pair_id"}).assign(correct=rows["accuracy"])
    return _with_runs(table, runs, [*FILE_COLUMNS, "pair_id", "correct"])


def _with_runs(table: pd.DataFrame, runs: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    own = table.drop(columns=[name for name in RUN_COLUMNS if name != "run" and name in table])
    return runs[list(RUN_COLUMNS)].merge(own, on="run").reindex(columns=[*RUN_COLUMNS, *columns])


def _notes(outcomes: Outcomes, runs: pd.DataFrame, settings: ResultsConfig) -> list[str]:
    """Say what a source lacks."""
    notes = [f"The accuracies were read from {outcomes.origin}, not from run folders."]
    largest = runs["sample_words"].max()
    if settings.unit == "words" and settings.scale == 1 and largest < LEAST_WORDS:
        notes.append(f"The largest size is {largest} words. If sizes count millions, say results.scale=1000000.")
    without = [name for name, seeded in outcomes.seeded.items() if not seeded]
    if without:
        of = "" if len(without) == len(outcomes.seeded) else f" for {first_few(without)}"
        notes.append(f"No seeds are given{of}: one run per size, so nothing shows how far runs of a size lie apart.")
    if settings.seen:
        notes.append(
            f"Sizes count {unit_name(settings)} of one training, with repeats. Checkpoints of a training depend on "
            "each other, so their curve has no confidence interval."
        )
    elif runs.duplicated(["curve", "size"]).any():
        notes.append(SAME_TEXT)
    return notes
