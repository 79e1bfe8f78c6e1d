"""Parsers: words stand where they are in the sentence, trees have one root, and models that lack something are told."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.annotate.alignment import aligned, collapsed, uncollapsed, word_spans
from corpora.annotate.config import ParserConfig, SpacyConfig, StanzaConfig, UdpipeConfig
from corpora.annotate.parsers.parser import Parser, one_root, parser_of
from corpora.annotate.parsers.stanza import StanzaParser
from corpora.config import NoCorpusConfig, SplitConfig
from pairscale.errors import ConfigError, InputError
from tests.support.tiny_parsers import spacy_pipeline, udpipe_model

NO_CORPUS = NoCorpusConfig(name="none", reference="treebank", split=SplitConfig(seed=0, valid=0.1, test=0.1))
SENTENCE = "\u3000What did they  see? Dogs don't sleep, they said. \u201cYes\u201d 10 000 "


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, ParserConfig]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "spacy": SpacyConfig(name="spacy", model=str(spacy_pipeline(folder / "spacy"))),
        "udpipe": UdpipeConfig(name="udpipe", model=str(udpipe_model(folder / "model.udpipe"))),
    }


def load(config: ParserConfig) -> Parser:
    return parser_of(config)(config, NO_CORPUS)


@pytest.mark.parametrize("name", ["spacy", "udpipe"])
def test_words_stand_where_they_are_and_form_one_tree(models, name):
    seen = "The fox that sleeps was seen by dogs."
    first, second, symbols = load(models[name]).trees([SENTENCE, seen, "\u200b \u00ad"], 0)
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


@pytest.mark.parametrize("name", ["spacy", "udpipe"])
def test_sentences_do_not_depend_on_those_before(models, name):
    sentences = [f"They sleep {n}." for n in range(200)]
    whole = list(load(models[name]).trees(sentences, 0))
    assert list(load(models[name]).trees(sentences[100:], 100)) == whole[100:]


@pytest.mark.parametrize(
    ("without", "missing"),
    [
        ("parser", "has no parser among tagger, morphologizer, trainable_lemmatizer;"),
        ("morphologizer", "has no morphologizer among"),
        ("trainable_lemmatizer", "has no lemmatizer among"),
    ],
)
def test_a_pipeline_that_lacks_a_component_names_it(models, without, missing):
    import spacy

    nlp = spacy.load(models["spacy"].model, exclude=[without])
    folder = Path(models["spacy"].model).parent / f"without-{without}"
    nlp.to_disk(folder)
    with pytest.raises(ConfigError, match=rf"parser.model={folder}: {missing}"):
        load(SpacyConfig(name="spacy", model=str(folder)))


def test_relations_of_other_schemes_are_refused(models, monkeypatch):
    monkeypatch.setattr("corpora.annotate.parsers.spacy.FOREIGN", frozenset(["acl:relcl"]))
    with pytest.raises(ConfigError, match=r"its relations \(acl:relcl\) are not those of Universal Dependencies"):
        load(models["spacy"])


@pytest.mark.parametrize(
    "config", [SpacyConfig(name="spacy", model="no/folder"), SpacyConfig(name="spacy", model="no_package")]
)
def test_a_missing_model_is_told(config):
    with pytest.raises(
        InputError, match=r"parser.model=no.*: no such folder, and no package of that name is installed"
    ):
        parser_of(config).digest(config, NO_CORPUS)


def test_damaged_models_are_told(models, tmp_path):
    (tmp_path / "config.cfg").write_text("nonsense")
    with pytest.raises(InputError, match=r"parser.model=.*: not a pipeline that spaCy can load \("):
        load(SpacyConfig(name="spacy", model=str(tmp_path)))
    file = tmp_path / "model.udpipe"
    file.write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"parser.model=.*: not a file with a model of UDPipe"):
        load(UdpipeConfig(name="udpipe", model=str(file)))
    with pytest.raises(InputError, match=r"parser.model: no file or folder"):
        parser_of(models["udpipe"]).digest(UdpipeConfig(name="udpipe", model=str(tmp_path / "none")), NO_CORPUS)


def test_a_model_of_udpipe_without_a_parser_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"parser.model=.*: No parser defined for the UDPipe model!"):
        load(UdpipeConfig(name="udpipe", model=str(udpipe_model(tmp_path / "model.udpipe", parser="none"))))


def word(number: int, text: str, head: int, relation: str) -> SimpleNamespace:
    return SimpleNamespace(
        id=number, text=text, lemma=text, upos="X", xpos=None, feats=None, head=head, deprel=relation
    )  # fmt: skip


class FakePipeline:
    """Stanza at its edge: two sentences although one was asked for, and a token of two words."""

    def __init__(self, language: str, **options: object):
        assert options["tokenize_no_ssplit"]
        assert options["download_method"] is None
        if language != "xx":
            raise FileNotFoundError(f"Could not find the model file {options['dir']}/{language}")

    def bulk_process(self, texts: list[str]) -> list[SimpleNamespace]:
        return [self._document(text) for text in texts]

    def _document(self, text: str) -> SimpleNamespace:
        assert text == "Dogs don't . Yes"
        first = [
            SimpleNamespace(start_char=0, end_char=4, words=[word(1, "Dogs", 2, "nsubj")]),
            SimpleNamespace(start_char=5, end_char=10, words=[word(2, "do", 0, "root"), word(3, "n't", 2, "advmod")]),
            SimpleNamespace(start_char=11, end_char=12, words=[word(4, ".", 2, "punct")]),
        ]
        second = [SimpleNamespace(start_char=13, end_char=16, words=[word(1, "Yes", 0, "root")])]
        return SimpleNamespace(sentences=[SimpleNamespace(tokens=tokens) for tokens in (first, second)])


def test_stanza_gives_one_tree_of_what_it_sees_as_two_sentences(monkeypatch, same_threads):
    monkeypatch.setitem(sys.modules, "stanza", SimpleNamespace(Pipeline=FakePipeline))
    parser = StanzaParser(StanzaConfig(name="stanza", model="models", language="xx"), NO_CORPUS)
    (tree,) = parser.trees(["Dogs  don't . Yes"], 0)
    assert tree.words == ["Dogs", "do", "n't", ".", "Yes"]
    assert tree.heads == [1, 1, 1, 1, 1]
    assert tree.relations == ["nsubj", "root", "advmod", "punct", "parataxis"]
    with pytest.raises(
        InputError, match=r"parser.language=en: not models that Stanza can load \(Could not find the mod"
    ):
        StanzaParser(StanzaConfig(name="stanza", model="models", language="en"), NO_CORPUS)


def test_a_parser_that_is_not_installed_names_what_to_install(monkeypatch):
    monkeypatch.setattr(StanzaParser, "packages", ("no-such-package",))
    with pytest.raises(
        ConfigError, match=r'needs no-such-package, which is not installed; pip install "pairscale\[stanza\]"'
    ):
        parser_of(StanzaConfig(name="stanza", model="models", language="en"))


def test_roots_after_the_first_depend_on_it():
    heads, relations = [1, 1, 3, 3], ["det", "ROOT", "case", "ROOT"]
    one_root(heads, relations)
    assert (heads, relations) == ([1, 1, 3, 1], ["det", "root", "case", "parataxis"])


SPACES = st.text(st.sampled_from(" \t\u3000\u00a0"), max_size=2)


@given(st.lists(st.tuples(SPACES, st.text(st.sampled_from("ab'\u200b"), min_size=1, max_size=3)), max_size=6), SPACES)
@settings(max_examples=60)
def test_tokens_align_whatever_the_spaces(parts, end):
    sentence = "".join(space + token for space, token in parts) + end
    spans = aligned(sentence, [token for _, token in parts])
    assert spans is not None
    assert [sentence[start:stop] for start, stop in spans] == [token for _, token in parts]
    text = collapsed(sentence)
    inner = aligned(text, [token for _, token in parts])
    assert uncollapsed(sentence, text, inner) == spans
    assert aligned(sentence, ["c", *(token for _, token in parts)]) is None


def test_words_of_a_token_divide_or_share_its_span():
    assert word_spans("I don't", (2, 7), ["do", "n't"]) == [(2, 4), (4, 7)]
    assert word_spans("zum Arzt", (0, 3), ["zu", "dem"]) == [(0, 3), (0, 3)]
    assert word_spans("zum Arzt", (4, 8), ["Arzt"]) == [(4, 8)]
