"""Psycholinguistic diagnostics (Ettinger 2020): measures of each run, and the paper's tables with ours next to them.

The measures of one model are eval.diagnostics.measures. The paper: "What BERT is not: Lessons from a new suite of
psycholinguistic diagnostics for language models", TACL 8, 34-48. What it reports: analysis/published/diagnostics.yaml.
"""

from typing import Any

import pandas as pd

from analysis.formats import count, joined, plural, rows_of
from analysis.items.answers import (
    AT_LARGEST,
    PAPER,
    Answers,
    Results,
    all_measures,
    at_largest,
    by_model,
    published_next_to,
    with_limits,
)
from analysis.published import published_file, published_values
from analysis.report.exhibit import Exhibit
from analysis.report.write import Part
from eval.diagnostics.files import read_topk
from eval.diagnostics.measures import AT, THRESHOLD, inexpressible
from eval.diagnostics.measures import measures as measures_of_model
from eval.published import COLUMNS

SENSITIVITY = "sensitivity"
ABOVE = f"{SENSITIVITY}>{THRESHOLD:.2f}".replace("0.", ".")
CONSTRAINTS = {"H": "high constraint", "L": "low constraint"}  # of contexts: the column `group` of CPRAG-102
_SIDES = {"a": "fitting roles", "b": "reversed roles"}


def measures(found: Answers) -> pd.DataFrame:
    """Return the paper's measures of each run: columns of runs and eval.diagnostics.measures.MEASURES.

    Those of CPRAG-102 are also given for contexts that constrain people's expectations strongly and weakly (Federmeier
    and Kutas 1999), which are named as in CONSTRAINTS.
    """

    def of_run(cloze: pd.DataFrame) -> pd.DataFrame:
        parts = [measures_of_model(found.benchmark, cloze)]
        if found.benchmark == "cprag":
            groups = cloze[cloze["condition"] == "original"].groupby("group")
            parts += [measures_of_model("cprag", part).assign(name=CONSTRAINTS[str(of)]) for of, part in groups]
        return pd.concat(parts)

    return found.measured(of_run)


def mean_probabilities(benchmark: str, cloze: pd.DataFrame, column: str = "prob") -> pd.DataFrame:
    """Return the mean probability of good and bad words in unchanged contexts: name and probability.

    The words are, for CPRAG-102, the expected word and the two that don't fit; for ROLE-88, the target with fitting and
    with reversed roles; for NEG-136, the true and the false word of each condition.

    Args:
        benchmark: cprag, role, neg, or a plug-in's.
        cloze: one model's answers.
        column: "prob", the model's probabilities, or "cloze", people's.
    """
    rows = cloze
    names = rows["condition"].str.replace("_", " ").str.replace("simp", "simple") + ", " + rows["role"]
    if benchmark == "cprag":
        rows = cloze[cloze["condition"] == "original"]
        names = rows["role"].str.replace("_", " ")
    elif benchmark == "role":
        rows = cloze[cloze["role"] == "target"].sort_values("item", key=lambda items: items.str[-1], kind="stable")
        names = rows["item"].str[-1].map(_SIDES)
    return rows.groupby(names.rename("name"), sort=False)[column].mean().rename("probability").reset_index()


