"""Annotation layers: what is written is read, in any order, and damage is noticed."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.annotate.layer import layer_folder, open_layer, part_path, write_part
from corpora.annotate.tree import Tree
from pairscale.errors import ConfigError, StoreError
from tests.support.annotated import CONLLU, annotated, text_store, write_trees

WORD = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=6)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@st.composite
def trees(draw) -> Tree:
    words = draw(st.lists(WORD, max_size=8))
    sentence = " ".join(words) or "-"
    ends = np.cumsum([len(word) + 1 for word in words], dtype=int) - 1
    values = [[draw(NAMES) for _ in words] for _ in range(5)]
    heads = [draw(st.integers(0, len(words) - 1)) for _ in words]
    starts = [int(end) - len(word) for end, word in zip(ends, words, strict=True)]
    return Tree(sentence, starts, ends.tolist(), *values[:4], heads, values[4])


@given(written=st.lists(trees(), min_size=1, max_size=9), size=st.integers(1, 5), data=st.data())
@settings(max_examples=40)
def test_trees_are_read_as_written_in_any_order(tmp_path_factory, written, size, data):
    corpus = tmp_path_factory.mktemp("corpus")
    text = text_store(corpus, [tree.sentence for tree in written])
    written = [*written, Tree("They sleep.", [], [], [], [], [], [], [], [])]
    layer = write_trees(corpus, text, written, part_sentences=size)
    assert list(layer.trees(range(len(text)))) == written
    order = data.draw(st.lists(st.integers(0, len(written) - 1), max_size=20))
    assert list(layer.trees(order)) == [written[index] for index in order]
    assert list(pickle.loads(pickle.dumps(layer)).trees(order)) == [written[index] for index in order]
    assert layer.manifest["words"] == sum(map(len, written))


def test_conllu_is_read_with_its_words_in_the_sentence(tmp_path):
    _, layer = annotated(tmp_path)
    passive, question, contraction = layer.trees([0, 1, 2])
    assert passive.words == ["The", "fox", "that", "sleeps", "was", "seen", "by", "dogs", "."]
    assert passive.heads == [1, 5, 3, 1, 5, 5, 7, 5, 5]
    assert passive.relations[1:3] == ["nsubj:pass", "nsubj"]
    assert (passive.lemmas[5], passive.upos[5], passive.xpos[5]) == ("see", "VERB", "VBN")
    assert passive.feats[5:7] == ["Tense=Past|VerbForm=Part|Voice=Pass", ""]
    assert question.words == ["What", "did", "they", "see", "?"]
    assert question.sentence[question.starts[3] :] == "see?"  # after two spaces
    assert contraction.words == ["Dogs", "do", "n't", "sleep", "."]


def test_words_that_a_token_contracts_share_its_span(tmp_path):
    contracted = CONLLU.replace("don't", "won't").replace("2\tdo\tdo", "2\twill\twill").replace("3\tn't", "3\tnot")
    _, layer = annotated(tmp_path, contracted)
    (tree,) = layer.trees([2])
    assert tree.words == ["Dogs", "won't", "won't", "sleep", "."]


def test_a_layer_is_chosen_by_name_unless_it_is_the_only_one(tmp_path):
    text, layer = annotated(tmp_path)
    assert open_layer(tmp_path, None, text).digest == layer.digest
    write_trees(tmp_path, text, list(layer.trees(range(len(text)))), name="gold")
    with pytest.raises(ConfigError, match=r"Choose one with ablate.layer=conllu\|gold"):
        open_layer(tmp_path, None, text)
    with pytest.raises(ConfigError, match=r"ablate.layer=spacy: .* conllu or gold"):
        open_layer(tmp_path, "spacy", text)
    assert open_layer(tmp_path, "gold", text).name == "gold"


def test_an_unfinished_layer_is_none(tmp_path):
    text = text_store(tmp_path, ["Dogs sleep ."])
    write_part(part_path(layer_folder(tmp_path, "spacy"), 0), [])  # of a command that was killed
    with pytest.raises(ConfigError, match=r"python -m corpora.annotate and the same"):
        open_layer(tmp_path, None, text)


def test_a_layer_of_another_text_is_refused(tmp_path):
    annotated(tmp_path)
    (tmp_path / "text" / "manifest.json").unlink()
    text = text_store(tmp_path, ["Dogs sleep ."])
    with pytest.raises(StoreError, match=r"not made from the text"):
        open_layer(tmp_path, None, text)


def test_a_damaged_part_is_named(tmp_path):
    text, layer = annotated(tmp_path)
    path = part_path(layer.folder, 1)
    content = path.read_bytes()
    path.write_bytes(bytes(len(content)))
    with pytest.raises(StoreError, match=r"part-00001.parquet"):
        list(open_layer(tmp_path, None, text).trees([2]))
    path.write_bytes(content[:-1])
    with pytest.raises(StoreError, match=r"part-00001.parquet"):
        list(open_layer(tmp_path, None, text).trees([2]))
