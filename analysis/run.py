"""`python -m analysis`: fit the curves of a study, print the findings, and write the report."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from rich.console import Console

from analysis import study
from analysis.config import LEAVE_OUT, AnalysisConfig
from analysis.formats import (
    accuracy_text,
    interval_text,
    level_text,
    p_text,
    rows_of,
    slope_text,
    supported_digits,
    title,
)
from analysis.parts import item_labels, item_part, part_of, reading_parts
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.report.people import exhibit as people_exhibit
from analysis.report.people import people_of, read_people
from analysis.report.write import REPORT_FORMATS, Part, write_report
from analysis.sections import chosen, exhibits
from analysis.sources.published import tested_paradigms
from analysis.sources.read import FILES, read_source
from analysis.study.run_folders import PROBLEM_COLUMNS, direct_paradigms, read_studies, removed_text, study_names
from eval.sweeps import study_commands
from pairscale.command.line import readable
from pairscale.console import print_text
from pairscale.errors import ConfigError, RunError, check_choice
from pairscale.tables import filled_table, print_table
from train.trackers.tracker import Job, tracked


def analyse(config: AnalysisConfig) -> None:
    """Analyse a study on all benchmarks that it was scored on, or on the one that the command line names.

    Raises:
        ConfigError: for a section, curve or value that doesn't exist.
        RunError: for a study without finished runs or scores.
    """
    sections = chosen(config.analysis.sections)
    check_choice("format", config.format, REPORT_FORMATS)
    console, quiet = Console(), Console(stderr=True, highlight=False)
    named = any(override.partition("=")[0] == "benchmark" for override in HydraConfig.get().overrides.task)
    benchmark = config.benchmark.name if named else None
    with quiet.status("reading scores"):
        tables = read_tables(config, benchmark)
        benchmarks = read_benchmarks(config, tables)
    parts = []
    for results in benchmarks:
        with quiet.status(f"{results.name}: fitting curves"):
            part = part_of(results)
        print_part(console, quiet, results, part)
        with quiet.status(f"{results.name}: making tables and figures"):
            part.exhibits = [*exhibits(results, sections), *people_exhibits(results, config)]
        part.tables["accuracies"] = results.every_method
        parts.append(part)
    name = tables.study
    if config.source == FILES:
        labels = [
            label
            for label in item_labels(tables.runs, config.paths.runs)
            if benchmark in (None, label.partition("+")[0])
        ]
        others = [
            *(item_part(label, tables.runs, config) for label in labels),
            *reading_parts(config.paths.reports, name),
        ]
        for part in others:
            print_texts(console, quiet, part)
        parts += others
    if not parts:
        raise RunError(f"study={name}: no run has scores. Score its runs: python -m eval study={name}")
    folder = Path(config.paths.reports) / (name if config.source == FILES else f"{name}+{config.source}")
    requested = study_commands(config.paths.runs, name) if config.source == FILES else []
    commands = [*requested, typed_command()]
    path = write_report(folder, name, parts, commands, config.analysis.figure, config.format)
    track(config, name, folder, benchmarks)
    print_text(console, f"report: {path}")


def track(config: AnalysisConfig, name: str, folder: Path, benchmarks: Sequence[BenchmarkResults]) -> None:
    """Send the figure of the overall curves and the slopes to the tracker that `logger` names, if any."""
    chosen_values = {"study": name, "method": config.analysis.method, "ties": config.ties, "source": config.source}
    with tracked(config.logger, Job("analysis", name, name, folder, chosen_values)) as tracker:
        for results in benchmarks:
            place = folder / results.label if len(benchmarks) > 1 else folder
            if len(results.accuracies):
                tracker.image(f"curves/{results.label}", place / "figures" / "overall.png")
                tracker.table(f"slopes/{results.label}", results.slopes)
                whole = results.slopes[(results.slopes["level"] == "overall") & results.slopes["slope"].notna()]
                tracker.summarise({f"slope/{results.label}/{row.curve}": row.slope for row in rows_of(whole)})


@dataclass(frozen=True)
class _Tables:
    """The long table of a study: accuracies, runs, problems and notes (of a benchmark), whatever the source."""

    study: str
    accuracies: pd.DataFrame
    runs: pd.DataFrame
    problems: pd.DataFrame
    notes: Callable[[str], list[str]]


def read_tables(config: AnalysisConfig, benchmark: str | None) -> _Tables:
    """Read a study from its run folders, or the numbers of others that `source` and `path` name."""
    options = config.analysis
    if config.source != FILES:
        found = read_source(config.source, config.path, config.columns, config.results, config.study)
        none = pd.DataFrame(columns=list(PROBLEM_COLUMNS))
        name = str(found.runs["study"].iloc[0])
        return _Tables(name, found.accuracies, found.runs, none, lambda label: found.notes)
    if config.study is None:
        raise ConfigError("Which study? Give study=NAME.")
    names = study_names([config.study], config.paths.runs)
    read = {"folder": config.paths.runs}
    return _Tables(
        config.study,
        study.accuracies(*names, benchmark=benchmark, ties=config.ties, faulty_pairs=options.faulty_pairs, **read),
        study.runs(*names, **read),
        study.problems(*names, **read),
        lambda label: study.notes(*names, benchmark=label, method=options.method, **read),
    )


def read_benchmarks(config: AnalysisConfig, tables: _Tables) -> list[BenchmarkResults]:
    """Divide the long table of a study by benchmark, and add what people answered to questionnaires.

    Raises:
        ConfigError: for labels, colours or an order of curves that aren't there.
        InputError: for answers on other pairs.
    """
    found, options = [], config.analysis
    methods = list(tables.accuracies["method"].unique())
    if config.source != FILES and len(methods) == 1:
        options = replace(options, method=methods[0])  # others' numbers have a method of their own
    labels = list(tables.accuracies["benchmark"].unique())
    sheets = read_people(config.people, tables.runs, labels, config.paths.runs) if config.people else {}
    for label in tables.accuracies["benchmark"].unique():
        of_label = tables.accuracies[tables.accuracies["benchmark"] == label].reset_index(drop=True)
        results = BenchmarkResults.of(
            label, of_label, tables.runs, options, problems=_concerning(tables.problems, label), ties=config.ties,
            notes=tables.notes(label), of_folders=config.source == FILES,
        )  # fmt: skip
        if config.source == FILES:
            _add_readers(results, config)
        else:
            results.direct = tested_paradigms(of_label, tables.runs)
        if label in sheets:
            assert config.questionnaire is not None  # conf/analysis.yaml chooses one
            results.people = people_of(
                sheets[label], of_label, config.questionnaire, options.confidence, config.paths.runs
            )
            results.notes += results.people.notes
        found.append(results)
    return found


def _add_readers(results: BenchmarkResults, config: AnalysisConfig) -> None:
    """Let sections read single pairs and snapshots, if they need them."""
    curves = results.runs.set_index("run")["curve"]
    names = study_names([str(config.study)], config.paths.runs)
    of = {"benchmark": results.label, "folder": config.paths.runs}

    def read_pairs(runs: Sequence[str], method: str | None = None) -> pd.DataFrame:
        pairs = study.pairs(*names, method=method or config.analysis.method, runs=runs, **of)
        if config.analysis.faulty_pairs == LEAVE_OUT:
            pairs = pairs[pairs["faulty"] == ""]
        return pairs.assign(curve=pairs["run"].map(curves))

    def read_trajectories() -> pd.DataFrame:
        return _of_runs(study.trajectories(*names, method=config.analysis.method, ties=config.ties, **of), curves)

    def read_without_unknown() -> pd.DataFrame:
        options = {"ties": config.ties, "faulty_pairs": config.analysis.faulty_pairs, "unknown_words": LEAVE_OUT}
        table = study.accuracies(*names, method=config.analysis.method, **options, **of)
        return table.assign(curve=table["run"].map(curves), method=results.method).dropna(subset=["curve"])

    results.read_pairs, results.read_trajectories = read_pairs, read_trajectories
    results.read_without_unknown = read_without_unknown
    if (results.runs["construction"] != "").any():
        found = read_studies([str(config.study)], config.paths.runs)
        results.direct, results.removed = direct_paradigms(found, results.benchmark), removed_text(found)


def _of_runs(snapshots: pd.DataFrame, curves: pd.Series) -> pd.DataFrame:
    """Name the curves of snapshots as those of their runs."""
    return snapshots.assign(curve=snapshots["run"].str.replace(r"@[^@]*$", "", regex=True).map(curves)).dropna(
        subset=["curve"]
    )


def people_exhibits(results: BenchmarkResults, config: AnalysisConfig) -> list[Exhibit]:
    """Return the table of people who answered a questionnaire, if there are any."""
    if results.people is None or config.questionnaire is None:
        return []
    return [people_exhibit(results.people, config.questionnaire.threshold, config.analysis.confidence)]


def _concerning(problems: pd.DataFrame, label: str) -> pd.DataFrame:
    """Return the problems without missing scores of other benchmarks."""
    other = (problems["status"] == "unscored") & ~problems["reason"].str.endswith(f" {label}")
    return problems[~other].reset_index(drop=True)


def print_part(console: Console, quiet: Console, results: BenchmarkResults, part: Part) -> None:
    """Print notes, findings and the table of slopes."""
    print_texts(console, quiet, part)
    rows = results.slopes[(results.slopes["level"] != "paradigm") & results.slopes["slope"].notna()]
    if len(rows):
        print_slopes(console, rows, results.options.confidence)


def print_texts(console: Console, quiet: Console, part: Part) -> None:
    """Print the texts of the first screen."""
    for note in part.notes:
        print_text(quiet, note, "note", "yellow")
    print_text(console, f"{part.name}: {part.lead}", style="bold")
    for subject, text in [("", part.headline), *part.findings]:
        if text:
            print_text(console, f"{subject}: {text}" if subject else text)


def print_slopes(console: Console, rows: pd.DataFrame, confidence: float) -> None:
    """Print slopes with their intervals, steepest phenomena first."""
    head = ["phenomenon", "smallest size", "largest size", "slope", f"{level_text(confidence)} interval", "lack of fit"]
    body: list[list[str]] = []
    for curve, of in rows.groupby("curve", sort=False):
        body.append([str(curve), *[""] * 5])
        whole, single = of[of["level"] == "overall"], of[of["level"] != "overall"].sort_values("slope", ascending=False)
        for row in rows_of(pd.concat([whole, single])):
            digits = 3 if pd.isna(row.low) else supported_digits(row.low, row.high)
            body.append([
                f" {title(row.name)}", accuracy_text(row.smallest_accuracy), accuracy_text(row.largest_accuracy),
                slope_text(row.slope, digits), interval_text(row.low, row.high, digits), p_text(row.lack_of_fit),
            ])  # fmt: skip
    print_table(console, filled_table(head, body, ["phenomenon"]), ("lack of fit",))
    print_text(console, "slope: accuracy per doubling of the training text; lack of fit: p value")


def typed_command() -> str:
    """Return the command that writes this report, as it was typed."""
    words = map(readable, HydraConfig.get().overrides.task)
    return shlex.join(["python", "-m", "analysis", *(word.lstrip("+") for word in words)])
