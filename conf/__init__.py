"""Where the commands and the configuration meet: schemas, composition, the runs of sweeps; conf/command.py runs them.

python -m corpora | train | train.import_checkpoint | eval | eval.generate | eval.questionnaire | analysis
          | analysis.status  [-m] [group=name] [key=value]
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import hydra
from hydra.conf import HydraConf
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from analysis.config import AnalysisConfig
from conf.command_line import check_whole_sweep
from conf.errors import check_keys, configurations
from conf.launchers.local import LocalConfig, LocalLauncher
from conf.launchers.slurm import SlurmLauncher
from corpora.config import (
    GulordavaCorpusConfig,
    HubCorpusConfig,
    LocalCorpusConfig,
    NoCorpusConfig,
    SampleConfig,
    TokenizerConfig,
    ToyCorpusConfig,
)
from corpora.errors import ConfigError, PairscaleError, check_name
from eval.config import BenchmarkConfig, DiagnosticConfig, PretrainedConfig
from eval.questionnaire.config import QuestionnaireConfig, TextConfig
from train.config import (
    AdamCosineConfig,
    CountedConfig,
    ImportedConfig,
    LoggerConfig,
    LstmConfig,
    NgramConfig,
    RunConfig,
    SgdPlateauConfig,
    TxlConfig,
    UntrainedConfig,
)
from train.grid import Asked, keep_grid, read_grid
from train.runs import NO_STUDY, RunFolder, run_id

FOLDER = Path(__file__).parent
REFUSALS = (PairscaleError, HydraException, OmegaConfBaseException)  # of values on a command line

_SCHEMAS: dict[str, dict[str, type]] = {
    "corpus": {
        "no_corpus_schema": NoCorpusConfig,
        "toy_schema": ToyCorpusConfig,
        "local_schema": LocalCorpusConfig,
        "hub_schema": HubCorpusConfig,
        "gulordava_schema": GulordavaCorpusConfig,
    },
    "sample": {"sample_schema": SampleConfig},
    "tokenizer": {"tokenizer_schema": TokenizerConfig},
    "model": {
        "lstm_schema": LstmConfig,
        "txl_schema": TxlConfig,
        "ngram_schema": NgramConfig,
        "pretrained_schema": PretrainedConfig,
        "imported_schema": ImportedConfig,
    },
    "recipe": {
        "sgd_plateau_schema": SgdPlateauConfig,
        "adam_cosine_schema": AdamCosineConfig,
        "counted_schema": CountedConfig,
        "untrained_schema": UntrainedConfig,
    },
    "benchmark": {"benchmark_schema": BenchmarkConfig, "diagnostic_schema": DiagnosticConfig},
    "logger": {"logger_schema": LoggerConfig},
    "questionnaire": {"questionnaire_schema": QuestionnaireConfig},
    "questionnaire_text": {"questionnaire_text_schema": TextConfig},
}


def to_config(node: DictConfig) -> AnalysisConfig:
    """Plain dataclasses of a composed configuration.

    Raises ConfigError for values that are missing or out of range, and for keys that there are none of.
    """
    node = copy.deepcopy(node)
    with open_dict(node):
        node.pop("hydra", None)
    missing = sorted(OmegaConf.missing_keys(node))
    if missing:
        raise ConfigError(f"{', '.join(missing)}: not set and without a default; give {missing[0]}=VALUE")
    config = OmegaConf.to_object(node)
    assert isinstance(config, AnalysisConfig)
    check_keys(config)
    return config


def _output_folder(kind: str, *, _root_: DictConfig) -> str:
    """Hydra's own folder: that of the run; it comes from the run's identity, never from the time."""
    if kind == "sweep":
        for name in str(_root_.study or NO_STUDY).split("+"):  # of the analysis, which takes several
            check_name("study", name)  # before Hydra and a launcher make folders of that name
        return str(Path(_root_.paths.runs) / (_root_.study or NO_STUDY))
    config = to_config(_root_)
    if kind in ("run", "eval") and not isinstance(config.recipe, UntrainedConfig):
        check_whole_sweep(_root_.hydra)  # here, as Hydra makes the folder before anything else of ours is called
    if kind == "none" or scores_study(_root_.hydra, config):
        return tempfile.gettempdir()  # Hydra makes the folder, and nothing is written there
    folder = RunFolder.of(config).path
    if config.dry_run:
        return tempfile.gettempdir()
    return folder.name if kind == "subdir" else str(folder)


def names_a_run(hydra_config: HydraConf | DictConfig) -> bool:
    """Whether a command line says which run it means, by an experiment or any value that can change its numbers."""
    counted = {part.name for part in dataclasses.fields(AnalysisConfig) if part.metadata.get("digest", True)}
    given = (re.split(r"[.=@]", override.lstrip("+~"))[0] for override in hydra_config.overrides.task)
    return hydra_config.runtime.choices.get("experiment") is not None or not counted.isdisjoint(given)


def scores_study(hydra_config: HydraConf | DictConfig, config: RunConfig) -> bool:
    """True if a command line scores all runs of a study, rather than one that it describes."""
    return hydra_config.job.name == "eval" and config.study is not None and not names_a_run(hydra_config)


def register() -> None:
    """Make the schemas, resolvers and launchers known to Hydra; may be called more than once."""
    store = ConfigStore.instance()
    store.store(name="root_schema", node=AnalysisConfig)
    for group, schemas in _SCHEMAS.items():
        for name, schema in schemas.items():
            store.store(group=group, name=name, node=schema)
    store.store(group="hydra/launcher", name="local_schema", node=LocalConfig)
    OmegaConf.register_new_resolver("output_folder", _output_folder, replace=True)
    for plugin in (LocalLauncher, SlurmLauncher):
        # Hydra makes plugins of one package only, and looks them up by a name in it; the classes may live elsewhere.
        Plugins.instance().class_name_to_class[f"hydra_plugins.pairscale.{plugin.__name__}"] = plugin


@contextmanager
def _hydra() -> Iterator[None]:
    register()
    GlobalHydra.instance().clear()  # a running command's, which it no longer needs, would refuse a second one
    with hydra.initialize_config_dir(str(FOLDER), version_base="1.3"):
        yield


def composed(command: str, overrides: list[str]) -> DictConfig:
    """The node of `python -m <command> <overrides>`, Hydra's own part included; errors as Hydra raises them."""
    with _hydra():
        return hydra.compose(command, overrides, return_hydra_config=True)


