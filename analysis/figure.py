"""`python -m analysis.figure`: draw one figure of learning curves, for a paper or a talk.

    python -m analysis.figure study=mine phenomena=[binding,island_effects] output=figure.pdf

It takes seconds, since it reads the long table and needs no report.
"""

from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from analysis.config import AnalysisConfig
from pairscale.command.main import main
from pairscale.errors import ConfigError

if TYPE_CHECKING:
    from analysis.report.benchmark import BenchmarkResults

FORMATS = ("svg", "pdf", "png")


def run(config: AnalysisConfig) -> None:
    """Draw the overall curves, or those of the chosen phenomena or paradigms, into `config.output`.

    A study with several benchmarks gives a figure for each, with the benchmark at the end of its name.

    Raises:
        ConfigError: without a study or an output, and for a curve, phenomenon or paradigm that isn't there.
    """
    from analysis.run import read_benchmarks, read_tables

    if config.output is None:
        raise ConfigError("Give output=FILE, a name that ends in .svg, .pdf or .png.")
    path = Path(config.output)
    if path.suffix.removeprefix(".") not in FORMATS:
        raise ConfigError(f"output={config.output}: the name must end in .svg, .pdf or .png.")
    benchmarks = read_benchmarks(config, read_tables(config, config.benchmark.name if named_benchmark() else None))
    for results in benchmarks:
        of = path if len(benchmarks) == 1 else path.with_stem(f"{path.stem}-{results.label}")
        draw_benchmark(results.of_curves(config.curves), config, of)


def draw_benchmark(results: "BenchmarkResults", config: AnalysisConfig, path: Path) -> None:
    """Draw the figure of one benchmark into the file `path`."""
    from analysis.figures.charts import curve_chart
    from analysis.figures.files import write_figure
    from analysis.figures.style import accuracy_domain
    from analysis.sections.curves import levels

    chosen = chosen_units(results.units, config)
    names = {name for _, name in chosen}
    shown = results.units[results.units["name"].isin(names)]
    domain = accuracy_domain(shown["accuracy"], results.humans.loc[results.humans["name"].isin(names), "accuracy"])
    panels = []
    for level, name in chosen:
        alone = len(chosen) == 1
        at = levels(results) if level == "overall" else _humans(results.humans, name)
        panels.append(partial(curve_chart, results.units, results.lines, results.looks, at, unit=(level, name),
                              domain=None if alone else domain, labelled=alone))  # fmt: skip
    legend = results.looks if len(panels) > 1 else None
    write_figure(
        path.parent, path.stem, panels, config.analysis.figure, min(len(panels), 4), legend, (path.suffix[1:],)
    )
    print(path)


def named_benchmark() -> bool:
    """Return whether the command line names a benchmark."""
    from hydra.core.hydra_config import HydraConfig

    return any(override.partition("=")[0] == "benchmark" for override in HydraConfig.get().overrides.task)


def _humans(humans: pd.DataFrame, name: str) -> pd.DataFrame:
    return humans[humans["name"] == name].assign(name="humans")[["name", "accuracy"]]


def chosen_units(units: pd.DataFrame, config: AnalysisConfig) -> list[tuple[str, str]]:
    """Return (level, name) of each panel: the chosen phenomena and paradigms, else the overall accuracy.

    Raises ConfigError for a name that the study doesn't have.
    """
    chosen = []
    for key, level in (("phenomena", "phenomenon"), ("paradigms", "paradigm")):
        there = sorted(units.loc[units["level"] == level, "name"].unique())
        value = getattr(config, key)
        names = there if value == "all" else [value] if isinstance(value, str) else list(value or ())
        for name in names:
            if name not in there:
                close = get_close_matches(str(name), there, 1)
                hint = f"Did you mean “{close[0]}”?" if close else f"There are {', '.join(there)}."
                raise ConfigError(f"{key}: this study has no {level} “{name}”. {hint}")
            chosen.append((level, str(name)))
    return chosen or [("overall", "overall")]


if __name__ == "__main__":
    main("figure", run)
