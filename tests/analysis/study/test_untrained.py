"""Runs without training, and the baseline of onsets that they give."""

import dataclasses

import pytest
import torch
from safetensors.torch import load_file

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from analysis.study.untrained import untrained_judgements
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
    assert sorted(study.untrained["seed"]) == [1, 2]
    assert set(study.runs[study.runs["model"] == "lstm_tiny"]["size"]) == {"250k", "500k", "1M"}
    judged = judgements(study, "blimp", "lp", "wrong")
    untrained = untrained_judgements(study, judged, judgements, "wrong")
    assert untrained.runs["baseline_of"].tolist() == [("lstm_tiny",)] * 2
    slopes = fit_curves(judged, CONFIG, untrained).slopes.set_index(["group", "name"])
    named = "chance and the mean of 2 untrained models"
    assert set(slopes.loc["lstm_tiny", "onset_baseline"]) == {named}
    assert set(slopes.loc["txl_tiny", "onset_baseline"]) == {"chance"}


def test_untrained_runs_on_other_pairs_are_refused(tmp_path):
    study = study_with({"125k"}, tmp_path)
    judged = judgements(study, "blimp", "lp", "wrong")
    with pytest.raises(RunError, match="different versions of the benchmark"):
        untrained_judgements(study, dataclasses.replace(judged, digest="another"), judgements, "wrong")


def test_a_study_of_only_untrained_runs_has_no_curve(tmp_path):
    written = SimulatedStudy(pairs=2, models=("lstm_tiny",), sizes=("125k",), seeds=(1,))
    for folder in written.write(tmp_path):
        folder.update_manifest(words_seen=0)
    with pytest.raises(RunError, match="untrained"):
        collect(tmp_path, written.name)
