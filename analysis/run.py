"""`python -m analysis`: fit the curves of a study, print the findings, and write the report."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from rich.console import Console

from analysis.config import AnalysisConfig
from analysis.formats import p_text, rows_of, slope_text
from analysis.items.parts import item_parts
from analysis.parts import part_of, reading_parts
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.report.people import exhibit as people_exhibit
from analysis.report.people import read_people
from analysis.report.write import REPORT_FORMATS, Part, write_report
from analysis.sections import chosen, exhibits
from analysis.sources.read import FILES, read_source
from analysis.study.long_table import ACCURACY_COLUMNS, accuracies, notes, problems, runs
from analysis.study.run_folders import PROBLEM_COLUMNS, read_studies, study_names
from analysis.study.score_files import list_files
from eval.config import is_of_pairs
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
    with quiet.status("reading scores"):
        tables = read_tables(config)
        benchmarks = read_benchmarks(config, tables)
    parts = []
    for results in benchmarks:
        with quiet.status(f"{results.name}: fitting curves"):
            part = part_of(results)
        print_part(console, quiet, part)
        print_slopes(console, results.slopes, config.analysis.confidence)
        with quiet.status(f"{results.name}: making tables and figures"):
            part.exhibits = list(exhibits(results, sections))
        if results.people and config.questionnaire:
            shown = people_exhibit(results.people, config.questionnaire.threshold, config.analysis.confidence)
            part.exhibits.append(shown)
        parts.append(part)
    name, commands = tables.study, []
    if config.source == FILES:
        others = [
            *item_parts(tables.runs, config, chosen_benchmark(config)),
            *reading_parts(config.paths.reports, name),
        ]
        for part in others:
            print_part(console, quiet, part)
        parts += others
        commands = study_commands(config.paths.runs, name)
    if not parts:
        raise RunError(f"study={name}: no run has scores. Score its runs: python -m eval study={name}")
    folder = Path(config.paths.reports) / (name if config.source == FILES else f"{name}+{config.source}")
    words = [readable(word).lstrip("+") for word in HydraConfig.get().overrides.task]
    commands.append(shlex.join(["python", "-m", "analysis", *words]))
    path = write_report(folder, name, parts, commands, config.analysis.figure, config.format)
    track(config, name, folder, benchmarks)
    print_text(console, f"report: {path}")


@dataclass(frozen=True)
class Tables:
    """The long table of a study, whatever the source; `studies` names those whose run folders were read."""

    study: str
    studies: list[str]
    accuracies: pd.DataFrame
    runs: pd.DataFrame
    problems: pd.DataFrame
    notes: Callable[[str], list[str]]


def chosen_benchmark(config: AnalysisConfig) -> str | None:
    """Return the name of the benchmark that the command line names, or None if it names none."""
    words = HydraConfig.get().overrides.task if HydraConfig.initialized() else []
    return config.benchmark.name if any(word.startswith("benchmark=") for word in words) else None


def read_tables(config: AnalysisConfig) -> Tables:
    """Read a study from its run folders, or the numbers of others that `source` and `path` name."""
    options = config.analysis
    if config.source != FILES:
        found = read_source(config.source, config.path, config.columns, config.results, config.study)
        none = pd.DataFrame(columns=list(PROBLEM_COLUMNS))
        study = str(found.runs["study"].iloc[0])
        return Tables(study, [], found.accuracies, found.runs, none, lambda label: found.notes)
    if config.study is None:
        raise ConfigError("Which study? Give study=NAME.")
    folder = config.paths.runs
    names = study_names([config.study], folder)
    benchmark, counted = chosen_benchmark(config), {"ties": config.ties, "faulty_pairs": options.faulty_pairs}
    has_pairs = is_of_pairs(benchmark) if benchmark else len(list_files(read_studies(names, folder))) > 0
    none = pd.DataFrame(columns=list(ACCURACY_COLUMNS))  # diagnostics, suites or ratings alone
    return Tables(
        config.study,
        names,
        accuracies(*names, benchmark=benchmark, folder=folder, **counted) if has_pairs else none,
        runs(*names, folder=folder),
        problems(*names, folder=folder),
        lambda label: notes(*names, benchmark=label, method=options.method, folder=folder),
    )


def read_benchmarks(config: AnalysisConfig, tables: Tables) -> list[BenchmarkResults]:
    """Divide the long table of a study by benchmark, and add what people answered to questionnaires.

    Raises:
        ConfigError: for labels, colours or an order of curves that aren't there.
        InputError: for answers on other pairs.
    """
    found, options, table, people = [], config.analysis, tables.accuracies, {}
    if config.source != FILES and table["method"].nunique() == 1:
        options = replace(options, method=table["method"].iloc[0])  # others' numbers have a method of their own
    if config.people and config.questionnaire:
        people = read_people(config.people, table, config.questionnaire, options.confidence, config.paths.runs)
    for label in table["benchmark"].unique():
        of_others = (tables.problems["status"] == "unscored") & ~tables.problems["reason"].str.endswith(f" {label}")
        found.append(
            BenchmarkResults.of(
                label,
                table[table["benchmark"] == label].reset_index(drop=True),
                tables.runs,
                options,
                problems=tables.problems[~of_others].reset_index(drop=True),
                notes=tables.notes(label) + (people[label].notes if label in people else []),
                ties=config.ties,
                people=people.get(label),
                studies=tables.studies,
                folder=config.paths.runs,
            )
        )
    return found


def print_part(console: Console, quiet: Console, part: Part) -> None:
    """Print the texts of the first screen."""
    for note in part.notes:
        print_text(quiet, note, "note", "yellow")
    print_text(console, f"{part.name}: {part.lead}", style="bold")
    for subject, text in [("", part.headline), *part.findings]:
        if text:
            print_text(console, f"{subject}: {text}" if subject else text)


def print_slopes(console: Console, slopes: pd.DataFrame, confidence: float) -> None:
    """Print slopes of phenomena with their intervals, the steepest first; nothing if there are none."""
    slopes = slopes[slopes["level"] != "paradigm"].dropna(subset="slope")
    if slopes.empty:
        return
    columns = {
        "name": "phenomenon", "smallest_accuracy": "smallest size", "largest_accuracy": "largest size",
        "slope": "slope", "low": "low", "high": "high", "lack_of_fit": "lack of fit",
    }  # fmt: skip
    rows = slopes.sort_values("slope", ascending=False).sort_values(
        "level", key=lambda level: level != "overall", kind="stable"
    )
    table = rows[list(columns)].rename(columns=columns)
    formats = {"slope": slope_text, "lack of fit": p_text}
    texts = Exhibit("slopes", "Slopes", "", table, cells=formats, confidence=confidence).texts
    body: list[list[str]] = []
    for curve in slopes["curve"].unique():
        body.append([str(curve), *[""] * (len(texts.columns) - 1)])
        body += [[f" {name}", *cells] for name, *cells in texts[(rows["curve"] == curve).to_numpy()].to_numpy()]
    print_table(console, filled_table(list(map(str, texts)), body, ["phenomenon"]), ("lack of fit",))
    print_text(console, "slope: accuracy per doubling of the training text; lack of fit: p value")


def track(config: AnalysisConfig, name: str, folder: Path, benchmarks: Sequence[BenchmarkResults]) -> None:
    """Send the figure of the overall curves and the slopes to the tracker that `logger` names, if any."""
    values = {"study": name, "method": config.analysis.method, "ties": config.ties, "source": config.source}
    with tracked(config.logger, Job("analysis", name, name, folder, values)) as tracker:
        for results in benchmarks:
            if results.slopes.empty:
                continue
            place = folder / results.label if len(benchmarks) > 1 else folder
            tracker.image(f"curves/{results.label}", place / "figures" / "overall.png")
            tracker.table(f"slopes/{results.label}", results.slopes)
            whole = results.slopes[results.slopes["level"] == "overall"].dropna(subset=["slope"])
            tracker.summarise({f"slope/{results.label}/{row.curve}": row.slope for row in rows_of(whole)})
