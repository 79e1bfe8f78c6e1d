"""SG scores in the report: means over runs of simulated successes, chance, and the paper's numbers."""

import numpy as np
import pytest

from analysis.measures.diagnostics import over_sizes
from analysis.measures.syntaxgym import chance_scores, suite_scores
from analysis.published import published_file
from analysis.sections.answers.syntaxgym import suite_exhibits, suites_section
from analysis.study.collect import collect
from analysis.study.judgements import score_labels
from eval.config import is_of_pairs
from eval.published import read_published
from eval.syntaxgym.files import read_success, write_success
from eval.syntaxgym.regions import answers
from eval.syntaxgym.suites import load_suites
from pairscale.errors import RunError
from tests.support.commands import run_command
from tests.support.simulated_study import SimulatedStudy
from tests.support.suites import simulated, write_suites

METADATA = {
    "parameters": {}, "policy": {"context": "none", "score_eos": True}, "model": {"name": "m", "digest": "0d" * 32},
    "tokenizer_digest": "70" * 32, "step": None, "sample_words": None, "torch": "2.13.0",
}  # fmt: skip


@pytest.fixture
def study(tmp_path):
    """Return a study of one model at two sizes with two seeds, scored on the suites in miniature."""
    folders = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k", "1M")).write(tmp_path / "runs")
    suites = load_suites(str(write_suites(tmp_path / "syntaxgym")))
    for seed, run in enumerate(folders):
        success, regions = answers(suites, simulated(suites, seed), skip_unk=False)
        about = {"benchmark": {"name": "syntaxgym", "digest": suites.digest}}
        write_success(run.scores("syntaxgym"), success, regions, METADATA | about)
    return collect(tmp_path / "runs", "simulated")


def test_suites_come_after_pairs(study):
    assert score_labels(study) == ["blimp", "syntaxgym"]
    assert [is_of_pairs(name) for name in ("blimp+pairs-3", "syntaxgym+suites-1a", "role", "cprag")] == [
        True, False, False, False,
    ]  # fmt: skip


def test_scores_are_means_over_runs_of_the_success_of_items(study):
    scores = suite_scores(study, "syntaxgym")
    means = over_sizes(scores, 0.95).set_index(["level", "name", "size"])
    by_hand = {}
    for run in study.runs.index:
        success, _ = read_success(study.folders[run].scores("syntaxgym"))
        whole = success[success["comparison"].isna() & (success["prediction"] == 1)]
        shares = whole.groupby("suite")["success"].mean()
        for name, share in (("SG score", shares.mean()), ("Agreement", shares["number_mini"])):
            by_hand.setdefault((name, study.runs.at[run, "size"]), []).append(share)
    for (name, size), shares in by_hand.items():
        level = "overall" if name == "SG score" else "circuit"
        row = means.loc[(level, name, size)]
        assert row["accuracy"] == pytest.approx(np.mean(shares))
        assert row["low"] <= row["accuracy"] <= row["high"]
        assert row["runs"] == 2


def test_chance_is_that_of_random_surprisals(study):
    chance = chance_scores(study, suite_scores(study, "syntaxgym")).set_index(["level", "name"])["accuracy"]
    assert chance["suite", "number_mini"] == pytest.approx(1 / 4, abs=0.02)
    assert chance["suite", "cleft_mini"] == pytest.approx(1 / 2, abs=0.02)
    assert chance["comparison", "number_mini 1.1: (3;%sing%) < (3;%sing_bad%)"] == pytest.approx(1 / 2, abs=0.02)
    assert chance["prediction", "cleft_mini 2"] < 0.01
    assert chance["overall", "all items"] == pytest.approx((3 / 4 + 2 / 2) / 5, abs=0.02)


def test_exhibits_of_a_study(study):
    section = suites_section(study, "syntaxgym", 0.95)
    by_name = {exhibit.name: exhibit for exhibit in section.exhibits}
    assert list(by_name) == ["circuits", "sizes", "suites", "comparisons", "scores"]
    circuits = by_name["circuits"].table.set_index("model")
    assert circuits.columns.tolist() == [
        "SG score", "Agreement", "Long-Distance Dependencies", "all suites", "all items"
    ]  # fmt: skip
    assert circuits.loc["GRNN (paper)", "all items"] == 0.538
    assert circuits.index[0] == "lstm_tiny"
    assert set(by_name["sizes"].charts) == {"sizes-0", "sizes-1", "sizes-2"}
    for exhibit in section.exhibits:
        for chart in exhibit.charts.values():
            chart().to_dict()
    assert by_name["sizes"].table["size"].tolist() == ["125k", "1M"] * 3
    assert "5 items of 2 suites" in section.extent
    assert any("<unk> stands in regions" in warning for warning in section.warnings)


def test_a_study_without_scores_is_refused(study):
    for run in study.runs.index:
        (study.folders[run].scores("syntaxgym") / "success.parquet").unlink()
    with pytest.raises(RunError, match=r"no run has whole scores of syntaxgym; python -m eval study=simulated"):
        suite_scores(study, "syntaxgym")


def test_exhibits_without_circuits(study):
    scores = suite_scores(study, "syntaxgym")
    scores.measured = scores.measured[~scores.measured["name"].isin(["SG score"])]
    scores.measured = scores.measured[scores.measured["level"] != "circuit"]
    exhibits = suite_exhibits(scores, chance_scores(study, suite_scores(study, "syntaxgym")), 0.95)
    assert exhibits[0].table.columns.tolist() == ["model", "all suites", "all items"]


def test_published_scores_are_those_of_the_paper():
    """Shares of all items: what the per-item files of Hu et al. 2020 give, three digits of them by hand."""
    scores = read_published("syntaxgym").set_index(["level", "name", "model"])["accuracy"]
    for model, share in {"GRNN": 0.538, "JRNN": 0.603, "Transformer-XL": 0.558, "GPT-2": 0.799}.items():
        assert round(scores["overall", "all items", model], 3) == share
        suites = scores["suite"].xs(model, level="model")
        assert len(suites) == 34
        assert scores["overall", "all suites", model] == pytest.approx(suites.mean(), abs=1e-4)
        counted = suites[~suites.index.isin(["fgd-embed3", "fgd-embed4", "nn-nv-rpl"])]
        assert scores["overall", "SG score", model] == pytest.approx(counted.mean(), abs=1e-4)
    runs = published_file("sg_scores")
    assert len(runs) == 45
    means = runs.groupby(["architecture", "corpus"])["SG score"].mean()
    assert means["RNNG", "LG"] == pytest.approx(scores["overall", "SG score", "RNNG, BLLIP-LG"], abs=1e-4)
    assert runs["perplexity"].notna().all()


@pytest.mark.slow
def test_the_command_reports_suites(study, tmp_path):
    paths = [f"paths.runs={tmp_path}/runs", f"paths.reports={tmp_path}/reports"]
    done = run_command("analysis", "study=simulated", "benchmark=syntaxgym", *paths)
    assert done.returncode == 0, done.stderr
    assert "SG scores" in done.stdout
    page = (tmp_path / "reports" / "simulated" / "report.html").read_text()
    assert "Syntactic test suites" in page
