"""The runs that commands and sweeps ask for: folders, a sweep's points, a study's grid (pairscale/command/rooms.py)."""

import dataclasses
import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from hydra.conf import HydraConf
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from eval.config import EvalConfig
from eval.grid import RequestedRun, read_grid, write_grid
from eval.jobs import job_of, memory_of
from pairscale.command.compose import REFUSALS, composed, to_config
from pairscale.command.launchers.jobs import Job
from pairscale.command.sweeps import axes_of, grid, is_experiment
from pairscale.errors import ConfigError
from train.config import RunConfig
from train.runs.folder import RunFolder
from train.runs.identity import run_id
from train.runs.output import NOWHERE, output_folder


def names_a_run(hydra_config: HydraConf | DictConfig) -> bool:
    """Whether a command line says which run it means, by an experiment or any value that can change its numbers."""
    counted = {part.name for part in dataclasses.fields(EvalConfig) if part.metadata.get("digest", True)}
    given = (re.split(r"[.=@]", override.lstrip("+~"))[0] for override in hydra_config.overrides.task)
    return hydra_config.runtime.choices.get("experiment") is not None or not counted.isdisjoint(given)


def scores_study(node: DictConfig) -> bool:
    """Return True if a command line scores all runs of a study, rather than one that it describes."""
    return node.hydra.job.name == "eval" and node.study is not None and not names_a_run(node.hydra)


def scoring_folder(kind: str, *, _root_: DictConfig) -> str:
    """Return the folder that Hydra creates for `python -m eval`: as for training, but NOWHERE for a whole study."""
    return NOWHERE if scores_study(_root_) else output_folder(kind, _root_=_root_)


def points(
    command: str, overrides: list[str], skip_refused: bool = False
) -> Iterator[tuple[list[str], DictConfig, EvalConfig]]:
    """The runs of a sweep: overrides that name each, its composed node (sizes and seeds apart) and its configuration.

    Seeds and sizes change nothing else, and are not composed anew. `skip_refused` leaves out runs of refused values.
    """
    refused = REFUSALS if skip_refused else ()
    try:
        axes, common = axes_of(command, overrides)
    except refused:
        return
    fixed = [line for line in overrides if OverridesParser.create().parse_override(line).get_key_element() not in axes]
    seeds, sizes = axes.pop("seed", None), axes.pop("sample.size", None)
    for values in itertools.product(*axes.values()):
        point = [f"{key}={value}" for key, value in zip(axes, values, strict=True)]
        with suppress(*refused):
            node = composed(command, [*fixed, *point]) if point else common
            if OmegaConf.is_missing(node.corpus, "path"):
                node.corpus.path = ""  # the user's to give, and not part of a run's identity
            config = to_config(node)
            node.hydra.overrides.task += [f"sample.size={size}" for size in (sizes or [])[:1]]
            node.hydra.overrides.task += [f"seed={seed}" for seed in (seeds or [])[:1]]
            for size, seed in itertools.product(sizes or [config.sample.size], seeds or [str(config.seed)]):
                with suppress(*refused):
                    yield [*point, f"sample.size={size}", f"seed={seed}"], node, _vary(config, size, seed)


def jobs(loader: ConfigLoader, master: DictConfig, overrides: Sequence[Sequence[str]]) -> list[Job]:
    """The jobs of a sweep, from the overrides that Hydra gives to a launcher (composed as `_job_configs` says)."""
    configs = _job_configs(loader, master, overrides)
    pairs = zip(overrides, configs, strict=True)
    return [job_of(index, words, *(job or (None, None))) for index, (words, job) in enumerate(pairs)]


