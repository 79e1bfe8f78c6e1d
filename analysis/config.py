"""Configuration of the analysis and what the commands of this room read."""

import math
import re
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from analysis.plan.config import PlanConfig
from analysis.reading.config import ReadingConfig
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from corpora.config import RootConfig
from eval.benchmarks.config import BenchmarkConfig
from eval.config import EvalConfig, QuestionnaireConfig, Ties
from pairscale.command.line import current, key_of
from pairscale.command.schemas import AboveZero, Texts
from pairscale.errors import ConfigError
from train.config import Rate
from train.trackers.tracker import LoggerConfig

_PIXELS = {"in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "pt": 96 / 72}
_BOUNDS = {"width": (1, 40), "height": (0.5, 40), "font_size": (0.05, 0.5)}  # inches
COUNT, LEAVE_OUT = ("count", "leave_out")


@dataclass(kw_only=True)
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


@dataclass(kw_only=True)
class ReportConfig:
    """What a report shows, and how curves are named and drawn."""

    method: str  # the judgment method whose scores make the curves
    confidence: Annotated[float, Meta(gt=0, lt=1)]  # level of the intervals
    sections: Texts = None  # null: the default ones; all; or a list of further sections
    margin: AboveZero | None = None  # slopes whose difference surely lies within it are called equivalent
    new_items: bool = False  # add intervals for new pairs of the same paradigms
    # Pairs that are known to be faulty: counted, as published, or left out.
    faulty_pairs: Literal["count", "leave_out"] = "count"
    labels: dict[str, str] = field(default_factory=dict)  # names of curves in tables and figures
    colours: dict[str, str] = field(default_factory=dict)  # colours of curves, such as "#0050d4"
    order: list[str] = field(default_factory=list)  # curves that come first
    figure: FigureConfig = field(default_factory=FigureConfig)

    def __post_init__(self) -> None:
        if self.colours:
            from PIL import ImageColor  # here, because few studies choose colours
        for curve, colour in self.colours.items():
            try:
                ImageColor.getrgb(colour)
            except ValueError:
                raise ConfigError(
                    f"analysis.colours.{curve}={colour}: give a colour as in CSS, such as black or rgb(0,80,212)."
                ) from None


@dataclass(kw_only=True)
class ResultsCommand(RootConfig):
    """A command that reads the results of a study, or others' numbers."""

    benchmark: BenchmarkConfig
    ties: Ties
    analysis: ReportConfig
    source: str  # where the study is read from
    path: Texts = None  # others' numbers: a file, a folder, or a list of them
    columns: OutcomeColumns = field(default_factory=OutcomeColumns)
    results: ResultsConfig = field(default_factory=ResultsConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        for typed in current().overrides:
            if (key := key_of(typed)).startswith("benchmark.") and key != "benchmark.name":
                raise ConfigError(
                    f"{typed}: scores are read as they are, so leave it out. Choose scores by benchmark=NAME or "
                    "benchmark.name=NAME."
                )

    @property
    def chosen_benchmark(self) -> str | None:
        """The name of the benchmark that the command line names; None if it names none."""
        line = current()
        return self.benchmark.name if line["benchmark"] or line["benchmark.name"] else None


@dataclass(kw_only=True)
class AnalysisConfig(ResultsCommand):
    """What `python -m analysis` reads."""

    format: Literal["html", "md"]  # of the report
    published: bool  # the papers' own results instead of a study's
    logger: LoggerConfig
    questionnaire: QuestionnaireConfig
    people: Texts = None  # a path, or a list of them: answers to questionnaires


@dataclass(kw_only=True)
class FigureCommand(ResultsCommand):
    """What `python -m analysis.figure` reads."""

    output: str | None = None  # a file
    phenomena: Texts = None
    paradigms: Texts = None
    curves: Texts = None


@dataclass(kw_only=True)
class TableCommand(ResultsCommand):
    """What `python -m analysis.table` reads."""

    output: str | None = None  # a file
    what: Literal["accuracies", "pairs", "runs"]


@dataclass(kw_only=True)
class StatusConfig(RootConfig):
    """What `python -m analysis.status` reads."""

    remove: Texts = None  # runs to remove, by name, pattern or key, or failed, missing or study
    yes: bool = False  # remove without asking


@dataclass(kw_only=True)
class ReadingCommand(RootConfig):
    """What `python -m analysis.reading` reads."""

    format: Literal["html", "md"]
    analysis: ReportConfig
    times: str | None = None  # a file: words, and how long they were read
    reading: ReadingConfig = field(default_factory=ReadingConfig)


@dataclass(kw_only=True)
class PlanCommand(EvalConfig):
    """What `python -m analysis.plan` reads: the values of the experiment's runs, and its own."""

    analysis: ReportConfig
    effect: float | None = None  # to be found
    power: Annotated[float, Meta(gt=0, lt=1)]  # share of studies that are to find it
    goal: Literal["slope", "difference", "ablation"]
    pilot: str | None = None  # a study whose runs show how runs differ
    spread: float | None = None  # without a pilot: deviation between runs
    rate: Rate = None  # words/s of training, or one for each model
    plan: PlanConfig = field(default_factory=PlanConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.benchmarks:
            raise ConfigError(f"benchmark=[{','.join(self.benchmarks)}]: a plan is for one; give benchmark=NAME")
