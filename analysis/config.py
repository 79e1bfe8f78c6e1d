"""The configuration of the analysis commands."""

import math
import re
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from analysis.plan.config import PlanConfig
from analysis.reading.config import ReadingConfig
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from corpora.config import RootConfig
from eval.benchmarks.config import BenchmarkConfig, Ties
from eval.config import EvalConfig, QuestionnaireConfig
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
    """The size of figures in files. A length is a number with a unit (in, cm, mm or pt), such as 3.3in or 84mm.

    In Computational Linguistics and ACL papers, a column is 3.3in wide, and both columns together are 6.3in wide. In
    Springer journals, a column is 84mm wide, and both together are 174mm wide.
    """

    width: str = "6.9in"  # width of the whole figure; panels that don't fit start a new row
    height: str | None = None  # height of each panel; null: depends on its width
    font_size: str = "8pt"  # font size of names and numbers; everything else scales with it

    def __post_init__(self) -> None:
        for name, (least, most) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not least <= self.pixels(name) / _PIXELS["in"] <= most:
                raise ConfigError(
                    f"analysis.figure.{name}={value[:80]}: this must be a length from {least}in to {most}in. Use a "
                    "number with a unit (in, cm, mm or pt), such as 84mm."
                )

    def pixels(self, name: str) -> float:
        """Convert the length in the field `name` to pixels (1/96 inch). Return NaN if its text isn't a length."""
        parts = re.fullmatch(rf"(\d+\.?\d*|\.\d+) ?({'|'.join(_PIXELS)})", getattr(self, name))
        return float(parts[1]) * _PIXELS[parts[2]] if parts else math.nan


@dataclass(kw_only=True)
class ReportConfig:
    """The settings for the contents of a report, and for the names and colours of its curves."""

    method: str  # judgment method of the scores in the curves
    confidence: Annotated[float, Meta(gt=0, lt=1)]  # confidence level of the intervals
    sections: Texts = None  # null (the default sections), all, or a list of sections to add
    margin: AboveZero | None = None  # slopes are equivalent if the interval of their difference is within +/- this
    new_items: bool = False  # add intervals for new pairs of the same paradigms
    # Whether to count pairs with known faults, as in published results, or to leave them out.
    faulty_pairs: Literal["count", "leave_out"] = "count"
    labels: dict[str, str] = field(default_factory=dict)  # names of curves in tables and figures
    colours: dict[str, str] = field(default_factory=dict)  # colours of curves, such as "#0050d4"
    order: list[str] = field(default_factory=list)  # curves to show first
    figure: FigureConfig = field(default_factory=FigureConfig)

    def __post_init__(self) -> None:
        if self.colours:
            from PIL import ImageColor  # imported here because few studies choose colours
        for curve, colour in self.colours.items():
            try:
                ImageColor.getrgb(colour)
            except ValueError:
                raise ConfigError(
                    f"analysis.colours.{curve}={colour}: this is not a CSS colour. Use one such as black or #0050d4."
                ) from None


@dataclass(kw_only=True)
class ResultsCommand(RootConfig):
    """The configuration of a command that reads the results of a study, or external results."""

    benchmark: BenchmarkConfig
    ties: Ties | None
    analysis: ReportConfig
    source: str  # files (run folders), or the format of external results
    path: Texts = None  # external results: a file, a folder, or a list of these
    columns: OutcomeColumns = field(default_factory=OutcomeColumns)
    results: ResultsConfig = field(default_factory=ResultsConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        for typed in current().overrides:
            if (key := key_of(typed)).startswith("benchmark.") and key != "benchmark.name":
                raise ConfigError(
                    f"{typed}: this setting only has an effect when a model is scored. Leave it out. To choose "
                    "scores, use benchmark=NAME or benchmark.name=NAME."
                )

    @property
    def chosen_benchmark(self) -> str | None:
        """The name of the benchmark chosen on the command line, or None."""
        line = current()
        return self.benchmark.name if line["benchmark"] or line["benchmark.name"] else None


@dataclass(kw_only=True)
class AnalysisConfig(ResultsCommand):
    """The configuration of `python -m analysis`."""

    format: Literal["html", "md"]  # format of the report
    published: bool  # check statements in papers instead of analysing a study
    logger: LoggerConfig
    questionnaire: QuestionnaireConfig
    people: Texts = None  # answers to questionnaires: a file, a folder, or a list of these


@dataclass(kw_only=True)
class FigureCommand(ResultsCommand):
    """The configuration of `python -m analysis.figure`."""

    output: str | None = None  # file to write
    phenomena: Texts = None
    paradigms: Texts = None
    curves: Texts = None


@dataclass(kw_only=True)
class TableCommand(ResultsCommand):
    """The configuration of `python -m analysis.table`."""

    output: str | None = None  # file to write
    what: Literal["accuracies", "pairs", "runs"]


@dataclass(kw_only=True)
class StatusConfig(RootConfig):
    """The configuration of `python -m analysis.status`."""

    remove: Texts = None  # runs to remove: a name, a pattern, a setting, a state, or study for all
    yes: bool = False  # remove without asking


@dataclass(kw_only=True)
class ReadingCommand(RootConfig):
    """The configuration of `python -m analysis.reading`."""

    format: Literal["html", "md"]
    analysis: ReportConfig
    times: str | None = None  # file with words and reading times
    reading: ReadingConfig = field(default_factory=ReadingConfig)


@dataclass(kw_only=True)
class PlanCommand(EvalConfig):
    """The configuration of `python -m analysis.plan`, which extends the configuration of the experiment's runs."""

    analysis: ReportConfig
    effect: float | None = None  # effect that the study should detect
    power: Annotated[float, Meta(gt=0, lt=1)]  # share of studies that should detect it
    goal: Literal["slope", "difference", "ablation"]
    pilot: str | None = None  # study used to estimate how much runs differ
    spread: float | None = None  # standard deviation between runs, if there is no pilot
    rate: Rate = None  # training speed in words/s, or one speed per model
    plan: PlanConfig = field(default_factory=PlanConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.benchmarks:
            listed = ",".join(self.benchmarks)
            raise ConfigError(f"benchmark=[{listed}]: a plan can only use one benchmark. Use benchmark=NAME.")
