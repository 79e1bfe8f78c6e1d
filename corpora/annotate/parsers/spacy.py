"""Parse with a spaCy pipeline that was trained on a treebank of Universal Dependencies (docs/guides/parsers.md)."""

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from corpora.annotate.parsers.parser import Parser
from corpora.annotate.tree import Tree, align
from corpora.config import CorpusConfig, SpacyConfig
from pairscale.errors import ConfigError, InputError
from pairscale.files import sha256_file, sha256_json

BATCH = 64  # number of sentences parsed together; a different number may change trees
NEEDED = {
    "token.head": "parser",
    "token.pos": "morphologizer",
    "token.morph": "morphologizer",
    "token.lemma": "lemmatizer",
}  # each attribute and the component that usually sets it
SUPERFLUOUS = ["ner", "entity_ruler", "entity_linker", "senter", "sentencizer", "textcat"]
# Relations that Universal Dependencies lack, but spaCy's own English and German models have.
FOREIGN = frozenset(["pobj", "dobj", "nsubjpass", "sb", "oa"])


class SpacyParser(Parser):
    """A spaCy pipeline. If it finds several sentences in a sentence of the text, `one_root` joins them."""

    packages = ("spacy", "thinc")

    def __init__(self, config: SpacyConfig, corpus: CorpusConfig | None = None):
        import spacy

        try:
            self.nlp = spacy.load(config.model, exclude=SUPERFLUOUS)
        except (OSError, ValueError, KeyError, ImportError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"parser.model={config.model}: spaCy cannot load this pipeline ({reason}).") from None
        _check(config.model, self.nlp)
        self.nlp.max_length = sys.maxsize  # maximum length of a text in characters

    @classmethod
    def digest(cls, config: SpacyConfig, corpus: CorpusConfig) -> str:
        """Return a digest of the names and contents of all files of the model, a folder or an installed package."""
        folder = Path(config.model).expanduser()
        if not folder.exists() and config.model.isidentifier() and (installed := find_spec(config.model)):
            folder = Path((installed.submodule_search_locations or [config.model])[0])
        files = sorted(file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        if not files:
            raise InputError(
                f"parser.model={config.model}: there is no such folder, and no package with this name is installed."
            )
        return sha256_json({file.relative_to(folder).as_posix(): sha256_file(file) for file in files})

    def trees(self, sentences: Sequence[str], first: int) -> Iterator[Tree]:
        with self.nlp.memory_zone():  # otherwise the words of the whole text would stay in memory
            docs = self.nlp.pipe(map(self._one_sentence, sentences), batch_size=BATCH)
            for sentence, doc in zip(sentences, docs, strict=True):
                spans = align(sentence, [token.text for token in doc])
                assert spans is not None, sentence
                heads, relations = [token.head.i for token in doc], [token.dep_ for token in doc]
                one_root(heads, relations)
                yield Tree(
                    sentence,
                    [start for start, _ in spans],
                    [end for _, end in spans],
                    [token.lemma_ for token in doc],
                    [token.pos_ for token in doc],
                    [token.tag_ for token in doc],
                    [str(token.morph) for token in doc],
                    heads,
                    relations,
                )

    def _one_sentence(self, text: str) -> Any:
        doc = self.nlp.make_doc(" ".join(text.split()))  # spaCy makes words of additional white space
        for token in doc:
            token.is_sent_start = token.i == 0
        return doc


def one_root(heads: list[int], relations: list[str]) -> None:
    """Join several trees into one, in place, by making all roots after the first its dependents (parataxis).

    A sentence of the text stays one sentence even if a parser finds several in it, such as list items or quotations.
    """
    roots = [index for index, head in enumerate(heads) if head == index]
    for index in roots[1:]:
        heads[index], relations[index] = roots[0], "parataxis"
    for index in roots[:1]:
        relations[index] = "root"


def _check(model: str, nlp: Any) -> None:
    """Raise ConfigError if a pipeline lacks a component that annotations need, or has other relations."""
    given = {attribute for name in nlp.pipe_names for attribute in nlp.get_pipe_meta(name).assigns}
    if "attribute_ruler" in nlp.pipe_names:  # it may set any attribute
        given |= {"token.pos", "token.morph"}
    if missing := dict.fromkeys(name for attribute, name in NEEDED.items() if attribute not in given):
        raise ConfigError(
            f"parser.model={model}: has no {', '.join(missing)} (only {', '.join(nlp.pipe_names) or 'no components'}). "
            "An annotation needs heads, relations, UPOS tags, features and lemmas."
        )
    if foreign := sorted(FOREIGN & set(nlp.get_pipe("parser").labels if nlp.has_pipe("parser") else ())):
        raise ConfigError(
            f"parser.model={model}: its relations ({', '.join(foreign)}) are not those of Universal Dependencies. "
            "Train a parser on a treebank that uses them (docs/guides/parsers.md)."
        )
