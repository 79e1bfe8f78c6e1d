"""Suites: what is read of them, and refusals."""

import copy
import functools
import json
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.syntaxgym.suites import CIRCUITS, circuit_of, join_regions, load_suites, read_suite
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError
from tests.support.suites import AGREEMENT, write_suites


def test_suites_are_read_by_name(tmp_path):
    suites = load_suites(str(write_suites(tmp_path)))
    assert list(suites.formulas) == ["cleft_mini", "number_mini"]
    number = suites.rows[suites.rows["suite"] == "number_mini"]
    assert number["item"].unique().tolist() == [1, 2, 3]
    assert number["condition"].unique().tolist() == ["sing", "sing_bad", "plural", "plural_bad"]
    assert number["name"].unique().tolist() == ["intro", "noun", "verb", "rest"]
    assert number.query("item == 2 and condition == 'plural_bad'")["text"].iat[0] == "The dogs sleeps quietly ."
    assert suites.rows["text"].iat[0] == "What he did was sleep ."
    assert suites.rows["content"].tolist()[:3] == ["What he did", "", "was sleep ."]
    assert list(load_suites(str(tmp_path), ["number_mini"]).formulas) == ["number_mini"]


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
    text, spans = join_regions(contents)
    words = [" ".join(content.split()) for content in contents]
    assert [text[start:end] for start, end in spans] == words
    assert text == " ".join(word for word in words if word)


def test_folders_without_suites_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"benchmark\.path=.* suites"):
        load_suites(str(tmp_path))
    with pytest.raises(ConfigError, match=r"benchmark=syntaxgym: .* Add benchmark\.path=FOLDER"):
        load_suites(None)
    write_suites(tmp_path)
    with pytest.raises(ConfigError, match=r"benchmark\.suites=x: .* cleft_mini, number_mini"):
        load_suites(str(tmp_path), ["x"])
    (tmp_path / "again.json").write_text(json.dumps(AGREEMENT))
    with pytest.raises(InputError, match=r"suites .* with different names"):
        load_suites(str(tmp_path))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (["meta", "metric"], "mean", r"\$\.meta\.metric: "),
        (["meta"], {}, r"\$\.meta: .*missing"),
        (["items"], [], r"\$\.items: "),
        (["predictions", 0, "type"], "code", r"\$\.predictions\[0\]\.type: "),
        (["predictions", 0, "formula"], "(3;%x%)<1", r"region 3 of condition x"),
        (["predictions", 0, "formula"], "(*;%x%)<1", r"of condition x"),
        (["predictions", 0, "formula"], "(5;%sing%)<1", r"region 5 of condition sing"),
        (["predictions", 0, "formula"], "exec", r"'exec' is not a formula"),
        (["region_meta"], {"1": "a", "2": "b", "3": "c", "5": "d"}, r"region_meta \(1 to 4\)"),
        (["items", 1, "conditions", 0, "condition_name"], "x", r"item 2, condition sing, region 1"),
        (["items", 1, "conditions", 0, "regions"], [], r"item 2, condition sing, region 1"),
        (["items", 0, "conditions"], [], r"the same conditions for each item"),
        (
            ["items", 1, "conditions", 0, "regions"],
            [{"region_number": n, "content": " "} for n in (1, 2, 3, 4)],
            "no text",
        ),
        (["items", 1, "item_number"], 1, r"item 1, condition plural, region 1"),
    ],
)
def test_others_are_refused(tmp_path, place, value, message):
    suite = copy.deepcopy(AGREEMENT)
    *path, last = place
    functools.reduce(operator.getitem, path, suite)[last] = value
    file = tmp_path / "s.json"
    file.write_text(json.dumps(suite))
    with pytest.raises(InputError, match=message) as caught:
        read_suite(file)
    assert str(caught.value).startswith(str(file))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("benchmark.pairs=3", r"benchmark\.pairs=3: form=syntaxgym doesn't use this key"),
        ("benchmark.suites=[]", r"benchmark\.suites=\[\]: .* null"),
        ("benchmark.name=mine", r"benchmark\.name=mine: .*must be one of syntaxgym"),
    ],
)
def test_values_for_benchmarks_of_pairs_are_refused(override, message):
    with pytest.raises(ConfigError, match=message):
        compose("eval", ["benchmark=syntaxgym", override])
