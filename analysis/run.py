"""Fit the curves of a study, print the findings, and write the report (`python -m analysis`)."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from analysis.babylm import babylm_part
from analysis.config import AnalysisConfig, ResultsCommand
from analysis.formats import p_text, rows_of, with_minus_signs
from analysis.items.parts import item_parts
from analysis.parts import part_of
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.report.people import exhibit as people_exhibit
from analysis.report.people import read_people
from analysis.report.write import Part, places_of, write_report
from analysis.sections import chosen, exhibits
from analysis.sources.read import FILES, read_source
from analysis.study.long_table import accuracies, notes, problems, tie_and_chance
from analysis.study.run_folders import PROBLEM_COLUMNS, Studies, read_studies
from eval.config import is_of_pairs
from pairscale.command.line import current
from pairscale.command.schemas import listed
from pairscale.console import print_text
from pairscale.errors import RunError
from pairscale.tables import filled_table, print_table
from train.runs.provenance import here
from train.sweeps import study_commands
from train.trackers.tracker import Job, tracked


def analyse(config: AnalysisConfig) -> None:
    """Analyse a study on every benchmark that it was scored on, or on the one chosen on the command line.

    Raises:
        ConfigError: If a section or curve is unknown, or if a value can't be used.
        RunError: If the study has no finished runs or no scores.
    """
    sections = chosen(config.analysis.sections)
    console, quiet = Console(), Console(stderr=True, highlight=False)
    with quiet.status("reading scores"):
        studies = read_study(config)
        benchmarks = read_benchmarks(config, studies)
    parts = []
    if studies and config.chosen_benchmark is None and (challenge := babylm_part(studies, config)):
        print_part(console, quiet, challenge)
        parts.append(challenge)
    for results in benchmarks:
        with quiet.status(f"{results.name}: fitting curves"):
            part = part_of(results)
        print_part(console, quiet, part, parts)
        print_slopes(console, results.slopes, config.analysis.confidence)
        with quiet.status(f"{results.name}: making tables and figures"):
            part.exhibits = list(exhibits(results, sections))
        if results.people:
            people_part = people_exhibit(results.people, config.questionnaire.threshold, config.analysis.confidence)
            part.exhibits.append(people_part)
        parts.append(part)
    name, commands = config.study or str(benchmarks[0].runs["study"].iloc[0]), []
    folder = Path(config.paths.reports) / (name if studies else f"{name}+{config.source}")
    if studies:
        others = item_parts(studies.runs, config, config.chosen_benchmark)
        for part in others:
            print_part(console, quiet, part)
        parts += others
        commands = study_commands(config.paths.runs, name)
    if not parts:
        raise RunError(f"study={name}: no run has scores. Score the runs with: python -m eval study={name}")
    words = [word.lstrip("+") for word in current().overrides]
    commands.append(shlex.join(["python", "-m", "analysis", *words]))
    path = write_report(folder, name, parts, commands, config.analysis.figure, config.format)
    track(config, name, folder, benchmarks, places_of(parts))
    print_text(console, f"report: {path}")


def read_study(config: ResultsCommand) -> Studies | None:
    """Read the run folders of the study. Return None if `source` selects external results."""
    return read_studies([config.study or ""], config.paths.runs) if config.source == FILES else None


def read_benchmarks(config: ResultsCommand, studies: Studies | None) -> list[BenchmarkResults]:
    """Read the long table of a study, or external results, and return the results on each benchmark.

    If people answered a questionnaire on a benchmark, their answers are included.

    Raises:
        ConfigError: If `labels`, `colours` or `order` contain an unknown curve.
        InputError: If external results can't be used, or if people answered about other pairs.
    """
    options, benchmark, people = config.analysis, config.chosen_benchmark, {}
    if studies is None:
        source = read_source(config.source, config.path, config.columns, config.results, config.study)
        table, of_runs, left_out = source.accuracies, source.runs, pd.DataFrame(columns=list(PROBLEM_COLUMNS))
        if table["method"].nunique() == 1:
            options = replace(options, method=table["method"].iloc[0])  # external results have their own method
    elif is_of_pairs(benchmark) if benchmark else len(studies.files):
        table = accuracies(studies, benchmark=benchmark, ties=config.ties, faulty_pairs=options.faulty_pairs)
        of_runs, left_out = studies.runs, problems(studies)
    else:
        return []  # there are only diagnostics, suites or ratings
    if isinstance(config, AnalysisConfig) and config.people:
        people = read_people(listed(config.people), table, config.questionnaire, options.confidence, config.paths.runs)
    found, labels = [], list(map(str, table["benchmark"].unique()))
    if not benchmark:  # BabyLM's subsets for snapshots are left out if all items are there, and its multilingual tasks
        labels = [label for label in labels if "_fast" not in label or label.replace("_fast", "", 1) not in labels]
        labels = [label for label in labels if not label.startswith("zeroshot_")]
    for label in labels:
        answers = people.get(label)
        said = notes(studies, benchmark=label, method=options.method) if studies else source.notes
        said = [*said, *(answers.notes if answers else ())]
        of_others = (left_out["status"] == "unscored") & ~left_out["reason"].str.endswith(f" {label}")
        rows, lacking = table[table["benchmark"] == label].reset_index(drop=True), left_out[~of_others]
        ties, chance = tie_and_chance(studies, label, config.ties) if studies else (config.ties or "wrong", 0.5)
        found.append(BenchmarkResults(label, rows, of_runs, options, said, lacking, ties, answers, studies, chance))
    return found


def print_part(console: Console, quiet: Console, part: Part, earlier: Sequence[Part] = ()) -> None:
    """Print the notes, the lead and the findings of a part. Notes of earlier parts aren't repeated."""
    for note in part.notes:
        if not any(note in one.notes for one in earlier):
            print_text(quiet, note, "note", "yellow")
    print_text(console, f"{part.name}: {part.lead}", style="bold")
    for subject, text in part.findings:
        print_text(console, with_minus_signs(f"{subject}: {text}" if subject else text))


