"""The results in README.md and docs/, generated from committed tables.

    python -m tests.support.readme_blocks       rewrites them, between <!-- NAME --> and <!-- end -->

Findings are worded as in the report (analysis/exhibits/sentences/findings.py); speeds come from the tables in
docs/benchmarks.md.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd
from rich.console import Console

from analysis.curves.fit import ALL_PAIRS, Curves
from analysis.exhibits.sentences.curves import extent, in_text
from analysis.exhibits.sentences.findings import Finding, comparisons, correlation, findings
from analysis.exhibits.tables.slopes import slope_table, terminal_table
from analysis.exhibits.tables.text import accuracy_text, interval_text, slope_text, supported_digits
from analysis.papers.papers import reproduce
from tests.support import PAGES, ROOT, wrapped
from tests.support.ablation_tables import direct_table, effects_found
from tests.support.acquisition_tables import ACQUISITION_BLOCKS
from tests.support.committed_results import (
    DEMO,
    FAMILIES,
    GPU,
    LONG,
    RESULTS,
    STUDY,
    analysed,
    config,
    judgements_of,
    reported,
)
from tests.support.construction_tables import CONSTRUCTION_BLOCKS
from tests.support.coverage_tables import COVERAGE_BLOCKS
from tests.support.expected_runs import expected_runs
from tests.support.interval_tables import INTERVAL_BLOCKS
from tests.support.people_tables import PEOPLE_BLOCKS

BLOCK = re.compile(r"(<!-- (?P<name>[a-z_ ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_results(text: str) -> str:
    """Return the text of a page with its blocks rewritten. Raises KeyError for an unknown block."""
    return BLOCK.sub(lambda match: f"{match[1]}{BLOCKS[match['name']]()}\n{match[3]}", text)


def quotations(curves: Curves, differences: pd.DataFrame) -> str:
    """Return the findings of a committed study, each as a quotation."""
    level = config().confidence
    relations = [*correlation(curves.slopes, level), *comparisons(differences, curves.slopes, "words", level)]
    return quoted([*findings(curves, "words", level), *relations])


def quoted(sentences: Sequence[Finding]) -> str:
    """Return findings, each as a quotation."""
    return "\n>\n".join(wrapped(f"**{finding.subject}**: {finding.full}", "> ") for finding in sentences)


def first_finding() -> str:
    """Return the first finding of the study on a GPU: how overall accuracy and that of phenomena grow."""
    finding = findings(reported(GPU)[0], "words", config().confidence)[0]
    return wrapped(f"**{finding.subject}**: {finding.text}", "> ")


def minimal_pair() -> str:
    """Return a table of the log-probabilities that models of the demo give to the sentences of a pair."""
    scores = pd.read_csv(RESULTS / DEMO / "minimal-pair.csv")
    sizes = [f"after {size} words" for size in scores["size"]]
    lines = [f"| {' | '.join(sizes)} | |", "| ---: " * len(sizes) + "| --- |"]
    for side, star in ("good", ""), ("bad", "\\*"):
        cells = [f"{value:.1f}".replace("-", "\u2212") for value in scores[side]]
        lines.append(f"| {' | '.join(cells)} | {star}{scores[f'{side}_sentence'].iloc[0]} |")
    return "\n".join(lines)


def demo_output() -> str:
    """Return the start of what the analysis of the demo prints: a finding's first sentence, and a model's slopes."""
    curves, _ = analysed(DEMO)
    finding = findings(curves, "words", config().confidence)[0]
    table = slope_table(curves, ALL_PAIRS)
    terminal = Console(file=io.StringIO(), width=80)
    with terminal.capture() as capture:
        terminal.print(terminal_table(table[table["group"] == finding.subject], DEMO, config().confidence))
    lines = [line.rstrip() for line in capture.get().splitlines()]
    return "\n".join(["```", wrapped(f"{finding.subject}: {finding.text} ..."), "", *lines, "```"])


def beside_published() -> str:
    """Return a table of the slopes of phenomena beside those that the paper gives for either model."""
    slopes = analysed()[0].slopes
    slopes = slopes[slopes["level"] == "phenomenon"].set_index(["name", "group"])
    names = slopes.index[slopes["published_slope"].notna()].get_level_values("name")
    lines = [
        "| slope, 95% interval | lstm_tiny | published LSTM | txl_tiny | published Transformer-XL |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in sorted(set(names)):
        cells = []
        for group in ("lstm_tiny", "txl_tiny"):
            row = slopes.loc[(name, group)]
            digits = supported_digits(row["low"], row["high"])
            limits = interval_text(row["low"], row["high"], digits=digits)
            cells.append(f"{slope_text(row['slope'], digits=digits)} {limits}")
            cells.append(slope_text(row["published_slope"], dash=""))
        lines.append(f"| {in_text(name)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def models(study: str) -> str:
    """Return a table of the models of a study, the lowest perplexity first: weights, slopes, at the largest size."""
    curves, _ = reported(study)
    runs = judgements_of(study).runs
    largest = runs[runs["sample_words"] == runs["sample_words"].max()]
    slopes = curves.slopes.query("level == 'overall'").set_index("group")
    accuracies = curves.points.query("level == 'overall'").set_index("run")["accuracy"]
    size = in_text(f"{largest['size'].iloc[0]} words")
    lines = [
        f"| model | weights | perplexity at {size} | accuracy at {size} | slope, 95% interval |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    means = largest.groupby("group")[["parameters", "valid_ppl"]].mean()
    for group, row in means.sort_values("valid_ppl").iterrows():
        of = slopes.loc[group]
        digits = supported_digits(of["low"], of["high"])
        slope = f"{slope_text(of['slope'], digits=digits)} {interval_text(of['low'], of['high'], digits=digits)}"
        accuracy = accuracy_text(accuracies[largest.index[largest["group"] == group]].mean())
        perplexity = "–" if pd.isna(row["valid_ppl"]) else f"{row['valid_ppl']:,.0f}"
        lines.append(f"| `{group}` | {row['parameters'] / 1e6:.2f}M | {perplexity} | {accuracy} | {slope} |")
    return "\n".join(lines)


def _findings_of(study: str) -> str:
    return quotations(*reported(study))


def trained() -> str:
    """Return the number of runs and the hours that they trained."""
    runs = judgements_of().runs
    hours = runs["wall_s"].sum() / 3600
    text = (
        f"{extent(runs)}; {len(expected_runs(STUDY)) - len(runs)} of its {len(expected_runs(STUDY))} runs are missing. "
        f"Training took {hours:.1f} hours in all, on a machine with other load."
    )
    return wrapped(text)


def bench_row(start: str) -> list[str]:
    """Return the cells of the one row of a table in docs/benchmarks.md with this first cell."""
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def faster(cell: str) -> str:
    """Return the factor of a cell: "1.44" of "1.44x (1.31 to 1.83; 1)"."""
    return cell.partition("x")[0]


def training_speed() -> str:
    """Return the speed of the published models relative to their authors' scripts."""
    factors = {name: faster(bench_row(name)[3]) for name in (
        "LSTM, fp32", "LSTM, bf16", "Transformer-XL, fp32", "Transformer-XL, bf16"
    )}  # fmt: skip
    text = (
        "On two CPU cores of a shared machine the published LSTM with 50,000 words trained "
        f"{factors['LSTM, fp32']} times as fast as its authors' script and the published Transformer-XL "
        f"{factors['Transformer-XL, fp32']} times; in bf16 (`precision=bf16`) {factors['LSTM, bf16']} and "
        f"{factors['Transformer-XL, bf16']} times as fast as the scripts in fp32 (medians of five turns). `make bench` "
        "measures yours."
    )
    return wrapped(text)


