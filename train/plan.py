"""What all runs of a sweep would take together, before anything is submitted: a table of models by sizes, and sums."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from pairscale import as_typed
from pairscale.sizes import format_size, parse_size, readable_size
from train.config import RunConfig
from train.runs.axes import in_order, labels

if TYPE_CHECKING:
    from rich.table import Table

    from train.estimate import Estimate


WIDTH = 160  # of a table that goes to a file or a pipe


@dataclass
class Planned:
    """One run of a sweep. scoring_seconds, score_bytes, scoring_memory: of what is not scored yet, 0 where all is."""

    config: RunConfig
    estimate: Estimate
    scoring_seconds: float = 0.0
    score_bytes: int = 0
    scoring_memory: int = 0

    @property
    def memory_bytes(self) -> int:
        """Of its process at the peak, in training or in scoring."""
        return max(self.estimate.memory_bytes, self.scoring_memory)

    @property
    def seconds(self) -> float:
        """Of work that is not done yet, in one process."""
        return (0.0 if self.estimate.done else self.estimate.seconds) + self.scoring_seconds


class Plan:
    """The runs of one command, as it comes upon them."""

    def __init__(self) -> None:
        self.runs: list[Planned] = []
        self.notes: list[str] = []
        self.begun = False

    def begin(self, text: str) -> None:
        """Say once what a plan begins with, which takes a while until there is anything to show."""
        if not self.begun:
            print(f"planning: {text} ...", file=sys.stderr, flush=True)
        self.begun = True

    def note(self, text: str) -> None:
        """Something to say once, however many runs it is of."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, planned: Planned) -> None:
        """Runs that a grid names twice are one."""
        if all(planned.estimate.run != run.estimate.run for run in self.runs):
            self.runs.append(planned)

    def show(self) -> None:
        """Print one run in full, several as a table; nothing where there is none."""
        from rich.console import Console  # here, so that a command that plans nothing starts sooner
        from rich.text import Text

        from train.estimate import estimate_table

        console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
        if len(self.runs) == 1:
            (run,) = self.runs
            console.print(
                estimate_table(run.config, run.estimate, run.scoring_seconds, run.score_bytes, run.scoring_memory)
            )
        elif self.runs:
            console.print(self.table())
            for line in self.totals():
                console.print(Text(line), soft_wrap=True)
        for text in self.notes + (self._labels()[1] if len(self.runs) > 1 else []):
            console.print(Text(text), soft_wrap=True)

    def _labels(self) -> tuple[dict[str, str], list[str]]:
        return labels({run.estimate.run: dataclasses.asdict(run.config) for run in self.runs})

    def cells(self) -> list[tuple[str, str, list[Planned]]]:
        """Runs of one label (train/runs/axes.py) and size, in the order of both."""
        names, _ = self._labels()
        cells: dict[tuple[str, str], list[Planned]] = {}
        for run in self.runs:
            key = names[run.estimate.run], format_size(parse_size(run.config.sample.size))
            cells.setdefault(key, []).append(run)
        rank = {label: place for place, label in enumerate(in_order(label for label, _ in cells))}
        order = sorted(cells, key=lambda key: (rank[key[0]], parse_size(key[1])))
        return [(label, size, cells[label, size]) for label, size in order]

    def table(self) -> Table:
        """A row per label and size; each label has a line of its own above its rows."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column("", no_wrap=True)
        for name in (
            "runs",
            "done",
            "words seen\na run",
            "parameters",
            "memory\nMiB",
            "disk\nMiB",
            "hours\na run",
            "all",
        ):
            table.add_column(name, justify="right", no_wrap=True)
        above = None
        for label, size, runs in self.cells():
            if label != above:
                table.add_row(Text(label, style="bold"))
                above = label
            one = [run.estimate for run in runs]
            todo = [run for run in runs if run.seconds]
            table.add_row(
                f"  {readable_size(size)}",
                f"{len(runs)}",
                f"{sum(found.done for found in one) or ''}",
                _count(median(found.words_seen for found in one)),
                _count(median(found.parameters for found in one)),
                f"{max(run.memory_bytes for run in runs) / 2**20:,.0f}",
                f"{_bytes(runs) / 2**20:,.0f}",
                _hours(median(run.seconds for run in todo) if todo else 0.0),
                _hours(sum(run.seconds for run in runs)),
            )
        return table

    def totals(self) -> list[str]:
        """Sums over all runs, and what the figures rest on."""
        import torch

        from pairscale.machine import available_cores, fit_memory
        from pairscale.sizes import clock
        from train.estimate import corpus_described
        from train.loop.device import takes_gpu

        found = [run.estimate for run in self.runs]
        done = sum(one.done for one in found)
        seconds, scoring = sum(run.seconds for run in self.runs), sum(run.scoring_seconds for run in self.runs)
        gpus = torch.cuda.device_count()
        checkpoints = max((one.checkpoint_bytes for one in found if not one.done), default=0)
        todo = [run for run in self.runs if run.seconds]
        at_once = 1 if gpus and any(takes_gpu(run.config) for run in todo) else min(available_cores(), len(todo))
        if at_once > 1:
            at_once = fit_memory(at_once, max(run.memory_bytes for run in todo))
        together = sum(sorted((run.memory_bytes for run in todo), reverse=True)[:at_once])
        lines = [
            f"{len(found):,} runs ({done:,} done already), {_count(sum(one.words_seen for one in found))} words seen, "
            f"{clock(seconds)} of one process ({clock(scoring)} of it scoring)"
            + (f"; on {at_once} cores, a run on each, about {clock(seconds / at_once)}" if at_once > 1 else ""),
            f"{_bytes(self.runs) / 2**20:,.0f} MiB of disk, and up to {checkpoints / 2**20:,.0f} MiB more for each run "
            "that trains; memory is of one run, the program included"
            + (f": {at_once} at a time take up to {together / 2**20:,.0f} MiB" if at_once > 1 else ""),
        ]
        lines += dict.fromkeys(f"corpus {corpus_described(run.config)}" for run in self.runs)
        rates: dict[str, dict[str, None]] = {}
        for label, _, runs in self.cells():
            for run in runs:
                told = f"{run.estimate.words_per_s:,.0f} words/s ({run.estimate.rate_is})"
                rates.setdefault(label, {}).setdefault(told)
        lines += [f"at {', '.join(told)}: {label}" for label, told in rates.items()]
        if any(one.guessed for one in found):
            told = "tokens a word and vocabulary are guesses where a corpus is not prepared: python -m corpora"
            lines.append(as_typed(told))
        return lines


def _bytes(runs: Iterable[Planned]) -> int:
    """On the disk, of what stays."""
    return sum(run.estimate.disk_bytes + run.score_bytes for run in runs)


def _count(number: float) -> str:
    """1.25B: three digits are enough for an estimate."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return (
        "" if not seconds else f"{hours:,.0f}" if hours >= 100 else f"{hours:.2g}" if hours >= 0.1 else f"{hours:.3f}"
    )
