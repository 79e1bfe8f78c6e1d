"""Charts of dots in rows: a row for each phenomenon, method or model, in it a mark for each curve or condition."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from analysis.exhibits.figures.style import GREY, TEXT_GREY, Chart, Frame, looks

_ROWS = alt.Axis(title=None, grid=True, tickBand="extent", labelLimit=220, domain=False, ticks=False)


@dataclass(frozen=True)
class Dots:
    """The layers of a chart of dots, which share their rows, colours and shapes.

    table: a row for each mark. order: the names in its column `row`, from top to bottom. group: the column of names
    that have a colour and shape each.
    """

    table: pd.DataFrame
    order: Sequence[str]
    row: str = "name"
    group: str = "group"

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(self.table[self.group]))

    @property
    def _places(self) -> tuple[alt.Y, alt.YOffset]:
        y = alt.Y(f"{self.row}:N", sort=list(self.order), axis=_ROWS, scale=alt.Scale(paddingInner=0.25))
        return y, alt.YOffset(f"{self.group}:N", sort=self.groups)

    def _base(self, rows: pd.DataFrame | None) -> alt.Chart:
        return alt.Chart(self.table if rows is None else rows)

    def points(
        self, x: alt.X, tooltip: Sequence[alt.Tooltip] = (), *, filled: bool = True, of: pd.DataFrame | None = None
    ) -> Chart:
        """Return marks at `x`; `of`: those rows of the table that have one."""
        marks = self._base(of).mark_point(size=55, filled=filled, strokeWidth=1.6, opacity=1)
        return marks.encode(x, *self._places, *looks(self.groups, self.group), tooltip=list(tooltip))

    def lines(self, start: str, end: str, opacity: float = 1, *, of: pd.DataFrame | None = None) -> Chart:
        """Return lines from one column's values to another's, such as the limits of intervals; `of`: as for points.

        Nothing where no row has both: the scale of a column without numbers is a warning in a browser's console.
        """
        rows = self.table if of is None else of
        if not rows[[start, end]].notna().all(axis=1).any():
            return alt.Chart(rows.iloc[:0]).mark_rule().encode(*self._places)
        lines = self._base(of).mark_rule(strokeWidth=1.8, opacity=opacity)
        colour, _ = looks(self.groups, self.group)
        return lines.encode(alt.X(f"{start}:Q"), alt.X2(f"{end}:Q"), *self._places, colour)

    def chart(self, *layers: Chart, frame: Frame, title: str = "", note: str = "") -> Chart:
        """Return the layers as one chart; `note`: a small grey title."""
        height = len(self.order) * (10 + 12 * len(self.groups))
        chart = alt.layer(*layers, width=frame.span, height=height)
        if note:
            return chart.properties(title=alt.Title(note, fontSize=11, fontWeight="normal", color=TEXT_GREY))
        return chart.properties(title=title) if title else chart


def reference(value: float, dashed: bool = False) -> Chart:
    """Return an upright line at a value of x."""
    line = alt.Chart(pd.DataFrame({"at": [value]})).mark_rule(color=GREY, strokeDash=[3, 3] if dashed else [1, 0])
    return line.encode(x=alt.X("at:Q"))


def numbers(*columns: str, form: str = ".3f") -> list[alt.Tooltip]:
    """Return tooltips of columns of numbers."""
    return [alt.Tooltip(f"{column}:Q", format=form) for column in columns]
