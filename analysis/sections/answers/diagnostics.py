"""The tables of Ettinger 2020 with ours beside the paper's, and shares of items over training text."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from analysis.exhibits.exhibit import Exhibit, existing
from analysis.exhibits.figures.diagnostics import beside_chart, size_chart
from analysis.exhibits.sentences import diagnostics as sentences
from analysis.exhibits.tables.text import count, mean_count_text, probability_text
from analysis.measures.diagnostics import CONSTRAINTS, KEYS, Diagnosed, at_largest, diagnosed, over_sizes
from analysis.published import published_file
from analysis.sections.section import DIAGNOSTICS, TableSection
from analysis.study.collect import Study
from eval.diagnostics.measures import AT, THRESHOLD
from eval.published import COLUMNS, read_published
from pairscale.shares import wilson

ABOVE = f"sensitivity>{THRESHOLD:.2f}".replace("0.", ".")
PAPER = " (paper)"
_NOTE_9 = "shares of people, which are not a level for a model to reach (note 9)"
_FIRST_5 = "accuracy@5", "original", "Expected word among the first 5"
_AT = "Ours are means over the runs at each curve's largest size"


@dataclass(frozen=True)
class _Paper:
    """The tables of a diagnostic in the paper, and how ours are named after them.

    prediction: table of word prediction, and conditions -> columns. sensitivity: tables. top: tables of words. curves:
    measure, name and heading of each curve over sizes.
    """

    prediction: str
    conditions: Mapping[str, str]
    conditions_text: str
    sensitivity: str
    sensitivity_text: str
    chance: float
    top: str
    curves: tuple[tuple[str, str, str], ...]


_PAPER = {
    "cprag": _Paper(
        "table 4",
        {"original": "original", "shuffled": "shuffled", "truncated": "truncated", "shuffled_truncated": "both"},
        "Shuffled: the words of the first sentence in random order, mean and standard deviation of the trials; "
        "truncated: only the last two words of the second sentence; both: both of these.",
        "table 5",
        "Share of contexts in which the expected word is more probable than both unfitting words",
        1 / 3,
        "table 6",
        (_FIRST_5, ("sensitivity", "original", "Expected word above both others")),
    ),
    "role": _Paper(
        "table 7",
        {"original": "original", "generic_object": "generic object", "generic_subject": "generic subject",
         "generic_both": "both generic"},
        "Generic: the object is replaced by one, the subject by other.",
        "table 9",
        "Share of pairs in which the word is more probable with its own roles than with the roles reversed",
        1 / 2,
        "table 10",
        (_FIRST_5, ("sensitivity", "original", "Fitting roles above reversed ones")),
    ),
    "neg": _Paper(
        "table 11",
        {"simp affirmative": "affirmative"},
        "Simple affirmative sentences, whose true word is the name of a category.",
        "tables 12 and 14",
        "Share of sentences in which the true word is more probable than the false one",
        1 / 2,
        "tables 13 and 15",
        (
            ("accuracy@5", "simp affirmative", "Category among the first 5"),
            ("sensitivity", "simp affirmative", "True above false: simple, affirmative"),
            ("sensitivity", "simp negative", "True above false: simple, negative"),
            ("sensitivity", "natural affirmative", "True above false: natural, affirmative"),
            ("sensitivity", "natural negative", "True above false: natural, negative"),
            ("sensitivity", "less natural negative", "True above false: less natural, negative"),
        ),
    ),
}  # fmt: skip


def diagnostic_section(study: Study, label: str, confidence: float) -> TableSection:
    """Read the answers of a study's runs to a diagnostic; raises the errors of `diagnosed`."""
    answers = diagnosed(study, label)
    return TableSection(
        label=label,
        file=label,
        kind=DIAGNOSTICS,
        extent=sentences.extent(answers),
        warnings=sentences.warnings(answers),
        exhibits=diagnostic_exhibits(answers, confidence),
        methods=sentences.methods(answers),
        problems=answers.problems,
        runs=answers.runs,
        digest=answers.digest,
    )


def diagnostic_exhibits(answers: Diagnosed, confidence: float) -> list[Exhibit]:
    """Return the exhibits of one diagnostic, in the paper's order; each appears where its data exist.

    A plug-in's diagnostic, of no paper, has the general ones alone.
    """
    means = over_sizes(answers, confidence)
    ours = at_largest(means).rename(columns={"group": "model"})
    theirs = _published(answers.benchmark, ours)
    if answers.benchmark not in _PAPER:
        return [_everything(means, theirs, confidence), _probabilities(answers), _all_words(answers)]
    return existing([
        _prediction(answers, ours, theirs),
        _by_cloze(answers, ours, theirs),
        _sensitivity(answers, ours, theirs),
        _by_constraint(answers, ours),
        _probabilities(answers),
        _sizes(answers, means, theirs, confidence),
        _top_words(answers),
        _all_words(answers),
        _everything(means, theirs, confidence),
    ])  # fmt: skip


