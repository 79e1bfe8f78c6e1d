"""Graded acceptability: how far the scores of each run agree with people's ratings of sentences, over training text.

The measures of one run, with intervals for new sentences, are eval.ratings.measures: correlations with ratings (Pearson
and Spearman, on Fisher's scale) and the separation of good from bad sentences (AUC). Scores such as SLOR are those of
Lau, Clark and Lappin 2017 ("Grammaticality, acceptability, and probability", Cognitive Science 41, 1202-1241).
"""

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.figures.charts import Axis, dot_chart
from analysis.figures.style import looks_of
from analysis.formats import accuracy_text, count, joined, plural
from analysis.items.answers import Answers, ItemsSection, at_largest, finding, lead_of, over_text, read_answers, slopes
from analysis.report.exhibit import Exhibit
from eval.ratings.files import read_sentences, sentences_metadata
from eval.ratings.measures import AUC, PAIRS, PEARSON, SPEARMAN
from eval.ratings.measures import measures as measures_of_model
from eval.ratings.scores import SCORES
from pairscale.errors import RunError

# The score that sentences are about is chosen before results are seen: the first of these that a run has.
OF_SENTENCES = ("slor", "mean_lp", "lp")
SHOWN = ("lp", "mean_lp", "slor", "morcela")  # scores with a panel each
FEW_SENTENCES = 50
_DEFINITIONS = {
    "lp, mean_lp, pen_lp": "Log-probability; per token; per ((5 + tokens) / 6)^0.8 (Lau et al. 2020).",
    "norm_lp": "Minus log-probability per unigram log-probability (Lau et al. 2020).",
    "slor": "Log-probability less unigram log-probability, per token (Pauls and Klein 2012).",
    "morcela": "The same with weights of unigrams and length that are fitted to the ratings of other sentences "
    "(Tjuatja et al. 2024).",
    "Pearson, Spearman": "Correlation of scores, or of their ranks, with ratings.",
    "AUC": "Share of all good and bad sentences, paired or not, of which the good one scores higher. Chance is .5.",
    "Accuracy, MCC": "Good and bad by a threshold that is set on other sentences; MCC is Matthews' correlation.",
    "Pairs": "Share of pairs whose good sentence scores higher.",
}


def answers(runs: pd.DataFrame, label: str, folder: str | Path = "runs") -> Answers:
    """Read the scores of rated sentences; arguments and errors as of `read_answers`.

    Its table has the columns of eval.ratings.files.SENTENCES, one row per run and sentence.
    """
    return read_answers(runs, label, folder, sentences_metadata, read_sentences)


def measures(found: Answers) -> pd.DataFrame:
    """Return how far each run's scores agree with people, on the sentences that every run has a score of.

    Returns:
        The columns of runs; level (the measure: Pearson, Spearman, AUC, ...), name (the score: lp, slor, ...), accuracy
        (the value), low and high (95% interval for new sentences, on Fisher's scale or that of logits) and items
        (sentences, or pairs). There are no correlations with ratings that are all the same.

    Raises:
        RunError: if all ratings and all labels are the same, or if there are fewer than three sentences.
    """
    scored = found.table.assign(known=found.table["lp"].notna())
    known = scored.groupby("sentence", sort=False)["known"].transform("all")
    chosen = Answers(found.label, found.table[known].reset_index(drop=True), found.metadata, found.notes)
    parts = chosen.measured(measures_of_model) if known.any() else pd.DataFrame()
    if parts.empty:
        rows = _of_first_run(found)
        constant = rows["rating"].nunique() == 1 and f"every rating is {rows['rating'].iloc[0]:g}"
        reason = constant or f"only {plural(int(known.sum() / len(found.metadata)), 'sentence')} can be compared"
        raise RunError(
            f"{found.label}: nothing can agree with these ratings: {reason}. Give sentences whose ratings differ."
        )
    return parts.rename(columns={"measure": "level", "score": "name", "value": "accuracy"})


def _of_first_run(found: Answers) -> pd.DataFrame:
    """Return the sentences, with what people said."""
    return next(rows for _, rows in found.of_runs())


