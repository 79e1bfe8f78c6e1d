"""Train a parser of a few kilobytes in seconds, on the sentences of tests.support.annotated."""

from pathlib import Path
from typing import Any

from tests.support.annotated import CONLLU

SMALL = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 16,
    "depth": 1,
    "embed_size": 100,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": True,
}
COMPONENTS = {
    "tagger": {},
    "morphologizer": {},
    "trainable_lemmatizer": {"min_tree_freq": 1},
    "parser": {"min_action_freq": 1},
}


def spacy_pipeline(folder: Path, components: tuple[str, ...] = tuple(COMPONENTS), updates: int = 30) -> Path:
    """Train a spaCy pipeline with some components, and return its folder."""
    import spacy
    from spacy.training import Example
    from spacy.training.converters import conllu_to_docs
    from spacy.util import fix_random_seed

    fix_random_seed(1)
    nlp = spacy.blank("en")
    for name in components:
        nlp.add_pipe(name, config=COMPONENTS[name] | {"model": _model(nlp, name)})
    whole = "\n".join(line for line in CONLLU.splitlines() if not line[:1].isdigit() or line.split("\t")[0].isdigit())
    docs = list(conllu_to_docs(whole, n_sents=1, no_print=True))
    examples = [Example(nlp.make_doc(" ".join(word.text for word in doc)), doc) for doc in docs]
    nlp.initialize(lambda: examples)
    for _ in range(updates):
        nlp.update(examples)
    nlp.to_disk(folder)
    return folder


def _model(nlp: Any, name: str) -> dict[str, Any]:
    """Return the configuration of a component's model, with its own small network."""
    model = nlp.get_factory_meta(name).default_config["model"]
    return {**model, "tok2vec": SMALL}
