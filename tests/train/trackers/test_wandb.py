"""Tracking in W&B, offline: the contents of its files, without duplicates and without a network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analysis.curves.fit import fitted_lines
from analysis.run import analyse, read_benchmarks, read_study
from eval.diagnostics.measures import measures
from eval.run import score_run
from eval.scores.accuracy import accuracies
from eval.scores.files import read_answer_file, read_items, read_scores, score_path, with_phenomena, write_answers
from eval.syntaxgym.measures import measures as suite_measures
from eval.syntaxgym.suites import answer_rows, load_suites
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support import ROOT
from tests.support.commands import run_command
from tests.support.diagnostics import write_files
from tests.support.offline_wandb import hide_account, offline_runs, tracked_job
from tests.support.random_models import LSTM, random_model, simulated_run
from tests.support.simulated_study import SimulatedStudy, about
from tests.support.small_runs import for_training, study_overrides, trained
from tests.support.suites import simulated, write_suites
from train.run import track_points
from train.runs.folder import RunFolder
from train.trackers.tracker import Job, tracked
from train.trackers.wandb import _mode, answers, has_key

SMALL = [
    "corpus=toy", "corpus.words=60000", "tokenizer=word", "sample.size=8k", "model=lstm_tiny", "model.embedding=16",
    "model.hidden=16", "recipe.validation_words=500", "recipe.budget.epochs=3", "trainer.threads=1",
    "trainer.accelerator=cpu", "trainer.progress=false", "benchmark=toy", "benchmark.per_paradigm=4", "study=s",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _no_account(monkeypatch, tmp_path):
    hide_account(monkeypatch, tmp_path)


def overrides(tmp_path, *more, logger="wandb"):
    paths = [f"paths.{name}={tmp_path}/{name}" for name in ("store", "runs", "reports")]
    return [*SMALL, *paths, f"logger={logger}", *more]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Return a folder with a run that was trained and scored from its empty subfolder."""
    root = tmp_path_factory.mktemp("tracking")
    (root / "here").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        hide_account(patched, root)
        patched.chdir(root / "here")
        config = compose("eval", overrides(root, "logger.tags=[a,b]", "logger.artifacts=[model,checkpoint]"))
        score_run(trained(config), config)
    return root


@pytest.fixture
def folder(scored):
    return RunFolder.of(compose("eval", overrides(scored)))


def test_training_is_tracked_over_words_seen(scored, folder):
    assert not list((scored / "here").iterdir())
    run, manifest = tracked_job(scored, folder.path.name, "train"), folder.read_manifest()
    assert (run.name, run.state) == (f"{folder.path.name} train", "finished")
    assert (run.group, run.job_type, run.project) == ("s", "train", "pairscale")
    assert sorted(run.tags) == ["8k", "a", "b", "lstm_tiny", "toy"]
    assert [path.parent for path in run.folders] == [folder.path / "wandb"]
    assert any(metric.get("glob_name") == "*" and metric["step_metric"] == "words_seen" for metric in run.metrics)
    assert run.config["model"] | {"name": "lstm_tiny", "hidden": 16, "embedding": 16} == run.config["model"]
    assert run.config["sample"]["size"] == "8k"
    assert run.config["size"] == run.config["sample_words"] == 8000
    assert run.config["commit"] == manifest["git"]["commit"]
    assert {"paths", "logger", "trainer", "benchmark"}.isdisjoint(run.config)
    logged = pd.DataFrame(run.history).filter(regex="^[^_]").astype(float)
    written = pd.read_csv(folder.metrics).astype(float)
    pd.testing.assert_frame_equal(logged[written.columns], written, check_exact=True)
    for name in ("sample_words", "words_seen", "parameters", "words_per_s"):
        assert run.summary[name] == manifest[name]
    assert run.summary["exported/valid_ppl"] == written["valid_ppl"].min()
    artifacts = {artifact["type"]: {f["path"] for f in artifact["manifest"]["contents"]} for artifact in run.artifacts}
    assert [Path(path).suffix for path in artifacts["checkpoint"]] == [".ckpt"]
    assert {"model/model.safetensors", "model/pairscale.json", "model/tokenizer/tokenizer.json"} <= artifacts["model"]
    stored = [f["local_path"] for artifact in run.artifacts for f in artifact["manifest"]["contents"]]
    assert all(Path(path).is_relative_to(folder.path) and Path(path).exists() for path in stored)


@pytest.fixture
def online(monkeypatch):
    """Return the points sent to an online run. As in W&B, its summary has the last values when it is resumed."""
    logged, summary = [], {}
    run = SimpleNamespace(
        summary=summary, log=lambda point: (logged.append(point), summary.update(point)),
        define_metric=lambda *_, **__: None, finish=lambda exit_code: None, settings=SimpleNamespace(mode="online"),
    )  # fmt: skip
    monkeypatch.setattr("wandb.init", lambda **_: run)
    return logged


