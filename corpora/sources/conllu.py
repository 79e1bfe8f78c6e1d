"""Read sentences and their words from treebanks and parsed text in CoNLL-U. A line "# newdoc" begins a document.

Only the format is checked here, because the files may lack trees. corpora/annotate/parsers/conllu.py turns sentences
into trees.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from conllu.exceptions import ParseException
from conllu.models import Token
from conllu.parser import DEFAULT_FIELD_PARSERS, DEFAULT_FIELDS, parse_comment_line, parse_line

from corpora.sources.lines import lines
from pairscale.errors import InputError

_SPACES = re.compile(" {2,}")
_FIELDS = len(DEFAULT_FIELDS)
_PARSERS = {"id": DEFAULT_FIELD_PARSERS["id"]}  # all other fields stay as written


@dataclass
class ConlluSentence:
    """A sentence without its empty nodes (ids such as 8.1), which are not words of the sentence."""

    file: Path
    line: int  # number of its first line in the file
    text: str = ""  # the value of "# text"; if it is missing, the tokens and the spaces between them
    begins_document: bool = False
    tokens: list[str] = field(default_factory=list)  # as written in the text
    sizes: list[int] = field(default_factory=list)  # number of words in each token, above 1 for a multi-word token
    words: list[Token] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)  # line number of each word in the file


def conllu_sentences(file: Path) -> Iterator[ConlluSentence]:
    """Yield the sentences of a file.

    Raises InputError, with file and line, if the file is not CoNLL-U or "# text" does not match the words.
    """
    block: list[tuple[int, str]] = []
    begins_document = False  # "# newdoc" may be followed by an empty line
    for number, line in lines(file):
        if line.strip():
            block.append((number, line))
        elif block:
            begins_document |= any(_is_newdoc(text) for _, text in block)
            if any(not text.startswith("#") for _, text in block):
                yield _sentence(file, block, begins_document)
                begins_document = False
            block = []
    if any(not text.startswith("#") for _, text in block):
        yield _sentence(file, block, begins_document or any(_is_newdoc(text) for _, text in block))


def _is_newdoc(line: str) -> bool:
    return line.startswith("#") and line[1:].split("=")[0].split()[:1] == ["newdoc"]


def _sentence(file: Path, block: list[tuple[int, str]], begins_document: bool) -> ConlluSentence:
    sentence = ConlluSentence(file, block[0][0], begins_document=begins_document)
    spaces: list[str] = []  # after each token
    inner = 0  # number of words that the last multi-word token still lacks
    for number, line in block:
        if line.startswith("#"):
            sentence.text = dict(parse_comment_line(line)).get("text") or sentence.text
            continue
        word = _word(line, f"{file}:{number}")
        following = len(sentence.words) + 1
        match word["id"]:
            case int() if word["id"] == following:
                sentence.words.append(word)
                sentence.lines.append(number)
                if inner:
                    inner -= 1
                    continue
                size = 1
            case (first, "-", last) if first == following and last > first and not inner:
                size = inner = last - first + 1
            case (first, ".", _) if first == following - 1:
                continue
            case _:
                raise InputError(
                    f"{file}:{number}: the id of this word is {line.split()[0]}, but must be {following}. Correct it."
                )
        sentence.tokens.append(word["form"])
        sentence.sizes.append(size)
        spaces.append("" if "SpaceAfter=No" in word["misc"].split("|") else " ")
    if inner:
        raise InputError(f"{file}:{number}: the last multi-word token lacks {inner} of its words. Add them.")
    written = "".join(token + space for token, space in zip(sentence.tokens, spaces, strict=True)).strip()
    sentence.text = sentence.text or written
    if "".join(sentence.text.split()) != "".join(written.split()):
        raise InputError(
            f'{file}:{sentence.line}: "# text = {sentence.text[:60]}" does not match the words "{written[:60]}". '
            "Correct one of them."
        )
    return sentence


def _word(line: str, where: str) -> Token:
    """Read a word with its ten fields. Raises InputError if the line is not CoNLL-U."""
    columns = line.count("\t") + 1
    if columns != _FIELDS:
        raise InputError(
            f"{where}: this line has {columns} columns. Use {_FIELDS} columns, separated by tabs: "
            f"{', '.join(DEFAULT_FIELDS)}."
        )
    try:
        # parse_line also splits at two spaces, which separate columns in some files. Here, only tabs separate them.
        word = parse_line(_SPACES.sub(" ", line), DEFAULT_FIELDS, _PARSERS)
    except ParseException as error:
        raise InputError(f"{where}: this line is not valid CoNLL-U ({error}). Correct it.") from None
    if not word["form"].strip() or not word["id"]:
        raise InputError(f"{where}: this word has no id or no form. Add it.")
    return word
