"""A study on a real SLURM (slurm/local_cluster) with W&B (offline), each of its runs disturbed in its own way.

Signals of SLURM reach W&B's own process, too: losing it must fail no run.
"""

import os
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest
from safetensors.torch import load_file

from tests.support import ROOT
from tests.support.expected_runs import expected_runs
from tests.support.offline_wandb import hide_account, offline_runs
from tests.support.slurm_cluster import SMALL_JOBS, TOY, Cluster, paths, wait_until
from train.runs.folder import RunFolder

pytestmark = pytest.mark.slurm

# By index in the array, seeds 1 to 6. `signalled` gets SIGTERM, then `scancel`.
TASKS = ("preempted at start", "cancelled at start", "preempted", "limited", "failed", "signalled")
AT_START, IN_TRAINING, REQUEUED = TASKS[:2], TASKS[2:], ("preempted at start", "preempted", "limited", "failed")
SEEDS = f"seed={','.join(str(number + 1) for number in range(len(TASKS)))}"


@pytest.fixture(scope="module")
def cluster(slurm, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        hide_account(patched, tmp_path_factory.mktemp("account"))
        cluster = Cluster(tmp_path_factory.mktemp("slurm"))
        # A node for each task; a grace time in which a run that can fail does.
        cluster.up(NODES=str(len(TASKS)), GRACE="20")
        yield cluster
        cluster.down()


def held(folder: Path) -> tuple[Path, str]:
    """Return a file, which pauses the runs while it exists, and the option of slurm/submit for that."""
    hold = folder / "hold"
    hold.touch()
    return hold, f'slurm.setup=["PYTHON=({sys.executable} {ROOT / "tests" / "support" / "held_python.py"} {hold})"]'


def check_weights(left: RunFolder, right: RunFolder) -> None:
    left, right = load_file(left.model.weights), load_file(right.model.weights)
    assert left.keys() == right.keys()
    assert all(left[key].equal(right[key]) for key in left)


def study(folder: Path) -> dict[str, RunFolder]:
    """Return the runs of the study by their disturbance."""
    runs = [RunFolder(folder / "runs" / "demo" / run) for run in expected_runs("demo", [*TOY[1:], SEEDS])]
    return dict(zip(TASKS, runs, strict=True))


@dataclass
class Walk:
    """The folder of the disturbed study and of the undisturbed one, and what was seen on the way."""

    folder: Path
    alone: Path
    submissions: list[str] = field(default_factory=list)  # outputs of slurm/submit
    after: dict[str, tuple[str, str]] = field(default_factory=dict)  # state and restarts once disturbed, by task
    ended: dict[str, str] = field(default_factory=dict)  # states in the end
    logs: dict[str, str] = field(default_factory=dict)
    signalled: str = ""  # state after SIGTERM


@pytest.fixture(scope="module")
def walk(cluster, tmp_path_factory):
    """Run the study with W&B, disturbed while its runs are held, and submit it again; run it undisturbed without."""
    walk = Walk(tmp_path_factory.mktemp("disturbed"), tmp_path_factory.mktemp("alone"))
    hold, setup = held(walk.folder)
    arguments = [*TOY, SEEDS, *paths(walk.folder), *SMALL_JOBS, "logger=wandb", "slurm.signal=USR2@115"]
    walk.submissions.append(cluster.submit(*arguments, setup))
    array = min((job.partition("_")[0] for job in cluster.jobs()), key=int)  # the analysis comes after it
    tasks = {name: f"{array}_{index}" for index, name in enumerate(TASKS)}
    runs = study(walk.folder)

    def seen(name: str) -> tuple[str, str]:
        job = cluster.jobs()[tasks[name]]
        return job["state"], job["restarts"]

    for name, disturb in zip(AT_START, (cluster.preempt, cluster.cancel), strict=True):
        wait_until(lambda name=name: bool(cluster.processes(tasks[name], b"wandb-core")), f"W&B of the run {name}")
        disturb(tasks[name])
    wait_until(lambda: all(runs[name].checkpoints for name in IN_TRAINING), "checkpoints")
    cluster.preempt(tasks["preempted"])
    cluster.limit(tasks["limited"])
    cluster.fail_node(tasks["failed"])
    cluster.run("scancel", "--signal=TERM", tasks["signalled"])
    lost = runs["signalled"].path / "tracking.log"
    wait_until(lambda: lost.exists() or seen("signalled")[0] != "RUNNING", "the end of W&B, or of its run")
    walk.signalled = seen("signalled")[0]
    cluster.cancel(tasks["signalled"])
    with ThreadPoolExecutor() as pool:
        shutil.copytree(walk.folder / "store", walk.alone / "store")
        quiet = pool.submit(cluster.run, sys.executable, "-m", "eval", "-m", *TOY, SEEDS, *paths(walk.alone))
        for name in TASKS:
            ended = ("CANCELLED", "FAILED", "COMPLETED")
            wait_until(lambda name=name: seen(name)[1] != "0" or seen(name)[0] in ended, f"the {name} run")  # noqa: B023
            walk.after[name] = seen(name)
        assert not any(run.done for run in runs.values()), "a run ended before it was disturbed"
        cluster.run("scontrol", "update", f"JobId={tasks['limited']}", "TimeLimit=30")
        walk.submissions += [cluster.submit(*arguments), cluster.submit(*arguments)]  # while none can end
        hold.unlink()
        wait_until(lambda: not cluster.live(), "the end of all jobs")
        quiet.result()
    walk.ended = {name: seen(name)[0] for name in TASKS}
    walk.logs = {name: (walk.folder / f"runs/demo/slurm/{task}.log").read_text() for name, task in tasks.items()}
    walk.submissions.append(cluster.submit(*arguments))
    wait_until(lambda: not cluster.live(), "the end of the analysis")
    return walk


def test_submitting_again_starts_only_runs_that_are_neither_done_nor_queued(walk):
    summaries = [text.splitlines()[0].partition(": ")[2] for text in walk.submissions]
    assert summaries[0] == "6 runs: 0 done and scored, 0 queued or running, 6 to submit"
    assert "4 queued or running" in summaries[1]
    assert summaries[1].endswith("2 to submit")
    assert summaries[2].endswith("0 to submit")
    assert summaries[3] == "6 runs: 6 done and scored, 0 queued or running, 0 to submit"


@pytest.mark.parametrize("name", TASKS)
def test_a_disturbed_run_is_started_again_and_resumes(walk, name):
    log = walk.logs[name]
    assert "bug in pairscale" not in log
    assert "Traceback" not in log
    if name not in REQUEUED:
        assert walk.after[name] == ("CANCELLED", "0"), log
        return
    assert walk.after[name][1] == "1", log
    assert walk.ended[name] == "COMPLETED", log
    if name in IN_TRAINING:
        assert f"Resuming {study(Path())[name].path.name} after " in log.replace("\n", " ")


def test_each_run_was_disturbed_as_intended(walk):
    assert "DUE TO PREEMPTION" in walk.logs["preempted"]
    assert "exit code 75 and is requeued" in walk.logs["limited"]
    assert walk.signalled == "RUNNING", walk.logs["signalled"]
    assert "Traceback" in (study(walk.folder)["signalled"].path / "tracking.log").read_text()


@pytest.mark.parametrize("name", TASKS)
def test_a_disturbed_run_has_the_weights_and_scores_of_an_undisturbed_one(walk, name):
    disturbed, quiet = study(walk.folder)[name], study(walk.alone)[name]
    manifest = disturbed.read_manifest()
    assert manifest["status"] == "done"
    assert manifest["attempts"] > quiet.read_manifest()["attempts"] == 1
    assert set(manifest["git"]) == {"commit", "difference", "difference_cut", "untracked"}
    check_weights(disturbed, quiet)
    assert disturbed.metrics.read_bytes() == quiet.metrics.read_bytes()
    scores = [run.scores("toy+seed-1+per_paradigm-3") / "lp.parquet" for run in (disturbed, quiet)]
    pd.testing.assert_frame_equal(*map(pd.read_parquet, scores), check_exact=True)


def test_the_last_attempt_is_tracked_whole(walk):
    tracked = offline_runs(walk.folder)
    for run in study(walk.folder).values():
        (training,) = [one for one in tracked.values() if one.name == f"{run.path.name} train"]
        assert training.state == "finished"
        words = [point["words_seen"] for point in training.history]
        assert max(map(int, words)) == run.read_manifest()["words_seen"]


def test_the_report_equals_that_of_the_undisturbed_study(walk, cluster):
    cluster.run(sys.executable, "-m", "analysis", "study=demo", *paths(walk.alone))
    reports = [path / "reports" / "demo" for path in (walk.folder, walk.alone)]
    assert (reports[0] / "report.html").exists()
    tables = sorted(path.name for path in (reports[1] / "tables").glob("*.csv"))
    assert "accuracies.csv" in tables
    for table in tables:
        rows = [pd.read_csv(report / "tables" / table) for report in reports]
        timed = [column for column in rows[0] if column in ("words/s", "seconds")]
        pd.testing.assert_frame_equal(*(frame.drop(columns=timed) for frame in rows), check_exact=True)


@pytest.mark.release  # this takes minutes
def test_runs_that_share_a_task_and_a_gpu_are_disturbed_alone_or_together(cluster, tmp_path):
    seeds = [7, 8, 9, 10]
    axis = f"seed={','.join(map(str, seeds))}"
    hold, setup = held(tmp_path)
    arguments = [*TOY, axis, *paths(tmp_path), "slurm.mem=2G", "slurm.gpus-per-node=1", "slurm.per_gpu=2"]
    cluster.submit(*arguments, setup)
    runs = [RunFolder(tmp_path / "runs" / "demo" / run) for run in expected_runs("demo", [*TOY[1:], axis])]
    array = min((job.partition("_")[0] for job in cluster.live()), key=int)
    wait_until(lambda: all(run.checkpoints for run in runs), "checkpoints")
    python = Path(sys.executable).resolve()
    one = [pid for pid in cluster.processes(f"{array}_0", b"seed=7") if Path(f"/proc/{pid}/exe").resolve() == python]
    os.kill(*one, signal.SIGKILL)
    cluster.run("scancel", "--signal=USR2", f"{array}_1")  # as before the time limit
    wait_until(lambda: cluster.jobs()[f"{array}_1"]["restarts"] == "1", "the second task to be requeued")
    hold.unlink()
    wait_until(lambda: not cluster.live(), "the end of all jobs")
    jobs = cluster.jobs()
    assert [jobs[f"{array}_{task}"]["state"] for task in (0, 1)] == ["FAILED", "COMPLETED"]
    assert jobs[f"{array}_0"]["restarts"] == "0"
    assert (
        f"run 0 ended with exit code 137: {runs[0].path.name}"
        in (runs[0].path.parent / f"slurm/{array}_0.log").read_text()
    )
    assert [run.done for run in runs] == [False, True, True, True]
    assert "4 runs: 3 done and scored, 0 queued or running, 1 to submit" in cluster.submit(*arguments)
    wait_until(lambda: not cluster.live(), "the end of the second submission")
    alone = tmp_path / "alone"
    cluster.run(sys.executable, "-m", "eval", "-m", *TOY, axis, *paths(alone))
    for run in runs:
        check_weights(run, RunFolder(alone / "runs" / "demo" / run.path.name))
