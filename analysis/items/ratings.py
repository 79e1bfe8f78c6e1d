"""Describe graded acceptability, which is how well the scores of each run agree with people's ratings.

`eval.ratings.measures` computes the measures of one run, with intervals for new sentences. These are correlations with
ratings (Pearson and Spearman, on Fisher's scale), and how well scores separate good from bad sentences (AUC). Scores
such as SLOR come from Lau, Clark and Lappin 2017 ("Grammaticality, acceptability, and probability", Cognitive Science
41, 1202-1241).
"""

import pandas as pd

from analysis.formats import joined, plural
from analysis.items.results import Answers, Description
from eval.ratings.measures import AUC, PEARSON
from eval.ratings.measures import measures as measures_of_model
from pairscale.errors import RunError, first_few

# Findings describe the first of these scores that a curve has, whatever the results are.
SHOWN = ("slor", "mean_lp", "lp", "morcela")
_METHODS = (
    "The log-probability of a sentence (lp) is the sum over its tokens, in nats. For masked models, it is the "
    "pseudo-log-likelihood (Salazar et al. 2020). Lau et al. 2020 define mean_lp, pen_lp and norm_lp. SLOR is lp minus "
    "the unigram log-probability, per token (Pauls and Klein 2012). MORCELA weights unigrams and length by a linear "
    "regression fitted to the ratings of other sentences (Tjuatja et al. 2024). Intervals for new sentences use "
    "Student's t, on Fisher's scale for correlations and in logits for shares. Their variance is estimated with "
    "influence functions (Efron 1982; DeLong et al. 1988 for the AUC). The two sentences of a pair count as one unit. "
    "The intervals of slopes apply to new runs on these sentences."
)


def measures(found: Answers) -> pd.DataFrame:
    """Measure how well each run's scores agree with people, on the sentences that all runs have scores for.

    Returns:
        The columns of runs, and level (the measure: Pearson, Spearman, AUC, ...), name (the score: lp, slor, ...),
        accuracy (the value), low and high (95% interval for new sentences, on Fisher's scale or in logits) and items
        (the number of sentences or pairs). If all ratings are the same, there are no correlations.

    Raises:
        RunError: If all ratings and all labels are the same, or if there are fewer than three sentences.
    """
    known = pd.concat([rows["lp"] for rows in found.tables], axis=1).notna().all(axis=1)
    measured = found.measured(lambda rows: measures_of_model(rows[known].reset_index(drop=True)))
    if measured.empty:
        raise RunError(
            f"{found.label}: all runs have scores for {plural(int(known.sum()), 'sentence')} (with the ratings "
            f"{first_few([*map(str, found.tables[0]['rating'].unique())])}). Use at least three sentences, with "
            "different ratings."
        )
    return measured.iloc[pd.factorize(measured["level"])[0].argsort(kind="stable")]


def describe(found: Answers) -> Description:
    """Describe rated sentences. Raises the same RunErrors as `measures`."""
    measured, rows = measures(found), found.tables[0]
    has_ratings = (measured["level"] == PEARSON).any()  # if there are only labels, the AUC is the main measure
    pairs = f" in {plural(rows['pair'].nunique(), 'pair')}" if rows["pair"].notna().any() else ""
    people = joined([f"{name}s" for name in ("rating", "label") if rows[name].notna().any()])
    return Description(
        about=f"The benchmark has {plural(len(rows), 'sentence')}{pairs} with people's {people}.",
        measured=measured,
        main=[(PEARSON if has_ratings else AUC, score) for score in SHOWN],
        what="The correlation of {name} with ratings" if has_ratings else "The AUC of {name}",
        notes=_notes(found),
        methods=_METHODS,
    )


def _notes(found: Answers) -> list[str]:
    """Return notes on missing unigrams, on tokens without a unigram count, and on `<unk>`."""
    missing = found.runs["unigrams"].str.get("missing")
    notes = [
        f"There is no norm_lp, slor or morcela for {joined(list(curves.unique()))}: {reason}."
        for reason, curves in found.runs["curve"].groupby(missing, sort=False)
    ]
    totals = pd.DataFrame([rows[["unseen", "unk", "tokens"]].sum() for rows in found.tables]).astype(float)
    unseen, unknown = totals["unseen"] / totals["tokens"], totals["unk"] / totals["tokens"]
    if unseen.max() >= 0.01 or unknown.max() >= 0.01:
        unseen_text = f"Up to {unseen.max():.0%} of a run's tokens don't occur in the text used for unigram counts"
        notes.append(f"{unseen_text}, and up to {unknown.max():.0%} are <unk>.")
    return notes
