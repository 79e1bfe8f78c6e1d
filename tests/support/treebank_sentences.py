"""Sentences of a treebank's files by their names, which the labels of constructions use."""

from __future__ import annotations

from pathlib import Path

from corpora.sources.conllu import ConlluSentence, conllu_sentences

SPLITS = ("train", "dev", "test")


def treebank_sentences(treebank: Path, split: str) -> dict[str, ConlluSentence]:
    """Return the sentences of a split of a treebank of Universal Dependencies by their sent_id."""
    (file,) = treebank.glob(f"*-ud-{split}.conllu")
    lines = file.read_text(encoding="utf-8").splitlines()
    names = [line.partition("=")[2].strip() for line in lines if line.startswith("# sent_id =")]
    return dict(zip(names, conllu_sentences(file), strict=True))
