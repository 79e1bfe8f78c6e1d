"""The work of the corpora command: prepare a corpus and print its sizes."""

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

MOST_FILES = 4  # of a corpus whose table names them


def prepare_corpus(config: CorporaConfig) -> None:
    """Prepare the corpus of a configuration and print its sizes; with dry_run=true only print what exists.

    Raises ConfigError for a list of an ablation where there is none, and the errors of `prepare`.
    """
    console = Console(highlight=False, markup=False)
    if config.ablate.listing is not None and not config.ablate.acts:
        wanted = "" if config.filter else "filter=NAME and "
        raise ConfigError(
            f"ablate.listing={config.ablate.listing}: lists what an ablation leaves out or rewrites, and nothing is "
            f"ablated here; give {wanted}ablate.action=remove, control or keep_only"
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
    console.print(f"in {corpus.text.folder.parent}", soft_wrap=True)


def _print_state(console: Console, config: CorporaConfig) -> None:
    corpus, construction = corpus_folder(config), config.filter
    folders = [corpus / "text", tokenizer_folder(config)]
    if isinstance(construction, RegexFilter):
        folders.append(matches_folder(corpus, construction, None))
    elif construction is not None:
        layers = layer_names(corpus)
        folders += [layer_folder(corpus, name) for name in layers]
        if not layers:
            console.print(f"to be prepared: an annotation of {config.corpus.name} (python -m corpora.annotate)")
    for folder in folders:
        state = "prepared" if (folder / MANIFEST).exists() else "to be prepared"
        console.print(f"{state}: {folder}", soft_wrap=True)


def _ablation(intervention: Intervention, listing: str | None) -> list[str]:
    """Say what an ablation does to the train split, and write the list of its sentences to the file `listing`."""
    sizes, balance = intervention.sizes, intervention.balance
    of = f"of {sizes['of_sentences']:,} sentences and {sizes['of_words']:,} words of the train split"
    where = f" in layer {sizes['layer']}" if sizes["layer"] else ""
    lines = [
        f"filter={sizes['filter']}: {sizes['matching']['sentences']:,} {of} have it{where}, in "
        f"{sizes['matching']['words']:,} words",
        f"ablate.action={sizes['action']}, ablate.dose={sizes['dose']}: leaves out {len(intervention.skipped):,} "
        f"sentences and rewrites {sizes['rewritten']:,}, {sizes['words']:,} words in all",
    ]
    if balance:
        means = "; ".join(
            f"{name} {balance[name]['words']:.2f}, {balance[name]['log_frequency']:.3f}"
            for name in ("removed", "control")
        )
        lines.append(
            f"matched control: {balance['same_class']:.1%} of the sentences have one of their source, length and tenth "
            f"of frequency; mean words, and mean log frequency of words: {means}"
        )
    if listing is not None:
        lines.append(f"{write_listing(Path(listing), intervention):,} sentences listed in {listing}")
    return lines


def _table(corpus: Corpus) -> Table:
    manifest = corpus.text.manifest
    files = len(manifest.get("corpus.path", ()))
    source = manifest["source"] if files <= MOST_FILES else f"{files:,} files"
    rows = [(split, *(f"{manifest['splits'][split][unit]:,}" for unit in UNITS)) for split in SPLITS]
    table = filled_table(("split", *UNITS), rows, ["split"])
    table.title = Text(f"{corpus.config.corpus.name} ({source}); words: {manifest['reference']}")
    return table


def _domains(corpus: Corpus) -> Table:
    """Return the words of each domain by split, and its share of the train split; those of samples are marked."""
    chosen, rows = corpus.config.corpus.domains, []
    whole = corpus.text.manifest["splits"]["train"]["words"]
    for domain in corpus.text.manifest["domains"]:
        words = [domain[split]["words"] for split in SPLITS]
        sampled = "yes" if chosen is None or domain["name"] in chosen else "no"
        rows.append((domain["name"], sampled, *(f"{number:,}" for number in words), f"{words[0] / whole:.1%}"))
    table = filled_table(("domain", "samples", *SPLITS, "share of train"), rows, ["domain"])
    table.title = Text(f"words by domain; samples are of {'corpus.domains' if chosen else 'all domains'}")
    return table


def _tokenizer(corpus: Corpus, vocabulary: int) -> list[str]:
    config = corpus.config.tokenizer
    held_out = corpus.held_out("valid", sys.maxsize)
    tokens = len(held_out.tokens) - held_out.sentences
    lines = [
        f"tokenizer {config.name}: {vocabulary:,} types, {tokens / held_out.words:.3f} tokens per word and "
        f"{held_out.unk / tokens:.2%} <unk> in the valid split"
    ]
    if corpus.store is not None:
        lines.append(f"tokens of all splits, <eos> included: {corpus.store.manifest['tokens']:,}")
    return lines
