"""Studies collected from W&B: equal to those of the run folders in all that is tracked."""

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analysis.config import CurvesConfig
from analysis.curves.fit import ALL_PAIRS, fit_curves
from analysis.curves.intervals import Interval
from analysis.exhibits.tables.slopes import slope_table
from analysis.study.collect import collect
from analysis.study.judgements import judgements, score_labels
from analysis.study.sources.wandb import collect_tracked, project_runs, tracked_judgements
from eval.scores.files import score_path
from eval.scores.record import RECORD, read_record
from eval.tracking import track_scores
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, RunError
from tests.support import ROOT
from tests.support.commands import run_command
from tests.support.offline_wandb import OfflineApi, OfflineRun, hide_account, offline_runs
from tests.support.simulated_study import SimulatedStudy
from train.runs.folder import RunFolder

PROJECT = "someone/pairscale"
CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=200, seed=1)


@pytest.fixture(autouse=True)
def _no_account(monkeypatch, tmp_path):
    hide_account(monkeypatch, tmp_path)


def track(folders: list[RunFolder], study: str) -> list[OfflineRun]:
    """Return the runs that `python -m eval study=... logger=wandb` tracks, read from W&B's own files."""
    for folder in folders:
        track_scores(folder, compose("eval", ["logger=wandb", "logger.mode=offline", f"study={study}"]))
    return list(offline_runs(folders[0].path.parent).values())


@pytest.fixture(scope="module")
def tracked_study(tmp_path_factory):
    runs = tmp_path_factory.mktemp("tracked")
    study = SimulatedStudy(models=("lstm_tiny",), sizes=("125k", "500k"), unk_share=0.2)
    return runs, track(study.write(runs), study.name)


def of_paradigms(judged):
    """Return the judgements as W&B has them, as means of paradigms."""
    pairs = judged.pairs.groupby(["phenomenon", "paradigm"], as_index=False).agg(n_pairs=("pair_id", "size"))
    columns = {
        name: np.stack([getattr(judged, name)[:, judged.pairs["paradigm"] == of].mean(axis=1, dtype=float)
                        for of in pairs["paradigm"]], axis=1)
        for name in ("outcome", "tie", "unk")
    }  # fmt: skip
    return replace(judged, pairs=pairs, **columns)


