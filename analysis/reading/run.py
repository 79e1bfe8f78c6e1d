"""Read reading times and surprisals, fit the regressions, and write a report (`python -m analysis.reading`)."""

import json
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from analysis.config import ReadingCommand
from analysis.figures.charts import Axis, line_chart
from analysis.figures.style import looks_of
from analysis.formats import level_text, rows_of
from analysis.reading.babylm import babylm_scores, read_babylm
from analysis.reading.config import BABYLM, COLUMN, SAMPLE
from analysis.reading.files import column, numbers, read_rows, read_times, texts
from analysis.reading.times import Array, formulas, reading_deltas, reading_slopes, regression_rows
from analysis.report.exhibit import Exhibit
from analysis.report.write import Part, write_report
from analysis.run import print_part
from analysis.study.run_folders import Studies, read_studies
from corpora.word_counts import sample_counts
from corpora.words import words as reference_words
from eval.benchmarks.files import format_of
from eval.scores.files import read_words
from pairscale.command.line import current
from pairscale.console import print_text
from pairscale.errors import ConfigError, InputError, RunError, first_few
from pairscale.files import atomic_path, sha256_file, write_text


def run(config: ReadingCommand) -> None:
    """Analyse the reading times in `config.times` with the surprisals of `config.study`.

    Raises ConfigError, InputError or RunError if something is missing or wrong. A RunError suggests a command.
    """
    if config.times is None or config.study is None:
        given = ", ".join(f"{name}={getattr(config, name) or 'null'}" for name in ("study", "times"))
        raise ConfigError(f"{given}: which study and which reading times? Set study=NAME and times=FILE.")
    console, quiet = Console(highlight=False), Console(stderr=True, highlight=False)
    options, path, level = config.reading, Path(config.times).expanduser(), config.analysis.confidence
    name, folder = format_of(path, "times")[0], Path(config.paths.reports) / config.study / "reading"
    with quiet.status("reading times"):
        study, words = read_studies([config.study], config.paths.runs), read_times(path, options)
        models, snapshots, notes = _read_models(config, study, _write_words(folder / f"{name}.jsonl", words), words)
        rows = regression_rows(words, models, options)
        excluded = rows.drop_duplicates(["text", "number"]).replace({"excluded": {"": "left"}}).groupby("excluded")
        counts = excluded.agg(words=("word", "size"), texts=("text", "nunique"))
        if counts["texts"].get("left", 0) < 2:
            raise InputError(
                f"{path}: fewer than two texts have words to analyse. The numbers of words left out are, by reason, "
                f"{counts['words'].drop('left', errors='ignore').to_dict()}. Use more texts, or other limits."
            )
        deltas = study.runs.merge(reading_deltas(rows, options), on="run", how="right")
        slopes = reading_slopes(deltas, level)
        explained = _babylm_table(path, words, models) if options.form == BABYLM else pd.DataFrame()
        deltas = deltas.join(explained, on="run") if len(explained) else deltas
        placed = deltas[deltas["sample_words"].notna() & (deltas["baseline"] == "")]
    findings = []
    for row in rows_of(explained.reset_index()):
        scores = f"{row.self_paced_r2:.2f} for self-paced reading, {row.eye_tracking_r2:.2f} for eye tracking"
        findings.append((row.run, f"BabyLM's scores: {scores}."))
    for row in rows_of(slopes):
        gain = (
            f"Each doubling of the training text changes delta by {1000 * row.slope:+.2f} thousandths of a nat per word"
        )
        interval = f"{level_text(level)} confidence interval {1000 * row.low:+.2f} to {1000 * row.high:+.2f}"
        sure = interval if pd.notna(row.low) else "no confidence interval"
        change = f"{gain} ({sure}). " if pd.notna(row.slope) else ""
        findings.append((row.curve, f"{change}{row.note}".strip()))
    about = "Delta is how much surprisal adds to the log-likelihood of held-out words, in nats per word."
    if len(explained):
        about += " The columns that end in r2 are BabyLM's scores: the percentage of the variance that it explains."
    table = deltas[["run", "delta", "perplexity", "coefficient", "low", "high", *explained]]
    axis = Axis("Delta (nats per word)", ".4f")
    draw = partial(line_chart, placed, "delta", axis, looks_of(list(placed["curve"].unique())))
    exhibit = Exhibit("delta", "Delta", about, table, charts={"delta": draw} if len(placed) else {})
    name = "-".join(filter(None, [name, options.measure]))
    part = Part(
        label=name,
        name=f"Reading times: {name}",
        lead="{file} has {words:,} words of {texts} texts to analyse.".format(**counts.loc["left"], file=path.name),
        exhibits=[exhibit],
        findings=findings,
        notes=notes,
        methods=["The baseline is {}. The regression with surprisal is {}.".format(*formulas(options))],
        tables={"models": deltas, "slopes": slopes, "excluded": counts["words"].rename_axis("reason").reset_index()}
        | ({"snapshots": _babylm_table(path, words, snapshots).reset_index()} if len(explained) and snapshots else {}),
    )
    print_part(console, quiet, part)
    with atomic_path(folder / name / "tables/rows.parquet") as temporary:
        rows.to_parquet(temporary, index=False)
    again = [shlex.join(["python", "-m", "analysis.reading", *current().words])]
    page = write_report(folder / name, config.study, [part], again, config.analysis.figure, config.format, part.name)
    print_text(console, f"report: {page}")


