"""Read existing CoNLL-U trees from gold treebanks, or from text that was parsed with other tools."""

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
    """A parser that reads trees from files. Each process reads the trees of its own parts and skips the others."""

    packages = ("conllu",)

    def __init__(self, config: ConlluConfig, corpus: CorpusConfig):
        source = _source(config, corpus)
        self.last = source_files(source)[-1].path
        self.sentences = _sentences(source)
        self.next = 0  # index of the next sentence in the text

    @classmethod
    def digest(cls, config: ConlluConfig, corpus: CorpusConfig) -> str:
        """Return a digest of the files in order. Raises ConfigError or InputError if there are none."""
        try:
            paths = [file.path for file in source_files(_source(config, corpus))]
            check_present(paths)
        except (ConfigError, InputError) as error:
            raise type(error)(str(error).replace("corpus.path", "parser.path")) from None
        return sha256_json(list(map(sha256_file, paths)))

    def trees(self, sentences: Sequence[str], first: int) -> Iterator[Tree]:
        """Yield the trees of sentences. Raises InputError, with file and line, if the files contain other sentences."""
        parsed = islice(self.sentences, first - self.next, None)
        self.next = first + len(sentences)
        for number, sentence in enumerate(sentences, start=first):
            one = next(parsed, None)
            if one is None:
                raise InputError(
                    f"{self.last}: the files contain only {number:,} sentences, but the text continues with "
                    f'"{sentence[:60]}". Parse the current text again.'
                )
            yield tree_of(one, sentence)


def _source(config: ConlluConfig, corpus: CorpusConfig) -> ConlluCorpusConfig:
    """Return the corpus to read trees from. This is the given corpus, or one with the files of parser.path.

    Raises ConfigError if parser.path is not set and the corpus has no trees.
    """
    if config.path is not None:
        return ConlluCorpusConfig(
            name=corpus.name,
            reference=corpus.reference,
            split=corpus.split,
            path=config.path,
            published_splits=False,
        )
    if not isinstance(corpus, ConlluCorpusConfig):
        raise ConfigError(
            "parser.path: this setting is missing. Set it to the CoNLL-U files with the trees, or use corpus=conllu."
        )
    return corpus


def _sentences(source: ConlluCorpusConfig) -> Iterator[ConlluSentence]:
    """Return the annotated sentences of a corpus, in the order of its text."""
    parsed = chain.from_iterable(conllu_sentences(file.path) for file in source_files(source))
    if (share := source.share) is None:
        return parsed
    everything = documents(replace(source, share=None))
    read = ([in_share(document, source.split, share)] * len(document.sentences) for document in everything)
    return compress(parsed, chain.from_iterable(read))


def tree_of(parsed: ConlluSentence, sentence: str) -> Tree:
    """Return the tree of a sentence of the text. Its spaces may differ from the parsed sentence's spaces.

    Raises InputError, with file and line, if the words differ or don't form a tree.
    """
    spans = align(sentence, parsed.tokens)
    if spans is None:
        raise InputError(
            f'{parsed.file}:{parsed.line}: this sentence is "{parsed.text[:60]}", but the text continues with '
            f'"{sentence[:60]}". Parse the current text again.'
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
            raise InputError(
                f"{parsed.file}:{line}: this word has no {name}, which every word of an annotation needs. Add it."
            )
    lemmas = ["_" if word["form"] == "_" else lemma for word, lemma in zip(parsed.words, lemmas, strict=True)]
    return Tree(sentence, starts, ends, lemmas, upos, xpos, feats, _heads(parsed), relations)


def _heads(parsed: ConlluSentence) -> list[int]:
    """Return the index of each word's head. The root is its own head. Raises InputError unless they form one tree."""
    heads = []
    for index, (word, line) in enumerate(zip(parsed.words, parsed.lines, strict=True)):
        head, most = word["head"], len(parsed.words)
        if not (head.isascii() and head.isdecimal() and int(head) <= most and int(head) != index + 1):
            raise InputError(
                f"{parsed.file}:{line}: head {head} is not valid. Use 0 or the id of another word (1 to {most})."
            )
        heads.append(int(head) - 1 if int(head) else index)
    roots = [index for index, head in enumerate(heads) if head == index]
    if len(roots) != 1:
        raise InputError(
            f"{parsed.file}:{parsed.line}: this sentence has {len(roots)} roots. Correct its heads, so that it has one."
        )
    for index in range(len(heads)):
        for _ in heads:  # no path to the root is longer
            index = heads[index]
        if heads[index] != index:
            where = f"{parsed.file}:{parsed.lines[index]}"
            raise InputError(
                f"{where}: word {index + 1} is among its own heads. Correct the heads, so that they lead to the root."
            )
    return heads
