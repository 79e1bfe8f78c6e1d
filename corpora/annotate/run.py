"""The work of the annotate command: the missing parts of a layer, parsed by several processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from corpora.annotate.config import ParserConfig
from corpora.annotate.layer import (
    MANIFEST,
    PART_SENTENCES,
    Layer,
    layer_folder,
    layer_manifest,
    part_made,
    part_path,
    write_layer,
    write_part,
)
from corpora.annotate.parsers.parser import Parser, parser_of, versions
from corpora.annotate.processes import in_processes
from corpora.config import AnnotateConfig, CorpusConfig, check_chosen
from corpora.prepare import corpus_folder, is_prepared, prepare_text
from corpora.text import TextStore
from pairscale.errors import StoreError
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
    folder = layer_folder(corpus_folder(config), config.parser.name)
    chosen = parser_of(config.parser)
    made = {  # before the text is prepared, which may take long
        "parser": type(config.parser).__name__.removesuffix("Config").lower(),
        "model": chosen.digest(config.parser, config.corpus),
        "packages": versions(chosen),
    }
    if config.dry_run and not is_prepared(config):
        console.print(f"to be prepared: {corpus_folder(config) / 'text'}", soft_wrap=True)
        console.print(f"to be parsed: {folder}", soft_wrap=True)
        return None
    text = prepare_text(config)
    work = Work(config.parser, config.corpus, text, folder, {"text": text.digest, **made}, PART_SENTENCES)
    processes = config.processes or available_cores()
    if config.dry_run:
        work.check()
        _print_state(console, work, processes)
        return None
    started, before = time.monotonic(), work.missing()
    with only_process(folder.parent / f".{folder.name}.lock", folder, wait=None):
        work.check()
        if not (folder / MANIFEST).exists():
            text.verify()
            _write_parts(work, work.missing(), processes)
            write_layer(folder, text, work.made, work.part_sentences)
    layer = Layer(folder, text)
    _print_result(console, layer, time.monotonic() - started if before else 0.0)
    return layer


@dataclass(frozen=True)
class Work:
    """The parts of a layer, and what they are made of."""

    parser: ParserConfig
    corpus: CorpusConfig
    text: TextStore
    folder: Path
    made: dict[str, Any]
    part_sentences: int

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
        missing = set(self.missing())
        recorded = [part_made(part_path(self.folder, number)) for number in self.parts if number not in missing]
        if (self.folder / MANIFEST).exists():
            recorded.append(layer_manifest(self.folder)["made"])
        for other in recorded:
            for key, value in self.made.items():
                if other.get(key) != value:
                    raise StoreError(
                        f"{self.folder}: made with {key}={_short(other.get(key))}, now {_short(value)}; give the other "
                        "layer its own parser.name, or remove the folder"
                    )


def _short(value: Any) -> str:
    """Return a digest or versions, short enough for a message."""
    if isinstance(value, dict):
        return " ".join(f"{name} {number}" for name, number in value.items())
    return str(value)[:16]


def _write_parts(work: Work, numbers: Sequence[int], processes: int) -> None:
    """Write the parts of `numbers`, showing how far they are."""
    whole, missing = work.words(work.parts), work.words(numbers)
    of = f" in {processes} processes" if min(processes, len(numbers)) > 1 else ""
    with Activity(f"parsing {work.corpus.name}{of}", whole, "words", completed=whole - missing) as activity:
        for number in in_processes(_parser_of_parts, (work,), numbers, processes):
            activity.completed += work.words([number])


def _parser_of_parts(work: Work) -> Callable[[int], int]:
    """Return a function that parses and writes a part, and returns its number."""
    parser = work.load()

    def write(number: int) -> int:
        rows = work.sentences(number)
        trees = parser.trees(list(work.text.sentences(rows)), rows.start)
        write_part(part_path(work.folder, number), trees, work.made)
        return number

    return write


def _print_result(console: Console, layer: Layer, seconds: float) -> None:
    words = int(layer.manifest["words"])
    console.print(f"{layer.name}: {len(layer):,} sentences, {words:,} words as Universal Dependencies count them")
    if seconds:
        own, others = peak_memory(), peak_memory(children=True)
        memory = f"{own / 2**20:,.0f} MiB" + (f" and {others / 2**20:,.0f} MiB per process" if others > own else "")
        console.print(f"{seconds:,.1f} s, peak memory {memory}")
    console.print(f"in {layer.folder}", soft_wrap=True)


def _print_state(console: Console, work: Work, processes: int) -> None:
    """Print which parts are there, and the time and disk that the others need."""
    missing = work.missing()
    there = f"{len(work.parts) - len(missing):,} of {len(work.parts):,} parts"
    console.print(f"{'parsed' if (work.folder / MANIFEST).exists() else there}: {work.folder}", soft_wrap=True)
    if missing:
        words = work.words(missing)
        rate = _rate(work, missing[0]) * min(processes, len(missing))
        console.print(
            f"{words:,} words to be parsed: about {clock(words / rate)} ({rate:,.0f} words/s, {processes} processes), "
            f"{words * WORD_BYTES / 2**20:,.0f} MiB of disk"
        )


def _rate(work: Work, number: int) -> float:
    """Return the words per second that one process parses, measured on the first sentences of a part."""
    rows, counts = work.sentences(number), work.text.words
    trees = work.load().trees(list(work.text.sentences(rows)), rows.start)
    started, words = time.monotonic(), 0
    for row, _ in zip(rows, trees, strict=True):
        words += int(counts[row])
        if time.monotonic() - started > TRIED_SECONDS:
            break
    return words / (time.monotonic() - started)