def scoring_speed() -> str:
    """Return the speed and the agreement of scores relative to libraries that score the same pairs."""
    ours, bf16 = (float(bench_row(f"pairscale, {name}")[2].split()[0]) for name in ("fp32", "bf16"))
    peers = [bench_row(name) for name in ("minicons 0.3.39", "lm-evaluation-harness 0.4.13")]
    minicons, harness = (float(row[2].split()[0]) for row in peers)
    differ = max((row[1] for row in peers), key=float)
    bert = re.search(r"([\d.]+)x", bench_row("original")[3])
    assert bert is not None
    text = (
        "Texts with the same beginning (the sentences of a pair and of a paradigm, prompts) are read together, and "
        "what they share is read once. A GPT-2 of 124M weights scored six paradigms of BLiMP on two cores "
        f"{ours / minicons:.1f} times as fast as minicons and {ours / harness:.1f} times as fast as "
        f"lm-evaluation-harness, in bf16 {bf16 / minicons:.1f} and {bf16 / harness:.1f} times, and a BERT of 110M "
        f"{bert[1]} times as fast as minicons; in fp32 the sums of all three agree to {differ}."
    )
    return wrapped(text)


def reproduced() -> str:
    """Return the number of the papers' statements that follow from their published accuracies."""
    checks = pd.concat([paper.checks for paper in reproduce()])
    agrees = checks["agrees"].astype(bool)
    text = (
        "`python -m analysis published=true` reproduces the papers' own tables and figures from their published "
        "accuracies, with the functions that analyse your studies, and states for each number in a paper whether it "
        f"follows: {agrees.sum()} of {len(checks)} do, {(agrees & checks['chosen'].astype(bool)).sum()} of them by our "
        "choice of paradigms that the paper does not name. The others are listed with both numbers."
    )
    return wrapped(text)


