"""Measure precision and recall of the patterns in conf/filter/ on hand-labelled sentences.

    python -m tests.bench.construction_quality UD_English-EWT --parser parser/model-best
        [--before EARLIER/conf/filter]

The first argument is the folder of UD English EWT 2.x, and --parser is a spaCy parser trained on it
(docs/guides/parsers.md). Labels come from tests/support/construction_labels.py. A sentence counts as found if a pattern
matches anywhere in it. Sentences with a doubtful label don't count for that construction. For parsed trees, sentences
of the training split are left out, because the parser knows them. --before adds rows for the patterns before some were
corrected (`git archive 91b3f47 conf/filter | tar -x -C EARLIER`). Writes analysis/results/construction_quality.csv:

    labels      first: as made before anyone read the patterns; corrected: with construction_corrections.csv
    trees       gold: the treebank's; parsed: the parser's
    set         random; fresh: from the development split; all: includes sentences found by searching for words
    patterns    now; before: as they were when the labels were made
    mended      True if the patterns were changed after the labels of random and all were seen
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import OmegaConf

from corpora.annotate.config import SpacyConfig
from corpora.annotate.parsers.conllu import tree_of
from corpora.annotate.parsers.spacy import SpacyParser
from corpora.annotate.tree import Tree
from corpora.constructions.config import FilterConfig
from corpora.constructions.matcher import Matcher
from pairscale.shares import wilson
from pairscale.tables import write_csv
from tests.support import ROOT
from tests.support.construction_labels import CORRECTIONS, Labels, corrected, read_corrections, read_labels
from tests.support.treebank_sentences import treebank_sentences

RESULTS = ROOT / "analysis" / "results" / "construction_quality.csv"
FILTERS = ROOT / "conf" / "filter"

Trees = Mapping[str, Tree]  # by name of the sentence


def gold_trees(treebank: Path, labels: Sequence[Labels]) -> dict[str, Tree]:
    """Return the treebank's trees of the labelled sentences."""
    trees = {}
    for split in sorted({one.split for one in labels}):
        sentences = treebank_sentences(treebank, split)
        named = [one.sentence for one in labels if one.split == split]
        trees |= {name: tree_of(sentences[name], sentences[name].text) for name in named}
    return trees


def parsed_trees(model: Path, labels: Sequence[Labels], gold: Trees) -> dict[str, Tree]:
    """Return a parser's trees of the labelled sentences that are not in its training split."""
    names = [one.sentence for one in labels if one.split != "train"]
    parser = SpacyParser(SpacyConfig(name="spacy", model=str(model)))
    return dict(zip(names, parser.trees([gold[name].sentence for name in names], 0), strict=True))


def read_filters(folder: Path) -> dict[str, FilterConfig]:
    """Return the filters in a folder, by name."""
    configs = {}
    for path in sorted(folder.glob("*.yaml")):
        values: dict[str, Any] = OmegaConf.to_container(OmegaConf.load(path))  # type: ignore[assignment]
        configs[path.stem] = FilterConfig(**values)
    return configs


def patterns_of(config: FilterConfig) -> tuple[list[Any], list[Any]]:
    return config.patterns, config.without


def quality(name: str, found: Mapping[str, bool], labels: Sequence[Labels]) -> dict[str, int | float]:
    """Return counts, precision and recall of a construction for the labelled sentences in `found`."""
    certain = [one for one in labels if one.sentence in found and name not in one.doubtful]
    doubtful = sum(one.sentence in found and name in one.doubtful for one in labels)
    present = sum(name in one.present for one in certain)
    matched = sum(found[one.sentence] for one in certain)
    both = sum(found[one.sentence] and name in one.present for one in certain)
    counts: dict[str, int | float] = {"sentences": len(certain), "doubtful": doubtful}
    counts |= {"present": present, "found": matched, "both": both}
    for share, of in ("precision", matched), ("recall", present):
        if of:
            low, high = wilson(both / of, of)
            counts |= {share: both / of, f"{share}_low": low, f"{share}_high": high}
    return counts


def rows_of(
    filters: Mapping[str, FilterConfig], trees: Mapping[str, Trees], labels: Mapping[str, Sequence[Labels]]
) -> Iterator[dict[str, Any]]:
    """Yield one row per construction, kind of trees, state of the labels and set of sentences."""
    for name, config in filters.items():
        matcher = Matcher(config)
        for kind, by_name in trees.items():
            found = {sentence: bool(matcher.occurrences(tree)) for sentence, tree in by_name.items()}
            for state, every in labels.items():
                for chosen in ("random", "fresh", "all"):
                    part = [one for one in every if one.set == chosen or (chosen == "all" and one.set != "fresh")]
                    key = {"construction": name, "labels": state, "trees": kind, "set": chosen}
                    yield key | quality(name, found, part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank", type=Path, help="folder of UD English EWT")
    parser.add_argument("--parser", type=Path, required=True, help="folder of a spaCy parser trained on it")
    parser.add_argument("--before", type=Path, help="conf/filter of an earlier checkout, to compare with")
    options = parser.parse_args()
    first = read_labels()
    labels = {"first": first}
    if CORRECTIONS.exists():
        labels["corrected"] = corrected(first, read_corrections())
    gold = gold_trees(options.treebank, first)
    trees = {"gold": gold, "parsed": parsed_trees(options.parser, first, gold)}
    filters = read_filters(FILTERS)
    before = read_filters(options.before) if options.before else filters
    mended = [name for name in filters if patterns_of(filters[name]) != patterns_of(before[name])]
    table = pd.DataFrame(rows_of(filters, trees, labels)).assign(patterns="now")
    earlier = pd.DataFrame(rows_of({name: before[name] for name in mended}, trees, labels)).assign(patterns="before")
    table = pd.concat([table, earlier] if mended else [table], ignore_index=True)
    table["mended"] = table["construction"].isin(mended)
    write_csv(RESULTS, table.sort_values(["construction", "patterns"], kind="stable"))


if __name__ == "__main__":
    main()
