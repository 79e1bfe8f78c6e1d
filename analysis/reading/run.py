"""The command: read times and surprisals, fit the regressions, write tables, figures and a page.

<paths.reports>/<study>/reading/<name>.jsonl   the words, for `python -m eval.surprisal`
<paths.reports>/<study>/reading/<name>/        tables, figures, reading.json and report.html
"""

import dataclasses
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from hydra.core.hydra_config import HydraConfig
from rich.console import Console

from analysis.config import AnalysisConfig
from analysis.curves.variance import Array
from analysis.measures.reading.config import COLUMN, MIXED, SAMPLE
from analysis.measures.reading.forms import read_times
from analysis.measures.reading.predictors import log_frequencies, rows_of
from analysis.measures.reading.regressions import Formulas, grouping
from analysis.measures.reading.result import Result, write_result
from analysis.measures.reading.surprisals import Model, read_models, write_words
from analysis.measures.reading.tables import cluster_of, delta_tables, fit_models
from analysis.measures.reading.times import Times, columns_of, whole_number
from analysis.report.report import write_report
from analysis.sections.reading_times import reading_section
from analysis.sections.section import Report
from analysis.study.collect import Study, collect
from corpora.word_counts import Counts, sample_counts
from eval.benchmarks.cells import name_of
from eval.benchmarks.files import format_of
from pairscale.console import print_text
from pairscale.errors import ConfigError, InputError, RunError, first_few
from pairscale.files import sha256_file


