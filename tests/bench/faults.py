"""Kill each stage, fill its disk or damage its checkpoints, restart it, and check that nothing is lost.

    python tests/bench/faults.py --trials 50            (make faults N=50)

A trial works on a copy of a folder with the inputs of the stage. The command is started, disturbed, and started again
with the same arguments. The folder must then contain the same files, bit for bit, as after an undisturbed run. Only
times, speeds and attempts in manifest.json may differ. The kinds of faults are:

    moment   SIGKILL at a random moment during the stage
    rename   SIGKILL between a write and its rename, just before a random call of os.replace
    call     SIGKILL just before a random call that changes the file system (CALLS)
    full     A disk of random size (a tmpfs, which needs root) is too small for the stage. The command must fail with a
             one-line error. The disk is then made larger.
    damage   SIGKILL after the first checkpoint, as in `moment`. The newest checkpoint is then truncated, or one of its
             bits is flipped.

Commands run in forked processes (tests/support/commands.py). Functions that replace functions of `os` count the calls,
so pairscale itself contains no code for these tests.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # started as a script
    sys.path.insert(0, str(ROOT))

from tests.bench.stages import Stage, contents, difference, stages  # noqa: E402
from tests.support.commands import Command  # noqa: E402

KINDS = ("moment", "rename", "call", "full", "damage")
CALLS = ("fsync", "mkdir", "rename", "replace", "rmdir", "unlink")
LARGE = 1 << 28  # size of a disk that is large enough for every stage, in bytes
BLOCK = 4096  # smallest space of a file on a disk, in bytes


def count_calls(calls: tuple[str, ...], last: int, file: Path) -> None:
    """Count the calls of some functions of `os` in a file, and kill this process just before call number `last`."""
    counts: Counter[str] = Counter()

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            file.write_text(json.dumps(counts))
            if counts.total() == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return instead

    for name in calls:
        setattr(os, name, counted(name, getattr(os, name)))


class Bench:
    """The trials of a stage."""

    def __init__(self, stage: Stage, place: Path):
        """Run the commands that prepare the stage, then the stage itself without a fault."""
        self.stage, self.place = stage, place
        self.start = place / "start"
        self.start.mkdir(parents=True)
        for words in stage.before:
            self._succeed(Command(*words, folder=self.start))
        undisturbed = self._copy("alone")
        started = time.monotonic()
        self._succeed(self._command(undisturbed, CALLS))
        self.seconds = time.monotonic() - started
        self.expected = contents(undisturbed)
        calls = json.loads((place / "calls.json").read_text())
        self.calls = {"rename": calls["replace"], "call": sum(calls.values())}
        self.needed = _used(undisturbed) - _used(self.start)  # disk space that the stage needs, in bytes

    def _command(self, folder: Path, calls: tuple[str, ...] = (), last: int = 0) -> Command:
        counting = partial(count_calls, calls, last, self.place / "calls.json")
        return Command(*self.stage.command, folder=folder, before=counting)

    def _succeed(self, command: Command) -> None:
        done = command.wait()
        if done.returncode:
            raise RuntimeError(f"The command ended with exit code {done.returncode}.\n{done.stdout}{done.stderr}")

    def _copy(self, name: str) -> Path:
        return Path(shutil.copytree(self.start, self.place / name, dirs_exist_ok=True))

    def trial(self, kind: str, seed: int) -> str | None:
        """Disturb the stage once. Return a description of the loss, or None if nothing was lost."""
        draw = random.Random(f"{self.stage.name} {kind} {seed}")
        with self._disk("trial", kind == "full") as folder:
            loss: str | None = getattr(self, f"_{kind}")(folder, draw)
            if loss is None:
                done = self._command(folder).wait()
                loss = f"the second run ended with exit code {done.returncode}" if done.returncode else None
                loss = loss or difference(self.expected, contents(folder))
                if loss is None and kind == "damage" and "damaged checkpoint" not in done.stdout + done.stderr:
                    loss = "the damage was not reported"
                if loss:
                    return f"{loss}\n{done.stdout}{done.stderr}"
            return loss

    @contextlib.contextmanager
    def _disk(self, name: str, own: bool) -> Iterator[Path]:
        folder = self.place / name
        folder.mkdir()
        if own:
            _mount(folder, LARGE)
        try:
            yield self._copy(name)
        finally:
            if own:
                subprocess.run(["umount", "--lazy", folder], check=True)
            shutil.rmtree(folder)

    def _again(self, folder: Path) -> None:
        """Restore the folder after a command that ended before the fault."""
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._copy(folder.name)

    def _moment(self, folder: Path, draw: random.Random) -> None:
        self._killed(folder, draw)

    def _killed(self, folder: Path, draw: random.Random, pattern: str = "") -> list[Path]:
        """Kill the stage at a random moment after a file matching `pattern` exists, and return these files."""
        while True:
            command = self._command(folder)
            end = time.monotonic() + draw.uniform(0, self.seconds)
            while command.code is None and (time.monotonic() < end or (pattern and not list(folder.rglob(pattern)))):
                time.sleep(0.001)
            with contextlib.suppress(ProcessLookupError):  # because it may just have ended
                command.kill(signal.SIGKILL)
            found = list(folder.rglob(pattern)) if pattern else []
            if command.wait().returncode == -signal.SIGKILL and (found or not pattern):
                return found
            self._again(folder)

    def _rename(self, folder: Path, draw: random.Random) -> str | None:
        return self._at_call(folder, ("replace",), draw.randint(1, self.calls["rename"]))

    def _call(self, folder: Path, draw: random.Random) -> str | None:
        return self._at_call(folder, CALLS, draw.randint(1, self.calls["call"]))

    def _at_call(self, folder: Path, calls: tuple[str, ...], last: int) -> str | None:
        code = self._command(folder, calls, last).wait().returncode
        return None if code == -signal.SIGKILL else f"the stage was not killed at call {last} (exit code {code})"

    def _damage(self, folder: Path, draw: random.Random) -> None:
        checkpoints = self._killed(folder, draw, "*.ckpt")
        newest = max(checkpoints, key=lambda path: int(path.name.partition("-")[0]))
        data = bytearray(newest.read_bytes())
        if draw.random() < 0.5:
            data = data[: draw.randrange(len(data))]
        else:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        newest.write_bytes(data)

    def _full(self, folder: Path, draw: random.Random) -> str | None:
        before = _used(folder)
        while True:
            _mount(folder, before + draw.randrange(self.needed), "remount,")
            done = self._command(folder).wait()
            _mount(folder, LARGE, "remount,")
            if done.returncode:
                break
            self._again(folder)  # the disk was large enough
        lines = [line for line in done.stderr.splitlines() if line.startswith(f"pairscale {self.stage.command[0]}: ")]
        if done.returncode != 2 or len(lines) != 1 or "Traceback" in done.stderr:
            return f"a full disk did not raise a one-line error (exit code {done.returncode})\n{done.stderr}"
        if "No space left on device" not in lines[0]:
            return f"a full disk raised the wrong error: {lines[0]}"
        if left := [path.name for path in folder.rglob(".*.tmp")]:
            return f"a full disk left temporary files: {left}"
        for path in folder.rglob("*.ckpt"):
            if path.stem.partition("-")[2] != hashlib.sha256(path.read_bytes()).hexdigest()[:16]:
                return f"a full disk damaged {path.name}"
        return None


def _used(folder: Path) -> int:
    """Return the disk space that a folder uses, in bytes."""
    return sum(BLOCK * (1 + (path.stat().st_size - 1) // BLOCK) for path in folder.rglob("*") if path.is_file())


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
    """The results of all trials of a stage."""

    stage: str
    trials: Counter[str] = field(default_factory=Counter)  # number of trials by kind of fault
    lost: list[tuple[str, int, str]] = field(default_factory=list)  # kind, seed and description of each loss


def plan(stage: Stage, trials: int, disk: bool, others: int) -> dict[str, int]:
    """Return the number of trials of each kind. A fifth of `trials` are kills at a rename, the others at a moment."""
    aimed = max(1, trials // 5)
    counts = {"moment": trials - aimed, "rename": aimed, "call": others}
    counts |= {"full": others} if disk else {}
    return counts | ({"damage": others} if stage.checkpoints else {})


def measure(stage: Stage, counts: dict[str, int], seed: int) -> Result:
    """Run all trials of a stage."""
    result = Result(stage.name)
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        bench = Bench(stage, Path(place))
        for kind, count in counts.items():
            for number in range(seed, seed + count):
                loss = bench.trial(kind, number)
                result.trials[kind] += 1
                if loss is not None:
                    result.lost.append((kind, number, loss))
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--trials", type=int, default=50, help="trials per stage with SIGKILL, a fifth of them at a rename"
    )
    parser.add_argument("--others", type=int, help="trials per stage and other kind of fault (default: trials / 5)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first trial of each kind (default: 0)")
    parser.add_argument("--stages", nargs="+", help="the beginnings of stage names (default: all stages)")
    arguments = parser.parse_args()
    from pairscale.errors import ConfigError
    from train.lmplz import find_programs

    try:
        ngrams = bool(find_programs())
    except ConfigError:
        ngrams = False
        print("Skipping n-gram models, because KenLM's programs are missing. Build them with `make lmplz`.")
    disk = can_mount()
    if not disk:
        print("Skipping full disks, because only root can mount small ones.")
    others = arguments.trials // 5 if arguments.others is None else arguments.others
    chosen = [s for s in stages(ngrams) if not arguments.stages or s.name.startswith(tuple(arguments.stages))]
    lost = 0
    print(f"{'stage':24}" + "".join(f"{kind:>8}" for kind in KINDS) + f"{'lost':>8}")
    for stage in chosen:
        result = measure(stage, plan(stage, arguments.trials, disk, others), arguments.seed)
        cells = "".join(f"{result.trials[kind] or '':>8}" for kind in KINDS)
        print(f"{stage.name:24}{cells}{len(result.lost):8}", flush=True)
        for kind, seed, loss in result.lost:
            print(f"  lost: {kind}, --seed {seed}: {loss}", flush=True)
        lost += len(result.lost)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
