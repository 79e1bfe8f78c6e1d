"""Accuracy of a classifier by words and pairs of words alone: `python tests/bench/surface_cues.py`.

A logistic regression (L2, C=1) on the presence of uni- and bigrams classifies sentences as good or bad. It is fitted to
500 pairs of a paradigm and tested on 500 others; its accuracy is that of single sentences (chance .5), averaged over
five splits. A paradigm with a higher accuracy than the published one may be solved by a cue other than its grammar.
Words are split at spaces and punctuation; Mandarin at characters. Published pairs are read from $PAIRSCALE_DATA.
Needs scikit-learn (`pip install -e ".[bench]"`).
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.generated import grammar_of, paradigm_of, paradigms_of
from eval.benchmarks.load import load_benchmark

FROZEN = {"en": "blimp", "zh": "climp"}  # form and folder of the published pairs
TOKEN = {"en": re.compile(r"[\w'-]+|[^\w\s]"), "zh": re.compile(r"\S")}

Pair = tuple[str, str]  # good, bad


def accuracy(pairs: Sequence[Pair], token: re.Pattern[str], train: int = 500, splits: int = 5) -> float:
    """Return the share of single sentences classified correctly, in pairs without a sentence of the training set."""
    scores = []
    for split in range(splits):
        shuffled = list(pairs)
        random.Random(split).shuffle(shuffled)
        training_sentences = {sentence for pair in shuffled[:train] for sentence in pair}
        tested = [pair for pair in shuffled[train:] if training_sentences.isdisjoint(pair)][:train]
        count = CountVectorizer(ngram_range=(1, 2), binary=True, tokenizer=token.findall, token_pattern=None)
        sides = np.tile([1, 0], train)
        classifier = LogisticRegression(max_iter=2000)
        classifier.fit(count.fit_transform([sentence for pair in shuffled[:train] for sentence in pair]), sides)
        features = count.transform([sentence for pair in tested for sentence in pair])
        scores.append(float(classifier.score(features, sides[: 2 * len(tested)])))
    return float(np.mean(scores))


def generated(language: str, seed: int, count: int) -> dict[str, list[Pair]]:
    grammar = grammar_of(language)
    paradigms = {name: paradigm_of(language, name, grammar) for name in paradigms_of(language)}
    return {
        name: [
            (pair["sentence_good"], pair["sentence_bad"]) for pair in one.pairs(random.Random(f"{seed}:{name}"), count)
        ]
        for name, one in paradigms.items()
    }


def frozen(language: str, data: Path) -> dict[str, list[Pair]]:
    """Return the published pairs by paradigm; empty if the user does not have them."""
    folder = data / FROZEN[language]
    if not folder.is_dir():
        return {}
    table = load_benchmark(BenchmarkConfig(name=FROZEN[language], path=str(folder)))
    return {
        str(name): list(zip(rows["good"], rows["bad"], strict=True))
        for name, rows in table.pairs.groupby("paradigm", sort=False)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--languages", nargs="+", choices=FROZEN, default=list(FROZEN))
    parser.add_argument("--paradigms", nargs="+", help="default: all")
    parser.add_argument("--seed", type=int, default=1, help="of the generated pairs")
    parser.add_argument("--csv", type=Path, default=Path("reports/bench/surface_cues.csv"))
    arguments = parser.parse_args()
    rows = []
    for language in arguments.languages:
        ours = generated(language, arguments.seed, 1000)
        data = os.environ.get("PAIRSCALE_DATA")
        theirs = frozen(language, Path(data)) if data else {}
        for name in ours:
            if arguments.paradigms and name not in arguments.paradigms:
                continue
            both = [
                accuracy(pairs[name], TOKEN[language]) if name in pairs else float("nan") for pairs in (ours, theirs)
            ]
            rows.append((language, name, *both))
    rows.sort(key=lambda row: (row[0], row[3] - row[2]))
    arguments.csv.parent.mkdir(parents=True, exist_ok=True)
    with arguments.csv.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("language", "paradigm", "generated", "frozen"))
        writer.writerows((language, name, f"{ours:.4f}", f"{theirs:.4f}") for language, name, ours, theirs in rows)
    print(f"{'':62} generated  frozen  difference")
    for language, name, ours, theirs in rows:
        print(f"{language} {name:60} {ours:8.3f} {theirs:7.3f} {ours - theirs:+10.3f}")
    for language in arguments.languages:
        means = np.nanmean([row[2:] for row in rows if row[0] == language], axis=0)
        print(f"{language} {'mean':60} {means[0]:8.3f} {means[1]:7.3f} {means[0] - means[1]:+10.3f}")


if __name__ == "__main__":
    main()