def _published(benchmark: str, ours: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's measures as rows of ours: model, KEYS, accuracy, sd, items, low_items, high_items."""
    rows = read_published(benchmark, (*COLUMNS, "sd")).assign(model=lambda rows: rows["model"] + PAPER)
    items = ours.drop_duplicates(KEYS)[[*KEYS, "items"]]
    rows = rows.merge(items, on=KEYS, how="inner")
    limits = [wilson(share, n) for share, n in rows[["accuracy", "items"]].to_numpy()]
    return rows.assign(low_items=[low for low, _ in limits], high_items=[high for _, high in limits])


def _share(rows: pd.DataFrame, model: str, level: str, name: str, column: str = "accuracy") -> float:
    chosen = rows[(rows["model"] == model) & (rows["level"] == level) & (rows["name"] == name)]
    return float(chosen[column].iloc[0]) if len(chosen) else np.nan


def _models(*parts: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(model for part in parts for model in part["model"]))


def _within(k: int, columns: dict[str, str], rows: pd.DataFrame, model: str) -> dict[str, object]:
    """Return one row of a table of word prediction; randomised conditions have the deviation of their trials."""
    row: dict[str, object] = {"model": model, "first": k}
    for name, heading in columns.items():
        row[heading] = _share(rows, model, f"accuracy@{k}", name)
        if name.startswith("shuffled"):
            row[f"± {heading}"] = _share(rows, model, f"accuracy@{k}", name, "sd")
    return row


def _prediction(answers: Diagnosed, ours: pd.DataFrame, theirs: pd.DataFrame) -> Exhibit:
    paper = _PAPER[answers.benchmark]
    rows = pd.concat([ours, theirs])
    columns = {name: heading for name, heading in paper.conditions.items() if name in set(ours["name"])}
    table = pd.DataFrame([_within(k, columns, rows, model) for model in _models(ours, theirs) for k in AT])
    about = (
        "Share of contexts with an expected word among the model's 1 or 5 most probable whole words (Ettinger 2020, "
        f"{paper.prediction}). {_AT}."
    )
    definitions = {"Conditions": paper.conditions_text}
    return Exhibit("prediction", "Word prediction", about, table, cells={"first": count}, definitions=definitions)


def _by_cloze(answers: Diagnosed, ours: pd.DataFrame, theirs: pd.DataFrame) -> Exhibit | None:
    rows = pd.concat([ours, theirs])
    bins = [name for name in dict.fromkeys(ours["name"]) if name.startswith("cloze")]
    if not bins:
        return None
    columns = {name: name.removeprefix("cloze ") for name in bins}
    sizes = ", ".join(f"{ours.loc[ours['name'] == name, 'items'].iloc[0]:.0f}" for name in bins)
    table = pd.DataFrame([_within(k, columns, rows, model) for model in _models(ours, theirs) for k in AT])
    about = (
        "The same in unchanged contexts, in quarters by the cloze probability of the word that people expected most "
        f"(Ettinger 2020, table 8): {sizes} contexts."
    )
    return Exhibit("cloze", "By agreement among people", about, table, cells={"first": count})


def _sensitivity(answers: Diagnosed, ours: pd.DataFrame, theirs: pd.DataFrame) -> Exhibit:
    rows = pd.concat([ours, theirs])
    names = list(dict.fromkeys(ours.loc[(ours["level"] == "sensitivity"), "name"]))
    names = [name for name in names if name not in CONSTRAINTS.values()]
    plain = {"sensitivity": "", ABOVE: f"by > {THRESHOLD:.2f}".replace("0.", ".")}
    columns = {(level, name): " ".join(filter(None, [_spelled(name) if len(names) > 1 else "prefers the better", text]))
               for level, text in plain.items() for name in names}  # fmt: skip
    columns = {key: text.replace("prefers the better by", "by") for key, text in columns.items()}
    if len(names) > 1:  # the paper has no threshold there but for simple affirmative sentences
        columns = {key: text for key, text in columns.items() if key[0] == "sensitivity" or key[1] == names[0]}
    table = [
        {"model": model, **{text: _share(rows, model, *key) for key, text in columns.items()}}
        for model in _models(ours, theirs)
    ]
    people = answers.people_measured.assign(model="people")
    if len(people):
        table.append({"model": "people", **{text: _share(people, "people", *key) for key, text in columns.items()}})
    drawn = rows[[key in columns for key in zip(rows["level"], rows["name"], strict=True)]]
    measure = [columns[key] for key in zip(drawn["level"], drawn["name"], strict=True)]
    shown = drawn.assign(measure=measure, low=drawn["low_items"], high=drawn["high_items"])
    order = {text: at for at, text in enumerate(columns.values())}
    shown = shown.sort_values("measure", key=lambda text: text.map(order), kind="stable")
    text = " People: by their cloze probabilities." if len(people) else ""
    paper = _PAPER[answers.benchmark]
    charts = {"models": partial(beside_chart, shown)}
    about = (
        f"{paper.sensitivity_text}, and by a probability of more than {THRESHOLD} (Ettinger 2020, "
        f"{paper.sensitivity}). {_AT}.{text}"
    )
    definitions = {"Lines": "Wilson's 95% intervals for new items of this kind.", "Tie": "No preference."}
    shares = pd.DataFrame(table)
    return Exhibit("sensitivity", "Sensitivity", about, shares, charts=charts, definitions=definitions)


def _by_constraint(answers: Diagnosed, ours: pd.DataFrame) -> Exhibit | None:
    names = [name for name in CONSTRAINTS.values() if name in set(ours["name"])]
    if not names:
        return None
    table = [
        {"model": model, "contexts": name, "items": _share(ours, model, "sensitivity", name, "items"),
         "first 1": _share(ours, model, "accuracy@1", name), "first 5": _share(ours, model, "accuracy@5", name),
         "above both": _share(ours, model, "sensitivity", name), "by > .01": _share(ours, model, ABOVE, name)}
        for model in _models(ours)
        for name in names
    ]  # fmt: skip
    about = (
        "The same in unchanged contexts that constrain expectations strongly and weakly (Federmeier and Kutas 1999, as "
        "marked in the files). The paper has both together only."
    )
    return Exhibit("constraint", "By constraint", about, pd.DataFrame(table), cells={"items": count})


def _spelled(name: str) -> str:
    """Spell out a part of a diagnostic: "simple negative"."""
    return name.replace("_", " ").replace("simp ", "simple ")


def _probabilities(answers: Diagnosed) -> Exhibit:
    runs = answers.runs
    words = runs["sample_words"]
    largest = runs[(words == words.groupby(runs["group"]).transform("max")) | words.isna()]
    rows = answers.probabilities[answers.probabilities["run"].isin(largest.index)]
    rows = rows.assign(model=rows["run"].map(largest["group"]))
    names = list(dict.fromkeys(rows["name"]))
    table = rows.groupby(["model", "name"])["probability"].mean().unstack("name")
    table = table.reindex(index=_models(rows), columns=names).rename_axis(None, axis=1).reset_index()
    known = published_file("cloze_people")
    known = known[known["benchmark"] == answers.benchmark]
    stated = dict(zip(known["name"], known["probability"], strict=True))
    about = ""
    if answers.benchmark == "cprag":
        people = [stated.get(name.replace(" ", "_"), np.nan) for name in names]
        table = pd.concat([table, pd.DataFrame([["people" + PAPER, *people]], columns=table.columns)])
        about = f" People: mean cloze probabilities as the paper gives them (section 5.1), {_NOTE_9}."
    elif len(answers.people):
        own = answers.people.set_index("name")["probability"].reindex(names)
        table = pd.concat([table, pd.DataFrame([["people", *own]], columns=table.columns)])
        table["difference"] = table[names[0]] - table[names[1]]
        about = (
            " People: mean cloze probabilities of the same words, from the diagnostic's files; the paper states "
            f"a difference of {probability_text(stated['difference'])} (section 5.2). They are {_NOTE_9}."
        )
    about = f"Mean probability of good and bad words in unchanged contexts, of words that the model can express.{about}"
    cells = dict.fromkeys([*names, "difference"], probability_text)
    return Exhibit("probabilities", "Probabilities of the words", about, table, cells=cells)


def _sizes(answers: Diagnosed, means: pd.DataFrame, theirs: pd.DataFrame, confidence: float) -> Exhibit | None:
    placed = means[means["words"].notna()]
    several = placed.groupby("group")["size"].nunique()
    placed = placed[placed["group"].isin(several.index[several > 1])]
    if placed.empty:
        return None
    charts, tables = {}, []
    for number, (level, name, heading) in enumerate(_PAPER[answers.benchmark].curves):
        rows = placed[(placed["level"] == level) & (placed["name"] == name)]
        if rows.empty:
            continue
        beside = theirs[(theirs["level"] == level) & (theirs["name"] == name)]
        levels = pd.DataFrame({"name": beside["model"], "accuracy": beside["accuracy"]})
        if level == "sensitivity":
            chance = pd.DataFrame({"name": ["chance"], "accuracy": [_PAPER[answers.benchmark].chance]})
            levels = pd.concat([levels, chance])
        levels = levels.groupby("accuracy", sort=False, as_index=False).agg({"name": " and ".join})
        unit = "tokens" if set(answers.runs["reference"].dropna()) == {"tokens"} else "words"
        charts[f"sizes-{number}"] = partial(size_chart, rows, levels, heading, unit=unit)
        tables.append(rows.assign(measure=heading))
    table = pd.concat(tables)[["measure", "group", "size", "runs", "accuracy", "low", "high"]]
    table = table.rename(columns={"group": "curve", "accuracy": "share"})
    about = (
        "Means over the runs of a size. No line is fitted, as there are too few items. Level lines: chance, and the "
        "paper's models."
    )
    definitions = {
        "Bands": f"{confidence:.0%} intervals for new runs on these items, Wilson's, from the spread between runs; "
        "with two runs at a size, from the spread of all sizes, or its own where that is larger."
    }
    return Exhibit(
        "sizes", "By training text", about, table, charts=charts, confidence=confidence, definitions=definitions
    )


def _words_table(answers: Diagnosed) -> pd.DataFrame:
    """Return item, condition, context, fitting, and a column of words for each group."""
    keys = ["item", "condition", "context", "fitting"]
    table = answers.words.pivot(index=keys, columns="group", values="words")
    order = pd.MultiIndex.from_frame(answers.words[keys].drop_duplicates())
    groups = [group for group in dict.fromkeys(answers.runs["group"]) if group in table]
    return table.reindex(index=order, columns=groups).rename_axis(None, axis=1).reset_index()


def _top_words(answers: Diagnosed) -> Exhibit | None:
    """Return tables 6, 10, 13 and 15: the items that the paper prints."""
    known = published_file("top_words")
    known = known[known["benchmark"] == answers.benchmark].assign(ending=lambda rows: rows["ending"].fillna(""))
    keys = ["item", "condition", "ending"]
    theirs = known.assign(model=known["model"] + PAPER).pivot(index=keys, columns="model", values="words")
    ours = _words_table(answers)
    article = ours["context"].str.rpartition(" ")[2]
    ours["ending"] = article.where(article.isin(["a", "an"]) & ours["condition"].str.startswith("simp"), "")
    wanted = known.drop_duplicates(keys)[keys]
    table = wanted.merge(ours, on=keys).merge(theirs.reset_index(), on=keys)
    if table.empty:
        return None
    table = table.drop(columns=["condition", "ending"]).assign(context=table["context"].str.rstrip() + " ____")
    about = (
        f"The most probable whole words in contexts that the paper prints ({_PAPER[answers.benchmark].top}), ours from "
        "one run of each curve at its largest size; fitting: expected by people, or true."
    )
    return Exhibit("top-words", "Most probable words", about, table)


def _all_words(answers: Diagnosed) -> Exhibit:
    table = _words_table(answers)
    table = table.assign(
        condition=table["condition"].str.replace("_", " "), context=table["context"].str.rstrip() + " ____"
    )
    about = "The most probable whole words in every context that is not drawn at random, from one run of each curve."
    return Exhibit("words", "All contexts", about, table)


def _everything(means: pd.DataFrame, theirs: pd.DataFrame, confidence: float) -> Exhibit:
    wide = theirs.pivot(index=KEYS, columns="model", values="accuracy").rename_axis(None, axis=1).reset_index()
    rows = means.merge(wide, on=KEYS, how="left")
    rows["name"] = rows["name"].map(_spelled)
    columns = {
        "level": "measure", "name": "contexts", "group": "curve", "size": "size", "runs": "runs", "items": "items",
        "accuracy": "share", "low": "low", "high": "high", "low_items": "low (items)", "high_items": "high (items)",
        "sd": "± trials", "ties": "ties", "unknown": "not expressible", "known": "without these",
        **{model: model for model in wide.columns[2:]},
    }  # fmt: skip
    table = rows[list(columns)].rename(columns=columns)
    cells = dict.fromkeys(("runs", "items", "ties", "not expressible"), mean_count_text)
    over_runs, over_items = f"{confidence:.0%} interval", "95% interval over items"
    return Exhibit(
        "measures",
        "All measures",
        "Means over the runs of a size.",
        table,
        cells=cells,
        intervals={
            over_runs: ("share", "low", "high"),
            over_items: ("share", "low (items)", "high (items)"),
        },
        definitions={
            over_runs: "For new runs on these items, at least as wide as Wilson's of as many independent answers.",
            over_items: "Wilson's, for new items, at the mean over runs.",
            "Not expressible": "Items with a word that the model cannot express, which counts as wrong.",
        },
        optional=[over_items],
    )
