"""The parts of a report: a benchmark of minimal pairs, or one of items."""

from pathlib import Path

import pandas as pd

from analysis.config import AnalysisConfig
from analysis.formats import level_text
from analysis.items import cloze, ratings, suites
from analysis.items.answers import read_answers
from analysis.report.benchmark import BenchmarkResults
from analysis.report.findings import (
    comparison_findings,
    curve_findings,
    missing_runs,
    notes_of_runs,
    notes_of_scores,
)
from analysis.report.labels import display_names, renamed
from analysis.report.write import Part
from analysis.sections import ALL
from analysis.sections.ablations import ablation_findings, effects_of
from analysis.sections.beside import model_findings
from analysis.sections.curves import extent, overall
from eval.config import is_of_pairs
from eval.ratings.config import is_ratings
from eval.syntaxgym.config import is_syntaxgym
from train.runs.folder import RunFolder


def part_of(results: BenchmarkResults) -> Part:
    """Return the first screen of a benchmark: its findings, notes and figure."""
    confidence, tables = results.options.confidence, {"accuracies": results.every_method}
    part = Part(results.label, results.name, "", findings=model_findings(results), notes=results.notes, tables=tables)
    if results.accuracies.empty:
        part.lead = f"{results.models['run'].nunique()} pretrained models, scored on {results.name}."
        return part
    one_run = results.accuracies[results.accuracies["run"].isin(results.accuracies.groupby("curve")["run"].first())]
    pairs = one_run.groupby("curve")["pairs"].sum(min_count=1).to_dict()
    ablations = ablation_findings(effects_of(results), confidence)
    comparisons = [] if ablations else comparison_findings(results.differences, results.slopes, confidence)
    curves = curve_findings(results.slopes, confidence, pairs)
    part.lead, part.first, part.methods = extent(results), overall(results), methods_text(results)
    part.findings = [*ablations, *curves, *comparisons, *part.findings]
    part.notes = [
        *missing_runs(results.problems),
        *notes_of_scores(results.accuracies, results.ties),
        *results.notes,
        *notes_of_runs(results.runs[results.runs["curve"].isin(results.curves)]),
    ]
    return part


def methods_text(results: BenchmarkResults) -> list[str]:
    """Return a paragraph on scores and one on statistics, for the methods section of a paper."""
    return [
        f"A pair counts as correct if the grammatical sentence has the higher score (method {results.method}); a tie "
        f"counts as {results.ties}. The accuracy of a phenomenon is the mean over its paradigms, and overall "
        "accuracy is the mean over all paradigms.",
        "Slopes are least-squares fits of accuracy on log2 of the amount of training text, one point per run. Their "
        f"{level_text(results.options.confidence)} confidence intervals use heteroskedasticity-consistent standard "
        "errors (HC3; MacKinnon and White 1985) with Student's t and R - 2 degrees of freedom for R runs. They are "
        "about new samples of this corpus and new initialisations, on these pairs. Slopes of two curves are compared "
        "on their paired differences if their runs were trained on the same samples, otherwise with Welch's degrees "
        "of freedom. The lack-of-fit test is the pure-error F test.",
    ]


def item_parts(runs: pd.DataFrame, config: AnalysisConfig, benchmark: str | None) -> list[Part]:
    """Return the parts about the diagnostics, suites and ratings that some run has scores of, or about one of them.

    Raises RunError as the modules of analysis/items do.
    """
    folders = [RunFolder(Path(config.paths.runs) / study / run) for study, run in runs[["study", "run"]].to_numpy()]
    found = dict.fromkeys(path.name for run in folders for path in sorted(run.scores("").glob("*")) if path.is_dir())
    wanted = [label for label in found if not is_of_pairs(label) and benchmark in (None, label.partition("+")[0])]
    return [_item_part(label, runs, config) for label in wanted]


def _item_part(label: str, runs: pd.DataFrame, config: AnalysisConfig) -> Part:
    options = config.analysis
    curves = list(runs["curve"].unique())
    labels = {curve: text for curve, text in options.labels.items() if curve in curves}
    named = renamed(runs, display_names(curves, labels), options.order)
    found = read_answers(named, label, config.paths.runs)
    part_about = suites.part if is_syntaxgym(label) else ratings.part if is_ratings(label) else cloze.part
    return part_about(found, options.confidence, ALL in (options.sections or ()))
