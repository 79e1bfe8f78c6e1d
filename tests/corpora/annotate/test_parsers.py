"""Parsers: words stand where they are in the sentence, trees have one root, and unusable models are refused."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.annotate.parsers.parser import Parser, parser_of
from corpora.annotate.parsers.spacy import SpacyParser, one_root
from corpora.annotate.tree import align, word_spans
from corpora.config import NoCorpusConfig, SpacyConfig, SplitConfig
from pairscale.errors import ConfigError, InputError
from tests.support import ROOT
from tests.support.annotated import CONLLU
from tests.support.tiny_parser import spacy_pipeline

NO_CORPUS = NoCorpusConfig(name="none", reference="treebank", split=SplitConfig(seed=0, valid=0.1, test=0.1))
SENTENCE = "\u3000What did they  see? Dogs don't sleep, they said. \u201cYes\u201d 10 000 "
SEEN = "The fox that sleeps was seen by dogs."


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return spacy_pipeline(tmp_path_factory.mktemp("models") / "spacy")


def load(model: Path) -> Parser:
    config = SpacyConfig(name="spacy", model=str(model))
    return parser_of(config)(config, NO_CORPUS)


def test_words_stand_where_they_are_and_form_one_tree(model):
    first, second, symbols = load(model).trees([SENTENCE, SEEN, "\u200b \u00ad"], 0)
    assert first.sentence == SENTENCE
    words = "What did they see ? Dogs do n't sleep , they said . “ Yes ” 10 000"
    assert "".join(first.words) == words.replace(" ", "")
    assert first.words[:9] == words.split(" ")[:9]
    assert second.words == ["The", "fox", "that", "sleeps", "was", "seen", "by", "dogs", "."]
    assert second.lemmas[3:6] == ["sleep", "be", "see"]
    assert second.upos[:3] == ["DET", "NOUN", "PRON"]
    assert second.feats[1] == "Number=Sing"
    assert second.xpos[5] == "VBN"
    for tree in (first, second, symbols):
        roots = [index for index, head in enumerate(tree.heads) if head == index]
        assert [tree.relations[index] for index in roots] == ["root"]
        for index in range(len(tree)):
            for _ in range(len(tree)):
                index = tree.heads[index]
            assert index == roots[0]


def test_sentences_do_not_depend_on_those_before(model):
    sentences = [f"They sleep {n}." for n in range(200)]
    whole = list(load(model).trees(sentences, 0))
    assert list(load(model).trees(sentences[100:], 100)) == whole[100:]


@pytest.mark.release
def test_the_configuration_of_the_guide_trains_a_parser_for_annotations(tmp_path):
    def run_spacy(*words: object) -> None:
        subprocess.run([sys.executable, "-m", "spacy", *map(str, words)], check=True, capture_output=True)

    for split, copies in (("train", 30), ("dev", 1)):
        (tmp_path / f"{split}.conllu").write_text((CONLLU + "\n") * copies, encoding="utf-8")
        run_spacy("convert", tmp_path / f"{split}.conllu", tmp_path, "--n-sents", 1)
    paths = ["--paths.train", tmp_path / "train.spacy", "--paths.dev", tmp_path / "dev.spacy"]
    steps = ["--training.max_steps", 40, "--training.optimizer.learn_rate.warmup_steps", 4]
    run_spacy("train", ROOT / "conf" / "parser" / "train.cfg", "--output", tmp_path, *paths, *steps)
    run_spacy("benchmark", "accuracy", tmp_path / "model-last", tmp_path / "dev.spacy", "--gold-preproc")
    (tree,) = load(tmp_path / "model-last").trees([SEEN], 0)
    assert tree.relations[1:3] == ["nsubj:pass", "nsubj"]
    assert tree.lemmas[:2] == ["the", "fox"]
    assert tree.heads == [1, 5, 3, 1, 5, 5, 7, 5, 5]


@pytest.mark.parametrize("missing", ["parser", "morphologizer", "trainable_lemmatizer"])
def test_a_pipeline_that_lacks_a_component_names_it(model, missing):
    import spacy

    folder = model.parent / f"without-{missing}"
    spacy.load(model, exclude=[missing]).to_disk(folder)
    with pytest.raises(ConfigError, match=rf"{folder}: .* no {missing.removeprefix('trainable_')} .*tagger"):
        load(folder)


def test_relations_of_other_schemes_are_refused(model, monkeypatch):
    monkeypatch.setattr("corpora.annotate.parsers.spacy.FOREIGN", frozenset(["acl:relcl"]))
    with pytest.raises(ConfigError, match=r"Universal Dependencies .*\(acl:relcl\)"):
        load(model)


def test_missing_and_damaged_models_are_refused(tmp_path):
    for name in ("no/folder", "no_package"):
        with pytest.raises(InputError, match=rf"parser.model={name}"):
            SpacyParser.digest(SpacyConfig(name="spacy", model=name), NO_CORPUS)
    (tmp_path / "config.cfg").write_text("nonsense")
    with pytest.raises(InputError, match=r"parser.model=.*: spaCy can't load"):
        load(tmp_path)


def test_a_parser_that_is_not_installed_names_what_to_install(monkeypatch):
    monkeypatch.setattr(SpacyParser, "packages", ("no-such-package",))
    with pytest.raises(ConfigError, match=r"pip install no-such-package"):
        parser_of(SpacyConfig(name="spacy", model="models"))


def test_roots_after_the_first_depend_on_it():
    heads, relations = [1, 1, 3, 3], ["det", "ROOT", "case", "ROOT"]
    one_root(heads, relations)
    assert (heads, relations) == ([1, 1, 3, 1], ["det", "root", "case", "parataxis"])


SPACES = st.text(st.sampled_from(" \t\u3000\u00a0"), max_size=2)


@given(st.lists(st.tuples(SPACES, st.text(st.sampled_from("ab'\u200b"), min_size=1, max_size=3)), max_size=6), SPACES)
@settings(max_examples=60)
def test_tokens_align_whatever_the_spaces(parts, end):
    sentence = "".join(space + token for space, token in parts) + end
    spans = align(sentence, [token for _, token in parts])
    assert spans is not None
    assert [sentence[start:stop] for start, stop in spans] == [token for _, token in parts]
    assert align(sentence, ["c", *(token for _, token in parts)]) is None


def test_words_of_a_token_divide_or_share_its_span():
    assert word_spans("I don't", (2, 7), ["do", "n't"]) == [(2, 4), (4, 7)]
    assert word_spans("zum Arzt", (0, 3), ["zu", "dem"]) == [(0, 3), (0, 3)]
    assert word_spans("zum Arzt", (4, 8), ["Arzt"]) == [(4, 8)]
