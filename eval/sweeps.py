"""The runs of command lines: points and jobs of a sweep, and the grid of a study (pairscale/command/rooms.py)."""

import dataclasses
import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hydra.conf import HydraConf
from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from eval.config import EvalConfig
from eval.grid import RequestedRun, read_grid, write_grid
from eval.jobs import job_of, memory_of, preload
from pairscale.command.compose import REFUSALS, compose, composed, to_config
from pairscale.command.launchers.jobs import Job
from pairscale.command.line import as_written, search_path
from pairscale.command.sweeps import axes_of, grid, is_experiment
from pairscale.errors import ConfigError, RunError
from train.config import RunConfig
from train.runs.folder import RunFolder
from train.runs.identity import run_id
from train.runs.output import NOWHERE, output_folder


def names_a_run(hydra_config: HydraConf | DictConfig) -> bool:
    """Return True if a command line names a run: by an experiment, or by a value that can change its numbers."""
    in_digest = {part.name for part in dataclasses.fields(EvalConfig) if part.metadata.get("digest", True)}
    keys = (re.split(r"[.=@]", override.lstrip("+~"))[0] for override in hydra_config.overrides.task)
    return hydra_config.runtime.choices.get("experiment") is not None or not in_digest.isdisjoint(keys)


def of_each_benchmark(config: EvalConfig) -> list[EvalConfig]:
    """Return the configuration of this command for each benchmark that it names. Raises REFUSALS."""
    if config.benchmarks is None:
        return [config]
    overrides = HydraConfig.get().overrides
    words = [word for word in overrides.task if not re.match(r"benchmarks?=", word)]
    common = [*search_path(overrides.hydra), *words, "benchmarks=null"]
    return [compose("eval", [*common, f"benchmark={name}"]) for name in config.benchmarks]


def scores_study(node: DictConfig) -> bool:
    """Return True if a command line scores all runs of a study, rather than one that it describes."""
    return node.hydra.job.name == "eval" and node.study is not None and not names_a_run(node.hydra)


def scoring_folder(kind: str, *, _root_: DictConfig) -> str:
    """Return the folder that Hydra creates for `python -m eval`: as for training, but NOWHERE for a whole study."""
    return NOWHERE if scores_study(_root_) else output_folder(kind, _root_=_root_)


def points(
    command: str, overrides: list[str], refused: list[Exception] | None = None
) -> Iterator[tuple[list[str], DictConfig, EvalConfig]]:
    """Yield the runs of a sweep: the overrides that name a run, its composed node, and its configuration.

    Runs that differ only in size and seed share one node, as composing is slow. With `refused`, those with refused
    values are left out, and the error of each is added to it; a corpus without its path is one.
    """
    refusals, reasons = ((), []) if refused is None else (REFUSALS, refused)
    try:
        axes, common = axes_of(command, overrides)
    except refusals:  # Hydra reports it, unless an axis brings what is missing
        return
    fixed = [line for line in overrides if OverridesParser.create().parse_override(line).get_key_element() not in axes]
    seeds, sizes = axes.pop("seed", None), _values(axes.pop("sample.size", None))
    for values in itertools.product(*axes.values()):
        point = [f"{key}={value}" for key, value in zip(axes, values, strict=True)]
        try:
            node = composed(command, [*fixed, *point]) if point else common
            if refused is None and OmegaConf.is_missing(node.corpus, "path"):
                node.corpus.path = ""  # the user has to set it, but it is not part of a run's identity
            config = to_config(node)
            if command == "train":
                config.recipe.check_trains(config.model.name)
        except refusals as error:
            reasons += [error] * len(sizes or [None]) * len(seeds or [None])
            continue
        node.hydra.overrides.task += [f"sample.size={size}" for size in (sizes or [])[:1]]
        node.hydra.overrides.task += [f"seed={seed}" for seed in (seeds or [])[:1]]
        for size, seed in itertools.product(sizes or [config.sample.size], seeds or [str(config.seed)]):
            try:
                replaced = _replaced(config, size, seed)
            except refusals as error:
                reasons.append(error)
                continue
            yield [*point, f"sample.size={size}", f"seed={seed}"], node, replaced


def _values(written: Sequence[str] | None) -> list[str] | None:
    """Return values as they are read, without quotes."""
    parser = OverridesParser.create()
    return None if written is None else [str(parser.parse_override(f"value={one}").value()) for one in written]


def jobs(loader: ConfigLoader, master: DictConfig, overrides: Sequence[Sequence[str]]) -> list[Job]:
    """Return the jobs of a sweep, from the overrides that Hydra passes to a launcher."""
    configs = _job_configs(loader, master, overrides)
    pairs = zip(overrides, configs, strict=True)
    return [job_of(index, words, *(job or (None, None))) for index, (words, job) in enumerate(pairs)]


