"""Write a study as one table (`python -m analysis.table`). docs/guides/table.md explains the columns."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path

import pandas as pd

from analysis.config import COUNT, TableCommand
from analysis.sources.read import FILES, SOURCES, read_source
from analysis.study.long_table import accuracies, pairs, runs
from analysis.study.run_folders import read_studies
from pairscale.command.line import current
from pairscale.command.main import main
from pairscale.console import say
from pairscale.errors import ConfigError, InputError, check_choice
from pairscale.files import atomic_path
from pairscale.tables import write_csv

TABLES: dict[str, Callable[..., pd.DataFrame]] = {"accuracies": accuracies, "pairs": pairs, "runs": runs}


def run(config: TableCommand) -> None:
    """Write the table `config.what` of a study or of external results to `config.output`, as CSV or Parquet.

    Raises ConfigError if study or output isn't set, or if a value is unknown or has no effect on the table.
    """
    check_choice("what", config.what, TABLES)
    check_choice("source", config.source, SOURCES)
    if config.output is None or Path(config.output).suffix not in (".csv", ".parquet"):
        raise ConfigError(f"output={config.output}: the table must go to a .csv or .parquet file. Set output=FILE.csv.")
    is_study, make = config.source == FILES, TABLES[config.what]
    given = {
        "benchmark": config.chosen_benchmark,
        "method": config.analysis.method if current()["analysis.method"] else None,
        "ties": config.ties,
        "faulty_pairs": None if config.analysis.faulty_pairs == COUNT else config.analysis.faulty_pairs,
        "path": config.path if is_study else None,
    }
    options = {name: value for name, value in given.items() if value is not None}
    for name in options.keys() - signature(make if is_study or make is runs else pairs).parameters.keys():
        raise ConfigError(f"what={config.what} source={config.source} doesn't use {name}. Leave it out.")
    if is_study:
        studies = read_studies([config.study or ""], config.paths.runs)
        if len(left_out := studies.problems):
            statuses = left_out["status"].replace("shared", "copied")
            counts = ", ".join(f"{count} {status}" for status, count in statuses.value_counts().items())
            say(f"Some runs are left out ({counts}), for example {left_out['run'].iloc[0]}.")
        table = make(studies, **options)
    else:
        source = read_source(config.source, config.path, config.columns, config.results, config.study)
        for note in source.notes:
            say(note)
        if (table := getattr(source, config.what)) is None:
            raise InputError(f"what=pairs: {config.path} has no judgements of single pairs. Use what=accuracies.")
        for column, wanted in options.items():
            table = table[table[column] == wanted]
    path = Path(config.output)
    if path.suffix == ".csv":
        write_csv(path, table)
    else:
        with atomic_path(path) as temporary:
            table.to_parquet(temporary, index=False)
    print(f"Wrote {len(table):,} rows to {path}.")


if __name__ == "__main__":
    main("table", run)
