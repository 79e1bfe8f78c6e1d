"""The exhibits of the papers, of a study's groups at their largest sizes beside published models and people."""

import pandas as pd

from analysis.curves.fit import ALL_PAIRS, Curves
from analysis.exhibits.exhibit import Exhibit, existing
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

_UNITS = {"char": "characters", "jieba": "words", "word": "words"}  # of tokenizers, as compared by Xiang et al. 2021


def study_exhibits(judged: Judgements, curves: Curves, published: pd.DataFrame, people: str = "") -> list[Exhibit]:
    """Return the exhibits of one benchmark of a study.

    `published`: of eval.published, maybe empty; `people`: who the people among them are, unless the published ones.
    """
    match judged.label.partition("+")[0]:
        case "blimp":
            return existing(_blimp(curves, published, people))
        case "climp":
            return existing(_climp(judged, curves))
    return []


def _blimp(curves: Curves, published: pd.DataFrame, people: str) -> list[Exhibit | None]:
    source = f"; people: {people}" if people else ", as are people"
    at = f"Ours are means over the runs at each curve's largest size; (paper): published{source}"
    ours = at_largest_size(curves)
    theirs = published[["level", "name", "model", "accuracy"]]
    theirs = theirs.sort_values("model", key=lambda column: column == PEOPLE, kind="stable")
    theirs["model"] = theirs["model"].where(theirs["model"] == PEOPLE, theirs["model"] + " (paper)")
    paradigms = set(ours.loc[ours["level"] == "paradigm", "name"])
    theirs = theirs[(theirs["level"] != "paradigm") | theirs["name"].isin(paradigms)]
    both = pd.concat([ours, theirs], ignore_index=True)
    known = published_file("blimp_paradigms")
    all_known = paradigms <= set(known["paradigm"])
    of = f"all {len(known)}" if len(paradigms) == len(known) else f"{len(paradigms)} of the {len(known)}"
    return [
        correlation_exhibit(
            "correlations",
            "Correlation of paradigms' difficulty",
            f"Pearson's r of accuracies over {len(paradigms)} paradigms (Warstadt et al. 2020, figure 1). {at}.",
            both,
        )
        if len(paradigms) > 2 and both["model"].nunique() > 1
        else None,
        conditions_exhibit(
            "adjective",
            "Agreement across an adjective",
            "Determiner-noun agreement without and with an adjective between the two (Warstadt et al. 2020, figure 3); "
            f"loss: the first minus the second. {at}.",
            both,
            ADJECTIVE,
        ),
        conditions_exhibit(
            "attractor",
            "Agreement across an attractor",
            "Subject-verb agreement without an attractor, with a relational noun, and with one in a relative clause "
            f"(Warstadt et al. 2020, figure 3); loss: the first minus the mean of the last two. {at}.",
            both,
            ATTRACTOR,
        ),
        conditions_exhibit(
            "regularity",
            "Regular and irregular plurals",
            f"Nouns with a regular and with an irregular plural (Warstadt et al. 2020, figure 4). {at}.",
            both,
            REGULARITY,
        ),
        paradigms_exhibit(
            "table4",
            "All paradigms",
            f"Accuracy on {of} paradigms (Warstadt et al. 2020, table 4), and which the prefix methods judge. {at}.",
            both,
            known,
        )
        if all_known
        else None,
    ]


def _climp(judged: Judgements, curves: Curves) -> list[Exhibit | None]:
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
    about = (
        "Overall accuracy of the same model on the same amount of text, split into words and into characters (Xiang et "
        "al. 2021, section 5)."
    )
    return [
        units_exhibit("units", "Words and characters", about, rows) if rows["unit"].nunique() == 2 else None,
        sizes_exhibit("sizes", "More text", "Overall accuracy by the amount of training text.", rows, sizes),
    ]


@contributes(10)
def respondents(section: Section, report: Report) -> list[Exhibit]:
    return section.respondents.exhibits() if section.respondents else []


@contributes(20)
def benchmark(section: Section, report: Report) -> list[Exhibit]:
    people = section.respondents.label if section.respondents else ""
    return study_exhibits(section.judged, section.curves, section.published, people)
