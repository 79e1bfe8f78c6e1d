"""The command `python -m analysis.reading`: read times and surprisals, fit the regressions, print and write tables.

It writes the words of the times for `python -m eval.surprisal`. With the surprisals, it writes
reports/STUDY/reading/NAME/.
"""

import dataclasses
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from hydra.core.hydra_config import HydraConfig
from rich.console import Console

from analysis.config import AnalysisConfig
from analysis.formats import level_text, plural
from analysis.reading.config import COLUMN, MIXED, SAMPLE
from analysis.reading.files import ReadingTimes, numbers, read_columns, read_times, texts
from analysis.reading.times import (
    Array,
    Formulas,
    ReadingResult,
    grouping,
    log_frequencies,
    read_models,
    reading_deltas,
    reading_slopes,
    regression_rows,
    write_words,
)
from analysis.study.run_folders import Studies, read_studies
from corpora.word_counts import Counts, sample_counts
from eval.benchmarks.files import format_of
from pairscale.console import print_text
from pairscale.errors import ConfigError, InputError, RunError, first_few
from pairscale.tables import filled_table, print_table

Frequencies = Callable[[str], Array]


def run(config: AnalysisConfig) -> None:
    """Analyse the times of `config.times` with the surprisals of `config.study`.

    Raises:
        ConfigError: without times or a study, or for a formula that doesn't fit the words.
        InputError: for what is wrong in the file.
        RunError: if no run has surprisals of its words; the message has the command that makes them.
        StoreError: without the text in which words are counted.
    """
    if config.times is None:
        raise ConfigError("times=null: give times=FILE, a table of words and how long they were read (--help).")
    if config.study is None:
        raise ConfigError("study=null: name a study.")
    console, quiet = Console(highlight=False), Console(stderr=True, highlight=False)
    with quiet.status("reading times"):
        study = read_studies([config.study], config.paths.runs)
        result = read_and_fit(config, study, quiet)
        folder = Path(config.paths.reports) / config.study / "reading" / result.name
        result.write(folder)
    print_result(console, result, config.analysis.confidence)
    print_text(console, f"tables: {folder}")


def read_and_fit(config: AnalysisConfig, study: Studies, quiet: Console) -> ReadingResult:
    """Return the result for the times and the study; raises as `run` does."""
    chosen, path = config.reading, Path(str(config.times)).expanduser()
    formulas, times = Formulas.of(chosen), read_times(path, chosen)
    folder = Path(config.paths.reports) / str(config.study)
    words = folder / "reading" / f"{format_of(path, 'times')[0]}.jsonl"
    write_words(words, times)
    again = _surprisal_command(config, words)
    models = read_models(folder / "surprisal" / words.stem, words, times, again)
    models = _chosen_models(config, study, models, words, again, quiet)
    frequency = _frequencies(config, study, times)
    is_known = np.all([(of["tokens"] > 0) & (of["unk"] == 0) for of in models.values()], axis=0)
    is_known &= np.all([np.isfinite(frequency(name)) for name in models], axis=0)
    rows = regression_rows(times, is_known, chosen)
    if rows.table["text"].nunique() < 2:
        reasons = "; ".join(f"{reason}: {number:,}" for reason, number in rows.excluded.itertuples(index=False))
        raise InputError(f"times={path}: words of fewer than two texts are left ({reasons})")
    name = "-".join(filter(None, [words.stem, chosen.measure, MIXED if chosen.regression == MIXED else ""]))
    deltas = study.runs.merge(reading_deltas(times, rows, models, frequency, chosen), on="run", how="right")
    deltas["curve"] = deltas["curve"].fillna(deltas["run"])
    settings = {
        **dataclasses.asdict(chosen), "baseline": formulas.baseline, "full": formulas.full, "file": path.name,
        "texts": rows.table["text"].nunique(), "rows": len(rows.table), "participants": times.participants,
        "readings_excluded": rows.readings_excluded, "clusters": rows.clusters,
        "intercepts": grouping(rows.table) if chosen.regression == MIXED else None,
        "confidence": config.analysis.confidence,
        "command": f"python -m analysis.reading {shlex.join(HydraConfig.get().overrides.task)}",
    }  # fmt: skip
    slopes = reading_slopes(deltas, name, config.analysis.confidence)
    return ReadingResult(name, settings, deltas, slopes, rows.excluded)


