"""Tables of curves: for the terminal, as CSV and as LaTeX. Text from data is made harmless where it is written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table
from rich.text import Text

from analysis.curves import ALL_PAIRS, Curves
from corpora.files import write_text

# The published model whose architecture a model has, by the first part of its name.
_ARCHITECTURES = {"lstm": "LSTM", "txl": "Transformer-XL"}
_HYPHENATED = ("determiner noun", "subject verb", "filler gap", "left branch", "matrix question", "verb complement")
LONG = 45  # lines of a table that fits one page
LINE = 84  # characters of a small line in a journal of one column, capitals among them
LONG_TEXT = 22  # characters from which on a text may be broken into lines
LEAST_TEXT = 14  # characters of a line of a text that is broken
BREAK = "\\\\"
MIN_WIDTH = 24  # characters of the column that names phenomena and groups
MOST_DIGITS = 4  # decimal places of a slope or difference
TWO_SIZES = "two sizes: a difference, not a curve"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "\N{MINUS SIGN}": r"\ensuremath{-}", "\N{PLUS-MINUS SIGN}": r"\ensuremath{\pm}",
    "\N{MULTIPLICATION SIGN}": r"\ensuremath{\times}", "\N{LESS-THAN OR EQUAL TO}": r"\ensuremath{\leq}",
    "\N{GREATER-THAN OR EQUAL TO}": r"\ensuremath{\geq}",
}  # fmt: skip


def title(name: str) -> str:
    """A phenomenon's or paradigm's name as people read it: "npi_licensing" -> "NPI licensing"."""
    words = name.replace("_", " ")
    for pair in _HYPHENATED:
        words = words.replace(pair, pair.replace(" ", "-"))
    words = words.replace("control raising", "control/raising")
    words = re.sub(r"\b(npi|np)\b", lambda match: match[0].upper(), words)
    return words[:1].upper() + words[1:]


def published_slopes() -> pd.DataFrame:
    """Slopes of Warstadt et al. 2020, section 6.3, per doubling: model, phenomenon, slope, source."""
    return _published("slopes.csv")


def published_perplexity() -> pd.DataFrame:
    """Perplexities of Warstadt et al. 2020, note 16: model, words, perplexity, source."""
    return _published("perplexity.csv")


def _published(name: str) -> pd.DataFrame:
    with (files("analysis") / "published" / name).open(encoding="utf-8") as file:
        return pd.read_csv(file)


def architecture(model: str) -> str | None:
    """The published model to stand beside a model of ours: "lstm_tiny" -> "LSTM"; None where there is none."""
    return _ARCHITECTURES.get(model.partition("_")[0])


def with_published(slopes: pd.DataFrame, runs: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """`slopes` with the columns published_model and published_slope, of the same architecture (BLiMP only)."""
    models = runs.drop_duplicates("group").set_index("group")["model"]
    published = published_slopes().rename(columns={"model": "published_model", "slope": "published_slope"})
    if benchmark != "blimp":
        published = published.iloc[:0]
    named = slopes.assign(published_model=slopes["group"].map(models).map(architecture), level_name=slopes["name"])
    named["level_name"] = named["level_name"].where(named["level"] == "phenomenon")
    columns = ["published_model", "phenomenon", "published_slope"]
    published = published[columns].rename(columns={"phenomenon": "level_name"})
    return named.merge(published, on=["published_model", "level_name"], how="left").drop(columns="level_name")


def slope_table(curves: Curves, pairs: str = ALL_PAIRS, level: str = "phenomenon") -> pd.DataFrame:
    """One row per group and unit of `level`, overall first: name, group, accuracy at each size, slope, interval, ...

    Columns "accuracy 125k" and so on go by size; the rest are those of Curves.slopes, and of `with_published` where it
    has them. Rows go by group, then from the steepest to the shallowest. Two sizes are a difference, not a curve: their
    r2 and rank are NaN, and the note says so.
    """
    chosen = two_sizes_noted(curves.slopes)
    chosen = chosen[(chosen["pairs"] == pairs) & chosen["level"].isin(["overall", level])]
    sizes = curves.accuracies.groupby("size")["words"].mean().sort_values().index
    at = curves.accuracies[curves.accuracies["pairs"] == pairs]
    wide = at.pivot_table(index=["group", "level", "name"], columns="size", values="accuracy", observed=True)
    wide = wide.reindex(columns=sizes).add_prefix("accuracy ").reset_index()
    first = ["group", "level", "name", "paradigms", "n_pairs"]
    last = ["slope", "low", "high", "low_new_pairs", "high_new_pairs", "r2", "lack_of_fit", "rank", "rank_low"]
    last += ["rank_high", "onset", "onset_baseline", "intercept", "method", "published_model", "published_slope"]
    last = [name for name in last if name in chosen] + ["runs", "sizes", "note"]
    table = chosen[first + last].merge(wide, on=["group", "level", "name"], how="left")
    order = pd.DataFrame(
        {"group": pd.factorize(table["group"])[0], "level": table["level"] != "overall", "slope": -table["slope"]}
    ).sort_values(["group", "level", "slope"], kind="stable")
    return table.loc[order.index, [*first, *wide.columns[3:], *last]].reset_index(drop=True)


def two_sizes_noted(slopes: pd.DataFrame) -> pd.DataFrame:
    """Curves.slopes without what two sizes cannot have (r2, ranks), and with a note where there are but two."""
    two = slopes["sizes"] == 2
    blank = {name: slopes[name].mask(two) for name in ("r2", "rank", "rank_low", "rank_high") if name in slopes}
    notes = slopes["note"].where(slopes["note"] == "", slopes["note"] + "; ")
    return slopes.assign(**blank, note=slopes["note"].mask(two, notes + TWO_SIZES))


def slope_name(table: pd.DataFrame) -> str:
    """What the column of slopes is called: two sizes are a difference."""
    return "difference per doubling" if (table["sizes"] == 2).all() else "slope"


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table so that no spreadsheet takes a cell for a formula: text that starts with = + - @ gets a '."""
    guarded = table.copy()
    for column in guarded.select_dtypes(exclude="number"):
        guarded[column] = guarded[column].map(_guard)
    guarded.columns = pd.Index([_guard(column) for column in guarded.columns])
    write_text(path, guarded.to_csv(index=False, lineterminator="\n"))


