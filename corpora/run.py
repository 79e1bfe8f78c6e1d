"""What `python -m corpora` does: prepare a corpus and print what is in it."""

from __future__ import annotations

import resource
import sys
import time

from rich.console import Console
from rich.table import Table

from corpora.config import CorporaConfig
from corpora.prepare import Corpus, prepare
from corpora.text import SPLITS


def prepare_corpus(config: CorporaConfig) -> None:
    """Prepare the corpus that `config` describes and print its sizes; with dry_run=true only say what is there."""
    console = Console(highlight=False, markup=False)
    if config.dry_run:
        from corpora.prepare import corpus_folder, filter_folder, tokenizer_folder

        pattern = config.corpus.filter
        filters = [] if pattern is None else [filter_folder(config, pattern)]
        for folder in (corpus_folder(config) / "text", tokenizer_folder(config), *filters):
            state = "prepared" if (folder / "manifest.json").exists() else "to be prepared"
            console.print(f"{state}: {folder}", soft_wrap=True)
        return
    started = time.monotonic()
    corpus = prepare(config)
    if config.tokenizer.fit_on == "train":
        corpus.prepare_store()
    vocabulary = len(corpus.tokenizer)
    _ = corpus.filter  # prepared here, if there is one
    seconds = time.monotonic() - started
    console.print(_table(corpus))
    for line in _tokenizer(corpus, vocabulary):
        console.print(line, soft_wrap=True)
    if corpus.filter is not None:
        found = corpus.filter.manifest
        console.print(
            f"corpus.filter={found['pattern']} takes {found['sentences']:,} of {found['of_sentences']:,} sentences and "
            f"{found['words']:,} of {found['of_words']:,} words out of the train split",
            markup=False,
            soft_wrap=True,
        )
    words = sum(split["words"] for split in corpus.text.manifest["splits"].values())
    console.print(f"{seconds:,.1f} s, {words / seconds:,.0f} words/s, {_peak_memory() / 2**20:,.0f} MiB at the peak")
    console.print(f"in {corpus.text.folder.parent}", soft_wrap=True)


def _table(corpus: Corpus) -> Table:
    manifest = corpus.text.manifest
    table = Table(title=f"{corpus.config.corpus.name} ({manifest['source']}); words: {manifest['reference']}")
    table.add_column("split")
    for name in ("documents", "sentences", "words", "characters"):
        table.add_column(name, justify="right")
    for split in SPLITS:
        sizes = manifest["splits"][split]
        table.add_row(split, *(f"{sizes[name]:,}" for name in ("documents", "sentences", "words", "characters")))
    return table


def _tokenizer(corpus: Corpus, vocabulary: int) -> list[str]:
    config = corpus.config.tokenizer
    held_out = corpus.held_out("valid", sys.maxsize)
    tokens = len(held_out.tokens) - held_out.sentences
    lines = [
        f"tokenizer {config.name}: {vocabulary:,} types, {tokens / held_out.words:.3f} tokens a word and "
        f"{held_out.unk / tokens:.2%} <unk> in the valid split"
    ]
    if corpus.store is not None:
        lines.append(f"tokens of all splits, <eos> included: {corpus.store.manifest['tokens']:,}")
    return lines


def _peak_memory() -> int:
    """Bytes, of this process and of any that it started."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
