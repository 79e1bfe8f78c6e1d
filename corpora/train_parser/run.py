"""The work of the train_parser command: train a parser, score it, and print its scores beside published ones.

store/parsers/<name>/
    config.cfg, meta.json, tagger/, parser/, ...    the pipeline, as spacy.load reads it
    manifest.json       written last: treebank, settings, versions, seconds, scores
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd
from rich.console import Console

from corpora.annotate.config import SpacyConfig
from corpora.annotate.parsers.parser import parser_of
from corpora.annotate.parsers.spacy import SpacyParser
from corpora.annotate.tree import Tree
from corpora.train_parser.config import TrainParserConfig
from corpora.train_parser.scores import METRICS, scores
from corpora.train_parser.treebank import Treebank
from pairscale.command.schemas import listed
from pairscale.console import print_text
from pairscale.errors import ConfigError, StoreError
from pairscale.files import only_process, write_json
from pairscale.machine import peak_memory
from pairscale.progress import with_progress
from pairscale.schema import NonNegative, read_json
from pairscale.sizes import clock
from pairscale.tables import plain_table, print_table

VERSION = 1
SPACY = "spacy"
MANIFEST = "manifest.json"
SCORED = ("dev", "test")
INPUTS = {"gold": "gold words", "raw": "raw sentences"}  # what the parser is given
PUBLISHED = Path(__file__).with_name("published.csv")
HEADINGS = {"words": "words", "upos": "UPOS", "xpos": "XPOS", "feats": "UFeats", "lemmas": "lemmas", "uas": "UAS"}
HEADINGS |= {"las": "LAS", "las_subtypes": "with subtypes"}


class ParserManifest(TypedDict):
    """Schema of manifest.json. made: what the parser follows from; scores: 0 to 1, by "dev gold", "test raw", ..."""

    made: dict[str, Any]
    seconds: NonNegative
    peak_mib: NonNegative
    scores: dict[str, dict[str, float]]


def train_parser(config: TrainParserConfig) -> None:
    """Train the parser of a configuration, unless that is done, and print its scores.

    Raises InputError for a broken treebank, ConfigError without spaCy and for values that do not fit, StoreError if
    another parser has its name.
    """
    parser_of(SpacyConfig(name=SPACY, model=""))  # raises ConfigError if it is not installed
    treebank = Treebank.of(listed(config.treebank))
    trees = {split: treebank.trees(split) for split in treebank.files}
    made = {
        "treebank": treebank.name,
        "files": treebank.digests,
        "language": config.language or treebank.language,
        "steps": config.steps,
        "seed": config.seed,
        "versions": {name: version(name) for name in ("spacy", "thinc")},
    }
    if not made["language"]:
        raise ConfigError(f"language=null: {treebank.name} does not say it as en_ewt does; give language=CODE")
    folder = Path(config.paths.store) / "parsers" / (config.name or treebank.name)
    with only_process(folder.parent / f".{folder.name}.lock", folder.parent, wait=None):
        done = (folder / MANIFEST).exists()
        manifest = _read(folder, made) if done else _train(folder, treebank, trees, made)
    _print(folder, manifest, {split: sum(map(len, trees[split])) for split in trees})


def _read(folder: Path, made: dict[str, Any]) -> ParserManifest:
    manifest = read_json(folder / MANIFEST, ParserManifest, StoreError, f"remove {folder} to train it again", VERSION)
    if changed := [key for key, value in made.items() if manifest["made"].get(key) != value]:
        raise StoreError(f"{folder}: trained with other {', '.join(changed)}; give name=NAME, or remove it")
    return manifest


def _train(folder: Path, treebank: Treebank, trees: dict[str, list[Tree]], made: dict[str, Any]) -> ParserManifest:
    """Train and score in a temporary folder, which then gets its name: a killed command leaves no half parser."""
    from corpora.train_parser.training import train

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        started = time.monotonic()
        trained = train(treebank, made["language"], made["steps"], made["seed"], Path(temporary))
        seconds = time.monotonic() - started
        scored = {
            f"{split} {given}": scores(trees[split], parsed)
            for split in SCORED
            for given, parsed in _parsed(trained, trees[split], split)
        }
        peak = peak_memory() / 2**20
        manifest = ParserManifest(made=made, seconds=seconds, peak_mib=peak, scores=scored)
        write_json(trained / MANIFEST, {"version": VERSION, **manifest})
        if folder.exists():  # without its manifest
            shutil.rmtree(folder)
        os.replace(trained, folder)
    return manifest


def _parsed(trained: Path, gold: list[Tree], split: str) -> Iterator[tuple[str, list[Tree]]]:
    """Yield each of INPUTS and the trees of the sentences parsed from it, as corpora.annotate makes them."""
    parser = SpacyParser(SpacyConfig(name=SPACY, model=str(trained)))
    for given in INPUTS:
        if given == "gold":
            raw_text = parser.nlp.tokenizer
            parser.nlp.tokenizer = _gold_words(parser.nlp.vocab, gold)
        trees = parser.trees([tree.sentence for tree in gold], 0)
        counted = ((len(tree), tree) for tree in trees)
        parsed = list(with_progress(counted, f"parsing {split}, {INPUTS[given]}", sum(map(len, gold)), "words"))
        if given == "gold":
            parser.nlp.tokenizer = raw_text
            # Words of a contraction that hides them ("du": de, le) share its characters, which spaCy cannot express.
            parsed = [replace(tree, starts=own.starts, ends=own.ends) for own, tree in zip(gold, parsed, strict=True)]
        yield given, parsed


def _gold_words(vocab: Any, trees: list[Tree]) -> Callable[[str], Any]:
    """Return a tokenizer of spaCy that gives each sentence, in order, the words that it has in the treebank."""
    from spacy.tokens import Doc

    def docs() -> Iterator[Any]:
        for tree in trees:
            spaces = [end < start for end, start in zip(tree.ends, tree.starts[1:], strict=False)]
            yield Doc(vocab, words=tree.words, spaces=[*spaces, False])

    made = docs()
    return lambda text: next(made)


def _print(folder: Path, manifest: ParserManifest, words: dict[str, int]) -> None:
    console = Console(highlight=False, markup=False)
    name = manifest["made"]["treebank"]
    published = pd.read_csv(PUBLISHED)
    published = published[published["treebank"] == name.removesuffix("-ud")]
    sizes = ", ".join(f"{count:,} in {split}" for split, count in words.items())
    table = plain_table(f"{name}, words: {sizes}")
    for heading in ("parser", "split", "given"):
        table.add_column(heading, no_wrap=True)
    for heading in HEADINGS.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for scored, values in manifest["scores"].items():
        split, given = scored.split()
        table.add_row("this one", split, INPUTS[given], *(f"{100 * values[metric]:.2f}" for metric in METRICS))
    for row in published.to_dict("records"):
        cells = (f"{row[metric]:.2f}" if row.get(metric, 0) > 0 else "" for metric in METRICS)
        table.add_row(f"{row['parser']}, UD {row['release']}", "test", row["given"], *cells)
    print_table(console, table, ("words", "XPOS", "split"))
    if len(published):
        note = "their systems found the sentences in raw text; releases of a treebank differ"
        print_text(console, f"published scores ({PUBLISHED.name} has the sources): {note}")
    print_text(console, f"trained in {clock(manifest['seconds'])}, peak memory {manifest['peak_mib']:,.0f} MiB")
    print_text(console, str(folder))
