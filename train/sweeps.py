"""Run sweeps (-m) of the commands `train` and `eval`, and record the runs that they request.

A sweep first records the runs that it requests, so that runs that never began count as missing. Then it runs them side
by side (pairscale/command/pool.py). Each sweep has one file, `runs/STUDY/grid/*.json`, with its command and its runs.
Repeating a sweep replaces its file, and a sweep over other values adds one. Remove a file to withdraw its request.
Without any file, the experiment with the study's name defines its runs. This module does not import torch.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypedDict, cast

from pairscale.command.board import run_names
from pairscale.command.compose import axes_of, composed, group_files, points_of, schema_of
from pairscale.command.line import Line, key_of
from pairscale.command.main import Session
from pairscale.command.pool import Job, check_codes, run_jobs
from pairscale.command.schemas import build, nearest
from pairscale.errors import ConfigError, PairscaleError, RunError
from pairscale.files import sha256_json, write_json
from pairscale.schema import FolderName, read_json
from train.config import RunConfig, described, run_id
from train.loop.device import takes_gpu
from train.models.config import PretrainedConfig
from train.runs.folder import GRID, NO_STUDY, RunFolder
from train.runs.schemas import StoredConfig, check_stored

GRID_VERSION = 1
_REMEDY = "remove it, and repeat the sweep to train the missing runs"
_LAST = ("sample.size", "seed")  # keys that every run's name ends with


@dataclasses.dataclass(frozen=True)
class Point:
    """One run of a sweep."""

    varied: tuple[str, ...]  # the overrides in which it differs from the other runs
    line: Line  # its whole command line
    config: Any

    @property
    def written(self) -> str:
        """The overrides in which it differs from the other runs, followed by its size and seed."""
        size, seed = f"sample.size={self.config.sample.size}", f"seed={self.config.seed}"
        return shlex.join([*(word for word in self.varied if key_of(word) not in _LAST), size, seed])

    @property
    def is_run(self) -> bool:
        """True if it names a run, False if it scores all runs of a study."""
        return self.line.command == "train" or names_a_run(self.line)


def points(command: str, line: Line, refused: list[Exception] | None = None) -> Iterator[Point]:
    """Yield the runs of a sweep.

    If a list `refused` is given, runs with invalid values are skipped and their errors are added to it. Without a list,
    the first error is raised, but a missing corpus path is accepted because it is not part of a run's identity.
    """
    schema = schema_of(command)
    for varied, whole in points_of(command, line):
        try:
            config: Any = build(schema, composed(command, whole, ["corpus.path"] if refused is None else []))
            if command == "train":
                config.recipe.check_trains(config.model.name)
        except PairscaleError as error:
            if refused is None:
                raise
            refused.append(error)
            continue
        yield Point(varied, whole, config)


def names_a_run(line: Line) -> bool:
    """Return True if a command line names a run by an experiment or a value that can change a run's results."""
    in_digest = {part.name for part in dataclasses.fields(RunConfig) if part.metadata.get("digest", True)}
    return any((key := key_of(one).partition(".")[0]) == "experiment" or key in in_digest for one in line.overrides)


def check_whole_sweep(command: str, line: Line, config: RunConfig) -> None:
    """Raise ConfigError if a single run of an experiment lacks a value for a swept key other than the seed."""
    typed = {key_of(one) for one in line.overrides}
    if "experiment" not in typed or not config.recipe.trains:
        return
    swept = axes_of(command, line)
    loose = [key for key in swept if key != "seed" and key not in typed]
    if loose:
        raise ConfigError(
            f"experiment={line['experiment']}: this experiment is a sweep over {', '.join(swept)}. Add -m to run all "
            f"of it (python -m {command} -m {line.written}), or choose one run with "
            f"{' and '.join(f'{key}=VALUE' for key in loose)}."
        )


def run_grid(command: str, line: Line, session: Session) -> None:
    """Run a sweep or, with dry_run=true, only plan each run. Raises the same errors as `check_codes`."""
    refused: list[Exception] = []
    found = list(points(command, line, refused))
    session.report_refused(refused, len(refused) + len(found))
    if not found:
        return
    config = found[0].config
    if config.dry_run:
        for point in found:
            session.attempt(point.line, lambda point=point: point.config)  # type: ignore[misc]
        return
    record_points(found, command, f"python -m {command} -m {line.written}")
    jobs = jobs_of(found)
    logs = Path(config.paths.runs, config.study or NO_STUDY, "logs")
    progress = config.trainer.progress and not config.verbose
    check_codes(run_jobs(command, jobs, config.pool, logs, lambda: memory_of(command, jobs), progress))


