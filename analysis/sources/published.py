"""From rows of outcomes that others published to tables of accuracies, runs and pairs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analysis.published import published_file
from analysis.sources.rows import RUN, check_cells
from analysis.sources.settings import ResultsConfig, size_number
from analysis.study.long_table import ACCURACY_COLUMNS
from analysis.study.run_folders import FURTHER_COLUMNS, RUN_COLUMNS, UNTRAINED
from analysis.study.score_files import FILE_COLUMNS
from pairscale.errors import InputError, first_few
from pairscale.sizes import format_size
from train.runs.interventions import FULL_DOSE, FULL_TEXT

BLIMP, OVERALL = "blimp", "overall"
SAME_TEXT = (
    "Nothing says whether runs of one size were trained on the same text. If they were, intervals are for new "
    "initialisations only."
)


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


def published(study: str, rows: pd.DataFrame, settings: ResultsConfig) -> Published:
    """Return the tables of others' outcomes (rows.COLUMNS).

    Raises InputError for two rows of one thing, names in two spellings, a paradigm in two phenomena, and a name of a
    size that no run has.
    """
    rows = rows.reset_index(drop=True).assign(benchmark=settings.benchmark)
    rows["n"] = rows["n"].fillna(settings.n or np.nan)
    rows["phenomenon"] = _phenomena(rows, settings)
    _check(rows)
    there = sorted(set(rows["size"]))
    unused = [name for name, size in settings.sizes.items() if round(settings.scale * size_number(size)) not in there]
    if unused:
        sizes = first_few([str(size) for size in there])
        raise InputError(f"results.sizes: no size is named {first_few(unused)}. The sizes are {sizes}.")
    runs = _runs(rows, study, settings)
    keys = ["model", "construction", "sample_words", "seed"]
    rows["run"] = rows[RUN].merge(runs, left_on=RUN, right_on=keys, how="left")["run"]
    how = {"accuracy": ("accuracy", "mean"), "pairs": ("n", lambda n: n.sum(min_count=1)), "tests": ("tests", "first")}
    table = rows.groupby(["run", *FILE_COLUMNS], as_index=False).agg(**how)  # sorted by phenomenon and paradigm
    table[["phenomenon", "paradigm"]] = table[["phenomenon", "paradigm"]].replace("", None)
    table["correct"] = table["accuracy"] * table["pairs"]
    about = runs[list(RUN_COLUMNS)]
    columns = [*ACCURACY_COLUMNS, *(["tests"] if rows["tests"].any() else [])]
    accuracies = about.merge(table, on="run").reindex(columns=columns).astype({"pairs": "Int64"})
    pairs = None
    if (rows["pair"].notna() & (rows["pair"] != "")).all():
        judged = rows[["run", *FILE_COLUMNS]].assign(pair_id=rows["pair"], correct=rows["accuracy"])
        pairs = about.merge(judged, on="run")
    return Published(accuracies, runs, pairs, _notes(rows, runs, settings))


def tested_paradigms(accuracies: pd.DataFrame, runs: pd.DataFrame) -> dict[str, set[str]]:
    """Return the paradigms that test each removed construction, as a source says in the column `tests`."""
    if "tests" not in accuracies:
        return {}
    removed = accuracies["run"].map(runs.set_index("run")["construction"])
    tested = accuracies[accuracies["tests"]].groupby(removed)["paradigm"]
    return {str(construction): set(names) for construction, names in tested}


def _phenomena(rows: pd.DataFrame, settings: ResultsConfig) -> pd.Series:
    """Return phenomena: the published ones of BLiMP, or else the paradigm, where a source names none."""
    known = published_file("blimp_paradigms").set_index("paradigm")["phenomenon"]
    paradigms = rows["paradigm"]
    usual = paradigms.map(known).fillna(paradigms) if settings.benchmark == BLIMP else paradigms
    is_overall = (rows["phenomenon"].str.lower() == OVERALL) & (paradigms == "")
    return rows["phenomenon"].where((rows["phenomenon"] != "") & ~is_overall, usual)


def _check(rows: pd.DataFrame) -> None:
    """Raise InputError for names that can't be used, for rows of two kinds, and for two rows of one thing."""
    for column in ("model", "removed", "paradigm", "phenomenon"):
        check_cells(rows[column], rows[column].map(str.isprintable), rows["place"], "of printable characters")
    named = rows["phenomenon"].str.lower() != OVERALL
    check_cells(rows["phenomenon"], named, rows["place"], "another name, because this is the mean over all phenomena")
    for column in ("paradigm", "phenomenon"):
        spelling = rows[column].str.replace(r"[_\s]+", " ", regex=True).str.strip().str.casefold()
        first = rows.groupby(spelling)[column].transform("first")
        check_cells(rows[column], rows[column] == first, rows["place"], "written as in the rows before it")
    first = rows.groupby("paradigm")["phenomenon"].transform("first")
    is_one = (rows["phenomenon"] == first) | (rows["paradigm"] == "")
    check_cells(rows["phenomenon"], is_one, rows["place"], "the one of the rows before it with the same paradigm")
    for column in ("pair", "paradigm"):
        is_given = rows[column] != ""
        is_needed = is_given.groupby([rows[name] for name in RUN]).transform("any")
        check_cells(rows[column], is_given | ~is_needed, rows["place"], f"the name of a {column}, as in other rows")
    keys = [*RUN, "paradigm", "phenomenon", "pair"]
    if (twice := rows.duplicated(keys) & rows["pair"].notna()).any():
        row = rows[twice].iloc[0]
        first = rows[(rows[keys] == row[keys]).all(axis=1)].iloc[0]
        raise InputError(
            f"{row['place']}: a second row of {', '.join(f'{key} {row[key]}' for key in keys if row[key] != '')} (the "
            f"first: {first['place']}). If they are different runs, columns.model, columns.size or columns.seed of a "
            "table, or groups of results.pattern, tell them apart."
        )


