"""Turn rows of published outcomes into tables of accuracies, runs and pairs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.published import published_file
from analysis.sources.settings import SEEN_UNITS, ResultsConfig
from analysis.study.long_table import ACCURACY_COLUMNS, FILE_COLUMNS
from analysis.study.run_folders import FURTHER_COLUMNS, RUN_COLUMNS, UNTRAINED, rounded
from eval.benchmarks.cells import shown
from pairscale.errors import InputError
from pairscale.sizes import format_size
from train.runs.labels import FULL_DOSE, FULL_TEXT

BLIMP, OVERALL = "blimp", "overall"
_RUN = ["model", "removed", "size", "seed"]  # columns that distinguish runs
# The columns of rows other than model, accuracy and place (file and line), with the values to use if a source doesn't
# have them. Cells are the same as in the file. A row without a paradigm is about a phenomenon, and a row with neither
# is about the whole run. `pair_id` is "" if a row isn't a pair, and missing if pairs are only counted. `tests` is true
# if the paradigm tests the removed construction.
_USUAL: dict[str, Any] = dict.fromkeys(("removed", "run", "paradigm", "phenomenon", "pair_id"), "")
_USUAL |= dict.fromkeys(("size", "seed", "n", "tests")) | {"method": "accuracy"}
_NAMED = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0} | dict.fromkeys(("", "na", "nan", "none"), math.nan)


class Published(NamedTuple):
    """External results as the tables of `analysis.accuracies`, `runs` and `pairs`, with notes on missing information.

    Unknown values are missing. If the source marks the paradigms that test a removed construction, the accuracies have
    a column `tests`. `pairs` has pair_id and correct, and is None if there are no judgements of single pairs.
    """

    accuracies: pd.DataFrame
    runs: pd.DataFrame
    pairs: pd.DataFrame | None
    notes: list[str]


def published(study: str, rows: pd.DataFrame, settings: ResultsConfig) -> Published:
    """Return the tables of published outcomes.

    Args:
        study: The name of the study.
        rows: The outcomes, with the columns model, accuracy, place and any of _USUAL.
        settings: The user's settings for the results.

    Raises:
        InputError: If a cell can't be used, if two rows describe the same outcome, or if a paradigm is in two
            phenomena.
    """
    rows = rows.assign(**{name: usual for name, usual in _USUAL.items() if name not in rows})
    rows, notes = _with_sizes(rows.replace({"removed": {settings.full: ""}}), settings)
    rows = _with_numbers(rows, settings)
    rows = _with_runs(_with_phenomena(rows, settings), study, settings)
    runs = rows.drop_duplicates("run").reindex(columns=[*RUN_COLUMNS, *FURTHER_COLUMNS]).reset_index(drop=True)
    how = {"accuracy": ("accuracy", "mean"), "pairs": ("n", lambda n: n.sum(min_count=1)), "tests": ("tests", "first")}
    table = rows.groupby(["run", *FILE_COLUMNS], as_index=False).agg(**how)  # sorted by phenomenon and paradigm
    table[["phenomenon", "paradigm"]] = table[["phenomenon", "paradigm"]].replace("", None)
    table["correct"] = table["accuracy"] * table["pairs"]
    about = runs[list(RUN_COLUMNS)]
    columns = [*ACCURACY_COLUMNS, *(["tests"] if table["tests"].any() else [])]
    accuracies = about.merge(table, on="run").reindex(columns=columns).astype({"pairs": "Int64"})
    pairs = None
    if (rows["pair_id"].notna() & (rows["pair_id"] != "")).all():
        judged = rows[["run", *FILE_COLUMNS, "pair_id", "accuracy"]].rename(columns={"accuracy": "correct"})
        pairs = about.merge(judged, on="run")
    return Published(accuracies, runs, pairs, notes)


def tested_paradigms(accuracies: pd.DataFrame, runs: pd.DataFrame) -> dict[str, set[str]]:
    """Return the paradigms that test each construction, according to the column `tests` of a source."""
    if "tests" not in accuracies:
        return {}
    tested = accuracies[accuracies["tests"]].merge(runs[["run", "construction"]], on="run")
    return {str(construction): set(of["paradigm"]) for construction, of in tested.groupby("construction")}


def check_cells(cells: pd.Series, allowed: pd.Series, places: pd.Series, must: str) -> None:
    """Raise InputError for the first cell that isn't allowed. The message contains its place, its column and `must`."""
    if not allowed.all():
        row = int((~allowed).to_numpy().argmax())
        raise InputError(f"{places.iloc[row]}: {cells.name} is {shown(cells.tolist()[row])}, but must be {must}.")