def _job_configs(
    loader: ConfigLoader, master: DictConfig, jobs: Iterable[Sequence[str]]
) -> Iterator[tuple[EvalConfig, Path] | None]:
    """Of each job of a sweep (its overrides, as Hydra gives them to a launcher) the configuration and the work folder.

    That is the folder of its run, or of the study that it scores as a whole. None where values are refused, as the
    job itself will say. Jobs that differ in seeds and sizes alone are composed once, as `points` does.
    """
    parser = OverridesParser.create()
    composed: dict[tuple[str, ...], tuple[EvalConfig, bool] | None] = {}
    for overrides in jobs:
        varied = [one for one in overrides if one.startswith(("seed=", "sample.size="))]
        rest = tuple(one for one in overrides if one not in varied)
        if rest not in composed:
            composed[rest] = None
            with suppress(*REFUSALS):
                node = loader.load_sweep_config(master, list(overrides))
                config = to_config(node)
                composed[rest] = config, scores_study(node)
        job = None
        with suppress(*REFUSALS):
            if (found := composed[rest]) is not None:
                config, whole = found
                values = {one.partition("=")[0]: str(parser.parse_override(one).value()) for one in varied}
                config = _vary(config, values.get("sample.size", config.sample.size), values.get("seed", config.seed))
                job = config, Path(config.paths.runs) / str(config.study) if whole else RunFolder.of(config).path
        yield job


def _vary(config: EvalConfig, size: str, seed: str | int) -> EvalConfig:
    sample = dataclasses.replace(config.sample, size=size)
    try:
        number = int(seed)
    except ValueError:
        raise ConfigError(f"seed={seed}: must be a whole number") from None
    return dataclasses.replace(config, sample=sample, seed=number)


def expected_points(experiment: str, overrides: Sequence[str] = ()) -> Iterator[tuple[str, EvalConfig]]:
    """What the command line would say of each run of an experiment's grid, and its configuration. Errors: `grid`."""
    grid(experiment, overrides)
    asked = [f"experiment={experiment}", *overrides]
    return ((shlex.join(named), config) for named, _, config in points("train", asked))


def asked_runs(runs: str | Path, study: str) -> dict[str, RequestedRun]:
    """The runs that there should be of a study, by run id: what its sweeps asked for and kept (eval/grid.py).

    Where none did, those of the experiment of the study's name; {} where there is none either.
    """
    kept = read_grid(Path(runs) / study)
    if kept or not is_experiment(study):
        return kept
    command = f"python -m eval -m experiment={study}"
    expected = expected_points(study)
    return {
        run_id(config): RequestedRun.of(point, config, config.benchmark.name, command) for point, config in expected
    }


def commands_of(asked: Iterable[RequestedRun]) -> list[str]:
    """The commands that asked for runs, each once, in their order."""
    return list(dict.fromkeys(command for one in asked for command in one.commands))


def asked_commands(runs: str | Path, study: str) -> list[str]:
    """The commands that make a study's runs: those that its sweeps kept, or that of the experiment of its name.

    Runs that none of them asked for are named in a comment, with the file that holds their configuration.
    """
    asked = asked_runs(runs, study)
    alone = sorted(path.parent for path in Path(runs, study).glob("*/config.yaml") if path.parent.name not in asked)
    return [*commands_of(asked.values()), *(f"# of no sweep; its values: {path}/config.yaml" for path in alone)]


def keep_points(found: Iterable[tuple[list[str], DictConfig, EvalConfig]], command: str, typed: str) -> None:
    """Keep runs, as `points` gives them, in the folders of their studies, for `asked_runs`; `typed` asked for them.

    Left out is what names no run (a sweep over benchmarks that scores a study), or makes several (model.revisions).
    Raises NoCorpus where runs are to be trained on none.
    """
    grids: dict[tuple[Path, str | None], dict[str, RunConfig]] = {}
    for named, node, config in found:
        if config.model.several_models or not (command == "train" or names_a_run(node.hydra)):
            continue
        key = RunFolder.of(config).path.parent, None if command == "train" else config.benchmark.name
        if config.study:
            grids.setdefault(key, {})[shlex.join(named)] = config
    for (study, benchmark), runs in grids.items():
        write_grid(study, runs, benchmark, typed)


__all__ = ["jobs", "keep_points", "memory_of", "points"]  # of pairscale.command.rooms.Runs
OmegaConf.register_new_resolver("scoring_folder", scoring_folder, replace=True)
