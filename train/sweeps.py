"""The runs of command lines: the points of a sweep, and the runs that a study should have (train/grid.py)."""

import dataclasses
import itertools
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairscale.command.compose import FOLDER, axes_of, composed, group_files, schema_of
from pairscale.command.line import Line, key_of
from pairscale.command.schemas import build
from pairscale.errors import ConfigError, PairscaleError, RunError
from train.config import RunConfig, run_id
from train.grid import RequestedRun, read_grid, write_grid
from train.runs.folder import RunFolder

_LAST = ("sample.size", "seed")  # keys that are named last, and of every run


@dataclass(frozen=True)
class Point:
    """A run of a sweep. varied: the overrides that tell it from the others; line: all of its command line."""

    varied: tuple[str, ...]
    line: Line
    config: Any

    @property
    def written(self) -> str:
        """What tells it from the others, with its size and seed."""
        size, seed = f"sample.size={self.config.sample.size}", f"seed={self.config.seed}"
        return shlex.join([*(word for word in self.varied if key_of(word) not in _LAST), size, seed])


def points(command: str, line: Line, refused: list[Exception] | None = None) -> Iterator[Point]:
    """Yield the runs of a sweep.

    With `refused`, those with refused values are left out, and the error of each is added to it; without, the first
    error is raised, but the path of a corpus may be missing, as it is no part of a run's identity.
    """
    schema = schema_of(command)
    axes = axes_of(command, line)
    keys = sorted(axes.swept, key=lambda key: _LAST.index(key) if key in _LAST else -1)
    for values in itertools.product(*(axes.swept[key] for key in keys)):
        varied = tuple(f"{key}={value}" for key, value in zip(keys, values, strict=True))
        whole = Line((*axes.fixed.overrides, *varied), line.folders, command=command)
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
    """Return True if a command line names a run: by an experiment, or by a value that can change its numbers."""
    in_digest = {part.name for part in dataclasses.fields(RunConfig) if part.metadata.get("digest", True)}
    return any((key := key_of(one).partition(".")[0]) == "experiment" or key in in_digest for one in line.overrides)


def check_whole_sweep(command: str, line: Line, config: RunConfig) -> None:
    """Raise ConfigError if a single training leaves axes of its experiment's sweep open, other than the seed."""
    typed = {key_of(one) for one in line.overrides}
    if "experiment" not in typed or not config.recipe.trains:
        return
    swept = axes_of(command, line).swept
    loose = [key for key in swept if key != "seed" and key not in typed]
    if loose:
        raise ConfigError(
            f"experiment={line['experiment']}: sweeps {', '.join(swept)}; -m runs all of it (python -m {command} -m "
            f"{line.written}), or give one run its own {' and '.join(f'{key}=VALUE' for key in loose)}"
        )


def is_experiment(study: str) -> bool:
    """Return True if conf/experiment/ has a file of this study's name."""
    return (FOLDER / "experiment" / f"{study}.yaml").exists()


def expected_points(experiment: str, overrides: Sequence[str] = ()) -> Iterator[Point]:
    """Yield the runs of an experiment's grid. Raises ConfigError if it is unknown."""
    line = Line.of([f"experiment={experiment}", *overrides])
    known = group_files("experiment", line.folders)
    if experiment not in known:
        raise ConfigError(f"experiment={experiment}: no such experiment; available: {', '.join(known)}")
    return points("eval", line)


def requested_runs(runs: str | Path, study: str) -> dict[str, RequestedRun]:
    """Return the runs that a study should have, by run id: those that its sweeps requested (train/grid.py).

    Without such a record they are those of the experiment with the study's name; {} if there is none.
    """
    recorded = read_grid(Path(runs) / study)
    if recorded or not is_experiment(study):
        return recorded
    command = f"python -m eval -m experiment={study}"
    return {
        run_id(one.config): RequestedRun.of(one.written, one.config, one.config.benchmark.name, command)
        for one in expected_points(study)
    }


def commands_of(requested: Iterable[RequestedRun]) -> list[str]:
    """Return the commands that requested runs, each once, in order."""
    return list(dict.fromkeys(command for run in requested for command in run.commands))


def study_commands(runs: str | Path, study: str) -> list[str]:
    """Return the commands that make a study: those of its sweeps, or that of the experiment with its name.

    Commands that scored runs of sweeps on further benchmarks follow. A comment stands for the runs of no sweep, with
    the files that have their configurations.
    """
    requested = requested_runs(runs, study)
    folders = [RunFolder(path.parent) for path in sorted(Path(runs, study).glob("*/config.yaml"))]
    others = [run.config for run in folders if run.path.name not in requested]
    commands = commands_of(requested.values())
    for run in folders:
        if run.path.name in requested:
            commands += _scoring(run, requested[run.path.name])
    if len(others) == 1:
        commands.append(f"# of no sweep; its values: {others[0]}")
    elif others:
        commands.append(f"# {len(others)} runs of no sweep; their values: {Path(runs, study, '*', others[0].name)}")
    return list(dict.fromkeys(commands))


def _scoring(run: RunFolder, requested: RequestedRun) -> list[str]:
    """Return the commands that scored a run on benchmarks for which no sweep did, or a comment for an unknown one."""
    manifest: Mapping[str, Any] = {}
    with suppress(RunError):  # the analysis names the damaged file
        manifest = run.read_manifest()
    commands = manifest.get("scoring_commands", {})
    labels = sorted(path.name for path in run.scores("").glob("*") if path.is_dir())
    return [
        commands.get(label, f"# scored on {label} by a command that is not recorded")
        for label in labels
        if label.partition("+")[0] not in requested.benchmarks and label not in manifest.get("scoring_failed", {})
    ]


def record_points(points: Iterable[Point], command: str, typed: str) -> None:
    """Write the runs that the command line `typed` requests to the grids of their studies, for `requested_runs`.

    Points that name no run (a sweep over benchmarks that scores a study), or several (model.revisions), are left out.
    Raises NoCorpus for runs to be trained without a corpus.
    """
    grids: dict[tuple[Path, str | None], dict[str, RunConfig]] = {}
    for point in points:
        config = point.config
        if config.model.several_models or not (command == "train" or names_a_run(point.line)):
            continue
        benchmarks = (None,) if command == "train" else config.benchmarks or (config.benchmark.name,)
        for benchmark in benchmarks if config.study else ():
            key = RunFolder.of(config).path.parent, benchmark
            grids.setdefault(key, {})[point.written] = config
    for (study, benchmark), runs in grids.items():
        write_grid(study, runs, benchmark, typed)
