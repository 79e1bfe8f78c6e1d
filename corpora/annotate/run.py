"""The work of the annotate command: the missing parts of a layer, parsed by several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from corpora.annotate.config import ParserConfig
from corpora.annotate.layer import MANIFEST, PART_SENTENCES, Layer, layer_folder, layer_manifest, part_path, write_layer
from corpora.annotate.parsers.parser import Parser, parser_of, versions
from corpora.annotate.parts import part_made, write_part
from corpora.config import AnnotateConfig, CorpusConfig, check_chosen
from corpora.prepare import corpus_folder, is_prepared, prepare_text
from corpora.text import TextStore
from pairscale.errors import RunError, StoreError
from pairscale.files import only_process
from pairscale.machine import available_cores, peak_memory
from pairscale.progress import Activity
from pairscale.sizes import clock

WORD_BYTES = 26  # of a layer: three numbers of four bytes, five codes of two or four, and the dictionaries
TRIED_SECONDS = 5.0  # for which a dry run parses, to know the rate


def annotate(config: AnnotateConfig) -> Layer | None:
    """Write the layer of a configured corpus and parser, print its sizes and return it; None of a dry run.

    Raises ConfigError and InputError for a parser that cannot be used, StoreError for a layer by another one.
    """
    check_chosen(config.corpus)
    console = Console(highlight=False, markup=False)
    made = made_by(config)  # before the text is prepared, which may take long
    if config.dry_run:
        _print_state(console, config, made)
        return None
    work = Work.of(config, prepare_text(config), made)
    started, before = time.monotonic(), len(work.missing())
    with only_process(work.folder.parent / f".{work.folder.name}.lock", work.folder, wait=None):
        work.check()
        if not (work.folder / MANIFEST).exists():
            work.text.verify()
            _write_parts(work, work.missing(), config.processes or available_cores())
            write_layer(work.folder, work.text, work.made, work.part_sentences)
    layer = Layer(work.folder, work.text)
    _print_result(console, layer, time.monotonic() - started if before else 0.0)
    return layer


def made_by(config: AnnotateConfig) -> dict[str, Any]:
    """Return what a layer records of its parser. Raises ConfigError and InputError for one that is not there."""
    chosen = parser_of(config.parser)
    return {
        "parser": type(config.parser).__name__.removesuffix("Config").lower(),
        "model": chosen.digest(config.parser, config.corpus),
        "packages": versions(chosen),
    }


@dataclass(frozen=True)
class Work:
    """What the parts of a layer are made of. Its processes each get a copy."""

    parser: ParserConfig
    corpus: CorpusConfig
    text_folder: Path
    folder: Path
    made: dict[str, Any]
    part_sentences: int

    @classmethod
    def of(cls, config: AnnotateConfig, text: TextStore, made: dict[str, Any]) -> Work:
        """Return the work of a configuration; made: as `made_by` returns it."""
        folder = layer_folder(corpus_folder(config), config.parser.name)
        made = {"text": text.digest, **made}
        return cls(config.parser, config.corpus, text.folder, folder, made, PART_SENTENCES)

    @cached_property
    def text(self) -> TextStore:
        return TextStore(self.text_folder)

    def load(self) -> Parser:
        """Load the parser. Raises InputError and ConfigError for a model that cannot be used."""
        return parser_of(self.parser)(self.parser, self.corpus)

    @property
    def parts(self) -> range:
        """The numbers of all parts."""
        return range(-(-len(self.text) // self.part_sentences))

    def missing(self) -> list[int]:
        """Return the numbers of the parts that are not there."""
        return [number for number in self.parts if not part_path(self.folder, number).exists()]

    def sentences(self, number: int) -> range:
        """Return the indices of a part's sentences."""
        start = number * self.part_sentences
        return range(start, min(start + self.part_sentences, len(self.text)))

    def words(self, numbers: Sequence[int]) -> int:
        """Return the number of reference words in parts, which is known before they are parsed."""
        counts = self.text.words
        return sum(int(counts[rows.start : rows.stop].sum()) for rows in map(self.sentences, numbers))

    def check(self) -> None:
        """Raise StoreError for parts, or a whole layer, that were made of another text or by another parser."""
        there = [number for number in self.parts if part_path(self.folder, number).exists()]
        made = [part_made(part_path(self.folder, number)) for number in there]
        if (self.folder / MANIFEST).exists():
            made.append(layer_manifest(self.folder)["made"])
        for other in made:
            for key, value in self.made.items():
                if other.get(key) != value:
                    raise StoreError(
                        f"{self.folder}: made with {key}={_short(other.get(key))}, now {_short(value)}; give the other "
                        "layer its own parser.name, or remove the folder"
                    )

    def write(self, number: int, parser: Parser) -> None:
        """Parse and write a part."""
        rows = self.sentences(number)
        sentences = list(self.text.sentences(rows))
        write_part(part_path(self.folder, number), parser.trees(sentences, rows.start), self.made)


