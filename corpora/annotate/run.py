"""Implement `python -m corpora.annotate`, which parses the missing parts of an annotation in several processes."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from corpora.annotate.layer import (
    MADE,
    PART_SENTENCES,
    Layer,
    check_made,
    layer_folder,
    part_path,
    write_layer,
    write_part,
)
from corpora.annotate.parsers.parser import Parser, parser_of, versions
from corpora.annotate.processes import in_processes
from corpora.config import AnnotateConfig, CorpusConfig, ParserConfig, check_chosen
from corpora.kept import MANIFEST
from corpora.prepare import corpus_folder, is_prepared, prepare_text
from corpora.text import TextStore
from pairscale.files import only_process, write_json
from pairscale.machine import available_cores, peak_memory
from pairscale.progress import Activity
from pairscale.sizes import clock

WORD_BYTES = 8  # size of an annotation per word, measured on English
TRIED_SECONDS = 5.0  # how long a dry run parses to measure the speed


def annotate(config: AnnotateConfig) -> Layer | None:
    """Annotate a corpus with a parser, print the sizes of the annotation and return it. In a dry run, return None.

    Raises ConfigError or InputError if the parser cannot be used, and StoreError if the folder contains an annotation
    by another parser.
    """
    check_chosen(config.corpus)
    console = Console(highlight=False, markup=False)
    folder = layer_folder(corpus_folder(config), config.parser.name)
    chosen = parser_of(config.parser)
    made: dict[str, Any] = {  # errors are raised here, before the text is prepared, which may take a long time
        "parser": type(config.parser).__name__.removesuffix("Config").lower(),
        "model": chosen.digest(config.parser, config.corpus),
        "packages": versions(chosen),
    }
    if config.dry_run and not is_prepared(config):
        console.print(f"to be prepared: {corpus_folder(config) / 'text'}", soft_wrap=True)
        console.print(f"to be parsed: {folder}", soft_wrap=True)
        return None
    text = prepare_text(config)
    made["text"] = text.digest
    if config.dry_run:
        check_made(folder, made)
        _print_state(console, config, text, folder)
        return None
    started, before = time.monotonic(), missing_parts(folder, text)
    with only_process(folder.parent / f".{folder.name}.lock", folder, wait=None):
        check_made(folder, made)
        if not (folder / MANIFEST).exists():
            text.verify()
            write_json(folder / MADE, made)
            _write_parts(config, text, folder)
            write_layer(folder, text, PART_SENTENCES)
    layer = Layer(folder, text)
    _print_result(console, layer, time.monotonic() - started if before else 0.0)
    return layer


def missing_parts(folder: Path, text: TextStore) -> list[int]:
    """Return the numbers of the parts that are not written yet."""
    parts = range(-(-len(text) // PART_SENTENCES))
    return [number for number in parts if not part_path(folder, number).exists()]


def load_parser(config: ParserConfig, corpus: CorpusConfig) -> Parser:
    """Load a parser. Raises InputError or ConfigError if its model cannot be used."""
    return parser_of(config)(config, corpus)


def _words(text: TextStore, numbers: Sequence[int]) -> int:
    """Return the number of reference words in some parts. It is known before they are parsed."""
    starts = (number * PART_SENTENCES for number in numbers)
    return sum(int(text.words[start : start + PART_SENTENCES].sum()) for start in starts)


def _write_parts(config: AnnotateConfig, text: TextStore, folder: Path) -> None:
    """Write the missing parts and show their progress."""
    numbers, processes = missing_parts(folder, text), config.processes or available_cores()
    whole, missing = int(text.words.sum()), _words(text, numbers)
    of = f" in {processes} processes" if min(processes, len(numbers)) > 1 else ""
    made_of = config.parser, config.corpus, text, folder, PART_SENTENCES
    with Activity(f"parsing {config.corpus.name}{of}", whole, "words", completed=whole - missing) as activity:
        for number in in_processes(_parser_of_parts, made_of, numbers, processes):
            activity.completed += _words(text, [number])


def _parser_of_parts(
    config: ParserConfig, corpus: CorpusConfig, text: TextStore, folder: Path, size: int
) -> Callable[[int], int]:
    """Return a function that parses and writes the part with the given number. Parts have `size` sentences."""
    parser = load_parser(config, corpus)

    def write(number: int) -> int:
        first = number * size
        sentences = list(text.sentences(range(first, min(first + size, len(text)))))
        write_part(part_path(folder, number), parser.trees(sentences, first))
        return number

    return write


def _print_result(console: Console, layer: Layer, seconds: float) -> None:
    words = int(layer.manifest["words"])
    console.print(f"{layer.name}: {len(layer):,} sentences, {words:,} words (according to Universal Dependencies)")
    if seconds:
        own, others = peak_memory(), peak_memory(children=True)
        memory = f"{own / 2**20:,.0f} MiB" + (f" and {others / 2**20:,.0f} MiB per process" if others > own else "")
        console.print(f"{seconds:,.1f} s, peak memory {memory}")
    console.print(f"Written to {layer.folder}", soft_wrap=True)


def _print_state(console: Console, config: AnnotateConfig, text: TextStore, folder: Path) -> None:
    """Print how many parts are written, and how much time and disk space the others need."""
    missing, parts = missing_parts(folder, text), -(-len(text) // PART_SENTENCES)
    there = "parsed" if (folder / MANIFEST).exists() else f"{parts - len(missing):,} of {parts:,} parts"
    console.print(f"{there}: {folder}", soft_wrap=True)
    if missing:
        words, processes = _words(text, missing), config.processes or available_cores()
        rate = min(processes, len(missing)) * _rate(config, text, missing[0] * PART_SENTENCES)
        console.print(
            f"Parsing {words:,} words will take about {clock(words / rate)} ({rate:,.0f} words/s, "
            f"processes={processes}) and {words * WORD_BYTES / 2**20:,.0f} MiB of disk space."
        )


def _rate(config: AnnotateConfig, text: TextStore, first: int) -> float:
    """Measure how many words per second one process parses, starting at the sentence with the index `first`."""
    rows = range(first, min(first + PART_SENTENCES, len(text)))
    trees = load_parser(config.parser, config.corpus).trees(list(text.sentences(rows)), first)
    started, words = time.monotonic(), 0
    for row, _ in zip(rows, trees, strict=True):
        words += int(text.words[row])
        if time.monotonic() - started > TRIED_SECONDS:
            break
    return words / (time.monotonic() - started)
