"""Make the part of a report about a benchmark of minimal pairs. For other benchmarks, see analysis/items."""

from analysis.formats import level_text, plural
from analysis.report.benchmark import BenchmarkResults
from analysis.report.findings import (
    comparison_findings,
    curve_findings,
    extreme_findings,
    missing_runs,
    notes_of_runs,
    notes_of_scores,
    trials_of,
)
from analysis.report.write import Part
from analysis.sections.ablations import ablation_findings, effects_of
from analysis.sections.beside import model_findings
from analysis.sections.curves import extent, overall


def part_of(results: BenchmarkResults) -> Part:
    """Return a benchmark's part of the report with its findings, notes and first figure, but without sections."""
    confidence, tables = results.options.confidence, {"accuracies": results.every_method}
    part = Part(results.label, results.name, "", findings=model_findings(results), notes=results.notes, tables=tables)
    if results.accuracies.empty:
        number = plural(results.models["run"].nunique(), "pretrained model")
        part.lead = f"The scores on {results.name} come from {number}."
        return part
    trials = {curve: trials_of(rows) for curve, rows in results.accuracies.groupby("curve")}
    ablations = ablation_findings(effects_of(results), confidence)
    comparisons = [] if ablations else comparison_findings(results.differences, results.slopes, confidence)
    curves = curve_findings(results.slopes, confidence, trials)
    part.lead, part.first, part.methods = extent(results), overall(results), methods_text(results)
    part.findings = [*ablations, *curves, *comparisons, *extreme_findings(results.slopes), *part.findings]
    part.notes = [
        *missing_runs(results.problems),
        *notes_of_scores(results.accuracies, results.ties),
        *notes_of_runs(results.curve_runs),
        *results.notes,
    ]
    return part


def methods_text(results: BenchmarkResults) -> list[str]:
    """Return two paragraphs on scores and statistics, for the methods section of a paper."""
    pair = "A pair counts as correct if the grammatical sentence has the higher score"
    choice = "A choice counts as correct if the right option has the highest score"
    return [
        f"{choice if results.has_choices else pair} (method {results.method}); a tie counts as {results.ties}. The "
        "accuracy of a phenomenon is the mean over its paradigms, and overall accuracy is the mean over all paradigms.",
        "Slopes come from least-squares regressions of accuracy on log2 of the amount of training text, with one "
        f"point per run. Their {level_text(results.options.confidence)} confidence intervals use "
        "heteroskedasticity-consistent standard errors (HC3; MacKinnon and White 1985) and a t distribution with "
        "R - 2 degrees of freedom, where R is the number of runs. They apply to new samples of this corpus and new "
        "initialisations, on the same pairs. If the runs of two curves were trained on the same samples, their "
        "slopes are compared through paired differences. Otherwise, Welch's degrees of freedom are used. Lack of fit "
        "is tested with the pure-error F test.",
    ]
