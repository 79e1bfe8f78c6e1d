"""Graded acceptability: agreement of scores with people's ratings over training text."""

from functools import partial

import pandas as pd

from analysis.curves.graded.agreement import LIMITS
from analysis.exhibits.exhibit import Exhibit, existing
from analysis.exhibits.figures.methods import bands_note
from analysis.exhibits.figures.ratings import agreement_chart, scores_chart
from analysis.exhibits.sentences import curves as sentences
from analysis.exhibits.sentences.curves import joined, plural
from analysis.exhibits.sentences.ratings import rating_findings, rating_methods
from analysis.exhibits.tables.text import accuracy_text, count, decimal_text, signed_text
from analysis.measures.ratings import FIRST, LAST, Rated, changes, fits, gains, groups, over_sizes, rated
from analysis.sections.section import RATINGS, TableSection
from analysis.study.collect import Study
from eval.ratings.measures import (
    ACCURACY,
    AUC,
    MCC,
    PEARSON,
    PEARSON_PAIRS,
    SCALES,
    SPEARMAN_PAIRS,
)
from eval.ratings.scores import SCORES

PANELS = (PEARSON, AUC, MCC, PEARSON_PAIRS)  # of a single curve
SHOWN = ("lp", "mean_lp", "slor", "morcela")  # scores with a panel each, where there are several curves
_DEFINITIONS = {
    "lp, mean_lp, pen_lp": "Log-probability; over tokens; over ((5 + tokens) / 6)^0.8 (Lau et al. 2020).",
    "norm_lp": "Minus log-probability over unigram log-probability (Lau et al. 2020).",
    "slor": "Log-probability less unigram log-probability, over tokens (Pauls and Klein 2012).",
    "morcela": "The same with weights of unigrams and length that are fitted to the ratings, here to those of other "
    "sentences (Tjuatja et al. 2024).",
}
_MEASURES = {
    "Pearson, Spearman": "Correlation of scores, or of their ranks, with ratings.",
    "AUC": "Share of all good and bad sentences, paired or not, of which the good one scores higher; chance is .5.",
    "Accuracy, MCC": "Good and bad by a threshold, by which as many sentences of four fifths are called good as are "
    "good, applied to the rest. MCC: Matthews' correlation.",
    "Pairs": "Share of pairs whose good sentence scores higher.",
    "Of differences": "Correlation over pairs: the good sentence's score less the bad one's, and people's ratings so.",
}


def ratings_section(study: Study, label: str, confidence: float) -> TableSection:
    """Read the scores of a study's runs on rated sentences; raises the errors of `rated`."""
    answers = rated(study, label)
    of = groups(answers)
    means, over_text = over_sizes(of, confidence), changes(of, confidence)
    placed = answers.runs[answers.runs["sample_words"].notna()]
    rows = answers.sentences
    pairs = f" in {plural(int(rows['pair'].nunique()), 'pair')}" if rows["pair"].notna().any() else ""
    said = joined([name for name, column in (("ratings", "rating"), ("labels", "label")) if rows[column].notna().any()])
    beside = len(answers.runs) - len(placed)
    extent = [sentences.extent(placed)] if len(placed) else []
    extent += [f"{plural(beside, 'pretrained model')}"] if beside else []
    return TableSection(
        label=label,
        file=label,
        kind=RATINGS,
        extent=f"{plural(len(rows), 'sentence')}{pairs} with people's {said}. {'; '.join(extent)}.",
        warnings=[*sentences.left_out(answers.problems, "tables"), *answers.notes, *_warnings(answers)],
        exhibits=existing([
            _scores(means, gains(of, confidence), confidence),
            _sizes(answers, means, confidence),
            _changes(over_text, confidence),
            _fits(answers, means),
            _everything(means, confidence),
        ]),
        methods=rating_methods(answers),
        problems=answers.problems,
        runs=answers.runs,
        digest=answers.digest,
        findings=rating_findings(means, over_text, confidence),
    )  # fmt: skip


def _primary(means: pd.DataFrame) -> str:
    """Return the measure that figures show: Pearson's correlation, or of labels alone the AUC."""
    return PEARSON if (means["measure"] == PEARSON).any() else AUC


def _largest(means: pd.DataFrame) -> pd.DataFrame:
    largest = means.groupby("group")["words"].transform("max")
    return means[(means["words"] == largest) | means["words"].isna()]