def _short(value: Any) -> str:
    """Return a digest or versions, short enough for a message."""
    if isinstance(value, dict):
        return " ".join(f"{name} {number}" for name, number in value.items())
    return str(value)[:16]


def _write_parts(work: Work, numbers: Sequence[int], processes: int) -> None:
    """Write the parts of `numbers`, showing how far they are."""
    processes = min(processes, len(numbers))
    whole, missing = work.words(work.parts), work.words(numbers)
    of = f" in {processes} processes" if processes > 1 else ""
    with Activity(f"parsing {work.corpus.name}{of}", whole, "words", completed=whole - missing) as activity:
        if processes < 2:
            parser = work.load()
            for number in numbers:
                work.write(number, parser)
                activity.completed += work.words([number])
            return
        with _pool(work, processes) as pool:
            for done in as_completed([pool.submit(_write_part, number) for number in numbers]):
                activity.completed += work.words([done.result()])


# The processes


class _Process:
    """One of the processes that parse. parser: None before its first part, whose errors reach the parent."""

    work: Work
    parser: Parser | None = None


@contextmanager
def _pool(work: Work, processes: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes, which end with the block, however it ends, and with this process."""
    context = multiprocessing.get_context("spawn")  # a fork would have the threads' locks, but not the threads
    with ProcessPoolExecutor(processes, context, _begin, (replace(work),)) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            raise RunError(
                f"parser={work.parser.name}: one of {processes} processes was killed, as where memory is short; give "
                "fewer processes; the same command goes on from the parts that are there"
            ) from None
        except BaseException:
            for child in multiprocessing.active_children():
                child.terminate()
            raise


def _begin(work: Work) -> None:
    """Begin a process of the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _Process.work = work


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _write_part(number: int) -> int:
    _Process.parser = _Process.parser or _Process.work.load()
    _Process.work.write(number, _Process.parser)
    return number


# What is printed


def _print_result(console: Console, layer: Layer, seconds: float) -> None:
    words = int(layer.manifest["words"])
    console.print(f"{layer.name}: {len(layer):,} sentences, {words:,} words as Universal Dependencies count them")
    if seconds:
        own, others = peak_memory(), peak_memory(children=True)
        memory = f"{own / 2**20:,.0f} MiB" + (f" and {others / 2**20:,.0f} MiB a process" if others > own else "")
        console.print(f"{seconds:,.1f} s, peak memory {memory}")
    console.print(f"in {layer.folder}", soft_wrap=True)


def _print_state(console: Console, config: AnnotateConfig, made: dict[str, Any]) -> None:
    """Print which parts are there, and the time and disk that the others need."""
    folder = layer_folder(corpus_folder(config), config.parser.name)
    if not is_prepared(config):
        console.print(f"to be prepared: {corpus_folder(config) / 'text'}", soft_wrap=True)
        console.print(f"to be parsed: {folder}", soft_wrap=True)
        return
    work = Work.of(config, prepare_text(config), made)
    work.check()
    missing = work.missing()
    there = f"{len(work.parts) - len(missing):,} of {len(work.parts):,} parts"
    state = "parsed" if (folder / MANIFEST).exists() else there
    console.print(f"{state}: {folder}", soft_wrap=True)
    if missing:
        words, processes = work.words(missing), config.processes or available_cores()
        rate = _rate(work, missing[0]) * min(processes, len(missing))
        console.print(
            f"{words:,} words to be parsed: about {clock(words / rate)} ({rate:,.0f} words/s, {processes} processes), "
            f"{words * WORD_BYTES / 2**20:,.0f} MiB of disk"
        )


def _rate(work: Work, number: int) -> float:
    """Return the words a second that one process parses, measured on the first sentences of a part."""
    rows, counts = work.sentences(number), work.text.words
    trees = work.load().trees(list(work.text.sentences(rows)), rows.start)
    started, words = time.monotonic(), 0
    for row, _ in zip(rows, trees, strict=True):
        words += int(counts[row])
        if time.monotonic() - started > TRIED_SECONDS:
            break
    return words / (time.monotonic() - started)
