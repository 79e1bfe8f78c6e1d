"""How often each construction of conf/filter/ is found in an annotated corpus, and how many matches are right.

    python -m tests.bench.construction_counts store/english_4M --every 4 --sheet /tmp/matches.csv

The folder is that of a corpus that `python -m corpora.annotate` has parsed; nothing is written to it. --every 4: search
each fourth sentence. --sheet: a CSV file for a person, outside of the repository as it holds text: up to 15 random
matching sentences of each construction, with the match in brackets. Judgements (construction, sentence, right) are
committed as tests/support/construction_matches.csv, without the text; the table has the precision by them. Writes
analysis/results/construction_counts.csv. --only NAME ...: search for these, and keep the other rows of the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from corpora.annotate.layer import Layer, open_layer
from corpora.constructions.matcher import Matcher
from corpora.find import marked
from corpora.text import TextStore
from pairscale.seeds import permutation
from pairscale.shares import wilson
from pairscale.tables import write_csv
from tests.bench.construction_quality import FILTERS, read_filters
from tests.support import ROOT

RESULTS = ROOT / "analysis" / "results" / "construction_counts.csv"
JUDGEMENTS = ROOT / "tests" / "support" / "construction_matches.csv"
MILLION = 10**6
SHOWN, SEED = 15, 2031

Counts = dict[int, int]  # sentence -> occurrences, of those that have any


def search(layer: Layer, sentences: range, matchers: Mapping[str, Matcher]) -> dict[str, Counts]:
    """Return the occurrences of each construction in some sentences of a layer."""
    found: dict[str, Counts] = {name: {} for name in matchers}
    for sentence, tree in zip(sentences, layer.trees(sentences), strict=True):
        for name, matcher in matchers.items():
            if occurrences := matcher.occurrences(tree):
                found[name][sentence] = len(occurrences)
    return found


def sheet(layer: Layer, found: Mapping[str, Counts], matchers: Mapping[str, Matcher]) -> Iterator[dict[str, Any]]:
    """Yield random matching sentences of each construction, with their matches marked."""
    for name, counts in found.items():
        matching = np.array(sorted(counts), np.int64)
        chosen = np.sort(matching[permutation(len(matching), SEED)[:SHOWN]])
        for sentence, tree in zip(chosen.tolist(), layer.trees(chosen), strict=True):
            text = marked(tree, matchers[name].occurrences(tree)).plain
            yield {"construction": name, "sentence": sentence, "text": text}


def rows(found: Mapping[str, Counts], sentences: int, words: int, judgements: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the counts of each construction, with the share of judged matches that are right."""
    for name, counts in found.items():
        number = sum(counts.values())
        row = {"construction": name, "sentences": sentences, "words": words, "matching_sentences": len(counts)}
        row |= {"occurrences": number, "per_million_words": MILLION * number / words}
        right = judgements.loc[judgements["construction"] == name, "right"]
        if len(right):
            low, high = wilson(float(right.mean()), len(right))
            row |= {"judged": len(right), "right": int(right.sum()), "precision": right.mean()}
            row |= {"precision_low": low, "precision_high": high}
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="store/CORPUS")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--sheet", type=Path)
    parser.add_argument("--only", nargs="+")
    options = parser.parse_args()
    text = TextStore(options.corpus / "text")
    layer = open_layer(options.corpus, None, text)
    sentences = range(0, len(text), options.every)
    matchers = {name: Matcher(config) for name, config in read_filters(FILTERS).items()}
    if options.only:
        matchers = {name: matchers[name] for name in options.only}
    found = search(layer, sentences, matchers)
    if options.sheet:
        write_csv(options.sheet, pd.DataFrame(sheet(layer, found, matchers)))
    columns = ["construction", "sentence", "right"]
    judgements = pd.read_csv(JUDGEMENTS) if JUDGEMENTS.exists() else pd.DataFrame(columns=columns)
    words = int(text.words[np.asarray(sentences)].sum())
    table = pd.DataFrame(rows(found, len(sentences), words, judgements))
    if options.only:
        earlier = pd.read_csv(RESULTS)
        table = pd.concat([earlier[~earlier["construction"].isin(options.only)], table])
    write_csv(RESULTS, table.sort_values("construction"))


if __name__ == "__main__":
    main()
