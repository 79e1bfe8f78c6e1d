"""SG scores: means over runs of simulated successes, chance, and the paper's numbers next to their own suites."""

import numpy as np
import pytest

from analysis.items import results as items
from analysis.items import suites
from analysis.items.parts import read_answers
from analysis.published import published_file
from analysis.study.long_table import runs
from eval.published import read_published
from eval.scores.files import write_answers
from eval.syntaxgym.suites import answer_rows, load_suites
from tests.support.simulated_study import SimulatedStudy
from tests.support.suites import simulated, write_suites

METADATA = {
    "parameters": {}, "policy": {"context": "none", "score_eos": True}, "model": {"name": "m", "digest": "0d" * 32},
    "tokenizer_digest": "70" * 32, "step": None, "sample_words": None, "torch": "2.13.0",
}  # fmt: skip
PAPERS_SUITES = sorted(set(read_published("syntaxgym").query("level == 'suite'")["name"]))


@pytest.fixture
def study(tmp_path):
    """Return the runs of one model at two sizes with two seeds, scored on two small suites, and their folder."""
    folders = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k", "1M")).write(tmp_path / "runs")
    own = load_suites(str(write_suites(tmp_path / "syntaxgym")))
    for seed, run in enumerate(folders):
        rows = answer_rows(own, simulated(own, seed), skip_unk=False)
        about = {"benchmark": {"name": "syntaxgym", "digest": own.digest}}
        write_answers(run.scores("syntaxgym"), rows, METADATA | about)
    return runs("simulated", folder=tmp_path / "runs"), tmp_path / "runs"


def test_scores_are_means_over_runs_and_chance_is_that_of_random_surprisals(study):
    table, folder = study
    found = read_answers(table, "syntaxgym", folder)
    means = items.means_of(suites.describe(found).measured).set_index(["level", "name", "size"])["accuracy"]
    by_hand = {}
    for size, success in zip(table["size"], found.tables, strict=True):
        whole = success[success["comparison"].isna() & (success["prediction"] == 1)]
        shares = whole.groupby("suite")["success"].mean()
        by_hand.setdefault(("overall", "SG score", size), []).append(shares.mean())
        by_hand.setdefault(("circuit", "Agreement", size), []).append(shares["number_mini"])
    for key, shares in by_hand.items():
        assert means[key] == pytest.approx(np.mean(shares))
    chance = suites.chance_scores(found.tables[0]).set_index(["level", "name"])["accuracy"]
    assert chance["suite", "number_mini"] == pytest.approx(1 / 4, abs=0.02)  # two comparisons
    assert chance["suite", "cleft_mini"] == pytest.approx(1 / 2, abs=0.02)
    assert chance["prediction", "cleft_mini 2"] < 0.01  # equal surprisals
    assert chance["overall", "all items"] == pytest.approx((3 / 4 + 2 / 2) / 5, abs=0.02)


def test_the_part_of_a_report(study):
    table, folder = study
    found = read_answers(table, "syntaxgym", folder)
    part = items.part_of(found, suites.describe(found), 0.95, everything=True)
    by_name = {exhibit.name: exhibit for exhibit in part.exhibits}
    assert list(by_name) == ["measures", "sizes", "measures-by-size"]
    assert list(by_name["measures"].table)[3:] == ["lstm_tiny", "chance"]  # no total of the paper is over these suites
    assert any("vocabulary lacks" in note for note in part.notes)
    assert all(all(exhibit.panels.values()) for exhibit in part.exhibits)


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


def test_published_scores_are_those_of_the_paper():
    """Shares of all items are those that the per-item files of Hu et al. 2020 give, to three digits by hand."""
    scores = read_published("syntaxgym").set_index(["level", "name", "model"])["accuracy"]
    for model, share in {"GRNN": 0.538, "JRNN": 0.603, "Transformer-XL": 0.558, "GPT-2": 0.799}.items():
        assert round(scores["overall", "all items", model], 3) == share
        of_suites = scores["suite"].xs(model, level="model")
        assert len(of_suites) == 34
        assert scores["overall", "all suites", model] == pytest.approx(of_suites.mean(), abs=1e-4)
        counted = of_suites[~of_suites.index.isin(["fgd-embed3", "fgd-embed4", "nn-nv-rpl"])]
        assert scores["overall", "SG score", model] == pytest.approx(counted.mean(), abs=1e-4)
    means = published_file("sg_scores").groupby(["architecture", "corpus"])["SG score"].mean()
    assert means["RNNG", "LG"] == pytest.approx(scores["overall", "SG score", "RNNG, BLLIP-LG"], abs=1e-4)