def print_slopes(console: Console, slopes: pd.DataFrame, confidence: float) -> None:
    """Print the slopes of phenomena with their confidence intervals, steepest first."""
    slopes = slopes[slopes["level"] != "paradigm"].dropna(subset="slope")
    if slopes.empty:
        return
    columns = {
        "name": "phenomenon", "smallest_accuracy": "smallest size", "largest_accuracy": "largest size",
        "slope": "slope", "low": "low", "high": "high", "lack_of_fit": "lack of fit",
    }  # fmt: skip
    order = slopes.assign(is_part=slopes["level"] != "overall")
    rows = order.sort_values(["is_part", "slope"], ascending=[True, False], kind="stable", ignore_index=True)
    table, cells = rows[list(columns)].rename(columns=columns), {"lack of fit": p_text}
    texts = Exhibit("slopes", "Slopes", "", table, cells, confidence).texts
    body: list[list[str]] = []
    for curve in slopes["curve"].unique():
        body.append([str(curve), *[""] * (len(texts.columns) - 1)])
        body += [[f" {name}", *others] for name, *others in texts[rows["curve"] == curve].to_numpy()]
    print_table(console, filled_table(list(map(str, texts)), body, ["phenomenon"]), ("lack of fit",))
    print_text(
        console,
        "A slope is the accuracy gained per doubling of the text. Lack of fit is the p value of a test.",
    )


def track(
    config: AnalysisConfig, name: str, folder: Path, benchmarks: Sequence[BenchmarkResults], places: Mapping[str, str]
) -> None:
    """Log slopes, runs, charts of the curves, and the figure of the overall curves (see `places_of`) to the tracker."""
    values = {"method": config.analysis.method, "ties": config.ties, "source": config.source}
    values |= {"study": name, **here()}
    with tracked(config.logger, Job("analysis", name, name, folder, values)) as tracker:
        for results in benchmarks:
            if results.slopes.empty:
                continue
            tracker.chart(f"curves/{results.label}", folder / places[results.label] / "figures" / "overall.png")
            whole = results.slopes[results.slopes["level"] == "overall"].dropna(subset=["slope"])
            slopes = {f"slope/{results.label}/{row.curve}": row.slope for row in rows_of(whole)}
            tables = {f"slopes/{results.label}": results.slopes, f"runs/{results.label}": results.units}
            tracker.summarise({**tables, **slopes})
            x, ends = f"log2({results.unit})", {"accuracy": "", "low": ", low", "high": ", high"}
            points = results.lines[results.lines["level"] != "paradigm"].melt(
                ["name", "curve", "sample_words"], [*ends]
            )
            points = points.assign(**{x: np.log2(points["sample_words"])}).dropna()
            points["curve"] += points["variable"].map(ends)
            for unit, of in points.groupby("name"):
                tracker.chart(f"curves/{results.label}/{unit}", of[[x, "curve", "value"]])
