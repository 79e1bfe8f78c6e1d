"""`python -m analysis.figure`: draw one figure of learning curves, for a paper or a talk.

    python -m analysis.figure study=mine phenomena=[binding,island_effects] output=figure.pdf

It takes seconds, since it reads the long table and needs no report.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.config import AnalysisConfig
from pairscale.command.main import main
from pairscale.errors import ConfigError

if TYPE_CHECKING:
    from analysis.report.benchmark import BenchmarkResults

FORMATS = (".svg", ".pdf", ".png")
COLUMNS = 4  # panels in a row, at most


def run(config: AnalysisConfig) -> None:
    """Draw the overall curves, or those of the chosen phenomena or paradigms, into `config.output`.

    A study with several benchmarks gives a figure for each, with the benchmark at the end of its name.

    Raises:
        ConfigError: without a study or an output, and for a curve, phenomenon or paradigm that isn't there.
    """
    from analysis.figures.files import write_figure
    from analysis.run import read_benchmarks, read_tables
    from analysis.sections.curves import OVERALL, panels

    path = Path(config.output or "")
    if path.suffix not in FORMATS:
        raise ConfigError(f"Give output=FILE, a name that ends in .svg, .pdf or .png (output={config.output}).")
    benchmarks = read_benchmarks(config, read_tables(config))
    for whole in benchmarks:
        results = whole.of_curves(config.curves)
        units = chosen_units(results, config) or [OVERALL]
        alone = len(units) == 1
        drawn = [draw() for draw in panels(results, units, labelled=alone).values()]
        to = path if len(benchmarks) == 1 else path.with_stem(f"{path.stem}-{results.label}")
        legend = None if alone else results.looks
        write_figure(to.parent, to.stem, drawn, config.analysis.figure, COLUMNS, legend, to.suffix[1:])
        print(to)


def chosen_units(results: "BenchmarkResults", config: AnalysisConfig) -> list[tuple[str, str]]:
    """Return level and name of the chosen phenomena and paradigms.

    Raises ConfigError for a name that the study doesn't have.
    """
    from analysis.report.labels import check_names

    chosen = []
    for key, level, value in (
        ("phenomena", "phenomenon", config.phenomena),
        ("paradigms", "paradigm", config.paradigms),
    ):
        there = sorted(results.units.loc[results.units["level"] == level, "name"].unique())
        names = there if value == "all" else [value] if isinstance(value, str) else list(map(str, value or ()))
        check_names(key, names, there, level)
        chosen += [(level, name) for name in names]
    return chosen


if __name__ == "__main__":
    main("figure", run)
