"""Measure precision and recall of the patterns in conf/filter/ on hand-labelled sentences.

    python -m tests.bench.construction_quality UD_English-EWT --parser parser/model-best

The first argument is the folder of UD English EWT 2.x (CC BY-SA 4.0), and --parser is a spaCy parser trained on it
(docs/guides/parsers.md). `construction_labels.csv` lists sentences of the treebank with the constructions that are
present, the constructions that are doubtful, and reasons. The annotator, a language model, read each sentence's text
and the descriptions of the constructions. It didn't see trees or patterns, but its knowledge of Universal Dependencies
may have shaped its judgements. The sets are:

    random      200 sentences of the test split with 8 to 40 words: random.Random(2026).sample(sorted(names), 200)
    fresh       100 sentences of the development split, with seed 2027
    enriched:CONSTRUCTION   sentences of any split with words that often occur with a rare construction, such as "there"
                or "at least". Measurements on them apply only to such sentences.

These labels are never changed. `construction_corrections.csv` contains corrections of clear mistakes, with reasons.
They were corrected after the patterns were run, because disagreements also reveal the annotator's mistakes.
`construction_matches.csv` contains judgements of matches in another text.

A sentence is treated as found if a pattern matches anywhere in it. Sentences with a doubtful label are left out for
that construction. For parsed trees, sentences of the training split are left out, because the parser was trained on
them. The results are written to analysis/results/construction_quality.csv:

    labels      first (made before anyone read the patterns), or corrected (with construction_corrections.csv)
    trees       gold (from the treebank), or parsed (from the parser)
    set         random, fresh, or all (random and enriched)
    patterns    now, or before (kept rows for the patterns at the time of labelling)
    mended      True if the patterns were changed after the labels of random and all were seen
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import OmegaConf

from corpora.annotate.parsers.conllu import tree_of
from corpora.annotate.parsers.spacy import SpacyParser
from corpora.annotate.tree import Tree
from corpora.config import FilterConfig, SpacyConfig
from corpora.constructions.matcher import Matcher
from corpora.sources.conllu import conllu_sentences
from pairscale.shares import wilson
from pairscale.tables import write_csv
from tests.support import ROOT

RESULTS = ROOT / "analysis" / "results" / "construction_quality.csv"
FILTERS = ROOT / "conf" / "filter"
STATES = ("first", "corrected")

Trees = Mapping[str, Tree]  # trees by the name of their sentence


@dataclass(frozen=True)
class Labels:
    """A sentence's constructions according to the annotator."""

    sentence: str  # sent_id of the treebank
    split: str
    set: str
    present: frozenset[str]
    doubtful: frozenset[str]


def read_labels(state: str) -> list[Labels]:
    """Return the labels of all sentences in the state "first" or "corrected"."""
    folder = Path(__file__).parent
    with (folder / "construction_labels.csv").open(encoding="utf-8", newline="") as file:
        labels = {
            row["sentence"]: Labels(
                row["sentence"],
                row["split"],
                row["set"],
                frozenset(row["present"].split()),
                frozenset(row["doubtful"].split()),
            )
            for row in csv.DictReader(file)
        }
    if state == "corrected":
        with (folder / "construction_corrections.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):  # the column `label` is present, absent or doubtful
                old, name = labels[row["sentence"]], {row["construction"]}
                present = old.present | name if row["label"] == "present" else old.present - name
                doubtful = old.doubtful | name if row["label"] == "doubtful" else old.doubtful - name
                labels[old.sentence] = replace(old, present=present, doubtful=doubtful)
    return list(labels.values())


def gold_trees(treebank: Path, labels: Sequence[Labels]) -> dict[str, Tree]:
    """Return the treebank's trees for the labelled sentences."""
    trees = {}
    for split in sorted({one.split for one in labels}):
        (file,) = treebank.glob(f"*-ud-{split}.conllu")
        lines = file.read_text(encoding="utf-8").splitlines()
        names = [line.partition("=")[2].strip() for line in lines if line.startswith("# sent_id =")]
        sentences = dict(zip(names, conllu_sentences(file), strict=True))
        named = [one.sentence for one in labels if one.split == split]
        trees |= {name: tree_of(sentences[name], sentences[name].text) for name in named}
    return trees


def parsed_trees(model: Path, labels: Sequence[Labels], gold: Trees) -> dict[str, Tree]:
    """Return a parser's trees for the labelled sentences that are not in its training split."""
    names = [one.sentence for one in labels if one.split != "train"]
    parser = SpacyParser(SpacyConfig(name="spacy", model=str(model)))
    return dict(zip(names, parser.trees([gold[name].sentence for name in names], 0), strict=True))


def read_filters(folder: Path) -> dict[str, FilterConfig]:
    """Return the filters in a folder by name."""
    configs = {}
    for path in sorted(folder.glob("*.yaml")):
        values: dict[str, Any] = OmegaConf.to_container(OmegaConf.load(path))  # type: ignore[assignment]
        configs[path.stem] = FilterConfig(**values)
    return configs


def quality(name: str, found: Mapping[str, bool], labels: Sequence[Labels]) -> dict[str, int | float]:
    """Return counts, precision and recall for a construction in the labelled sentences of `found`."""
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


def rows_of(trees: Mapping[str, Trees]) -> Iterator[dict[str, Any]]:
    """Yield one row per construction, kind of trees, state of the labels and set of sentences."""
    labels = {state: read_labels(state) for state in STATES}
    for name, config in read_filters(FILTERS).items():
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
    parser.add_argument("treebank", type=Path)
    parser.add_argument("--parser", type=Path, required=True)
    options = parser.parse_args()
    labels = read_labels("first")
    gold = gold_trees(options.treebank, labels)
    trees = {"gold": gold, "parsed": parsed_trees(options.parser, labels, gold)}
    before = pd.read_csv(RESULTS).query("patterns == 'before'")
    table = pd.concat([pd.DataFrame(rows_of(trees)).assign(patterns="now"), before], ignore_index=True)
    table["mended"] = table["construction"].isin(before["construction"])
    write_csv(RESULTS, table.sort_values(["construction", "patterns"], kind="stable"))


if __name__ == "__main__":
    main()