def run(config: AnalysisConfig) -> None:
    """Analyse the times of `config.times` with the surprisals of `config.study`.

    Raises ConfigError without times or a study, InputError for what is wrong in the file, RunError where no run has
    surprisals of its words, with the command that makes them, StoreError without the text that words are counted in.
    """
    if config.times is None:
        raise ConfigError("times=null: give times=FILE, words and how long they were read (--help)")
    if config.study is None:
        raise ConfigError("study=null: name a study")
    console, quiet = Console(highlight=False), Console(stderr=True, highlight=False)
    study = collect(config.paths.runs, config.study)
    reading = Reading(config, study, Path(config.times).expanduser(), quiet)
    with quiet.status("reading times"):
        result = reading.result()
    folder = Path(config.paths.reports) / config.study / "reading" / result.name
    section = reading_section(result, study, config.analysis.confidence)
    commands = [reading.surprisal_command, result.command]
    with quiet.status("writing the report"):
        write_result(folder, result)
        path = write_report(folder, Report(study, config, {}, [section], commands=commands))
    for finding in section.findings:
        print_text(console, f"{finding.subject}: {finding.full}")
    for exhibit in section.exhibits:
        for part in exhibit.terminal(console.width) if exhibit.name == "deltas" else []:
            console.print(part)
    for note in section.warnings:
        print_text(quiet, note, "note", "yellow")
    console.print(f"report: {path}", markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Reading:
    """One file of times and one study."""

    config: AnalysisConfig
    study: Study
    path: Path
    quiet: Console

    @property
    def words_file(self) -> Path:
        """The words of the times, as eval.surprisal reads them."""
        stem = format_of(self.path, "times")[0]
        return Path(self.config.paths.reports) / self.study.name / "reading" / f"{stem}.jsonl"

    @property
    def name(self) -> str:
        """The name of the result: of the file, and the measure and regression if they are not the usual ones."""
        chosen = self.config.reading
        parts = [self.words_file.stem, chosen.measure or "", MIXED if chosen.regression == MIXED else ""]
        return "-".join(filter(None, parts))

    @property
    def surprisal_command(self) -> str:
        paths = [f"paths.{name}={getattr(self.config.paths, name)}" for name in ("runs", "reports")]
        words = [path for path in paths if path not in ("paths.runs=runs", "paths.reports=reports")]
        words = [f"study={self.study.name}", f"text={self.words_file}", "surprisal.context=document", *words]
        return shlex.join(["python", "-m", "eval.surprisal", *words])

    @cached_property
    def times(self) -> Times:
        return read_times(self.path, self.config.reading)

    def result(self) -> Result:
        """Return the result; errors as of `run`."""
        config = self.config.reading
        formulas = Formulas.of(config)
        models, notes = self._models()
        frequency = self._frequencies()
        known = np.all([model.known for model in models.values()], axis=0)
        known &= np.all([np.isfinite(frequency(name)) for name in models], axis=0)
        rows = rows_of(self.times, known, config)
        if rows.table["text"].nunique() < 2:
            raise InputError(f"times={self.path}: words of fewer than two texts are left ({_excluded(rows.excluded)})")
        unit, cluster = cluster_of(rows, config)
        fits = fit_models(rows, models, frequency, config, lambda name: None)
        runs = self.study.runs[self.study.runs.index.isin(list(models))]
        tables = delta_tables(fits, models, runs, cluster, self.config.analysis.confidence)
        first = next(iter(models.values()))
        texts = int(rows.table["text"].nunique())
        settings = {
            **dataclasses.asdict(config),
            "baseline": formulas.baseline,
            "full": formulas.full,
            "folds": min(config.folds, texts),
            "intercepts": grouping(rows.table) if config.regression == MIXED else None,
            "clusters": unit,
            "cluster_count": int(cluster.max()) + 1,
            "confidence": self.config.analysis.confidence,
            "file": self.path.name,
            "texts": texts,
            "rows": len(rows.table),
            "participants": self.times.participants,
            "readings_excluded": rows.readings_excluded,
            "reading": dict(first.made["reading"]),
            "policy": dict(first.made["policy"]),
        }
        overrides = shlex.join(HydraConfig.get().overrides.task)
        command = f"python -m analysis.reading {overrides}"
        tables["excluded"] = rows.excluded
        return Result(self.name, sha256_file(self.path), command, settings, notes, tables)

    def _models(self) -> tuple[dict[str, Model], list[str]]:
        """Return the models with surprisals, by name, and notes on those without."""
        write_words(self.words_file, self.times)
        folder = self.words_file.parents[1] / "surprisal" / self.words_file.stem
        models = read_models(folder, self.words_file, self.times, self.surprisal_command)
        on_curve = [str(run) for run in self.study.runs.index]
        others = [name for name in models if name not in self.study.folders or name in self.study.unplaced.index]
        named = {name: models[name] for name in [*on_curve, *others] if name in models}
        missing = [run for run in on_curve if run not in models]
        if not named:
            raise RunError(f"{folder}: no surprisals of the words of {self.path.name}; first: {self.surprisal_command}")
        notes = []
        if missing:
            notes.append(
                f"{len(missing)} of {len(on_curve)} runs have no surprisals of these words ({first_few(missing)}): "
                f"{self.surprisal_command}"
            )
        if others and self.config.reading.frequency == SAMPLE:
            notes.append(
                f"Models whose training text is not known are left out ({first_few(others)}): reading.frequency=FILE, "
                "or column, compares them with the others."
            )
            named = {name: model for name, model in named.items() if name not in others}
        if not named:
            raise ConfigError(f"reading.frequency=sample: of no model here is the text known ({first_few(others)})")
        return named, notes

    def _frequencies(self) -> Callable[[str], Array]:
        """Return the function from the name of a model to (W,) log-frequencies of words."""
        source, words = self.config.reading.frequency, self.times.words
        if source == COLUMN:
            column = words["log_frequency"].to_numpy(dtype=np.float64)
            if np.isnan(column).all():
                raise InputError(f"reading.frequency=column: {self.path} has no column of frequencies")
            return lambda name: column
        reference = str(self.study.runs["reference"].iloc[0])
        listed = words["word"].tolist()
        if source != SAMPLE:
            given = log_frequencies(listed, _counts(Path(source).expanduser()), reference)
            return lambda name: given
        counted: dict[str, Array] = {}

        def of_run(name: str) -> Array:
            manifest: Any = self.study.runs.at[name, "manifest"]
            digest = str(manifest["corpus"]["sample"]["digest"])
            if digest not in counted:
                counts = sample_counts(self.study.config[name], manifest, Path(self.config.paths.store), reference)
                counted[digest] = log_frequencies(listed, counts, reference)
            return counted[digest]

        return of_run


def _counts(path: Path) -> Counts:
    """Read a table of words and counts in a text. Raises InputError."""
    columns, places = columns_of(path, "reading.frequency", ["word", "count"])
    counts: Counter[str] = Counter()
    for word, number, where in zip(columns["word"], columns["count"], places, strict=True):
        counts[name_of(word, where, "word")] += whole_number(number, where, "count")
    return Counts(counts, counts.total(), 0, 0)


def _excluded(table: object) -> str:
    rows = table.itertuples(index=False)  # type: ignore[attr-defined]
    return "; ".join(f"{reason}: {number:,}" for reason, number in rows)
