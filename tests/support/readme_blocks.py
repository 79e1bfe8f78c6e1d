"""The results in README.md and docs/, generated from committed tables.

python -m tests.support.readme_blocks    rewrites them, between <!-- NAME --> and <!-- end -->
"""

import io
import re
from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd
from rich.console import Console

from analysis.formats import accuracy_text, in_text, rows_of, slope_text, supported_digits
from analysis.report.findings import Finding, comparison_findings, curve_findings, phenomena_findings
from analysis.run import print_slopes
from analysis.sections.ablations import ablation_findings
from pairscale.sizes import readable_size
from tests.support import PAGES, wrapped
from tests.support.ablation_tables import committed_effects, paradigm_table
from tests.support.bench_pages import SPEED_BLOCKS
from tests.support.committed_results import CPU, DEMO, FAMILIES, GPU, LONG, RESULTS, committed_results
from tests.support.construction_tables import CONSTRUCTION_BLOCKS
from tests.support.interval_tables import INTERVAL_BLOCKS
from tests.support.people_tables import PEOPLE_BLOCKS

BLOCK = re.compile(r"(<!-- (?P<name>[a-z_ ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
LEVEL = 0.95


def with_results(text: str) -> str:
    """Return the text of a page with its blocks rewritten. Raises KeyError for an unknown block."""
    return BLOCK.sub(lambda match: f"{match[1]}{BLOCKS[match['name']]()}\n{match[3]}", text)


def quoted(findings: Sequence[Finding]) -> str:
    """Return findings, each as a quotation."""
    texts = [f"**{finding.subject}**: {finding.text}" if finding.subject else finding.text for finding in findings]
    return "\n>\n".join(wrapped(text, "> ") for text in texts)


def first_finding() -> str:
    """Return the first finding of blimp_gpu, and a phenomenon that its model surely learns and one that it doesn't."""
    slopes = committed_results(GPU).slopes
    finding = curve_findings(slopes, LEVEL)[0]
    rows = slopes[(slopes["curve"] == finding.subject) & (slopes["level"] == "phenomenon")].sort_values("high")
    best, worst = (
        f"{row.smallest_accuracy:.0%} to {row.largest_accuracy:.0%} correct in {in_text(row.name)}"
        for row in rows_of(rows.iloc[[-1, 0]])
    )
    return quoted([finding, Finding("", f"It goes from {best}, but from {worst}.")])


def findings_of(study: str) -> str:
    """Return the findings of a study, as its report states them; about phenomena only those of blimp_gpu."""
    results = committed_results(study)
    of_phenomena = phenomena_findings(results.slopes) if study == GPU else []  # the largest study
    comparisons = comparison_findings(results.differences, results.slopes, LEVEL)
    return quoted([*curve_findings(results.slopes, LEVEL), *comparisons, *of_phenomena])


def minimal_pair() -> str:
    """Return a table of the log-probabilities that models of the demo give to the sentences of a pair."""
    scores = pd.read_csv(RESULTS / DEMO / "minimal-pair.csv")
    lines = [f"| words of training text | {' | '.join(scores['size'])} |", f"| --- |{' ---: |' * len(scores)}"]
    for side, other, star in ("good", "bad", ""), ("bad", "good", "\\*"):
        texts = [f"{value:.1f}".replace("-", "\u2212") for value in scores[side]]
        better = scores[side] > scores[other]
        cells = [f"**{text}**" if best else text for text, best in zip(texts, better, strict=True)]
        lines.append(f"| {star}{scores[f'{side}_sentence'].iloc[0]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def demo_output() -> str:
    """Return the start of what the analysis of the demo prints: a finding and the steepest slopes of its model."""
    results = committed_results(DEMO)
    finding = curve_findings(results.slopes, LEVEL)[0]
    rows = results.slopes[results.slopes["curve"] == finding.subject]
    terminal = Console(file=io.StringIO(), width=100)
    with terminal.capture() as capture:
        print_slopes(terminal, rows, LEVEL)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    return "\n".join(["```", wrapped(f"{finding.subject}: {finding.text}"), "", *lines[:6], " ...", "```"])


def models(study: str) -> str:
    """Return a table of the models of a study, the lowest perplexity first: weights, slopes, at the largest size."""
    results = committed_results(study)
    slopes = results.slopes[results.slopes["level"] == "overall"].set_index("curve")
    largest = results.runs[results.runs["sample_words"] == results.runs["sample_words"].max()]
    size = f"{readable_size(str(largest['size'].iloc[0]))} words"
    lines = [f"| model | weights | perplexity at {size} | accuracy at {size} | slope, 95% interval |"]
    lines.append("| --- | ---: | ---: | ---: | --- |")
    means = largest.groupby("curve")[["parameters", "valid_ppl"]].mean().sort_values("valid_ppl")
    for row in rows_of(means.join(slopes).reset_index()):
        perplexity = "–" if pd.isna(row.valid_ppl) else f"{row.valid_ppl:,.0f}"
        cells = [f"{row.parameters / 1e6:.2f}M", perplexity, accuracy_text(row.largest_accuracy)]
        lines.append(f"| `{row.curve}` | {' | '.join([*cells, slope_cell(row)])} |")
    return "\n".join(lines)


def slope_cell(row: object, value: str = "slope", digits: int = 0) -> str:
    """Return a slope with its interval: "+.016 [+.014, +.019]"."""
    if pd.isna(row.low):
        return f"{slope_text(getattr(row, value), digits or 3)} no interval"
    digits = digits or supported_digits(row.low, row.high)
    return f"{slope_text(getattr(row, value), digits)} [{slope_text(row.low, digits)}, {slope_text(row.high, digits)}]"


def trained() -> str:
    """Return the number of runs of blimp_cpu and the hours that they trained."""
    runs = committed_results(CPU).runs
    hours = runs["wall_s"].sum() / 3600
    return wrapped(f"It has {len(runs)} runs, which trained for {hours:.1f} hours in all on a machine with other load.")


def others_statements() -> str:
    """Return the statements of papers that their published tables decide, with our numbers and verdicts."""
    table = pd.read_csv(RESULTS / "others" / "statements.csv")
    lines = ["| table | statement | quantity | ours, 95% interval | verdict |", "| --- | --- | --- | --- | --- |"]
    for row in rows_of(table[table["verdict"] != "cannot be told"]):
        cells = (row.table, f"{row.statement} ({row.place})", row.quantity, slope_cell(row, "ours", 3), row.verdict)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


BLOCKS: dict[str, Callable[[], str]] = {
    "output of the demo": demo_output,
    "first finding of blimp_gpu": first_finding,
    "minimal pair of the demo": minimal_pair,
    **{f"findings of {study}": partial(findings_of, study) for study in (CPU, LONG, GPU)},
    **{f"models of {study}": partial(models, study) for study in (CPU, FAMILIES, LONG, GPU)},
    "effects of ablation_small": lambda: quoted(ablation_findings(committed_effects(), LEVEL)),
    "paradigms of ablation_small": paradigm_table,
    "training of blimp_cpu": trained,
    "statements of others": others_statements,
    **SPEED_BLOCKS,
    **CONSTRUCTION_BLOCKS,
    **PEOPLE_BLOCKS,
    **INTERVAL_BLOCKS,
}

if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_results(page.read_text(encoding="utf-8")), encoding="utf-8")
