"""Show accuracies in the terminal, with confidence intervals and with published accuracies for comparison."""

import math
from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd
from rich.table import Table
from rich.text import Text

from eval.published import number_of_paradigms, on_paradigms, read_published
from eval.scores.accuracy import (
    accuracies,
    best_template,
    by_repeat,
    repeats_text,
    share_of_a,
    tie_rule,
    unk_free,
    unscored,
)
from eval.scores.files import with_phenomena
from pairscale.sizes import plural
from pairscale.tables import filled_table

WIDTH = 120  # in characters, if the output isn't a terminal; a narrower terminal doesn't show published results

# The published models that fit into a terminal, by benchmark, with their headings.
BESIDE = {
    "blimp": {"people": "humans", "LSTM": "LSTM", "TXL": "TXL", "5-gram": "5-gram", "GPT-2": "GPT-2"},
    "climp": {
        "people": "humans",
        "LSTM-21.5M-word": "LSTM\nword",
        "LSTM-21.5M-char": "LSTM\nchar",
        "5-gram-2M-char": "5-gram\nchar",
        "Chinese BERT": "BERT",
    },
}

# Columns that are left out if a terminal is too narrow, in this order.
EXPENDABLE = ("pairs", "items", "contexts", "ties", "no <unk>", "known")
_TIES = {
    "wrong": "Ties count as errors.",
    "half": "Ties count as half correct (1/k for k options).",
    "right": "Ties count as correct.",
    "random": "Ties are broken at random.",
}


def accuracy_table(
    title: str, benchmark: str, scores: pd.DataFrame, items: pd.DataFrame, ties: str | None, width: int = WIDTH
) -> Table:
    """Return a table of accuracies in per cent, with one row per phenomenon and one overall (mean over paradigms).

    If there are several templates or trials, the table contains their mean and standard deviation instead of an
    interval, and the best template overall (Ide et al. 2024, tables 3 and 9). `scores` and `items` have the columns
    SCORES and ITEMS of eval.scores.schemas. `ties` is as in `accuracies`, and `width` is the terminal's in characters.
    """
    scores, key = with_phenomena(scores, items), ["level", "name"]
    ours = accuracies(scores, ties).set_index(key)
    known = accuracies(scores[unk_free(scores)], ties).set_index(key).reindex(ours.index)
    repeats = by_repeat(scores, ties).reindex(ours.index)
    best = best_template(scores, repeats)
    measures = ours.rename(columns={"pairs": "items"}).assign(
        known=known["accuracy"], known_items=known["pairs"].fillna(0).astype(int), unknown=True, sd=repeats.std(axis=1)
    )
    if repeats.shape[1] > 1:
        measures[["low", "high"]] = math.nan
    if best:
        measures["best"] = repeats[best]
    of_paradigms = scores.drop_duplicates("paradigm")
    phenomena: dict[str, str] = dict(zip(of_paradigms["paradigm"], of_paradigms["phenomenon"], strict=True))
    beside = BESIDE.get(benchmark, {}) if width >= WIDTH else {}
    published = on_paradigms(read_published(benchmark), phenomena)
    caption = _caption(scores, len(phenomena), best, ties_text(scores, ties))
    if beside:
        names = ", ".join(beside.values()).replace("\n", " ")
        caption += f"\n{names}: published accuracies on {_published_paradigms(published, benchmark, phenomena)}."
    measures = measures.drop("paradigm", level="level").reset_index()
    return measures_table(title, caption, measures, published, {"name": "phenomenon"}, beside, ("overall",), "pairs")


def methods_table(title: str, scores: dict[str, pd.DataFrame], items: pd.DataFrame, ties: str | None) -> Table:
    """Return a table with each method's accuracy, standard deviation and best template.

    See Ide et al. 2024, tables 3, 9 and 10.
    """
    lines = []
    for method, rows in scores.items():
        rows = with_phenomena(rows, items)
        overall = accuracies(rows, ties).iloc[-1]
        repeats = by_repeat(rows, ties)
        of_repeats = repeats.loc["overall"].iloc[0]
        best = best_template(rows, repeats)
        of_best = (
            [percent(of_repeats[best]), f"{repeats_text(rows)}, best: {best}"] if best else ["", repeats_text(rows)]
        )
        deviation, share = percent(of_repeats.std(ddof=1)), percent(share_of_a(rows))
        lines.append([method, percent(overall["accuracy"]), deviation, *of_best, f"{overall['ties']:,}", share])
    headings = ("method", "accuracy", "±", "best", "mean over", "ties", "share of A")
    table = filled_table(headings, lines, ("method", "mean over"))
    spread = " ±: standard deviation over templates or trials." if any(line[2] for line in lines) else ""
    caption = f"Accuracy in %, mean over paradigms.{spread} {ties_text(items, ties)}"
    table.title, table.caption = Text(title), Text(caption)
    return table


