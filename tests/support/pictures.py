"""The pictures in README and docs/, drawn from committed tables.

python -m tests.support.pictures    writes them; those of a study stand beside its tables in analysis/results/
"""

import re
from collections.abc import Callable
from functools import partial

import pandas as pd
import vl_convert

from analysis.config import FigureConfig
from analysis.figures.charts import curve_chart
from analysis.figures.files import figure
from analysis.figures.style import GREY, HUES, Chart, finished, layer, number, text
from analysis.sections import curves
from pairscale.files import write_text
from tests.support import ROOT
from tests.support.ablation_tables import effects_picture
from tests.support.bench_pages import bench_row, faster
from tests.support.committed_results import ABLATION, CPU, FAMILIES, GPU, LONG, committed_results

_NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")
_PADDING = {"left": 30, "right": 10, "top": 5, "bottom": 5}  # pixels: fonts of other machines are wider


def overview(study: str) -> str:
    """Return the overall accuracies of a study's models, beside published ones, as SVG."""
    results = committed_results(study)
    chart = curve_chart(results.units, results.lines, results.looks, curves.levels(results), labelled=True)
    return figure([chart], FigureConfig(height="2.8in"), 1)


def phenomena(study: str) -> str:
    """Return a panel for each phenomenon of a study, as SVG."""
    exhibit = curves.phenomena(committed_results(study))
    assert exhibit is not None
    return figure(list(exhibit.drawn.values()), FigureConfig(), exhibit.columns)


def speed_chart() -> Chart:
    """Return how many times as fast as others pairscale trains and scores, by the tables of docs/benchmarks.md."""
    rows = [(f"{name} / authors' script", float(faster(bench_row(name)[3])), "training") for name in (
        "LSTM, fp32", "LSTM, bf16", "Transformer-XL, fp32", "Transformer-XL, bf16"
    )]  # fmt: skip
    for name in ("minicons 0.3.39", "lm-evaluation-harness 0.4.13"):
        rows.append((f"GPT-2, fp32 / {name}", float(faster(bench_row(name)[3])), "scoring"))
    table = pd.DataFrame(rows, columns=["what", "factor", "of"])
    scale = {"domain": ["training", "scoring"], "range": list(HUES[:2])}
    place = {
        "x": number("factor", title="times as fast"),
        "y": text("what", title=None, sort=None, axis={"labelLimit": 400}),
    }
    layers = [
        layer(table, "bar", {**place, "color": text("of", scale=scale, legend={"title": None})}, height=12),
        layer(
            table, "text", {**place, "x": number("factor"), "text": number("factor", format=".1f")}, align="left", dx=4
        ),
        layer(pd.DataFrame({"factor": [1]}), "rule", {"x": number("factor")}, color=GREY, strokeDash=[3, 3]),
    ]
    return {"layer": layers, "width": 340, "padding": _PADDING}


def speed() -> str:
    """Return the chart of speeds as SVG."""
    return vl_convert.vegalite_to_svg(finished(speed_chart()))


PICTURES: dict[str, Callable[[], str]] = {
    **{f"analysis/results/{study}/overview.svg": partial(overview, study) for study in (CPU, FAMILIES, LONG, GPU)},
    **{f"analysis/results/{study}/phenomena.svg": partial(phenomena, study) for study in (LONG, GPU)},
    f"analysis/results/{ABLATION}/effects.svg": effects_picture,
    "docs/pictures/speed.svg": speed,
}


def parts_of(svg: str) -> tuple[str, list[float]]:
    """Return what an SVG file says without its numbers, and these."""
    return _NUMBER.sub("#", svg), [float(number) for number in _NUMBER.findall(svg)]


if __name__ == "__main__":
    for picture, draw in PICTURES.items():
        write_text(ROOT / picture, draw())
