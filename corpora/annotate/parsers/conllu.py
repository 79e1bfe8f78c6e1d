"""Trees that are there already, in CoNLL-U: gold treebanks, or text that was parsed elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, compress, islice

from conllu.models import Token

from corpora.annotate.alignment import aligned, word_spans
from corpora.annotate.config import ConlluConfig
from corpora.annotate.parsers.parser import Parser, parser
from corpora.annotate.tree import Tree
from corpora.config import ConlluCorpusConfig, CorpusConfig
from corpora.sources.conllu import ConlluSentence, conllu_sentences
from corpora.sources.files import source_files
from corpora.sources.lines import check_present
from corpora.sources.read import documents
from corpora.text import in_share
from pairscale.errors import ConfigError, InputError
from pairscale.files import sha256_file, sha256_json


@parser(ConlluConfig)
class ConlluParser(Parser):
    """The trees of files, of which each process reads those of its parts and skips the others."""

    packages = ("conllu",)

    def __init__(self, config: ConlluConfig, corpus: CorpusConfig):
        source = _source(config, corpus)
        self.last = source_files(source)[-1].path
        self.sentences = _sentences(source)
        self.next = 0  # index of the next sentence in the text

    @classmethod
    def digest(cls, config: ConlluConfig, corpus: CorpusConfig) -> str:
        """Return the digest of the files, in their order. Raises ConfigError and InputError if there are none."""
        try:
            paths = [file.path for file in source_files(_source(config, corpus))]
            check_present(paths)
        except (ConfigError, InputError) as error:
            raise type(error)(str(error).replace("corpus.path", "parser.path")) from None
        return sha256_json(list(map(sha256_file, paths)))

    def trees(self, sentences: Sequence[str], first: int) -> Iterator[Tree]:
        """Yield the trees of sentences. Raises InputError, which names file and line, where the files have others."""
        parsed = islice(self.sentences, first - self.next, None)
        self.next = first + len(sentences)
        for number, sentence in enumerate(sentences, start=first):
            one = next(parsed, None)
            if one is None:
                raise InputError(
                    f'{self.last}: all files end after {number:,} sentences; the text goes on "{sentence[:60]}"; parse '
                    "the text as it is now"
                )
            yield tree_of(one, sentence)


def _source(config: ConlluConfig, corpus: CorpusConfig) -> ConlluCorpusConfig:
    """Return the corpus whose sentences the parser has: itself, or the files of parser.path. Raises ConfigError."""
    if config.path is not None:
        return ConlluCorpusConfig(
            name=corpus.name,
            reference=corpus.reference,
            split=corpus.split,
            path=config.path,
            published_splits=False,
        )
    if not isinstance(corpus, ConlluCorpusConfig):
        raise ConfigError("parser.path: not set; only corpus=conllu has trees of its own")
    return corpus


def _sentences(source: ConlluCorpusConfig) -> Iterator[ConlluSentence]:
    """Return the sentences of a corpus with their trees, in the order of its text."""
    parsed = chain.from_iterable(conllu_sentences(file.path) for file in source_files(source))
    if (share := source.share) is None:
        return parsed
    everything = documents(replace(source, share=None))
    read = ([in_share(document, source.split, share)] * len(document.sentences) for document in everything)
    return compress(parsed, chain.from_iterable(read))


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
            where = f"{parsed.file}:{parsed.lines[index]}"
            raise InputError(f"{where}: word {index + 1}: its heads lead back to it, not to the root")
        reached.update(path)
    return heads
