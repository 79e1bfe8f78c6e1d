"""A study on a real SLURM (slurm/local_cluster), with preempted, failed and cancelled jobs."""

import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
from safetensors.torch import load_file

from tests.support import ROOT
from tests.support.expected_runs import expected_runs
from tests.support.slurm_cluster import LOCAL, SMALL_JOBS, TOY, Cluster, paths, wait_until
from train.runs.folder import RunFolder

pytestmark = pytest.mark.slurm

TASKS = ("preempted", "limited", "failed", "cancelled")  # by index in the array, seeds 1 to 4
SEEDS = "seed=1,2,3,4"


@pytest.fixture(scope="module")
def cluster(slurm, tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    cluster.up()
    yield cluster
    cluster.down()


def study(folder: Path) -> dict[str, RunFolder]:
    """Return the runs of the study by their disturbance."""
    runs = [RunFolder(folder / "runs" / "demo" / run) for run in expected_runs("demo", [*TOY[1:], SEEDS])]
    return dict(zip(TASKS, runs, strict=True))


def checkpoints(run: RunFolder) -> list[Path]:
    return list(run.path.glob("checkpoints/*.ckpt"))


@pytest.fixture(scope="module")
def walk(cluster, tmp_path_factory):
    """Run a study of four runs, each disturbed in its own way, and the same study undisturbed.

    The first is submitted, disturbed while its runs are held, and submitted again. Returns both folders, the logs by
    run, and the output of each submission.
    """
    folder, alone = tmp_path_factory.mktemp("disturbed"), tmp_path_factory.mktemp("alone")
    hold = folder / "hold"
    hold.touch()
    held = f"PYTHON=({sys.executable} {ROOT / 'tests' / 'support' / 'held_python.py'} {hold})"
    arguments = [*TOY, SEEDS, *paths(folder), *SMALL_JOBS, "slurm.signal=USR2@115"]
    outputs = [cluster.submit(*arguments, f'slurm.setup=["{held}"]')]
    array = min((job.partition("_")[0] for job in cluster.jobs()), key=int)  # the analysis comes after it
    tasks = dict(zip(TASKS, [f"{array}_{index}" for index in range(4)], strict=True))
    runs = study(folder)
    log = {name: folder / f"runs/demo/slurm/{task}.log" for name, task in tasks.items()}
    wait_until(lambda: all(checkpoints(run) for run in runs.values()), "checkpoints of all runs")

    cluster.preempt(tasks["preempted"])
    cluster.limit(tasks["limited"])
    cluster.fail_node(tasks["failed"])
    cluster.cancel(tasks["cancelled"])
    with ThreadPoolExecutor() as pool:
        shutil.copytree(folder / "store", alone / "store")
        undisturbed = pool.submit(cluster.run, sys.executable, "-m", "eval", "-m", *TOY, SEEDS, *paths(alone))
        wait_until(lambda: cluster.jobs()[tasks["cancelled"]]["state"] == "CANCELLED", "the end of the cancelled run")
        for name in ("preempted", "limited", "failed"):
            wait_until(
                lambda name=name: int(cluster.jobs()[tasks[name]]["restarts"]) > 0, f"the {name} run to be requeued"
            )
        assert not any(run.done for run in runs.values()), "a run ended before it was disturbed"
        cluster.run("scontrol", "update", f"JobId={tasks['limited']}", "TimeLimit=30")
        outputs += [cluster.submit(*arguments), cluster.submit(*arguments)]  # while none can end
        hold.unlink()
        wait_until(lambda: not cluster.live(), "the end of all jobs")
        undisturbed.result()
    outputs.append(cluster.submit(*arguments))
    wait_until(lambda: not cluster.live(), "the end of the analysis")
    return folder, alone, {name: path.read_text() for name, path in log.items()}, outputs


def test_submitting_again_starts_only_runs_that_are_neither_done_nor_queued(walk):
    *_, outputs = walk
    summaries = [text.splitlines()[0].partition(": ")[2] for text in outputs]
    assert summaries[0] == "4 runs: 0 done and scored, 0 queued or running, 4 to submit"
    assert "3 queued or running" in summaries[1]
    assert summaries[1].endswith("1 to submit")
    assert summaries[2].endswith("0 to submit")
    assert "nothing to submit: the analysis is queued" in outputs[2]
    assert summaries[3] == "4 runs: 4 done and scored, 0 queued or running, 0 to submit"


@pytest.mark.parametrize("name", TASKS)
def test_a_disturbed_run_has_the_weights_of_an_undisturbed_one(walk, name):
    folder, alone, *_ = walk
    disturbed, quiet = study(folder)[name], study(alone)[name]
    manifest = disturbed.read_manifest()
    assert manifest["status"] == "done"
    assert manifest["attempts"] > quiet.read_manifest()["attempts"] == 1
    left, right = load_file(disturbed.model.weights), load_file(quiet.model.weights)
    assert left.keys() == right.keys()
    assert all(left[key].equal(right[key]) for key in left)
    pd.testing.assert_frame_equal(pd.read_csv(disturbed.metrics), pd.read_csv(quiet.metrics), check_exact=True)
    scores = [run.scores("toy+seed-1+per_paradigm-3") / "lp.parquet" for run in (disturbed, quiet)]
    pd.testing.assert_frame_equal(*map(pd.read_parquet, scores), check_exact=True)


def test_each_run_was_disturbed_as_intended_and_resumed(walk):
    *_, log, _ = walk
    assert "SIGTERM: saved, and training goes on until SLURM ends this job" in log["preempted"]
    assert "DUE TO PREEMPTION" in log["preempted"]
    assert "exit code 75; requeued" in log["limited"]
    for name in ("preempted", "limited", "failed"):
        assert f"restarts 1: {study(Path())[name].path.name}" in log[name]
        assert f"resuming {study(Path())[name].path.name} at " in log[name].replace("\n", " ")
    assert "CANCELLED" in log["cancelled"]


def test_the_report_equals_that_of_the_undisturbed_study(walk, cluster):
    folder, alone, *_ = walk
    cluster.run(sys.executable, "-m", "analysis", "study=demo", *paths(alone))
    reports = [path / "reports" / "demo" for path in (folder, alone)]
    assert (reports[0] / "report.html").exists()
    tables = sorted(path.name for path in (reports[1] / "tables").glob("*.csv"))
    assert "accuracies.csv" in tables
    for table in tables:
        rows = [pd.read_csv(report / "tables" / table) for report in reports]
        timed = [column for column in rows[0] if column in ("words/s", "seconds")]
        pd.testing.assert_frame_equal(*(frame.drop(columns=timed) for frame in rows), check_exact=True)


def test_the_cluster_starts_once_and_stops_its_daemons(cluster, tmp_path):
    other = Cluster(tmp_path / "other")
    other.up(PORT="19917", NODES="1", CPUS="1")
    try:
        assert "SLURM is up already" in other.run(LOCAL / "up.sh", other.folder)
        job = other.run("sbatch", "--parsable", "--output=/dev/null", "--wrap=srun sleep 600").strip()
        wait_until(lambda: len(other.processes(job)) > 1, "the job's processes")
    finally:
        other.down()
    assert not list(other._processes())
    assert list(cluster._processes())
    other.run(LOCAL / "down.sh", other.folder)  # nothing is left to stop


def test_a_manifest_records_the_code_of_the_run(walk):
    folder, *_ = walk
    git = json.loads(study(folder)["limited"].manifest.read_text())["git"]
    assert set(git) == {"commit", "difference", "difference_cut", "untracked"}