def compose(command: str, overrides: list[str]) -> AnalysisConfig:
    """The configuration of `python -m <command> <overrides>`, for use from Python; errors as Hydra raises them."""
    return to_config(composed(command, overrides))


def launcher(name: str, overrides: list[str]) -> dict[str, Any]:
    """The values in force of `hydra/launcher=<name>`. Errors as Hydra raises them."""
    node = composed("eval", [f"hydra/launcher={name}", *overrides]).hydra.launcher
    values = OmegaConf.to_container(node, resolve=True)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}


def grid(experiment: str, overrides: Sequence[str] = ()) -> dict[str, list[str]]:
    """The axes that an experiment sweeps: configuration key (or group) -> values, {} where it declares none.

    `overrides` join them, or take the place of those of their name, as on the command line of a sweep. Raises
    ConfigError when there is no such experiment.
    """
    known = configurations("experiment", overrides)
    if experiment not in known:
        raise ConfigError(f"experiment={experiment}: no such experiment; available: {', '.join(known)}")
    return _axes("train", [f"experiment={experiment}", *overrides])[0]


def _axes(command: str, overrides: list[str]) -> tuple[dict[str, list[str]], DictConfig]:
    """All that a sweep of `overrides` sets: key -> its values; those of an experiment where they do not say otherwise.

    Key by key in the order in which a command line would have them, `experiment` first. With the composed node of what
    is not swept.
    """
    with _hydra():
        parser = OverridesParser.create(GlobalHydra.instance().config_loader())  # which knows what a glob stands for
    given = {parsed.get_key_element(): parsed for parsed in parser.parse_overrides(overrides)}
    fixed = [parsed.input_line for parsed in given.values() if not parsed.is_sweep_override()]
    node = composed(command, [str(line) for line in fixed])
    params = node.hydra.sweeper.params or {}
    swept = {str(key): parser.parse_override(f"{key}={values}") for key, values in params.items()}
    axes = {}
    for key, parsed in (
        swept | {key: one for key, one in given.items() if key in swept or one.is_sweep_override()}
    ).items():
        if parsed.is_sweep_override():
            axes[key] = [str(value) for value in parsed.sweep_string_iterator()]
        else:
            axes[key] = [str(parsed.get_value_element_as_str())]
    return axes, node


def points(
    command: str, overrides: list[str], skip_refused: bool = False
) -> Iterator[tuple[list[str], DictConfig, AnalysisConfig]]:
    """The runs of a sweep: overrides that name each, its composed node (sizes and seeds apart) and its configuration.

    What a sweep of Hydra's would compose one by one: seeds and sizes change nothing else of a configuration, and
    composing takes a second for six of them. With `skip_refused` runs whose values are refused are left out.
    """
    refused = REFUSALS if skip_refused else ()
    try:
        axes, common = _axes(command, overrides)
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


