"""Hues, dashes and shapes of figures, as readers with any colour vision see them (coloraide: Machado et al. 2009)."""

from itertools import combinations

import pytest
from coloraide import Color

from analysis.figures.style import DASHES, HUES, looks_of

VISIONS = (None, "protan", "deutan", "tritan")  # without one of the three kinds of cones
APART = {None: 18, "protan": 10, "deutan": 12, "tritan": 12}  # CIEDE2000; 2.3 is just noticeable
BRIGHTER = 1.2  # the page's filter in the dark (report.css)
CARDS = {"light": "#ffffff", "dark": "#1c1f24"}  # behind figures (analysis/page/report.css)
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
    assert min(shown(hue, scheme, None).contrast(CARDS[scheme]) for hue in HUES) >= CONTRAST


def test_many_names_differ_in_their_looks():
    looks = looks_of([str(number) for number in range(len(HUES) * len(DASHES))])
    assert len(set(looks["colour"] + looks["dash"].map(str))) == len(looks)
    assert len(set(looks["colour"] + looks["shape"])) == len(looks)
    looks = looks_of(["one", "two"], {"two": "black"})
    assert list(looks["colour"]) == [HUES[0], "black"]
