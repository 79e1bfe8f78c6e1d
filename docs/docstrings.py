"""Docstrings of this project as Sphinx reads them: a Sphinx extension."""

import re
from collections.abc import Iterator
from itertools import pairwise

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Give Sphinx each docstring as reStructuredText."""
    app.connect("autodoc-process-docstring", lambda *event: event[-1].__setitem__(slice(None), list(plain(event[-1]))))
    return {"parallel_read_safe": True}


def plain(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a docstring, plain text with `names` and indented blocks, as reStructuredText."""
    for paragraph in "\n".join(lines).split("\n\n"):
        rows = [":", *paragraph.splitlines()]
        begins = [above.endswith(":") and row.startswith(" ") for above, row in pairwise(rows)]
        text, block = rows[1:], list[str]()
        if any(begins):
            text, block = text[: begins.index(True)], text[begins.index(True) :]
        yield from (escaped(row.strip()) for row in text)
        yield from ("", *(["::", "", *(f"    {row}" for row in block), ""] if block else []))


def escaped(line: str) -> str:
    """Return a line in which only `names` are marked up."""
    parts = re.split(r"(`[^`]+`)", line)
    texts = [part if place % 2 else re.sub(r"([\\*|`]|_(?=\W|$))", r"\\\1", part) for place, part in enumerate(parts)]
    return re.sub(r"(`[^`]+`)(?=\w)", r"\1\\ ", "".join(texts))