def part(found: Answers, confidence: float, everything: bool = False) -> Part:
    """Return the part of a report about a diagnostic; `confidence`: of the intervals of slopes.

    `everything` adds all measures, mean probabilities and most probable words. A plug-in's diagnostic, which no paper
    describes, has these alone.
    """
    results = Results(found, measures(found), confidence)
    means = with_limits(results.means)
    ours = at_largest(means).rename(columns={"curve": "model"})
    theirs = published_next_to(found.benchmark, means, (*COLUMNS, "sd"))
    unknown = {"about": f"{found.benchmark} has no published results to compare with.", "main": "original"}
    paper = published_values("diagnostics").get(found.benchmark, unknown)
    exhibits = []
    if paper is not unknown:
        chance = pd.DataFrame(paper["curves"], columns=["level", "name", "heading"]).query("level == @SENSITIVITY")
        levels = pd.concat([theirs, chance.assign(model="chance", accuracy=paper["chance"])])
        exhibits += [_sensitivity(found, paper, ours, theirs), _prediction(paper, ours, theirs)]
        exhibits += results.over_text(paper["curves"], "Share of items", levels)
    if everything or paper is unknown:
        exhibits += [all_measures(means, theirs), _probabilities(found), *_top_words(found)]
    findings = results.findings(SENSITIVITY, paper["main"], f"Sensitivity ({_spelled(paper['main'])})")
    return results.part(paper["about"], exhibits, findings, _inexpressible(found), _methods(found))


def _spelled(name: str) -> str:
    """Spell out a part of a diagnostic: "simple negative"."""
    return name.replace("_", " ").replace("simp ", "simple ")


def _sensitivity(found: Answers, paper: dict[str, Any], ours: pd.DataFrame, theirs: pd.DataFrame) -> Exhibit:
    """Return the paper's tables 5, 9, 12 and 14, with people's sensitivity for ROLE-88, and a figure of them."""
    rows = [ours, theirs]
    if found.benchmark == "role":
        cloze = found.tables[0]
        people = measures_of_model("role", cloze.assign(prob=cloze["cloze"]))
        rows.append(people.drop(columns=["low", "high"]).assign(model="people"))
    table = pd.concat(rows, ignore_index=True)
    table = table[table["level"].isin([SENSITIVITY, ABOVE])]
    if found.benchmark == "neg":  # the paper has a threshold for the first part only
        table = table[(table["level"] == SENSITIVITY) | (table["name"] == table["name"].iloc[0])]
    measure = table["name"].map(lambda name: "prefers the better" if name == "original" else _spelled(name))
    table["measure"] = measure + table["level"].str.removeprefix(SENSITIVITY).str.replace(">", " by > ")
    about = (
        f"{paper['sensitivity']}, and by more than {THRESHOLD} of probability (Ettinger 2020, {paper['tables']}). "
        f"{AT_LARGEST} {paper['further']}"
    )
    definitions = {"Lines": "Wilson's 95% intervals for new items of this kind.", "Tie": "A tie is no preference."}
    table, charts = by_model(table, "Share of items")
    return Exhibit("sensitivity", "Sensitivity", about.strip(), table, charts=charts, definitions=definitions)


def _prediction(paper: dict[str, Any], ours: pd.DataFrame, theirs: pd.DataFrame) -> Exhibit:
    """Return the paper's tables 4, 7, 8 and 11: the expected word among the 1 or 5 most probable ones."""
    rows = pd.concat([ours, theirs])
    rows["model"] = pd.Categorical(rows["model"], rows["model"].unique())
    rows["first"] = rows["level"].map({f"accuracy@{k}": k for k in AT})
    wide = rows.dropna(subset="first").pivot(index=["model", "first"], columns="name", values=["accuracy", "sd"])
    bins = [name for name in ours["name"].unique() if name.startswith("cloze")]
    columns: dict[str, tuple[str, str]] = {}
    for name, heading in (paper["conditions"] | dict(zip(bins, bins, strict=True))).items():
        columns |= {heading: ("accuracy", name), f"± {heading}": ("sd", name)}
    columns = {heading: of for heading, of in columns.items() if of in wide and wide[of].notna().any()}
    table = wide[list(columns.values())].set_axis(list(columns), axis=1).reset_index()
    about = (
        "Share of contexts with an expected word among the model's 1 or 5 most probable whole words (Ettinger 2020, "
        f"{paper['tables']}). {AT_LARGEST}"
    )
    definitions = {"Conditions": paper["conditions_text"]}
    return Exhibit("prediction", "Word prediction", about, table, cells={"first": count}, definitions=definitions)


