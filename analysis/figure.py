"""Draw one figure of learning curves, for a paper or a talk (`python -m analysis.figure`).

    python -m analysis.figure study=mine phenomena=[binding,island_effects] output=figure.pdf

This only takes seconds, because it doesn't make a report.
"""

from pathlib import Path

from analysis.config import FigureCommand
from pairscale.command.main import main
from pairscale.errors import ConfigError

COLUMNS = 4  # maximum number of panels per row


def run(config: FigureCommand) -> None:
    """Draw the overall curves, or the curves of the chosen phenomena or paradigms, and write them to `config.output`.

    If the study has several benchmarks, each gets its own figure, whose file name ends with the benchmark.

    Raises:
        ConfigError: If study or output isn't set, or if a curve, phenomenon or paradigm is unknown.
    """
    from analysis.figures.files import write_figure
    from analysis.report.labels import check_names
    from analysis.run import read_benchmarks, read_study
    from analysis.sections.curves import OVERALL, panels

    path = Path(config.output or "")
    if path.suffix not in (".svg", ".pdf", ".png"):
        raise ConfigError(f"output={config.output}: figures are .svg, .pdf or .png files. Set output=FILE.pdf.")
    benchmarks = read_benchmarks(config, read_study(config))
    for results in benchmarks:
        results.show_curves(config.curves)
        units: list[tuple[str, str]] = []
        for level, key in (("phenomenon", "phenomena"), ("paradigm", "paradigms")):
            chosen = getattr(config, key)
            there = sorted(results.units.loc[results.units["level"] == level, "name"].unique())
            names = there if chosen == "all" else [chosen] if isinstance(chosen, str) else list(chosen or ())
            where = f" in {results.label} (choose a benchmark with benchmark=NAME)" if len(benchmarks) > 1 else ""
            check_names(key, names, there, level, where)
            units += [(level, name) for name in names]
        alone = len(units) <= 1
        charts = [draw() for draw in panels(results, units or [OVERALL], labelled=alone).values()]
        to = path if len(benchmarks) == 1 else path.with_stem(f"{path.stem}-{results.label}")
        write_figure(to.parent, to.stem, charts, config.analysis.figure, COLUMNS, to.suffix[1:])
        print(to)


if __name__ == "__main__":
    main("figure", run)