def _write_words(path: Path, words: pd.DataFrame) -> Path:
    """Write the words for `python -m eval.surprisal`, with one text per sentence and one document per text."""
    rows = words.assign(text_id=words["text"] + ":" + words["sentence"].astype(str), document=words["text"])
    records = rows[["text_id", "document", "word"]].to_dict("records")
    write_text(path, "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records))
    return path


def _read_models(
    config: ReadingCommand, study: Studies, file: Path, words: pd.DataFrame
) -> tuple[dict[str, pd.DataFrame], dict[tuple[str, int], pd.DataFrame], list[str]]:
    """Return the surprisal, tokens, unk and log_frequency of the words in `file` by run, and notes on missing runs.

    In between, return the same for snapshots, by run and words seen, without log_frequency.

    Raises RunError if there are no surprisals, or if they are for other words or were computed with other settings.
    """
    paths = [f"paths.{name}={path}" for name in ("runs", "reports") if (path := getattr(config.paths, name)) != name]
    arguments = [f"study={config.study}", f"text={file}", "surprisal.context=document", *paths]
    again = f"python -m eval.surprisal {shlex.join(arguments)}"
    models: dict[str, pd.DataFrame] = {}
    snapshots: dict[tuple[str, int], pd.DataFrame] = {}
    first: dict[str, Any] = {}
    notes: list[str] = []
    for path in sorted((file.parents[1] / "surprisal" / file.stem).glob("*.parquet")):
        rows, made = read_words(path)
        way = {"text": made["benchmark"]["digest"], **made["policy"], **made["parameters"]}
        first = first or way | {"text": sha256_file(file)}
        if way != first:
            different = ", ".join(f"{key}={value}" for key, value in way.items() if value != first.get(key))
            raise RunError(
                f"{path}: these surprisals are for other words, or were computed with other settings ({different}). "
                f"Compute them again with: {again}"
            )
        rows = rows[["surprisal", "uncorrected", "tokens", "unk"]]
        if "words_seen" in made:
            snapshots[path.stem.partition("@")[0], made["words_seen"]] = rows
        else:
            models[path.stem] = rows
    if missing := [run for run in study.runs["run"] if run not in models]:
        notes.append(f"These runs have no surprisals of the words: {first_few(missing)}. Compute them with: {again}")
    trained = study.runs.loc[study.runs["sample_words"].notna(), "run"]
    if config.reading.frequency == SAMPLE and (others := models.keys() - set(trained)):
        names = first_few(sorted(others))
        unknown = f"These runs are left out because their training text isn't known: {names}"
        notes.append(f"{unknown}. Set reading.frequency=FILE to include them.")
        models = {run: model for run, model in models.items() if run not in others}
    if not models:
        raise RunError(" ".join(notes))
    frequencies = _frequencies(config, study, words, list(models))
    models = {run: model.assign(log_frequency=frequencies[run]) for run, model in models.items()}
    return models, dict(sorted(snapshots.items())), notes


def _babylm_table(path: Path, words: pd.DataFrame, models: Mapping[Any, pd.DataFrame]) -> pd.DataFrame:
    """Return BabyLM's scores of each model, or no row if the file lacks one of their columns."""
    if (rows := read_babylm(path)) is None:
        return pd.DataFrame()
    scores = pd.DataFrame({name: babylm_scores(rows, words, model["uncorrected"]) for name, model in models.items()}).T
    return scores.rename_axis(["run", "words_seen"] if scores.index.nlevels == 2 else "run")


def _frequencies(config: ReadingCommand, study: Studies, words: pd.DataFrame, models: list[str]) -> dict[str, Array]:
    """Return the (W,) log-frequencies of the words by model."""
    source = config.reading.frequency
    if source == COLUMN:
        return dict.fromkeys(models, words["log_frequency"].to_numpy(dtype=float))
    if source != SAMPLE:
        rows = read_rows(Path(source).expanduser(), "reading.frequency")
        listed = numbers(column(rows, "count"), 1, whole=True).groupby(texts(column(rows, "word"))).sum()
        return dict.fromkeys(models, log_frequencies(words["word"], listed, str(study.runs["reference"].iloc[0])))
    frequencies: dict[str, Array] = {}
    for _, runs in study.runs[study.runs["run"].isin(models)].groupby("sample"):
        folder, reference = study.details.loc[runs.index[0], "folder"], str(runs["reference"].iloc[0])
        counts = sample_counts(folder.read_config(), folder.read_manifest(), Path(config.paths.store), reference)
        frequencies |= dict.fromkeys(runs["run"], log_frequencies(words["word"], pd.Series(counts), reference))
    return frequencies


def log_frequencies(words: pd.Series, counts: pd.Series, reference: str) -> Array:
    """Return log2 of how often each word's rarest part occurs per million words, with half an occurrence added.

    Parts are reference words (corpora/words.py) that aren't punctuation. Case is ignored.
    """
    parts = words.map(lambda word: [p for p in reference_words(word, reference) if any(map(str.isalnum, p))] or [word])
    lowered = counts.groupby(str.lower).sum()
    rarest = parts.explode().str.lower().map(lowered).fillna(0).groupby(level=0).min()
    return np.log2(np.asarray((rarest + 0.5) / counts.sum() * 1e6, dtype=np.float64))
