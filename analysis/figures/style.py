"""Define the look of figures: colours, dashes, shapes, axes and fonts."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

Chart = dict[str, Any]  # a Vega-Lite specification (https://vega.github.io/vega-lite/docs/spec.html)

# Six hues that differ clearly for any colour vision. The CIEDE2000 difference between any two is at least 18, or at
# least 10 for readers without one kind of cones (Machado et al. 2009). Their contrast is 3 or more on light and dark
# pages. A seventh name gets the first hue again, with a different dash and shape.
HUES = ("#0050d4", "#d27d05", "#00a468", "#874972", "#ab2919", "#8f70c7")
DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
GREY = "#8a8a8a"
TEXT_GREY = "#666666"  # small text needs more contrast than a line (WCAG 2.2, 1.4.3)
LABEL_SIZE = 11  # font size in pixels of the names and numbers next to axes and lines
CHANCE = 0.5
_LOOK = {
    "font": "Helvetica, Arial, Liberation Sans, sans-serif",
    "background": "white",
    "view": {"strokeWidth": 0},
    "axis": {"labelFontSize": LABEL_SIZE, "titleFontSize": 12, "titleFontWeight": "normal", "gridOpacity": 0.35},
    "title": {"fontSize": 13, "anchor": "start"},
    "legend": {"labelFontSize": 12, "symbolSize": 90},
}


def looks_of(names: Sequence[str], colours: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Return one row per name with the columns name, colour, dash and shape. `colours` overrides colours by name."""
    rows = []
    for place, name in enumerate(names):
        lap = place // len(HUES)
        colour = (colours or {}).get(name, HUES[place % len(HUES)])
        rows.append((name, colour, DASHES[lap % len(DASHES)], SHAPES[(place + lap) % len(SHAPES)]))
    return pd.DataFrame(rows, columns=["name", "colour", "dash", "shape"])


def layer(table: pd.DataFrame, mark: str, encoding: Mapping[str, Any], **look: Any) -> Chart:
    """Return a layer of marks from the rows of a table. Missing numbers become null."""
    values = json.loads(table.to_json(orient="records", double_precision=15))
    return {"data": {"values": values}, "mark": {"type": mark, **look}, "encoding": encoding}


def number(column: str, **options: Any) -> dict[str, Any]:
    """Return the encoding of a column of numbers, such as {"y": number("accuracy")}."""
    return {"field": column, "type": "quantitative", **options}


def text(column: str, **options: Any) -> dict[str, Any]:
    """Return the encoding of a column of names."""
    return {"field": column, "type": "nominal", **options}


def styled(column: str, looks: pd.DataFrame, *looks_like: str, legend: bool = False) -> dict[str, Any]:
    """Return the encodings that give each name in a column its colour, dash or shape from `looks`.

    `looks_like` lists which of "colour", "dash" and "shape" to encode. A legend above the panel has about 90 characters
    per line.
    """
    kinds = {"colour": "color", "dash": "strokeDash", "shape": "shape"}
    columns = max(1, int(90 // (6 + looks["name"].str.len().max()))) if legend else 0
    above = {"title": None, "orient": "top", "labelLimit": 400, "symbolOpacity": 1, "columns": columns}
    scales = {look: {"domain": [*looks["name"]], "range": [*looks[look]]} for look in looks_like}
    return {kinds[look]: text(column, scale=scale, legend=above if legend else None) for look, scale in scales.items()}


def size_axis(sizes: Iterable[float], unit: str) -> dict[str, Any]:
    """Return a logarithmic axis for the column `sample_words`. It labels as many sizes as there is room for."""
    sizes = sorted(set(map(float, sizes)))
    titles = {"words seen": "Words seen in training", "steps": "Steps of training", "tokens": "Tokens of training"}
    scale = {"type": "log", "base": 2, "nice": False, "domain": [sizes[0] / 1.12, sizes[-1] * 1.12]}
    axis = {
        "values": sizes,
        "labelExpr": "replace(format(datum.value, '.3~s'), 'G', 'B')",  # 125k, 2M, 1B
        "labelOverlap": "parity",
        "labelSeparation": 4,
        "title": titles.get(unit, f"{unit[:1].upper()}{unit[1:]} of training text"),
        "grid": False,
    }
    return number("sample_words", scale=scale, axis=axis)


def accuracy_domain(*accuracies: pd.Series, chance: float = CHANCE) -> tuple[float, float]:
    """Return the ends of an accuracy axis, in whole tenths. It always shows chance, with a tenth on either side."""
    values = np.concatenate([of.to_numpy(dtype=np.float64) for of in accuracies])
    low, high = np.floor(np.nanmin(values) * 10 + 1e-9) / 10, np.ceil(np.nanmax(values) * 10 - 1e-9) / 10
    around = np.floor(chance * 10 - 1 + 1e-9) / 10, np.ceil(chance * 10 + 1 - 1e-9) / 10
    return float(max(0.0, min(low, around[0]))), float(min(1.0, max(high, around[1])))


def accuracy_axis(domain: tuple[float, float], small: bool, chance: float = CHANCE) -> dict[str, Any]:
    """Return an axis for the column `accuracy`, whose tick at chance (if it has one) has the label "chance"."""
    step = 0.1 if domain[1] - domain[0] < (0.45 if small else 0.85) else 0.25
    first = np.ceil(domain[0] / step - 1e-9) * step
    ticks = [round(float(tick), 3) for tick in np.arange(first, domain[1] + 1e-9, step)]
    named = f"abs(datum.value - {chance}) < 1e-6 ? 'chance' : format(datum.value, '.2~f')"
    # Vega drops every other tick if there are more than tickCount.
    axis = {"title": "Accuracy", "values": ticks, "tickCount": len(ticks), "labelExpr": named}
    return number("accuracy", scale={"domain": [*domain], "nice": False, "zero": False}, axis=axis)


def finished(chart: Chart) -> Chart:
    """Return a chart with the common fonts, axes and background."""
    return {**chart, "config": _LOOK}
