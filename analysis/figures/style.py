"""The look of figures: colours, dashes, shapes, axes, fonts, and the size of a panel."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

Chart = dict[str, Any]  # a specification of Vega-Lite (https://vega.github.io/vega-lite/docs/spec.html)

# Six hues, far apart for any colour vision, with enough contrast on a light and a dark page (test_colours.py). A
# seventh name has the first hue again, with another dash and shape.
HUES = ("#0050d4", "#d27d05", "#00a468", "#874972", "#ab2919", "#8f70c7")
DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
GREY = "#8a8a8a"
TEXT_GREY = "#666666"  # small text needs more contrast than a line (WCAG 2.2, 1.4.3)
LABEL_SIZE = 11  # pixels: the font of names and numbers beside axes and lines
CHANCE = 0.5
_MOST_TICKS = 8  # on an axis of sizes
_TICK = 38  # pixels that a tick's number takes on a horizontal axis
# 125000 -> 125k, 2000000 -> 2M
_SIZE_LABEL = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '.3~g') + 'B' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '.3~g') + 'M' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '.3~g') + 'k' : datum.value"
)
_LOOK = {
    "font": "Helvetica, Arial, Liberation Sans, sans-serif",
    "background": "white",
    "view": {"strokeWidth": 0},
    "axis": {"labelFontSize": LABEL_SIZE, "titleFontSize": 12, "titleFontWeight": "normal", "gridOpacity": 0.35},
    "title": {"fontSize": 13, "anchor": "start"},
    "legend": {"labelFontSize": 12, "symbolSize": 90},
}


@dataclass(frozen=True)
class Frame:
    """The size of a panel in pixels; a width of None is a panel of the page, which is as wide as its column."""

    width: int | None = None
    height: int | None = None

    @property
    def on_page(self) -> bool:
        return self.width is None

    @property
    def span(self) -> int | str:
        """The width as Vega-Lite writes it."""
        return "container" if self.width is None else self.width

    def height_or(self, usual: int) -> int:
        """Return the height of a panel of curves: the one asked for, else `usual`, but less in a narrow file."""
        if self.height is not None:
            return self.height
        return usual if self.width is None else int(np.clip(0.8 * self.width, 0.45 * usual, usual))

    def ticks(self, most: int) -> int:
        """Return how many ticks have room on a horizontal axis, 2 to `most`."""
        return most if self.width is None else int(np.clip(self.width // _TICK, 2, most))


PAGE = Frame()


def looks_of(names: Sequence[str], colours: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Return the columns name, colour, dash and shape, one row per name; `colours` overrides some of them."""
    chosen = colours or {}
    rows = [
        (name, chosen.get(name, HUES[i % len(HUES)]), DASHES[i // len(HUES) % len(DASHES)],
         SHAPES[(i + i // len(HUES)) % len(SHAPES)])
        for i, name in enumerate(names)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["name", "colour", "dash", "shape"])


def layer(table: pd.DataFrame, mark: str, encoding: Mapping[str, Any], **look: Any) -> Chart:
    """Return a layer of marks, one or more for the rows of a table; missing numbers are null."""
    values = json.loads(table.to_json(orient="records", double_precision=15))
    return {"data": {"values": values}, "mark": {"type": mark, **look}, "encoding": encoding}


def number(column: str, **options: Any) -> dict[str, Any]:
    """Return the encoding of a column of numbers, such as {"y": number("accuracy")}."""
    return {"field": column, "type": "quantitative", **options}


def text(column: str, **options: Any) -> dict[str, Any]:
    """Return the encoding of a column of names."""
    return {"field": column, "type": "nominal", **options}


def styled(column: str, looks: pd.DataFrame, *looks_like: str, legend: bool = False) -> dict[str, Any]:
    """Return the encodings by which each name of a column has its look.

    Args:
        column: the column of names.
        looks: the table of `looks_of`.
        looks_like: those of the columns colour, dash and shape that the mark has.
        legend: draw a legend above the panel.
    """
    kinds = {"colour": "color", "dash": "strokeDash", "shape": "shape"}
    above = {"title": None, "orient": "top", "labelLimit": 400, "symbolOpacity": 1, "columns": 3} if legend else None
    return {
        kinds[look]: text(column, scale={"domain": [*looks["name"]], "range": [*looks[look]]}, legend=above)
        for look in looks_like
    }


def amount_of(unit: str) -> str:
    """Name an axis of sizes: "Words of training text"."""
    names = {"words seen": "Words seen in training", "steps": "Steps of training", "tokens": "Tokens of training"}
    return names.get(unit, f"{unit[:1].upper()}{unit[1:]} of training text")


def size_axis(sizes: Iterable[float], unit: str, frame: Frame, titled: bool = True) -> dict[str, Any]:
    """Return a logarithmic axis of the column `sample_words`."""
    sizes = sorted(set(map(float, sizes)))
    ticks = sizes[:: -(-len(sizes) // frame.ticks(_MOST_TICKS))]
    scale = {"type": "log", "base": 2, "nice": False, "domain": [sizes[0] / 1.12, sizes[-1] * 1.12]}
    axis = {"values": ticks, "labelExpr": _SIZE_LABEL, "title": amount_of(unit) if titled else None, "grid": False}
    return number("sample_words", scale=scale, axis=axis)


def accuracy_domain(*accuracies: pd.Series) -> tuple[float, float]:
    """Return an axis of whole tenths around accuracies that includes .4 to .6, so that chance is on it."""
    values = np.concatenate([of.to_numpy(dtype=np.float64) for of in accuracies])
    low, high = np.floor(np.nanmin(values) * 10 + 1e-9) / 10, np.ceil(np.nanmax(values) * 10 - 1e-9) / 10
    return float(max(0.0, min(low, 0.4))), float(min(1.0, max(high, 0.6)))


def accuracy_axis(domain: tuple[float, float], titled: bool, small: bool) -> dict[str, Any]:
    """Return an axis of the column `accuracy` with a tick at chance, which it names."""
    step = 0.1 if domain[1] - domain[0] < (0.45 if small else 0.85) else 0.25
    first = np.ceil(domain[0] / step - 1e-9) * step
    ticks = [round(float(tick), 3) for tick in np.arange(first, domain[1] + 1e-9, step)]
    named = f"abs(datum.value - {CHANCE}) < 1e-6 ? 'chance' : format(datum.value, '.2~f')"
    # Vega drops every other tick if there are more than tickCount.
    axis = {"title": "Accuracy" if titled else None, "values": ticks, "tickCount": len(ticks), "labelExpr": named}
    return number("accuracy", scale={"domain": [*domain], "nice": False, "zero": False}, axis=axis)


def finished(chart: Chart) -> Chart:
    """Return a chart with the common look."""
    return {**chart, "config": _LOOK}