def jobs_of(points: Iterable[Point]) -> list[Job]:
    """Return the jobs of a sweep. A run that is named more than once for the same benchmark becomes one job."""
    jobs: dict[tuple[Path, str], tuple[Point, Job]] = {}
    for point in points:
        config = point.config.of_run()
        is_run = point.is_run or config.study is None
        folder = RunFolder.of(config).path if is_run else Path(config.paths.runs) / config.study
        devices, words = config.trainer.devices, _words_to_train_on(config)
        job = Job(point.line.words, "", folder, takes_gpu(config), devices, words, config)
        jobs.setdefault((folder, repr(config)), (point, job))
    names = run_names(
        [point.varied for point, _ in jobs.values()], [job.config.sample.count for _, job in jobs.values()]
    )
    return [dataclasses.replace(job, name=name) for (_, job), name in zip(jobs.values(), names, strict=True)]


def _words_to_train_on(config: RunConfig) -> float:
    """Return how many words a run still has to read, counting repeats, or 0 if it is done."""
    with suppress(PairscaleError):  # a study to score has no single run, and the run itself reports damaged folders
        if not RunFolder.of(config).done:
            words, budget = config.sample.number, config.recipe.budget
            return words if budget is None else budget.words_seen(words)
    return 0.0


def memory_of(command: str, jobs: Sequence[Job]) -> int:
    """Return the memory of a command's largest job in bytes, or 0 if unknown, as for models that aren't downloaded."""
    trained = [job for job in jobs if job.config and job.config.recipe.trains]
    models = [job.config.model for job in jobs if job.config]
    folders = [Path(model.path) for model in models if isinstance(model, PretrainedConfig)]
    weights = (sum(path.stat().st_size for path in folder.glob("*.safetensors")) for folder in folders)
    largest = max(weights, default=0)  # loading a model takes at least this much
    if trained:  # in a separate process, or torch would keep hundreds of MiB here for the whole sweep
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            largest = max(largest, pool.submit(_peak_memory, command, trained).result())
    return largest


def _peak_memory(command: str, jobs: Sequence[Job]) -> int:
    return int(import_module(f"{command}.estimate").peak_memory(jobs))


class _Point(TypedDict):
    point: str
    config: StoredConfig


class _Grid(TypedDict):
    """The schema of a file in runs/STUDY/grid."""

    command: str
    benchmark: str | None
    runs: dict[FolderName, _Point]


@dataclasses.dataclass(frozen=True)
class RequestedRun:
    """A run that one or several sweeps requested."""

    point: str  # the overrides in which it differs from the other runs of its sweep
    config: Mapping[str, Any]  # the part of its configuration that defines it (train.config.DESCRIBED)
    benchmarks: frozenset[str] = frozenset()  # the benchmarks to score it on
    commands: tuple[str, ...] = ()  # the commands of the sweeps


def record_points(points: Iterable[Point], command: str, typed: str) -> None:
    """Record in each study which runs the command line `typed` requests, for `requested_runs`.

    Points are skipped if they don't name a run (a sweep over benchmarks that scores a study) or name several
    (model.revisions). Raises ConfigError if a run to be trained has no corpus.
    """
    grids: dict[tuple[Path, str | None], dict[str, RunConfig]] = {}
    for point in points:
        config = point.config
        if not config.study or getattr(config.model, "revisions", None) or not point.is_run:
            continue
        for benchmark in (None,) if command == "train" else config.benchmarks or (config.benchmark.name,):
            grids.setdefault((RunFolder.of(config).path.parent, benchmark), {})[point.written] = config
    for (study, benchmark), runs in grids.items():
        write_grid(study, runs, benchmark, typed)


def write_grid(study: Path, points: Mapping[str, RunConfig], benchmark: str | None, command: str) -> None:
    """Write the file that records which runs a sweep requests. Raises WriteError if it cannot be written.

    Args:
        study: the folder of the study.
        points: the configuration of each run, by the overrides that name it.
        benchmark: the benchmark to score the runs on; None if they are only trained.
        command: the command line of the sweep.
    """
    runs = {
        run_id(config): {"point": point, "config": described(dataclasses.asdict(config))}
        for point, config in points.items()
    }
    content = {"version": GRID_VERSION, "command": command, "benchmark": benchmark, "runs": runs}
    write_json(study / GRID / f"{sha256_json([sorted(runs), benchmark])[:8]}.json", content)


