"""The dry run of a command: what its runs take, each and together, as a table of models by sizes, and sums."""

from __future__ import annotations

import dataclasses
import sys
from statistics import median
from typing import TYPE_CHECKING

from pairscale import as_typed
from pairscale.sizes import clock, format_size, parse_size, plural, readable_size
from train.config import RunConfig
from train.runs.labels import CurveNames, in_order, name_curves

if TYPE_CHECKING:
    from train.estimate import Estimate

WIDTH = 160  # of a table that goes to a file or a pipe
MIB = 2**20
HEADINGS = ("", "runs", "done", "words seen\na run", "steps\na run", "parameters", "memory\nMiB", "disk\nMiB",
            "hours\na run", "all")  # fmt: skip


class Plan:
    """The runs of one command, collected one by one."""

    def __init__(self) -> None:
        self.runs: list[Estimate] = []
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Add a remark, once for all runs that share it."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, run: Estimate) -> None:
        """Add a run unless it is there."""
        if all(run.name != other.name for other in self.runs):
            self.runs.append(run)

    def show(self) -> None:
        """Print the table, and below it sums, assumptions and notes."""
        if not self.runs:
            return
        from rich.console import Console  # here, so that a command that plans nothing starts sooner

        from pairscale.console import print_text
        from pairscale.tables import filled_table, print_table

        console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
        table = filled_table(HEADINGS, self.rows(), HEADINGS[:1])
        print_table(console, table, ("disk\nMiB", "done", "parameters", "memory\nMiB"))
        for line in [*self.totals(), *self.notes, *(self._curves().notes if len(self.runs) > 1 else [])]:
            print_text(console, line)

    def _curves(self) -> CurveNames:
        return name_curves({run.name: dataclasses.asdict(run.config.of_run()) for run in self.runs})

    def cells(self) -> list[tuple[str, str, list[Estimate]]]:
        """Return the runs of each label (train/runs/labels.py) and size, in the order of both."""
        names = self._curves().names
        cells: dict[tuple[str, str], list[Estimate]] = {}
        for run in self.runs:
            key = names[run.name], format_size(parse_size(run.config.sample.size))
            cells.setdefault(key, []).append(run)
        rank = {label: place for place, label in enumerate(in_order(label for label, _ in cells))}
        order = sorted(cells, key=lambda key: (rank[key[0]], parse_size(key[1])))
        return [(label, size, cells[label, size]) for label, size in order]

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row per label and size, and above its rows a row with the label alone."""
        rows: list[tuple[str, ...]] = []
        above = None
        for label, size, runs in self.cells():
            if label != above:
                rows.append((above := label, *[""] * (len(HEADINGS) - 1)))
            todo = [run.seconds for run in runs if run.seconds]
            row = (
                f"  {readable_size(size)}",
                f"{len(runs)}",
                f"{sum(run.done for run in runs) or ''}",
                _count(median(run.words_seen for run in runs)),
                f"{median(run.steps for run in runs):,.0f}",
                _count(median(run.parameters for run in runs)),
                f"{max(run.memory_bytes for run in runs) / MIB:,.0f}",
                f"{sum(run.disk_bytes for run in runs) / MIB:,.0f}",
                _hours(median(todo)) if todo else "",
                _hours(sum(todo)) if todo else "",
            )
            rows.append(row)
        return rows

    def totals(self) -> list[str]:
        """Return sums over all runs, and the assumptions behind them."""
        from train.loop.device import bf16_warning

        seconds, scoring = sum(run.seconds for run in self.runs), sum(run.scoring_seconds for run in self.runs)
        todo = [run for run in self.runs if run.seconds]
        time = f"{clock(seconds)} of one process ({clock(scoring)} of it scoring)"
        memory = "memory is of one run, the program included"
        if (count := _at_once(todo)) > 1:
            time += f"; on {count} cores, a run on each, about {clock(seconds / count)}"
            together = sum(sorted((run.memory_bytes for run in todo), reverse=True)[:count])
            memory += f": {count} at a time take up to {together / MIB:,.0f} MiB"
        disk = f"{sum(run.disk_bytes for run in self.runs) / MIB:,.0f} MiB of disk"
        if snapshots := sum(run.snapshot_bytes for run in self.runs):
            disk += f" ({snapshots / MIB:,.0f} MiB of it snapshots)"
        checkpoints = max((run.checkpoint_bytes for run in self.runs if not run.done), default=0)
        lines = [
            f"{plural(len(self.runs), 'run')} ({sum(run.done for run in self.runs):,} done already), "
            f"{_count(sum(run.words_seen for run in self.runs))} words seen, {time}",
            f"{disk}, and up to {checkpoints / MIB:,.0f} MiB more for each run that trains; {memory}",
        ]
        lines += [line for run in self.runs for line in _text(run.config)]
        cells = ((label, run) for label, _, runs in self.cells() for run in runs)
        lines += [f"at {run.words_per_s:,.0f} words/s ({run.rate_is}): {label}" for label, run in cells]
        if any(run.config.model.counted for run in self.runs):
            lines.append("parameters, memory and disk of n-gram models are upper limits")
        if any(run.guessed for run in self.runs):
            lines.append(
                "A corpus is not prepared, so tokens per word and the vocabulary are guesses, and nothing checks that "
                f"its text is large enough. {as_typed('python -m corpora')} prepares it."
            )
        return list(dict.fromkeys(filter(None, [*lines, *(bf16_warning(run.config) for run in todo)])))


def _at_once(todo: list[Estimate]) -> int:
    """Return how many runs train at a time here: one on a GPU, else as many as there are cores and memory for."""
    import torch

    from pairscale.machine import available_cores, fit_memory
    from train.loop.device import takes_gpu

    if not todo or (torch.cuda.device_count() and any(takes_gpu(run.config) for run in todo)):
        return 1
    return fit_memory(min(available_cores(), len(todo)), max(run.memory_bytes for run in todo))


def _text(config: RunConfig) -> list[str]:
    """Return the corpus of a run with the bytes that it takes or would take on the disk, and what its filter does."""
    from corpora.prepare import corpus_folder, store_bytes

    folder = corpus_folder(config)
    prepared, text = store_bytes(config)
    store = f"{prepared / MIB:,.0f} MiB in {folder}" if prepared else f"not prepared in {folder}"
    more = f", about {text / MIB:,.0f} MiB more to be prepared" if text else ""
    lines = [f"corpus {config.corpus.name}: {store}{more}"]
    if config.filter is not None and config.ablate.acts:
        lines.append(
            f"filter={config.filter.name}, ablate.action={config.ablate.action}: python -m corpora says how much it "
            "leaves out; sizes and times here are those of the full text"
        )
    return [*lines, *filter(None, [config.unused_filter])]


def _count(number: float) -> str:
    """Return a number in three digits: 1.25B."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.2g}" if hours >= 0.1 else f"{hours:.3f}"
