"""The common look of figures: hues, dashes, shapes, axes, legends, fonts, and the size of a panel."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from analysis.exhibits.tables.text import title

Chart = Any  # Altair's classes of charts share no useful base

# Six hues, far apart for any colour vision and of enough contrast on a light and a dark page (test_colours.py); beyond
# six, another dash and shape.
HUES = ("#0050d4", "#d27d05", "#00a468", "#874972", "#ab2919", "#8f70c7")
DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3])
# The names of known phenomena, whose place here is their look in every study: BLiMP's, those of the toy language
# among them, then the further ones of CLiMP.
PHENOMENA = (
    "anaphor_agreement", "argument_structure", "binding", "control_raising", "determiner_noun_agreement", "ellipsis",
    "filler_gap_dependency", "irregular_forms", "island_effects", "npi_licensing", "quantifiers",
    "subject_verb_agreement", "ba", "classifier", "coverb", "head_final", "passive", "verb_complement",
)  # fmt: skip
OF_PAIRS = " · "  # between the names of a curve and of its pairs
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
GREY = "#8a8a8a"
TEXT_GREY = "#666666"  # small text needs more contrast than a line (WCAG 2.2, 1.4.3)
LOOK = ["name", "colour", "dash", "shape"]
LOOKS = len(HUES) * len(DASHES)
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
LEGEND_CHARACTERS = 70  # of a line of the legend above a chart
LABEL_SIZE = 11  # pixels, of the font of names and numbers beside axes and lines
LABEL_GAP = 13  # pixels between two names beside a panel
MIN_HEIGHT = 0.45  # of the height on the page: panels of curves in files
MOST_BANDS = 3  # of lines in one panel: more would hide each other
MOST_TICKS = 8  # on an axis of sizes
TICK = 38  # pixels of a level axis, of a number of five characters and the space beside it
ROUND_TICK = 54  # where ticks are at round numbers, of which Vega takes up to half as many again
_CHANCE = "abs(datum.value - 0.5) < 1e-6"
CHANCE_LABEL = f"{_CHANCE} ? 'chance' : format(datum.value, '.2~f')"
UNDER_CHANCE = f"{_CHANCE} ? ['0.5', 'chance'] : format(datum.value, '.2~f')"  # the next tick may be near
SIGNED_LABEL = "datum.value ? format(datum.value, '+.4~f') : '0'"
# 125000 -> 125k, 2000000 -> 2M
SIZE_LABEL = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '.3~g') + 'B' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '.3~g') + 'M' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '.3~g') + 'k' : datum.value"
)


@dataclass(frozen=True)
class Frame:
    """The size of a panel, in pixels of 1/96 inch.

    width: None on the page, which gives a panel the width that there is, and has legends of its own. height: of panels
    of curves, None: in proportion to the width; charts of rows are as high as their rows.
    """

    width: int | None = None
    height: int | None = None

    @property
    def on_page(self) -> bool:
        return self.width is None

    @property
    def span(self) -> int | str:
        """The width as Vega-Lite writes it."""
        return "container" if self.width is None else self.width

    def height_of_curves(self, most: int, names: int = 0) -> int:
        """Return the height of a panel of curves: that asked for, else, on the page, `most`, else by the width.

        `names`: how many stand beside the panel, and need room.
        """
        needed = LABEL_GAP * (names + 1)
        if self.height is not None:
            return max(needed, self.height)
        if self.width is None:
            return most
        return max(needed, int(np.clip(0.8 * self.width, MIN_HEIGHT * most, most)))

    def ticks(self, most: int, room: int = TICK) -> int:
        """Return how many ticks fit on a level axis, 2 to `most`, each with `room` pixels."""
        return most if self.width is None else int(np.clip(self.width // room, 2, most))


PAGE = Frame()


def style(names: Sequence[str]) -> pd.DataFrame:
    """Return colour, dash and shape of each name, in order: no two of the first LOOKS share colour and dash.

    Names "curve · pairs" of one curve share colour and shape, those of the same pairs a dash.
    """
    parts = [name.split(OF_PAIRS) for name in names]
    curves, pairs = (list(dict.fromkeys(part[i] for part in parts)) for i in (0, -1))
    rows = []
    for name, part in zip(names, parts, strict=True):
        i = curves.index(part[0])
        dash = i // len(HUES) + (pairs.index(part[-1]) if len(part) > 1 else 0)
        rows.append((name, *_look(i, dash)))
    return pd.DataFrame(rows, columns=LOOK)


def phenomenon_style(names: Sequence[str]) -> pd.DataFrame:
    """Return the look of each phenomenon, named as `title` does: the same in every study, whatever else is in it.

    A name that is not in PHENOMENA has the look that its SHA-256 digest chooses or, where another name of `names` has
    that, the next free one.
    """
    unknown = sorted(set(names) - set(PHENOMENA))
    place = {name: PHENOMENA.index(name) for name in names if name in PHENOMENA}
    for name in unknown:
        first = int(sha256(name.encode()).hexdigest(), 16) % LOOKS
        free = [(first + i) % LOOKS for i in range(LOOKS) if (first + i) % LOOKS not in place.values()]
        place[name] = free[0] if free else first
    rows = [(title(name), *_look(place[name], place[name] // len(HUES))) for name in names]
    return pd.DataFrame(rows, columns=LOOK)


def _look(i: int, dash: int) -> tuple[str, list[int], str]:
    shape = SHAPES[(i + i // len(HUES)) % len(SHAPES)]
    return HUES[i % len(HUES)], DASHES[dash % len(DASHES)], shape


def looks(names: Sequence[str], field: str = "group", legend: bool = True) -> tuple[alt.Color, alt.Shape]:
    """Return colours and shapes of the names in a column, with a legend above the chart in as many columns as fit."""
    columns = max(1, LEGEND_CHARACTERS // (4 + max(map(len, names), default=0)))
    above = alt.Legend(title=None, orient="top", labelLimit=400, columns=columns, symbolOpacity=1) if legend else None
    look = style(names)
    colour, shape = (alt.Scale(domain=list(names), range=list(look[of])) for of in ("colour", "shape"))
    return alt.Color(f"{field}:N", scale=colour, legend=above), alt.Shape(f"{field}:N", scale=shape, legend=above)


def amount_of(unit: str) -> str:
    """Name an axis of sizes: "words of training text"."""
    return {"words seen": "words seen in training", "steps": "steps of training"}.get(unit, f"{unit} of training text")


def size_axis(
    field: str,
    sizes: Iterable[float],
    unit: str,
    of: str | None = None,
    ticks: Sequence[float] | None = None,
    most: int = MOST_TICKS,
) -> alt.X:
    """Return a logarithmic axis of amounts of text, counted in `unit`, without a title if they are `of` "".

    `ticks`: in place of up to `most` sizes.
    """
    sizes = sorted(set(sizes))
    ticks = sizes[:: -(-len(sizes) // most)] if ticks is None else ticks
    scale = alt.Scale(type="log", base=2, nice=False, domain=[sizes[0] / 1.12, sizes[-1] * 1.12])
    name = amount_of(unit) if of is None else f"{unit} {of}" if of else ""
    heading = f"{name[:1].upper()}{name[1:]}" or None
    axis = alt.Axis(values=[*map(float, ticks)], labelExpr=SIZE_LABEL, title=heading, grid=False)
    return alt.X(f"{field}:Q", scale=scale, axis=axis)


def accuracy_limits(*accuracies: pd.DataFrame | pd.Series) -> tuple[float, float]:
    """Return limits of an axis: whole tenths around accuracies, no closer than .4 to .6, so that chance is a tick."""
    values = np.concatenate([np.ravel(of.to_numpy(dtype=np.float64)) for of in accuracies])
    low, high = np.floor(np.nanmin(values) * 10 + 1e-9) / 10, np.ceil(np.nanmax(values) * 10 - 1e-9) / 10
    return float(max(0.0, min(low, 0.4))), float(min(1.0, max(high, 0.6)))


def accuracy_axis(domain: tuple[float, float], small: bool = False, named: bool = True) -> alt.Y:
    """Return an upright axis of accuracies, with a tick at chance, which it names; `named`: it has a title."""
    axis = _accuracies(domain, 0.45 if small else 0.85, "Accuracy" if named else None)
    return alt.Y("accuracy:Q", scale=alt.Scale(domain=list(domain), nice=False, zero=False), axis=axis)


def level_accuracy_axis(domain: tuple[float, float]) -> alt.X:
    """Return a level axis of accuracies, with a tick at chance, which it names."""
    axis = _accuracies(domain, 0.65, "Accuracy")
    axis.labelExpr = UNDER_CHANCE
    return alt.X("accuracy:Q", scale=alt.Scale(domain=list(domain), nice=False, zero=False), axis=axis)


def _accuracies(domain: tuple[float, float], most: float, name: str | None) -> alt.Axis:
    """Return an axis with a tick at each tenth or, where it spans more than `most`, quarter."""
    step = 0.1 if domain[1] - domain[0] < most else 0.25
    first = np.ceil(domain[0] / step - 1e-9) * step
    ticks = [round(float(tick), 3) for tick in np.arange(first, domain[1] + 1e-9, step)]
    # Vega drops every other one of more than tickCount values.
    return alt.Axis(title=name, values=ticks, tickCount=len(ticks), labelExpr=CHANCE_LABEL)


def signed_axis(name: str, frame: Frame) -> alt.Axis:
    """Return a level axis of signed numbers, with as many ticks as have room."""
    return alt.Axis(title=name, labelExpr=SIGNED_LABEL, tickCount=frame.ticks(6, ROUND_TICK))


_LOOK = alt.Config(
    font=FONT,
    background="white",
    view=alt.ViewConfig(strokeWidth=0),
    axis=alt.AxisConfig(labelFontSize=LABEL_SIZE, titleFontSize=12, titleFontWeight="normal", gridOpacity=0.35),
    title=alt.TitleConfig(fontSize=13, anchor="start"),
    legend=alt.LegendConfig(labelFontSize=12, symbolSize=90),
)


def finished(chart: Any) -> dict[str, Any]:
    """Return the chart as a Vega-Lite specification with the common look."""
    chart.config = _LOOK  # chart.configure would copy the chart
    specification: dict[str, Any] = chart.to_dict(validate=False)  # its parts are valid
    return specification


def schema_version() -> str:
    """Return the version of Vega-Lite of the specifications, as vl-convert names it."""
    return alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]
