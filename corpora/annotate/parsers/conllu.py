"""Trees that are there already, in CoNLL-U: gold treebanks, or text that was parsed elsewhere."""

from conllu.models import Token

from corpora.annotate.alignment import aligned, word_spans
from corpora.annotate.layer import Tree
from corpora.sources.conllu import ConlluSentence
from pairscale.errors import InputError


def tree_of(parsed: ConlluSentence, sentence: str) -> Tree:
    """Return the tree of a sentence of the text, which may have other spaces than the parsed one.

    Raises InputError, which names file and line, if the words are others, or do not form a tree.
    """
    spans = aligned(sentence, parsed.tokens)
    if spans is None:
        raise InputError(
            f'{parsed.file}:{parsed.line}: the text has "{sentence[:60]}" here, not "{parsed.text[:60]}"; parse the '
            "text as it is now"
        )
    words, first = [], 0
    for span, size in zip(spans, parsed.sizes, strict=True):
        words += word_spans(sentence, span, [word["form"] for word in parsed.words[first : first + size]])
        first += size
    return Tree(
        sentence,
        [start for start, _ in words],
        [end for _, end in words],
        ["_" if word["form"] == "_" else _optional(word, "lemma") for word in parsed.words],
        [_value(parsed, index, "upos") for index in range(len(words))],
        [_optional(word, "xpos") for word in parsed.words],
        [_optional(word, "feats") for word in parsed.words],
        _heads(parsed),
        [_value(parsed, index, "deprel") for index in range(len(words))],
    )


def _optional(word: Token, column: str) -> str:
    return "" if word[column] == "_" else str(word[column])


def _value(parsed: ConlluSentence, index: int, column: str) -> str:
    value = _optional(parsed.words[index], column)
    if not value:
        raise InputError(f"{parsed.file}:{parsed.lines[index]}: a word without {column}; annotations need them all")
    return value


def _heads(parsed: ConlluSentence) -> list[int]:
    """Return the index of each word's head, the root's its own. Raises InputError unless they form one tree."""
    heads = []
    for index, (word, line) in enumerate(zip(parsed.words, parsed.lines, strict=True)):
        head, most = word["head"], len(parsed.words)
        if not (head.isascii() and head.isdecimal() and int(head) <= most and int(head) != index + 1):
            raise InputError(f"{parsed.file}:{line}: head {head}: must be another word's id, 1 to {most}, or 0")
        heads.append(int(head) - 1 if int(head) else index)
    roots = [index for index, head in enumerate(heads) if head == index]
    if len(roots) != 1:
        raise InputError(f"{parsed.file}:{parsed.line}: a sentence with {len(roots)} roots; a tree has one")
    reached = set(roots)
    for index in range(len(heads)):
        path: list[int] = []
        while index not in reached and index not in path:
            path.append(index)
            index = heads[index]
        if index in path:
            raise InputError(f"{parsed.file}:{parsed.lines[index]}: word {index + 1} is its own head's head, and so on")
        reached.update(path)
    return heads
