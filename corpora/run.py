"""Implement `python -m corpora`, which prepares a corpus and prints its sizes."""

import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from corpora.ablation.intervention import Intervention, write_listing
from corpora.annotate.layer import layer_folder, layer_names
from corpora.config import CorporaConfig, RegexFilter
from corpora.constructions.matches import matches_folder
from corpora.kept import MANIFEST
from corpora.prepare import Corpus, corpus_folder, prepare, tokenizer_folder
from corpora.text import SPLITS, UNITS
from pairscale.console import print_text
from pairscale.errors import ConfigError
from pairscale.machine import peak_memory
from pairscale.tables import filled_table, print_table

MOST_FILES = 4  # if there are more files than this, the table shows their number instead of their names


def prepare_corpus(config: CorporaConfig) -> None:
    """Prepare a corpus and print its sizes. With `dry_run=true`, only print what is already prepared.

    Raises the same errors as `prepare`, and ConfigError if `ablate.listing` is set but nothing is ablated.
    """
    console = Console(highlight=False, markup=False)
    if config.ablate.listing is not None and not config.ablate.acts:
        wanted = "" if config.filter else "filter=NAME and "
        raise ConfigError(
            f"ablate.listing={config.ablate.listing}: there is nothing to list, because no sentence is removed or "
            f"rewritten. Add {wanted}ablate.action=remove, control or keep_only."
        )
    if config.dry_run:
        _print_state(console, config)
        return
    started = time.monotonic()
    corpus = prepare(config)
    if config.tokenizer.fit_on == "train":
        corpus.prepare_store()
    vocabulary = len(corpus.tokenizer)
    intervention = corpus.intervention
    seconds = time.monotonic() - started
    print_table(console, _table(corpus), ("characters", "documents"))
    if len(corpus.text.domains) > 1:
        print_table(console, _domains(corpus), SPLITS[1:])
    for line in _tokenizer(corpus, vocabulary):
        print_text(console, line)
    if note := config.unused_filter:
        print_text(console, note)
    if intervention is not None:
        for line in _ablation(intervention, config.ablate.listing):
            print_text(console, line)
    words = sum(split["words"] for split in corpus.text.manifest["splits"].values())
    memory = peak_memory() + peak_memory(children=True)
    console.print(f"{seconds:,.1f} s, {words / seconds:,.0f} words/s, peak memory {memory / 2**20:,.0f} MiB")
    console.print(f"Written to {corpus.text.folder.parent}", soft_wrap=True)


def _print_state(console: Console, config: CorporaConfig) -> None:
    corpus, construction = corpus_folder(config), config.filter
    folders = [corpus / "text", tokenizer_folder(config)]
    if isinstance(construction, RegexFilter):
        folders.append(matches_folder(corpus, construction, None))
    elif construction is not None:
        layers = layer_names(corpus)
        folders += [layer_folder(corpus, name) for name in layers]
        if not layers:
            console.print(f"to be prepared: an annotation of {config.corpus.name}, with python -m corpora.annotate")
    for folder in folders:
        state = "prepared" if (folder / MANIFEST).exists() else "to be prepared"
        console.print(f"{state}: {folder}", soft_wrap=True)


def _ablation(intervention: Intervention, listing: str | None) -> list[str]:
    """Describe an ablation's effect on the train split. If `listing` is given, write its sentences to this CSV file."""
    sizes, balance = intervention.sizes, intervention.balance
    where = f" (annotation {sizes['layer']})" if sizes["layer"] else ""
    matching = sizes["matching"]
    lines = [
        f"filter={sizes['filter']} matches {matching['sentences']:,} of {sizes['of_sentences']:,} training sentences"
        f"{where}. They contain {matching['words']:,} of {sizes['of_words']:,} words.",
        f"ablate.action={sizes['action']} with ablate.dose={sizes['dose']} leaves out {len(intervention.skipped):,} "
        f"sentences and rewrites {sizes['rewritten']:,} ({sizes['words']:,} words in total).",
    ]
    if balance:
        removed, control = balance["removed"], balance["control"]
        lines.append(
            f"Matched control: {balance['same_class']:.1%} of the sentences have a control with the same source, "
            "length and decile of word frequency. Sentences with the construction have on average "
            f"{removed['words']:.2f} words (controls: {control['words']:.2f}), with a mean log frequency of "
            f"{removed['log_frequency']:.3f} (controls: {control['log_frequency']:.3f})."
        )
    if listing is not None:
        lines.append(f"{write_listing(Path(listing), intervention):,} sentences are listed in {listing}.")
    return lines


def _table(corpus: Corpus) -> Table:
    manifest = corpus.text.manifest
    files = len(manifest.get("corpus.path", ()))
    source = manifest["source"] if files <= MOST_FILES else f"{files:,} files"
    rows = [(split, *(f"{manifest['splits'][split][unit]:,}" for unit in UNITS)) for split in SPLITS]
    table = filled_table(("split", *UNITS), rows, ["split"])
    table.title = Text(f"{corpus.config.corpus.name} ({source}), words counted with {manifest['reference']}")
    return table


def _domains(corpus: Corpus) -> Table:
    """Return a table with each domain's words by split, its share of the train split, and whether it is sampled."""
    chosen, rows = corpus.config.corpus.domains, []
    whole = corpus.text.manifest["splits"]["train"]["words"]
    for domain in corpus.text.manifest["domains"]:
        words = [domain[split]["words"] for split in SPLITS]
        sampled = "yes" if chosen is None or domain["name"] in chosen else "no"
        rows.append((domain["name"], sampled, *(f"{number:,}" for number in words), f"{words[0] / whole:.1%}"))
    table = filled_table(("domain", "sampled", *SPLITS, "share of train"), rows, ["domain"])
    table.title = Text("Words by domain")
    return table


def _tokenizer(corpus: Corpus, vocabulary: int) -> list[str]:
    config = corpus.config.tokenizer
    held_out = corpus.held_out("valid", sys.maxsize)
    tokens = len(held_out.tokens) - held_out.sentences
    lines = [
        f"Tokenizer {config.name}: {vocabulary:,} types. The valid split has {tokens / held_out.words:.3f} tokens per "
        f"word, and {held_out.unk / tokens:.2%} of the tokens are <unk>."
    ]
    if corpus.store is not None:
        lines.append(f"All splits: {corpus.store.manifest['tokens']:,} tokens, including <eos>.")
    return lines
