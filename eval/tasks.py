"""Record which runs belong to a sweep, if you wrote the task file for slurm/run.sbatch yourself.

FILE has one line per run: its name, a tab, and the arguments of `python -m eval`. You don't need this command if you
use slurm/submit, because it writes the task file and records the sweep.

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
    """Record the sweep of a task file. Lines with invalid values are skipped, because their tasks report the error."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file}: this task file can't be read ({error}). Write one line per run, with a name, a tab and arguments."
        ) from None
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
    parser.add_argument("file", metavar="FILE", type=Path, help="the task file that slurm/run.sbatch reads")
    with one_line_errors("pairscale tasks"):
        parser.add_argument("--version", action="version", version=version_text())
        record_tasks(parser.parse_args().file)
