"""Exhibits of the frequency of a benchmark's words in the training text (Xiang et al. 2021, figure 1)."""

from functools import partial
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.dots import numbers
from analysis.exhibits.figures.methods import named_lines
from analysis.exhibits.figures.style import GREY, TEXT_GREY, Chart, Frame
from analysis.exhibits.tables.text import count
from analysis.measures.items import largest_size
from analysis.measures.word_frequency import (
    MOST_SENTENCES,
    PREDICTORS,
    Array,
    accuracy_by_frequency,
    among_most_frequent,
    pair_frequencies,
    pair_words,
)
from analysis.published import published_file
from analysis.sections.methods import binned_exhibit
from analysis.sections.section import Report, Section, contributes
from analysis.study.collect import Study
from analysis.study.judgements import Judgements
from corpora.word_counts import Counts, sample_counts
from eval.scores.files import read_items
from pairscale.errors import StoreError

WORDS = {"climp": "jieba"}  # benchmarks that have these sections, and what their words are


def frequency_exhibits(study: Study, judged: Judgements, store: str) -> list[Exhibit]:
    """Show the benchmark's words in its runs' samples, and accuracy by their frequency at the largest sizes.

    `store`: paths.store. Counts one run of each size, and all of the largest; without their text, one exhibit says so.
    """
    benchmark = judged.label.partition("+")[0]
    if benchmark not in WORDS or judged.of_paradigms or judged.over_training:
        return []
    reference = WORDS[benchmark]
    at_largest = judged.runs[largest_size(judged.runs)]
    samples = judged.runs["manifest"].map(lambda manifest: str(manifest["corpus"]["sample"]["digest"]))
    manifests = {str(run): manifest for run, manifest in judged.runs["manifest"].items()}
    counted: dict[str, Counts] = {}
    try:
        for run in dict.fromkeys([*judged.runs.drop_duplicates("size").index, *at_largest.index]):
            if samples[run] not in counted:
                counted[samples[run]] = sample_counts(
                    study.config[run], manifests[run], Path(store), reference, MOST_SENTENCES
                )
    except StoreError as error:
        about = f"Missing, as it needs the text that the runs were trained on (paths.store={store}): {error}."
        return [Exhibit("frequency", _HEADING, about)]
    items, _ = read_items(study.folders[judged.runs.index[0]].scores(judged.label))
    keys = ["paradigm", "pair_id"]
    pairs = pair_words(judged.pairs[keys].merge(items[[*keys, "good", "bad"]], on=keys, how="left"), reference)
    frequencies = {digest: pair_frequencies(pairs, counted[digest]) for digest in samples[at_largest.index].unique()}
    by_run: dict[str, tuple[pd.DataFrame, Array]] = {}
    for run in at_largest.index:
        outcome = judged.outcome[judged.runs.index.get_loc(run)]
        by_run[str(run)] = frequencies[samples[run]], np.asarray(outcome, dtype=np.float64)
    vocabulary = sorted({word for side in ("all", "bad") for words in pairs[side] for word in words})
    of_sizes = judged.runs.drop_duplicates("size").sort_values("sample_words")["size"]
    by_size = {str(size): counted[samples[str(run)]] for run, size in of_sizes.items()}
    accuracies = accuracy_by_frequency(at_largest, by_run)
    by_frequency = binned_exhibit(
        "frequency-accuracy", _BY_FREQUENCY, _OF_WORDS, _BINS, accuracies, PREDICTORS, log=PREDICTORS
    )
    return [_vocabulary(vocabulary, by_size), by_frequency]


_HEADING = "Word frequency"
_BY_FREQUENCY = "Accuracy by word frequency"
_OF_WORDS = (
    "Accuracy at each curve's largest size by the frequency of words in each run's own training text: of the rarest "
    "word of the good sentence, of the rarest word that the bad one lacks, and the ratio of that to the frequency of "
    "the bad sentence's own rarest, with 95% intervals for new pairs. The paper has no such figure."
)
_BINS = "Ten quantiles within each paradigm. Pairs that differ in order alone are in the first panel only."


def _vocabulary(vocabulary: list[str], counted: dict[str, Counts]) -> Exhibit:
    parts = [among_most_frequent(vocabulary, counts).assign(text=size) for size, counts in counted.items()]
    rows = pd.concat(parts, ignore_index=True)[["text", "rank", "words", "share"]]
    theirs = published_file("climp_words")
    known = theirs.iloc[0]
    missing = [sum(word not in counts.of for word in vocabulary) for counts in counted.values()]
    cut = [f"{counts.sentences:,} of {counts.of_sentences:,} sentences at {size}" for size, counts in counted.items()
           if counts.sentences < counts.of_sentences]  # fmt: skip
    about = (
        f"How many of the {len(vocabulary):,} different words (jieba) of the benchmark's sentences are among the most "
        "frequent words of the training text, for a sample of each size. The paper compares the vocabulary behind its "
        "sentences with the Chinese Internet Corpus (Xiang et al. 2021, section 3.2 and figure 1): "
        f"{known['words']:,} of {known['of']:,} words are among the {known['rank']:,} most frequent. Absent from the "
        f"text: {', '.join(f'{n:,} at {size}' for n, size in zip(missing, counted, strict=True))}."
        + (f" Only {', '.join(cut)} were counted." if cut else "")
    )
    cells, charts = {"most frequent": count, "words": count}, {"ranks": partial(rank_chart, rows, theirs)}
    table = rows.rename(columns={"rank": "most frequent"})
    return Exhibit("frequency", _HEADING, about, table, cells=cells, charts=charts)


def rank_chart(rows: pd.DataFrame, published: pd.DataFrame, *, frame: Frame) -> Chart:
    """Draw the share of a benchmark's words among a text's most frequent ones; `rows`: text, rank, words, share.

    `published`: text, rank, words, of: points of the paper.
    """
    named = rows.rename(columns={"text": "name", "rank": "at", "share": "accuracy"})
    shown = named.assign(low=named["accuracy"], high=named["accuracy"])
    axis = alt.Axis(title="Most frequent words of the text", format="~s", grid=False)
    x = alt.X("at:Q", scale=alt.Scale(type="log", nice=False), axis=axis)
    tooltip = [alt.Tooltip("name:N", title="text"), alt.Tooltip("at:Q", format=",", title="most frequent")]
    tooltip += [*numbers("words", form=","), alt.Tooltip("accuracy:Q", format=".3f", title="share")]
    shares, labels = published["words"] / published["of"], published["text"] + " (paper)"
    theirs = pd.DataFrame({"at": published["rank"], "accuracy": shares, "label": labels})
    at = alt.Chart(theirs).encode(x=x, y=alt.Y("accuracy:Q"))
    beside = [
        at.mark_point(shape="diamond", size=90, filled=False, strokeWidth=1.6, color=GREY),
        at.mark_text(align="left", dx=9, dy=-6, fontSize=10, color=TEXT_GREY).encode(text="label:N"),
    ]
    share = alt.Axis(title="Share of the benchmark's words", format=".1f", tickCount=6, tickMinStep=0.1)
    y = alt.Y("accuracy:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=share)
    return named_lines(shown, x, y, tooltip, frame, beside)


@contributes(80, from_files=True)
def word_frequency(section: Section, report: Report) -> list[Exhibit]:
    return frequency_exhibits(report.study, section.judged, report.config.paths.store)
