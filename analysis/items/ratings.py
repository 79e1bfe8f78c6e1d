"""Graded acceptability: how far the scores of each run agree with people's ratings of sentences, over training text.

The measures of one run, with intervals for new sentences, are eval.ratings.measures: correlations with ratings (Pearson
and Spearman, on Fisher's scale) and the separation of good from bad sentences (AUC). Scores such as SLOR are those of
Lau, Clark and Lappin 2017 ("Grammaticality, acceptability, and probability", Cognitive Science 41, 1202-1241).
"""

from functools import partial

import pandas as pd

from analysis.figures.charts import Axis, dot_chart
from analysis.figures.style import looks_of
from analysis.formats import accuracy_text, joined, plural, rows_of
from analysis.items.answers import Answers, Results, all_measures, at_largest
from analysis.report.exhibit import Exhibit
from analysis.report.write import Part
from eval.ratings.measures import AUC, PAIRS, PEARSON, SPEARMAN, scored_by_all
from eval.ratings.measures import measures as measures_of_model
from eval.ratings.scores import SCORES
from pairscale.errors import RunError, first_few

# The score that sentences are about is chosen before results are seen: the first of these that a curve has.
OF_SENTENCES = ["slor", "mean_lp", "lp"]
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


def measures(found: Answers) -> pd.DataFrame:
    """Return how far each run's scores agree with people, on the sentences that every run has a score of.

    Returns:
        The columns of runs; level (the measure: Pearson, Spearman, AUC, ...), name (the score: lp, slor, ...), accuracy
        (the value), low and high (95% interval for new sentences, on Fisher's scale or that of logits) and items
        (sentences, or pairs). There are no correlations with ratings that are all the same.

    Raises:
        RunError: if all ratings and all labels are the same, or if there are fewer than three sentences.
    """
    known = scored_by_all(found.tables)
    measured = found.measured(lambda rows: measures_of_model(rows[known].reset_index(drop=True)))
    if measured.empty:
        raise RunError(
            f"{found.label}: nothing can agree with these ratings: {plural(int(known.sum()), 'sentence')} can be "
            f"compared, rated as {first_few([*map(str, found.tables[0]['rating'].unique())])}. Give at least three "
            "sentences whose ratings differ."
        )
    return measured.rename(columns={"measure": "level", "score": "name", "value": "accuracy"})


def part(found: Answers, confidence: float, everything: bool = False) -> Part:
    """Return the part of a report about rated sentences; `confidence`: of the intervals of slopes.

    `everything` adds all measures at all sizes. Raises RunError as `measures` does.
    """
    results = Results(found, measures(found), confidence)
    means = results.means  # also of limits: those of a mean are at most as wide
    main = PEARSON if (means["level"] == PEARSON).any() else AUC  # of labels alone, the AUC
    rows = found.tables[0]
    pairs = f" in {plural(rows['pair'].nunique(), 'pair')}" if rows["pair"].notna().any() else ""
    people = joined([f"{name}s" for name in ("rating", "label") if rows[name].notna().any()])
    about = f"{plural(len(rows), 'sentence')}{pairs} with people's {people}."
    exhibits = [_scores(means, main), *results.over_text([(main, score, score) for score in SHOWN], main)]
    exhibits += [all_measures(means)] if everything else []
    return results.part(about, exhibits, _findings(results, main), _notes(found), _methods(found))


def _findings(results: Results, main: str) -> list[tuple[str, str]]:
    """Return a sentence per curve on its first score of OF_SENTENCES; `main`: the measure that it is about."""
    means = at_largest(results.means)
    chosen = means[(means["level"] == main) & means["name"].isin(OF_SENTENCES)]
    chosen = chosen.sort_values("name", key=lambda names: names.map(OF_SENTENCES.index), kind="stable")
    sentences = []
    for one in rows_of(chosen.drop_duplicates("curve").sort_index()):
        what = f"The AUC of {one.name}" if main == AUC else f"The correlation of {one.name} with ratings"
        limits = f"95% interval for new sentences {one.low:.2f} to {one.high:.2f}"
        known = dict(results.findings(main, one.name, what))
        sentences.append((str(one.curve), known.get(one.curve, f"{what} is {one.accuracy:.2f} ({limits}).")))
    return sentences


