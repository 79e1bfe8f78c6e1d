"""The dry run of a sweep: what all its runs take together, as a table of models by sizes, and sums."""

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
from train.runs.labels import CurveNames, in_order, name_curves

if TYPE_CHECKING:
    from rich.table import Table

    from train.estimate import Estimate


WIDTH = 160  # of a table that goes to a file or a pipe


@dataclass
class Planned:
    """One run of a sweep. scoring_seconds, score_bytes, scoring_memory: of scores that are missing."""

    config: RunConfig
    estimate: Estimate
    scoring_seconds: float = 0.0
    score_bytes: int = 0
    scoring_memory: int = 0

    @property
    def memory_bytes(self) -> int:
        """Peak memory of its process, in training or in scoring."""
        return max(self.estimate.memory_bytes, self.scoring_memory)

    @property
    def seconds(self) -> float:
        """Time of the work that is left, in one process."""
        return (0.0 if self.estimate.done else self.estimate.seconds) + self.scoring_seconds


class Plan:
    """The runs of one command, collected one by one."""

    def __init__(self) -> None:
        self.runs: list[Planned] = []
        self.notes: list[str] = []
        self.begun = False

    def begin(self, text: str) -> None:
        """Print once what the plan begins with, as it takes a while."""
        if not self.begun:
            print(f"planning: {text} ...", file=sys.stderr, flush=True)
        self.begun = True

    def note(self, text: str) -> None:
        """Add a remark, once for all runs that share it."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, planned: Planned) -> None:
        """Add a run unless it is there."""
        if all(planned.estimate.run != run.estimate.run for run in self.runs):
            self.runs.append(planned)

    def show(self) -> None:
        """Print one run in full, several as a table."""
        from rich.console import Console  # here, so that a command that plans nothing starts sooner

        from pairscale.console import print_text
        from pairscale.tables import print_table
        from train.estimate import estimate_table

        console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
        if len(self.runs) == 1:
            (run,) = self.runs
            console.print(
                estimate_table(run.config, run.estimate, run.scoring_seconds, run.score_bytes, run.scoring_memory)
            )
        elif self.runs:
            print_table(console, self.table(), ("disk\nMiB", "done", "parameters", "memory\nMiB"))
            for line in self.totals():
                print_text(console, line)
        for text in self.notes + (self._curves().notes if len(self.runs) > 1 else []):
            print_text(console, text)

    def _curves(self) -> CurveNames:
        return name_curves({run.estimate.run: dataclasses.asdict(run.config.of_run()) for run in self.runs})

    def cells(self) -> list[tuple[str, str, list[Planned]]]:
        """Return the runs of each label (train/runs/labels.py) and size, in the order of both."""
        names = self._curves().names
        cells: dict[tuple[str, str], list[Planned]] = {}
        for run in self.runs:
            key = names[run.estimate.run], format_size(parse_size(run.config.sample.size))
            cells.setdefault(key, []).append(run)
        rank = {label: place for place, label in enumerate(in_order(label for label, _ in cells))}
        order = sorted(cells, key=lambda key: (rank[key[0]], parse_size(key[1])))
        return [(label, size, cells[label, size]) for label, size in order]

    def table(self) -> Table:
        """Return a table with a row per label and size, and a line with the label above its rows."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column("", no_wrap=True)
        names = ("runs", "done", "words seen\na run", "parameters", "memory\nMiB", "disk\nMiB", "hours\na run", "all")
        for name in names:
            table.add_column(name, justify="right", no_wrap=True)
        above = None
        for label, size, runs in self.cells():
            if label != above:
                table.add_row(Text(label, style="bold"))
                above = label
            estimates = [run.estimate for run in runs]
            todo = [run for run in runs if run.seconds]
            table.add_row(
                f"  {readable_size(size)}",
                f"{len(runs)}",
                f"{sum(one.done for one in estimates) or ''}",
                _count(median(one.words_seen for one in estimates)),
                _count(median(one.parameters for one in estimates)),
                f"{max(run.memory_bytes for run in runs) / 2**20:,.0f}",
                f"{_bytes(runs) / 2**20:,.0f}",
                _hours(median(run.seconds for run in todo) if todo else 0.0),
                _hours(sum(run.seconds for run in runs)),
            )
        return table

    def totals(self) -> list[str]:
        """Return sums over all runs, and the assumptions behind them."""
        import torch

        from pairscale.machine import available_cores, fit_memory
        from pairscale.sizes import clock
        from train.estimate import corpus_described
        from train.loop.device import bf16_warning, takes_gpu

        estimates = [run.estimate for run in self.runs]
        done = sum(one.done for one in estimates)
        seconds, scoring = sum(run.seconds for run in self.runs), sum(run.scoring_seconds for run in self.runs)
        gpus = torch.cuda.device_count()
        checkpoints = max((one.checkpoint_bytes for one in estimates if not one.done), default=0)
        todo = [run for run in self.runs if run.seconds]
        at_once = 1 if gpus and any(takes_gpu(run.config) for run in todo) else min(available_cores(), len(todo))
        if at_once > 1:
            at_once = fit_memory(at_once, max(run.memory_bytes for run in todo))
        together = sum(sorted((run.memory_bytes for run in todo), reverse=True)[:at_once])
        lines = [
            f"{len(estimates):,} runs ({done:,} done already), "
            f"{_count(sum(one.words_seen for one in estimates))} words seen, {clock(seconds)} of one process "
            f"({clock(scoring)} of it scoring)"
            + (f"; on {at_once} cores, a run on each, about {clock(seconds / at_once)}" if at_once > 1 else ""),
            f"{_bytes(self.runs) / 2**20:,.0f} MiB of disk, and up to {checkpoints / 2**20:,.0f} MiB more for each run "
            "that trains; memory is of one run, the program included"
            + (f": {at_once} at a time take up to {together / 2**20:,.0f} MiB" if at_once > 1 else ""),
        ]
        lines += dict.fromkeys(f"corpus {corpus_described(run.config)}" for run in self.runs)
        rates: dict[str, dict[str, None]] = {}
        for label, _, runs in self.cells():
            for run in runs:
                rate = f"{run.estimate.words_per_s:,.0f} words/s ({run.estimate.rate_is})"
                rates.setdefault(label, {}).setdefault(rate)
        lines += [f"at {', '.join(of_label)}: {label}" for label, of_label in rates.items()]
        if any(one.guessed for one in estimates):
            note = "tokens a word and vocabulary are guesses where a corpus is not prepared: python -m corpora"
            lines.append(as_typed(note))
        return lines + list(dict.fromkeys(filter(None, (bf16_warning(run.config) for run in todo))))


def _bytes(runs: Iterable[Planned]) -> int:
    """Return the bytes of runs on the disk, checkpoints apart."""
    return sum(run.estimate.disk_bytes + run.score_bytes for run in runs)


def _count(number: float) -> str:
    """Return a number in three digits: 1.25B."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"


def _hours(seconds: float) -> str:
    if not seconds:
        return ""
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.2g}" if hours >= 0.1 else f"{hours:.3f}"