def assert_same_for_these_pairs(tracked, files):
    new_pairs = ["low_new_pairs", "high_new_pairs"]
    assert tracked.slopes[new_pairs].isna().all(axis=None)
    for name in ("slopes", "accuracies", "points"):
        ours, theirs = getattr(tracked, name), getattr(files, name)
        theirs = theirs[theirs["pairs"] == ALL_PAIRS].reset_index(drop=True)
        for frame in (ours, theirs):
            if name == "slopes":
                frame[new_pairs] = np.nan
                frame["method"] = frame["method"].replace(Interval.RUN_BOOTSTRAP, Interval.BOOTSTRAP)
        order = ["group", "level", "name", *(["run"] if name == "points" else [])]
        both = [frame.sort_values(order, ignore_index=True, kind="stable") for frame in (ours, theirs)]
        pd.testing.assert_frame_equal(*both, check_dtype=False, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ties", ["wrong", "half", "right"])
def test_curves_from_w_and_b_equal_those_of_the_files(tracked_study, ties):
    runs, tracked = tracked_study
    name, project_runs = project_runs_of(tracked)
    study = collect_tracked(name, project_runs, PROJECT)
    files = collect(runs, "simulated")
    columns = [column for column in files.runs if column != "manifest"]
    pd.testing.assert_frame_equal(study.runs.sort_index()[columns], files.runs.sort_index()[columns], check_dtype=False)
    assert score_labels(study) == ["blimp"]
    judged = tracked_judgements(study, "blimp", "lp", ties)
    expected = judgements(files, "blimp", "lp", ties)
    assert judged.n_pairs == len(expected.pairs) == 300
    assert judged.policies == expected.policies
    assert judged.share(judged.unk) == pytest.approx(expected.unk.mean(axis=1))
    curves = fit_curves(judged, CONFIG)
    assert set(curves.slopes["method"]) == {Interval.T_POOLED}
    assert set(curves.slopes["pairs"]) == {ALL_PAIRS}
    assert_same_for_these_pairs(curves, fit_curves(of_paradigms(expected), CONFIG))


def project_runs_of(tracked):
    return tracked[0].group, OfflineApi(PROJECT, tracked).runs(PROJECT, {}, lazy=False)


def test_five_seeds_are_resampled_over_runs_alone(tmp_path):
    """Records are passed in the API's form, without W&B."""
    from eval.scores.record import scored_pairs, write_record

    study = SimulatedStudy(models=("lstm_tiny",), sizes=("125k", "250k"), seeds=(1, 2, 3, 4, 5))
    folders = study.write(tmp_path)
    runs = [api_run(folder.path.name, write_record(folder, list(scored_pairs(folder)))) for folder in folders]
    curves = fit_curves(tracked_judgements(collect_tracked("simulated", runs, PROJECT), "blimp", "lp", "wrong"), CONFIG)
    assert set(curves.slopes["method"]) == {Interval.RUN_BOOTSTRAP}
    files = judgements(collect(tmp_path, "simulated"), "blimp", "lp", "wrong")
    assert set(fit_curves(files, CONFIG).slopes["method"]) == {Interval.BOOTSTRAP}
    assert_same_for_these_pairs(curves, fit_curves(of_paradigms(files), CONFIG))


def api_run(name, record=None, job="eval", state="finished", group="simulated"):
    summary = {} if record is None else {RECORD: record}
    return SimpleNamespace(id=name, name=name, job_type=job, state=state, group=group, summary=summary)


def test_runs_that_were_not_fully_scored_are_listed(tracked_study):
    _, tracked = tracked_study
    others = [
        api_run("a-1", job="train", state="running"),
        api_run("b-1", job="train", state="crashed"),
        api_run("c-1", job="train", state="finished"),
        api_run(tracked[0].name, job="train", state="finished"),
        api_run("simulated", job="analysis"),
    ]
    study = collect_tracked("simulated", [*others, *tracked], PROJECT, {"d-1": "model=d", tracked[0].name: "there"})
    listed = {row.run: (row.status, row.reason) for row in study.problems.itertuples()}
    assert listed == {
        "a-1": ("unfinished", "W&B says running"),
        "b-1": ("failed", "W&B says crashed"),
        "c-1": ("unscored", "W&B says finished; no scores are tracked"),
        "model=d": ("missing", ""),
    }
    with pytest.raises(RunError, match=r"no run in W&B's someone/pairscale is done \(a-1 unfinished; b-1 failed"):
        collect_tracked("simulated", others[:2], PROJECT)


def test_other_paradigms_or_another_benchmark_are_refused(tracked_study):
    _, tracked = tracked_study

    def changed(change):
        record = json.loads(tracked[0].summary[RECORD])
        change(record["scores"]["blimp"]["lp"])
        runs = [*tracked[1:], api_run(tracked[0].name, json.dumps(record))]
        return tracked_judgements(collect_tracked("simulated", runs, PROJECT), "blimp", "lp", "wrong")

    with pytest.raises(RunError, match="its record has other paradigms of blimp than that of"):
        changed(lambda scores: scores["paradigms"].pop())
    with pytest.raises(RunError, match="runs were scored on different versions of the benchmark"):
        changed(lambda scores: scores.update(digest="another"))
    study = collect_tracked("simulated", tracked, PROJECT)
    with pytest.raises(RunError, match=r"analysis\.method=pll: no run of study=simulated has .* methods there: lp"):
        tracked_judgements(study, "blimp", "pll", "wrong")


@pytest.fixture
def api(monkeypatch, tracked_study):
    """Replace W&B's API by one whose only project has the tracked runs."""
    served = OfflineApi(PROJECT, list(tracked_study[1]))
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.setattr("analysis.study.sources.wandb.answers", lambda url: True)
    monkeypatch.setattr("wandb.Api", lambda timeout: served)
    return served


def test_a_study_is_collected_from_its_project(api):
    assert project_runs(PROJECT, None)[0] == "simulated"
    assert len(project_runs(PROJECT, "simulated")[1]) == 4
    api.known.append(api_run("x", group="another"))
    with pytest.raises(ConfigError, match=r"holds another, simulated; choose one with study=NAME"):
        project_runs(PROJECT, None)
    assert project_runs(PROJECT, "another")[0] == "another"
    with pytest.raises(RunError, match="study=third is not among its runs"):
        project_runs(PROJECT, "third")
    with pytest.raises(RunError, match=r"cannot be read \(Could not find project a/b\)"):
        project_runs("a/b", None)
    api.known[:] = [api_run("x", group="../../up")]
    with pytest.raises(RunError, match=r"its group '\.\./\.\./up' is no name of a study"):
        project_runs(PROJECT, None)


def test_a_missing_project_key_or_network_is_an_error(monkeypatch):
    with pytest.raises(ConfigError, match="source=wandb with project=None: must be ENTITY/PROJECT"):
        project_runs(None, None)
    with pytest.raises(ConfigError, match="no key for W&B; run `wandb login`, or set WANDB_API_KEY"):
        project_runs(PROJECT, None)
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.setattr("analysis.study.sources.wandb.answers", lambda url: False)
    with pytest.raises(RunError, match="does not answer; without a network: python -m analysis study=NAME"):
        project_runs(PROJECT, None)


COMMAND = """
import json, sys
from types import SimpleNamespace
import analysis.study.sources.wandb, wandb
known = [SimpleNamespace(**run) for run in json.loads(open({runs!r}).read())]
analysis.study.sources.wandb.answers = lambda url: True
wandb.Api = lambda timeout: SimpleNamespace(runs=lambda path, filters, lazy: known)
import runpy
sys.argv[0] = "analysis"
runpy.run_module("analysis", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_the_command_rebuilds_and_tracks_curves(tracked_study, tmp_path, monkeypatch):
    _, tracked = tracked_study
    file = tmp_path / "runs.json"
    known = [vars(run) | {"folders": []} for run in tracked]
    file.write_text(json.dumps([*known, vars(api_run("lost", job="train", state="crashed"))]))
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    overrides = [
        "source=wandb",
        f"project={PROJECT}",
        f"paths.reports={tmp_path}",
        "logger=wandb",
        "logger.mode=offline",
    ]
    command = [sys.executable, "-c", COMMAND.format(runs=str(file)), *overrides]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Island effects" in done.stdout
    assert "1 run not in these curves: 1 failed" in done.stderr
    report = tmp_path / "simulated+wandb"
    assert "source=wandb project=someone/pairscale" in (report / "report.html").read_text()
    (run,) = offline_runs(tmp_path).values()
    assert (run.name, run.group, run.job_type) == ("simulated", "simulated", "analysis")
    columns, rows = run.table("slopes/blimp")
    study = collect_tracked("simulated", tracked, PROJECT)
    table = slope_table(fit_curves(tracked_judgements(study, "blimp", "lp", "wrong"), compose("analysis", []).analysis))
    read = pd.DataFrame(rows, columns=columns)
    assert list(read["name"]) == list(table["name"])
    for column in ("slope", "low", "high", "accuracy 125k", "accuracy 500k"):
        assert read[column].to_numpy(float) == pytest.approx(table[column].to_numpy(float), nan_ok=True)
    assert read["low_new_pairs"].isna().all()
    figure = run.summary["curves/blimp.path"]
    assert (run.folders[0] / "files" / figure).read_bytes() == (report / "blimp-curves.png").read_bytes()
    assert run.summary["slope/blimp/lstm_tiny"] == pytest.approx(float(table["slope"].iloc[0]))


@pytest.mark.slow
def test_a_missing_project_is_a_message_of_one_line(tmp_path):
    done = run_command("analysis", "source=wandb", f"project={PROJECT}")
    assert done.returncode == 2
    assert done.stderr == (
        "pairscale analysis: source=wandb: no key for W&B; run `wandb login`, or set WANDB_API_KEY\n"
    )


def test_a_record_is_unchanged_by_writing_and_reading(tracked_study):
    runs, tracked = tracked_study
    record = read_record(tracked[0].summary[RECORD], "here")
    assert score_path(RunFolder(runs / "simulated" / record["run"]).scores("blimp"), "lp").exists()
    assert record["manifest"]["git"]["commit"] == "1234567890abcdef"
