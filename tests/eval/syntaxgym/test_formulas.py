"""Formulas: their values by hand and as syntaxgym has them, refusals, and that nothing in them is executed."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.syntaxgym.formulas import Formula
from eval.syntaxgym.suites import load_suites
from pairscale.errors import InputError
from tests.support.suites import reference_formula

SURPRISALS = {("a", 1): np.array([1.0, 2.0]), ("a", 2): np.array([4.0, 3.0]), ("b-x_1", 1): np.array([1.0, 5.0])}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("(1;%a%) < (2;%a%)", [True, True]),
        ("(1;%a%)>(1;%b-x_1%)", [False, False]),
        ("(1;%a%) = (1;%b-x_1%)", [True, False]),
        ("(*;%a%) = 5", [True, True]),
        ("[(2;%a%) - (1;%a%)] - (1;%b-x_1%) > 0", [True, False]),
        ("(2;%a%) - (1;%a%) - (1;%b-x_1%) = 2", [True, False]),
        ("1 + 2 * (1;%a%) = 3", [True, False]),
        ("(2;%a%) / 2 = 2", [True, False]),
        ("(1;%a%) > -1", [True, True]),
        ("(1;%a%) / 0 < 1", [False, False]),
        ("(1;%a%) < 2 & (2;%a%) > 3 | (1;%b-x_1%) > 4", [True, True]),
        ("(1;%b-x_1%) > 4 | (1;%a%) < 2 & (2;%a%) < 3", [False, False]),  # from left to right
        ("[ (1;%a%) < 2 & [ (2;%a%) > 3 ] ]", [True, False]),
        ("5 = 5.0009", [True]),
        ("5 = 5.0012", [False]),
    ],
)
def test_values_are_those_by_hand(text, values):
    assert np.broadcast_to(Formula.parse(text)(SURPRISALS), len(values)).tolist() == values


def test_a_comparison_with_nan_is_false():
    nan = {("a", 1): np.array([np.nan])}
    for mark in "<>=":
        assert not Formula.parse(f"(1;%a%) {mark} 1")(nan).any()


def test_parts_and_regions():
    formula = Formula.parse("[(1;%a%) < (2;%a%)] & [[(1;%a%) - (*;%b%)] > 0 & (1;%b%) = 1]")
    assert [part.text for part in formula.comparisons] == [
        "(1;%a%) < (2;%a%)",
        "[(1;%a%) - (*;%b%)] > 0",
        "(1;%b%) = 1",
    ]
    assert [(region.condition, region.number) for region in formula.regions] == [
        ("a", 1), ("a", 2), ("b", None), ("b", 1)
    ]  # fmt: skip
    either = Formula.parse("(1;%a%) < 1 | (1;%a%) > 2")
    assert either.comparisons == [either]
    assert [part.text for part in Formula.parse("1 < 2 | 2 < 3 & 3 < 4").comparisons] == ["1 < 2 | 2 < 3", "3 < 4"]


def test_ties_are_equal_sides_of_inequalities():
    assert Formula.parse("(1;%a%) < (1;%b-x_1%) & (2;%a%) > 0").ties(SURPRISALS).tolist() == [True, False]
    assert not Formula.parse("(1;%a%) = (1;%b-x_1%)").ties(SURPRISALS).any()


@pytest.mark.parametrize(
    "text",
    [
        "", "1", "(1;%a%)", "(1;%a%) + 1", "(1;%a%) < (2;%a%) < 3", "(1;%a%) & (2;%a%)", "((1;%a%) < 1) + 1 > 2",
        "((1;%a%) < 1", "[(1;%a%) < 1)", "(1;%a%) < 1 1", "(1;%a b%) < 1", "1 < 2)", "< 1", "1 <", "1 + (2 < 3) < 4",
        "(" * 200 + "1 < 2" + ")" * 200, "1 < 2" + " + 1" * 10_000, "(" * 100_000,
        "__import__('os').system('touch x') < 1", "open('x','w')<1", "(1;%open('x','w')%)<1", "().__class__<1",
        "9**9**9**9<1", "(1;%{0.a}%) < 1",
    ],
)  # fmt: skip
def test_others_are_refused_in_a_line_and_nothing_is_executed(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^f: .* is not a formula\. ") as caught:
        Formula.parse(text, "f")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@given(st.text(alphabet="()[]1;%a*<>=&|+-/ .e_'\"", max_size=40) | st.text(max_size=20))
def test_any_text_is_a_formula_or_a_line_of_error(text):
    try:
        formula = Formula.parse(text)
    except InputError:
        return
    surprisals = {(name, number): np.ones(2) for name, number in formula.regions if number is not None}
    assert [part(surprisals) is not None for part in formula.comparisons]


def test_a_long_formula_is_evaluated():
    formula = Formula.parse("0" + " + 1" * 148 + " < (1;%a%)")
    assert formula({("a", 1): np.array([147.0, 149.0])}).tolist() == [False, True]


NUMBERS = st.recursive(
    st.sampled_from(["(1;%a%)", "(2;%a%)", "(1;%b%)", "(2;%b%)", "(*;%a%)", "1.5", "3"]),
    lambda inner: st.builds("[{} {} {}]".format, inner, st.sampled_from("+-"), inner),
    max_leaves=5,
)
COMPARISONS = st.builds("[ {}{} {}]".format, NUMBERS, st.sampled_from("<>="), NUMBERS)
FORMULAS = st.recursive(
    COMPARISONS, lambda inner: st.builds("[{} {} {}]".format, inner, st.sampled_from("&|"), inner), max_leaves=4
) | st.lists(COMPARISONS, min_size=1, max_size=4).map("&".join)


@settings(max_examples=60, deadline=None)
@given(FORMULAS, st.lists(st.floats(0, 30).map(lambda value: round(value, 3)), min_size=4, max_size=4))
def test_formulas_are_as_in_syntaxgym(text, values):
    keys = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    ours = Formula.parse(text)({key: np.array([value]) for key, value in zip(keys, values, strict=True)})
    theirs = reference_formula(text)(dict(zip(keys, values, strict=True)))
    assert bool(ours.all()) == bool(theirs)


@pytest.mark.download
def test_the_published_formulas_are_as_in_syntaxgym():
    folder = Path(os.environ.get("PAIRSCALE_DATA") or "data") / "syntaxgym"
    if not folder.is_dir():
        pytest.skip(f"no {folder}, the 34 suites of Hu et al. 2020")
    rng = np.random.default_rng(1)
    suites = load_suites(str(folder))
    for name, formulas in suites.formulas.items():
        regions = suites.rows.loc[suites.rows["suite"] == name, ["condition", "region"]].drop_duplicates()
        keys = list(regions.itertuples(index=False, name=None))
        drawn = rng.choice([rng.gamma(2, 3, (200, len(keys))), rng.integers(0, 3, (200, len(keys)))])  # with ties
        surprisals = {key: drawn[:, at] for at, key in enumerate(keys)}
        for formula in formulas:
            theirs = reference_formula(formula.text)
            expected = [bool(theirs({key: values[row] for key, values in surprisals.items()})) for row in range(200)]
            assert formula(surprisals).tolist() == expected, name
