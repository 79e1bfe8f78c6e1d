"""Parse with a spaCy pipeline that was trained on a Universal Dependencies treebank (docs/guides/parsers.md)."""

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
# Relations of spaCy's own English and German models that Universal Dependencies lack.
FOREIGN = frozenset(["pobj", "dobj", "nsubjpass", "sb", "oa"])


class SpacyParser(Parser):
    """A spaCy pipeline. If it splits a sentence of the text into several sentences, `one_root` joins them."""

    packages = ("spacy", "thinc")

    def __init__(self, config: SpacyConfig, corpus: CorpusConfig | None = None):
        import spacy

        try:
            self.nlp = spacy.load(config.model, exclude=SUPERFLUOUS)
        except (OSError, ValueError, KeyError, ImportError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"parser.model={config.model}: spaCy can't load this pipeline ({reason}). Use the name of an installed "
                "package, or a folder."
            ) from None
        _check(config.model, self.nlp)
        self.nlp.max_length = sys.maxsize  # maximum length of a text in characters

    @classmethod
    def digest(cls, config: SpacyConfig, corpus: CorpusConfig) -> str:
        """Return a digest of the names and contents of the model's files, in its folder or installed package."""
        folder = Path(config.model).expanduser()
        if not folder.exists() and config.model.isidentifier() and (installed := find_spec(config.model)):
            folder = Path((installed.submodule_search_locations or [config.model])[0])
        files = sorted(file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        if not files:
            raise InputError(
                f"parser.model={config.model}: there is no such folder or installed package. Correct the name, or "
                "install the package."
            )
        return sha256_json({file.relative_to(folder).as_posix(): sha256_file(file) for file in files})

    def trees(self, sentences: Sequence[str], first: int) -> Iterator[Tree]:
        with self.nlp.memory_zone():  # otherwise, the words of the whole text would stay in memory
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
        doc = self.nlp.make_doc(" ".join(text.split()))  # spaCy would turn additional white space into words
        for token in doc:
            token.is_sent_start = token.i == 0
        return doc


def one_root(heads: list[int], relations: list[str]) -> None:
    """Join several trees into one, in place. All roots become dependents of the first root (parataxis).

    A sentence of the text stays one sentence even if a parser splits it, for example into list items or quotations.
    """
    roots = [index for index, head in enumerate(heads) if head == index]
    for index in roots[1:]:
        heads[index], relations[index] = roots[0], "parataxis"
    for index in roots[:1]:
        relations[index] = "root"


def _check(model: str, nlp: Any) -> None:
    """Raise ConfigError if a pipeline lacks a component that annotations need, or uses other relations."""
    given = {attribute for name in nlp.pipe_names for attribute in nlp.get_pipe_meta(name).assigns}
    if "attribute_ruler" in nlp.pipe_names:  # it may set any attribute
        given |= {"token.pos", "token.morph"}
    if missing := dict.fromkeys(name for attribute, name in NEEDED.items() if attribute not in given):
        raise ConfigError(
            f"parser.model={model}: this pipeline has no {', '.join(missing)} (it has "
            f"{', '.join(nlp.pipe_names) or 'no components'}). Use a pipeline that predicts heads, relations, UPOS "
            "tags, features and lemmas, because an annotation needs them."
        )
    if foreign := sorted(FOREIGN & set(nlp.get_pipe("parser").labels if nlp.has_pipe("parser") else ())):
        raise ConfigError(
            f"parser.model={model}: this pipeline uses relations that Universal Dependencies lack "
            f"({', '.join(foreign)}). Train a parser on a treebank of Universal Dependencies (docs/guides/parsers.md)."
        )
