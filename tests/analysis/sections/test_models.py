"""Models of unknown size in the report: their accuracies beside people and published models, without curves."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from analysis.curves.fit import fit_curves
from analysis.sections.pretrained_models import comparable, curves_beside, models_section, published_beside
from analysis.study.collect import collect
from analysis.study.combine import combine, common_labels
from analysis.study.judgements import judgements
from eval.published import read_published
from eval.scores.files import read_items, read_scores, score_path, write_scores
from tests.support.browser import OpenPage
from tests.support.commands import run_command
from tests.support.simulated_section import CONFIG
from tests.support.simulated_study import SimulatedStudy, as_hub_model

PEOPLE = pd.DataFrame(
    [("phenomenon", "island_effects", "people", 0.9), ("overall", "overall", "people", 0.8)],
    columns=["level", "name", "model", "accuracy"],
)


@pytest.fixture
def runs(tmp_path):
    """Write a study of lstm_tiny at two sizes, big_bert (lp only) and small_bert, the others with lp and mean_lp."""
    for folder in SimulatedStudy(models=("lstm_tiny",), sizes=("125k", "1M"), pairs=20).write(tmp_path / "runs"):
        with_method(folder, "mean_lp")
    pretrained = SimulatedStudy(models=("big", "small"), sizes=("2M",), seeds=(1,), pairs=20, unk_share=4.0)
    big, small = pretrained.write(tmp_path / "runs", seed=1)
    as_hub_model(big, path="models/big_bert")
    as_hub_model(small, path="models/small_bert")
    with_method(small, "mean_lp")
    return tmp_path / "runs"


def with_method(folder, method):
    """Write scores of another method, which judges every third pair the other way."""
    rows, metadata = read_scores(score_path(folder.scores("blimp"), "lp"))
    other = np.arange(len(rows)) % 3 == 0
    rows.loc[other, ["good", "bad"]] = rows.loc[other, ["bad", "good"]].to_numpy()
    write_scores(score_path(folder.scores("blimp"), method), rows, metadata | {"method": method})


def section(study, beside=PEOPLE, confidence=0.9):
    config = replace(CONFIG, confidence=confidence)
    return models_section(study, "blimp", judgements, beside, config, "wrong")


def tables(models):
    return {exhibit.name: exhibit.table for exhibit in models.exhibits}


def test_accuracies_are_shares_of_right_pairs_with_wilsons_intervals(runs):
    study = collect(runs, "simulated")
    shown_tables = tables(section(study))
    shown = shown_tables["intervals"].set_index(["model", "method", "phenomenon", "paradigm"]).sort_index()
    assert set(shown.index.droplevel([2, 3])) == {("big_bert", "lp"), ("small_bert", "lp"), ("small_bert", "mean_lp")}
    wide = shown_tables["accuracies"].set_index("phenomenon")
    free = None
    for run in study.unplaced.index:
        rows, _ = read_scores(score_path(study.folders[run].scores("blimp"), "lp"))
        clean = (rows["good_unk"] == 0).to_numpy()
        free = clean if free is None else free & clean
    for run, model in study.unplaced["group"].items():
        for path in study.folders[run].scores("blimp").glob("*lp.parquet"):
            rows, metadata = read_scores(path)
            items, _ = read_items(path.parent)
            right = (rows["good"] > rows["bad"]).groupby(rows["paradigm"]).mean()
            phenomenon = items.drop_duplicates("paradigm").set_index("paradigm")["phenomenon"]
            for paradigm, share in right.items():
                row = shown.loc[(model, metadata["method"], phenomenon[paradigm], paradigm)]
                assert row["accuracy"] == pytest.approx(share)
                limits = proportion_confint(round(20 * share), 20, alpha=0.1, method="wilson")
                assert (row["low"], row["high"]) == pytest.approx(limits)
            of_islands = right[phenomenon[right.index] == "island_effects"]  # three paradigms of 20
            islands = of_islands.mean()
            row = shown.loc[(model, metadata["method"], "island_effects", "")]
            assert row["accuracy"] == pytest.approx(islands)
            smoothed = (20 * of_islands + 0.5) / 21
            variance = sum(p * (1 - p) / 20 for p in smoothed) / 9
            trials = smoothed.mean() * (1 - smoothed.mean()) / variance
            limits = proportion_confint(islands * trials, trials, alpha=0.1, method="wilson")
            assert (row["low"], row["high"]) == pytest.approx(limits)
            assert wide.loc["overall", f"{model}, {metadata['method']}"] == pytest.approx(right.mean())
            unk_free = rows[free] if metadata["method"] == "lp" else rows[rows["good_unk"] == 0]
            by_paradigm = (unk_free["good"] > unk_free["bad"]).groupby(unk_free["paradigm"]).mean()
            row = shown.loc[(model, metadata["method"], "overall", "")]
            assert row["without <unk>"] == pytest.approx(by_paradigm.mean())
            assert row["with <unk>"] == pytest.approx((rows["good_unk"] > 0).groupby(rows["paradigm"]).mean().mean())
    assert wide.loc["island_effects", "people"] == 0.9
    assert len(shown_tables["paradigms"]) == 6


def test_methods_and_unknown_words_are_stated(runs):
    models = section(collect(runs, "simulated"))
    text = " ".join(models.methods)
    assert "the lp and mean_lp score of its good sentence" in text
    assert "alone, after nothing but the begin symbol, with its end not scored and unknown words scored" in text
    assert "pairs hold no <unk> in any of the runs compared" in text
    assert "90% intervals are Wilson's" in text
    assert {finding.subject: finding.text for finding in models.findings}["big_bert, lp"].startswith(
        "overall accuracy ."
    )
    assert "people .800" in {finding.subject: finding.text for finding in models.findings}["big_bert, lp"]
    assert {"methods", "hardest"} <= {exhibit.name for exhibit in models.exhibits}
    assert set(tables(models)["methods"]["model"]) == {"big_bert", "small_bert"}
    assert models.runs.columns.tolist() == ["group", "manifest"]


def test_published_means_are_over_the_paradigms_of_the_study():
    published = published_beside(read_published("blimp"), "blimp")
    assert set(published["model"]) == {"people", "LSTM (paper)", "TXL (paper)", "5-gram (paper)", "GPT-2 (paper)"}
    chosen = ["wh_island", "adjunct_island"]
    rows = comparable(published, "blimp+paradigms-12345678", dict.fromkeys(chosen, "island_effects"))
    single = read_published("blimp").query("model == 'people' and level == 'paradigm' and name in @chosen")["accuracy"]
    people = rows[rows["model"] == "people"].set_index("name")["accuracy"]
    assert people["overall"] == people["island_effects"] == pytest.approx(single.mean())
    assert rows["model"].iloc[-1] == "people"
    climp = published_beside(read_published("climp"), "climp")  # of whole phenomena only
    of = dict.fromkeys(["x"], climp.loc[climp["level"] == "phenomenon", "name"].iloc[0])
    assert comparable(climp, "climp+paradigms-12345678", of).empty
    assert set(comparable(climp, "climp+pairs-20", of)["level"]) == {"phenomenon", "overall"}


def test_the_largest_size_of_the_studys_own_curves_stands_beside(runs):
    study = collect(runs, "simulated")
    curves = fit_curves(judgements(study, "blimp", "lp", "wrong"), CONFIG)
    table = tables(section(study, curves_beside(curves)))["accuracies"].set_index("phenomenon")
    at = curves.accuracies[(curves.accuracies["size"] == "1M") & (curves.accuracies["level"] == "overall")]
    assert table.loc["overall", "lstm_tiny at 1M"] == pytest.approx(at["accuracy"].iloc[0])


def test_models_of_one_name_are_distinguished_by_their_folders(runs):
    (folder,) = SimulatedStudy(models=("big",), sizes=("2M",), seeds=(7,), pairs=20, name="other").write(runs)
    as_hub_model(folder, path="elsewhere/big_bert")
    both = combine([collect(runs, "simulated"), collect(runs, "other")])
    assert common_labels(both, ["simulated", "other"], None)[0] == ["blimp"]
    models = set(tables(section(both))["intervals"]["model"])
    assert len([name for name in models if name.startswith("big_bert, ")]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("curves", [True, False])
def test_the_command_has_a_section_of_models(runs, tmp_path, browser, curves):
    if not curves:
        for folder in (runs / "simulated").glob("lstm*"):
            folder.rename(tmp_path / folder.name)
    paths = [f"paths.runs={runs}", f"paths.reports={tmp_path}/reports", f"paths.store={tmp_path}/store"]
    done = run_command("analysis", "study=simulated", *paths)
    assert done.returncode == 0, done.stderr
    assert "simulated · BLiMP · models" in done.stdout
    page = OpenPage(browser, tmp_path / "reports" / "simulated" / "report.html", 390)
    assert page.console == []
    assert page.overflow == 0
    assert page.page.locator("#blimp-models-accuracies svg.marks").count() == 2  # a panel for each method
    assert page.page.locator("#blimp-curves").count() == curves
    heads = page.page.locator("#blimp-models-accuracies thead th").all_inner_texts()
    assert ("lstm_tiny at 1M" in heads) == curves
    assert {"big_bert, lp", "small_bert, mean_lp", "LSTM (paper)", "people"} <= set(heads)
    with page.page.expect_download() as started:
        page.page.locator("#blimp-models-accuracies .files a", has_text="LaTeX").click()
    assert started.value.suggested_filename == "blimp-models-accuracies.tex"
