"""The parts of a report: a benchmark of minimal pairs, a benchmark of items, or reading times."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd

from analysis.config import AnalysisConfig
from analysis.figures.charts import Axis, line_chart
from analysis.figures.style import looks_of
from analysis.formats import count, level_text, signed_text
from analysis.items import cloze, ratings, suites
from analysis.reading.times import ReadingResult, read_results
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
    texts,
)
from analysis.report.labels import display_names, in_order
from analysis.report.write import Part
from analysis.sections import ALL
from analysis.sections.ablations import ablation_findings, effects_of
from analysis.sections.beside import model_findings
from analysis.sections.curves import extent, overall
from eval.config import is_of_pairs
from eval.ratings.config import is_ratings
from eval.scores.names import benchmark_name
from eval.syntaxgym.config import is_syntaxgym
from train.runs.folder import RunFolder


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
    ablations = ablation_findings(effects_of(results), options.confidence)
    findings = [
        *ablations,
        *curve_findings(results.slopes, options.confidence),
        *([] if ablations else comparison_findings(results.differences, results.slopes, options.confidence)),
    ]
    return Part(
        label=results.label,
        name=results.name,
        lead=extent(results),
        first=overall(results),
        headline=headline(results.slopes),
        findings=[*texts(findings), *model_findings(results)],
        notes=notes,
        checked=checked(results.accuracies, of_curves, results.of_folders and results.problems.empty),
        methods=methods_text(results),
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


def item_labels(runs: pd.DataFrame, folder: str | Path) -> list[str]:
    """Return the benchmarks of items (diagnostics, suites, ratings) that some run has scores of."""
    labels: dict[str, None] = {}
    for study, run in runs[["study", "run"]].itertuples(index=False):
        found = sorted(
            path.name for path in RunFolder(Path(folder) / study / run).scores("").glob("*") if path.is_dir()
        )
        labels |= dict.fromkeys(label for label in found if not is_of_pairs(label))
    return list(labels)


def item_part(label: str, runs: pd.DataFrame, config: AnalysisConfig) -> Part:
    """Return the part about a diagnostic, suites or ratings. Raises RunError as their modules do."""
    section_of = suites.section if is_syntaxgym(label) else ratings.section if is_ratings(label) else cloze.section
    everything = ALL in (config.analysis.sections or ())
    section = section_of(_named(runs, config), label, config.analysis.confidence, config.paths.runs, everything)
    return Part(
        label=label,
        name=benchmark_name(label),
        lead=section.lead,
        exhibits=section.exhibits,
        findings=section.findings,
        notes=section.notes,
        methods=section.methods,
    )


def _named(runs: pd.DataFrame, config: AnalysisConfig) -> pd.DataFrame:
    """Return runs whose curves are named as `analysis.labels` says, in the order of `analysis.order`."""
    curves = list(runs["curve"].unique())
    labels = {curve: label for curve, label in config.analysis.labels.items() if curve in curves}
    names = display_names(curves, labels)
    order = [names.get(curve, curve) for curve in config.analysis.order]
    return in_order(runs.assign(curve=runs["curve"].map(names)), order)


def reading_parts(reports: str | Path, study: str) -> Iterator[Part]:
    """Yield a part for each file of times that `python -m analysis.reading` analysed."""
    for result in read_results(Path(reports), study):
        yield reading_part(result)


def reading_part(result: ReadingResult) -> Part:
    """Return the part about one file of reading times."""
    models = result.models
    placed = models[models["sample_words"].notna()]
    shown = ["curve", "size", "seed", "delta"]
    table = models[[name for name in shown if name in models]]
    draw = partial(
        line_chart,
        placed,
        "delta",
        Axis("Added log-likelihood per word (nats)", ".4f"),
        looks_of(list(placed["curve"].unique())),
    )
    about = (
        "How much log-likelihood per word surprisal adds to a regression of reading times on the length, frequency "
        f"and position of words. Baseline: {result.settings['baseline']}."
    )
    exhibits = [
        Exhibit(
            f"{result.name}-delta",
            "Added log-likelihood",
            about,
            table,
            cells={"delta": signed_text, "seed": count},
            charts={"delta": draw} if len(placed) else {},
        ),
    ]
    if len(result.slopes):
        slopes = result.slopes[["curve", "slope", "low", "high", "runs", "note"]]
        about = "Added log-likelihood gained per doubling of the training text."
        exhibits.append(Exhibit(f"{result.name}-slopes", "Slopes", about, slopes, cells={"slope": signed_text}))
    if len(result.excluded):
        exhibits.append(
            Exhibit(f"{result.name}-excluded", "Words left out", "Words left out, by reason.", result.excluded)
        )
    lead = f"{result.settings['rows']:,} words of {result.settings['texts']} texts from {result.settings['file']}."
    return Part(f"reading-{result.name}", f"Reading times: {result.name}", lead, exhibits=exhibits)
