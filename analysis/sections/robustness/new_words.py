"""Intervals for new words in the report, on request (analysis.new_words)."""

import pandas as pd

from analysis.curves.robustness.lexical import new_word_table, related_of
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.sentences.curves import in_text, plural
from analysis.exhibits.tables.text import decimal_text, slope_text
from analysis.sections.section import Report, Section, contributes
from eval.scores.files import read_items

SHOWN = {
    "name": "phenomenon", "group": "curve", "accuracy": "accuracy", "low_pairs": "low pairs",
    "high_pairs": "high pairs", "low_words": "low words", "high_words": "high words", "ratio": "ratio",
    "slope": "slope", "slope_low_pairs": "slope low pairs", "slope_high_pairs": "slope high pairs",
    "slope_low_words": "slope low words", "slope_high_words": "slope high words", "slope_ratio": "ratio of slopes",
}  # fmt: skip


def new_words_sentence(rows: pd.DataFrame) -> str:
    """Say by how much errors of a curve grow for new words, overall and at most, and which slopes still differ from 0.

    `rows`: of analysis.curves.robustness.lexical.new_word_table, overall and phenomena.
    """
    whole = rows[rows["level"] == "overall"].iloc[0]
    single = rows[rows["level"] == "phenomenon"]
    text = f"for new words the standard error of overall accuracy is {whole['ratio']:.2f} times that for new pairs"
    if len(single) and single["ratio"].notna().any():
        most = single.iloc[int(single["ratio"].fillna(0).to_numpy().argmax())]
        text += f", and at most {most['ratio']:.2f} times ({in_text(most['name'])})"
    if single["slope_low_words"].notna().any():
        known, still = (
            int(((single[f"slope_low_{what}"] > 0) | (single[f"slope_high_{what}"] < 0)).sum())
            for what in ("pairs", "words")
        )
        text += f"; slopes of {plural(still, 'phenomenon')} differ from 0 for new words, of {known} for new "
        text += "pairs (not corrected for multiple comparisons)"
    return f"{text}."


def new_words_exhibit(table: pd.DataFrame, confidence: float) -> Exhibit:
    """Return the intervals for new words beside those for new pairs; `table`: of `new_word_table`."""
    rows = table[table["level"] != "paradigm"]
    shown = rows[list(SHOWN)].rename(columns=SHOWN).dropna(axis="columns", how="all")
    level = f"{confidence:.0%}"
    intervals = {
        f"{level} for new pairs": ("accuracy", "low pairs", "high pairs"),
        f"{level} for new words": ("accuracy", "low words", "high words"),
        f"slope, {level} for new pairs": ("slope", "slope low pairs", "slope high pairs"),
        f"slope, {level} for new words": ("slope", "slope low words", "slope high words"),
    }
    return Exhibit(
        "new-words",
        "New words",
        "Pairs of a paradigm use the same words again, so that what a model does with one word is in many pairs. "
        "Intervals for new pairs of these words beside those for pairs of other words, at each curve's largest size "
        "and of its slope; both are for new runs, too.",
        shown,
        cells={"ratio": decimal_text, "ratio of slopes": decimal_text, "slope": slope_text},
        intervals={heading: of for heading, of in intervals.items() if set(of) <= set(shown)},
        confidence=confidence,
        takeaways=[(str(group), new_words_sentence(of)) for group, of in rows.groupby("group", sort=False)],
        definitions={
            "New words": "Pairs that share a word are related: a word in either sentence that no more than a tenth of "
            "the paradigm's pairs have; more frequent ones belong to its template. Errors are clustered by all of them "
            "at once (Clark 1973; Cameron, Gelbach and Miller 2011) and no smaller than of unrelated pairs.",
            "Ratio": "The standard error for new words over that for new pairs.",
        },
        optional=[f"slope, {level} for new pairs"],
    )


@contributes(57, from_files=True)
def new_words(section: Section, report: Report) -> list[Exhibit]:
    judged, config = section.fitted, report.config.analysis
    if not config.new_words or judged.of_paradigms:
        return []
    items, _ = read_items(report.study.folders[judged.runs.index[0]].scores(judged.label))
    related = related_of(judged.pairs, items, str(judged.runs["reference"].iloc[0]))
    section.tables["new-words-paradigms"] = table = new_word_table(judged, related, config)
    return [new_words_exhibit(table, config.confidence)]
