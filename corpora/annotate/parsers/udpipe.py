"""UDPipe 1 (Straka and Straková 2017): one file with tokenizer, tagger, lemmatizer and parser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corpora.annotate.alignment import Span, word_spans
from corpora.annotate.config import UdpipeConfig
from corpora.annotate.parsers.parser import ModelParser, parser
from corpora.annotate.tree import Tree
from corpora.config import CorpusConfig
from pairscale.errors import ConfigError, InputError

PROBE = "dogs sleep ."


@parser(UdpipeConfig)
class UdpipeParser(ModelParser):
    """A model, whose tokenizer takes each sentence of the text as one sentence. Its parser gives one root to each."""

    packages = ("ufal.udpipe",)

    def __init__(self, config: UdpipeConfig, corpus: CorpusConfig):
        from ufal import udpipe

        self.udpipe, self.file = udpipe, config.model
        path = Path(config.model).expanduser()
        self.model: Any = udpipe.Model.load(str(path)) if path.is_file() else None
        if self.model is None:
            raise InputError(f"parser.model={config.model}: not a file with a model of UDPipe")
        self.tokenizer = self.model.newTokenizer("presegmented;ranges")
        if self.tokenizer is None:
            raise ConfigError(f"parser.model={config.model}: has no tokenizer")
        (tree,) = self.parse([PROBE])
        if not any(tree.lemmas) or not any(tree.upos):
            raise ConfigError(f"parser.model={config.model}: has no {'tagger' if any(tree.lemmas) else 'lemmatizer'}")

    def parse(self, texts: list[str]) -> Iterator[Tree]:
        for text in texts:
            sentence = self._parsed(text)
            words = list(sentence.words)[1:]  # without the root, which is none
            spans = _spans(text, sentence, words)
            yield Tree(
                text,
                [start for start, _ in spans],
                [end for _, end in spans],
                [word.lemma for word in words],
                [word.upostag for word in words],
                [word.xpostag for word in words],
                [word.feats for word in words],
                [word.head - 1 if word.head else word.id - 1 for word in words],
                [word.deprel for word in words],
            )

    def _parsed(self, text: str) -> Any:
        """Return UDPipe's sentence of a text. Raises ConfigError for a model without tagger or parser."""
        error, sentence = self.udpipe.ProcessingError(), self.udpipe.Sentence()
        self.tokenizer.resetDocument("")  # or places would go on from the last text
        self.tokenizer.setText(text)
        if self.tokenizer.nextSentence(sentence, error):
            for step in (self.model.tag, self.model.parse):
                step(sentence, self.model.DEFAULT, error)
        if error.occurred():
            raise ConfigError(f"parser.model={self.file}: {error.message}")
        return sentence


def _spans(text: str, sentence: Any, words: list[Any]) -> list[Span]:
    """Return the characters of words, some of which may share a token."""
    spans: dict[int, Span] = {}
    for token in sentence.multiwordTokens:
        forms = [word.form for word in words[token.idFirst - 1 : token.idLast]]
        inner = word_spans(text, (token.getTokenRangeStart(), token.getTokenRangeEnd()), forms)
        spans |= dict(enumerate(inner, start=token.idFirst))
    return [spans.get(word.id) or (word.getTokenRangeStart(), word.getTokenRangeEnd()) for word in words]
