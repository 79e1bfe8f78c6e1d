"""Describe psycholinguistic diagnostics (Ettinger 2020), with each run's measures and the paper's own results.

`eval.diagnostics.measures` computes the measures of one model. The paper is "What BERT is not: Lessons from a new suite
of psycholinguistic diagnostics for language models", TACL 8, 34-48.
"""

import pandas as pd

from analysis.items.results import CHANCE, MEASURE, PAPER, Answers, Description
from analysis.published import published_file, published_values
from eval.diagnostics.measures import measures
from eval.published import read_published

_SIDES = {"a": "fitting roles", "b": "reversed roles"}
_METHODS = (
    "Sensitivity is the share of items whose fitting word, or context, is more probable than the others. Ties count as "
    "wrong, and so do words that the model can't express. For sensitivity>.01, the difference must be larger than .01. "
    "Accuracy@k is the share of contexts for which an expected word is among the k most probable whole words. These "
    "are tokens that begin a word and aren't punctuation. Probabilities are means over the words that the model can "
    "express. For people, they are cloze probabilities. The probability of a word is the probability of all of its "
    "tokens given the context. In a masked model, masks replace the word's tokens, followed by a full stop (Ettinger "
    "2020, section 6). Shares have Wilson's intervals over new items, and slopes have intervals over new runs."
)


def probabilities(benchmark: str, cloze: pd.DataFrame, column: str = "prob") -> pd.DataFrame:
    """Return the mean probability of the words of each condition and role, with the columns level, name and accuracy.

    For the targets of ROLE-88, there is one row for fitting roles, one for reversed roles, and one for the difference.

    Args:
        benchmark: cprag, role, neg, or a plug-in's benchmark.
        cloze: One model's answers.
        column: "prob" for the model's probabilities, or "cloze" for people's.
    """
    names = (cloze["condition"] + ", " + cloze["role"]).str.replace("_", " ")
    if benchmark == "role":
        names = names.where(cloze["role"] != "target", cloze["item"].str[-1].map(_SIDES))
    means = cloze.groupby(names, sort=False)[column].mean()
    if benchmark == "role":
        means["difference"] = means[_SIDES["a"]] - means[_SIDES["b"]]
    return means.rename("accuracy").rename_axis("name").reset_index().assign(level="probability")


def measures_of(benchmark: str, cloze: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's measures and the mean probabilities of one model (level, name, items, accuracy, ...).

    The measures of CPRAG-102 are also computed for contexts that constrain people's expectations strongly or weakly
    (Federmeier and Kutas 1999).
    """
    parts = [measures(benchmark, cloze)]
    if benchmark == "cprag":
        for group, name in (("H", "high constraint"), ("L", "low constraint")):
            rows = cloze[(cloze["condition"] == "original") & (cloze["group"] == group)]
            parts.append(measures(benchmark, rows).assign(name=name))
    return pd.concat([*parts, probabilities(benchmark, cloze)]).drop(columns=["low", "high"])


def describe(found: Answers) -> Description:
    """Describe a diagnostic. A plug-in's diagnostic may have no paper."""
    name, cloze = found.label.partition("+")[0], found.tables[0]
    measured = found.measured(lambda answers: measures_of(name, answers))
    sensitive = measured.loc[measured["level"] == "sensitivity", MEASURE].drop_duplicates()
    paper = published_values("diagnostics").get(name, {"about": f"This is the diagnostic {name}."})
    theirs = pd.concat([read_published(name), published_file("cloze_people").query("benchmark == @name")])
    others = [theirs.assign(model=theirs["model"] + PAPER)]
    if name == "role":
        people = pd.concat([measures(name, cloze.assign(prob=cloze["cloze"])), probabilities(name, cloze, "cloze")])
        others.append(people[~people["level"].str.startswith("accuracy")].assign(model="people"))
    if "chance" in paper:
        others.append(sensitive.assign(model=CHANCE, accuracy=paper["chance"]))
    return Description(
        about=paper["about"],
        measured=measured,
        main=paper.get("main", sensitive.to_numpy()),
        what="Sensitivity ({name})",
        methods=_METHODS,
        others=pd.concat(others)[["model", *MEASURE, "accuracy"]],
    )
