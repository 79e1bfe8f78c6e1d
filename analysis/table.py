"""The command `python -m analysis.table`: a study as one table in a file.

    python -m analysis.table study=NAME what=accuracies|pairs|runs output=FILE.csv

From Python, `analysis.accuracies`, `analysis.pairs` and `analysis.runs` return the same tables.
"""

from __future__ import annotations

from pathlib import Path

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
    if config.what != "accuracies" and config.ties != "wrong":
        raise ConfigError(f"ties={config.ties}: only what=accuracies counts ties, so leave it out.")
    typed = {override.lstrip("+").partition("=")[0] for override in HydraConfig.get().overrides.task}
    benchmark = config.benchmark.name if typed & {"benchmark", "benchmark.name"} else None
    method = config.analysis.method if "analysis.method" in typed else None
    if config.what == "runs" and (benchmark or method):
        raise ConfigError("what=runs: this table has no benchmarks and methods, so leave out their filters.")
    path, table = Path(config.output), _table(config, benchmark, method)
    if path.suffix == ".csv":
        write_csv(path, table)
    else:
        with atomic_path(path) as temporary:
            table.to_parquet(temporary, index=False)
    print(f"{len(table):,} rows in {path}")


def _table(config: AnalysisConfig, benchmark: str | None, method: str | None) -> pd.DataFrame:
    if config.source != FILES:
        return _published(config, benchmark, method)
    if config.path is not None:
        raise ConfigError(f"path={config.path}: say source=table, lm_eval or babylm, too.")
    if config.study is None:
        raise ConfigError("study=null: give the name of a study, study=NAME.")
    folder = config.paths.runs
    left_out = problems(config.study, folder=folder)
    left_out = left_out[left_out["status"].isin(_LEFT_OUT)]
    if len(left_out):
        counts = ", ".join(f"{count} {status}" for status, count in left_out["status"].value_counts().items())
        say(f"Left out: {counts} runs, such as {left_out['run'].iloc[0]}.")
    if config.what == "runs":
        return runs(config.study, folder=folder)
    if config.what == "pairs":
        return pairs(config.study, benchmark=benchmark, method=method, folder=folder)
    return accuracies(
        config.study,
        benchmark=benchmark,
        method=method,
        ties=config.ties,
        faulty_pairs=config.analysis.faulty_pairs,
        folder=folder,
    )


def _published(config: AnalysisConfig, benchmark: str | None, method: str | None) -> pd.DataFrame:
    if config.ties != "wrong":
        raise ConfigError(f"ties={config.ties}: others' numbers count ties as they do, so leave it out.")
    source = read_source(config.source, config.path, config.columns, config.results, config.study)
    for note in source.notes:
        say(note)
    if config.what == "runs":
        return source.runs
    table = source.accuracies if config.what == "accuracies" else source.pairs
    if table is None:
        raise InputError(f"what=pairs: {config.path} has accuracies only, not judgements of pairs.")
    for column, wanted in (("benchmark", benchmark), ("method", method)):
        table = table if wanted is None else table[table[column] == wanted]
    return table


if __name__ == "__main__":
    main("table", run)
