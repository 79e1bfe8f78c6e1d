"""The section `ablate`: doses, the words of a run's name, and what is refused."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.config import AblateConfig
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from train.config import run_id


@given(st.fractions(0, 1, max_denominator=1_000))
def test_a_dose_is_the_same_however_it_is_written(share: Fraction):
    dose = AblateConfig(action="remove", dose=f"{share.numerator}/{share.denominator}").dose
    assert Fraction(dose) == share
    if share.denominator in (1, 2, 4, 8):
        assert AblateConfig(action="remove", dose=float(share)).dose == dose


@pytest.mark.parametrize("dose", ["-0.1", "1.1", "9/8", "1/0", "half", "", None, True, [0.5], "nan"])
def test_a_dose_that_is_no_share_is_refused(dose):
    with pytest.raises(ConfigError, match=r"ablate\.dose=.*: .* share from 0 to 1\. .* 1/8 or 0\.125"):
        AblateConfig(action="remove", dose=dose)


def test_a_dose_of_one_is_the_text_as_it_is():
    assert not AblateConfig(action="remove", dose=1).acts
    assert AblateConfig(action="remove", dose="1/8").words == ["remove", "dose0.125"]


def test_only_what_acts_needs_a_filter():
    with pytest.raises(ConfigError, match=r"ablate\.action=remove: no construction is chosen\. Add filter=NAME"):
        compose("train", ["corpus=toy", "ablate.action=remove"])
    with pytest.raises(ConfigError, match=r"ablate\.dose=1/2 with ablate\.action=keep_only: .* ablate\.dose"):
        compose("train", ["corpus=toy", "filter=passive", "ablate.action=keep_only", "ablate.dose=0.5"])
    with pytest.raises(ConfigError, match=r"ablate\.action=drop: .*must be one of .*remove"):
        compose("train", ["corpus=toy", "filter=passive", "ablate.action=drop"])


@pytest.mark.parametrize(("action", "same"), [("none", True), ("remove", True), ("control", True), ("replace", False)])
def test_rules_are_part_of_a_run_that_follows_them(action, same):
    words = ["corpus=toy", "model=llama_tiny", "filter=determiner_noun", f"ablate.action={action}"]
    one, other = compose("train", words), compose("train", [*words, "filter.rewrite='{-determiner}a {noun}'"])
    assert (run_id(one) == run_id(other)) is same
    assert one.filter.rewrite != other.filter.rewrite  # neither is changed