def over_runs(measured: pd.DataFrame) -> pd.DataFrame:
    """Average measures over the runs of a curve and size.

    Returns:
        curve, size, sample_words, level, name, runs, items, accuracy (the mean of the runs' values), and low and high:
        the means of the limits for new sentences. Those of a mean are at most as wide.
    """
    groups = measured.groupby(["curve", "size", "sample_words", "level", "name"], sort=False, dropna=False)
    return groups[["items", "accuracy", "low", "high"]].mean().assign(runs=groups.size()).reset_index()


def section(
    runs: pd.DataFrame, label: str, confidence: float, folder: str | Path = "runs", everything: bool = False
) -> ItemsSection:
    """Return the part of a report about rated sentences.

    Args:
        runs: the table of `analysis.runs`, with curves named as readers see them.
        label: the name of their folder of scores.
        confidence: the level of the intervals of slopes.
        folder: where studies are (`paths.runs`).
        everything: add all measures at all sizes.

    Raises:
        RunError: as `read_answers` and `measures` do.
    """
    found = answers(runs, label, folder)
    measured = measures(found)
    fitted = slopes(measured, label, confidence)
    rows = _of_first_run(found)
    pairs = f" in {plural(int(rows['pair'].nunique()), 'pair')}" if rows["pair"].notna().any() else ""
    people = joined([name for name, of in (("ratings", "rating"), ("labels", "label")) if rows[of].notna().any()])
    return ItemsSection(
        label=label,
        kind="Ratings",
        lead=lead_of(found, f"{plural(len(rows), 'sentence')}{pairs} with people's {people}."),
        notes=[*found.notes, *_notes(found, len(rows))],
        findings=_findings(measured, fitted, confidence),
        exhibits=exhibits(measured, fitted, confidence, everything),
        methods=_methods(found),
    )


def main_measure(measured: pd.DataFrame) -> str:
    """Return the measure that figures and sentences are about: Pearson's correlation or, of labels alone, the AUC."""
    return PEARSON if (measured["level"] == PEARSON).any() else AUC


def _findings(measured: pd.DataFrame, fitted: pd.DataFrame, confidence: float) -> list[tuple[str, str]]:
    """Return a sentence per curve on its first score of OF_SENTENCES."""
    measure = main_measure(measured)
    what = "The correlation of {} with ratings" if measure == PEARSON else "The AUC of {}"
    sentences = []
    for curve, rows in measured[measured["level"] == measure].groupby("curve", sort=False):
        score = next((name for name in OF_SENTENCES if name in set(rows["name"])), rows["name"].iloc[0])
        slope = fitted[(fitted["curve"] == curve) & (fitted["method"] == measure) & (fitted["name"] == score)]
        if len(slope):
            sentences.append((str(curve), finding(next(slope.itertuples()), confidence, what.format(score))))
        else:
            one = at_largest(over_runs(rows[rows["name"] == score])).iloc[0]
            limits = f"95% interval for new sentences {one['low']:.2f} to {one['high']:.2f}"
            sentences.append((str(curve), f"{what.format(score)} is {one['accuracy']:.2f} ({limits})."))
    return sentences


def exhibits(
    measured: pd.DataFrame, fitted: pd.DataFrame, confidence: float, everything: bool = False
) -> list[Exhibit]:
    """Return agreement by score, and agreement over training text; `everything`: all measures at all sizes, too."""
    measure = main_measure(measured)
    means = over_runs(measured)
    curves = [(measure, score, score) for score in SHOWN]
    shown = [_scores(means, measure), over_text(measured, fitted, curves, measure, confidence)]
    if everything:
        columns = {"curve": "curve", "size": "size", "runs": "runs", "level": "measure", "name": "score",
                   "items": "items", "accuracy": "value", "low": "low", "high": "high"}  # fmt: skip
        about = "Means over the runs of a size, and the means of their 95% intervals for new sentences."
        table = means[list(columns)].rename(columns=columns)
        shown.append(Exhibit("measures", "All measures", about, table, cells={"items": count}))
    return [one for one in shown if one is not None]


