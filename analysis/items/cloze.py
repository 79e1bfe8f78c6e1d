"""Psycholinguistic diagnostics (Ettinger 2020): measures of each run, and the paper's tables with ours next to them.

The measures of one model are eval.diagnostics.measures. The paper: "What BERT is not: Lessons from a new suite of
psycholinguistic diagnostics for language models", TACL 8, 34-48.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.formats import accuracy_text, count, joined, plural
from analysis.items.answers import (
    MEASURE,
    PAPER,
    Answers,
    ItemsSection,
    all_measures,
    at_largest,
    beside,
    findings,
    lead_of,
    over_sizes,
    over_text,
    published_next_to,
    read_answers,
    slopes,
    table_of_models,
    with_run,
)
from analysis.published import published_file
from analysis.report.exhibit import Exhibit
from eval.diagnostics.files import cloze_metadata, read_cloze, read_topk
from eval.diagnostics.measures import AT, THRESHOLD, inexpressible
from eval.diagnostics.measures import measures as measures_of_model
from eval.published import COLUMNS
from train.runs.folder import RunFolder

SENSITIVITY = "sensitivity"
ABOVE = f"{SENSITIVITY}>{THRESHOLD:.2f}".replace("0.", ".")
CONSTRAINTS = {"H": "high constraint", "L": "low constraint"}  # of contexts: the column `group` of CPRAG-102
_MAIN = {"neg": "simp negative"}  # the part that sentences are about; of other diagnostics "original"
_SIDES = {"a": "fitting roles", "b": "reversed roles"}
_AT = "Ours are means over the runs at each curve's largest size."
_QUESTIONS = {
    "cprag": "CPRAG-102 asks for the last noun of the second of two sentences, which people infer from the first.",
    "role": "ROLE-88 asks for the verb that fits who did what to whom, which word order alone shows.",
    "neg": "NEG-136 asks whether a model heeds a negation.",
}


@dataclass(frozen=True)
class _Paper:
    """What the paper says of a diagnostic: the conditions of its tables, its tables, and chance."""

    tables: str
    conditions: Mapping[str, str]
    conditions_text: str
    sensitivity_text: str
    chance: float
    curves: tuple[tuple[str, str, str], ...]  # level, name and heading


_FIRST_5 = ("accuracy@5", "original", "Expected word among the first 5")
_PAPER = {
    "cprag": _Paper(
        "tables 4 and 5",
        {"original": "original", "shuffled": "shuffled", "truncated": "truncated", "shuffled_truncated": "both"},
        "Shuffled: the words of the first sentence in random order, with mean and standard deviation over trials. "
        "Truncated: only the last two words of the second sentence.",
        "Share of contexts in which the expected word is more probable than both words that don't fit",
        1 / 3,
        (_FIRST_5, (SENSITIVITY, "original", "Expected word above both others")),
    ),
    "role": _Paper(
        "tables 7, 8 and 9",
        {"original": "original", "generic_object": "generic object", "generic_subject": "generic subject",
         "generic_both": "both generic"},
        "Generic: the object is replaced by *one*, the subject by *other*. Cloze: quarters of the original contexts, "
        "by the cloze probability of the word that people expected most.",
        "Share of pairs in which a word is more probable with its own roles than with reversed roles",
        1 / 2,
        (_FIRST_5, (SENSITIVITY, "original", "Fitting roles above reversed ones")),
    ),
    "neg": _Paper(
        "tables 11, 12 and 14",
        {"simp affirmative": "affirmative"},
        "Simple affirmative sentences, whose true word names a category.",
        "Share of sentences in which the true word is more probable than the false one",
        1 / 2,
        (
            ("accuracy@5", "simp affirmative", "Category among the first 5"),
            (SENSITIVITY, "simp affirmative", "True above false: simple, affirmative"),
            (SENSITIVITY, "simp negative", "True above false: simple, negative"),
            (SENSITIVITY, "natural affirmative", "True above false: natural, affirmative"),
            (SENSITIVITY, "natural negative", "True above false: natural, negative"),
            (SENSITIVITY, "less natural negative", "True above false: less natural, negative"),
        ),
    ),
}  # fmt: skip


def answers(runs: pd.DataFrame, label: str, folder: str | Path = "runs") -> Answers:
    """Read the probabilities that runs give the words of a diagnostic; arguments and errors as of `read_answers`.

    Its table has the columns of eval.diagnostics.files.CLOZE, one row per context and word.
    """
    return read_answers(runs, label, folder, cloze_metadata, read_cloze)


def measures(found: Answers, benchmark: str) -> pd.DataFrame:
    """Return the paper's measures of each run: columns of runs and eval.diagnostics.measures.MEASURES.

    Those of CPRAG-102 are also given for contexts that constrain people's expectations strongly and weakly (Federmeier
    and Kutas 1999), which are named as in CONSTRAINTS.
    """

    def of_run(cloze: pd.DataFrame) -> pd.DataFrame:
        parts = [measures_of_model(benchmark, cloze)]
        original = cloze[cloze["condition"] == "original"]
        for letter, name in CONSTRAINTS.items() if benchmark == "cprag" else ():
            part = original[original["group"] == letter]
            parts += [measures_of_model(benchmark, part).assign(name=name)] if len(part) else []
        return pd.concat(parts, ignore_index=True)

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
    if benchmark == "cprag":
        rows = cloze[cloze["condition"] == "original"]
        names = rows["role"].str.replace("_", " ")
    elif benchmark == "role":
        rows = cloze[cloze["role"] == "target"]
        names = rows["item"].str.rpartition("-")[2].map(_SIDES)
    else:
        rows = cloze
        names = rows["condition"].str.replace("_", " ").str.replace("simp", "simple") + ", " + rows["role"]
    means = rows[column].groupby(names, sort=False).mean()
    order = [name for name in _SIDES.values() if name in means.index] or list(means.index)
    return means.reindex(order).rename("probability").rename_axis("name").reset_index()


def people_measures(cloze: pd.DataFrame) -> pd.DataFrame:
    """Return the sensitivities that people's cloze probabilities have for ROLE-88: level, name and accuracy."""
    measured = measures_of_model("role", cloze.assign(prob=cloze["cloze"]))
    rows = measured[measured["level"].str.startswith(SENSITIVITY)]
    return rows[[*MEASURE, "accuracy"]].reset_index(drop=True)


