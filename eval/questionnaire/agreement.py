"""Agreement of people with a benchmark, singly and by majority (Warstadt et al. 2020, section 3.4)."""

import math

import numpy as np
import pandas as pd
from rich.table import Table
from rich.text import Text
from scipy.special import ndtri, stdtrit

from eval.scores.table import percent
from pairscale.shares import wilson
from pairscale.tables import filled_table


def agreement(judgements: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Return the agreement of people with the labels, in each paradigm, each phenomenon and overall.

    `judgements`: columns of eval.questionnaire.answers.JUDGEMENTS. Returns the columns level, name, paradigms, pairs,
    raters, judgements, agreement, low, high, majority, ties, seconds. agreement: of single judgements ("individual"),
    in a phenomenon and overall the mean over paradigms, as accuracies are. majority: share of pairs in which more than
    half of the judgements agree, the mean over paradigms too; ties: pairs in which just half do, which is no majority.
    low, high: see `_interval`. seconds: median of the time taken.
    """
    units = [
        (level, str(name), rows) for level in ("paradigm", "phenomenon") for name, rows in judgements.groupby(level)
    ]
    table = []
    for level, name, rows in [*units, ("overall", "overall", judgements)]:
        votes = rows.groupby(["paradigm", "pair_id"])["right"].mean()
        share = float(rows.groupby("paradigm")["right"].mean().mean())
        low, high = _interval(rows, share, confidence)
        table.append(
            {
                "level": level,
                "name": name,
                "paradigms": rows["paradigm"].nunique(),
                "pairs": len(votes),
                "raters": rows["rater"].nunique(),
                "judgements": len(rows),
                "agreement": share,
                "low": low,
                "high": high,
                "majority": float((votes > 0.5).groupby(level="paradigm").mean().mean()),
                "ties": int((votes == 0.5).sum()),
                "seconds": float(rows["seconds"].median()),
            }
        )
    return pd.DataFrame(table)


def _interval(rows: pd.DataFrame, share: float, confidence: float) -> tuple[float, float]:
    """Return Wilson's interval of a mean over paradigms, over new people and new pairs of the same paradigms.

    Judgements of one person, and of one pair, go together: the variance is that of clusters in two directions, of
    people plus of pairs (within their paradigm) minus of single judgements (Cameron, Gelbach and Miller 2011, equation
    2.11); the trials are as many independent judgements as have this variance, at most all (Korn and Graubard 1998).
    Degrees of freedom are those of the fewer clusters. NaN with one person, or one pair in a paradigm.
    """
    by_paradigm = rows.groupby("paradigm")
    raters, pairs = rows["rater"].nunique(), by_paradigm["pair_id"].nunique()
    if raters < 2 or pairs.min() < 2:
        return math.nan, math.nan
    sizes, means = (by_paradigm["right"].transform(of) for of in ("size", "mean"))
    rest = (rows["right"] - means) / (len(pairs) * sizes)
    of_people = (rest.groupby(rows["rater"]).sum() ** 2).sum() * raters / (raters - 1)
    of_pairs = (rest.groupby([rows["paradigm"], rows["pair_id"]]).sum() ** 2).groupby(level="paradigm").sum()
    variance = of_people + (of_pairs * pairs / (pairs - 1)).sum() - (rest**2).sum()
    trials = min(float(len(rows)), share * (1 - share) / variance if variance > 0 else math.inf)
    freedom = float(min(raters - 1, (pairs - 1).sum()))
    # Wilson's interval with Student's quantile is that with the normal one and so much fewer trials.
    fewer = (ndtri(0.5 + confidence / 2) / stdtrit(freedom, 0.5 + confidence / 2)) ** 2
    return wilson(share, trials * fewer, confidence)


def agreement_table(title: str, table: pd.DataFrame, threshold: float) -> Table:
    """Return a table for the terminal, in per cent, with a row per paradigm, phenomenon and overall of `agreement`."""
    percents = table[["agreement", "low", "high", "majority"]].map(percent)
    percents["majority"] += np.where((table["level"] == "paradigm") & (table["majority"] < threshold), "!", " ")
    counts = table[["name", "raters", "pairs", "judgements"]]
    cells = pd.concat([counts, percents, table["ties"], table["seconds"].round(1)], axis=1).astype(str)
    headings = ["paradigm", "people", "pairs", "judged", "agree", "low", "high", "majority", "ties", "seconds"]
    shown = filled_table(headings, cells.to_numpy().tolist(), headings[:1])
    shown.title = Text(title)
    shown.caption = Text(
        "per cent; phenomena and overall: means over paradigms; low, high: 95%, for new people and pairs; majority: "
        f"pairs in which more than half of the people agree; !: less than {threshold:.0%} of a paradigm's pairs"
    )
    return shown
