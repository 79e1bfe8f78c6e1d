"""`python -m analysis`: fit the curves of a study, print the findings, and write the report."""

import dataclasses
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from rich.console import Console

from analysis import study_new as study
from analysis.benchmark import BenchmarkResults
from analysis.config import AnalysisConfig
from analysis.findings import (
    checked,
    comparison_findings,
    curve_findings,
    headline,
    missing_runs,
    notes_of_runs,
    notes_of_scores,
    texts,
)
from analysis.formats import accuracy_text, interval_text, p_text, slope_text, supported_digits, title
from analysis.report import Part, write_report
from analysis.sections import chosen, exhibits
from analysis.sections.beside import model_findings
from analysis.sections.curves import extent, overall
from eval.config import is_of_pairs
from eval.sweeps import study_commands
from pairscale.console import print_text
from pairscale.errors import RunError
from pairscale.tables import filled_table, print_table
from train.trackers.tracker import Job, tracked

DEFAULT_FORMAT = "html"


def analyse(config: AnalysisConfig) -> None:
    """Analyse a study on all benchmarks that it was scored on, or on the one that the command line names.

    Raises:
        ConfigError: for a section, curve or value that doesn't exist.
        RunError: for a study without finished runs or scores.
    """
    sections = chosen(config.analysis.sections)
    console, quiet = Console(), Console(stderr=True, highlight=False)
    named = any(override.partition("=")[0] == "benchmark" for override in HydraConfig.get().overrides.task)
    with quiet.status("reading scores"):
        benchmarks = read_benchmarks(config, config.benchmark.name if named else None)
    parts = []
    for results in benchmarks:
        with quiet.status(f"{results.name}: fitting curves"):
            part = part_of(results)
        print_part(console, quiet, results, part)
        with quiet.status(f"{results.name}: making tables and figures"):
            part.exhibits = list(exhibits(results, sections))
        part.tables["accuracies"] = results.every_method
        parts.append(part)
    folder = Path(config.paths.reports) / str(config.study)
    commands = [*study_commands(config.paths.runs, str(config.study)), command_of(config)]
    path = write_report(folder, str(config.study), parts, commands, config.analysis.figure, config.format)
    track(config, folder, benchmarks)
    print_text(console, f"report: {path}")


def track(config: AnalysisConfig, folder: Path, benchmarks: Sequence[BenchmarkResults]) -> None:
    """Send the figure of the overall curves and the slopes to the tracker that `logger` names, if any."""
    chosen_values = {"study": config.study, "method": config.analysis.method, "ties": config.ties, "source": config.source}
    with tracked(config.logger, Job("analysis", str(config.study), str(config.study), folder, chosen_values)) as tracker:
        for results in benchmarks:
            place = folder / results.label if len(benchmarks) > 1 else folder
            if len(results.accuracies):
                tracker.image(f"curves/{results.label}", place / "figures" / "overall.png")
                tracker.table(f"slopes/{results.label}", results.slopes)
                whole = results.slopes[(results.slopes["level"] == "overall") & results.slopes["slope"].notna()]
                tracker.summarise({f"slope/{results.label}/{row.curve}": row.slope for row in whole.itertuples()})


def read_benchmarks(config: AnalysisConfig, benchmark: str | None) -> list[BenchmarkResults]:
    """Read the long table of a study, and divide it by benchmark.

    Args:
        config: the configuration.
        benchmark: only this one; None for all.

    Raises:
        RunError: for a study without scores of minimal pairs.
    """
    names = str(config.study).split("+")
    options = config.analysis
    read = {"folder": config.paths.runs}
    runs = study.runs(*names, **read)
    table = study.accuracies(*names, benchmark=benchmark, ties=config.ties, faulty_pairs=options.faulty_pairs, **read)
    problems = study.problems(*names, **read)
    labels = [label for label in table["benchmark"].unique() if is_of_pairs(label)]
    if not labels:
        raise RunError(f"study={config.study}: no run has scores yet. Run python -m eval study={config.study} first.")
    found = []
    for label in labels:
        of_label = table[table["benchmark"] == label].reset_index(drop=True)
        read_pairs = partial(_pairs, names, label, options.method, config.paths.runs)
        results = BenchmarkResults.of(
            label, of_label, runs, options, problems=_concerning(problems, label), ties=config.ties,
            notes=study.notes(*names, benchmark=label, method=options.method, **read),
        )  # fmt: skip
        curves = results.runs.set_index("run")["curve"]
        results.read_pairs = lambda of, method=None, read=read_pairs, curves=curves: _named(read(of, method), curves)
        read_snapshots = partial(study.trajectories, *names, benchmark=label, method=options.method, ties=config.ties, **read)
        results.read_trajectories = lambda read=read_snapshots, curves=curves: _of_runs(read(), curves)
        found.append(results)
    return found


def _of_runs(snapshots: pd.DataFrame, curves: pd.Series) -> pd.DataFrame:
    """Name the curves of snapshots as those of their runs."""
    return snapshots.assign(curve=snapshots["run"].str.replace(r"@[^@]*$", "", regex=True).map(curves)).dropna(subset=["curve"])


