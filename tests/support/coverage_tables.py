"""Blocks of docs/: how often intervals contain the truth of simulated studies, and the power of planned grids."""

import pandas as pd
from scipy.stats import binom

from analysis.config import CONSERVATIVE
from analysis.curves.ablations.effects import FEW_DIFFERING
from analysis.curves.coverage import MOST_WITHOUT
from analysis.curves.groups import ROUGH
from tests.support import wrapped
from tests.support.committed_results import RESULTS

ERROR_RATES = ["false alarm", "equivalence"]
# Columns of the table of `slopes_coverage`: quantities and questions of coverage.csv.
SLOPES = {
    "slope, these pairs": [("slope", "these pairs")],
    "new pairs too": [("slope", "new pairs too")],
    "difference": [("difference of slopes", "these pairs"), ("difference, same model", "these pairs")],
    "same texts": [("difference, same texts", "these pairs")],
    "accuracies": [("accuracy at the smallest size", "these pairs"), ("accuracy at the largest size", "these pairs")],
    "lack of fit": [("lack of fit", "these pairs")],
}


def slopes_coverage() -> str:
    """Return how often intervals contain the truth by design: the lowest to the highest, overall and a paradigm."""
    table = pd.read_csv(RESULTS / "coverage.csv", dtype={"runs": str})
    table = table[table["used"] & (table["none"] <= MOST_WITHOUT)]
    shown = table[table["level"].isin(["overall", "paradigm"])].set_index(["quantity", "question"])
    lines = [f"| design | {' | '.join(SLOPES)} |", f"| --- |{' ---: |' * len(SLOPES)}"]
    for design, of in shown.groupby("design", sort=False):
        cells = []
        for kinds in SLOPES.values():
            covered = of.loc[of.index.isin(kinds), "covered"] * 100
            cells.append(f"{covered.min():.1f} to {covered.max():.1f}" if len(covered) else "–")
        lines.append(f"| {design} | {' | '.join(cells)} |")
    slopes = table[table["quantity"].isin(["slope", "difference of slopes", "difference, same texts"])]
    within = slopes["covered"].between(0.93, 0.97)
    text = (
        f"{table['studies'].min():,} studies a design. Of {len(slopes):,} intervals of slopes and of their "
        f"differences, at three levels, {within.sum():,} contain the truth in 93 to 97%, "
        f"{(slopes['covered'] > 0.97).sum():,} in more, {(slopes['covered'] < 0.93).sum():,} in less; the lowest of "
        f"all intervals in use in {table['covered'].min():.2%}."
    )
    return "\n".join([*lines, "", wrapped(text)])