def _probabilities(found: Answers) -> Exhibit:
    """Return mean probabilities at each curve's largest size, with people's (sections 5.1 and 5.2 of the paper)."""
    rows = at_largest(found.measured(lambda cloze: mean_probabilities(found.benchmark, cloze)))
    table = rows.pivot_table(index="curve", columns="name", values="probability", sort=False, dropna=False)
    table = table[rows["name"].unique()]
    if found.benchmark == "role":
        table.loc["people"] = mean_probabilities("role", found.tables[0], "cloze").set_index("name")["probability"]
        table["difference"] = table[_SIDES["a"]] - table[_SIDES["b"]]
    stated = published_file("cloze_people").query("benchmark == @found.benchmark").set_index("name")["probability"]
    definitions = {}
    if len(stated):
        table.loc["people" + PAPER] = stated.reindex(table.columns)
        definitions = {"People": "Mean cloze probabilities (sections 5.1 and 5.2), not a level to reach (note 9)."}
    table = table.rename_axis("model").rename_axis(columns=None).reset_index()
    about = "Mean probability of good and bad words in unchanged contexts, of words that the model can express."
    return Exhibit("probabilities", "Probabilities of the words", about, table, definitions=definitions)


def _top_words(found: Answers) -> list[Exhibit]:
    """Return tables 6, 10, 13 and 15: one run's most probable words, per curve, in contexts that the paper prints."""
    keys = ["item", "condition", "ending"]
    known = published_file("top_words").query("benchmark == @found.benchmark").fillna({"ending": ""})
    if known.empty:
        return []
    runs = found.one_per_curve
    top = pd.concat(map(read_topk, runs["scores"]), keys=runs["curve"], names=["model"]).reset_index("model")
    article = top["context"].str.rpartition(" ")[2]
    top["ending"] = article.where(article.isin(["a", "an"]) & top["condition"].str.startswith("simp"), "")
    words = top.sort_values("place", kind="stable").groupby([*keys, "context", "model"])["word"].agg(" ".join)
    theirs = known.assign(model=known["model"] + PAPER).pivot(index=keys, columns="model", values="words")
    table = known[keys].drop_duplicates().merge(words.unstack("model").reset_index(), on=keys).join(theirs, on=keys)
    table = table.drop(columns=["condition", "ending"]).assign(context=table["context"].str.rstrip() + " ____")
    about = "The most probable whole words in contexts that the paper prints; ours are those of one run of each curve."
    return [Exhibit("top-words", "Most probable words", about, table)]


def _inexpressible(found: Answers) -> list[str]:
    """Return a note on words that a model can't express, for one run of each curve at its largest size."""
    unknown = found.measured(inexpressible)
    unknown = unknown[unknown["run"].isin(found.one_per_curve["run"])]
    counts = unknown.groupby("curve", sort=False)[["candidate", "item"]].nunique().reset_index()
    return [
        f"{row.curve} can't express {plural(row.candidate, 'word')} of {plural(row.item, 'item')}. They count as wrong."
        for row in rows_of(counts)
    ]


def _methods(found: Answers) -> list[str]:
    """Return the methods paragraph, for a paper."""
    pll = found.runs["policy"].str.get("pll").set_axis(found.runs["curve"])
    text = []
    if len(others := pll.index[pll.isna()].unique()):
        text.append(f"{joined([*others])}: the probability of a word given the context is that of all of its tokens.")
    if len(masked := pll.dropna()):
        text.append(
            f"{joined([*masked.index.unique()])}: a mask replaces the word, with a full stop after it (Ettinger 2020, "
            f"section 6). A word of several tokens has as many masks ({joined(sorted(masked.unique()))})."
        )
    text.append(
        "Ranks and most probable words are over whole words: tokens that begin a word and aren't punctuation. A tie is "
        "no preference. Intervals of shares are Wilson's, for new items; those of slopes are for new runs."
    )
    return text
