"""The parts of a report: a benchmark of minimal pairs, or reading times. Those of items: analysis/items."""

from functools import partial
from pathlib import Path

from analysis.figures.charts import Axis, line_chart
from analysis.figures.style import looks_of
from analysis.formats import count, level_text, signed_text
from analysis.reading.results import ReadingResult, read_results
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.report.findings import (
    checked,
    comparison_findings,
    curve_findings,
    headline,
    missing_runs,
    notes_of_runs,
    notes_of_scores,
)
from analysis.report.write import Part
from analysis.sections.ablations import ablation_findings, effects_of
from analysis.sections.beside import model_findings
from analysis.sections.curves import extent, overall


def part_of(results: BenchmarkResults) -> Part:
    """Return the first screen of a benchmark: its findings, notes and figure."""
    confidence, tables = results.options.confidence, {"accuracies": results.every_method}
    if results.accuracies.empty:
        lead = f"{results.models['run'].nunique()} pretrained models, scored on {results.name}."
        findings = model_findings(results)
        return Part(results.label, results.name, lead, findings=findings, notes=results.notes, tables=tables)
    runs = results.runs[results.runs["curve"].isin(results.curves)]
    one_run = results.accuracies[results.accuracies["run"].isin(results.accuracies.groupby("curve")["run"].first())]
    pairs = one_run.groupby("curve")["pairs"].sum(min_count=1).to_dict()
    ablations = ablation_findings(effects_of(results), confidence)
    comparisons = [] if ablations else comparison_findings(results.differences, results.slopes, confidence)
    return Part(
        label=results.label,
        name=results.name,
        lead=extent(results),
        first=overall(results),
        headline=headline(results.slopes),
        findings=[
            *ablations,
            *curve_findings(results.slopes, confidence, pairs),
            *comparisons,
            *model_findings(results),
        ],
        notes=[
            *missing_runs(results.problems),
            *notes_of_scores(results.accuracies, results.ties),
            *results.notes,
            *notes_of_runs(runs),
        ],
        checked=checked(results.accuracies, runs, bool(results.studies) and results.problems.empty),
        methods=methods_text(results),
        tables=tables,
    )


def methods_text(results: BenchmarkResults) -> list[str]:
    """Return a paragraph on scores and one on statistics, for the methods section of a paper."""
    level = level_text(results.options.confidence)
    return [
        f"A pair counts as correct if the grammatical sentence has the higher score (method {results.method}); a tie "
        f"counts as {results.ties}. The accuracy of a phenomenon is the mean over its paradigms, and overall "
        "accuracy is the mean over all paradigms.",
        "Slopes are least-squares fits of accuracy on log2 of the amount of training text, one point per run. Their "
        f"{level} confidence intervals use heteroskedasticity-consistent standard errors (HC3; MacKinnon and White "
        "1985) with Student's t and R - 2 degrees of freedom for R runs. They are about new samples of this corpus "
        "and new initialisations, on these pairs. Slopes of two curves are compared on their paired differences if "
        "their runs were trained on the same samples, otherwise with Welch's degrees of freedom. The lack-of-fit "
        "test is the pure-error F test.",
    ]


def reading_parts(reports: str | Path, study: str) -> list[Part]:
    """Return a part for each file of reading times that `python -m analysis.reading` analysed."""
    return [_reading_part(result) for result in read_results(Path(reports), study)]


def _reading_part(result: ReadingResult) -> Part:
    models, settings = result.models, result.settings
    placed = models[models["sample_words"].notna()]
    axis = Axis("Added log-likelihood per word (nats)", ".4f")
    draw = partial(line_chart, placed, "delta", axis, looks_of(list(placed["curve"].unique())))
    about = (
        "How much log-likelihood per word surprisal adds to a regression of reading times on the length, frequency "
        f"and position of words. Baseline: {settings['baseline']}."
    )
    exhibits = [
        Exhibit(
            f"{result.name}-delta",
            "Added log-likelihood",
            about,
            models[[name for name in ("curve", "size", "seed", "delta") if name in models]],
            cells={"delta": signed_text, "seed": count},
            charts={"delta": draw} if len(placed) else {},
        ),
    ]
    if len(result.slopes):
        slopes = result.slopes[["curve", "slope", "low", "high", "runs", "note"]]
        about = "Added log-likelihood gained per doubling of the training text."
        exhibits.append(Exhibit(f"{result.name}-slopes", "Slopes", about, slopes, cells={"slope": signed_text}))
    if len(result.excluded):
        about = "Words left out, by reason."
        exhibits.append(Exhibit(f"{result.name}-excluded", "Words left out", about, result.excluded))
    lead = f"{settings['rows']:,} words of {settings['texts']} texts from {settings['file']}."
    return Part(f"reading-{result.name}", f"Reading times: {result.name}", lead, exhibits=exhibits)