def _scores(means: pd.DataFrame, measure: str) -> Exhibit:
    """Return a row per curve and score with all measures at its largest size, and a figure of the main measure."""
    rows = at_largest(means)
    rows = rows.sort_values("name", key=lambda names: names.map(SCORES.index), kind="stable")
    main = rows[rows["level"] == measure]
    wide = rows.pivot(index=["curve", "name"], columns="level", values="accuracy").drop(columns=measure)
    first = [name for name in (PEARSON, SPEARMAN, AUC, PAIRS) if name in wide]
    wide = wide[[*first, *wide.columns.difference(first)]]
    curves = list(main["curve"].unique())
    table = main[["curve", "name", "runs", "accuracy", "low", "high"]].rename(columns={"accuracy": measure})
    table = table.join(wide, on=["curve", "name"]).rename(columns={"name": "score"})
    table = table.sort_values("curve", key=lambda of: of.map(curves.index), kind="stable")
    chart = partial(dot_chart, main, "accuracy", Axis(measure), looks_of(curves), reference=None)
    about = "Means over the runs at each curve's largest size. Intervals are for new sentences."
    cells, heading = dict.fromkeys(map(str, wide), accuracy_text), "Agreement with people by score"
    return Exhibit("scores", heading, about, table, cells, charts={"scores": chart}, definitions=_DEFINITIONS)


def _notes(found: Answers) -> list[str]:
    """Return notes on missing unigrams, tokens without a count, `<unk>` and few sentences."""
    missing = found.runs["unigrams"].str.get("missing")
    notes = [
        f"There is no norm_lp, slor or morcela of {joined(list(curves.unique()))}: {reason}."
        for reason, curves in found.runs["curve"].groupby(missing, sort=False)
    ]
    totals = pd.DataFrame([rows[["unseen", "unk", "tokens"]].sum() for rows in found.tables])
    for column, what in (("unseen", "don't occur in the text that unigrams are counted in"), ("unk", "are <unk>")):
        share = float((totals[column] / totals["tokens"]).max())
        if share >= 0.01:
            notes.append(f"Up to {share:.0%} of a run's tokens {what}.")
    if (sentences := len(found.tables[0])) < FEW_SENTENCES:
        notes.append(f"With only {sentences} sentences, intervals for new sentences are rough.")
    return notes


def _methods(found: Answers) -> list[str]:
    """Return the methods paragraph, for a paper."""
    text = [
        "The log-probability of a sentence is the sum over its tokens (nats). SLOR is this less the sentence's unigram "
        "log-probability, per token (Pauls and Klein 2012; Lau et al. 2017). MORCELA weights unigrams and length by a "
        "linear regression of the ratings (Tjuatja et al. 2024), with five-fold cross-validation.",
    ]
    unigrams = found.runs["unigrams"]
    if len(unseen := unigrams[unigrams.str.get("of") == "sample"].str.get("unseen")):
        text.append(
            "Unigram log-probabilities are relative frequencies of tokens in each run's own training sample. A token "
            f"that it lacks counts as {unseen.iloc[0]} occurrences."
        )
    if len(masked := found.runs.loc[found.runs["policy"].str.get("pll").notna(), "curve"].unique()):
        text.append(f"{joined([*masked])}: the pseudo-log-likelihood (Salazar et al. 2020).")
    text.append(
        "Intervals for new sentences are Student's, of correlations on Fisher's scale and of shares in logits, with "
        "the variance of influence functions (Efron 1982; DeLong et al. 1988 for the AUC). Both sentences of a pair "
        "are one unit. Intervals of slopes are for new runs on these sentences."
    )
    return text