def _ordered(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort by curve and, within it, by SCORES."""
    return rows.sort_values("score", key=lambda names: names.map(SCORES.index), kind="stable")


def _for_new(rows: pd.DataFrame) -> pd.DataFrame:
    """Return limits for new runs and new sentences; of a single run, for new sentences."""
    single = rows["low_both"].isna()
    low, high = (rows[f"{end}_both"].where(~single, rows[f"{end}_items"]) for end in ("low", "high"))
    return rows.assign(low=low, high=high)


def _scores(means: pd.DataFrame, more: pd.DataFrame, confidence: float) -> Exhibit | None:
    """Return a row for each curve and score with all measures at the largest size, and the gain over lp."""
    if means.empty:
        return None
    measure = _primary(means)
    largest = _for_new(_largest(means))
    of = largest[largest["measure"] == measure].rename(columns={"group": "curve"})
    wide = largest.pivot_table(index=["group", "score"], columns="measure", values="value", sort=False, dropna=False)
    others = [name for name in dict.fromkeys(largest["measure"]) if name != measure]
    table = of[["curve", "size", "runs", "score", "value", "low", "high"]]
    gain = _for_new(more[more["measure"] == measure]).rename(columns={"group": "curve", "value": "over lp"})
    gain = gain.rename(columns={"low": "low gain", "high": "high gain"})
    table = table.merge(gain[["curve", "score", "over lp", "low gain", "high gain"]], on=["curve", "score"], how="left")
    table = table.merge(wide[others], left_on=["curve", "score"], right_index=True, how="left")
    table = _ordered(table).sort_values("curve", key=lambda names: names.map(list(of["curve"]).index), kind="stable")
    table = table.rename(columns={"value": measure}).reset_index(drop=True)
    of_new = f"{confidence:.0%} interval"
    return Exhibit(
        "scores",
        "Agreement with people by score",
        "At each curve's largest size, means over its runs; beside, how much more a score agrees with people than raw "
        "log-probability, on the same runs and sentences.",
        table,
        cells={"over lp": signed_text, **dict.fromkeys(others, accuracy_text)},
        intervals={of_new: (measure, "low", "high"), f"{of_new} of the gain": ("over lp", "low gain", "high gain")},
        charts={"scores": partial(scores_chart, _ordered(of), measure)},
        optional=[name for name in (ACCURACY, SPEARMAN_PAIRS) if name in others],
        confidence=confidence,
        definitions={
            **_DEFINITIONS,
            **_MEASURES,
            "Intervals": f"{confidence:.0%}, for new runs and new sentences; of a single run, for new sentences.",
        },
    )


def _sizes(answers: Rated, means: pd.DataFrame, confidence: float) -> Exhibit | None:
    """Return curves over training text: of one curve a panel for each measure, of several one for each score."""
    placed = means[means["words"].notna()]
    several = placed.groupby("group")["size"].nunique()
    placed = placed[placed["group"].isin(several.index[several > 1])]
    if placed.empty:
        return None
    unit = "tokens" if set(answers.runs["reference"].dropna()) == {"tokens"} else "words"
    measure = _primary(placed)
    panels: list[tuple[str, str, pd.DataFrame]] = []
    if placed["group"].nunique() == 1:
        for name in PANELS:
            rows = placed[placed["measure"] == name]
            if len(rows):
                panels.append((name, name, rows.assign(name=rows["score"])))
    else:
        for score in SHOWN:
            rows = placed[(placed["score"] == score) & (placed["measure"] == measure)]
            if len(rows):
                panels.append((f"{measure}, {score}", measure, rows.assign(name=rows["group"])))
    charts = {}
    for number, (heading, of, rows) in enumerate(panels):
        level = 0.5 if SCALES[of].share else 0.0
        charts[f"sizes-{number}"] = partial(agreement_chart, rows, heading, level, unit=unit)
    table = pd.concat([rows for *_, rows in panels])
    table = table[["measure", "score", "group", "size", "runs", "value", "low", "high"]]
    note = bands_note(pd.concat([rows["name"] for *_, rows in panels]))
    return Exhibit(
        "sizes",
        "By training text",
        f"Means over the runs of a size; no line is fitted. Level lines: no agreement.{note}",
        table.rename(columns={"group": "curve"}),
        charts=charts,
        confidence=confidence,
        definitions={"Bands": f"{confidence:.0%} intervals for new runs, on these sentences."},
    )


def _changes(over_text: pd.DataFrame, confidence: float) -> Exhibit | None:
    if over_text.empty:
        return None
    columns = {"group": "curve", FIRST: "from", LAST: "to", "runs": "runs", "measure": "measure", "score": "score"}
    columns |= {"value": "change", "low": "low", "high": "high", "low_both": "low both", "high_both": "high both"}
    table = over_text[list(columns)].rename(columns=columns)
    return Exhibit(
        "changes",
        "From the smallest to the largest size",
        "Differences of means over runs.",
        table,
        cells={"change": signed_text},
        intervals={
            f"{confidence:.0%} interval": ("change", "low", "high"),
            "for new sentences too": ("change", "low both", "high both"),
        },
        confidence=confidence,
    )


def _fits(answers: Rated, means: pd.DataFrame) -> Exhibit | None:
    """Return the weights of MORCELA, with its correlations in and out of the sentences that it is fitted to."""
    table = fits(answers)
    if table.empty:
        return None
    tested = means[(means["score"] == "morcela") & (means["measure"] == PEARSON)].set_index(["group", "size"])["value"]
    table["cross-validated"] = [tested.get(key) for key in table[["group", "size"]].itertuples(index=False, name=None)]
    columns = {"group": "curve", "size": "size", "runs": "runs", "beta": "beta", "gamma": "gamma", "fitted": "of runs",
               "in_sample": "in sample", "cross-validated": "cross-validated"}  # fmt: skip
    table = table[list(columns)].rename(columns=columns).dropna(axis="columns", how="all")
    return Exhibit(
        "morcela",
        "Weights of frequency and length",
        "MORCELA's weights, fitted to all sentences, means over runs; correlations with the ratings that it is fitted "
        "to, and with those of sentences that it is not fitted to.",
        table,
        cells={"beta": _two_digits, "gamma": decimal_text, "of runs": count},
        definitions={
            "Beta": "Weight of unigram log-probability: 1 in SLOR, 0 where frequency makes no difference to people.",
            "Gamma": "Weight of length, in nats: 0 in SLOR; above 0 people mind length less than SLOR does.",
            "Of runs": "Runs whose fit gives higher ratings to higher probability; of others the two mean nothing.",
        },
    )


def _two_digits(value: float) -> str:
    return "–" if value != value else f"{value:.2f}"


def _everything(means: pd.DataFrame, confidence: float) -> Exhibit:
    columns = {"group": "curve", "size": "size", "runs": "runs", "measure": "measure", "score": "score",
               "items": "items", "value": "value", **{name: name.replace("_", " ") for name in LIMITS}}  # fmt: skip
    return Exhibit(
        "agreement",
        "All measures",
        "Means over the runs of a size, on Fisher's scale (correlations) or in logits (shares).",
        means[list(columns)].rename(columns=columns),
        cells={"runs": count, "items": count},
        intervals={
            "for new runs": ("value", "low", "high"),
            "for new sentences": ("value", "low items", "high items"),
            "for both": ("value", "low both", "high both"),
        },
        confidence=confidence,
        definitions={"Items": "Sentences, or pairs.", "Intervals": f"{confidence:.0%}."},
        filtered=False,
    )


def _warnings(answers: Rated) -> list[str]:
    """Return warnings on missing unigrams, tokens without a count, `<unk>` and few sentences."""
    rows, texts = answers.measured, []
    reasons: dict[str, list[str]] = {}
    for run, counted in answers.counted.items():
        if reason := counted.get("missing"):
            reasons.setdefault(str(reason), []).append(str(answers.runs.at[run, "group"]))
    for reason, names in reasons.items():
        texts.append(f"No norm_lp, slor and morcela of {joined(sorted(set(names)))}: {reason}.")
    of_run = rows.groupby("run", sort=False)[["unseen", "unk", "tokens"]].sum()
    for column, what in (("unseen", "that the text of the unigrams lacks"), ("unk", "that are <unk>")):
        share = float((of_run[column] / of_run["tokens"]).max())
        if share >= 0.01:
            texts.append(f"Up to {share:.0%} of a run's tokens are ones {what}.")
    if len(answers.sentences) < 50:
        texts.append(f"{len(answers.sentences)} sentences are few: intervals for new ones are rough.")
    return texts
