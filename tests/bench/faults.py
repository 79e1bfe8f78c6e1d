"""Kill every stage at many moments, fill its disk, damage its checkpoints; start it again; compare, bit for bit.

    python tests/bench/faults.py --trials 50            (make faults N=50)

A trial is a copy of a folder in which the stage's inputs are ready. Its command is started, disturbed, and started
again with the same words; then every file of the folder must be the same as after a run that was left alone, none more
and none less (of manifest.json: all but times, speeds and attempts). How it is disturbed:

    moment   SIGKILL at a moment drawn uniformly over the time that the stage takes
    rename   SIGKILL between a write and its rename: just before the n-th call of os.replace, n drawn over all of them
    call     SIGKILL just before the n-th call that changes the file system (CALLS), n drawn over all of them
    full     a disk (a tmpfs; root only) too small for the stage, its size drawn up to what the stage needs: the
             command must fail in one line; then the disk is made larger
    damage   SIGKILL as in `moment` once there is a checkpoint, whose end is then cut off, or a bit of which is flipped

Commands run in processes forked from one that has imported everything (multiprocessing's forkserver), as importing
takes longer than these stages. Nothing of this is in the product: calls are counted by functions put into `os`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import multiprocessing
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # started as a script
    sys.path.insert(0, str(ROOT))
for _name, _value in {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}.items():
    os.environ.setdefault(_name, _value)

KINDS = ("moment", "rename", "call", "full", "damage")
CALLS = ("fsync", "mkdir", "rename", "replace", "rmdir", "unlink")
PRELOADED = (
    "torch", "lightning", "conf", "corpora.__main__", "corpora.prepare", "corpora.toy.grammar", "train.__main__",
    "train.run", "train.module", "train.checkpoints", "train.export", "train.ngram", "eval.__main__", "eval.run",
    "eval.judging", "eval.voting", "eval.ngram", "analysis.__main__",
)  # fmt: skip
VOLATILE = {"started", "ended", "attempts", "wall_s", "words_per_s", "damaged_checkpoints"}  # of manifest.json
SMALL = ["corpus=toy", "corpus.words=60000", "tokenizer=word", "trainer.progress=false", "trainer.threads=1"]
SMALL += ["trainer.accelerator=cpu", "study=s"]
TRAINED = ["recipe.budget.epochs=3", "recipe.batch=8", "recipe.bptt=20", "recipe.validation_words=500"]
TRAINED += ["recipe.checkpoint_every=1k"]
LSTM = ["model=lstm_tiny", "model.embedding=24", "model.hidden=24", *TRAINED]
TXL = ["model=txl_tiny", "model.layers=2", "model.d_model=24", "model.heads=2", "model.d_head=12", "model.d_inner=32"]
TXL += TRAINED
NGRAM = ["model=ngram", "recipe.validation_words=500"]
BENCHMARK = ["benchmark=toy", "benchmark.per_paradigm=8"]


@dataclass(frozen=True)
class Stage:
    """A command, and the commands that make what it starts from."""

    name: str
    command: tuple[str, ...]  # package, overrides
    before: tuple[tuple[str, ...], ...] = ()
    checkpoints: bool = False


def stages(ngrams: bool = True) -> list[Stage]:
    """All stages; without KenLM's lmplz those of n-gram models are left out."""
    prepare = ("corpora", *SMALL)

    def train(*overrides: str) -> tuple[str, ...]:
        return ("train", *SMALL, "sample.size=4k", *overrides)

    models = [train(*LSTM), train(*TXL), *([train(*NGRAM)] if ngrams else [])]
    points = [train(*LSTM, f"sample.size={size}", f"seed={seed}") for size in ("2k", "4k") for seed in (1, 2)]
    score = ("eval", *SMALL, *BENCHMARK)
    return [
        Stage("corpora", prepare),
        Stage("train, LSTM", models[0], (prepare,), checkpoints=True),
        Stage("train, Transformer-XL", models[1], (prepare,), checkpoints=True),
        *([Stage("train, 5-gram", models[2], (prepare,))] if ngrams else []),
        Stage("score", score, (prepare, *models)),
        Stage("analysis", ("analysis", "study=s"), (prepare, *points, score)),
    ]


