"""Graded acceptability in the report: means over runs of simulated scores, and sentences that fit their intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr, rankdata

from analysis.exhibits.sentences.ratings import rating_findings
from analysis.measures.ratings import changes, fits, gains, groups, over_sizes, rated
from analysis.measures.separation import separations
from analysis.sections.answers.ratings import ratings_section
from analysis.sections.graded.separation import separation_exhibit
from analysis.study.collect import collect
from analysis.study.judgements import score_labels
from eval.config import is_of_pairs
from eval.ratings.files import read_sentences, write_sentences
from eval.scores.files import read_scores, score_path
from pairscale.errors import RunError
from tests.support.commands import run_command
from tests.support.simulated_study import SimulatedStudy

LABEL = "ratings_mine"
NONE = pd.DataFrame(columns=["paradigm", "pair_id"])
COUNTED = {"of": "sample", "digest": "5a" * 32, "unseen": 0.5}
METADATA = {
    "parameters": {"unigrams": COUNTED}, "policy": {"context": "none", "score_eos": True}, "step": None,
    "model": {"name": "m", "digest": "0d" * 32}, "tokenizer_digest": "70" * 32, "sample_words": None,
    "torch": "2.13.0", "benchmark": {"name": LABEL, "digest": "ba" * 32},
}  # fmt: skip


def rows(agreement, seed, pairs=60):
    """Return a score file of pairs whose SLOR has the correlation `agreement` with ratings, but for chance."""
    judged = np.random.default_rng(99).normal(size=2 * pairs) + np.tile([1.0, -1.0], pairs)
    rng = np.random.default_rng(seed)
    n = np.random.default_rng(98).integers(5, 20, 2 * pairs)
    unigram = -7.0 * n + np.random.default_rng(97).normal(0, 5, 2 * pairs)
    slor = agreement * judged / judged.std() + np.sqrt(1 - agreement**2) * rng.normal(size=2 * pairs)
    columns = {"rating": judged, "label": np.tile([True, False], pairs), "tokens": n, "unigram_lp": unigram}
    table = pd.DataFrame(columns).assign(lp=slor * n + unigram, words=n, chars=n * 4, unk=0, unseen=0)
    return table.assign(
        sentence=[f"Sentence {k} ." for k in range(2 * pairs)], pair=np.repeat(range(pairs), 2).astype(str)
    )


@pytest.fixture
def study(tmp_path):
    """Return a study of one model at two sizes with three seeds; more text agrees more."""
    simulated = SimulatedStudy(pairs=20, models=("lstm_tiny",), sizes=("125k", "1M"), seeds=(1, 2, 3))
    for seed, run in enumerate(simulated.write(tmp_path / "runs")):
        agreement = 0.2 if "125k" in run.path.name else 0.7
        write_sentences(run.scores(LABEL), rows(agreement, seed), METADATA)
    return collect(tmp_path / "runs", "simulated")


def test_ratings_come_after_pairs(study):
    assert score_labels(study) == ["blimp", LABEL]
    assert not is_of_pairs(LABEL)


def test_means_over_runs_are_on_fishers_scale(study):
    of = groups(rated(study, LABEL))
    means = over_sizes(of, 0.95).set_index(["size", "score", "measure"])
    by_size = {}
    for run, row in study.runs.iterrows():
        table = read_sentences(study.folders[run].scores(LABEL))[0]
        slor = (table["lp"] - table["unigram_lp"]) / table["tokens"]
        good = table["label"].to_numpy()
        differences = slor[good].to_numpy() - slor[~good].to_numpy()
        theirs = table["rating"][good].to_numpy() - table["rating"][~good].to_numpy()
        ranks = rankdata(slor)
        auc = (ranks[good].sum() - 60 * 61 / 2) / 60**2
        by_size.setdefault(row["size"], []).append(
            (np.arctanh(pearsonr(slor, table["rating"]).statistic), np.log(auc / (1 - auc)),
             np.arctanh(pearsonr(differences, theirs).statistic))
        )  # fmt: skip
    for size, values in by_size.items():
        z, logit, of_pairs = np.mean(values, axis=0)
        assert means.loc[(size, "slor", "Pearson"), "value"] == pytest.approx(np.tanh(z))
        assert means.loc[(size, "slor", "AUC"), "value"] == pytest.approx(1 / (1 + np.exp(-logit)))
        assert means.loc[(size, "slor", "Pearson of differences"), "value"] == pytest.approx(np.tanh(of_pairs))
    assert not ((means["low_both"] > means["low"] + 1e-9) | (means["low"] > means["value"])).any()
    assert means.loc[("1M", "slor", "Pearson"), "items"] == 120
    assert means.loc[("1M", "slor", "pairs"), "items"] == 60


def test_changes_and_gains_are_differences(study):
    of = groups(rated(study, LABEL))
    means = over_sizes(of, 0.95).set_index(["size", "score", "measure"])["value"]
    change = changes(of, 0.95).set_index(["score", "measure"]).loc[("slor", "Pearson")]
    assert change["value"] == pytest.approx(means["1M", "slor", "Pearson"] - means["125k", "slor", "Pearson"], abs=0.01)
    assert 0 < change["low"] < change["value"] < change["high"]
    gain = gains(of, 0.95).set_index(["score", "measure"]).loc[("slor", "Pearson")]
    assert gain["value"] == pytest.approx(means["1M", "slor", "Pearson"] - means["1M", "lp", "Pearson"], abs=0.01)
    assert gain["low_both"] > 0


def test_weights_of_morcela_are_those_that_made_the_scores(study):
    table = fits(rated(study, LABEL)).set_index("size")
    assert table.loc["1M", "beta"] == pytest.approx(1, abs=0.15)
    assert table.loc["1M", "in_sample"] > table.loc["125k", "in_sample"]
    assert table["fitted"].tolist() == [3, 3]


def test_exhibits_and_findings(study):
    section = ratings_section(study, LABEL, 0.95)
    by_name = {exhibit.name: exhibit for exhibit in section.exhibits}
    assert list(by_name) == ["scores", "sizes", "changes", "morcela", "agreement"]
    assert by_name["scores"].table["score"].tolist() == ["lp", "mean_lp", "pen_lp", "norm_lp", "slor", "morcela"]
    for exhibit in section.exhibits:
        assert exhibit.rows()
        for chart in exhibit.charts.values():
            chart().to_dict()
    assert section.extent.startswith("120 sentences in 60 pairs with people's ratings and labels. 6 runs: 1 curve")
    (finding,) = section.findings
    assert finding.text.startswith("SLOR correlates with ratings at 1M: Pearson ")
    assert "It rises from 125k to 1M: +." in finding.details
    assert "counted whole; a token that it lacks counts as 0.5 occurrences" in " ".join(section.methods)


def test_sentences_say_no_more_than_their_intervals(study):
    of = groups(rated(study, LABEL))
    means, over_text = over_sizes(of, 0.95), changes(of, 0.95)
    wide = means.assign(low_both=-0.1)
    (finding,) = rating_findings(wide, over_text.assign(low=-0.2), 0.95)
    assert finding.text.startswith("3 runs and 120 sentences do not show that SLOR correlates with ratings at 1M: ")
    assert finding.details.startswith("6 runs do not show a change from 125k to 1M: ")
    single = means.assign(low_both=np.nan, high_both=np.nan, runs=1)
    (finding,) = rating_findings(single, over_text.assign(low=np.nan), 0.95)
    assert finding.text.endswith("95% interval for new sentences.")
    assert finding.details == "One run at a size: nothing is said of the change from 125k to 1M."


def test_a_run_without_unigrams_says_why(study):
    for run in study.runs.index:
        folder = study.folders[run].scores(LABEL)
        table = read_sentences(folder)[0].assign(unigram_lp=np.nan, unseen=None)
        write_sentences(folder, table, METADATA | {"parameters": {"unigrams": {"missing": "it has no text"}}})
    section = ratings_section(study, LABEL, 0.95)
    assert "No norm_lp, slor and morcela of lstm_tiny: it has no text." in section.warnings
    assert section.findings[0].text.startswith("Mean log-probability")
    assert "morcela" not in [exhibit.name for exhibit in section.exhibits]


def test_a_study_without_scores_is_refused(study):
    for run in study.runs.index:
        (study.folders[run].scores(LABEL) / "sentences.parquet").unlink()
    with pytest.raises(RunError, match=r"no run has whole scores of ratings_mine"):
        rated(study, LABEL)


def test_good_and_bad_sentences_of_pairs_by_one_threshold(study):
    of = separations(study, "blimp", study.runs, NONE)
    means = over_sizes(of, 0.95)
    assert set(means["measure"]) == {"all sentences", "within paradigms"}
    at = means.set_index(["size", "measure"]).loc[("1M", "all sentences")]
    assert at["value"] == pytest.approx(mean_area(study, "1M", slice(None)))
    exhibit = separation_exhibit(means, "words", 0.95)
    assert set(exhibit.charts) == {"all", "paradigms"}
    for chart in exhibit.charts.values():
        chart().to_dict()
    assert separation_exhibit(means[:0], "words", 0.95) is None


def test_pairs_that_are_left_out_have_no_part_in_the_one_threshold(study):
    scores = read_scores(score_path(study.folders[study.runs.index[0]].scores("blimp"), "lp"))[0]
    left_out = scores[["paradigm", "pair_id"]].iloc[30:]
    means = over_sizes(separations(study, "blimp", study.runs, left_out), 0.95)
    at = means.set_index(["size", "measure"]).loc[("1M", "all sentences")]
    assert at["value"] == pytest.approx(mean_area(study, "1M", slice(30)))


def mean_area(study, size, rows):
    """Return the mean over runs, in logits, of the share of good and bad sentences, the good of which score higher."""
    logits = []
    for run in study.runs.index[study.runs["size"] == size]:
        scores = read_scores(score_path(study.folders[run].scores("blimp"), "lp"))[0].iloc[rows]
        area = (scores["good"].to_numpy()[:, None] > scores["bad"].to_numpy()).mean()
        logits.append(np.log(area / (1 - area)))
    return 1 / (1 + np.exp(-np.mean(logits)))


@pytest.mark.slow
def test_the_command_reports_ratings(study, tmp_path):
    paths = [f"paths.runs={tmp_path}/runs", f"paths.reports={tmp_path}/reports"]
    done = run_command("analysis", "study=simulated", *paths)
    assert done.returncode == 0, done.stderr
    assert "SLOR correlates with ratings" in done.stdout
    page = (tmp_path / "reports" / "simulated" / "report.html").read_text()
    assert "Graded acceptability" in page
    assert "Good and bad by one threshold" in page
