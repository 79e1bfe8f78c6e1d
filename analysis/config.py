"""Configuration of the analysis (values: conf/base.yaml)."""

import math
import re
from dataclasses import dataclass, field
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import MISSING

import corpora.train_parser.config  # noqa: F401 (it registers its schema)
from analysis.plan.config import GOALS, SLOPE, PlanConfig
from analysis.reading.config import ReadingConfig
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from eval.config import EvalConfig
from pairscale.command.schemas import NOT_IN_DIGEST, Texts, store_schemas
from pairscale.errors import ConfigError, check_above, check_choice

_PIXELS = {"in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "pt": 96 / 72}
_BOUNDS = {"width": (1, 40), "height": (0.5, 40), "font_size": (0.05, 0.5)}  # inches
COUNT, LEAVE_OUT = FAULTY_PAIRS = ("count", "leave_out")


@dataclass
class FigureConfig:
    """The size of figures in files. Lengths are numbers with in, cm, mm or pt, such as 3.3in or 84mm.

    Journals state the widths of their columns: 3.3in in two columns (Computational Linguistics, ACL), 6.3in across
    both; 84mm and 174mm (Springer).
    """

    width: str = "6.9in"  # of the whole figure; panels that don't fit go below
    height: str | None = None  # of each panel; null: chosen by its width
    font_size: str = "8pt"  # of names and numbers; everything else is in proportion

    def __post_init__(self) -> None:
        for name, (least, most) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not least <= self.pixels(name) / _PIXELS["in"] <= most:
                raise ConfigError(
                    f"analysis.figure.{name}={value[:80]}: must be a number with in, cm, mm or pt, such as 84mm, from "
                    f"{least}in to {most}in."
                )

    def pixels(self, name: str) -> float:
        """Return a length in pixels of 1/96 inch; NaN if it isn't one."""
        parts = re.fullmatch(rf"(\d+\.?\d*|\.\d+) ?({'|'.join(_PIXELS)})", getattr(self, name))
        return float(parts[1]) * _PIXELS[parts[2]] if parts else math.nan


@dataclass
class ReportConfig:
    """What a report shows, and how curves are named and drawn."""

    method: str = MISSING  # the judgment method whose scores make the curves
    confidence: float = MISSING  # level of the intervals
    sections: Any = None  # null: the default ones; all; or a list of further sections
    margin: float | None = None  # slopes whose difference surely lies within it are called equivalent
    new_items: bool = False  # add intervals for new pairs of the same paradigms
    faulty_pairs: str = COUNT  # pairs that are known to be faulty: counted, as published, or left out
    labels: dict[str, str] = field(default_factory=dict)  # names of curves in tables and figures
    colours: dict[str, str] = field(default_factory=dict)  # colours of curves, such as "#0050d4"
    order: list[str] = field(default_factory=list)  # curves that come first
    figure: FigureConfig = field(default_factory=FigureConfig)

    def __post_init__(self) -> None:
        check_choice("analysis.faulty_pairs", self.faulty_pairs, FAULTY_PAIRS)
        if not 0 < self.confidence < 1:
            raise ConfigError(f"analysis.confidence={self.confidence}: must lie between 0 and 1.")
        if self.margin is not None:
            check_above("analysis.margin", self.margin, 0)
        if self.colours:
            from PIL import ImageColor  # here, because few studies choose colours
        for curve, colour in self.colours.items():
            try:
                ImageColor.getrgb(colour)
            except ValueError:
                raise ConfigError(
                    f"analysis.colours.{curve}={colour}: give a colour as in CSS, such as black or rgb(0,80,212)."
                ) from None


@dataclass
class AnalysisConfig(EvalConfig):
    """The whole configuration, of which each command uses its part."""

    analysis: ReportConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    source: str = field(default=MISSING, metadata=NOT_IN_DIGEST)  # where the study is read from
    path: Texts = field(default=None, metadata=NOT_IN_DIGEST)  # others' numbers: a file, a folder, or a list of them
    columns: OutcomeColumns = field(default_factory=OutcomeColumns, metadata=NOT_IN_DIGEST)
    results: ResultsConfig = field(default_factory=ResultsConfig, metadata=NOT_IN_DIGEST)
    published: bool = field(default=False, metadata=NOT_IN_DIGEST)  # the papers' own results instead of a study's

    # analysis.reading
    times: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # a file: words, and how long they were read
    reading: ReadingConfig = field(default_factory=ReadingConfig, metadata=NOT_IN_DIGEST)

    # analysis.plan
    effect: float | None = field(default=None, metadata=NOT_IN_DIGEST)  # to be found
    power: float = field(default=0.8, metadata=NOT_IN_DIGEST)  # share of studies that are to find it
    goal: str = field(default=SLOPE, metadata=NOT_IN_DIGEST)
    pilot: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # a study whose runs show how runs differ
    spread: float | None = field(default=None, metadata=NOT_IN_DIGEST)  # without a pilot: deviation between runs
    rate: Any = field(default=None, metadata=NOT_IN_DIGEST)  # words/s of training, or one for each model
    plan: PlanConfig = field(default_factory=PlanConfig, metadata=NOT_IN_DIGEST)

    # analysis.figure: what the figure shows
    phenomena: Any = field(default=None, metadata=NOT_IN_DIGEST)
    paradigms: Any = field(default=None, metadata=NOT_IN_DIGEST)
    curves: Texts = field(default=None, metadata=NOT_IN_DIGEST)

    # analysis.table: accuracies, pairs or runs
    what: str = field(default="accuracies", metadata=NOT_IN_DIGEST)

    # analysis.status: runs to remove, by name, pattern or key, or failed, missing or study; yes: without asking
    remove: Texts = field(default=None, metadata=NOT_IN_DIGEST)
    yes: bool = field(default=False, metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("goal", self.goal, GOALS)
        rates = self.rate.values() if isinstance(self.rate, dict) else [1 if self.rate is None else self.rate]
        if not all(type(rate) in (int, float) and 0 < rate <= 1e12 for rate in rates):
            raise ConfigError(
                f"rate={self.rate}: give a number of words/s above 0, or one for each model, such as "
                "{lstm_blimp:40000,txl:12000}."
            )


def typed_keys() -> set[str]:
    """Return the keys that the command line sets."""
    words = HydraConfig.get().overrides.task if HydraConfig.initialized() else []
    return {word.lstrip("+").partition("=")[0] for word in words}


def chosen_benchmark(config: AnalysisConfig) -> str | None:
    """Return the name of the benchmark that the command line names, or None if it names none."""
    return config.benchmark.name if typed_keys() & {"benchmark", "benchmark.name"} else None


store_schemas(None, root_schema=AnalysisConfig)