def _forked(folder: str, command: list[str], calls: tuple[str, ...], last: int) -> None:
    """In a new process: run a command in `folder`, and die just before the `last`-th call of one of `calls`."""
    assert "lightning" in sys.modules, "the server has not imported what it should"
    os.chdir(folder)
    log = os.open(_log(Path(folder)), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    count = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return instead

    for name in calls:
        setattr(os, name, counted(getattr(os, name)))
    package, *sys.argv[1:] = command
    sys.argv[0] = package
    import conf

    try:
        conf.main(package, importlib.import_module(f"{package}.__main__").run)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        _count(Path(folder)).write_text(str(count))


def _log(folder: Path) -> Path:
    """What the commands in a folder printed: beside it, as the folder's disk may be full."""
    return folder.with_name(f"{folder.name}.log")


def _count(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.calls")


class Commands:
    """Starts commands in processes that have imported everything already."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(list(PRELOADED))
        first = self.context.Process(target=os.getpid)  # starts the server, whose time is no stage's
        first.start()
        first.join()

    def start(self, folder: Path, command: tuple[str, ...], calls: tuple[str, ...] = (), last: int = 0) -> Any:
        process = self.context.Process(target=_forked, args=(str(folder), list(command), calls, last))
        process.start()
        return process

    def run(self, folder: Path, command: tuple[str, ...], calls: tuple[str, ...] = (), last: int = 0) -> int:
        """Exit code; -9 where it was killed."""
        process = self.start(folder, command, calls, last)
        process.join()
        code = process.exitcode
        process.close()
        return int(code)


def contents(folder: Path) -> dict[str, str]:
    """Every file in a folder, by its path, and a digest of what is in it that does not tell the time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir():
            found[name] = "a folder"
            continue
        data = path.read_bytes()
        if path.name == "manifest.json":
            values = {key: value for key, value in json.loads(data).items() if key not in VOLATILE}
            data = json.dumps(values, sort_keys=True).encode()
        found[name] = hashlib.sha256(data).hexdigest()
    return found


def difference(expected: dict[str, str], found: dict[str, str]) -> str | None:
    """What is not the same, in a line; None where everything is."""
    told = [f"lacks {name}" for name in sorted(expected.keys() - found.keys())]
    told += [f"left {name}" for name in sorted(found.keys() - expected.keys())]
    told += [f"differs in {name}" for name in sorted(expected.keys() & found.keys()) if expected[name] != found[name]]
    return "; ".join(told[:5]) or None


class Bench:
    """Trials of one stage."""

    def __init__(self, stage: Stage, commands: Commands, place: Path):
        """Runs what comes before the stage, then the stage itself, undisturbed."""
        self.stage, self.commands, self.place = stage, commands, place
        self.start = place / "start"
        self.start.mkdir(parents=True)
        for command in stage.before:
            self._succeed(self.start, command)
        alone = self._copy("alone")
        started = time.monotonic()
        self._succeed(alone, stage.command)
        self.seconds = time.monotonic() - started
        self.expected = contents(alone)
        self.calls = {}
        for kind, calls in (("rename", ("replace",)), ("call", CALLS)):
            again = self._copy(f"counted-{kind}")
            self._succeed(again, stage.command, calls)
            self.calls[kind] = int(_count(again).read_text())
            assert difference(self.expected, contents(again)) is None, "two runs that are left alone differ"
        self.needed: int | None = None  # bytes that the stage adds to its disk, at most

    def _succeed(self, folder: Path, command: tuple[str, ...], calls: tuple[str, ...] = ()) -> None:
        if code := self.commands.run(folder, command, calls):
            raise RuntimeError(f"{' '.join(command)}: exit code {code}\n{_log(folder).read_text()}")

    def _copy(self, name: str) -> Path:
        return Path(shutil.copytree(self.start, self.place / name, dirs_exist_ok=True))

    def trial(self, kind: str, seed: int) -> str | None:
        """Disturb the stage once; None if it survived, else what was lost."""
        draw = random.Random(f"{self.stage.name} {kind} {seed}")
        with self._disk("trial", kind == "full") as folder:
            told = getattr(self, f"_{kind}")(folder, draw)
            if told is None:
                code = self.commands.run(folder, self.stage.command)
                log = _log(folder).read_text()
                told = f"exit code {code}" if code else difference(self.expected, contents(folder))
                if told is None and kind == "damage" and "damaged checkpoint" not in log:
                    told = "the damage was not said"
            return None if told is None else f"{told}\n{_log(folder).read_text()}"

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
            _log(folder).unlink(missing_ok=True)

    def _killed(self, process: Any) -> bool:
        """Kill a process; whether it was still at work."""
        process.kill()
        process.join()
        return bool(process.exitcode == -signal.SIGKILL)

    def _again(self, folder: Path) -> None:
        """The folder as it was before a command that ended before it was killed."""
        _log(folder).unlink()
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
            _mount(folder, 1 << 28, "remount,")  # it was enough: other blocks are freed at other moments
            self._again(folder)
        log = _log(folder).read_text()
        _mount(folder, 1 << 28, "remount,")
        lines = [line for line in log.splitlines() if line.startswith(f"pairscale {self.stage.command[0]}: ")]
        if code != 2 or len(lines) != 1 or "Traceback" in log:
            return f"a full disk is not told in one line (exit code {code})"
        if "No space left on device" not in lines[0]:
            return "a full disk is told as something else"
        if left := [path.name for path in folder.rglob(".*.tmp")]:
            return f"a full disk left {left}"
        for path in folder.rglob("*.ckpt"):
            if path.stem.partition("-")[2] != hashlib.sha256(path.read_bytes()).hexdigest()[:16]:
                return f"a full disk damaged {path.name}"
        return None

    def _peak(self, folder: Path) -> int:
        """Most bytes that are used of a disk while the stage is at work on it."""
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
    """Whether this process may mount a small disk."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            _mount(Path(folder), 1 << 20)
        except (OSError, subprocess.CalledProcessError):
            return False
        subprocess.run(["umount", folder], check=True)
    return True


@dataclass
class Result:
    """Trials of a stage by kind, and what was lost: (kind, seed, what)."""

    stage: str
    trials: Counter[str] = field(default_factory=Counter)
    lost: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def survived(self) -> int:
        return self.trials.total() - len(self.lost)


def plan(stage: Stage, trials: int, disk: bool, others: int) -> dict[str, int]:
    """Number of trials of each kind: of `trials`, a fifth (one at least) at a rename; `others` of each further kind."""
    aimed = max(1, trials // 5)
    counts = {"moment": trials - aimed, "rename": aimed, "call": others}
    counts |= {"full": others} if disk else {}
    return counts | ({"damage": others} if stage.checkpoints else {})


def measure(stage: Stage, commands: Commands, counts: dict[str, int], seed: int) -> Result:
    """All trials of a stage."""
    result = Result(stage.name)
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        bench = Bench(stage, commands, Path(place))
        for kind, count in counts.items():
            for number in range(seed, seed + count):
                told = bench.trial(kind, number)
                result.trials[kind] += 1
                if told is not None:
                    result.lost.append((kind, number, told))
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=50, help="of each stage by SIGKILL, a fifth of them at a rename")
    parser.add_argument("--others", type=int, help="of each stage in each other way (default: a fifth of --trials)")
    parser.add_argument("--seed", type=int, default=0, help="of the first trial of each kind; the next ones count up")
    parser.add_argument("--stages", nargs="+", help="beginnings of their names (default: all)")
    given = parser.parse_args()
    from corpora.errors import ConfigError
    from train.lmplz import find_programs

    try:
        ngrams = bool(find_programs())
    except ConfigError:
        ngrams = False
        print("without n-gram models: `make lmplz` builds what estimates them")
    disk = can_mount()
    if not disk:
        print("without full disks: only root can mount small ones")
    others = given.trials // 5 if given.others is None else given.others
    chosen = [s for s in stages(ngrams) if not given.stages or s.name.startswith(tuple(given.stages))]
    commands, lost = Commands(), 0
    print(f"{'stage':24}" + "".join(f"{kind:>8}" for kind in KINDS) + f"{'trials':>8}{'survived':>10}{'lost':>6}")
    for stage in chosen:
        result = measure(stage, commands, plan(stage, given.trials, disk, others), given.seed)
        cells = "".join(f"{result.trials[kind] or '':>8}" for kind in KINDS)
        print(f"{stage.name:24}{cells}{result.trials.total():8}{result.survived:10}{len(result.lost):6}", flush=True)
        for kind, seed, told in result.lost:
            print(f"  lost: {kind}, --seed {seed}: {told}", flush=True)
        lost += len(result.lost)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