def measures_table(
    title: str,
    caption: str,
    measures: pd.DataFrame,
    published: pd.DataFrame,
    names: Mapping[str, str],
    beside: Mapping[str, str],
    bold: Collection[str] = (),
    count: str = "items",
) -> Table:
    """Return a table of measures in per cent, with one row per measure, and with published ones for comparison.

    Args:
        measures: The columns of eval.diagnostics.measures.MEASURES, and `best` if there are several templates.
        published: The columns level, name, model, accuracy and, if known, sd (eval.published).
        names: Columns that identify a row, with their headings.
        beside: Published models to show, with their headings.
        bold: Levels whose rows are printed in bold.
        count: What is counted, "items" or "pairs".
    """
    theirs = published.set_index(["level", "name", "model"]).reindex(columns=["accuracy", "sd"])
    texts = {key: _with_deviation(*values) for key, values in zip(theirs.index, theirs.to_numpy(), strict=True)}
    best = ["best"] if "best" in measures else []
    rows = []
    for row in measures.to_dict("records"):
        interval = f"{percent(row['low'])}–{percent(row['high'])}"
        cells = [f"{row['items']:,}", _with_deviation(row["accuracy"], row["sd"]), interval.strip("–")]
        cells += [*(percent(row[name]) for name in best), str(row["ties"] or "")]
        cells += [percent(row["known"]), f"{row['known_items']:,}"] if row["unknown"] else ["", ""]
        others = [texts.get((row["level"], row["name"], model), "") for model in beside]
        rows.append([*(str(row[column]) for column in names), *cells, *others])
    share, known = ("accuracy", "no <unk>") if count == "pairs" else ("share", "known")
    headings = [*names.values(), count, share, "95%", *best, "ties", known, count, *beside.values()]
    table = filled_table(headings, rows, [*names.values()])
    for line, level in zip(table.rows, measures["level"], strict=True):
        line.style = "bold" if level in bold else None
    table.title, table.caption = Text(title), Text(caption)
    return table


def trajectory_table(title: str, rows: list[dict[str, Any]]) -> Table:
    """Return a table of the words seen and the accuracies in per cent, with one row per snapshot.

    Each of `rows` is a result of `PairsWork.overall`.
    """
    methods = [key for key in rows[0] if key != "words_seen"]
    cells = [[f"{row['words_seen']:,}", *(percent(row[method]) for method in methods)] for row in rows]
    table = filled_table(["words seen", *methods], cells, [])
    table.title = Text(title)
    return table


def percent(share: float | None) -> str:
    """Format a share in per cent with one decimal. Return "" for None and NaN."""
    return "" if share is None or math.isnan(share) else f"{100 * share:.1f}"


def _with_deviation(share: float, deviation: float) -> str:
    return percent(share) + (f" ± {spread}" if (spread := percent(deviation)) else "")


def _published_paradigms(published: pd.DataFrame, benchmark: str, phenomena: Mapping[str, str]) -> str:
    """Describe the paradigms that published accuracies are based on (eval.published.on_paradigms)."""
    total, by_paradigm = number_of_paradigms(benchmark), set(published.loc[published["level"] == "paradigm", "name"])
    if total is None or len(phenomena) == total or (by_paradigm and by_paradigm <= set(phenomena)):
        return "the same paradigms"
    return f"all {total} paradigms. They aren't comparable with this model's, which include only some of these"


def ties_text(scores: pd.DataFrame, ties: str | None) -> str:
    """Return a sentence on how ties count (eval.scores.accuracy.tie_rule)."""
    rule, _, seed = tie_rule(scores, ties).partition(":")
    return _TIES[rule].replace("random", f"random (seed {seed or 1})")


def _caption(scores: pd.DataFrame, paradigms: int, best: str | None, ties: str) -> str:
    several = repeats_text(scores)
    measured = "95%: confidence interval for new pairs of these paradigms."
    if several:
        measured = f"Mean over {several}; ±: their standard deviation." + (f" Best overall: {best}." if best else "")
    caption = f"Accuracy in %; overall: mean over {plural(paradigms, 'paradigm')}. {measured} {ties}"
    if empty := int(unscored(scores["good"], scores["bad"]).sum()):
        caption += f" Ties because a sentence has no scored token: {empty:,}."
    critical = int((scores.drop_duplicates(["paradigm", "pair_id"])["crit_unk"] > 0).sum())
    return caption + (f" Pairs that differ in an unknown token (<unk>): {critical:,}." if critical else "")