def _with_sizes(rows: pd.DataFrame, settings: ResultsConfig) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows whose size is known, with the size as a number, and a note on the other rows.

    In a folder of checkpoints, the last one often has the revision `main`, which doesn't show how long it was trained.
    Raises InputError if no size is known.
    """
    if settings.size is not None:
        rows = rows.assign(size=settings.size)
    known = rows["size"].notna()
    reason = (
        f"{rows['place'].iloc[int(known.argmin())]}: the size isn't known. Set columns.size=NAME, results.size=SIZE, "
        "results.sizes={REVISION:SIZE} or results.pattern='(?P<size>...)'. For checkpoints such as step1000 and "
        f"chck_10M, set results.unit={'|'.join(SEEN_UNITS)}."
    )
    if not known.any():
        raise InputError(reason)
    rows = rows[known].reset_index(drop=True)
    places = rows.drop_duplicates("size").set_index("size")["place"]
    sizes = rows["size"].map({cell: settings.size_of(cell, place) for cell, place in places.items()})
    return rows.assign(size=sizes), [] if known.all() else [f"Some rows are left out. {reason}"]


def _number_of(cell: Any) -> float:
    """Convert a cell to a number. True and yes are 1, false and no are 0, empty is NaN, and other text is infinity."""
    text = str(cell).strip().lower()
    try:
        return _NAMED[text] if text in _NAMED else float(text)
    except ValueError:
        return math.inf


def _with_numbers(rows: pd.DataFrame, settings: ResultsConfig) -> pd.DataFrame:
    """Return rows with seed, n, accuracy and tests as numbers. Raises InputError for cells with other contents."""
    seed, n, accuracy, tests = (rows[name].map(_number_of) for name in ("seed", "n", "accuracy", "tests"))
    if settings.percent:
        if accuracy[n != 1].max() <= 1:
            raise InputError(
                f"{rows['place'].iloc[0]}: no accuracy is above 1%. If these are shares, leave out results.percent."
            )
        accuracy = accuracy.where(n == 1, accuracy / 100)
    for name, allowed, must in (
        ("seed", seed.isna() | (seed.between(0, 2**53) & (seed % 1 == 0)), "a whole number (columns.seed)"),
        ("n", n.isna() | (n.between(1, 2**53) & (n % 1 == 0)), "a whole number from 1 (columns.n)"),
        (
            "accuracy",
            accuracy.between(0, 1),
            "from 0 to 1. Set results.percent=true for per cent, or choose columns.accuracy or results.metric",
        ),
        ("accuracy", accuracy.isin((0, 0.5, 1)) | (n != 1), "1, 0, true, false or .5 (a tied pair; columns.correct)"),
        ("tests", tests.isna() | tests.isin((0, 1)), "true or false (columns.tests)"),
    ):
        check_cells(rows[name], allowed, rows["place"], must)
    seed = seed.fillna(1).astype("Int64")  # without seeds, one run per size
    return rows.assign(seed=seed, n=n.fillna(settings.n or np.nan), accuracy=accuracy, tests=tests == 1)


def _with_phenomena(rows: pd.DataFrame, settings: ResultsConfig) -> pd.DataFrame:
    """Return rows with phenomena. If a source has none, BLiMP's phenomenon is used, or else the paradigm itself.

    The phenomenon of overall accuracies is "". Raises InputError for names that can't be used, if a run has rows of two
    kinds, and if two rows describe the same outcome.
    """
    known = published_file("blimp_paradigms").set_index("paradigm")["phenomenon"]
    paradigm, given = rows["paradigm"], rows["phenomenon"]
    usual = paradigm.map(known).fillna(paradigm) if settings.benchmark == BLIMP else paradigm
    is_overall = (given.str.lower() == OVERALL) & (paradigm == "")
    rows = rows.assign(phenomenon=given.where((given != "") & ~is_overall, usual))
    first = rows.groupby("paradigm")["phenomenon"].transform("first")
    needs_paradigm = (paradigm != "").groupby([rows[name] for name in _RUN]).transform("any")
    for name, allowed, must in (
        ("model", rows["model"] != "", "the name of a model"),
        ("paradigm", (paradigm != "") | ~needs_paradigm, "the name of a paradigm, as in other rows of the run"),
        ("phenomenon", rows["phenomenon"].str.lower() != OVERALL, "the name of a phenomenon, in rows of paradigms"),
        ("phenomenon", (rows["phenomenon"] == first) | (paradigm == ""), "the same in all rows of a paradigm"),
    ):
        check_cells(rows[name], allowed, rows["place"], must)
    keys = [*_RUN, "paradigm", "phenomenon", "pair_id"]
    if (twice := rows.duplicated(keys) & rows["pair_id"].notna()).any():
        row = rows[twice].iloc[0]
        named = ", ".join(f"{key} {row[key]}" for key in keys if row[key] != "")
        raise InputError(
            f"{row['place']}: this is the second row for {named}. Set columns, or groups of results.pattern, that "
            "distinguish models, sizes and seeds."
        )
    return rows


def _with_runs(rows: pd.DataFrame, study: str, settings: ResultsConfig) -> pd.DataFrame:
    """Return the rows sorted by run, with RUN_COLUMNS and the known columns of FURTHER_COLUMNS."""
    rows = rows.sort_values(_RUN, kind="stable", ignore_index=True)
    is_removed, unit = rows["removed"] != "", settings.unit.replace("_", " ")
    texts = (rows["removed"] + " removed").where(is_removed, FULL_TEXT)
    curve = rows["model"] + ", " + texts if is_removed.any() else rows["model"]
    is_text = unit in ("words", "characters")
    sizes = rows["size"].map(format_size if is_text else rounded).replace("0M", "0")
    if sizes.nunique() < rows["size"].nunique():  # checkpoints that are close to each other
        sizes = rows["size"].astype(str)
    sizes += "" if is_text else f" {unit}"
    made = curve + "-" + sizes.str.replace(" ", "-") + "-s" + rows["seed"].astype(str)
    named = rows.assign(run=rows["run"].where(rows["run"] != "", made))
    runs = named.drop_duplicates([*_RUN, "run"])
    check_cells(runs["run"], ~runs.duplicated("run"), runs["place"], "the name of one model, size and seed")
    return named.assign(
        study=study, benchmark=settings.benchmark, curve=curve, size=sizes, sample_words=rows["size"].astype("Int64"),
        nested=False, unit=unit, baseline=(rows["size"] == 0).map({True: UNTRAINED, False: ""}), base=rows["model"],
        construction=rows["removed"], action=is_removed.map({True: "remove", False: "none"}),
        dose=is_removed.map({True: "0", False: FULL_DOSE}),
    )  # fmt: skip
