"""The look of figures: colours, dashes, shapes, axes, fonts, and the size of a panel."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

Chart = Any  # Altair's classes of charts share no useful base

# Six hues, far apart for any colour vision, with enough contrast on a light and a dark page (test_colours.py). A
# seventh name has the first hue again, with another dash and shape.
HUES = ("#0050d4", "#d27d05", "#00a468", "#874972", "#ab2919", "#8f70c7")
DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
GREY = "#8a8a8a"
TEXT_GREY = "#666666"  # small text needs more contrast than a line (WCAG 2.2, 1.4.3)
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
LABEL_SIZE = 11  # pixels: the font of names and numbers beside axes and lines
MOST_TICKS = 8  # on an axis of sizes
TICK = 38  # pixels that a tick's number takes on a horizontal axis
CHANCE_LABEL = "abs(datum.value - 0.5) < 1e-6 ? 'chance' : format(datum.value, '.2~f')"
SIGNED_LABEL = "datum.value ? format(datum.value, '+.4~f') : '0'"
# 125000 -> 125k, 2000000 -> 2M
SIZE_LABEL = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '.3~g') + 'B' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '.3~g') + 'M' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '.3~g') + 'k' : datum.value"
)


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
        return most if self.width is None else int(np.clip(self.width // TICK, 2, most))


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


def channel(kind: Any, column: str, looks: pd.DataFrame, look: str, legend: bool = False) -> Any:
    """Return an Altair channel (colour, dash, shape) that gives each name of a column its look."""
    scale = alt.Scale(domain=list(looks["name"]), range=list(looks[look]))
    above = alt.Legend(title=None, orient="top", labelLimit=400, symbolOpacity=1, columns=3) if legend else None
    return kind(f"{column}:N", scale=scale, legend=above)


def amount_of(unit: str) -> str:
    """Name an axis of sizes: "Words of training text"."""
    names = {"words seen": "Words seen in training", "steps": "Steps of training", "tokens": "Tokens of training"}
    return names.get(unit, f"{unit[:1].upper()}{unit[1:]} of training text")


def size_axis(sizes: Iterable[float], unit: str, frame: Frame, titled: bool = True) -> alt.X:
    """Return a logarithmic axis of the column `sample_words`."""
    sizes = sorted(set(map(float, sizes)))
    ticks = sizes[:: -(-len(sizes) // frame.ticks(MOST_TICKS))]
    scale = alt.Scale(type="log", base=2, nice=False, domain=[sizes[0] / 1.12, sizes[-1] * 1.12])
    axis = alt.Axis(values=ticks, labelExpr=SIZE_LABEL, title=amount_of(unit) if titled else None, grid=False)
    return alt.X("sample_words:Q", scale=scale, axis=axis)


def accuracy_domain(*accuracies: pd.Series) -> tuple[float, float]:
    """Return an axis of whole tenths around accuracies that includes .4 to .6, so that chance is on it."""
    values = np.concatenate([of.to_numpy(dtype=np.float64) for of in accuracies])
    low, high = np.floor(np.nanmin(values) * 10 + 1e-9) / 10, np.ceil(np.nanmax(values) * 10 - 1e-9) / 10
    return float(max(0.0, min(low, 0.4))), float(min(1.0, max(high, 0.6)))


def accuracy_axis(
    domain: tuple[float, float], kind: Any = alt.Y, column: str = "accuracy", titled: bool = True, small: bool = False
) -> Any:
    """Return an axis of accuracies with a tick at chance, which it names."""
    step = 0.1 if domain[1] - domain[0] < (0.45 if small else 0.85) else 0.25
    first = np.ceil(domain[0] / step - 1e-9) * step
    ticks = [round(float(tick), 3) for tick in np.arange(first, domain[1] + 1e-9, step)]
    # Vega drops every other tick if there are more than tickCount.
    axis = alt.Axis(title="Accuracy" if titled else None, values=ticks, tickCount=len(ticks), labelExpr=CHANCE_LABEL)
    return kind(f"{column}:Q", scale=alt.Scale(domain=list(domain), nice=False, zero=False), axis=axis)


_LOOK = alt.Config(
    font=FONT,
    background="white",
    view=alt.ViewConfig(strokeWidth=0),
    axis=alt.AxisConfig(labelFontSize=LABEL_SIZE, titleFontSize=12, titleFontWeight="normal", gridOpacity=0.35),
    title=alt.TitleConfig(fontSize=13, anchor="start"),
    legend=alt.LegendConfig(labelFontSize=12, symbolSize=90),
)


def finished(chart: Any) -> dict[str, Any]:
    """Return a chart as a Vega-Lite specification with the common look."""
    chart.config = _LOOK  # chart.configure would copy the chart
    specification: dict[str, Any] = chart.to_dict(validate=False)  # its parts are valid, and checking takes seconds
    return specification


def schema_version() -> str:
    """Return the version of Vega-Lite of the specifications, as vl-convert names it."""
    return alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]