def job_configs(
    loader: ConfigLoader, master: DictConfig, jobs: Iterable[Sequence[str]]
) -> Iterator[tuple[AnalysisConfig, Path] | None]:
    """Of each job of a sweep (its overrides, as Hydra gives them to a launcher) the configuration and the work folder.

    That is the folder of its run, or of the study that it scores as a whole. None where values are refused, as the
    job itself will say. Jobs that differ in seeds and sizes alone are composed once, as `points` does.
    """
    parser = OverridesParser.create()
    composed: dict[tuple[str, ...], tuple[AnalysisConfig, bool] | None] = {}
    for overrides in jobs:
        varied = [one for one in overrides if one.startswith(("seed=", "sample.size="))]
        rest = tuple(one for one in overrides if one not in varied)
        if rest not in composed:
            composed[rest] = None
            with suppress(*REFUSALS):
                node = loader.load_sweep_config(master, list(overrides))
                config = to_config(node)
                composed[rest] = config, scores_study(node.hydra, config)
        job = None
        with suppress(*REFUSALS):
            if (found := composed[rest]) is not None:
                config, whole = found
                values = {one.partition("=")[0]: str(parser.parse_override(one).value()) for one in varied}
                config = _vary(config, values.get("sample.size", config.sample.size), values.get("seed", config.seed))
                job = config, Path(config.paths.runs) / str(config.study) if whole else RunFolder.of(config).path
        yield job


def _vary(config: AnalysisConfig, size: str, seed: str | int) -> AnalysisConfig:
    """The configuration of another sample size and seed."""
    return dataclasses.replace(config, sample=dataclasses.replace(config.sample, size=size), seed=_whole("seed", seed))


def _whole(key: str, value: str | int) -> int:
    try:
        return int(value)
    except ValueError:
        raise ConfigError(f"{key}={value}: must be a whole number") from None


def expected_points(experiment: str, overrides: Sequence[str] = ()) -> Iterator[tuple[str, AnalysisConfig]]:
    """The runs of an experiment's grid: what the command line would say of each, and its configuration.

    Overrides and errors as of `grid`.
    """
    grid(experiment, overrides)
    asked = [f"experiment={experiment}", *overrides]
    return ((shlex.join(named), config) for named, _, config in points("train", asked))


def expected_runs(experiment: str, overrides: Sequence[str] = ()) -> dict[str, str]:
    """The runs of an experiment's grid: run id -> what the command line would say of it. Overrides, errors: `grid`."""
    return {run_id(config): point for point, config in expected_points(experiment, overrides)}


def is_experiment(study: str) -> bool:
    """Whether conf/experiment/ has one of a study's name."""
    return (FOLDER / "experiment" / f"{study}.yaml").exists()


def asked_runs(runs: str | Path, study: str) -> dict[str, Asked]:
    """The runs that there should be of a study, by run id: what its sweeps asked for, as they kept it (train/grid.py).

    Where none did, those of the experiment of the study's name; {} where there is none either.
    """
    kept = read_grid(Path(runs) / study)
    if kept or not is_experiment(study):
        return kept
    command = f"python -m eval -m experiment={study}"
    expected = expected_points(study)
    return {run_id(config): Asked.of(point, config, config.benchmark.name, command) for point, config in expected}


def commands_of(asked: Iterable[Asked]) -> list[str]:
    """The commands that asked for runs, each once, in their order."""
    return list(dict.fromkeys(command for one in asked for command in one.commands))


def asked_commands(runs: str | Path, study: str) -> list[str]:
    """The commands that make a study's runs: those that its sweeps kept, or that of the experiment of its name.

    Runs that none of them asked for are named in a comment, with the file that holds their configuration.
    """
    asked = asked_runs(runs, study)
    folder = Path(runs) / study
    alone = sorted(path.parent for path in folder.glob("*/config.yaml") if path.parent.name not in asked)
    return [*commands_of(asked.values()), *(f"# of no sweep; its values: {path}/config.yaml" for path in alone)]


def keep_points(found: Iterable[tuple[list[str], DictConfig, AnalysisConfig]], command: str, typed: str) -> None:
    """Keep runs, as `points` gives them, in the folders of their studies, for `asked_runs`; `typed` asked for them.

    Left out is what names no run (a sweep over benchmarks that scores a study), or makes several (model.revisions).
    Raises NoCorpus where runs are to be trained on none.
    """
    grids: dict[tuple[Path, str | None], dict[str, RunConfig]] = {}
    for named, node, config in found:
        several = isinstance(config.model, PretrainedConfig) and config.model.revisions is not None
        if several or not (command == "train" or names_a_run(node.hydra)):
            continue
        key = RunFolder.of(config).path.parent, None if command == "train" else config.benchmark.name
        if config.study:
            grids.setdefault(key, {})[shlex.join(named)] = config
    for (study, benchmark), runs in grids.items():
        keep_grid(study, runs, benchmark, typed)