def _grids(study: Path) -> list[tuple[Path, _Grid]]:
    paths = sorted((study / GRID).glob("*.json"))
    return [(path, read_json(path, _Grid, RunError, _REMEDY, GRID_VERSION)) for path in paths]


def read_grid(study: Path) -> dict[str, RequestedRun]:
    """Return all runs that the sweeps of a study requested, by run id. Raises RunError for a file it can't read."""
    requested: dict[str, RequestedRun] = {}
    for path, grid in _grids(study):
        for run, one in grid["runs"].items():
            check_stored(one["config"], path, _REMEDY)
            before = requested.get(run, RequestedRun(one["point"], cast(dict[str, Any], one["config"])))
            benchmarks = before.benchmarks.union([grid["benchmark"]] if grid["benchmark"] else [])
            commands = (*before.commands, grid["command"])
            requested[run] = dataclasses.replace(before, benchmarks=benchmarks, commands=commands)
    return requested


def forget_runs(study: Path, runs: Collection[str]) -> None:
    """Remove runs from a study's records of sweeps, and delete empty records. Raises the same errors as `read_grid`."""
    for path, grid in _grids(study):
        rest = {run: one for run, one in grid["runs"].items() if run not in runs}
        if not rest:
            path.unlink()
        elif len(rest) < len(grid["runs"]):
            write_json(path, {**grid, "runs": rest})


def is_requested(run: RunFolder, benchmark: str) -> bool:
    """Return True if a sweep requested scores of a run on `benchmark`, or if the records can't be read."""
    try:
        requested = read_grid(run.path.parent).get(run.path.name)
    except RunError:
        return True
    return requested is not None and benchmark in requested.benchmarks


def expected_points(experiment: str, overrides: Sequence[str] = ()) -> Iterator[Point]:
    """Yield the runs of an experiment. Raises ConfigError if there is no such experiment."""
    line = Line.of([f"experiment={experiment}", *overrides])
    known = group_files("experiment", line.folders)
    if experiment not in known:
        raise ConfigError(f"experiment={experiment}: there is no such experiment. {nearest(experiment, known)}")
    return points("eval", line)


def requested_runs(runs: str | Path, study: str) -> dict[str, RequestedRun]:
    """Return the runs that a study's sweeps requested, by run id.

    Without any record, return the runs of the experiment with the study's name, or {} if there is none.
    """
    recorded = read_grid(Path(runs) / study)
    if recorded or study not in group_files("experiment"):
        return recorded
    command = f"python -m eval -m experiment={study}"
    return {
        run_id(one.config): RequestedRun(
            one.written, described(dataclasses.asdict(one.config)), frozenset([one.config.benchmark.name]), (command,)
        )
        for one in expected_points(study)
    }


def commands_of(requested: Iterable[RequestedRun]) -> list[str]:
    """Return the commands that requested these runs, each once, in order."""
    return list(dict.fromkeys(command for run in requested for command in run.commands))


def study_commands(runs: str | Path, study: str) -> list[str]:
    """Return the commands that reproduce a study.

    First come the commands of its sweeps, or of the experiment with its name. Then come the commands that scored these
    runs on further benchmarks, or a comment if a command was not recorded. A comment at the end names the
    configuration files of runs that aren't part of a sweep.
    """
    requested = requested_runs(runs, study)
    commands = commands_of(requested.values())
    others = []
    for run in (RunFolder(path.parent) for path in sorted(Path(runs, study).glob("*/config.yaml"))):
        if (request := requested.get(run.path.name)) is None:
            others.append(run.config)
            continue
        manifest: Mapping[str, Any] = {}
        with suppress(RunError):  # the analysis reports damaged files
            manifest = run.read_manifest()
        labels = {path.name for path in run.scores("").glob("*") if path.is_dir()}
        for label in sorted(labels.difference(manifest.get("scoring_failed", {}))):
            if label.partition("+")[0] not in request.benchmarks:
                unknown = f"# Runs were also scored on {label}, by a command that was not recorded."
                commands.append(manifest.get("scoring_commands", {}).get(label, unknown))
    if len(others) == 1:
        commands.append(f"# One run isn't part of a sweep. Its configuration is {others[0]}")
    elif others:
        place = Path(runs, study, "*", others[0].name)
        commands.append(f"# {len(others)} runs aren't part of a sweep. Their configurations are {place}")
    return list(dict.fromkeys(commands))
