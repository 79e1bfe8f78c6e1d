"""A match shown to people: marked in its sentence, or in its tree."""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from corpora.annotate.tree import Tree
from corpora.constructions.matcher import Occurrence
from pairscale.tables import plain_table

STYLE = "bold green"


def marked(tree: Tree, occurrences: Sequence[Occurrence]) -> Text:
    """Return a sentence with the words of its matches in brackets, coloured in a terminal."""
    words = sorted({(tree.starts[word], tree.ends[word]) for one in occurrences for word in one.words.values()})
    text, end = Text(), 0
    for start, stop in words:
        if start < end:  # of a contraction, whose words share their characters
            continue
        text.append(tree.sentence[end:start])
        text.append(f"[{tree.sentence[start:stop]}]", STYLE)
        end = stop
    return text.append(tree.sentence[end:])


def tree_table(tree: Tree, occurrences: Sequence[Occurrence]) -> Table:
    """Return a tree as a table: a row for each word, by the names that patterns have for attributes."""
    nodes = _nodes(occurrences)
    table = plain_table("")
    for heading in ("", "ORTH", "head", "DEP", "POS", "TAG", "LEMMA", "MORPH", "matched as"):
        table.add_column(heading, justify="right" if heading in ("", "head") else "left", no_wrap=True)
    rows = zip(tree.words, tree.heads, tree.relations, tree.upos, tree.xpos, tree.lemmas, tree.feats, strict=True)
    for word, (form, head, *values) in enumerate(rows):
        above = "-" if head == word else f"{tree.words[head]} {head + 1}"
        cells = [str(word + 1), form, above, *values, nodes.get(word, "")]
        table.add_row(*(Text(cell, STYLE if word in nodes else "") for cell in cells))
    return table


def _nodes(occurrences: Sequence[Occurrence]) -> Mapping[int, str]:
    """Return the names that patterns give to words, each with the number of its pattern."""
    nodes: dict[int, list[str]] = {}
    for one in occurrences:
        for name, word in one.words.items():
            label = f"{name} ({one.pattern})"
            if label not in nodes.setdefault(word, []):
                nodes[word].append(label)
    return {word: ", ".join(names) for word, names in nodes.items()}