def test_points_that_w_and_b_already_has_are_not_logged_again(tmp_path, online):
    config = compose("train", for_training(overrides(tmp_path)))
    rows = "1,100,9,0\n2,200,8,0\n3,300,7,0\n4,,6,0\n"  # the last one has no words_seen
    (tmp_path / "metrics.csv").write_text(f"step,words_seen,valid_ppl,valid_oov_rate\n{rows}")
    job = Job("train", "a-run", "s", tmp_path, {})
    with tracked(config.logger, job) as tracker:
        tracker.log({"words_seen": 200})
    with tracked(config.logger, job) as tracker:
        track_points(tracker, RunFolder(tmp_path))
        for words in (300, 400, 400, 500):
            tracker.log({"words_seen": words})
    assert [point["words_seen"] for point in online] == [200, 300, 400, 500]


def test_points_of_snapshots_get_the_scores_that_are_added_later(tmp_path, online):
    """The first points are of scoring during training, which was killed between two benchmarks."""
    config, job = compose("eval", overrides(tmp_path)), Job("eval", "a-run", "s", tmp_path, {})
    for benchmarks in (["a"], ["a", "b"]):
        with tracked(config.logger, job) as tracker:
            for words in (100, 200):
                tracker.log({"words_seen": words} | {f"snapshots/{name}/lp/overall": 0.5 for name in benchmarks})
    later = [point for point in online if "snapshots/b/lp/overall" in point]
    assert [point["words_seen"] for point in later] == [100, 200]


def test_scores_are_tracked_once(scored, tmp_path):
    shutil.copytree(scored, tmp_path, dirs_exist_ok=True)
    config = compose("eval", overrides(tmp_path, "method=[lp]"))
    folder = RunFolder.of(config)
    first = tracked_job(tmp_path, folder.path.name, "eval")
    assert first.group == "s"
    assert first.config["sample"]["size"] == "8k"
    (scores,) = folder.scores("").glob("*")
    for method in ("lp", "mean_lp", "pen_lp"):
        name = f"{scores.name}/{method}"
        expected = accuracies(with_phenomena(read_scores(score_path(scores, method))[0], read_items(scores)[0]))
        columns, rows = first.table(f"accuracies/{name}")
        read = pd.DataFrame(rows, columns=columns)
        pd.testing.assert_frame_equal(read, expected, check_dtype=False, check_exact=True)
        for row in expected[expected["level"] != "paradigm"].itertuples():
            assert first.summary[f"accuracy/{name}/{row.name}"] == row.accuracy
    assert first.summary["sample_words"] == 8000

    score_run(folder, config)  # tracks all scores again
    again = offline_runs(tmp_path)[first.id]
    assert len(again.folders) == 2
    assert not again.history
    assert again.summary.keys() == first.summary.keys()


@pytest.mark.parametrize("benchmark", ["cprag", "syntaxgym"])
def test_measures_of_diagnostics_and_suites_are_tracked(tmp_path, benchmark):
    write_files(tmp_path / "lm_diagnostics")
    write_suites(tmp_path / "syntaxgym")
    paths = [*study_overrides(tmp_path), "corpus=toy", "logger=wandb", "trainer.progress=false"]
    config = compose("eval", [*paths, f"benchmark={benchmark}"])
    run = simulated_run(config, random_model(LSTM))
    score_run(run, config)
    (tracked_run,) = offline_runs(tmp_path).values()
    assert tracked_run.name == f"{run.path.name} eval"
    columns, rows = tracked_run.table(f"measures/{benchmark}")
    read = pd.DataFrame(rows, columns=columns)
    if benchmark == "syntaxgym":
        expected = suite_measures(read_answer_file(run.scores(benchmark), "success")[0])
        levels = expected[expected["level"].isin(["overall", "circuit", "suite"])]
    else:
        levels = expected = measures(benchmark, read_answer_file(run.scores(benchmark), "cloze")[0])
    pd.testing.assert_frame_equal(read, expected, check_dtype=False, check_exact=True)
    for level, name, share in levels[["level", "name", "accuracy"]].to_numpy():
        assert tracked_run.summary[f"{level}/{benchmark}/{name}"] == share


