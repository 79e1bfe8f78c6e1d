"""Findings and methods of graded acceptability, in sentences; none says more than its interval."""

import pandas as pd

from analysis.exhibits.sentences.curves import joined, plural
from analysis.exhibits.sentences.findings import Finding
from analysis.exhibits.tables.text import accuracy_text, signed_text, supported_digits
from analysis.measures.ratings import FIRST, LAST, Rated
from eval.ratings.measures import AUC, PEARSON
from pairscale.sizes import readable_size

# The score that sentences are about is chosen before results are seen: the first of these that a model has.
OF_SENTENCES = ("slor", "mean_lp")
_NAMES = {"slor": "SLOR", "mean_lp": "Mean log-probability"}


def rating_findings(means: pd.DataFrame, over_text: pd.DataFrame, confidence: float) -> list[Finding]:
    """Return a finding for each curve or model; tables of analysis.measures.ratings."""
    measure = PEARSON if (means["measure"] == PEARSON).any() else AUC
    found = []
    for group, rows in means[means["measure"] == measure].groupby("group", sort=False):
        score = next((name for name in OF_SENTENCES if name in set(rows["score"])), None)
        if score is None:
            continue
        last = rows[rows["score"] == score].sort_values("words").iloc[-1]
        change = over_text[
            (over_text["group"] == group) & (over_text["score"] == score) & (over_text["measure"] == measure)
        ]
        details = _change(change.iloc[0]) if len(change) else ""
        found.append(Finding(str(group), _level(last, measure, confidence), details))
    return found


def _level(row: pd.Series, measure: str, confidence: float) -> str:
    single = row["runs"] == 1 or row["low_both"] != row["low_both"]
    low, high = (row["low_items"], row["high_items"]) if single else (row["low_both"], row["high_both"])
    new = "new sentences" if single else "new runs and new sentences"
    at = f" at {readable_size(row['size'])}" if row["size"] else ""
    interval = f"{confidence:.0%} interval for {new}"
    name = _NAMES[row["score"]]
    none = 0.5 if measure == AUC else 0.0
    if low != low:
        return f"{name} has no interval{at}."
    what = "parts good and bad sentences" if measure == AUC else "correlates with ratings"
    value = f"{_text(row['value'], low, high)} [{_text(low, low, high)}, {_text(high, low, high)}]"
    if low <= none <= high:
        shown = f"{plural(int(row['runs']), 'run')} and {row['items']:,} sentences do not show that {name} {what}{at}"
        return f"{shown}: {measure} {value}, {interval}."
    return f"{name} {what}{at}{', the wrong way round' if high < none else ''}: {measure} {value}, {interval}."


def _change(row: pd.Series) -> str:
    low, high = row["low"], row["high"]
    between = f"from {readable_size(row[FIRST])} to {readable_size(row[LAST])}"
    if low != low:
        return f"One run at a size: nothing is said of the change {between}."
    digits = supported_digits(low, high)
    value, *ends = (signed_text(number, digits=digits) for number in (row["value"], low, high))
    limits = f"{value} [{', '.join(ends)}], for new runs on these sentences"
    if low <= 0 <= high:
        return f"{plural(int(row['runs']), 'run')} do not show a change {between}: {limits}."
    return f"It {'rises' if low > 0 else 'falls'} {between}: {limits}."


def _text(value: float, low: float, high: float) -> str:
    return accuracy_text(value, digits=supported_digits(low, high))


def rating_methods(answers: Rated) -> list[str]:
    """Return the methods paragraph, for a paper."""
    text = [
        "The log-probability of a sentence is the sum over its tokens (nats). SLOR is this less the sentence's unigram "
        "log-probability, over the number of tokens (Pauls and Klein 2012; Lau et al. 2017); MORCELA weights unigrams "
        "and length by a linear regression of the ratings (Tjuatja et al. 2024), five-fold cross-validated.",
    ]
    sources = sorted({str(of["of"]) for of in answers.counted.values() if "of" in of})
    if "sample" in sources:
        unseen = next(of["unseen"] for of in answers.counted.values() if of.get("of") == "sample")
        text.append(
            "Unigram log-probabilities are relative frequencies of tokens in each run's own training sample, counted "
            f"whole; a token that it lacks counts as {unseen} occurrences."
        )
    if others := [name for name in sources if name != "sample"]:
        text.append(f"Those of models that came trained are of {joined(others)}, by the model's own tokenizer.")
    masked = [group for group, policy in answers.policies.items() if policy.get("pll")]
    if masked:
        text.append(f"{joined(masked)}: the log-probability is the pseudo-log-likelihood (Salazar et al. 2020).")
    text.append(
        "Runs and sentences are crossed. Variance over sentences is that of influence functions (Efron 1982; DeLong et "
        "al. 1988 for the AUC), over runs that of the runs of a size; intervals are Student's, of correlations on "
        "Fisher's scale, of shares in logits, and both sentences of a pair are one unit."
    )
    if any(policy.get("unk") == "skip" for policy in answers.policies.values()):
        text.append("Unknown words are skipped; sentences count that all runs have a score of.")
    return text
