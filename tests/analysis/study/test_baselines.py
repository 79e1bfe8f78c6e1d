"""Runs without training or on shuffled text, and the baselines of onsets that they give."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves, onset_baseline
from analysis.curves.units import units_of
from analysis.sections.robustness.baselines import baseline_exhibit
from analysis.sections.section import Section
from analysis.study.baselines import baseline_judgements, baseline_rows, check_curves
from analysis.study.collect import collect
from analysis.study.combine import combine, common_labels
from analysis.study.judgements import judgements
from pairscale.command.compose import compose
from pairscale.errors import RunError
from pairscale.seeds import derived_seed
from tests.support.simulated_study import SimulatedStudy
from train.models.build import build_model
from train.run import train_run

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=100, seed=1)


@pytest.mark.parametrize("export", ["best", "last"])
def test_a_run_of_no_epochs_exports_the_initial_model(tmp_path, export):
    model = ["model=lstm_tiny", "model.embedding=16", "model.hidden=16", f"recipe.export={export}"]
    where = [f"paths.runs={tmp_path}/runs", f"paths.store={tmp_path}/store", "trainer.accelerator=cpu", "study=s"]
    overrides = [
        "corpus=toy",
        "corpus.words=20000",
        "sample.size=2k",
        "tokenizer=word",
        "seed=3",
        "recipe.budget.epochs=0",
    ]
    config = compose("train", [*overrides, *model, *where])
    run = train_run(config)
    manifest = run.read_manifest()
    assert (manifest["status"], manifest["words_seen"], manifest["words_per_s"]) == ("done", 0, None)
    torch.manual_seed(derived_seed(None, 3, "initialisation"))
    expected = build_model(config.model, manifest["vocabulary"]).state_dict()
    weights = load_file(run.path / "model.safetensors")
    assert all(torch.equal(weights[name], expected[name]) for name in weights)


def study_with(untrained, tmp_path):
    """Return a simulated study in which the runs at `untrained` sizes saw no words."""
    written = SimulatedStudy(pairs=20, models=("lstm_tiny", "txl_tiny"), seeds=(1, 2))
    for folder in written.write(tmp_path):
        if folder.path.name.startswith("lstm") and folder.path.name.split("-")[3] in untrained:
            folder.update_manifest(words_seen=0)
    return collect(tmp_path, written.name)


def test_untrained_runs_are_the_baseline_of_their_model_and_not_on_its_curve(tmp_path):
    study = study_with({"125k"}, tmp_path)
    assert sorted(study.baselines["seed"]) == [1, 2]
    assert set(study.runs[study.runs["model"] == "lstm_tiny"]["size"]) == {"250k", "500k", "1M"}
    judged = judgements(study, "blimp", "lp", "wrong")
    untrained = baseline_judgements(study, judged, judgements, "wrong")
    assert untrained.runs["baseline_of"].tolist() == [("lstm_tiny",)] * 2
    slopes = fit_curves(judged, CONFIG, untrained).slopes.set_index(["group", "name"])
    named = "chance and the mean of 2 untrained models"
    assert set(slopes.loc["lstm_tiny", "onset_baseline"]) == {named}
    assert set(slopes.loc["txl_tiny", "onset_baseline"]) == {"chance"}


def test_untrained_runs_on_other_pairs_are_refused(tmp_path):
    study = study_with({"125k"}, tmp_path)
    judged = judgements(study, "blimp", "lp", "wrong")
    with pytest.raises(RunError, match="different versions of the benchmark"):
        baseline_judgements(study, dataclasses.replace(judged, digest="another"), judgements, "wrong")


def test_a_study_of_only_untrained_runs_has_no_curve(tmp_path):
    written = SimulatedStudy(pairs=2, models=("lstm_tiny",), sizes=("125k",), seeds=(1,))
    for folder in written.write(tmp_path):
        folder.update_manifest(words_seen=0)
    study = collect(tmp_path, written.name)
    assert (len(study.runs), len(study.baselines)) == (0, 1)
    with pytest.raises(RunError, match=r"only baselines .* and no curve; analyse it with .*: study=OTHER\+"):
        check_curves(study)


def shuffled(folder, shuffle):
    config = folder.read_config()
    config["sample"]["shuffle"] = shuffle
    folder.config.write_text(yaml.safe_dump(config))


def study_with_shuffled_runs(tmp_path):
    """Return a study of curves, and one of baselines: shuffled sentences, of two sizes, and untrained."""
    curves = SimulatedStudy(name="curves", pairs=20, models=("lstm_tiny",), sizes=("250k", "500k", "1M"), seeds=(1, 2))
    curves.write(tmp_path)
    rest = SimulatedStudy(name="rest", pairs=20, models=("lstm_tiny",), sizes=("125k", "250k", "500k"), seeds=(1, 2))
    for folder in rest.write(tmp_path):
        if "125k" in folder.path.name:
            folder.update_manifest(words_seen=0)
        else:
            shuffled(folder, "sentence")
    return [collect(tmp_path, name) for name in ("curves", "rest")]


def test_runs_on_shuffled_text_of_another_study_are_a_baseline_at_their_largest_size(tmp_path):
    studies = study_with_shuffled_runs(tmp_path)
    both = combine(studies)
    assert both.baselines["baseline"].value_counts().to_dict() == {"sentence": 4, "untrained": 2}
    assert common_labels(both, ["curves", "rest"], None) == (["blimp"], [])
    judged = judgements(both, "blimp", "lp", "wrong")
    baselines = baseline_judgements(both, judged, judgements, "wrong")
    rows = baseline_rows(baselines, "lstm_tiny")
    assert {kind: sorted(baselines.runs["size"].iloc[of]) for kind, of in rows.items()} == {
        "untrained": ["125k", "125k"], "sentence": ["500k", "500k"],
    }  # fmt: skip
    slopes = fit_curves(judged, CONFIG, baselines).slopes
    assert set(slopes["onset_baseline"]) == {
        "chance and the mean of 2 untrained models and of 2 models of shuffled sentences"
    }


def test_an_onset_exceeds_the_highest_of_chance_and_the_baselines(tmp_path):
    """By hand, from the outcomes of the runs."""
    both = combine(study_with_shuffled_runs(tmp_path))
    judged = judgements(both, "blimp", "lp", "wrong")
    baselines = baseline_judgements(both, judged, judgements, "wrong")
    level, _ = onset_baseline("lstm_tiny", units_of(judged.pairs), baselines)
    paradigms = judged.pairs["paradigm"].to_numpy()

    def mean(rows):
        return np.mean([baselines.outcome[rows][:, paradigms == name].mean() for name in dict.fromkeys(paradigms)])

    rows = baseline_rows(baselines, "lstm_tiny")
    assert level[0] == pytest.approx(max(0.5, mean(rows["untrained"]), mean(rows["sentence"])))
    assert level[0] > 0.5


def test_the_table_of_baselines(tmp_path):
    both = combine(study_with_shuffled_runs(tmp_path))
    judged = judgements(both, "blimp", "lp", "wrong")
    baselines = baseline_judgements(both, judged, judgements, "wrong")
    curves = fit_curves(judged, CONFIG, baselines)
    section = Section(judged, curves, pd.DataFrame(), baselines=baselines)
    exhibit = baseline_exhibit(section, 0.95)
    overall = exhibit.table[exhibit.table["phenomenon"] == "overall"].set_index("baseline")
    assert overall["text"].to_dict() == {"untrained models": "", "models of shuffled sentences": "500k"}
    at = curves.accuracies[(curves.accuracies["level"] == "overall") & (curves.accuracies["size"] == "1M")]
    assert (overall["curve's accuracy"] == at["accuracy"].iloc[0]).all()
    assert ((overall["low"] < overall["accuracy"]) & (overall["accuracy"] < overall["high"])).all()
    ((subject, text),) = exhibit.takeaways
    assert subject == "lstm_tiny"
    assert re.fullmatch(r"overall \.\d+ by untrained models, \.\d+ by models of shuffled sentences; .*\)\.", text)
    assert baseline_exhibit(Section(judged, curves, pd.DataFrame()), 0.95) is None
