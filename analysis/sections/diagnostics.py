"""The tables of Ettinger 2020 with ours beside the paper's, and shares of items over training text."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from analysis.exhibits.exhibit import Cell, Exhibit
from analysis.exhibits.figures.diagnostics import beside_chart, size_chart
from analysis.exhibits.figures.style import Chart
from analysis.exhibits.sentences import diagnostics as sentences
from analysis.exhibits.tables.text import as_it_is, count, mean_count_text, probability_text
from analysis.measures.diagnostics import CONSTRAINTS, KEYS, Diagnosed, at_largest, diagnosed, over_sizes
from analysis.published import published_file
from analysis.sections.section import DIAGNOSTICS, TableSection
from analysis.study.collect import Study
from eval.diagnostics.measures import AT, THRESHOLD
from eval.published import COLUMNS, read_published
from eval.scores.accuracy import wilson

ABOVE = f"sensitivity>{THRESHOLD:.2f}".replace("0.", ".")
PAPER = " (paper)"
_NOTE_9 = "shares of people, whose size is no model's to reach (note 9)"
_AT = "Ours are means over the runs at each curve's largest size"

# Tables of word prediction: its number, and measures' names -> columns.
_PREDICTION = {
    "cprag": (
        "4",
        {"original": "original", "shuffled": "shuffled", "truncated": "truncated",
         "shuffled_truncated": "both"},
    ),
    "role": (
        "7",
        {"original": "original", "generic_object": "generic object", "generic_subject": "generic subject",
         "generic_both": "both generic"},
    ),
    "neg": ("11", {"simp affirmative": "affirmative"}),
}  # fmt: skip
_PREDICTION_TEXT = {
    "cprag": "Shuffled: the first sentence's words in a drawn order, mean and standard deviation of the trials; "
    "truncated: of the second sentence only the last two words stay; both: both of these.",
    "role": "Generic: the object is replaced by one, the subject by other.",
    "neg": "Simple affirmative sentences, whose true word is the name of a category.",
}
_SENSITIVITY = {"cprag": "5", "role": "9", "neg": "12 and 14"}
_SENSITIVITY_TEXT = {
    "cprag": "Share of contexts in which the expected word is more probable than both words that do not fit",
    "role": "Share of pairs in which the word is more probable where the roles fit than with the roles reversed",
    "neg": "Share of sentences in which the true word is more probable than the false one",
}
_TOP = {"cprag": "table 6", "role": "table 10", "neg": "tables 13 and 15"}
_CHANCE = {"cprag": 1 / 3, "role": 1 / 2, "neg": 1 / 2}
# What has a curve over sizes: measure, name, heading.
_CURVES = {
    "cprag": [("accuracy@5", "original", "Expected word among the first 5"),
              ("sensitivity", "original", "Expected word above both others")],
    "role": [("accuracy@5", "original", "Expected word among the first 5"),
             ("sensitivity", "original", "Fitting roles above reversed ones")],
    "neg": [("accuracy@5", "simp affirmative", "Category among the first 5"),
            ("sensitivity", "simp affirmative", "True above false: simple, affirmative"),
            ("sensitivity", "simp negative", "True above false: simple, negative"),
            ("sensitivity", "natural affirmative", "True above false: natural, affirmative"),
            ("sensitivity", "natural negative", "True above false: natural, negative"),
            ("sensitivity", "less natural negative", "True above false: less natural, negative")],
}  # fmt: skip


def diagnostic_section(study: Study, label: str, confidence: float) -> TableSection:
    """Read the answers of a study's runs to a diagnostic; raises the errors of `diagnosed`."""
    answers = diagnosed(study, label)
    return TableSection(
        label,
        label,
        DIAGNOSTICS,
        sentences.extent(answers),
        sentences.warnings(answers),
        diagnostic_exhibits(answers, confidence),
        sentences.methods(answers),
        answers.problems,
        answers.runs,
        answers.digest,
    )