def _runs(rows: pd.DataFrame, study: str, settings: ResultsConfig) -> pd.DataFrame:
    """Return the table of runs."""
    found = rows.drop_duplicates(RUN).sort_values(RUN, kind="stable", ignore_index=True)
    removed = found["removed"] != ""
    texts = (found["removed"] + " removed").where(removed, FULL_TEXT)
    curve = found["model"] + ", " + texts if removed.any() else found["model"]
    sizes = found["size"].map(_size_texts(set(found["size"]), settings.unit_name))
    made = curve + "-" + sizes.str.replace(" ", "-") + "-s" + found["seed"].astype(str)
    run = found["run"].where(found["run"] != "", made)
    check_cells(run, ~run.duplicated(), found["place"], "the name of one model, size and seed")
    table = pd.DataFrame({
        "study": study, "run": run, "curve": curve, "model": found["model"], "size": sizes,
        "sample_words": found["size"].astype("Int64"), "seed": found["seed"].astype("Int64"), "nested": False,
        "unit": settings.unit_name, "baseline": (found["size"] == 0).map({True: UNTRAINED, False: ""}),
        "construction": found["removed"], "action": removed.map({True: "remove", False: "none"}),
        "dose": removed.map({True: "0", False: FULL_DOSE}), "base": found["model"],
    })  # fmt: skip
    return table.reindex(columns=list(dict.fromkeys((*RUN_COLUMNS, *FURTHER_COLUMNS))))


def _size_texts(sizes: Collection[int], unit: str) -> dict[int, str]:
    """Write sizes, with their unit if that isn't words or characters, and with the digits that tell them apart.

    >>> _size_texts([1000, 10_000, 10_003], "steps")
    {1000: '1k steps', 10000: '10k steps', 10003: '10.003k steps'}
    """
    if unit in ("words", "characters"):
        return {size: format_size(size) if size else "0" for size in sizes}
    texts: dict[int, str] = {}
    for digits in range(4, 18):
        for size in sizes:
            letter, of = next((pair for pair in (("B", 1e9), ("M", 1e6), ("k", 1e3)) if size >= pair[1]), ("", 1))
            texts[size] = f"{size / of:.{digits}g}{letter} {unit}"
        if len(set(texts.values())) == len(texts):
            break
    return texts


def _notes(rows: pd.DataFrame, runs: pd.DataFrame, settings: ResultsConfig) -> list[str]:
    """Say what a source lacks."""
    notes, largest = [], runs["sample_words"].max()
    if settings.unit == "words" and settings.scale == 1 and largest < 2000:
        notes.append(f"The largest size is {largest} words. If sizes count millions, say results.scale=1000000.")
    seeded = rows.groupby("model", sort=False)["seeded"].any()
    if not seeded.all():
        of = f" for {first_few(list(seeded.index[~seeded]))}" if seeded.any() else ""
        notes.append(f"No seeds are given{of}: one run per size, so nothing shows how far runs of a size lie apart.")
    if settings.seen:
        notes.append(
            f"Sizes count {settings.unit_name} of one training, with repeats. Checkpoints of a training depend on "
            "each other, so their curve has no confidence interval."
        )
    elif runs.duplicated(["curve", "size"]).any():
        notes.append(SAME_TEXT)
    return notes
