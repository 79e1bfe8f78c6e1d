"""slurm/run.sbatch with simulated programs: several runs per task, and which exit codes requeue it."""

import os
import subprocess

import pytest

from tests.support import ROOT

PROGRAMS = {
    "srun": 'while [ "${1#--}" != "$1" ]; do echo "$1" >> "$(dirname "$0")/options"; shift; done\nexec "$@"',
    "scontrol": 'echo "$@" >> "$(dirname "$0")/scontrol.calls"',
    "python": 'echo "$*" >> "$(dirname "$0")/runs"\nkill -"${5#signal=}" $$ 2>/dev/null\nexit "${5#code=}"',
}


@pytest.fixture
def task(tmp_path):
    """Return a function that runs a task of a file of five lines, and returns its result and the folder of programs."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)

    def run(index: int, *outcomes: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
        tasks = tmp_path / "study.tasks"
        tasks.write_text("".join(f"run-{number}\trun={number} {one}\n" for number, one in enumerate(outcomes)))
        slurm = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": str(index), "GRID_KEPT": "true"}
        environment = os.environ | slurm | {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_CPUS_PER_TASK": "4"}
        command = ["bash", ROOT / "slurm" / "run.sbatch", tasks, "2"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        ran = sorted((tmp_path / "runs").read_text().splitlines()) if (tmp_path / "runs").exists() else []
        return done, ran

    return run


@pytest.mark.parametrize(
    ("outcomes", "code", "requeued"),
    [
        (("code=0", "code=0"), 0, False),
        (("code=1", "code=0"), 1, False),
        (("code=0", "signal=KILL"), 137, False),
        (("code=75", "code=2"), 75, True),
        (("signal=KILL", "code=75"), 75, True),
        (("code=0", "signal=USR2"), 140, True),
    ],
)
def test_a_run_that_saved_requeues_its_task_and_a_failed_one_does_not(task, tmp_path, outcomes, code, requeued):
    done, ran = task(1, "code=3", "code=3", *outcomes, "code=3")
    assert ran == [f"-um pairscale eval run={number} {one}" for number, one in zip((2, 3), outcomes, strict=True)]
    assert done.returncode == code, done.stderr
    calls = tmp_path / "scontrol.calls"
    assert (calls.read_text() if calls.exists() else "") == ("requeue 7_1\n" if requeued else "")
    for number in (0, 1):
        assert f"--output={tmp_path}/7_1.{number}.log" in (tmp_path / "options").read_text()


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (0, "task 7_0 could not be requeued. Submit again to continue it.\n"),
        (20, "task 7_0 ended with exit code 75. It is not requeued again after 20 times.\n"),
    ],
)
def test_a_task_that_is_not_requeued_tells_why(task, tmp_path, before, told):
    (tmp_path / "scontrol").write_text("#!/bin/bash\nexit 1\n")
    (tmp_path / "study.tasks.7_0.requeued").write_text("75\n" * before)
    done, _ = task(0, "code=75", "code=0")
    assert (done.returncode, done.stderr) == (75, told)


def test_the_last_task_may_have_fewer_runs_and_no_other_exists(task):
    assert task(2, *["code=0"] * 5)[1] == ["-um pairscale eval run=4 code=0"]
    done, _ = task(3, *["code=0"] * 5)
    assert (done.returncode, "there is no line 7" in done.stderr) == (2, True)
