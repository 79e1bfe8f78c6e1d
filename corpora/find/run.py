"""The work of the find command: search a corpus, print counts and sentences, write or read a sheet."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from corpora.annotate.layer import Layer, open_layer
from corpora.config import FindCommand
from corpora.constructions.config import FilterConfig
from corpora.constructions.matcher import Matcher
from corpora.constructions.matches import Matches, find_matches
from corpora.find.marked import marked, tree_table
from corpora.find.sheet import Share, read_sheet, write_sheet
from corpora.prepare import corpus_folder, prepare_text
from corpora.text import SPLITS, TextStore
from pairscale.command.compose import group_files
from pairscale.console import print_text
from pairscale.errors import ConfigError
from pairscale.seeds import permutation
from pairscale.tables import plain_table, print_table

MILLION = 10**6


def find(config: FindCommand) -> None:
    """Print what the filter of a configuration matches in its corpus.

    Raises ConfigError without a filter or a layer, the errors of `prepare`, `find_matches` and `read_sheet`.
    """
    if config.filter is None:
        available = ", ".join(group_files("filter"))
        raise ConfigError(f"filter=null: which construction? give filter=NAME; available: {available}")
    text = prepare_text(config)
    folder = corpus_folder(config)
    layer = open_layer(folder, config.ablate.layer, text)
    matches = find_matches(folder, text, layer, config.filter)
    console = Console(highlight=False)
    _print_examples(console, config, text, layer, matches)
    print_table(console, _counts(config.filter, text, matches), ("share", "sentences"))
    if config.find.sheet is not None:
        for line in _sheet(config, Path(config.find.sheet), text, matches):
            print_text(console, line)


def _print_examples(console: Console, config: FindCommand, text: TextStore, layer: Layer, matches: Matches) -> None:
    """Print matching sentences of the train split, in the order of the text, with their trees if requested."""
    assert config.filter is not None
    train = np.intersect1d(matches.sentences, text.split_sentences("train"))
    chosen = np.sort(train[permutation(len(train), config.find.seed)[: config.find.show]])
    matcher = Matcher(config.filter)
    for sentence, tree in zip(chosen.tolist(), layer.trees(chosen), strict=True):
        occurrences = matcher.occurrences(tree)
        console.print(f"{sentence + 1:,}:", marked(tree, occurrences), soft_wrap=not console.is_terminal)
        if config.find.tree:
            print_table(console, tree_table(tree, occurrences), ("MORPH", "LEMMA"))
    if len(chosen):
        console.print()


def _counts(config: FilterConfig, text: TextStore, matches: Matches) -> Table:
    """Return the matches of each split and domain, and of all, per million reference words."""
    table = plain_table(f"{config.name}: {config.description}")
    for heading in ("", "matches", "per million words", "sentences", "share"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    every = np.arange(len(text))
    parts: dict[str, npt.NDArray[np.int64]] = {split: text.split_sentences(split) for split in SPLITS}
    if len(text.domains) > 1:
        of = text.domains_of(every)
        parts |= {f"domain {name}": np.flatnonzero(of == number) for number, name in enumerate(text.domains)}
    in_sentence = np.bincount(matches.anchored, minlength=len(text))
    for name, sentences in (parts | {"all": every}).items():
        words, number = int(text.words[sentences].sum()), int(in_sentence[sentences].sum())
        matching = int((in_sentence[sentences] > 0).sum())
        rates = ("", "", "")  # of a split without text
        if words:
            rates = (f"{MILLION * number / words:,.1f}", f"{matching:,}", f"{matching / len(sentences):.2%}")
        table.add_row(name, f"{number:,}", *rates)
    return table


def _sheet(config: FindCommand, path: Path, text: TextStore, matches: Matches) -> Iterator[str]:
    find = config.find
    if not path.exists():
        rows = write_sheet(path, text, matches, find.sentences, find.seed)
        yield f"{rows:,} sentences to judge in {path}: 1 (has the construction) or 0; the same command then reads it"
        return
    estimates = read_sheet(path, text, matches, find.seed)
    yield f"precision {_share(estimates.precision)}"
    yield f"recall    {_share(estimates.recall)}"


def _share(share: Share) -> str:
    return f"{share.value:.1%} (95% interval {share.low:.1%} to {share.high:.1%}, {share.judged:,} sentences)"
