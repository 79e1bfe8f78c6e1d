"""The charts of docs/benchmarks.md, of its own tables and of analysis/results/coverage.csv (`make pictures`)."""

import altair as alt
import pandas as pd

from analysis.curves.fit.coverage import MOST_WITHOUT
from analysis.exhibits.figures.style import GREY, HUES, Chart
from tests.support.committed_results import RESULTS
from tests.support.readme_blocks import bench_row, faster

LEVEL = 95  # per cent, of the intervals that are simulated
PADDING = {"left": 30, "right": 10, "top": 5, "bottom": 5}  # pixels: fonts of other machines are wider
QUANTITIES = {  # of coverage.csv -> as the chart names them
    ("slope", "these pairs"): "slope",
    ("slope", "new pairs too"): "new pairs too",
    ("difference of slopes", "these pairs"): "difference",
    ("accuracy at the largest size", "these pairs"): "accuracy",
}


def coverage_chart() -> Chart:
    """Return how often 95% intervals in use contain the truth, a row a design, with two standard errors."""
    table = pd.read_csv(RESULTS / "coverage.csv")
    table = table[table["used"] & (table["level"] == "overall") & (table["none"] <= MOST_WITHOUT)]
    for name, errors in (("percent", 0), ("low", -2), ("high", 2)):
        table[name] = (100 * (table["covered"] + errors * table["standard_error"])).clip(upper=100)
    designs = alt.Scale(domain=list(table["design"].unique()))
    panels: list[Chart] = []
    for (quantity, question), name in QUANTITIES.items():
        rows = table[(table["quantity"] == quantity) & (table["question"] == question)]
        axis = alt.Axis(labels=not panels, labelLimit=300)
        x = alt.X(
            "percent:Q",
            title="% of studies",
            scale=alt.Scale(domain=[89, 100], zero=False),
            axis=alt.Axis(values=[90, 95, 100]),
        )
        base = alt.Chart(rows).encode(x, alt.Y("design:N", title=None, scale=designs, axis=axis))
        nominal = base.mark_rule(color=GREY, strokeDash=[3, 3]).encode(x=alt.datum(LEVEL), y=alt.Y())
        errors = base.mark_rule(color=HUES[0]).encode(x="low:Q", x2="high:Q")
        panels.append(
            alt.layer(nominal, errors, base.mark_point(filled=True, opacity=1, color=HUES[0])).properties(
                title=name, width=130
            )
        )
    return alt.hconcat(*panels).properties(padding=PADDING)


def speed_chart() -> Chart:
    """Return how many times as fast as others pairscale trains and scores, on the machine of the tables."""
    rows = [(f"{name} / authors' script", float(faster(bench_row(name)[3])), "training") for name in (
        "LSTM, fp32", "LSTM, bf16", "Transformer-XL, fp32", "Transformer-XL, bf16"
    )]  # fmt: skip
    for name in ("minicons 0.3.39", "lm-evaluation-harness 0.4.13"):
        rows.append((f"GPT-2, fp32 / {name}", float(faster(bench_row(name)[3])), "scoring"))
    table = pd.DataFrame(rows, columns=["what", "factor", "of"])
    kinds = ["training", "scoring"]
    colour = alt.Color("of:N", scale=alt.Scale(domain=kinds, range=list(HUES[:2])), legend=alt.Legend(title=None))
    y = alt.Y("what:N", title=None, sort=None, axis=alt.Axis(labelLimit=400))
    bars = alt.Chart(table).mark_bar(height=12).encode(alt.X("factor:Q", title="times as fast"), y, colour)
    text = (
        alt.Chart(table)
        .mark_text(align="left", dx=4)
        .encode(alt.X("factor:Q"), y, text=alt.Text("factor:Q", format=".1f"))
    )
    equal = alt.Chart(pd.DataFrame({"factor": [1]})).mark_rule(color=GREY, strokeDash=[3, 3]).encode(x="factor:Q")
    return alt.layer(bars, text, equal).properties(width=340, padding=PADDING)
