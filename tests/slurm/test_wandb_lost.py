"""Runs with W&B (offline) on a real SLURM, whose signals reach W&B's own process, too: none fails for losing it."""

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.support import ROOT
from tests.support.expected_runs import expected_runs
from tests.support.offline_wandb import hide_account, offline_runs
from tests.support.slurm_cluster import SMALL_JOBS, TOY, Cluster, paths, wait_until
from train.runs.folder import RunFolder

pytestmark = pytest.mark.slurm

TASKS = ("preempted at start", "cancelled at start", "preempted", "cancelled", "limited")  # seeds 1 to 5
AT_START, IN_TRAINING = TASKS[:2], TASKS[2:]
SEEDS = "seed=1,2,3,4,5"


@pytest.fixture(scope="module")
def cluster(slurm, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        hide_account(patched, tmp_path_factory.mktemp("account"))
        cluster = Cluster(tmp_path_factory.mktemp("slurm"))
        # Five nodes, one for each task; a grace time in which a run that can fail does.
        cluster.up(PORT="18817", NODES="5", GRACE="20")
        yield cluster
        cluster.down()


def study(folder: Path) -> dict[str, RunFolder]:
    """Return the runs of the study by their disturbance."""
    runs = [RunFolder(folder / "runs" / "demo" / run) for run in expected_runs("demo", [*TOY[1:], SEEDS])]
    return dict(zip(TASKS, runs, strict=True))


def service(cluster: Cluster, task: str) -> list[int]:
    """Return the process ids of W&B's own process in a task."""
    commands = {pid: Path(f"/proc/{pid}/cmdline") for pid in cluster.processes(task)}
    return [pid for pid, path in commands.items() if path.exists() and b"wandb-core" in path.read_bytes()]


@pytest.fixture(scope="module")
def walk(cluster, tmp_path_factory):
    """Run a study of five runs with W&B, each disturbed in its own way, and the same study undisturbed without W&B.

    Returns both folders, the logs by run, and the state of each task once it was disturbed.
    """
    folder, alone = tmp_path_factory.mktemp("disturbed"), tmp_path_factory.mktemp("alone")
    hold = folder / "hold"
    hold.touch()
    held = f"PYTHON=({sys.executable} {ROOT / 'tests' / 'support' / 'held_python.py'} {hold})"
    arguments = [*TOY, SEEDS, *paths(folder), *SMALL_JOBS, "logger=wandb", "slurm.signal=USR2@115"]
    cluster.submit(*arguments, f'slurm.setup=["{held}"]')
    array = min((job.partition("_")[0] for job in cluster.jobs()), key=int)  # the analysis comes after it
    tasks = dict(zip(TASKS, [f"{array}_{index}" for index in range(len(TASKS))], strict=True))
    runs = study(folder)
    states: dict[str, str] = {}

    def state(name: str) -> dict[str, str]:
        return cluster.jobs()[tasks[name]]

    for name in AT_START:
        wait_until(lambda name=name: bool(service(cluster, tasks[name])), f"W&B of the run {name}")
        getattr(cluster, name.split()[0].replace("preempted", "preempt").replace("cancelled", "cancel"))(tasks[name])
    wait_until(lambda: all(runs[name].checkpoints for name in IN_TRAINING), "checkpoints")
    cluster.preempt(tasks["preempted"])
    cluster.limit(tasks["limited"])
    cluster.run("scancel", "--signal=TERM", tasks["cancelled"])
    lost = runs["cancelled"].path / "tracking.log"
    wait_until(lambda: lost.exists() or state("cancelled")["state"] != "RUNNING", "the end of W&B, or of its run")
    states["signalled"] = state("cancelled")["state"]
    cluster.cancel(tasks["cancelled"])
    with ThreadPoolExecutor() as pool:
        wait_until(lambda: (folder / "store").exists(), "the prepared text")
        shutil.copytree(folder / "store", alone / "store")
        undisturbed = pool.submit(cluster.run, sys.executable, "-m", "eval", "-m", *TOY, SEEDS, *paths(alone))
        ended = ("CANCELLED", "FAILED", "COMPLETED")
        for name in TASKS:
            wait_until(
                lambda name=name: int(state(name)["restarts"]) > 0 or state(name)["state"] in ended, f"the {name} run"
            )
            states[name] = f"{state(name)['state']}, restarts {state(name)['restarts']}"
        print(states)
        hold.unlink()
        for name in ("limited",):
            cluster.run("scontrol", "update", f"JobId={tasks[name]}", "TimeLimit=30")
        cluster.submit(*arguments)
        wait_until(lambda: not cluster.live(), "the end of all jobs")
        undisturbed.result()
    states |= {f"{name} in the end": state(name)["state"] for name in TASKS}
    print(states)
    log = {name: folder / f"runs/demo/slurm/{task}.log" for name, task in tasks.items()}
    return folder, alone, {name: path.read_text() for name, path in log.items()}, states


@pytest.mark.parametrize("name", ["preempted at start", "preempted", "limited"])
def test_slurm_starts_a_stopped_run_again_that_has_lost_its_tracker(walk, name):
    *_, log, states = walk
    assert states[name].endswith("restarts 1"), log[name]
    assert states[f"{name} in the end"] == "COMPLETED", log[name]


def test_a_run_goes_on_after_a_signal_that_ends_its_tracker(walk):
    folder, _, log, states = walk
    assert states["signalled"] == "RUNNING", log["cancelled"]
    assert "Traceback" in (study(folder)["cancelled"].path / "tracking.log").read_text()


@pytest.mark.parametrize("name", TASKS)
def test_no_run_calls_its_tracker_a_fault(walk, name):
    *_, log, states = walk
    assert "a fault of pairscale" not in log[name]
    assert "Traceback" not in log[name]
    if "cancelled" in name:
        assert states[name] == "CANCELLED, restarts 0"


@pytest.mark.parametrize("name", TASKS)
def test_a_resumed_run_has_the_weights_of_one_without_a_tracker(walk, name):
    folder, alone, *_ = walk
    disturbed, quiet = study(folder)[name], study(alone)[name]
    assert disturbed.read_manifest()["status"] == "done"
    assert disturbed.read_manifest()["attempts"] == 2
    left, right = load_file(disturbed.model.weights), load_file(quiet.model.weights)
    assert left.keys() == right.keys()
    assert all(left[key].equal(right[key]) for key in left)
    assert disturbed.metrics.read_bytes() == quiet.metrics.read_bytes()


def test_the_last_attempt_is_tracked_whole(walk):
    folder, *_ = walk
    tracked = offline_runs(folder)
    for run in study(folder).values():
        (training,) = [one for one in tracked.values() if one.name == f"{run.path.name} train"]
        assert training.state == "finished"
        words = [point["words_seen"] for point in training.history]
        assert max(map(int, words)) == run.read_manifest()["words_seen"]
