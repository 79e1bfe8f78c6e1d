"""The numbers of others that a configuration names: `source`, `path`, `columns` and `results`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.sources.babylm import ENDINGS as PREDICTIONS
from analysis.sources.babylm import babylm_outcomes
from analysis.sources.files import given_files, study_name
from analysis.sources.lm_eval import ENDINGS as RESULTS
from analysis.sources.lm_eval import lm_eval_outcomes
from analysis.sources.published import SAME_TEXT, Published, published
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from analysis.sources.table import ENDINGS as TABLES
from analysis.sources.table import table_outcomes
from analysis.study.long_table import ACCURACY_COLUMNS
from analysis.study.run_folders import FURTHER_COLUMNS, RUN_COLUMNS
from pairscale.errors import ConfigError, InputError, check_choice

FILES = "files"  # the source that is not here: run folders
_ENDINGS = {"table": TABLES, "lm_eval": RESULTS, "babylm": PREDICTIONS}
SOURCES = (FILES, *_ENDINGS)
_UNUSED = {  # values of `results` that a source doesn't read
    "table": ("metric", "pairs", "pattern"),
    "lm_eval": ("full", "pairs", "percent"),
    "babylm": ("full", "metric", "n", "percent"),
}


def read_source(
    source: str, path: Any, columns: OutcomeColumns, results: ResultsConfig, study: str | None = None
) -> Published:
    """Read others' numbers.

    Args:
        source: "table", "lm_eval" or "babylm".
        path: a file, a folder, or a list of them.
        columns, results: what a user says about them (settings.py).
        study: the name of the study; None: that of the file or folder.

    Raises:
        ConfigError: for another source, without a path, and for values that the source doesn't use.
        InputError: for files, columns and cells that can't be used.
    """
    check_choice("source", source, tuple(_ENDINGS))
    _check_used(source, columns, results)
    files = given_files(path, source, _ENDINGS[source])
    name = study_name(study, path)
    if source == "table":
        own = _own_table(files[0]) if len(files) == 1 else None
        found = own or published(name, table_outcomes(files, columns, results), results)
        found.runs = _with_runs_beside(found.runs, files[0])
        if found.runs["overlap"].notna().any():
            found.notes = [note for note in found.notes if note != SAME_TEXT]
        return found
    read = lm_eval_outcomes if source == "lm_eval" else babylm_outcomes
    return published(name, read(files, results), results)


def _check_used(source: str, columns: OutcomeColumns, results: ResultsConfig) -> None:
    changed = [f"results.{name}" for name in _changed(results) if name in _UNUSED[source]]
    changed += [f"columns.{name}" for name in _changed(columns) if source != "table"]
    if changed:
        raise ConfigError(f"source={source} does not use {changed[0]}, so leave it out.")


def _changed(settings: OutcomeColumns | ResultsConfig) -> Mapping[str, Any]:
    usual = vars(type(settings)())
    return {name: value for name, value in vars(settings).items() if value != usual[name]}


def _own_table(file: Path) -> Published | None:
    """Return the tables of a file that `python -m analysis.table` wrote (what=accuracies); None for other files."""
    if file.suffix not in (".csv", ".parquet"):
        return None
    texts = dict.fromkeys(("size", "sample", "baseline", "run", "study", "curve"), str)
    try:
        table = pd.read_csv(file, dtype=texts) if file.suffix == ".csv" else pd.read_parquet(file)
    except (ValueError, OSError):
        return None  # the reader of any table says what is wrong with it
    if not set(ACCURACY_COLUMNS) <= set(table.columns):
        return None
    table = table.astype(dict.fromkeys(("sample_words", "seed", "pairs"), "Int64") | {"nested": bool})
    table["baseline"] = table["baseline"].fillna("")
    if not table["accuracy"].between(0, 1).all():
        row = int((~table["accuracy"].between(0, 1)).to_numpy().argmax())
        raise InputError(f"{file}: row {row + 1}: accuracy is {table['accuracy'].iloc[row]}, must be from 0 to 1.")
    runs = table[list(RUN_COLUMNS)].drop_duplicates(ignore_index=True)
    further = runs.reindex(columns=[*RUN_COLUMNS, *FURTHER_COLUMNS])
    return Published(table[list(ACCURACY_COLUMNS)], further, notes=[f"The accuracies were read from {file.name}."])


def _with_runs_beside(runs: pd.DataFrame, file: Path) -> pd.DataFrame:
    """Fill in what runs.csv beside a file, as `python -m analysis.table what=runs` writes it, knows about its runs."""
    beside = file.with_name("runs.csv")
    if not beside.is_file():
        return runs
    texts = dict.fromkeys(("run", "dose", "filter", "construction"), str)
    known = pd.read_csv(beside, dtype=texts).rename(columns={"filter": "construction"})
    if "run" not in known or not set(runs["run"]) <= set(known["run"]):
        return runs
    known = known.drop_duplicates("run").set_index("run").loc[runs["run"]]
    columns = {name: known[name].array for name in FURTHER_COLUMNS if name in known}
    filled = runs.assign(**columns)
    return filled.assign(construction=filled["construction"].fillna(""))