def _pairs(names: Sequence[str], label: str, main: str, folder: str, runs: Sequence[str], method: str | None) -> pd.DataFrame:
    return study.pairs(*names, benchmark=label, method=method or main, runs=runs, folder=folder)


def _named(pairs: pd.DataFrame, curves: pd.Series) -> pd.DataFrame:
    return pairs.assign(curve=pairs["run"].map(curves))


def _concerning(problems: pd.DataFrame, label: str) -> pd.DataFrame:
    """Return the problems without missing scores of other benchmarks."""
    other = (problems["status"] == "unscored") & ~problems["reason"].str.endswith(f" {label}")
    return problems[~other].reset_index(drop=True)


def part_of(results: BenchmarkResults) -> Part:
    """Return the first screen of a benchmark: its findings, notes and figure."""
    options = results.options
    if results.accuracies.empty:
        models = f"{results.models['run'].nunique()} pretrained models, scored on {results.name}."
        return Part(results.label, results.name, models, findings=model_findings(results), notes=results.notes)
    of_curves = results.runs[results.runs["curve"].isin(results.curves)]
    notes = [
        *missing_runs(results.problems),
        *notes_of_scores(results.accuracies, results.ties),
        *results.notes,
        *notes_of_runs(of_curves),
    ]
    findings = [
        *curve_findings(results.slopes, options.confidence),
        *comparison_findings(results.differences, options.confidence),
    ]
    return Part(
        label=results.label,
        name=results.name,
        lead=extent(results),
        first=overall(results),
        headline=headline(results.slopes),
        findings=[*texts(findings), *model_findings(results)],
        notes=notes,
        checked=checked(results.accuracies, of_curves, results.problems),
        methods=methods_text(results),
    )


def methods_text(results: BenchmarkResults) -> list[str]:
    """Return a paragraph on scores and one on statistics, for the methods section of a paper."""
    level = f"{results.options.confidence:.0%}"
    return [
        f"A pair counts as correct if the grammatical sentence has the higher score (method {results.method}); a tie counts as "
        f"{results.ties}. The accuracy of a phenomenon is the mean over its paradigms, and overall accuracy is the mean over all "
        "paradigms.",
        f"Slopes are least-squares fits of accuracy on log2 of the amount of training text, one point per run. Their {level} "
        "confidence intervals use heteroskedasticity-consistent standard errors (HC3; MacKinnon and White 1985) with Student's t "
        "and R - 2 degrees of freedom for R runs. They are about new samples of this corpus and new initialisations, on these "
        "pairs. Slopes of two curves are compared on their paired differences if their runs were trained on the same samples, "
        "otherwise with Welch's degrees of freedom. The lack-of-fit test is the pure-error F test.",
    ]


def print_part(console: Console, quiet: Console, results: BenchmarkResults, part: Part) -> None:
    """Print notes, findings and the table of slopes."""
    for note in part.notes:
        print_text(quiet, note, "note", "yellow")
    print_text(console, f"{results.name}: {part.lead}", style="bold")
    if part.headline:
        print_text(console, part.headline)
    for subject, text in part.findings:
        print_text(console, f"{subject}: {text}" if subject else text)
    rows = results.slopes[results.slopes["level"] != "paradigm"] if len(results.accuracies) else pd.DataFrame()
    if len(rows):
        print_slopes(console, rows, results.options.confidence)


def print_slopes(console: Console, rows: pd.DataFrame, confidence: float) -> None:
    """Print slopes with their intervals, steepest phenomena first."""
    head = ["phenomenon", "smallest size", "largest size", "slope", f"{confidence:.0%} interval", "lack of fit"]
    body: list[list[str]] = []
    for curve, of in rows.groupby("curve", sort=False):
        body.append([str(curve), *[""] * 5])
        whole, single = of[of["level"] == "overall"], of[of["level"] != "overall"].sort_values("slope", ascending=False)
        for row in pd.concat([whole, single]).itertuples():
            digits = 3 if pd.isna(row.low) else supported_digits(row.low, row.high)
            body.append([
                f" {title(row.name)}", accuracy_text(row.smallest_accuracy), accuracy_text(row.largest_accuracy),
                slope_text(row.slope, digits), interval_text(row.low, row.high, digits), p_text(row.lack_of_fit),
            ])  # fmt: skip
    print_table(console, filled_table(head, body, ["phenomenon"]), ("lack of fit",))
    print_text(console, "slope: accuracy per doubling of the training text; lack of fit: p value")


def command_of(config: AnalysisConfig) -> str:
    """Return the command that writes this report."""
    words = [f"study={config.study}", f"ties={config.ties}"]
    words += [f"format={config.format}"] if config.format != DEFAULT_FORMAT else []
    for key, value in dataclasses.asdict(config.analysis).items():
        words += [f"analysis.{key}={_written(value)}"] if value not in (None, False, {}, []) else []
    words += [f"paths.{name}={getattr(config.paths, name)}" for name in ("runs", "reports") if getattr(config.paths, name) != name]
    return shlex.join(["python", "-m", "analysis", *words])


def _written(value: Any) -> str:
    """Return a value as it is typed on a command line."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_written(of)}" for key, of in value.items() if of is not None) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    text = str(value)
    return f"'{text}'" if isinstance(value, str) and not text.replace("_", "").replace(".", "").isalnum() else text