def _job_configs(
    loader: ConfigLoader, master: DictConfig, jobs: Iterable[Sequence[str]]
) -> Iterator[tuple[EvalConfig, Path] | None]:
    """Yield the configuration and the folder of each job of a sweep; None if its values are refused.

    The folder is that of the job's run, or that of the study if the job scores all of it. Jobs that differ only in size
    and seed are composed once, as in `points`.
    """
    parser = OverridesParser.create()
    composed: dict[tuple[str, ...], tuple[EvalConfig, bool] | None] = {}
    for overrides in jobs:
        varied = [override for override in overrides if override.startswith(("seed=", "sample.size="))]
        rest = tuple(override for override in overrides if override not in varied)
        if rest not in composed:
            composed[rest] = None
            with suppress(*REFUSALS):
                node = loader.load_sweep_config(master, list(overrides))
                composed[rest] = to_config(node), scores_study(node)
        job = None
        with suppress(*REFUSALS):
            if (common := composed[rest]) is not None:
                config, whole_study = common
                values = {one.partition("=")[0]: str(parser.parse_override(one).value()) for one in varied}
                size, seed = values.get("sample.size", config.sample.size), values.get("seed", config.seed)
                config = _replaced(config, size, seed).of_run()
                study = Path(config.paths.runs) / str(config.study)
                job = config, study if whole_study else RunFolder.of(config).path
        yield job


def _replaced(config: EvalConfig, size: str, seed: str | int) -> EvalConfig:
    """Return a configuration with another size and seed. Raises ConfigError for a seed that is not a number."""
    sample = dataclasses.replace(config.sample, size=size)
    try:
        number = int(seed)
    except ValueError:
        raise ConfigError(f"seed={seed}: must be a whole number") from None
    return dataclasses.replace(config, sample=sample, seed=number)


def expected_points(experiment: str, overrides: Sequence[str] = ()) -> Iterator[tuple[str, EvalConfig]]:
    """Yield the runs of an experiment's grid: overrides as on a command line, and configuration. Raises as `grid`."""
    grid(experiment, overrides)
    runs = points("train", [f"experiment={experiment}", *overrides])
    return ((shlex.join(point), config) for point, _, config in runs)


def requested_runs(runs: str | Path, study: str) -> dict[str, RequestedRun]:
    """Return the runs that a study should have, by run id: those that its sweeps requested (eval/grid.py).

    Without such a record they are those of the experiment with the study's name; {} if there is none.
    """
    recorded = read_grid(Path(runs) / study)
    if recorded or not is_experiment(study):
        return recorded
    command = f"python -m eval -m experiment={study}"
    return {
        run_id(config): RequestedRun.of(point, config, config.benchmark.name, command)
        for point, config in expected_points(study)
    }


def commands_of(requested: Iterable[RequestedRun]) -> list[str]:
    """Return the commands that requested runs, each once, in order."""
    return list(dict.fromkeys(command for run in requested for command in run.commands))


def study_commands(runs: str | Path, study: str) -> list[str]:
    """Return the commands that make a study: those of its sweeps, or that of the experiment with its name.

    A comment stands for the runs of no sweep, with the files that have their configurations. Commands that scored runs
    of sweeps on further benchmarks follow.
    """
    requested = requested_runs(runs, study)
    folders = [RunFolder(path.parent) for path in sorted(Path(runs, study).glob("*/config.yaml"))]
    others = [one.config for one in folders if one.path.name not in requested]
    comments = [f"# of no sweep; its values: {path}" for path in others]
    if len(others) > 1:
        comments = [f"# {len(others)} runs of no sweep; their values: {Path(runs, study, '*', others[0].name)}"]
    further = {run.path.name: _scoring(run, requested[run.path.name]) for run in folders if run.path.name in requested}
    scoring = [command for commands in further.values() for command in commands]
    commands = [shlex.join(as_written(shlex.split(one))) for one in commands_of(requested.values())]
    return list(dict.fromkeys([*commands, *scoring, *comments]))


def _scoring(run: RunFolder, requested: RequestedRun) -> list[str]:
    """Return the commands that scored a run on benchmarks for which no sweep did, or a comment for an unknown one."""
    manifest: Mapping[str, Any] = {}
    with suppress(RunError):  # the analysis names the damaged file
        manifest = run.read_manifest()
    commands = manifest.get("scoring_commands", {})
    labels = sorted(path.name for path in run.scores("").glob("*") if path.is_dir())
    return [
        shlex.join(as_written(shlex.split(commands[label])))
        if label in commands
        else f"# scored on {label} by a command that is not recorded"
        for label in labels
        if label.partition("+")[0] not in requested.benchmarks and label not in manifest.get("scoring_failed", {})
    ]


def record_points(points: Iterable[tuple[list[str], DictConfig, EvalConfig]], command: str, typed: str) -> None:
    """Write the runs that the command line `typed` requests to the grids of their studies, for `requested_runs`.

    Points that name no run (a sweep over benchmarks that scores a study), or several (model.revisions), are left out.
    Raises NoCorpus for runs to be trained without a corpus.
    """
    grids: dict[tuple[Path, str | None], dict[str, RunConfig]] = {}
    for point, node, config in points:
        if config.model.several_models or not (command == "train" or names_a_run(node.hydra)):
            continue
        benchmarks = (None,) if command == "train" else config.benchmarks or (config.benchmark.name,)
        for benchmark in benchmarks if config.study else ():
            key = RunFolder.of(config).path.parent, benchmark
            grids.setdefault(key, {})[shlex.join(point)] = config
    for (study, benchmark), runs in grids.items():
        write_grid(study, runs, benchmark, typed)


__all__ = ["jobs", "memory_of", "points", "preload", "record_points"]  # the interface pairscale.command.rooms.Runs
OmegaConf.register_new_resolver("scoring_folder", scoring_folder, replace=True)