def print_result(console: Console, result: ReadingResult, confidence: float) -> None:
    """Print mean deltas by curve and size, and the slope of each curve, in thousandths of a nat."""
    models = result.models.assign(size=result.models["size"].fillna("")).groupby(["curve", "size"], sort=False)
    means = models["delta"].agg(runs="size", mean="mean").reset_index().to_numpy()
    body = [[curve, size, str(runs), f"{1000 * delta:.1f}"] for curve, size, runs, delta in means]
    print_table(console, filled_table(["curve", "size", "runs", "delta"], body, ["curve"]))
    unit = "reading" if result.settings["regression"] == MIXED and result.settings["participants"] else "word"
    rows = plural(result.settings["rows"], unit)
    print_text(console, f"delta: what surprisal adds to the log-likelihood, in 1/1000 nats per {unit} ({rows}).")
    for row in result.slopes.to_dict("records"):
        slope, low, high = (f"{1000 * value:+.2f}" for value in (row["slope"], row["low"], row["high"]))
        interval = f"{level_text(confidence)} interval [{low}, {high}]" if pd.notna(row["low"]) else "no interval"
        note = f" {row['note']}" if row["note"] else ""
        print_text(console, f"{row['curve']}: {slope}/1000 nats per doubling of the training text, {interval}.{note}")


def _surprisal_command(config: AnalysisConfig, words: Path) -> str:
    """Return the command that makes surprisals of the words."""
    paths = [f"paths.{name}={getattr(config.paths, name)}" for name in ("runs", "reports")]
    paths = [path for path in paths if path not in ("paths.runs=runs", "paths.reports=reports")]
    arguments = [f"study={config.study}", f"text={words}", "surprisal.context=document", *paths]
    return shlex.join(["python", "-m", "eval.surprisal", *arguments])


def _chosen_models(
    config: AnalysisConfig, study: Studies, models: dict[str, pd.DataFrame], words: Path, again: str, quiet: Console
) -> dict[str, pd.DataFrame]:
    """Return the models that can be analysed, and print notes about the others."""
    if not models:
        raise RunError(f"No run has surprisals of the words in {words} yet. Make them: {again}")
    trained = study.runs.loc[study.runs["sample_words"].notna(), "run"]
    missing = [run for run in trained if run not in models]
    if missing:
        note = (
            f"{len(missing)} of {len(trained)} runs have no surprisals of these words ({first_few(missing)}): {again}"
        )
        print_text(quiet, note, "note", "yellow")
    others = [name for name in models if name not in set(trained)]
    if config.reading.frequency != SAMPLE or not others:
        return models
    if len(others) == len(models):
        raise ConfigError(
            f"reading.frequency=sample: the training text of {first_few(others)} is not known, so words cannot be "
            "counted in it. Give reading.frequency=FILE, or column."
        )
    note = f"Left out, because their training text is not known: {first_few(others)}. With reading.frequency=FILE or "
    print_text(quiet, f"{note}reading.frequency=column they are compared with the others.", "note", "yellow")
    return {name: of for name, of in models.items() if name not in others}


def _frequencies(config: AnalysisConfig, study: Studies, times: ReadingTimes) -> Frequencies:
    """Return the function from the name of a model to (W,) log-frequencies of words."""
    source, words = config.reading.frequency, times.words["word"]
    if source == COLUMN:
        column = times.words["log_frequency"].to_numpy(dtype=float)
        if np.isnan(column).all():
            raise InputError(f"reading.frequency=column: {config.times} has no column of frequencies")
        return lambda name: column
    runs = study.runs.set_index("run")
    if source != SAMPLE:
        given = log_frequencies(words, _read_counts(Path(source).expanduser()), str(runs["reference"].iloc[0]))
        return lambda name: given
    counted: dict[str, Array] = {}  # by the digest of the sample

    def in_sample(name: str) -> Array:
        sample, reference = str(runs.at[name, "sample"]), str(runs.at[name, "reference"])
        if sample not in counted:
            folder = study.folders[str(runs.at[name, "study"]), name]
            store = Path(config.paths.store)
            counts = sample_counts(folder.read_config(), folder.read_manifest(), store, reference)
            counted[sample] = log_frequencies(words, counts, reference)
        return counted[sample]

    return in_sample


def _read_counts(path: Path) -> Counts:
    """Read a table of words and their counts in a text. Raises InputError."""
    rows = read_columns(path, "reading.frequency")
    counts = Counter(numbers(rows, "count", 1, whole=True).groupby(texts(rows, "word")).sum().to_dict())
    return Counts(counts, counts.total(), 0, 0)