def diagnostic_exhibits(answers: Diagnosed, confidence: float) -> list[Exhibit]:
    """Return the exhibits of one diagnostic, in the paper's order; each appears where its data exist."""
    means = over_sizes(answers, confidence)
    ours = at_largest(means).rename(columns={"group": "model"})
    theirs = _published(answers.benchmark, ours)
    exhibits = [
        _prediction(answers, ours, theirs),
        _by_cloze(answers, ours, theirs),
        _sensitivity(answers, ours, theirs),
        _by_constraint(answers, ours),
        _probabilities(answers),
        _sizes(answers, means, theirs, confidence),
        _top_words(answers),
        _all_words(answers),
        _everything(means, theirs),
    ]
    return [exhibit for exhibit in exhibits if exhibit is not None]


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


_MODEL: dict[str, Cell] = {"model": as_it_is, "first": count}


def _prediction(answers: Diagnosed, ours: pd.DataFrame, theirs: pd.DataFrame) -> Exhibit:
    number, columns = _PREDICTION[answers.benchmark]
    rows = pd.concat([ours, theirs])
    there = {name: heading for name, heading in columns.items() if name in set(ours["name"])}
    table = [_within(k, there, rows, model) for model in _models(ours, theirs) for k in AT]
    return Exhibit(
        "prediction",
        "Predicting the word",
        "Share of contexts whose expected word (one of several) is among the first 1 or 5 whole words that the model "
        f"expects (Ettinger 2020, table {number}). {_PREDICTION_TEXT[answers.benchmark]} {_AT}.",
        pd.DataFrame(table),
        cells=_MODEL,
    )


def _by_cloze(answers: Diagnosed, ours: pd.DataFrame, theirs: pd.DataFrame) -> Exhibit | None:
    """Return table 8."""
    rows = pd.concat([ours, theirs])
    bins = [name for name in dict.fromkeys(ours["name"]) if name.startswith("cloze")]
    if not bins:
        return None
    columns = {name: name.removeprefix("cloze ") for name in bins}
    table = [_within(k, columns, rows, model) for model in _models(ours, theirs) for k in AT]
    sizes = ", ".join(f"{ours.loc[ours['name'] == name, 'items'].iloc[0]:.0f}" for name in bins)
    return Exhibit(
        "cloze",
        "By how much people agree",
        "The same of unchanged contexts, in quarters by the cloze probability of what people expected most (Ettinger "
        f"2020, table 8): {sizes} contexts.",
        pd.DataFrame(table),
        cells=_MODEL,
    )


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
    text = " People: what their cloze probabilities give." if len(people) else ""
    number = _SENSITIVITY[answers.benchmark]
    return Exhibit(
        "sensitivity",
        "Sensitivity",
        f"{_SENSITIVITY_TEXT[answers.benchmark]}, and by more than {THRESHOLD} of probability (Ettinger 2020, "
        f"{'tables' if 'and' in number else 'table'} {number}); a tie "
        f"counts as no preference. {_AT}.{text} Lines: Wilson's 95% intervals over new items of this kind.",
        pd.DataFrame(table),
        cells=_MODEL,
        charts={"models": lambda width: beside_chart(shown, "", width=width)},
    )


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
    return Exhibit(
        "constraint",
        "By constraint",
        "The same of unchanged contexts that constrain what people expect highly and lowly (Federmeier and Kutas 1999, "
        "as the files mark them). The paper tells of both together only.",
        pd.DataFrame(table),
        cells={**_MODEL, "contexts": as_it_is, "items": count},
    )


def _spelled(name: str) -> str:
    """Spell out a part of a diagnostic: "simple negative"."""
    return name.replace("_", " ").replace("simp ", "simple ")


def _probabilities(answers: Diagnosed) -> Exhibit:
    largest = _at_largest_runs(answers)
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
        about = f" People: mean cloze probabilities as the paper tells them (section 5.1), {_NOTE_9}."
    elif len(answers.people):
        own = answers.people.set_index("name")["probability"].reindex(names)
        table = pd.concat([table, pd.DataFrame([["people", *own]], columns=table.columns)])
        table["difference"] = table[names[0]] - table[names[1]]
        about = (
            " People: mean cloze probabilities of the same words, from the diagnostic's files; the paper tells a "
            f"difference of {probability_text(stated['difference'])} (section 5.2). They are {_NOTE_9}."
        )
    return Exhibit(
        "probabilities",
        "How probable the words are",
        f"Mean probability of good and bad words in unchanged contexts, of words that the model can express.{about}",
        table,
        cells={**_MODEL, **dict.fromkeys([*names, "difference"], probability_text)},
    )


