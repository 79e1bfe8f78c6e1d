"""Matched controls: who is drawn for whom."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.ablation.control import draw_controls, matched_control, mean_log_frequencies, words_of_sentences
from corpora.words import words
from pairscale.errors import ConfigError, StoreError
from tests.support.annotated import CONLLU, annotated

BLOCKS = CONLLU.rstrip().split("\n\n")


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=60), st.integers(0, 5))
def test_each_sentence_has_a_control_of_its_own_and_of_its_class_if_one_is_left(rows, seed):
    fine = np.array([value for value, _ in rows])
    has = np.array([matches for _, matches in rows])
    sentences, candidates = np.flatnonzero(has), np.flatnonzero(~has)
    if len(candidates) < len(sentences):
        return
    coarse = np.zeros(len(rows), np.int64)
    controls, levels = draw_controls([fine, coarse], sentences, candidates, seed)
    assert len(set(controls.tolist())) == len(sentences) == sum(levels)
    assert set(controls.tolist()) <= set(candidates.tolist())
    # As many as each class can hold, counted apart.
    wanted, there = Counter(fine[sentences].tolist()), Counter(fine[candidates].tolist())
    assert levels[0] == sum(min(number, there[value]) for value, number in wanted.items())
    assert (fine[controls] == fine[sentences]).sum() >= levels[0]


def test_which_control_is_drawn_depends_on_the_seed():
    classes = [np.zeros(1_000, np.int64)]
    drawn = [draw_controls(classes, np.arange(10), np.arange(10, 1_000), seed)[0].tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_frequencies_are_those_of_the_counted_lemmas(tmp_path):
    text, layer = annotated(tmp_path)
    means = mean_log_frequencies(words_of_sentences(text, layer), np.array([True, True, True, True, False]))
    # Dogs don't sleep. in the first four: dog 2, do 2, not 1, sleep 3, full stop 3.
    assert means[2] == pytest.approx(np.log([2, 2, 1, 3, 3]).mean())
    # They sleep. : they 2, sleep 3, full stop 3; not counted, but like the fourth.
    assert means[4] == pytest.approx(np.log([2, 3, 3]).mean()) == pytest.approx(means[3])


def test_without_an_annotation_frequencies_are_those_of_words(tmp_path):
    text, _ = annotated(tmp_path)
    counted = np.arange(len(text)) != 0
    sentences = [words(sentence.lower(), "treebank") for sentence in text.sentences(range(len(text)))]
    counts = Counter(word for sentence in sentences[1:] for word in sentence)
    expected = [np.log([max(1, counts[word]) for word in sentence]).mean() for sentence in sentences]
    assert mean_log_frequencies(words_of_sentences(text, None), counted) == pytest.approx(expected)


def test_a_text_without_lemmas_has_no_frequencies(tmp_path):
    lines = [line.split("\t") for line in CONLLU.splitlines()]
    without = "\n".join("\t".join([*row[:2], "_", *row[3:]]) if len(row) == 10 else row[0] for row in lines) + "\n\n"
    text, layer = annotated(tmp_path, without)
    with pytest.raises(ConfigError, match=r"has no lemmas, .* frequency"):
        mean_log_frequencies(words_of_sentences(text, layer), np.ones(5, np.bool_))


def test_a_control_is_drawn_once_and_checked_when_it_is_read(tmp_path):
    text, layer = annotated(tmp_path, "\n\n".join(BLOCKS[:4] * 10 + BLOCKS[4:]) + "\n\n")
    sentences = np.arange(0, 40, 4)
    others = np.setdiff1d(np.arange(40), sentences)
    control = matched_control(text, layer, "0" * 64, sentences, others, 1)
    assert control.balance["removed"]["words"] == 9
    assert control.balance["control"]["words"] == pytest.approx(text.words[control.controls].mean())
    assert control.of(sentences[[3, 7]]).tolist() == control.controls[[3, 7]].tolist()
    (folder,) = tmp_path.glob("control-*")
    before = (folder / "controls.npy").stat().st_mtime_ns
    assert matched_control(text, layer, "0" * 64, sentences, others, 1).controls.tolist() == control.controls.tolist()
    assert (folder / "controls.npy").stat().st_mtime_ns == before
    np.save(folder / "controls.npy", np.arange(10))
    with pytest.raises(StoreError, match=folder.name):
        matched_control(text, layer, "0" * 64, sentences, others, 1)


def test_a_construction_in_most_sentences_has_no_control(tmp_path):
    text, layer = annotated(tmp_path)
    with pytest.raises(ConfigError, match="3 sentences have the construction, but only 1 don't"):
        matched_control(text, layer, "0" * 64, np.arange(3), np.array([3]), 1)
