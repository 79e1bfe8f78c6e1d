"""The command `python -m analysis.reading`: read times and surprisals, fit the regressions, print and write tables.

It writes the words of the times for `python -m eval.surprisal`. With the surprisals, it writes
reports/STUDY/reading/NAME/.
"""

import dataclasses
import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
from hydra.core.hydra_config import HydraConfig
from rich.console import Console

from analysis.config import AnalysisConfig
from analysis.formats import level_text, plural
from analysis.reading.config import COLUMN, MIXED, SAMPLE
from analysis.reading.files import ReadingTimes, numbers, read_columns, read_times, texts
from analysis.reading.results import ReadingResult
from analysis.reading.times import (
    Array,
    cluster_column,
    formulas,
    intercept_column,
    log_frequencies,
    reading_deltas,
    reading_slopes,
    regression_rows,
    within_limits,
)
from analysis.study.run_folders import Studies, read_studies
from corpora.word_counts import sample_counts
from eval.benchmarks.files import format_of
from eval.surprisal.files import read_surprisals
from pairscale.console import print_text
from pairscale.errors import ConfigError, InputError, RunError, first_few
from pairscale.files import sha256_file, write_text
from pairscale.tables import filled_table, print_table


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
    chosen, confidence, path = config.reading, config.analysis.confidence, Path(config.times).expanduser()
    folder = Path(config.paths.reports) / config.study / "reading"
    with quiet.status("reading times"):
        baseline, full = formulas(chosen)
        study, times = read_studies([config.study], config.paths.runs), read_times(path, chosen)
        words = folder / f"{format_of(path, 'times')[0]}.jsonl"
        _write_words(words, times)
        models = _read_models(config, study, words, times, quiet)
        rows, excluded = regression_rows(times, models, chosen)
        if rows["text"].nunique() < 2:
            reasons = "; ".join(f"{reason}: {number:,}" for reason, number in excluded.itertuples(index=False))
            raise InputError(f"times={path}: words of fewer than two texts are left ({reasons})")
        deltas = study.runs.merge(reading_deltas(times, rows, models, chosen), on="run", how="right")
        deltas["curve"] = deltas["curve"].fillna(deltas["run"])
        name = "-".join(filter(None, [words.stem, chosen.measure, MIXED if chosen.regression == MIXED else ""]))
        settings = {
            **dataclasses.asdict(chosen), "baseline": baseline, "full": full, "file": path.name,
            "texts": rows["text"].nunique(), "rows": len(rows), "participants": times.participants,
            "readings_excluded": int((~within_limits(times, chosen)).sum()), "clusters": cluster_column(rows),
            "intercepts": intercept_column(rows) if chosen.regression == MIXED else None, "confidence": confidence,
            "command": f"python -m analysis.reading {shlex.join(HydraConfig.get().overrides.task)}",
        }  # fmt: skip
        result = ReadingResult(name, settings, deltas, reading_slopes(deltas, name, confidence), excluded)
        result.write(folder / name)
    print_result(console, result, confidence)
    print_text(console, f"tables: {folder / name}")


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


def _write_words(path: Path, times: ReadingTimes) -> None:
    """Write the words for `python -m eval.surprisal`: a text per sentence, a document per text."""
    words = times.words
    rows = words.assign(text_id=words["text"] + ":" + words["sentence"].astype(str), document=words["text"])
    records = rows[["text_id", "document", "word"]].to_dict("records")
    text = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def _read_models(
    config: AnalysisConfig, study: Studies, words: Path, times: ReadingTimes, quiet: Console
) -> dict[str, pd.DataFrame]:
    """Return surprisal, tokens, unk and log_frequency of each word for each model that can be analysed.

    Prints notes about the others. Raises RunError for surprisals of other words than `words`, for models that read the
    words in different ways, and without surprisals, and ConfigError if words can be counted in no training text.
    """
    again = _surprisal_command(config, words)
    digest, models, ways = sha256_file(words), {}, {}
    for file in sorted((words.parents[1] / "surprisal" / words.stem).glob("*.parquet")):
        rows, made = read_surprisals(file)
        if made["text"] != digest or rows["word"].tolist() != times.words["word"].tolist():
            raise RunError(f"{file}: surprisals of other words than {words}. Make them again: {again}")
        models[file.stem], ways[file.stem] = rows[["surprisal", "tokens", "unk"]], made["policy"] | made["reading"]
    for key, values in pd.DataFrame(list(ways.values()), list(ways), dtype=object).map(str).items():
        if values.nunique() > 1:
            both = ", ".join(f"{key}={value} of {name}" for name, value in values.drop_duplicates().items())
            raise RunError(f"{words}: models read the words in different ways: {both}. Make them again: {again}")
    trained = study.runs.loc[study.runs["sample_words"].notna(), "run"]
    others = [name for name in models if name not in set(trained)]
    if config.reading.frequency == SAMPLE and others:
        why = f"the training text of {first_few(others)} is not known. To include them, give reading.frequency=FILE or"
        if len(others) == len(models):
            raise ConfigError(f"reading.frequency=sample: {why} reading.frequency=column.")
        print_text(quiet, f"Left out: {why} reading.frequency=column.", "note", "yellow")
        models = {name: model for name, model in models.items() if name not in others}
    if not models:
        raise RunError(f"No run has surprisals of the words in {words} yet. Make them: {again}")
    if missing := [run for run in trained if run not in models]:
        note = f"{len(missing)} of {len(trained)} runs have no surprisals of these words ({first_few(missing)})"
        print_text(quiet, f"{note}: {again}", "note", "yellow")
    frequencies = _frequencies(config, study, times, list(models))
    return {name: model.assign(log_frequency=frequencies[name]) for name, model in models.items()}


def _frequencies(config: AnalysisConfig, study: Studies, times: ReadingTimes, models: list[str]) -> dict[str, Array]:
    """Return the (W,) log-frequencies of words for each model."""
    source, words = config.reading.frequency, times.words["word"]
    if source == COLUMN:
        column = times.words["log_frequency"].to_numpy(dtype=float)
        if np.isnan(column).all():
            raise InputError(f"reading.frequency=column: {config.times} has no column of frequencies")
        return dict.fromkeys(models, column)
    if source != SAMPLE:
        rows = read_columns(Path(source).expanduser(), "reading.frequency")
        listed = numbers(rows, "count", 1, whole=True).groupby(texts(rows, "word")).sum()
        return dict.fromkeys(models, log_frequencies(words, listed, str(study.runs["reference"].iloc[0])))
    frequencies: dict[str, Array] = {}
    for _, runs in study.runs[study.runs["run"].isin(models)].groupby("sample"):
        folder, reference = study.details.loc[runs.index[0], "folder"], str(runs["reference"].iloc[0])
        counts = sample_counts(folder.read_config(), folder.read_manifest(), Path(config.paths.store), reference)
        frequencies |= dict.fromkeys(runs["run"], log_frequencies(words, pd.Series(counts.of), reference))
    return frequencies