def _at_largest_runs(answers: Diagnosed) -> pd.DataFrame:
    runs = answers.runs
    largest = runs.groupby("group")["sample_words"].transform("max")
    return runs[(runs["sample_words"] == largest) | runs["sample_words"].isna()]


def _sizes(answers: Diagnosed, means: pd.DataFrame, theirs: pd.DataFrame, confidence: float) -> Exhibit | None:
    placed = means[means["words"].notna()]
    several = placed.groupby("group")["size"].nunique()
    placed = placed[placed["group"].isin(several.index[several > 1])]
    if placed.empty:
        return None
    charts, tables = {}, []
    for number, (level, name, heading) in enumerate(_CURVES[answers.benchmark]):
        rows = placed[(placed["level"] == level) & (placed["name"] == name)]
        if rows.empty:
            continue
        beside = theirs[(theirs["level"] == level) & (theirs["name"] == name)]
        levels = pd.DataFrame({"name": beside["model"], "accuracy": beside["accuracy"]})
        if level == "sensitivity":
            chance = pd.DataFrame({"name": ["chance"], "accuracy": [_CHANCE[answers.benchmark]]})
            levels = pd.concat([levels, chance])
        levels = levels.groupby("accuracy", sort=False, as_index=False).agg({"name": " and ".join})
        unit = "tokens" if set(answers.runs["reference"].dropna()) == {"tokens"} else "words"
        charts[f"sizes-{number}"] = partial(_panel, rows, levels, heading, unit)
        tables.append(rows.assign(measure=heading))
    table = pd.concat(tables)[["measure", "group", "size", "runs", "accuracy", "low", "high"]]
    table = table.rename(columns={"group": "curve", "accuracy": "share"})
    return Exhibit(
        "sizes",
        "Over the text that was trained on",
        f"Means over the runs of a size; bands: {confidence:.0%} Wilson limits of the spread over runs, for these "
        "items (with two runs at a size the spread is that of all sizes, or its own where that is larger). No line is "
        "fitted: so few items tell no law. Level lines: chance, and the paper's models.",
        table,
        cells={"measure": as_it_is, "curve": as_it_is, "size": as_it_is, "runs": count},
        charts=charts,
        folded=True,
    )


def _panel(rows: pd.DataFrame, levels: pd.DataFrame, heading: str, unit: str, width: int | str) -> Chart:
    return size_chart(rows, levels, heading, unit=unit, width=width)


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
    return Exhibit(
        "top-words",
        "What is expected most",
        f"The most probable whole words after contexts that the paper prints ({_TOP[answers.benchmark]}), ours "
        "of one run of each curve at its largest size; fitting: what people expect, or what is true.",
        table,
        cells=dict.fromkeys(table.columns, as_it_is),
    )


def _all_words(answers: Diagnosed) -> Exhibit:
    table = _words_table(answers)
    table = table.assign(
        condition=table["condition"].str.replace("_", " "), context=table["context"].str.rstrip() + " ____"
    )
    return Exhibit(
        "words",
        "All contexts",
        "The same of every context that is not drawn at random, of one run of each curve.",
        table,
        cells=dict.fromkeys(table.columns, as_it_is),
        folded=True,
    )


def _everything(means: pd.DataFrame, theirs: pd.DataFrame) -> Exhibit:
    """Return every measure of every size, with both intervals."""
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
    whole = ("runs", "items", "ties", "not expressible")
    return Exhibit(
        "measures",
        "All measures",
        "Means over the runs of a size. low, high: over new runs, for these items, and no closer than Wilson's of as "
        "many independent answers; (items): Wilson's 95% "
        "intervals over new items, at the mean over runs. Not expressible: items with a word that the model cannot "
        "express, which counts as wrong.",
        table,
        cells={
            **dict.fromkeys(("measure", "contexts", "curve", "size"), as_it_is),
            **dict.fromkeys(whole, mean_count_text),
        },
        folded=True,
    )
