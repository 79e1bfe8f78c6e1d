"""LaTeX tables that fit a page of a journal."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

LONG = 52  # lines of a table that fits one page, of its heading and of its caption
LINE = 84  # characters of a small line in a journal of one column, capitals among them
CAPTION = 0.65  # share of a line: what its characters in the larger type of a caption fill
LONG_TEXT = 22  # characters from which on a text may be broken into lines
LEAST_TEXT = 14  # characters of a line of a text that is broken
_BETWEEN = 2  # characters between columns
_SIDE = 2  # characters that a heading on its side is wide
BREAK = "\\\\"
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "\N{MINUS SIGN}": r"\ensuremath{-}", "\N{PLUS-MINUS SIGN}": r"\ensuremath{\pm}",
    "\N{MULTIPLICATION SIGN}": r"\ensuremath{\times}", "\N{LESS-THAN OR EQUAL TO}": r"\ensuremath{\leq}",
    "\N{GREATER-THAN OR EQUAL TO}": r"\ensuremath{\geq}",
}  # fmt: skip


def latex_escape(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


@dataclass(frozen=True)
class _Form:
    """A way to set a table: size of type, characters of a line, upright headings of numbers, landscape page."""

    size: str
    line: int
    upright: bool = False
    sideways: bool = False


# In one of two columns (LaTeX's article, the narrowest in use).
_NARROW = (_Form("footnotesize", 48, upright=True), _Form("scriptsize", 56, upright=True))
# In a journal of one column (LaTeX's article), from the easiest to read to the narrowest.
_FORMS = (
    _Form("footnotesize", LINE, upright=True),
    _Form("footnotesize", LINE),
    _Form("scriptsize", 96),
    _Form("footnotesize", 134, sideways=True),
    _Form("scriptsize", 152, sideways=True),
)


def latex_table(
    head: Sequence[str],
    blocks: Sequence[tuple[str, Sequence[Sequence[str]]]],
    caption: str,
    label: str,
    numeric: Sequence[bool] | None = None,
    narrow: bool = False,
) -> str:
    """Return a booktabs table: a float, or a longtable where it has more than LONG lines with its caption.

    `head` and cells are LaTeX already; caption, label and names of blocks are text. blocks: name ("": none is shown)
    and rows. numeric: columns that stand to the right; all but the first if None. narrow: for a column of two, if it
    can be; else the float is as wide as the page (table*). To be narrow enough, headings of numbers are broken at
    spaces, and columns of long text share what room there is; what is still too wide takes the first of the forms that
    holds it. A long table of several blocks becomes a float for each.
    """
    numeric = [False] + [True] * (len(head) - 1) if numeric is None else numeric
    rows = [row for _, of in blocks for row in of]
    form, columns, lines = _fitted(head, rows, numeric, [*_NARROW, *_FORMS] if narrow else _FORMS)
    above = 3 + len(caption) / (CAPTION * form.line)
    long = form.sideways or lines + len(blocks) + above > LONG
    if long and not form.sideways and len(blocks) > 1:
        parts = [
            latex_table(head, [block], caption, f"{label}-{number}", numeric, narrow)
            for number, block in enumerate(blocks, 1)
        ]
        return "\n".join(parts)
    body = _body(head, blocks, numeric, form, long)
    named = f"\\caption{{{latex_escape(caption)}}}\n\\label{{{re.sub(r'[^A-Za-z0-9:-]', '-', label)}}}"
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
        table = "table" if form in _NARROW else "table*"
        tabular = [f"\\begin{{tabular}}{{{columns}}}", *body, "\\end{tabular}"]
        parts = [f"\\begin{{{table}}}", "\\centering", named, size, *tabular, f"\\end{{{table}}}"]
    packages = ["array", "booktabs", *(["longtable"] if long else []), *([] if form.upright else ["graphicx"])]
    if form.sideways:
        parts, packages = ["\\begin{landscape}", *parts, "\\end{landscape}"], [*packages, "pdflscape"]
    return "\n".join([f"% needs \\usepackage{{{','.join(packages)}}}", *([_LONG_NOTE] if long else []), *parts, ""])


_LONG_NOTE = "% takes pages of its own; in two columns: \\onecolumn before it, \\twocolumn after it"


def fits_upright(head: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a table, numeric but for its first column, fits a page whose headings are all level."""
    return _fitted(head, rows, [False] + [True] * (len(head) - 1), _FORMS)[0].upright


def _body(
    head: Sequence[str],
    blocks: Sequence[tuple[str, Sequence[Sequence[str]]]],
    numeric: Sequence[bool],
    form: _Form,
    long: bool,
) -> list[str]:
    """Return the lines of a table from its top rule to its bottom rule."""
    heading = [_heading(name, form.upright) if right else name for name, right in zip(head, numeric, strict=True)]
    body = ["\\toprule", " & ".join(heading) + " \\\\"]
    for number, (name, of) in enumerate(blocks):
        body.append("\\midrule")
        if long and number == 0:
            body.append("\\endhead")
        if name:
            across = "l" if len(name) < 0.6 * form.line else "p{0.95\\linewidth}"
            body.append(f"\\multicolumn{{{len(head)}}}{{{across}}}{{\\emph{{{latex_escape(name)}}}}} \\\\")
        body += [" & ".join(row) + " \\\\" for row in of]
    return [*body, "\\bottomrule"]


def _heading(name: str, upright: bool) -> str:
    """Set a heading of numbers: broken at spaces, or turned on its side."""
    if not upright:
        return f"\\rotatebox{{90}}{{{name}}}"
    return f"\\shortstack[r]{{{name.replace(' ', BREAK)}}}" if " " in name else name


def _fitted(
    head: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool], forms: Sequence[_Form]
) -> tuple[_Form, str, int]:
    """Return the first form that is wide enough, else the last, the columns, and about how many lines rows take.

    Columns are l, r, or p with a share of the line for text that would not fit beside the others.
    """
    head, rows = [_as_set(name) for name in head], [[_as_set(text) for text in row] for row in rows]
    texts = [max([len(row[i]) for row in rows], default=0) for i in range(len(head))]
    for form in forms:
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
    lines = [max(math.ceil(len(text) / room) for text, room in zip(row, wide, strict=True)) for row in rows]
    return form, "".join(columns), sum(max(1, of) for of in lines)


def _as_set(text: str) -> str:
    """Replace LaTeX by about as many characters as it is wide: signs such as < take two."""
    return re.sub(r"[\\${}]", "", re.sub(r"\\[A-Za-z]+(\{\})?", "xx", text))


def latex_number(text: str) -> str:
    """Set a signed number or an interval with a proper minus sign; any other text as it is."""
    return f"${text}$" if re.fullmatch(r"[-+\[][-+\d.,\[\] ]+", text) else latex_escape(text)
