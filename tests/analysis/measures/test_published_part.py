"""Published accuracies beside a study of a part of a benchmark: of the same paradigms, or a caption that says so."""

import pandas as pd
import pytest

from analysis.report.curves import _levels
from analysis.sections.section import Section
from analysis.sections.together import overview_exhibit, phenomena_exhibit
from eval.published import number_of_paradigms, on_paradigms, read_published
from tests.support.simulated_section import section_of

PHENOMENA = {"wh_island": "island_effects", "adjunct_island": "island_effects", "passive_1": "argument_structure"}


def test_means_are_over_the_paradigms_of_the_study():
    published = read_published("blimp")
    of = on_paradigms(published, PHENOMENA).query("model == 'people'").set_index("name")["accuracy"]
    by_file = published.query("model == 'people' and level == 'paradigm'").set_index("name")["accuracy"]
    single = by_file[[*PHENOMENA]].to_dict()
    assert set(of.index) == {*PHENOMENA, "island_effects", "argument_structure", "overall"}
    assert of["overall"] == pytest.approx(sum(single.values()) / 3)
    assert of["island_effects"] == pytest.approx((single["wh_island"] + single["adjunct_island"]) / 2)
    assert of["argument_structure"] == single["passive_1"]


def test_a_paradigm_that_is_not_published_leaves_its_phenomenon_and_the_whole_out():
    of = on_paradigms(read_published("blimp"), PHENOMENA | {"mine": "island_effects"}).query("model == 'people'")
    assert set(of["name"]) == {*PHENOMENA, "argument_structure"}


def test_accuracies_of_the_whole_or_by_phenomenon_alone_stay_as_published():
    blimp, climp = read_published("blimp"), read_published("climp")
    whole = dict.fromkeys(blimp.loc[blimp["level"] == "paradigm", "name"], "p")
    key = ["level", "name", "model"]
    same = on_paradigms(blimp, whole).sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(same, blimp.sort_values(key, ignore_index=True))
    assert len(on_paradigms(climp, {"x": "NP_head_finality"})) == len(climp)
    assert on_paradigms(read_published("toy"), PHENOMENA).empty
    assert (number_of_paradigms("blimp"), number_of_paradigms("climp"), number_of_paradigms("toy")) == (67, 16, None)


def test_the_report_has_people_on_the_same_paradigms(tmp_path):
    section = section_of(tmp_path, phenomena={"passive": (2, 0.6, 0.05)})
    phenomena = section.judged.pairs.drop_duplicates("paradigm").set_index("paradigm")["phenomenon"].to_dict()
    section.published = on_paradigms(section.published, phenomena)
    people = read_published("blimp").query("model == 'people'").set_index("name")["accuracy"]
    mean = (people["passive_1"] + people["passive_2"]) / 2
    assert section.people == pytest.approx(mean)
    levels = _levels(section)
    assert levels.table["people (published)"].iloc[0] == pytest.approx(mean)
    assert "all 67 paradigms" not in levels.about


def test_captions_say_where_accuracies_are_of_more_paradigms(tmp_path):
    section = section_of(tmp_path, benchmark="climp")
    captions = [_levels(section).about, overview_exhibit(section, 0.95).about]
    assert all("Published accuracies are of all 16 paradigms of the benchmark" in about for about in captions)
    alone = Section(section.judged, section.curves, section.published.iloc[:0])
    assert "of all 16" not in _levels(alone).about + phenomena_exhibit(alone, 0.95).about
