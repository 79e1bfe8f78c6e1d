"""SG scores: chance, and the paper's numbers next to their own suites."""

import pytest

from analysis.items import results as items
from analysis.items import suites
from analysis.items.parts import read_answers
from analysis.study.long_table import runs
from eval.published import read_published
from eval.scores.files import write_answers
from eval.syntaxgym.suites import answer_rows, load_suites
from tests.support.simulated_study import SimulatedStudy, about
from tests.support.suites import simulated, write_suites

PAPERS_SUITES = sorted(set(read_published("syntaxgym").query("level == 'suite'")["name"]))


@pytest.fixture
def study(tmp_path):
    """Return the runs of one model at two sizes with two seeds, scored on two small suites, and their folder."""
    folders = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k", "1M")).write(tmp_path / "runs")
    own = load_suites(str(write_suites(tmp_path / "syntaxgym")))
    for seed, run in enumerate(folders):
        rows = answer_rows(own, simulated(own, seed), skip_unk=False)
        write_answers(run.scores("syntaxgym"), rows, about("syntaxgym", own.digest))
    return runs("simulated", folder=tmp_path / "runs"), tmp_path / "runs"


def test_scores_stand_beside_the_chance_of_random_surprisals(study):
    table, folder = study
    found = read_answers(table, "syntaxgym", folder)
    chance = suites.chance_scores(found.tables[0]).set_index(["level", "name"])["accuracy"]
    assert chance["suite", "number_mini"] == pytest.approx(1 / 4, abs=0.02)  # two comparisons
    assert chance["suite", "cleft_mini"] == pytest.approx(1 / 2, abs=0.02)
    assert chance["prediction", "cleft_mini 2"] < 0.01  # equal surprisals
    assert chance["overall", "all items"] == pytest.approx((3 / 4 + 2 / 2) / 5, abs=0.02)
    part = items.part_of(found, suites.describe(found), 0.95, everything=True)
    assert [exhibit.name for exhibit in part.exhibits] == ["measures", "sizes", "measures-by-size"]
    assert list(part.exhibits[0].table)[3:] == ["lstm_tiny", "chance"]  # no total of the paper is over these suites
    assert any("vocabulary" in note for note in part.notes)


@pytest.mark.parametrize(
    ("chosen", "totals"),
    [
        (PAPERS_SUITES, {"SG score", "all suites", "all items", "Agreement", "Licensing", "Center Embedding"}),
        ([name for name in PAPERS_SUITES if suites.circuit_of(name)], {"SG score", "Agreement", "Center Embedding"}),
        ([*PAPERS_SUITES, "my_own"], {"SG score", "Agreement", "Licensing"}),
        (PAPERS_SUITES[:1], set()),
    ],
)
def test_published_totals_are_shown_for_their_own_suites_only(chosen, totals):
    shown = suites.published(set(chosen))
    assert totals <= set(shown.loc[shown["level"] != "suite", "name"])
    if chosen != PAPERS_SUITES:
        assert not {"all suites", "all items"} & set(shown["name"])
    if not totals:
        assert set(shown["level"]) == {"suite"}