NO_NETWORK = """
import socket, sys
real = socket.socket.connect
def connect(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        sys.exit(f"a connection to {address}")
    return real(self, address)
socket.socket.connect = connect
def look_up(host, *rest, real=socket.getaddrinfo, **more):
    if host not in (None, "", "127.0.0.1", "::1", "localhost"):
        sys.exit(f"{host} was looked up")
    return real(host, *rest, **more)
socket.getaddrinfo = look_up
import runpy
sys.argv[0] = "eval"
runpy.run_module("eval", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_without_a_key_wandb_uses_no_network_and_prints_nothing(tmp_path):
    """In a sweep of W&B's own only scoring has the id of the sweep."""
    sweep = {"WANDB_SWEEP_ID": "sweep123", "WANDB_RUN_ID": "ofsweep1"}
    command = [sys.executable, "-c", NO_NETWORK, "experiment=demo", *overrides(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | sweep, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    runs = offline_runs(tmp_path)
    assert sorted(run.job_type for run in runs.values()) == ["eval", "train"]
    assert runs["ofsweep1"].job_type == "eval"
    assert not [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("wandb")]
    assert done.stderr.count("To upload it, run: wandb sync") == 2


def test_the_mode_follows_the_configuration_the_environment_and_the_network(tmp_path, monkeypatch, capsys):
    asked = []

    def ask(url, **_):
        asked.append(url)
        raise ConnectionError

    monkeypatch.setattr("requests.head", ask)
    assert _mode(None) == "offline"
    assert not asked, "without a key no network is used"
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    assert [_mode(None), _mode(None)] == ["offline", "offline"]
    assert len(asked) == 1, "once a process"
    assert "does not answer, so this job is tracked offline" in capsys.readouterr().err
    assert _mode("online") == "online"
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert (_mode(None), _mode("offline")) == ("disabled", "offline")
    monkeypatch.delenv("WANDB_MODE")
    answers.cache_clear()
    monkeypatch.setattr("requests.head", lambda url, **_: None)
    assert _mode(None) == "online"
    answers.cache_clear()
    monkeypatch.delenv("WANDB_API_KEY")
    assert not has_key("https://api.wandb.ai")
    (tmp_path / "netrc").write_text(f"machine api.wandb.ai login user password {'k' * 40}\n")
    assert has_key("https://api.wandb.ai")


@pytest.mark.slow
def test_online_tracking_without_a_key_is_a_message_of_one_line(tmp_path):
    done = run_command("train", *for_training(overrides(tmp_path, "logger.mode=online")))
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("pairscale train: ")]
    assert "logger.mode=offline" in line


def test_a_failed_job_is_a_failed_run_in_w_and_b(tmp_path):
    config = compose("train", for_training(overrides(tmp_path)))

    def fail():
        with tracked(config.logger, Job("train", "a-run", "s", tmp_path / "a-run", {})):
            raise ConfigError("no")

    with pytest.raises(ConfigError):
        fail()
    assert tracked_job(tmp_path, "a-run", "train").state == "failed"


@pytest.mark.parametrize("with_suites", [False, True])
def test_an_analysis_logs_charts_of_its_curves_with_bands(tmp_path, capsys, with_suites):
    """The report has a part per benchmark, and the figures of several parts are in one folder each."""
    study = SimulatedStudy(sizes=("125k", "250k", "500k"), models=("lstm_tiny",), pairs=10)
    suites = load_suites(str(write_suites(tmp_path / "suites")))
    for folder in study.write(tmp_path / "runs"):
        if with_suites:
            rows = answer_rows(suites, simulated(suites, 1), skip_unk=False)
            write_answers(folder.scores("syntaxgym"), rows, about("syntaxgym", suites.digest))
    paths = [f"paths.{name}={tmp_path}/{name}" for name in ("runs", "reports")]
    config = compose("analysis", [f"study={study.name}", *paths, "logger=wandb"])
    analyse(config)
    assert "tracking failed" not in capsys.readouterr().err
    (results,) = read_benchmarks(config, read_study(config))
    run = tracked_job(tmp_path, study.name, "analysis")
    (image,) = run.folders[0].glob("files/media/images/curves/*.png")
    (figure,) = (tmp_path / "reports" / study.name).rglob("overall.png")
    assert image.read_bytes() == figure.read_bytes()
    columns, rows = run.table("curves/blimp/overall_table")
    drawn = pd.DataFrame(rows, columns=columns)
    lines = fitted_lines(results.accuracies)
    curve = lines[(lines["level"] == "overall") & (lines["curve"] == results.curves[0])]
    for column, name in {"accuracy": results.curves[0], "high": f"{results.curves[0]}, high"}.items():
        of = drawn[drawn["curve"] == name]
        assert of["value"].tolist() == pytest.approx(curve[column].tolist())
        assert of["log2(words)"].tolist() == pytest.approx(np.log2(curve["sample_words"]).tolist())
    charts = {key for key in run.config if key.startswith("_wandb.visualize.")}  # what W&B draws
    assert charts == {f"_wandb.visualize.curves/blimp/{name}" for name in ("overall", *study.phenomena)}
    columns, rows = run.table("runs/blimp")
    assert len(rows) == len(results.units)
