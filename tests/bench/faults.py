"""Fault injection: every stage is killed, runs out of disk or has checkpoints damaged, restarts, and must lose nothing.

    python tests/bench/faults.py --trials 50            (make faults N=50)

A trial is a copy of a folder with the inputs of the stage. The command is started, disturbed, and started again with
the same words; then the folder must have the same files, bit for bit, as after an undisturbed run (manifest.json apart
from times, speeds and attempts). The kinds of faults:

    moment   SIGKILL at a moment drawn uniformly over the duration of the stage
    rename   SIGKILL between a write and its rename: just before the n-th call of os.replace, n drawn over all of them
    call     SIGKILL just before the n-th call that changes the file system (CALLS), n drawn over all of them
    full     a disk (a tmpfs; root only) too small for the stage, of random size: the command must fail with a
             one-line error; then the disk is made larger
    damage   SIGKILL as in `moment` after the first checkpoint; the newest one is truncated, or one of its bits flipped

Commands run in processes forked from one that has imported everything (multiprocessing's forkserver), as importing
takes longer than these stages. Calls are counted by functions put into `os`; the product knows nothing of this.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # started as a script
    sys.path.insert(0, str(ROOT))

from tests.bench.stages import CALLS, Commands, Stage, calls_of, contents, difference, log_of, stages  # noqa: E402

KINDS = ("moment", "rename", "call", "full", "damage")


class Bench:
    """Trials of one stage."""

    def __init__(self, stage: Stage, commands: Commands, place: Path):
        """Run the commands before the stage, then the stage itself, undisturbed."""
        self.stage, self.commands, self.place = stage, commands, place
        self.start = place / "start"
        self.start.mkdir(parents=True)
        for command in stage.before:
            self._succeed(self.start, command)
        undisturbed = self._copy("alone")
        started = time.monotonic()
        self._succeed(undisturbed, stage.command, CALLS)
        self.seconds = time.monotonic() - started
        self.expected = contents(undisturbed)
        calls = json.loads(calls_of(undisturbed).read_text())
        self.calls = {"rename": calls["replace"], "call": sum(calls.values())}
        self.needed: int | None = None  # bytes that the stage adds to its disk, at most

    def _succeed(self, folder: Path, command: tuple[str, ...], calls: tuple[str, ...] = ()) -> None:
        if code := self.commands.run(folder, command, calls):
            raise RuntimeError(f"{' '.join(command)}: exit code {code}\n{log_of(folder).read_text()}")

    def _copy(self, name: str) -> Path:
        return Path(shutil.copytree(self.start, self.place / name, dirs_exist_ok=True))

    def trial(self, kind: str, seed: int) -> str | None:
        """Disturb the stage once; return None if it survived, else the loss."""
        draw = random.Random(f"{self.stage.name} {kind} {seed}")
        with self._disk("trial", kind == "full") as folder:
            loss = getattr(self, f"_{kind}")(folder, draw)
            if loss is None:
                code = self.commands.run(folder, self.stage.command)
                log = log_of(folder).read_text()
                loss = f"exit code {code}" if code else difference(self.expected, contents(folder))
                if loss is None and kind == "damage" and "damaged checkpoint" not in log:
                    loss = "the damage was not reported"
            return None if loss is None else f"{loss}\n{log_of(folder).read_text()}"

    @contextlib.contextmanager
    def _disk(self, name: str, own: bool) -> Iterator[Path]:
        folder = self.place / name
        folder.mkdir()
        if own:
            _mount(folder, 1 << 28)
        try:
            yield self._copy(name)
        finally:
            if own:
                subprocess.run(["umount", "--lazy", folder], check=True)
            shutil.rmtree(folder)
            log_of(folder).unlink(missing_ok=True)

    def _killed(self, process: Any) -> bool:
        """Kill a process; return True if it was still running."""
        process.kill()
        process.join()
        return bool(process.exitcode == -signal.SIGKILL)

    def _again(self, folder: Path) -> None:
        """Restore the folder after a command that ended before it was killed."""
        log_of(folder).unlink()
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._copy(folder.name)

    def _moment(self, folder: Path, draw: random.Random) -> None:
        while True:
            process = self.commands.start(folder, self.stage.command)
            process.join(draw.uniform(0, self.seconds))
            if self._killed(process):
                return
            self._again(folder)

    def _rename(self, folder: Path, draw: random.Random) -> str | None:
        return self._at_call(folder, ("replace",), draw.randint(1, self.calls["rename"]))

    def _call(self, folder: Path, draw: random.Random) -> str | None:
        return self._at_call(folder, CALLS, draw.randint(1, self.calls["call"]))

    def _at_call(self, folder: Path, calls: tuple[str, ...], last: int) -> str | None:
        code = self.commands.run(folder, self.stage.command, calls, last)
        return None if code == -signal.SIGKILL else f"not killed at call {last}: exit code {code}"

    def _damage(self, folder: Path, draw: random.Random) -> None:
        while True:
            process = self.commands.start(folder, self.stage.command)
            end = time.monotonic() + draw.uniform(0, self.seconds)
            while process.is_alive() and (time.monotonic() < end or not list(folder.rglob("*.ckpt"))):
                time.sleep(0.001)
            checkpoints = list(folder.rglob("*.ckpt")) if self._killed(process) else []
            if checkpoints:
                break
            self._again(folder)
        newest = max(checkpoints, key=lambda path: int(path.name.partition("-")[0]))
        data = bytearray(newest.read_bytes())
        if draw.random() < 0.5:
            data = data[: draw.randrange(len(data))]
        else:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        newest.write_bytes(data)

    def _full(self, folder: Path, draw: random.Random) -> str | None:
        before = _used(folder)
        if self.needed is None:
            self.needed = self._peak(folder) - before
            self._again(folder)
        while True:
            _mount(folder, before + draw.randrange(self.needed), "remount,")
            code = self.commands.run(folder, self.stage.command)
            if code:
                break
            _mount(folder, 1 << 28, "remount,")  # the disk was large enough: blocks are freed at other moments
            self._again(folder)
        log = log_of(folder).read_text()
        _mount(folder, 1 << 28, "remount,")
        lines = [line for line in log.splitlines() if line.startswith(f"pairscale {self.stage.command[0]}: ")]
        if code != 2 or len(lines) != 1 or "Traceback" in log:
            return f"a full disk gave no one-line error (exit code {code})"
        if "No space left on device" not in lines[0]:
            return "a full disk gave the error of another fault"
        if left := [path.name for path in folder.rglob(".*.tmp")]:
            return f"a full disk left {left}"
        for path in folder.rglob("*.ckpt"):
            if path.stem.partition("-")[2] != hashlib.sha256(path.read_bytes()).hexdigest()[:16]:
                return f"a full disk damaged {path.name}"
        return None

    def _peak(self, folder: Path) -> int:
        """Return the largest number of bytes used on the disk while the stage runs."""
        process = self.commands.start(folder, self.stage.command)
        peak = 0
        while process.is_alive():
            peak = max(peak, _used(folder))
            time.sleep(0.001)
        process.join()
        return peak


def _used(folder: Path) -> int:
    disk = os.statvfs(folder)
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize


def _mount(folder: Path, size: int, remount: str = "") -> None:
    command = ["mount", "-t", "tmpfs", "-o", f"{remount}size={size}", "tmpfs", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


def can_mount() -> bool:
    """Return True if this process can mount a small disk."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            _mount(Path(folder), 1 << 20)
        except (OSError, subprocess.CalledProcessError):
            return False
        subprocess.run(["umount", folder], check=True)
    return True


