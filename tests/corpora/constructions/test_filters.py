"""The filters of conf/filter/ on trees written by hand: each sentence names all constructions that it has.

trees/NAME.conllu has sentences with the construction NAME, and others that nearly have it.
"""

from functools import cache
from pathlib import Path

import pytest

from corpora.annotate.parsers.conllu import tree_of
from corpora.annotate.tree import Tree
from corpora.config import FilterConfig
from corpora.constructions.matcher import Matcher
from corpora.sources.conllu import conllu_sentences
from pairscale.command.compose import compose
from tests.support import ROOT

FILTERS = sorted(path.stem for path in (ROOT / "conf" / "filter").glob("*.yaml"))
TREES = Path(__file__).parent / "trees"


@cache
def matchers() -> dict[str, Matcher]:
    return {name: Matcher(config(name)) for name in FILTERS}


@cache
def config(name: str) -> FilterConfig:
    return compose("find", [f"filter={name}"]).filter


def sentences(name: str) -> list[tuple[Tree, set[str]]]:
    """Return the trees of a file, each with the constructions that its comment names."""
    path = TREES / f"{name}.conllu"
    lines = path.read_text(encoding="utf-8").splitlines()
    named = [set(line.removeprefix("# constructions =").split()) for line in lines if "# constructions =" in line]
    trees = [tree_of(sentence, sentence.text) for sentence in conllu_sentences(path)]
    return list(zip(trees, named, strict=True))


@pytest.mark.parametrize("name", FILTERS)
def test_each_sentence_has_the_constructions_that_it_is_said_to_have(name):
    for tree, named in sentences(name):
        assert {other for other, matcher in matchers().items() if matcher.occurrences(tree)} == named, tree.sentence


@pytest.mark.parametrize("name", FILTERS)
def test_each_construction_has_three_sentences_and_three_near_misses(name):
    has = [name in named for _, named in sentences(name)]
    assert min(has.count(True), has.count(False)) >= 3


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_has_the_name_of_its_file_and_paradigms_of_blimp(name, real_data):
    assert config(name).name == name
    paradigms = config(name).paradigms.get("blimp", [])
    assert set(paradigms) <= {path.stem for path in (real_data / "blimp").glob("*.jsonl")}
