"""Blocks of docs/statistics.md: how often intervals contain the truth, and what changed in committed studies."""

import pandas as pd

from tests.support import ROOT, wrapped

RESULTS = ROOT / "analysis" / "results"
OTHERS = ("OLS, t(R - 2)", "HC2, Bell-McCaffrey", "bootstrap of runs")


def _cell(row: pd.Series) -> str:
    none = f" ({row['none']:.0%} have none)" if row["none"] >= 0.01 else ""
    return f"{row['covered']:.1%}, {row['width']:.2f}{none}"


def interval_coverage() -> str:
    """Return coverage and width of slopes by design: pairscale's interval and others."""
    table = pd.read_csv(RESULTS / "coverage.csv")
    slopes = table[table["quantity"] == "slope"]
    lines = [f"| sizes x runs | pairscale | {' | '.join(OTHERS)} |", f"| --- |{' ---: |' * (1 + len(OTHERS))}"]
    for design, of in slopes.groupby("design", sort=False):
        cells = [_cell(of[of["used"]].iloc[0])]
        for method in OTHERS:
            rows = of[of["method"] == method]
            cells.append(_cell(rows.iloc[0]) if len(rows) else "-")
        lines.append(f"| {design} | {' | '.join(cells)} |")
    return "\n".join(lines)


def other_coverage() -> str:
    """Return the coverage of differences and of slopes on new items, and a sentence about all intervals."""
    table = pd.read_csv(RESULTS / "coverage.csv")
    used = table[table["used"]]
    others = used[used["quantity"] != "slope"]
    lines = ["| quantity | design | pairscale |", "| --- | --- | ---: |"]
    lines += [f"| {row['quantity']} | {row['design']} | {_cell(row)} |" for _, row in others.iterrows()]
    text = (
        f"{used['studies'].max():,} simulated studies per design ({used['studies'].min():,} for new items). "
        f"pairscale's {len(used)} intervals contain the truth in {used['covered'].min():.1%} to "
        f"{used['covered'].max():.1%} of the studies; {(used['covered'] < 0.94).sum()} of them in less than 94%."
    )
    return "\n".join([*lines, "", wrapped(text)])


INTERVAL_BLOCKS = {"coverage of intervals": interval_coverage, "coverage of other intervals": other_coverage}
