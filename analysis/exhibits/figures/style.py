"""The common look of figures (hues, dashes, shapes, legends, fonts), and their files."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from analysis.exhibits.tables.text import title
from pairscale.files import write_bytes, write_text

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
MOST_TICKS = 8  # on an axis of sizes
CHANCE_LABEL = "(abs(datum.value - 0.5) < 1e-6 ? 'chance  ' : '') + format(datum.value, '.1f')"
SMALL_CHANCE = "abs(datum.value - 0.5) < 1e-6 ? 'chance' : format(datum.value, '.2~f')"
SIGNED_LABEL = "datum.value ? format(datum.value, '+.2~f') : '0'"
# 125000 -> 125k, 2000000 -> 2M
SIZE_LABEL = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '.3~g') + 'M' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '.3~g') + 'k' : datum.value"
)


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


def size_axis(
    field: str,
    sizes: Iterable[float],
    unit: str,
    of: str = "of training text",
    ticks: Sequence[float] | None = None,
    most: int = MOST_TICKS,
) -> alt.X:
    """Return a logarithmic axis of amounts of text, counted in `unit`, without a title if they are `of` "".

    `ticks`: in place of up to `most` sizes.
    """
    sizes = sorted(set(sizes))
    ticks = sizes[:: -(-len(sizes) // most)] if ticks is None else ticks
    scale = alt.Scale(type="log", base=2, nice=False, domain=[sizes[0] / 1.12, sizes[-1] * 1.12])
    name = f"{unit.capitalize()} {of}" if of else None
    axis = alt.Axis(values=[*map(float, ticks)], labelExpr=SIZE_LABEL, title=name, grid=False)
    return alt.X(f"{field}:Q", scale=scale, axis=axis)


def side_by_side(panels: Sequence[Chart], columns: int = 2) -> Chart:
    """Arrange panels in rows of `columns`, as one figure."""
    return alt.concat(*panels, columns=columns, spacing=24)


def finished(chart: Any) -> dict[str, Any]:
    """Return the chart as a Vega-Lite specification with the common look."""
    styled = chart.configure(  # one call: each copies the chart
        font=FONT,
        background="white",
        view=alt.ViewConfig(strokeWidth=0),
        axis=alt.AxisConfig(labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridOpacity=0.35),
        title=alt.TitleConfig(fontSize=13, anchor="start"),
        legend=alt.LegendConfig(labelFontSize=12, symbolSize=90),
    )
    specification: dict[str, Any] = styled.to_dict(validate=False)  # its parts are valid
    return specification


def schema_version() -> str:
    """Return the version of Vega-Lite of the specifications, as vl-convert names it."""
    return alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]


def write_figure(folder: Path, name: str, chart: Any) -> None:
    """Write <name>.svg and <name>.png (twice the size, for print)."""
    svg = vl_convert.vegalite_to_svg(finished(chart), vl_version=schema_version())
    write_text(folder / f"{name}.svg", svg)
    write_bytes(folder / f"{name}.png", vl_convert.svg_to_png(svg, scale=2))
