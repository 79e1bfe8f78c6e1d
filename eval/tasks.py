"""`python -m eval.tasks FILE`: record the grid of a file of tasks for slurm/run.sbatch with its study.

FILE has a line for each run: its name, a tab, and the arguments of `python -m eval`. slurm/submit, which writes such
files itself, records the grid when it submits.

    printf 'a\tstudy=mine corpus=toy model=lstm_tiny sample.size=1M\n' > tasks.tsv
    python -m eval.tasks tasks.tsv
"""

import argparse
import shlex
from contextlib import suppress
from pathlib import Path

from pairscale import as_typed
from pairscale.command.compose import compose
from pairscale.command.errors import one_line_errors
from pairscale.command.line import Line
from pairscale.errors import InputError, PairscaleError
from pairscale.version import version_text
from train.sweeps import Point, record_points


def record_tasks(file: Path) -> None:
    """Record the grid of a file of tasks, without lines whose values are refused: their tasks report them."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({error}); must be a file of tasks") from None
    points = []
    for line in lines:
        with suppress(PairscaleError):
            run = Line.of(shlex.split(line.partition("\t")[2]), "eval")
            points.append(Point(run.overrides, run, compose("eval", run)))
    record_points(points, "eval", f"sbatch --array=... slurm/run.sbatch {shlex.quote(str(file))}")


if __name__ == "__main__":
    shape = argparse.RawDescriptionHelpFormatter
    program = as_typed("python -m eval.tasks")
    parser = argparse.ArgumentParser(prog=program, description=as_typed(__doc__ or ""), formatter_class=shape)
    parser.add_argument("file", metavar="FILE", type=Path, help="tasks as slurm/run.sbatch takes them, one a line")
    with one_line_errors("pairscale tasks"):
        parser.add_argument("--version", action="version", version=version_text())
        record_tasks(parser.parse_args().file)
