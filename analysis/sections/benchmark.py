"""Exhibits of a study's accuracies, each made where its data exist.

Ours are the groups of the study at each one's largest size; published models and people stand beside them.
"""

from __future__ import annotations

import pandas as pd

from analysis.curves.fit import ALL_PAIRS, Curves
from analysis.exhibits.exhibit import Exhibit
from analysis.measures.accuracies import ADJECTIVE, ATTRACTOR, PEOPLE, REGULARITY, at_largest_size
from analysis.papers.exhibits import (
    conditions_exhibit,
    correlation_exhibit,
    paradigms_exhibit,
    sizes_exhibit,
    units_exhibit,
)
from analysis.published import published_file
from analysis.sections.section import Report, Section, contributes
from analysis.study.judgements import Judgements

# What a tokenizer splits a text into, for the comparison of Xiang et al. 2021.
_UNITS = {"char": "characters", "jieba": "words", "word": "words"}


def study_exhibits(judged: Judgements, curves: Curves, published: pd.DataFrame, people: str = "") -> list[Exhibit]:
    """Return the exhibits of one benchmark of a study; `published`: its eval.published accuracies, maybe empty.

    `people`: who the people among them are, where they are not the published ones.
    """
    benchmark = judged.label.partition("+")[0]
    exhibits = {"blimp": _blimp, "climp": _climp}.get(benchmark, _none)(judged, curves, published, people)
    return [exhibit for exhibit in exhibits if exhibit is not None]


def _none(judged: Judgements, curves: Curves, published: pd.DataFrame, people: str) -> list[Exhibit | None]:
    return []


def _blimp(judged: Judgements, curves: Curves, published: pd.DataFrame, people: str) -> list[Exhibit | None]:
    source = f"; people: {people}" if people else ", as are people"
    at = f"Ours are means over the runs at each curve's largest size; (paper): published{source}"
    ours = at_largest_size(curves)
    theirs = published[["level", "name", "model", "accuracy"]]
    theirs = theirs.sort_values("model", key=lambda column: column == PEOPLE, kind="stable")
    theirs["model"] = theirs["model"].where(theirs["model"] == PEOPLE, theirs["model"] + " (paper)")
    judged_names = set(ours.loc[ours["level"] == "paradigm", "name"])
    theirs = theirs[(theirs["level"] != "paradigm") | theirs["name"].isin(judged_names)]
    both = pd.concat([ours, theirs], ignore_index=True)
    known = published_file("blimp_paradigms")
    whole = judged_names == set(known["paradigm"])
    exhibits = [
        correlation_exhibit(
            "correlations",
            "Who finds the same paradigms hard",
            f"Pearson's correlation of accuracies over {len(judged_names)} paradigms (Warstadt et al. 2020, figure "
            f"1). {at}.",
            both,
        )
        if len(judged_names) > 2
        else None,
        conditions_exhibit(
            "adjective",
            "Agreement across an adjective",
            "Determiner-noun agreement without and with an adjective between the two (Warstadt et al. 2020, figure 3); "
            f"loss: how far the second lies below the first. {at}.",
            both,
            ADJECTIVE,
        ),
        conditions_exhibit(
            "attractor",
            "Agreement across an attractor",
            "Subject-verb agreement with no attractor, with one as a relational noun, and with one in a relative "
            "clause (Warstadt et al. 2020, figure 3); loss: how far the mean of the last two lies below the first. "
            f"{at}.",
            both,
            ATTRACTOR,
        ),
        conditions_exhibit(
            "regularity",
            "Regular against irregular",
            f"Nouns with a regular and with an irregular plural (Warstadt et al. 2020, figure 4). {at}.",
            both,
            REGULARITY,
        ),
    ]
    if judged_names <= set(known["paradigm"]):
        of = f"all {len(known)}" if whole else f"{len(judged_names)} of the {len(known)}"
        about = f"Accuracy on {of} paradigms (Warstadt et al. 2020, table 4), and which the prefix methods judge. {at}."
        exhibits.append(paradigms_exhibit("table4", "All paradigms", about, both, known))
    return exhibits


def _climp(judged: Judgements, curves: Curves, published: pd.DataFrame, people: str) -> list[Exhibit | None]:
    """Compare words with characters, where the study has tokenizers of both kinds for one model and size."""
    at = curves.accuracies
    at = at[(at["pairs"] == ALL_PAIRS) & (at["level"] == "overall")]
    runs = judged.runs.drop_duplicates("group").set_index("group")
    rows = pd.DataFrame(
        {
            "kind": at["group"].map(runs["model"]),
            "size": at["size"],
            "unit": at["group"].map(runs["tokenizer"]).map(_UNITS),
            "accuracy": at["accuracy"],
        }
    ).dropna()
    if rows.duplicated(["kind", "size", "unit"]).any():
        return []  # groups that differ in more than these three are no pairs
    sizes = list(at.groupby("size")["words"].mean().sort_values().index)
    about = "Overall accuracy of the same model on the same amount of text, split into words and into characters"
    return [
        units_exhibit("units", "Words against characters", f"{about} (Xiang et al. 2021, section 5).", rows)
        if rows["unit"].nunique() == 2
        else None,
        sizes_exhibit("sizes", "More text", "Overall accuracy by the text that was trained on.", rows, sizes),
    ]


@contributes(10)
def respondents(section: Section, report: Report) -> list[Exhibit]:
    return section.respondents.exhibits() if section.respondents else []


@contributes(20)
def benchmark(section: Section, report: Report) -> list[Exhibit]:
    people = section.respondents.label if section.respondents else ""
    return study_exhibits(section.judged, section.curves, section.published, people)
