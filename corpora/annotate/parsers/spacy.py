"""spaCy: a pipeline that was trained on a treebank of Universal Dependencies (corpora/train_parser)."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from corpora.annotate.config import SpacyConfig
from corpora.annotate.parsers.parser import ModelParser, files_digest, one_root, parser
from corpora.annotate.tree import Tree
from corpora.config import CorpusConfig
from pairscale.errors import ConfigError, InputError

BATCH = 64  # sentences; its size is part of what makes trees the same again, to the last bit
NEEDED = {
    "token.head": "parser",
    "token.pos": "morphologizer",
    "token.morph": "morphologizer",
    "token.lemma": "lemmatizer",
}  # attribute -> the component that usually sets it
SUPERFLUOUS = ["ner", "entity_ruler", "entity_linker", "senter", "sentencizer", "textcat"]
# Relations that are none of Universal Dependencies, as spaCy's own English and German models have them.
FOREIGN = frozenset(["pobj", "dobj", "nsubjpass", "sb", "oa"])


@parser(SpacyConfig)
class SpacyParser(ModelParser):
    """A pipeline, with each sentence of the text as one sentence: where it sees more, `one_root` joins them."""

    packages = ("spacy", "thinc")

    def __init__(self, config: SpacyConfig, corpus: CorpusConfig | None = None):
        import spacy

        try:
            self.nlp = spacy.load(config.model, exclude=SUPERFLUOUS)
        except (OSError, ValueError, KeyError, ImportError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"parser.model={config.model}: not a pipeline that spaCy can load ({reason})") from None
        _check(config.model, self.nlp)
        self.nlp.max_length = sys.maxsize  # of a text in characters

    @classmethod
    def digest(cls, config: SpacyConfig, corpus: CorpusConfig) -> str:
        """Return the digest of the folder, or of the installed package's."""
        if Path(config.model).expanduser().exists():
            return super().digest(config, corpus)
        installed = find_spec(config.model) if config.model.isidentifier() else None
        if installed is None or not installed.submodule_search_locations:
            raise InputError(f"parser.model={config.model}: no such folder, and no package of that name is installed")
        return files_digest(Path(installed.submodule_search_locations[0]))

    def parse(self, texts: list[str]) -> Iterator[Tree]:
        with self.nlp.memory_zone():  # or the words of the whole text would stay in memory
            for doc in self.nlp.pipe(map(self._one_sentence, texts), batch_size=BATCH):
                heads = [token.head.i for token in doc]
                relations = [token.dep_ for token in doc]
                one_root(heads, relations)
                yield Tree(
                    doc.text,
                    [token.idx for token in doc],
                    [token.idx + len(token) for token in doc],
                    [token.lemma_ for token in doc],
                    [token.pos_ for token in doc],
                    [token.tag_ for token in doc],
                    [str(token.morph) for token in doc],
                    heads,
                    relations,
                )

    def _one_sentence(self, text: str) -> Any:
        doc = self.nlp.make_doc(text)
        for token in doc:
            token.is_sent_start = token.i == 0
        return doc


def _check(model: str, nlp: Any) -> None:
    """Raise ConfigError for a pipeline without what a layer needs, or with other relations."""
    given = {attribute for name in nlp.pipe_names for attribute in nlp.get_pipe_meta(name).assigns}
    if "attribute_ruler" in nlp.pipe_names:  # it may set any
        given |= {"token.pos", "token.morph"}
    if missing := dict.fromkeys(name for attribute, name in NEEDED.items() if attribute not in given):
        raise ConfigError(
            f"parser.model={model}: has no {', '.join(missing)} among {', '.join(nlp.pipe_names) or 'no components'}; "
            "an annotation has heads, relations, UPOS, features and lemmas"
        )
    if foreign := sorted(FOREIGN & set(nlp.get_pipe("parser").labels if nlp.has_pipe("parser") else ())):
        raise ConfigError(
            f"parser.model={model}: its relations ({', '.join(foreign)}) are not those of Universal Dependencies; "
            "python -m corpora.train_parser trains a parser on a treebank that has them"
        )