def published(benchmark: str, means: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's measures of the same items: model, level, name, accuracy, sd, items, Wilson's low and high."""
    return published_next_to(benchmark, means, (*COLUMNS, "sd"))


def section(
    runs: pd.DataFrame, label: str, confidence: float, folder: str | Path = "runs", everything: bool = False
) -> ItemsSection:
    """Return the part of a report about a diagnostic.

    Args:
        runs: the table of `analysis.runs`, with curves named as readers see them.
        label: the name of its folder of scores.
        confidence: the level of the intervals of slopes.
        folder: where studies are (`paths.runs`).
        everything: add mean probabilities, most probable words, and all measures.

    Raises:
        RunError: as `read_answers` does.
    """
    benchmark, found = label.partition("+")[0], answers(runs, label, folder)
    measured = measures(found, benchmark)
    fitted = slopes(measured, label, confidence)
    main = fitted[(fitted["method"] == SENSITIVITY) & (fitted["name"] == _MAIN.get(benchmark, "original"))]
    about = _QUESTIONS.get(benchmark, f"{benchmark} has no published results to compare with.")
    return ItemsSection(
        label=label,
        kind="Diagnostics",
        lead=lead_of(found, about),
        notes=[*found.notes, *_inexpressible(found)],
        findings=findings(main, confidence, lambda name: f"Sensitivity ({_spelled(name)})"),
        exhibits=exhibits(found, benchmark, measured, fitted, confidence, folder if everything else None),
        methods=_methods(found),
    )


def exhibits(
    found: Answers,
    benchmark: str,
    measured: pd.DataFrame,
    fitted: pd.DataFrame,
    confidence: float,
    folder: str | Path | None = None,
) -> list[Exhibit]:
    """Return sensitivity, word prediction and measures over training text; with `folder`, also the further exhibits.

    A plug-in's diagnostic, which no paper describes, has all measures in place of the first two.
    """
    means = over_sizes(measured)
    ours = at_largest(means).rename(columns={"curve": "model"})
    theirs = published(benchmark, means)
    paper = _PAPER.get(benchmark)
    if paper is None:
        return [all_measures(means, theirs), _probabilities(found, benchmark)]
    chance = pd.DataFrame([
        {"level": level, "name": name, "model": "chance", "accuracy": paper.chance}
        for level, name, _ in paper.curves
        if level == SENSITIVITY
    ])  # fmt: skip
    levels = pd.concat([theirs, chance])[[*MEASURE, "model", "accuracy"]]
    shown = [
        _sensitivity(found, benchmark, ours, theirs),
        _prediction(paper, ours, theirs),
        over_text(measured, fitted, paper.curves, "Share of items", confidence, levels),
    ]
    if folder is not None:
        shown += [_probabilities(found, benchmark), _top_words(found, benchmark, folder), all_measures(means, theirs)]
    return [one for one in shown if one is not None]


def _spelled(name: str) -> str:
    """Spell out a part of a diagnostic: "simple negative"."""
    return name.replace("_", " ").replace("simp ", "simple ")


def _sensitivity(found: Answers, benchmark: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> Exhibit:
    """Return the paper's tables 5, 9, 12 and 14, with people's sensitivity for ROLE-88, and a figure of them."""
    paper, rows = _PAPER[benchmark], pd.concat([ours, theirs])
    rows = rows[rows["level"].isin([SENSITIVITY, ABOVE])]
    names = list(dict.fromkeys(ours.loc[ours["level"] == SENSITIVITY, "name"]))
    if benchmark == "neg":  # the paper has a threshold for the first part only
        rows = rows[(rows["level"] == SENSITIVITY) | (rows["name"] == names[0])]
    if benchmark == "role":
        _, cloze = next(iter(found.of_runs()))
        rows = pd.concat([rows, people_measures(cloze).assign(model="people")])
    plain = rows["name"].map(lambda name: "prefers the better" if name == "original" else _spelled(name))
    above = np.where(rows["level"] == ABOVE, f" by > {THRESHOLD:.2f}".replace("0.", "."), "")
    rows = rows.assign(measure=plain + above)
    order = list(dict.fromkeys(rows.loc[rows["model"].isin(ours["model"]), "measure"]))
    drawn = rows[rows["low"].notna()].sort_values("measure", key=lambda of: of.map(order.index), kind="stable")
    about = (
        f"{paper.sensitivity_text}, and by more than {THRESHOLD} of probability (Ettinger 2020, {paper.tables}). {_AT}"
    )
    about += " People: by their cloze probabilities." if benchmark == "role" else ""
    if benchmark == "cprag":
        about += " High and low constraint: contexts that constrain people's expectations strongly and weakly."
    definitions = {"Lines": "Wilson's 95% intervals for new items of this kind.", "Tie": "A tie is no preference."}
    charts = beside(drawn, "Share of items")
    return Exhibit(
        "sensitivity",
        "Sensitivity",
        about,
        table_of_models(rows, "measure", order),
        charts=charts,
        definitions=definitions,
    )


def _prediction(paper: _Paper, ours: pd.DataFrame, theirs: pd.DataFrame) -> Exhibit:
    """Return the paper's tables 4, 7, 8 and 11: the expected word among the 1 or 5 most probable ones."""
    rows = pd.concat([ours, theirs])
    bins = [name for name in dict.fromkeys(ours["name"]) if name.startswith("cloze")]
    headings = {name: text for name, text in paper.conditions.items() if name in set(ours["name"])}
    headings |= {name: name for name in bins}
    firsts = {f"accuracy@{k}": k for k in AT}
    index = pd.MultiIndex.from_product([rows["model"].unique(), AT], names=["model", "first"])
    rows = rows.assign(first=rows["level"].map(firsts)).dropna(subset="first")
    wide = rows.pivot(index=["model", "first"], columns="name", values=["accuracy", "sd"]).reindex(index)
    table = pd.DataFrame(index=index)
    for name, heading in headings.items():
        table[heading] = wide["accuracy", name]
        if name.startswith("shuffled"):
            table[f"± {heading}"] = wide["sd", name]
    about = (
        "Share of contexts with an expected word among the model's 1 or 5 most probable whole words (Ettinger 2020, "
        f"{paper.tables}). {_AT}"
    )
    definitions = {"Conditions": paper.conditions_text}
    table = table.reset_index()
    return Exhibit("prediction", "Word prediction", about, table, cells={"first": count}, definitions=definitions)


def _probabilities(found: Answers, benchmark: str) -> Exhibit:
    """Return mean probabilities at each curve's largest size, with people's (sections 5.1 and 5.2 of the paper)."""
    parts = [with_run(run, mean_probabilities(benchmark, cloze)) for run, cloze in found.of_runs()]
    rows = at_largest(pd.concat(parts, ignore_index=True))
    names = list(dict.fromkeys(rows["name"]))
    table = rows.pivot_table(index="curve", columns="name", values="probability", sort=False, dropna=False)[names]
    known = published_file("cloze_people")
    stated = known[known["benchmark"] == benchmark].set_index("name")["probability"]
    about = "Mean probability of good and bad words in unchanged contexts, of words that the model can express."
    not_a_level = "These are shares of people, which aren't a level for a model to reach (note 9)."
    if benchmark == "cprag":
        table.loc["people" + PAPER] = [stated.get(name.replace(" ", "_"), np.nan) for name in names]
        about += f" People: mean cloze probabilities that the paper states (section 5.1). {not_a_level}"
    elif benchmark == "role":
        _, cloze = next(iter(found.of_runs()))
        table.loc["people"] = mean_probabilities("role", cloze, "cloze").set_index("name")["probability"].reindex(names)
        table["difference"] = table[names[0]] - table[names[1]]
        about += (
            " People: mean cloze probabilities in the diagnostic's files; the paper states a difference of "
            f"{accuracy_text(stated['difference'])} (section 5.2). {not_a_level}"
        )
    table = table.rename_axis("model").rename_axis(None, axis=1).reset_index()
    return Exhibit("probabilities", "Probabilities of the words", about, table)


def _top_words(found: Answers, benchmark: str, folder: str | Path) -> Exhibit | None:
    """Return tables 6, 10, 13 and 15: one run's most probable words, per curve, in contexts that the paper prints."""
    keys = ["item", "condition", "ending"]
    known = published_file("top_words")
    known = known[known["benchmark"] == benchmark].fillna({"ending": ""})
    runs = at_largest(found.runs).drop_duplicates("curve")
    parts = []
    for study, run, curve in zip(runs["study"], runs["run"], runs["curve"], strict=True):
        scores = RunFolder(Path(folder) / study / run).scores(found.label)
        top = read_topk(scores).sort_values("place", kind="stable")
        words = top.groupby(["item", "condition", "context"], sort=False)["word"].agg(" ".join).reset_index()
        parts.append(words.rename(columns={"word": "words"}).assign(model=curve))
    ours = pd.concat(parts, ignore_index=True)
    article = ours["context"].str.rpartition(" ")[2]
    ours["ending"] = article.where(article.isin(["a", "an"]) & ours["condition"].str.startswith("simp"), "")
    wide = ours.pivot(index=[*keys, "context"], columns="model", values="words").reset_index()
    theirs = known.assign(model=known["model"] + PAPER).pivot(index=keys, columns="model", values="words").reset_index()
    table = known.drop_duplicates(keys)[keys].merge(wide, on=keys).merge(theirs, on=keys)
    if table.empty:
        return None
    table = table.drop(columns=["condition", "ending"]).assign(context=table["context"].str.rstrip() + " ____")
    about = "The most probable whole words in contexts that the paper prints; ours are those of one run of each curve."
    return Exhibit("top-words", "Most probable words", about, table)


def _inexpressible(found: Answers) -> list[str]:
    """Return a note on words that a model can't express, for one run of each curve at its largest size."""
    notes = []
    largest = at_largest(found.runs).drop_duplicates("curve")[["study", "run"]]
    for run, cloze in found.of_runs():
        rows = inexpressible(cloze)
        if len(rows) and (run["run"] == largest["run"]).any():
            words, items = rows["candidate"].nunique(), rows["item"].nunique()
            notes.append(
                f"{run['curve']} can't express {plural(words, 'word')} of {plural(items, 'item')}. They count as wrong."
            )
    return notes


def _methods(found: Answers) -> list[str]:
    """Return the methods paragraph, for a paper."""
    pll = {
        str(run["curve"]): found.metadata[run["study"], run["run"]]["policy"].get("pll") for run, _ in found.of_runs()
    }
    text = []
    if others := [curve for curve, of in pll.items() if not of]:
        text.append(f"{joined(others)}: the probability of a word given the context is that of all of its tokens.")
    if masked := [curve for curve, of in pll.items() if of]:
        text.append(
            f"{joined(masked)}: a mask replaces the word, with a full stop after it (Ettinger 2020, section 6). A word "
            f"of several tokens has as many masks ({joined(sorted({of for of in pll.values() if of}))})."
        )
    text.append(
        "Ranks and most probable words are over whole words: tokens that begin a word and aren't punctuation. A tie is "
        "no preference. Intervals of shares are Wilson's, for new items; those of slopes are for new runs."
    )
    return text