def _guard(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def latex_escape(text: str) -> str:
    """Text that LaTeX shows as it is."""
    return "".join(_LATEX.get(character, character) for character in text)


def write_latex(path: Path, table: pd.DataFrame, caption: str, label: str, confidence: float) -> None:
    """Write a `slope_table` for a paper (booktabs): accuracies, slope, interval, R2, rank and the published slope."""
    digits = table_digits(table["low"], table["high"])
    sizes = [str(column) for column in table if str(column).startswith("accuracy ")]
    published = "published_slope" in table and bool(table["published_slope"].notna().any())
    shown: list[tuple[str, Callable[[pd.Series], str]]] = [("Phenomenon", lambda row: latex_escape(title(row["name"])))]
    for size in sizes:
        shown.append((latex_escape(size.removeprefix("accuracy ")), partial(_accuracy_of, column=size)))
    slope = slope_name(table).capitalize()
    shown.append((slope, lambda row: latex_number(slope_text(row["slope"], digits=digits))))
    interval = f"{confidence:.0%} interval".replace("%", "\\%")
    shown.append((interval, lambda row: latex_number(interval_text(row["low"], row["high"], digits=digits))))
    shown.append(("$R^2$", lambda row: accuracy_text(row["r2"])))
    shown.append(("Rank", rank_text))
    if published:
        shown.append(("Published", lambda row: latex_number(slope_text(row["published_slope"], dash=""))))
    blocks = [
        (str(group), [[cell(row) for _, cell in shown] for _, row in rows.iterrows()])
        for group, rows in table.groupby("group", sort=False)
    ]
    write_text(path, latex_table([header for header, _ in shown], blocks, caption, label))


def latex_table(
    head: Sequence[str],
    blocks: Sequence[tuple[str, Sequence[Sequence[str]]]],
    caption: str,
    label: str,
    numeric: Sequence[bool] | None = None,
) -> str:
    """A table (booktabs): one that floats, or runs over pages where it has more than LONG lines.

    `head` and cells are LaTeX already; caption, label and names of blocks are text. blocks: name ("": none is shown)
    and rows. numeric: columns that stand to the right; all but the first if None. To be narrow enough for a page,
    headings of numbers are broken at spaces, and columns of long text share what room there is; what is still too wide
    takes the first of _FORMS that holds it.
    """
    numeric = [False] + [True] * (len(head) - 1) if numeric is None else numeric
    rows = [row for _, of in blocks for row in of]
    form, columns = _fitted(head, rows, numeric)
    long = form.sideways or len(rows) * (2 if "p{" in columns else 1) > LONG  # a broken text takes two lines or more
    heading = [_heading(name, form.upright) if right else name for name, right in zip(head, numeric, strict=True)]
    named = f"\\caption{{{latex_escape(caption)}}}\n\\label{{{re.sub(r'[^A-Za-z0-9:-]', '-', label)}}}"
    body = ["\\toprule", " & ".join(heading) + " \\\\"]
    for number, (name, of) in enumerate(blocks):
        body.append("\\midrule")
        if long and number == 0:
            body.append("\\endhead")
        if name:
            body.append(f"\\multicolumn{{{len(head)}}}{{l}}{{\\emph{{{latex_escape(name)}}}}} \\\\")
        body += [" & ".join(row) + " \\\\" for row in of]
    body.append("\\bottomrule")
    size = f"\\{form.size}\n\\setlength{{\\tabcolsep}}{{3pt}}"
    if long:
        parts = [
            "{" + size,
            f"\\begin{{longtable}}{{{columns}}}",
            named + " \\tabularnewline",
            *body,
            "\\end{longtable}}",
        ]
    else:
        tabular = [f"\\begin{{tabular}}{{{columns}}}", *body, "\\end{tabular}"]
        parts = ["\\begin{table}", "\\centering", named, size, *tabular, "\\end{table}"]
    packages = ["array", "booktabs", *(["longtable"] if long else []), *([] if form.upright else ["graphicx"])]
    if form.sideways:
        parts, packages = ["\\begin{landscape}", *parts, "\\end{landscape}"], [*packages, "pdflscape"]
    return "\n".join([f"% needs \\usepackage{{{','.join(packages)}}}", *parts, ""])


@dataclass(frozen=True)
class _Form:
    """How a table is set: its type, how many characters a line holds, whether headings of numbers stand upright, and
    whether the page lies on its side."""

    size: str
    line: int
    upright: bool = False
    sideways: bool = False


# In a journal of one column (LaTeX's article), from the easiest to read to the narrowest.
_FORMS = (
    _Form("footnotesize", LINE, upright=True),
    _Form("footnotesize", LINE),
    _Form("scriptsize", 96),
    _Form("footnotesize", 134, sideways=True),
    _Form("scriptsize", 152, sideways=True),
)
_BETWEEN = 2  # characters between columns
_SIDE = 2  # characters that a heading on its side is wide


def _heading(name: str, upright: bool) -> str:
    """A heading of numbers: broken at spaces, or turned on its side."""
    if not upright:
        return f"\\rotatebox{{90}}{{{name}}}"
    return f"\\shortstack[r]{{{name.replace(' ', BREAK)}}}" if " " in name else name


def _fitted(head: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> tuple[_Form, str]:
    """The first form that is wide enough, else the last, and the columns: l, r, or p with a share of the line for text
    that would not fit beside the others.
    """
    head, rows = [_as_set(name) for name in head], [[_as_set(text) for text in row] for row in rows]
    texts = [max([len(row[i]) for row in rows], default=0) for i in range(len(head))]
    for form in _FORMS:
        heads = [
            (max(map(len, name.split(" "))) if form.upright else _SIDE) if right else len(name)
            for name, right in zip(head, numeric, strict=True)
        ]
        need = [max(pair) for pair in zip(texts, heads, strict=True)]
        least = list(need)
        if sum(need) + _BETWEEN * len(need) > form.line:
            for i, right in enumerate(numeric):
                if not right and need[i] > LONG_TEXT:
                    pieces = re.split(r"[ -]", " ".join([head[i], *(row[i] for row in rows)]))
                    least[i] = max(LEAST_TEXT, *map(len, pieces))
        room = form.line - sum(least) - _BETWEEN * len(need)
        if room >= 0:
            break
    wanted = sum(need) - sum(least)
    wide = [least[i] + max(0, room) * (need[i] - least[i]) / max(1, wanted) for i in range(len(need))]
    paragraph = ">{{\\raggedright\\arraybackslash}}p{{{:.3f}\\linewidth}}"
    columns = [
        paragraph.format(0.95 * wide[i] / form.line) if least[i] < need[i] else "r" if right else "l"
        for i, right in enumerate(numeric)
    ]
    return form, "".join(columns)


def _as_set(text: str) -> str:
    """LaTeX as about as many characters as it is wide: signs such as < take two."""
    return re.sub(r"[\\${}]", "", re.sub(r"\\[A-Za-z]+(\{\})?", "xx", text))


def _accuracy_of(row: pd.Series, column: str) -> str:
    return accuracy_text(row[column])


def latex_number(text: str) -> str:
    """A signed number or an interval, with a minus sign that is no hyphen; any other text as it is."""
    return f"${text}$" if re.fullmatch(r"[-+\[][-+\d.,\[\] ]+", text) else latex_escape(text)


def accuracy_text(value: float, dash: str = "–") -> str:
    """.713, as papers write accuracies; 1.000 keeps its 1."""
    return dash if math.isnan(value) else f"{value:.3f}".removeprefix("0").replace("-0.", "-.")


def signed_text(value: float, dash: str = "–") -> str:
    """+.042: a difference of accuracies."""
    return dash if math.isnan(value) else f"{value:+.3f}".replace("0.", ".", 1)


def slope_text(value: float, dash: str = "–", digits: int = MOST_DIGITS) -> str:
    """+.0426: accuracy per doubling."""
    return dash if math.isnan(value) else f"{value:+.{digits}f}".replace("0.", ".", 1)


def interval_text(low: float, high: float, dash: str = "–", digits: int = MOST_DIGITS) -> str:
    """[+.0201, +.0234]"""
    return dash if math.isnan(low) else f"[{slope_text(low, digits=digits)}, {slope_text(high, digits=digits)}]"


def p_text(value: float) -> str:
    """.034; below .001 as such"""
    return "–" if math.isnan(value) else "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def supported_digits(low: float, high: float) -> int:
    """Decimal places, 2 to MOST_DIGITS, that an interval supports: [+.0082, +.0187] is [+.008, +.019].

    The first digit of its half width, and the second too where the two are below 35.5 (as the Particle Data Group
    rounds errors: Review of Particle Physics, introduction, section 5.3). More where a limit would be rounded to 0.
    """
    half = (high - low) / 2
    if not half > 0:
        return 3
    first = math.floor(math.log10(half))
    digits = -first + (half / 10.0**first < 3.55)
    while digits < MOST_DIGITS and any(limit != 0 and round(limit, digits) == 0 for limit in (low, high)):
        digits += 1
    return min(max(2, digits), MOST_DIGITS)


def table_digits(low: pd.Series, high: pd.Series) -> int:
    """Decimal places of a column of slopes and of their limits: those that half of its intervals support."""
    known = low.notna() & high.notna()
    each = [supported_digits(*limits) for limits in zip(low[known], high[known], strict=True)]
    return int(np.median(each)) if each else 3


def rank_text(row: pd.Series) -> str:
    """3, or 3 (2–5) where the interval of the rank is known; nothing for what has no rank."""
    if math.isnan(row["rank"]):
        return ""
    low, high = row.get("rank_low", math.nan), row.get("rank_high", math.nan)
    return f"{row['rank']:.0f}" + ("" if math.isnan(low) else f" ({low:.0f}–{high:.0f})")


def direction(low: float, high: float) -> str:
    """rises, falls, or "" where the interval of a slope holds 0 or is not known."""
    return "rises" if low > 0 else "falls" if high < 0 else ""


_STYLES = {"rises": "green", "falls": "red", "": "dim"}


def terminal_table(table: pd.DataFrame, heading: str, confidence: float) -> Table:
    """A `slope_table` for the terminal: green is above 0, red below, dim neither."""
    sizes: Sequence[str] = [str(column) for column in table if str(column).startswith("accuracy ")]
    ends = list(dict.fromkeys([*sizes[:1], *sizes[-1:]]))
    published = "published_slope" in table and bool(table["published_slope"].notna().any())
    digits = table_digits(table["low"], table["high"])
    slope = slope_name(table)
    told = "accuracy per doubling of the text" if slope == "slope" else "two sizes only, no curve"
    caption = f"{slope}: {told}" + ("; paper: Warstadt et al. 2020" if published else "")
    # Narrow enough for a terminal of 80 columns.
    shown = Table(
        title=Text(heading),
        title_justify="left",
        caption=Text(caption),
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    shown.padding, shown.header_style = (0, 1, 0, 0), "bold"
    # As wide as the names of phenomena: a group's name may be long, and goes on in further lines.
    shown.add_column(
        "phenomenon", width=1 + max(MIN_WIDTH, *(len(title(name)) for name in table["name"])), overflow="fold"
    )
    for size in ends:
        shown.add_column(size.removeprefix("accuracy ").replace(" ", "\n"), justify="right", no_wrap=True)
    numbers = [slope.replace(" ", "\n"), f"{confidence:.0%} interval"]
    numbers += ["R2", "rank"] if table["r2"].notna().any() else []
    for name in (*numbers, *(["paper"] if published else [])):
        shown.add_column(name, justify="right", no_wrap=True)
    for group, rows in table.groupby("group", sort=False):
        shown.add_row()
        shown.add_row(Text(str(group), style="bold"))
        for _, row in rows.iterrows():
            look = _STYLES[direction(row["low"], row["high"])]
            cells = [f" {title(row['name'])}", *(accuracy_text(row[size]) for size in ends)]
            slope_cell = Text(slope_text(row["slope"], digits=digits), look)
            others = [interval_text(row["low"], row["high"], digits=digits)]
            others += [accuracy_text(row["r2"]), rank_text(row)] if "R2" in numbers else []
            others += [slope_text(row["published_slope"], dash="")] if published else []
            shown.add_row(*map(Text, cells), slope_cell, *map(Text, others))
    return shown
