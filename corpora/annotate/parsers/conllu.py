"""Trees that are there already, in CoNLL-U: gold treebanks, or text that was parsed elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, compress, islice

from corpora.annotate.parsers.parser import Parser
from corpora.annotate.tree import Tree, align, word_spans
from corpora.config import ConlluConfig, ConlluCorpusConfig, CorpusConfig
from corpora.sources.conllu import ConlluSentence, conllu_sentences
from corpora.sources.files import source_files
from corpora.sources.lines import check_present
from corpora.sources.read import documents
from corpora.text import in_share
from pairscale.errors import ConfigError, InputError
from pairscale.files import sha256_file, sha256_json


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
    spans = align(sentence, parsed.tokens)
    if spans is None:
        raise InputError(
            f'{parsed.file}:{parsed.line}: the text has "{sentence[:60]}" here, not "{parsed.text[:60]}"; parse the '
            "text as it is now"
        )
    places, first = [], 0
    for span, size in zip(spans, parsed.sizes, strict=True):
        places += word_spans(sentence, span, [word["form"] for word in parsed.words[first : first + size]])
        first += size
    starts, ends = [start for start, _ in places], [end for _, end in places]
    lemmas, upos, xpos, feats, relations = (
        ["" if word[name] == "_" else str(word[name]) for word in parsed.words]
        for name in ("lemma", "upos", "xpos", "feats", "deprel")
    )
    for name, values in (("upos", upos), ("deprel", relations)):
        if "" in values:
            line = parsed.lines[values.index("")]
            raise InputError(f"{parsed.file}:{line}: a word without {name}; annotations need them all")
    lemmas = ["_" if word["form"] == "_" else lemma for word, lemma in zip(parsed.words, lemmas, strict=True)]
    return Tree(sentence, starts, ends, lemmas, upos, xpos, feats, _heads(parsed), relations)


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
    for index in range(len(heads)):
        for _ in heads:  # no way to the root is longer
            index = heads[index]
        if heads[index] != index:
            where = f"{parsed.file}:{parsed.lines[index]}"
            raise InputError(f"{where}: word {index + 1}: its heads lead back to it, not to the root")
    return heads
