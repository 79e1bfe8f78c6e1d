"""`python -m conf.tasks FILE`: keep what the tasks of slurm/run.sbatch ask for with their study, as other sweeps do.

FILE: a run a line, its name, a tab, and the arguments of `python -m eval`. slurm/submit, which makes such files itself,
keeps the grid when it submits.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

import conf
from analysis.config import AnalysisConfig
from conf.errors import one_line_errors
from corpora.errors import ConfigError, InputError, PairscaleError


def keep_tasks(file: Path) -> None:
    """Keep the grid of a file of tasks. Lines whose values are refused are left out, as their tasks will say so."""
    typed = f"sbatch --array=... slurm/run.sbatch {shlex.quote(str(file))}"
    conf.keep_points(_runs(file), "eval", typed)


def _runs(file: Path) -> Iterator[tuple[list[str], DictConfig, AnalysisConfig]]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({error}); must be a file of tasks") from None
    for line in lines:
        overrides = shlex.split(line.partition("\t")[2])
        with suppress(PairscaleError, HydraException, OmegaConfBaseException):
            node = conf.composed("eval", overrides)
            yield overrides, node, conf.to_config(node)


if __name__ == "__main__":
    with one_line_errors("conf.tasks"):
        if len(sys.argv) != 2:
            raise ConfigError("give one file of tasks: python -m conf.tasks FILE")
        keep_tasks(Path(sys.argv[1]))