@dataclass
class Result:
    """Trials of a stage by kind, and losses: (kind, seed, description)."""

    stage: str
    trials: Counter[str] = field(default_factory=Counter)
    lost: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def survived(self) -> int:
        return self.trials.total() - len(self.lost)


def plan(stage: Stage, trials: int, disk: bool, others: int) -> dict[str, int]:
    """Return the trials of each kind: a fifth of `trials` (at least one) at a rename, `others` of each other kind."""
    aimed = max(1, trials // 5)
    counts = {"moment": trials - aimed, "rename": aimed, "call": others}
    counts |= {"full": others} if disk else {}
    return counts | ({"damage": others} if stage.checkpoints else {})


def measure(stage: Stage, commands: Commands, counts: dict[str, int], seed: int) -> Result:
    """Run all trials of a stage."""
    result = Result(stage.name)
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        bench = Bench(stage, commands, Path(place))
        for kind, count in counts.items():
            for number in range(seed, seed + count):
                loss = bench.trial(kind, number)
                result.trials[kind] += 1
                if loss is not None:
                    result.lost.append((kind, number, loss))
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=50, help="of each stage by SIGKILL, a fifth of them at a rename")
    parser.add_argument("--others", type=int, help="of each stage in each other way (default: a fifth of --trials)")
    parser.add_argument("--seed", type=int, default=0, help="of the first trial of each kind; the next ones count up")
    parser.add_argument("--stages", nargs="+", help="beginnings of their names (default: all)")
    arguments = parser.parse_args()
    from pairscale.errors import ConfigError
    from train.lmplz import find_programs

    try:
        ngrams = bool(find_programs())
    except ConfigError:
        ngrams = False
        print("without n-gram models: `make lmplz` builds the program that they need")
    disk = can_mount()
    if not disk:
        print("without full disks: only root can mount small ones")
    others = arguments.trials // 5 if arguments.others is None else arguments.others
    chosen = [s for s in stages(ngrams) if not arguments.stages or s.name.startswith(tuple(arguments.stages))]
    commands, lost = Commands(), 0
    print(f"{'stage':24}" + "".join(f"{kind:>8}" for kind in KINDS) + f"{'trials':>8}{'survived':>10}{'lost':>6}")
    for stage in chosen:
        result = measure(stage, commands, plan(stage, arguments.trials, disk, others), arguments.seed)
        cells = "".join(f"{result.trials[kind] or '':>8}" for kind in KINDS)
        print(f"{stage.name:24}{cells}{result.trials.total():8}{result.survived:10}{len(result.lost):6}", flush=True)
        for kind, seed, loss in result.lost:
            print(f"  lost: {kind}, --seed {seed}: {loss}", flush=True)
        lost += len(result.lost)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
