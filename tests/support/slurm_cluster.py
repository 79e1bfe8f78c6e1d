"""Start the emulated cluster of slurm/local_cluster, and inject faults into its jobs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import ROOT

LOCAL = ROOT / "slurm" / "local_cluster"
# A study of toy runs, for `python -m eval` and slurm/submit.
TOY = [
    "experiment=demo", "model=lstm_tiny", "sample.size=16k", "corpus.words=100000", "recipe.validation_words=500",
    "recipe.checkpoint_every=4k", "benchmark.per_paradigm=3", "trainer.threads=1", "trainer.accelerator=cpu",
]  # fmt: skip
SMALL_JOBS = ["slurm.mem=1G"]


def paths(folder: Path) -> list[str]:
    return [f"paths.{name}={folder}/{name}" for name in ("runs", "store", "reports")]


@dataclass
class Cluster:
    """A cluster. Programs that use it need the environment variables in `environment`."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def up(self, **settings: str) -> None:
        """Start the cluster with `settings` of up.sh (NODES, GRACE ...)."""
        command = ["bash", "-c", 'eval "$("$0" "$1")" && printf "%s\\n%s" "$SLURM_CONF" "$PATH"', str(LOCAL / "up.sh")]
        environment = {"PORT": "18917", "GRACE": "2"} | settings | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [*command, str(self.folder)], capture_output=True, text=True, env=os.environ | environment
        )
        assert done.returncode == 0, done.stderr
        conf, path = done.stdout.split("\n")
        self.environment = os.environ | {"SLURM_CONF": conf, "PATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}

    def down(self) -> None:
        subprocess.run([LOCAL / "down.sh", self.folder], check=True, capture_output=True)

    def run(self, *command: str | Path, code: int = 0) -> str:
        """Run a command that must exit with `code`. Return its standard output and standard error."""
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment, cwd=ROOT)
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def submit(self, *arguments: str) -> str:
        return self.run(sys.executable, ROOT / "slurm" / "submit", *arguments)

    def jobs(self, states: str = "all") -> dict[str, dict[str, str]]:
        """Return each job's state, node, restarts and raw (its SLURM_JOB_ID), by job id ("3", "4_1")."""
        names = ("id", "state", "node", "restarts", "raw")
        columns = "JobArrayID:;,State:;,NodeList:;,RestartCnt:;,JobID:;"
        output = self.run("squeue", "--noheader", "--array", f"--states={states}", f"--Format={columns}")
        rows = [dict(zip(names, line.split(";"), strict=False)) for line in output.splitlines()]
        return {row["id"]: row for row in rows}

    def live(self) -> list[str]:
        return list(self.jobs("PENDING,RUNNING,COMPLETING,CONFIGURING"))

    def preempt(self, task: str) -> None:
        """Preempt a task with a job that uses its whole node."""
        node = self.jobs()[task]["node"]
        options = ["--partition=high", f"--nodelist={node}", "--exclusive", "--output=/dev/null"]
        self.run("sbatch", *options, "--wrap=sleep 1")

    def limit(self, task: str) -> None:
        """Lower a running task's time limit, so that two to three minutes are left."""
        minutes = int(self.run("squeue", "--noheader", f"--jobs={task}", "--Format=TimeUsed:;").split(":")[-2])
        self.run("scontrol", "update", f"JobId={task}", f"TimeLimit={minutes + 3}")

    def cancel(self, task: str) -> None:
        self.run("scancel", task)

    def fail_node(self, task: str) -> None:
        """Kill the slurmd of a task's node, and all processes of the task."""
        slurmd = f"slurmd\0-N\0{self.jobs()[task]['node']}\0".encode()
        daemons = [pid for pid, command, _ in self._processes() if command.endswith(slurmd)]
        assert daemons
        for pid in [*daemons, *self.processes(task)]:
            with contextlib.suppress(ProcessLookupError):  # the process has ended together with another one
                os.kill(pid, signal.SIGKILL)

    def processes(self, task: str, name: bytes = b"") -> list[int]:
        """Return a task's processes with `name` in their command, including SLURM's processes for it."""
        raw = self.jobs()[task]["raw"]
        own, daemon = f"SLURM_JOB_ID={raw}".encode(), f"slurmstepd: [{raw}.".encode()
        return [
            pid
            for pid, command, values in self._processes()
            if name in command and (own in values or command.startswith(daemon))
        ]

    def _processes(self) -> Iterator[tuple[int, bytes, list[bytes]]]:
        """Yield the id, command line and environment of each process in this cluster."""
        mark = f"SLURM_CONF={self.environment['SLURM_CONF']}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                values = (process / "environ").read_bytes().split(b"\0")
                command = (process / "cmdline").read_bytes()
            except OSError:  # the process has ended, or is not readable
                continue
            if mark in values:
                yield int(process.name), command, values


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 1500) -> None:
    """Wait for a condition. This takes seconds on an idle machine, but minutes if other tests are running."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.2)
