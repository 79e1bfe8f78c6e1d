"""The runs of command lines: points and jobs of a sweep, and the grid of a study (pairscale/command/rooms.py)."""

import dataclasses
import itertools
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from hydra.conf import HydraConf
from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from eval.config import EvalConfig
from eval.grid import RequestedRun, read_grid, write_grid
from pairscale.command.compose import REFUSALS, compose, composed, to_config
from pairscale.command.launchers.jobs import Job, Work
from pairscale.command.line import as_written, search_path
from pairscale.command.sweeps import axes_of, grid, is_experiment
from pairscale.errors import ConfigError, PairscaleError, RunError
from pairscale.files import sha256_json
from train.config import RunConfig
from train.loop.device import takes_gpu
from train.runs.folder import RunFolder
from train.runs.identity import run_id
from train.runs.output import NOWHERE, output_folder

_VARIED = ("sample.size", "seed")  # what runs of one model differ in: they are composed once, as composing is slow


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

    With `refused`, those with refused values are left out, and the error of each is added to it; a corpus without its
    path is one.
    """
    refusals = () if refused is None else REFUSALS
    try:
        axes, _ = axes_of(command, overrides)
    except refusals:  # Hydra reports it, unless an axis brings what is missing
        return
    fixed = [line for line in overrides if OverridesParser.create().parse_override(line).get_key_element() not in axes]
    keys = [key for key in axes if key not in _VARIED] + [key for key in _VARIED if key in axes]
    lines = [
        [f"{key}={value}" for key, value in zip(keys, values, strict=True)]
        for values in itertools.product(*(axes[key] for key in keys))
    ]

    def node_of(words: list[str]) -> DictConfig:
        node = composed(command, [*fixed, *words])
        if refused is None and OmegaConf.is_missing(node.corpus, "path"):
            node.corpus.path = ""  # the user has to set it, but it is not part of a run's identity
        return node

    for words, result in zip(lines, _configurations(node_of, lines), strict=True):
        try:
            if isinstance(result, Exception):
                raise result
            node, config = result
            if command == "train":
                config.recipe.check_trains(config.model.name)
        except refusals as error:
            assert refused is not None
            refused.append(error)
            continue
        point = [word for word in words if word.partition("=")[0] not in _VARIED]
        yield [*point, f"sample.size={config.sample.size}", f"seed={config.seed}"], node, config


def _configurations(
    node_of: Callable[[list[str]], DictConfig], lines: Iterable[Sequence[str]]
) -> Iterator[tuple[DictConfig, EvalConfig] | Exception]:
    """Yield node and configuration of each line of overrides, or why it is refused (REFUSALS).

    Lines that differ only in size and seed share one node.
    """
    parser = OverridesParser.create()
    known: dict[tuple[str, ...], tuple[DictConfig, EvalConfig] | Exception] = {}
    for line in lines:
        varied = [word for word in line if word.partition("=")[0] in _VARIED]
        rest = tuple(word for word in line if word not in varied)
        if rest not in known:
            try:
                node = node_of(list(rest))
                known[rest] = node, to_config(node)
                node.hydra.overrides.task += varied
            except REFUSALS as error:
                known[rest] = error
        result = known[rest]
        if not isinstance(result, Exception):
            node, config = result
            values = {word.partition("=")[0]: str(parser.parse_override(word).value()) for word in varied}
            try:
                result = node, _replaced(config, values)
            except REFUSALS as error:
                result = error
        yield result


def _replaced(config: EvalConfig, values: Mapping[str, str]) -> EvalConfig:
    """Return a configuration with other values of _VARIED. Raises ConfigError for a seed that is not a number."""
    sample = dataclasses.replace(config.sample, size=values.get("sample.size", config.sample.size))
    try:
        seed = int(values.get("seed", config.seed))
    except ValueError:
        raise ConfigError(f"seed={values['seed']}: must be a whole number") from None
    return dataclasses.replace(config, sample=sample, seed=seed)


def jobs(loader: ConfigLoader, master: DictConfig, overrides: Sequence[Sequence[str]]) -> list[Job]:
    """Return the jobs of a sweep, from the overrides that Hydra passes to a launcher.

    A job without a configuration has refused values, which its own process reports.
    """
    results = _configurations(lambda words: loader.load_sweep_config(master, words), overrides)
    made = []
    for index, (words, result) in enumerate(zip(overrides, results, strict=True)):
        job = Job(index, list(words))
        with suppress(PairscaleError):
            if not isinstance(result, Exception):
                node, config = result[0], result[1].of_run()
                study = Path(config.paths.runs) / str(config.study)
                job = job_of(index, words, config, study if scores_study(node) else RunFolder.of(config).path)
        made.append(job)
    return made


def job_of(index: int, overrides: Sequence[str], config: EvalConfig, folder: Path | None) -> Job:
    """Return the job of a configuration that works on `folder`; its work has no words if it is trained already."""
    kind, words = sha256_json(OmegaConf.to_container(OmegaConf.structured(config.model))), 0.0
    with suppress(PairscaleError):  # a study to be scored, or a damaged folder, which the run itself reports
        run = RunFolder.of(config)
        if not run.done:
            budget, words = config.recipe.budget, config.sample.number
            words = words if budget is None else budget.words_seen(words)
    work = Work(kind, words, lambda: training_seconds(run)) if words else Work(kind)
    preloads = words > 0 and not config.model.counted
    return Job(index, list(overrides), config, folder, takes_gpu(config), config.trainer.devices, work, preloads)


def training_seconds(folder: RunFolder) -> float | None:
    """Return the seconds that a run took to train; None if its manifest does not have them."""
    try:
        manifest = folder.read_manifest()
    except PairscaleError:
        return None
    rate, words = manifest.get("words_per_s"), manifest.get("words_seen")
    return words / rate if rate and words else None


def memory_of(jobs: Sequence[Job]) -> int:
    """Return the bytes that the largest of `jobs` takes; 0 if unknown, as for models that are not downloaded yet."""
    configs = [job.config for job in jobs if job.config]
    trained = [config for config in configs if config.recipe.trains]
    largest = max((config.model.weight_bytes for config in configs), default=0)  # loading takes no less
    if trained:  # in a process of its own: torch's hundreds of MiB would stay here as long as the sweep takes
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            largest = max(largest, pool.submit(_peak_memory, trained).result())
    return largest


def _peak_memory(configs: Sequence[EvalConfig]) -> int:
    from train.estimate import peak_memory

    return peak_memory(configs)


def preload() -> None:
    """Import torch, Lightning and the loop of a training, but not pandas: pyarrow starts a thread when imported."""
    import_module("train.loop.training")


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

    Commands that scored runs of sweeps on further benchmarks follow. A comment stands for the runs of no sweep, with
    the files that have their configurations.
    """
    requested = requested_runs(runs, study)
    folders = [RunFolder(path.parent) for path in sorted(Path(runs, study).glob("*/config.yaml"))]
    others = [run.config for run in folders if run.path.name not in requested]
    commands = [shlex.join(as_written(shlex.split(one))) for one in commands_of(requested.values())]
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