def _scores(means: pd.DataFrame, measure: str) -> Exhibit:
    """Return a row per curve and score with all measures at its largest size, and a figure of the main measure."""
    rows = at_largest(means)
    rows = rows.sort_values("name", key=lambda names: names.map(SCORES.index), kind="stable")
    main = rows[rows["level"] == measure]
    wide = rows.pivot(index=["curve", "name"], columns="level", values="accuracy")
    order = [name for name in (PEARSON, SPEARMAN, AUC, PAIRS) if name in wide and name != measure]
    others = [*order, *(name for name in map(str, wide) if name not in (*order, measure))]
    table = main[["curve", "name", "runs", "accuracy", "low", "high"]].rename(columns={"accuracy": measure})
    table = table.join(wide[others], on=["curve", "name"]).rename(columns={"name": "score"}).rename_axis(columns=None)
    table = table.sort_values(
        "curve", key=lambda of: of.map(list(main["curve"]).index), kind="stable", ignore_index=True
    )
    looks = looks_of(list(dict.fromkeys(main["curve"])))
    chart = partial(dot_chart, main, "accuracy", Axis(measure), looks, reference=None)
    return Exhibit(
        "scores",
        "Agreement with people by score",
        "Means over the runs at each curve's largest size. Intervals are for new sentences.",
        table,
        cells=dict.fromkeys(others, accuracy_text),
        charts={"scores": chart},
        definitions=_DEFINITIONS,
    )


def _notes(found: Answers, sentences: int) -> list[str]:
    """Return notes on missing unigrams, tokens without a count, `<unk>` and few sentences."""
    notes = []
    reasons: dict[str, list[str]] = {}
    for run, _ in found.of_runs():
        if reason := _unigrams(found, run).get("missing"):
            reasons.setdefault(str(reason), []).append(str(run["curve"]))
    for reason, curves in reasons.items():
        notes.append(f"There is no norm_lp, slor or morcela of {joined(list(dict.fromkeys(curves)))}: {reason}.")
    totals = found.table.groupby(["study", "run"], sort=False)[["unseen", "unk", "tokens"]].sum()
    for column, what in (("unseen", "don't occur in the text that unigrams are counted in"), ("unk", "are <unk>")):
        share = float((totals[column] / totals["tokens"]).max())
        if share >= 0.01:
            notes.append(f"Up to {share:.0%} of a run's tokens {what}.")
    if sentences < FEW_SENTENCES:
        notes.append(f"With only {sentences} sentences, intervals for new sentences are rough.")
    return notes


def _unigrams(found: Answers, run: pd.Series) -> dict[str, Any]:
    """Return the text that a run's unigrams are counted in, or why there is none (eval.methods.unigrams)."""
    unigrams: dict[str, Any] = found.metadata[run["study"], run["run"]]["parameters"]["unigrams"]
    return unigrams


def _methods(found: Answers) -> list[str]:
    """Return the methods paragraph, for a paper."""
    text = [
        "The log-probability of a sentence is the sum over its tokens (nats). SLOR is this less the sentence's unigram "
        "log-probability, per token (Pauls and Klein 2012; Lau et al. 2017). MORCELA weights unigrams and length by a "
        "linear regression of the ratings (Tjuatja et al. 2024), with five-fold cross-validation.",
    ]
    counted = [_unigrams(found, run) for run, _ in found.of_runs()]
    if of_sample := [of for of in counted if of.get("of") == "sample"]:
        text.append(
            "Unigram log-probabilities are relative frequencies of tokens in each run's own training sample. A token "
            f"that it lacks counts as {of_sample[0].get('unseen')} occurrences."
        )
    if masked := [
        str(run["curve"]) for run, _ in found.of_runs() if found.metadata[run["study"], run["run"]]["policy"].get("pll")
    ]:
        text.append(f"{joined(list(dict.fromkeys(masked)))}: the pseudo-log-likelihood (Salazar et al. 2020).")
    text.append(
        "Intervals for new sentences are Student's, of correlations on Fisher's scale and of shares in logits, with "
        "the variance of influence functions (Efron 1982; DeLong et al. 1988 for the AUC). Both sentences of a pair "
        "are one unit. Intervals of slopes are for new runs on these sentences."
    )
    return text
