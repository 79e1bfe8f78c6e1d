"""Where the four commands and the configuration meet: schemas are registered, Hydra runs, errors become one line.

    python -m corpora | train | eval | analysis   [-m] [group=name] [key=value] ...
"""

from __future__ import annotations

import copy
import os
import sys
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from analysis.config import AnalysisConfig
from corpora.config import (
    GulordavaCorpusConfig,
    HubCorpusConfig,
    LocalCorpusConfig,
    SampleConfig,
    TokenizerConfig,
    ToyCorpusConfig,
)
from corpora.errors import PairscaleError
from eval.config import BenchmarkConfig, MethodConfig
from train.config import AdamCosineConfig, LoggerConfig, LstmConfig, SgdPlateauConfig, TxlConfig
from train.runs import RunFolder

COMMANDS = ("corpora", "train", "eval", "analysis")

_SCHEMAS: dict[str, dict[str, type]] = {
    "corpus": {
        "toy_schema": ToyCorpusConfig,
        "local_schema": LocalCorpusConfig,
        "hub_schema": HubCorpusConfig,
        "gulordava_schema": GulordavaCorpusConfig,
    },
    "sample": {"sample_schema": SampleConfig},
    "tokenizer": {"tokenizer_schema": TokenizerConfig},
    "model": {"lstm_schema": LstmConfig, "txl_schema": TxlConfig},
    "recipe": {"sgd_plateau_schema": SgdPlateauConfig, "adam_cosine_schema": AdamCosineConfig},
    "benchmark": {"benchmark_schema": BenchmarkConfig},
    "logger": {"logger_schema": LoggerConfig},
}


def to_config(node: DictConfig) -> AnalysisConfig:
    """Plain dataclasses of a composed configuration. Raises ConfigError for values out of range."""
    node = copy.deepcopy(node)
    with open_dict(node):
        node.pop("hydra", None)
    config = OmegaConf.to_object(node)
    assert isinstance(config, AnalysisConfig)
    return config


def _output_folder(kind: str, *, _root_: DictConfig) -> str:
    """Hydra's own folder: that of the run; it comes from the run's identity, never from the time."""
    config = to_config(_root_)
    if config.dry_run or kind == "none" or (kind == "eval" and _root_.hydra.runtime.choices.experiment is None and config.study):
        return tempfile.gettempdir()
    folder = RunFolder.of(config).path
    return folder.name if kind == "subdir" else str(folder)


def register() -> None:
    """Make the schemas and resolvers known to Hydra; may be called more than once."""
    store = ConfigStore.instance()
    store.store(name="root_schema", node=AnalysisConfig)
    for group, schemas in _SCHEMAS.items():
        for name, schema in schemas.items():
            store.store(group=group, name=name, node=schema)
    OmegaConf.register_new_resolver("output_folder", _output_folder, replace=True)
