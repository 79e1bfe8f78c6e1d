"""Draw one figure of learning curves, for a paper or a talk (`python -m analysis.figure`).

    python -m analysis.figure study=mine phenomena=[binding,island_effects] output=figure.pdf

This only takes seconds, because it doesn't make a report.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.config import FigureCommand
from pairscale.command.main import main
from pairscale.errors import ConfigError

if TYPE_CHECKING:
    from analysis.report.benchmark import BenchmarkResults

COLUMNS = 4  # maximum number of panels per row


def run(config: FigureCommand) -> None:
    """Draw the overall curves, or the curves of the chosen phenomena or paradigms, and write them to `config.output`.

    If the study has several benchmarks, each that has the chosen units gets a figure, whose file name ends with the
    benchmark.

    Raises:
        ConfigError: If study or output isn't set, or if a curve, phenomenon or paradigm is unknown.
    """
    from analysis.figures.files import write_figure
    from analysis.run import read_benchmarks, read_study
    from analysis.sections.curves import OVERALL, panels

    path = Path(config.output or "")
    if path.suffix not in (".svg", ".pdf", ".png"):
        raise ConfigError(f"output={config.output}: figures are .svg, .pdf or .png files. Set output=FILE.pdf.")
    benchmarks = read_benchmarks(config, read_study(config))
    chosen: list[tuple[BenchmarkResults, list[tuple[str, str]]]] = []
    errors = []
    for results in benchmarks:
        results.show_curves(config.curves)
        try:
            chosen.append((results, _chosen_units(config, results)))
        except ConfigError as error:
            errors.append(error)
    if not chosen:
        raise errors[0]
    for reason in errors:
        print(f"A benchmark is left out: {reason}")
    for results, units in chosen:
        charts = [draw() for draw in panels(results, units or [OVERALL], labelled=len(units) <= 1).values()]
        to = path if len(chosen) == 1 else path.with_stem(f"{path.stem}-{results.label}")
        write_figure(to.parent, to.stem, charts, config.analysis.figure, COLUMNS, to.suffix[1:])
        print(to)


def _chosen_units(config: FigureCommand, results: BenchmarkResults) -> list[tuple[str, str]]:
    """Return level and name of the chosen phenomena and paradigms. Raises ConfigError if a benchmark lacks one."""
    from analysis.report.labels import check_names

    units = []
    for level, key in (("phenomenon", "phenomena"), ("paradigm", "paradigms")):
        chosen = getattr(config, key)
        there = sorted(results.units.loc[results.units["level"] == level, "name"].unique())
        names = there if chosen == "all" else [chosen] if isinstance(chosen, str) else list(chosen or ())
        check_names(key, names, there, level, f" in {results.label}")
        units += [(level, name) for name in names]
    return units


if __name__ == "__main__":
    main("figure", run)
