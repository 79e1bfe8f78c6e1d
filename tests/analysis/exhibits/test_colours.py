"""Hues, dashes and shapes of figures, as readers with any colour vision see them (coloraide: Machado et al. 2009)."""

from itertools import combinations

import pytest
from coloraide import Color

from analysis.exhibits.figures.style import DASHES, HUES, LOOKS, PHENOMENA, phenomenon_style, style
from analysis.exhibits.tables.text import title
from eval.published import read_published

VISIONS = (None, "protan", "deutan", "tritan")  # without one of the three kinds of cones
APART = {None: 18, "protan": 10, "deutan": 12, "tritan": 12}  # CIEDE2000; 2.3 is just noticeable
BRIGHTER = 1.2  # the page's filter in the dark (report.css)
CARDS = {"light": "#ffffff", "dark": "#1c1f24"}  # behind figures (eval/theme.css)
CONTRAST = 3  # of graphics with their background: WCAG 2.2, 1.4.11


def shown(hue, scheme, vision):
    colour = Color(hue)
    if scheme == "dark":
        colour.filter("brightness", BRIGHTER, space="srgb", in_place=True)
    if vision:
        colour.filter(vision, method="machado", in_place=True)
    return colour.convert("srgb").clip()


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("scheme", CARDS)
def test_hues_stay_apart_for_any_colour_vision(scheme, vision):
    differences = {
        (one, other): shown(one, scheme, vision).delta_e(shown(other, scheme, vision), method="2000")
        for one, other in combinations(HUES, 2)
    }
    closest = min(differences, key=differences.get)
    assert differences[closest] >= APART[vision], closest


def test_the_simulation_finds_hues_that_some_readers_confuse():
    """Red and green of one lightness, which a check of common vision would pass."""
    red, green = "#c0602a", "#7a8a1e"
    assert Color(red).delta_e(green, method="2000") > APART[None]
    assert shown(red, "light", "deutan").delta_e(shown(green, "light", "deutan"), method="2000") < APART["deutan"]


@pytest.mark.parametrize("scheme", CARDS)
def test_hues_have_contrast_with_the_page(scheme):
    assert min(shown(hue, scheme, None).contrast(CARDS[scheme]) for hue in HUES) >= CONTRAST


@pytest.mark.parametrize("benchmark", ["blimp", "climp"])
def test_phenomena_of_a_benchmark_differ_in_colour_and_dash_and_in_colour_and_shape(benchmark):
    published = read_published(benchmark)
    names = [*published.loc[published["level"] == "phenomenon", "name"].unique()]
    assert set(names) <= set(PHENOMENA)
    look = phenomenon_style(names)
    for second in ("dash", "shape"):
        assert len(set(look["colour"] + look[second].map(str))) == len(names)


def test_a_phenomenon_looks_the_same_in_every_study():
    everything = phenomenon_style([*PHENOMENA, "negation", "word_order"]).set_index("name")
    for names in (["word_order", "binding"], ["quantifiers", "negation"], ["passive"]):
        alone = phenomenon_style(names).set_index("name")
        known = [title(name) for name in names if name in PHENOMENA]
        assert alone.loc[known].equals(everything.loc[known])
    one, other = (phenomenon_style(["word_order", beside]) for beside in ("binding", "quantifiers"))
    assert one.iloc[0].equals(other.iloc[0])  # in no list of ours


def test_as_many_names_as_there_are_looks_differ():
    assert len(HUES) * len(DASHES) == LOOKS
    for look in (style([f"n{i}" for i in range(LOOKS)]), phenomenon_style([f"n{i}" for i in range(LOOKS)])):
        assert len(set(look["colour"] + look["dash"].map(str))) == LOOKS