def ablation_coverage() -> str:
    """Return how often intervals of ablations contain the truth, by quantity: the lowest to the highest design."""
    table = pd.read_csv(RESULTS / "ablation_coverage.csv")
    few = (table["differing"] < FEW_DIFFERING) & ~table["quantity"].isin(ERROR_RATES)
    wide, table = table.loc[few, "covered"], table[~few]
    lines = ["| quantity | should be | overall | paradigms that test the construction | worst paradigm |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for (quantity, question), of in table.groupby(["quantity", "question"], sort=False):
        cells = []
        for level in ("overall", "direct paradigms", "worst paradigm"):
            covered = of.loc[of["level"] == level, "covered"]
            cells.append(f"{covered.min():.1%} to {covered.max():.1%} (median {covered.median():.1%})")
        rate = quantity in ERROR_RATES
        lines.append(f"| {quantity}, {question} | {'at most 5%' if rate else '95%'} | {' | '.join(cells)} |")
    two = table.loc[(table["design"] == "3x2") & ~table["quantity"].isin(ERROR_RATES), "covered"]
    text = (
        f"{table['design'].nunique()} designs, {table['studies'].max():,} simulated studies each. With two seeds a "
        f"size intervals contain the truth in {two.min():.1%} to {two.max():.1%}. Not in the rows of "
        f"95%: quantities of which fewer than {FEW_DIFFERING} judgements differ between paired runs (near the ceiling, "
        f"with ten pairs a paradigm), whose intervals contain the truth in {wide.min():.1%} to {wide.max():.1%}."
    )
    return "\n".join([*lines, "", wrapped(text)])


def lexical_coverage() -> str:
    """Return how often intervals for new pairs and for new words contain the truth for new words, by design."""
    table = pd.read_csv(RESULTS / "lexical_coverage.csv")
    columns = [(of, interval) for of in ("accuracy", "slope") for interval in ("new pairs", "new words")]
    lines = [f"| design | {' | '.join(f'{of}, {interval}' for of, interval in columns)} |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for design, rows in table.groupby("design", sort=False):
        cells = rows.set_index(["quantity", "interval"])["coverage"]
        lines.append(f"| {design} | {' | '.join(f'{cells[column]:.1%}' for column in columns)} |")
    text = (
        f"{table['studies'].max():,} simulated studies each, of four sizes and three seeds unless a row says otherwise."
    )
    return "\n".join([*lines, "", wrapped(text)])


def designs_coverage() -> str:
    """Return how often default intervals contain the truth by design: the lowest to the highest unit, in per cent."""
    table = pd.read_csv(RESULTS / "designs_coverage.csv")
    kinds = [(quantity, question) for quantity in ("slope", "difference") for question in table["question"].unique()]
    lines = [
        "| design | slope, these pairs | new pairs too | difference, these pairs | new pairs too |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for design, of in table.groupby("design", sort=False):
        cells = []
        for kind in kinds:
            part = of[(of["quantity"] == kind[0]) & (of["question"] == kind[1])]
            given = part[part["none"] <= MOST_WITHOUT]
            ends = "" if given.empty else f"{100 * given['covered'].min():.1f} to {100 * given['covered'].max():.1f}"
            without = len(part) - len(given)
            marks = [r"\*" if part["caution"].any() else "", f"({without} without)" if without else ""]
            cells.append(" ".join(filter(None, [ends, *marks])))
        lines.append(f"| {design} | {' | '.join(cells)} |")
    asked = table["design"].str.endswith(", conservative limits")
    default, wide = table[~asked], table.loc[asked, "covered"]
    given = default[default["none"] <= MOST_WITHOUT]
    conservative = (default["left_out"] == CONSERVATIVE).sum()
    rough = default.loc[(default["left_out"] == ROUGH) & (default["none"] >= 0.05), "covered_left_out"]
    text = (
        f"{table['studies'].min():,} studies a design; each cell has the lowest and the highest of seven units: "
        f"overall, two phenomena, four paradigms. Of the {len(default):,} default intervals "
        f'{len(default) - len(given)} are left out, with the reason, in more than nine of ten studies ("without"): '
        f"{conservative} as they would be conservative, the others as they would be rough. Of the other "
        f"{len(given):,}, where they are given, {_within(given)}."
    )
    left_out = (
        f"Conservative limits, where a user asks for them (\\*), contain the truth in {wide.min():.1%} to "
        f"{wide.max():.1%}. The rough limits that are left out in one of 20 studies or more would have contained it in "
        f"{rough.min():.0%} to {rough.max():.0%} of these."
    )
    return "\n".join([*lines, "", wrapped(text), "", wrapped(left_out)])


def _within(rows: pd.DataFrame) -> str:
    """Say how many intervals contain the truth in 93 to 97% of the studies that have them, in more and in less."""
    studies = (rows["studies"] * (1 - rows["none"])).round()
    right = (rows["covered"] * studies).round()
    more, less = rows["covered"] > 0.97, rows["covered"] < 0.93
    surely_more = rows[binom.sf(right - 1, studies, 0.97) < 0.025]
    surely_less = (binom.cdf(right, studies, 0.93) < 0.025).sum()
    return (
        f"{len(rows) - more.sum() - less.sum():,} contain it in 93 to 97%, {more.sum()} in more (at most "
        f"{rows['covered'].max():.1%}), {less.sum()} in less (at least {rows['covered'].min():.1%}); by more than "
        f"these studies' error {len(surely_more)} in more ({surely_more['design'].str.contains('x2').sum()} with two "
        f"runs a size), {surely_less} in less"
    )


def lone_runs() -> str:
    """Return the multiples of the error that limits need where a size has one run, beside those in use."""
    table = pd.read_csv(RESULTS / "lone_runs.csv")
    lines = [
        "| runs | in use | needed on a line | bent, varies as much | three times | five times |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for runs, of in table.groupby("runs", sort=False):
        line, bent = (of[of["curve"] == curve].set_index("apart")["needed"] for curve in ("line", "bent"))
        cells = [of["used"].iloc[0], line.max(), *bent]
        lines.append(f"| {runs} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")
    return "\n".join(lines)


def two_runs() -> str:
    """Return how often limits contain the truth with two runs a size, by how their errors are estimated."""
    table = pd.read_csv(RESULTS / "two_runs.csv")
    names = {
        "in use": "in use", "HC3": "errors about the line (HC3)", "own degrees": "spread of each size, own degrees",
        "pooled degrees": "spread of each size, pooled degrees", "closer": "for each unit the closer of HC3 and own",
    }  # fmt: skip
    design = ["sizes", "paradigms", "spread", "among", "curve"]
    widths = table.pivot(index=design, columns="interval", values="width")
    relative = widths.div(widths["in use"], axis=0)
    lines = [
        "| limits | spreads the same in all paradigms | in every second one | width, line | bent a little | late |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, text in names.items():
        of = table[table["interval"] == name].groupby("among")
        ends = [
            f"{100 * low:.1f} to {100 * high:.1f}" for low, high in zip(of["low"].min(), of["high"].max(), strict=True)
        ]
        by_curve = relative[name].groupby("curve").mean()
        cells = [*ends, *(f"{by_curve[curve]:.2f}" for curve in ("line", "little", "late"))]
        lines.append(f"| {text} | {' | '.join(cells)} |")
    designs = len(widths)
    text = (
        f"Per cent of {table['studies'].max():,} studies of each of {designs} designs, the lowest and the highest unit "
        "and design; widths are medians over those in use, means over designs."
    )
    return "\n".join([*lines, "", wrapped(text)])


def hierarchical_coverage() -> str:
    """Return how often intervals of the hierarchical model and default ones contain the truth, and how it sampled."""
    table = pd.read_csv(RESULTS / "hierarchical_coverage.csv")
    levels = ["overall", "phenomenon", "paradigm"]
    lines = [
        f"| studies | {' | '.join(levels)} | left out | width | effective | divergences | refused | CPU s |",
        f"| --- |{' ---: |' * len(levels)} --- |{' ---: |' * 5}",
    ]
    for (design, quantity), of in table.groupby(["design", "quantity"], sort=False):
        by, one = of.set_index("level"), of.iloc[0]
        what = "" if quantity == "slope" else f": {quantity}s"
        held = by["covered"].where(by["none"] <= MOST_WITHOUT, by["covered_left_out"])
        cells = [f"{held[level]:.1%} ({by.loc[level, 'default_covered']:.1%})" for level in levels]
        cells += [
            "" if not by["none"].any() else f"{by['none'].min():.0%} to {by['none'].max():.0%}".replace("100% to ", ""),
            f"{(of['width'] / of['default_width']).mean():.2f}", f"{one['least_effective']:.0f}", one["divergences"],
            one["refused"], f"{one['median_cpu_seconds']:.0f}",
        ]  # fmt: skip
        lines.append(f"| {one['studies']} of {design}{what} | {' | '.join(map(str, cells))} |")
    text = (
        "In brackets: the default analysis, also where it leaves limits out. left out: share of the model's intervals "
        "that a report leaves out; above 90% the table has what these would hold. width: of the default's, mean over "
        "levels. "
        "effective: the fewest effective draws that a slope has of "
        f"{table['draws'].max():,}. divergences: in all. Up to {table['peak_gib'].max():.1f} GiB."
    )
    return "\n".join([*lines, "", wrapped(text)])


def planned_power() -> str:
    """Return the predicted power of planned grids beside that of simulated studies."""
    table = pd.read_csv(RESULTS / "plan_power.csv")
    lines = ["| goal | grid | interval | predicted | simulated | standard error |"]
    lines.append("| --- | --- | --- | ---: | ---: | ---: |")
    for row in table.to_dict("records"):
        shares = " | ".join(f"{row[name]:.1%}" for name in ("predicted", "simulated", "standard_error"))
        lines.append(f"| {row['goal']} | {row['grid']} | {row['interval']} | {shares} |")
    apart = (table["predicted"] - table["simulated"]).abs().max()
    text = (
        f"Sizes x seeds; 100 pairs in each of four paradigms, or of two that test a construction, unless named; "
        f"{table['studies'].min():,} simulated studies a grid. The largest difference is {100 * apart:.1f} points."
    )
    return "\n".join([*lines, "", wrapped(text)])


COVERAGE_BLOCKS = {
    "coverage of slopes": slopes_coverage,
    "coverage of ablations": ablation_coverage,
    "coverage of designs": designs_coverage,
    "lone runs": lone_runs,
    "two runs": two_runs,
    "coverage of new words": lexical_coverage,
    "coverage of the hierarchical model": hierarchical_coverage,
    "power of planned grids": planned_power,
}
