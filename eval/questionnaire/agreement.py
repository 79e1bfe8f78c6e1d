"""Agreement of people with a benchmark, singly and by majority (Warstadt et al. 2020, section 3.4)."""

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.table import Table
from rich.text import Text
from scipy.special import ndtri, stdtrit

from eval.scores.table import percent
from pairscale.shares import wilson
from pairscale.tables import plain_table

COLUMNS = [
    "level", "name", "paradigms", "pairs", "raters", "judgements", "agreement", "low", "high", "error", "majority",
    "ties", "seconds",
]  # fmt: skip
Array = npt.NDArray[np.float64]


def agreement(judgements: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Return the agreement of people with the labels, in each paradigm, each phenomenon and overall; columns COLUMNS.

    `judgements`: columns of eval.questionnaire.answers.JUDGEMENTS. agreement: of single judgements ("individual"), in a
    phenomenon and overall the mean over paradigms, as accuracies are. majority: share of pairs in which more than half
    of the judgements agree, the mean over paradigms too; ties: pairs in which just half do, which is no majority.
    low, high: interval over new people and new pairs of the same paradigms; error: a standard error that is never 0
    (`_spread`); all NaN where a paradigm has one pair, or one person judged alone. seconds: median of the time taken.
    """
    units = [("paradigm", str(name), rows) for name, rows in judgements.groupby("paradigm", sort=True)]
    units += [("phenomenon", str(name), rows) for name, rows in judgements.groupby("phenomenon", sort=True)]
    units.append(("overall", "overall", judgements))
    table = []
    for level, name, rows in units:
        shares = rows.groupby("paradigm")["right"].mean()
        share = float(shares.mean())
        trials, freedom = _spread(rows)
        # Wilson's interval with Student's quantile is that with the normal one and so much fewer trials.
        fewer = (ndtri(0.5 + confidence / 2) / stdtrit(freedom, 0.5 + confidence / 2)) ** 2
        low, high = wilson(share, trials * fewer, confidence) if not math.isnan(trials) else (math.nan, math.nan)
        middle = (trials * share + 2) / (trials + 4)  # Agresti and Coull 1998
        votes = rows.groupby(["paradigm", "pair_id"])["right"].mean()
        table.append(
            {
                "level": level,
                "name": name,
                "paradigms": len(shares),
                "pairs": len(votes),
                "raters": rows["rater"].nunique(),
                "judgements": len(rows),
                "agreement": share,
                "low": low,
                "high": high,
                "error": math.sqrt(middle * (1 - middle) / (trials + 4)),
                "majority": float((votes > 0.5).groupby(level="paradigm").mean().mean()),
                "ties": int((votes == 0.5).sum()),
                "seconds": float(rows["seconds"].median()),
            }
        )
    return pd.DataFrame(table, columns=COLUMNS)


def _spread(rows: pd.DataFrame) -> tuple[float, float]:
    """Return how many independent judgements a mean over paradigms is worth, and degrees of freedom.

    Judgements of one person, and of one pair, go together: the variance is that of clusters in two directions, of
    people plus of pairs (within their paradigm) minus of single judgements (Cameron, Gelbach and Miller 2011, equation
    2.11); the number is that of independent judgements with this variance, at most that of all (Korn and Graubard
    1998). Degrees of freedom are those of the fewer clusters. NaN with one person, or one pair in a paradigm.
    """
    sizes = rows.groupby("paradigm")["right"].transform("size")
    paradigms, raters = rows["paradigm"].nunique(), rows["rater"].nunique()
    pairs = rows.groupby("paradigm")["pair_id"].nunique()
    if raters < 2 or pairs.min() < 2:
        return math.nan, math.nan
    rest = (rows["right"] - rows.groupby("paradigm")["right"].transform("mean")) / (paradigms * sizes)
    of_people = (rest.groupby(rows["rater"]).sum() ** 2).sum() * raters / (raters - 1)
    of_pairs = (rest.groupby([rows["paradigm"], rows["pair_id"]]).sum() ** 2).groupby(level="paradigm").sum()
    variance = of_people + (of_pairs * pairs / (pairs - 1)).sum() - (rest**2).sum()
    share = float(rows.groupby("paradigm")["right"].mean().mean())
    worth = share * (1 - share) / variance if variance > 0 else math.inf
    return min(float(len(rows)), worth), float(min(raters - 1, (pairs - 1).sum()))


def agreement_table(title: str, table: pd.DataFrame, threshold: float) -> Table:
    """Return a table for the terminal, in per cent, with a row per paradigm, phenomenon and overall of `agreement`."""
    caption = (
        f"per cent; phenomena and overall: means over paradigms; majority: pairs in which more than half of the people "
        f"agree, a tie is none; !: less than {100 * threshold:g} of a paradigm's pairs; 95%: for new people and pairs"
    )
    shown = plain_table(title, Text(caption))
    shown.add_column("paradigm", no_wrap=True)
    for heading in ("people", "pairs", "judged", "agree", "95%", "majority", "ties", "seconds"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for level, rows in table.groupby("level", sort=False):
        for row in rows.to_dict("records"):
            interval = "" if math.isnan(row["low"]) else f"{percent(row['low'])}–{percent(row['high'])}"
            mark = "!" if level == "paradigm" and row["majority"] < threshold else " "
            cells = [*(f"{row[name]:,}" for name in ("raters", "pairs", "judgements")), percent(row["agreement"])]
            cells += [interval, percent(row["majority"]) + mark, f"{row['ties']:,}", f"{row['seconds']:.1f}"]
            shown.add_row(Text(row["name"]), *cells, style="bold" if level == "overall" else None)
        if level != "overall":
            shown.add_row()
    return shown
