"""Stanza (Qi et al. 2020): neural pipelines for some seventy languages, read from a folder and never downloaded."""

from collections.abc import Iterator
from typing import Any

from corpora.annotate.alignment import word_spans
from corpora.annotate.config import StanzaConfig
from corpora.annotate.parsers.parser import ModelParser, one_root, parser
from corpora.annotate.tree import Tree
from corpora.config import CorpusConfig
from pairscale.errors import InputError

BATCH = 64  # sentences
PROCESSORS = "tokenize,pos,lemma,depparse"  # and mwt, which Stanza adds where a language has multi-word tokens


@parser(StanzaConfig)
class StanzaParser(ModelParser):
    """A pipeline, with each sentence of the text as one sentence."""

    packages = ("stanza", "torch")
    extra = "stanza"

    def __init__(self, config: StanzaConfig, corpus: CorpusConfig):
        import stanza
        import torch

        torch.set_num_threads(1)  # of each process; and the same trees whatever their number
        try:
            self.pipeline = stanza.Pipeline(
                config.language,
                dir=config.model,
                processors=PROCESSORS,
                tokenize_no_ssplit=True,
                download_method=None,
                verbose=False,
            )
        except Exception as error:  # of files and resources, of classes of its own that share no base
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"parser.model={config.model}, parser.language={config.language}: not models that Stanza can load "
                f'({reason}); on a machine with a network: stanza.download("{config.language}", model_dir=FOLDER)'
            ) from None

    def parse(self, texts: list[str]) -> Iterator[Tree]:
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            for text, document in zip(batch, self.pipeline.bulk_process(batch), strict=True):
                yield _tree(text, document)


def _tree(text: str, document: Any) -> Tree:
    """Return the tree of a text, one sentence also where Stanza has several."""
    tree = Tree(text, [], [], [], [], [], [], [], [])
    for sentence in document.sentences:
        first = len(tree)
        for token in sentence.tokens:
            spans = word_spans(text, (token.start_char, token.end_char), [word.text for word in token.words])
            for (start, end), word in zip(spans, token.words, strict=True):
                tree.starts.append(start)
                tree.ends.append(end)
                tree.lemmas.append(word.lemma or "")
                tree.upos.append(word.upos or "")
                tree.xpos.append(word.xpos or "")
                tree.feats.append(word.feats or "")
                tree.heads.append(first + (word.head or word.id) - 1)
                tree.relations.append(word.deprel)
    one_root(tree.heads, tree.relations)
    return tree
