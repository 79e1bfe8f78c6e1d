"""Print the dry run of a command, which is a table of the costs of runs, by model and size, and the totals."""

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

WIDTH = 160  # width of a table that is written to a file or a pipe
MIB = 2**20
HEADINGS = ("", "runs", "done", "words seen\nper run", "steps\nper run", "parameters", "memory\nMiB", "disk\nMiB",
            "hours\nper run", "hours\nin all")  # fmt: skip


class Plan:
    """The runs of one command, collected one by one."""

    def __init__(self) -> None:
        self.runs: list[Estimate] = []
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Add a remark unless another run has added it."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, run: Estimate) -> None:
        """Add a run unless it was added before."""
        if all(run.name != other.name for other in self.runs):
            self.runs.append(run)

    def show(self) -> None:
        """Print the table, followed by totals, assumptions and notes."""
        if not self.runs:
            return
        from rich.console import Console  # imported here, so that commands that don't plan start faster

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
        """Return the runs of each curve (named by train/runs/labels.py) and size, sorted by both."""
        names = self._curves().names
        cells: dict[tuple[str, str], list[Estimate]] = {}
        for run in self.runs:
            key = names[run.name], format_size(parse_size(run.config.sample.size))
            cells.setdefault(key, []).append(run)
        rank = {label: place for place, label in enumerate(in_order(label for label, _ in cells))}
        order = sorted(cells, key=lambda key: (rank[key[0]], parse_size(key[1])))
        return [(label, size, cells[label, size]) for label, size in order]

    def rows(self) -> list[tuple[str, ...]]:
        """Return one row per curve and size, with a heading row above each curve."""
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
        """Return the totals over all runs, and the assumptions behind them."""
        from train.loop.device import bf16_warning

        seconds, scoring = sum(run.seconds for run in self.runs), sum(run.scoring_seconds for run in self.runs)
        todo = [run for run in self.runs if run.seconds]
        count = _at_once(todo)
        cores = f" on {count} cores" if count > 1 else ""
        compute = f"{clock(seconds)} of compute" if count > 1 else "one process"
        time = f"Time: about {clock(seconds / count)}{cores} ({compute}, {clock(scoring)} of it for scoring)."
        largest = max(run.memory_bytes for run in todo or self.runs)
        memory = f"Memory: up to {largest / MIB:,.0f} MiB per run, including the program"
        if count > 1:
            together = sum(sorted((run.memory_bytes for run in todo), reverse=True)[:count])
            memory += f"; up to {together / MIB:,.0f} MiB for {count} runs at a time"
        disk = f"Disk: {sum(run.disk_bytes for run in self.runs) / MIB:,.0f} MiB"
        if snapshots := sum(run.snapshot_bytes for run in self.runs):
            disk += f", {snapshots / MIB:,.0f} MiB of it for snapshots"
        checkpoints = max((run.checkpoint_bytes for run in self.runs if not run.done), default=0)
        lines = [
            f"{plural(len(self.runs), 'run')} ({sum(run.done for run in self.runs):,} already done), "
            f"{_count(sum(run.words_seen for run in self.runs))} words in all, counting repeats.",
            time,
            f"{memory}.",
            f"{disk}, and up to {checkpoints / MIB:,.0f} MiB more for each run while it trains.",
        ]
        lines += [line for run in self.runs for line in _text(run.config)]
        cells = ((label, run) for label, _, runs in self.cells() for run in runs)
        lines += [f"Speed: {run.words_per_s:,.0f} words/s ({run.rate_is}) for {label}." for label, run in cells]
        if any(run.config.model.counted for run in self.runs):
            lines.append("Parameters, memory and disk of n-gram models are upper limits.")
        if any(run.guessed for run in self.runs):
            lines.append(
                "The corpus is not prepared yet, so tokens per word and the size of the vocabulary are guesses, and "
                f"the text may turn out too small. To prepare it, run {as_typed('python -m corpora')} with the same "
                "corpus and tokenizer."
            )
        return list(dict.fromkeys(filter(None, [*lines, *(bf16_warning(run.config) for run in todo)])))


def _at_once(todo: list[Estimate]) -> int:
    """Return how many runs train at a time on this machine: one on a GPU, or as many as cores and memory allow."""
    import torch

    from pairscale.machine import available_cores, fit_memory
    from train.loop.device import takes_gpu

    if not todo or (torch.cuda.device_count() and any(takes_gpu(run.config) for run in todo)):
        return 1
    return fit_memory(min(available_cores(), len(todo)), max(run.memory_bytes for run in todo))


def _text(config: RunConfig) -> list[str]:
    """Describe a run's corpus, its disk space, and any filter."""
    from corpora.prepare import corpus_folder, store_bytes

    folder = corpus_folder(config)
    prepared, text = store_bytes(config)
    store = f"{prepared / MIB:,.0f} MiB in {folder}" if prepared else f"not prepared yet (folder {folder})"
    more = f"; preparing it takes about {text / MIB:,.0f} MiB more" if text else ""
    lines = [f"Corpus {config.corpus.name}: {store}{more}."]
    if config.filter is not None and config.ablate.acts:
        lines.append(
            f"filter={config.filter.name}, ablate.action={config.ablate.action}: sizes and times are for the full "
            "text. Run python -m corpora to see how much the filter changes."
        )
    return [*lines, *filter(None, [config.unused_filter])]


def _count(number: float) -> str:
    """Format a number with three digits, such as 1.25B."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.2g}" if hours >= 0.1 else f"{hours:.3f}"
