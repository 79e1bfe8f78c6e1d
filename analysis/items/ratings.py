"""Graded acceptability: how far the scores of each run agree with people's ratings of sentences.

The measures of one run, with intervals for new sentences, are eval.ratings.measures: correlations with ratings (Pearson
and Spearman, on Fisher's scale) and the separation of good from bad sentences (AUC). Scores such as SLOR are those of
Lau, Clark and Lappin 2017 ("Grammaticality, acceptability, and probability", Cognitive Science 41, 1202-1241).
"""

import pandas as pd

from analysis.formats import joined, plural
from analysis.items.results import Answers, Description
from eval.ratings.measures import AUC, PEARSON
from eval.ratings.measures import measures as measures_of_model
from pairscale.errors import RunError, first_few

# The score that findings are about is chosen before results are seen: the first of these that a curve has.
SHOWN = ("slor", "mean_lp", "lp", "morcela")
_METHODS = (
    "The log-probability of a sentence (lp) is the sum over its tokens (nats); for masked models, the "
    "pseudo-log-likelihood (Salazar et al. 2020). Mean_lp, pen_lp and norm_lp are those of Lau et al. 2020. SLOR is lp "
    "less the unigram log-probability, per token (Pauls and Klein 2012). MORCELA weights unigrams and length by a "
    "linear regression of the ratings of other sentences (Tjuatja et al. 2024). Intervals for new sentences are "
    "Student's, of correlations on Fisher's scale and of shares in logits, with the variance of influence functions "
    "(Efron 1982; DeLong et al. 1988 for the AUC). Both sentences of a pair are one unit. Intervals of slopes are for "
    "new runs on these sentences."
)


def measures(found: Answers) -> pd.DataFrame:
    """Return how far each run's scores agree with people, on the sentences that every run has a score of.

    Returns:
        The columns of runs; level (the measure: Pearson, Spearman, AUC, ...), name (the score: lp, slor, ...), accuracy
        (the value), low and high (95% interval for new sentences, on Fisher's scale or that of logits) and items
        (sentences, or pairs). There are no correlations with ratings that are all the same.

    Raises:
        RunError: if all ratings and all labels are the same, or if there are fewer than three sentences.
    """
    known = pd.concat([rows["lp"] for rows in found.tables], axis=1).notna().all(axis=1)
    measured = found.measured(lambda rows: measures_of_model(rows[known].reset_index(drop=True)))
    if measured.empty:
        raise RunError(
            f"{found.label}: the {plural(int(known.sum()), 'sentence')} that all runs have scores of are too few, or "
            f"rated all the same ({first_few([*map(str, found.tables[0]['rating'].unique())])})."
        )
    return measured.iloc[pd.factorize(measured["level"])[0].argsort(kind="stable")]


def describe(found: Answers) -> Description:
    """Describe rated sentences. Raises RunError as `measures` does."""
    measured, rows = measures(found), found.tables[0]
    has_ratings = (measured["level"] == PEARSON).any()  # of labels alone, the AUC is the main measure
    pairs = f" in {plural(rows['pair'].nunique(), 'pair')}" if rows["pair"].notna().any() else ""
    people = joined([f"{name}s" for name in ("rating", "label") if rows[name].notna().any()])
    return Description(
        about=f"{plural(len(rows), 'sentence')}{pairs} with people's {people}.",
        measured=measured,
        main=[(PEARSON if has_ratings else AUC, score) for score in SHOWN],
        what="The correlation of {name} with ratings" if has_ratings else "The AUC of {name}",
        notes=_notes(found),
        methods=_METHODS,
    )


def _notes(found: Answers) -> list[str]:
    """Return notes on missing unigrams, and on tokens without a count and `<unk>`."""
    missing = found.runs["unigrams"].str.get("missing")
    notes = [
        f"There is no norm_lp, slor or morcela of {joined(list(curves.unique()))}: {reason}."
        for reason, curves in found.runs["curve"].groupby(missing, sort=False)
    ]
    totals = pd.DataFrame([rows[["unseen", "unk", "tokens"]].sum() for rows in found.tables]).astype(float)
    unseen, unknown = totals["unseen"] / totals["tokens"], totals["unk"] / totals["tokens"]
    if unseen.max() >= 0.01 or unknown.max() >= 0.01:
        shares = f"up to {unseen.max():.0%} don't occur in the text of unigrams, up to {unknown.max():.0%} are <unk>"
        notes.append(f"Of a run's tokens, {shares}.")
    return notes
