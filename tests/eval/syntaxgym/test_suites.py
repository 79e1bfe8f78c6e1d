"""Suites: what is read of them, and refusals."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.syntaxgym.suites import CIRCUITS, Sentence, circuit_of, load_suites, read_suite
from pairscale.errors import ConfigError, InputError
from tests.support.suites import AGREEMENT, write_suites


def test_suites_are_read_by_name(tmp_path):
    cleft, number = load_suites(str(write_suites(tmp_path))).suites
    assert (cleft.name, cleft.circuit) == ("cleft_mini", "Long-Distance Dependencies")
    assert (number.name, number.circuit, number.items) == ("number_mini", "Agreement", (1, 2, 3))
    assert number.conditions == ("sing", "sing_bad", "plural", "plural_bad")
    assert number.regions == ("intro", "noun", "verb", "rest")
    assert number.sentences[1][3].text == "The dogs sleeps quietly ."
    good = cleft.sentences[0][0]
    assert good.text == "What he did was sleep ."
    assert [good.text[start:end] for start, end in good.spans] == ["What he did", "", "was sleep ."]
    assert [suite.name for suite in load_suites(str(tmp_path), ["number_mini"]).suites] == ["number_mini"]


def test_the_digest_is_of_what_counts(tmp_path):
    digest = load_suites(str(write_suites(tmp_path))).digest
    assert load_suites(str(tmp_path)).digest == digest
    assert load_suites(str(tmp_path), ["number_mini"]).digest != digest
    changed = copy.deepcopy(AGREEMENT)
    changed["predictions"][0]["formula"] += " "
    (tmp_path / "number_mini.json").write_text(json.dumps(changed))
    assert load_suites(str(tmp_path)).digest != digest


def test_circuits_are_those_of_the_paper():
    assert len(CIRCUITS) == 6
    assert circuit_of("subordination_pp-pp") == "Gross Syntactic State"
    assert circuit_of("reflexive_src_fem") == "Licensing"
    assert circuit_of("npz_obj_mod") == circuit_of("mvrr") == "Garden-Path Effects"
    assert [circuit_of(name) for name in ("fgd-embed3", "nn-nv-rpl", "mine")] == [None, None, None]


@given(st.lists(st.text(alphabet="ab ,", max_size=6), min_size=1, max_size=6))
def test_regions_are_where_their_text_is(contents):
    sentence = Sentence.of(contents)
    words = [" ".join(content.split()) for content in contents]
    assert [sentence.text[start:end] for start, end in sentence.spans] == words
    assert sentence.text == " ".join(word for word in words if word)


def changed(key, value):
    def change(suite):
        place = suite
        *path, last = key
        for step in path:
            place = place[step]
        place[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed(["meta", "metric"], "mean"), r"meta\.metric is 'mean', must be 'sum'"),
        (changed(["meta"], {}), r"\$\.meta: without .*; must be a suite as in syntaxgym-core's format"),
        (changed(["items"], []), r"must have an item with conditions, and a prediction"),
        (changed(["predictions", 0, "type"], "code"), r"prediction 1: type is 'code', must be 'formula'"),
        (changed(["predictions", 0, "formula"], "(3;%x%)<1"), r"prediction 1: no condition 'x'; the suite has sing, "),
        (changed(["predictions", 0, "formula"], "(5;%sing%)<1"), r"prediction 1: no region 5; the suite has 1 to 4"),
        (changed(["predictions", 0, "formula"], "exec"), r"prediction 1: character 1 of the formula: got 'exec'"),
        (changed(["region_meta"], {"1": "a", "3": "b"}), r"region_meta has 1, 3, must have 1, 2, \.\.\."),
        (changed(["items", 1, "conditions", 0, "condition_name"], "x"), r"item 2: conditions x, .*as in the first"),
        (
            changed(["items", 1, "conditions", 0, "regions"], []),
            r"item 2: condition sing: must have the regions 1 to 4",
        ),
        (changed(["items", 1, "item_number"], 1), r"two items have one item_number"),
    ],
)
def test_others_are_refused(tmp_path, change, message):
    suite = copy.deepcopy(AGREEMENT)
    change(suite)
    file = tmp_path / "s.json"
    file.write_text(json.dumps(suite))
    with pytest.raises(InputError, match=message) as caught:
        read_suite(file)
    assert str(caught.value).startswith(str(file))


def test_folders_without_suites_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"benchmark\.path: no suites \(\*\.json\) in"):
        load_suites(str(tmp_path))
    with pytest.raises(ConfigError, match=r"benchmark=syntaxgym: give benchmark\.path=FOLDER"):
        load_suites(None)
    write_suites(tmp_path)
    with pytest.raises(ConfigError, match=r"benchmark\.suites: no suite 'x' in .*; it has cleft_mini, number_mini"):
        load_suites(str(tmp_path), ["x"])
    (tmp_path / "again.json").write_text(json.dumps(AGREEMENT))
    with pytest.raises(InputError, match=r"two files of the suite number_mini"):
        load_suites(str(tmp_path))
