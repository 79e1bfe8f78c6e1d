"""The type of SyntaxGym's suites in the group `benchmark` (values: conf/benchmark/syntaxgym.yaml)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from eval.benchmarks.config import BenchmarkConfig
from pairscale.errors import ConfigError, check_choice
from pairscale.files import sha256_json

NAME = "syntaxgym"


@dataclass(kw_only=True)
class SyntaxGymConfig(BenchmarkConfig):
    """A folder of suites: items whose regions' surprisals a formula compares."""

    has_pairs: ClassVar[bool] = False
    suites: list[str] | None = None  # null: all in the folder

    def __post_init__(self) -> None:
        check_choice("benchmark.name", self.name, (NAME,))
        super().__post_init__()
        if self.suites == []:
            raise ConfigError("benchmark.suites=[]: must name at least one, or null for all")

    def _fields_by_form(self) -> Mapping[str, tuple[str, ...]]:
        return {NAME: ("path",)}

    @property
    def label(self) -> str:
        return NAME if self.suites is None else f"{NAME}+suites-{sha256_json(sorted(self.suites))[:8]}"


def is_syntaxgym(label: str) -> bool:
    """Return True if a folder of scores named `label` is of SyntaxGym's suites."""
    return label.partition("+")[0] == NAME