def filtered_corpora() -> str:
    """Return the changes of filtered-corpus training in what tests the construction, theirs beside ours."""
    table = pd.read_csv(RESULTS / "filtered_corpus.csv")
    rows = table[table["name"] == "tests the construction"]
    lines = ["| corpus without | LSTM: ours, 95% interval | theirs | Transformer: ours, 95% interval | theirs |"]
    lines.append("| --- | --- | ---: | --- | ---: |")
    for corpus, of in rows.groupby("corpus"):
        cells = []
        for arch in ("lstm", "transformer"):
            row = of[of["arch"] == arch].iloc[0]
            digits = supported_digits(row["low"], row["high"])
            limits = interval_text(row["low"], row["high"], digits=digits)
            ours = slope_text(row["difference"], digits=3)
            cells += [f"{ours} {limits}", slope_text(row["published"], digits=3)]
        lines.append(f"| {corpus} | {' | '.join(cells)} |")
    cells = table[table["name"] == "all paradigms"]
    seeds = table[table["name"] == "correlation of seeds"].set_index("arch")["difference"]
    text = (
        f"All {cells['paradigms'].sum():,.0f} changes (of a paradigm, a corpus and an architecture) are those of the "
        f"authors' file: the largest difference is {cells['differ'].max():.12f}. Accuracies of one seed on a filtered "
        f"and on the full corpus do not go together (mean correlation {slope_text(seeds['lstm'], digits=2)} for LSTMs, "
        f"{slope_text(seeds['transformer'], digits=2)} for Transformers), so the groups are treated as independent."
    )
    return "\n".join([*lines, "", wrapped(text)])


def others_statements() -> str:
    """Return the statements of papers whose published tables were refitted, with our numbers and verdicts."""
    table = pd.read_csv(RESULTS / "others" / "statements.csv")
    lines = ["| table | statement | quantity | ours, 95% interval | in the table | verdict |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for row in table.to_dict("records"):
        limits = interval_text(row["low"], row["high"], digits=3) if pd.notna(row["low"]) else "no interval"
        stated = f"{row['statement']} ({row['place']})"
        why = f": {row['why']}" if pd.notna(row["why"]) else ""
        ours = f"{slope_text(row['ours'], digits=3)} {limits}"
        cells = (row["table"], stated, row["quantity"], ours, row["in_table"], f"{row['verdict']}{why}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


BLOCKS: dict[str, Callable[[], str]] = {
    "output of the demo": demo_output,
    "first finding of blimp_gpu": first_finding,
    "minimal pair of the demo": minimal_pair,
    "findings of blimp_cpu": lambda: quotations(*analysed()),
    **{f"findings of {study}": partial(_findings_of, study) for study in (FAMILIES, LONG, GPU)},
    **{f"models of {study}": partial(models, study) for study in (FAMILIES, LONG, GPU)},
    "effects of ablation_small": lambda: quoted(effects_found()),
    "paradigms of ablation_small": direct_table,
    "slopes of blimp_cpu": beside_published,
    "training of blimp_cpu": trained,
    "speed of training": training_speed,
    "speed of scoring": scoring_speed,
    "published numbers": reproduced,
    **CONSTRUCTION_BLOCKS,
    "filtered corpora": filtered_corpora,
    "statements of others": others_statements,
    **COVERAGE_BLOCKS,
    **ACQUISITION_BLOCKS,
    **PEOPLE_BLOCKS,
    **INTERVAL_BLOCKS,
}

if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_results(page.read_text(encoding="utf-8")), encoding="utf-8")
