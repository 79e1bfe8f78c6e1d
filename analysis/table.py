"""The command `python -m analysis.table`: a study as one table in a file.

    python -m analysis.table study=NAME what=accuracies|pairs|runs output=FILE.csv

From Python, `analysis.accuracies`, `analysis.pairs` and `analysis.runs` return the same tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from hydra.core.hydra_config import HydraConfig

from analysis.config import AnalysisConfig
from analysis.sources.read import FILES, SOURCES, read_source
from analysis.study.long_table import accuracies, pairs, problems, runs
from pairscale.command.main import main
from pairscale.console import say
from pairscale.errors import ConfigError, InputError, check_choice
from pairscale.files import atomic_path
from pairscale.tables import write_csv

TABLES = ("accuracies", "pairs", "runs")
_LEFT_OUT = ("unfinished", "failed", "damaged", "not started")  # states of runs that tables don't have


def run(config: AnalysisConfig) -> None:
    """Write the table `config.what` of a study, or of others' numbers, to `config.output` as CSV or Parquet.

    Raises ConfigError without a study or an output, for an unknown table or ending, and for filters of a table that has
    nothing to filter.
    """
    check_choice("what", config.what, TABLES)
    check_choice("source", config.source, SOURCES)
    if config.output is None or Path(config.output).suffix not in (".csv", ".parquet"):
        raise ConfigError(f"output={config.output}: give output=FILE, a name that ends in .csv or .parquet.")
    if config.ties != "wrong" and (config.what != "accuracies" or config.source != FILES):
        raise ConfigError(f"ties={config.ties}: only the accuracies of a study's runs count ties, so leave it out.")
    typed = {override.lstrip("+").partition("=")[0] for override in HydraConfig.get().overrides.task}
    filters = {
        "benchmark": config.benchmark.name if typed & {"benchmark", "benchmark.name"} else None,
        "method": config.analysis.method if "analysis.method" in typed else None,
    }
    if config.what == "runs" and any(filters.values()):
        raise ConfigError("what=runs: this table has no benchmarks and methods, so leave out their filters.")
    path, table = Path(config.output), (_of_study if config.source == FILES else _of_others)(config, filters)
    if path.suffix == ".csv":
        write_csv(path, table)
    else:
        with atomic_path(path) as temporary:
            table.to_parquet(temporary, index=False)
    print(f"{len(table):,} rows in {path}")


def _of_study(config: AnalysisConfig, filters: dict[str, Any]) -> pd.DataFrame:
    if config.study is None or config.path is not None:
        raise ConfigError(
            f"study={config.study}, path={config.path}: give the name of a study, study=NAME, or for others' numbers a "
            "path and source=table, lm_eval or babylm."
        )
    folder = config.paths.runs
    left_out = problems(config.study, folder=folder)
    left_out = left_out[left_out["status"].isin(_LEFT_OUT)]
    if len(left_out):
        counts = ", ".join(f"{count} {status}" for status, count in left_out["status"].value_counts().items())
        say(f"Left out: {counts} runs, such as {left_out['run'].iloc[0]}.")
    if config.what == "runs":
        return runs(config.study, folder=folder)
    if config.what == "pairs":
        return pairs(config.study, **filters, folder=folder)
    faulty = config.analysis.faulty_pairs
    return accuracies(config.study, **filters, ties=config.ties, faulty_pairs=faulty, folder=folder)


def _of_others(config: AnalysisConfig, filters: dict[str, Any]) -> pd.DataFrame:
    source = read_source(config.source, config.path, config.columns, config.results, config.study)
    for note in source.notes:
        say(note)
    table = {"accuracies": source.accuracies, "pairs": source.pairs, "runs": source.runs}[config.what]
    if table is None:
        raise InputError(f"what=pairs: {config.path} has accuracies only, not judgements of pairs.")
    for column, wanted in filters.items():
        table = table if wanted is None else table[table[column] == wanted]
    return table


if __name__ == "__main__":
    main("table", run)
