"""Statements and printed tables of the papers, checked against the published accuracies.

analysis/published/statements.csv names the measure of each statement. The column `chosen` marks those that follow from
our choice of paradigms (analysis/measures/accuracies.py), as for BLiMP's figure 3, whose paradigms have no names.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.curves.variance import Array
from analysis.measures.accuracies import (
    ADJECTIVE,
    ATTRACTOR,
    PEOPLE,
    REGULARITY,
    against,
    by_condition,
    correlations,
    gaps,
    losses,
    pooled_loss,
    wide,
)
from analysis.published import published_file
from eval.published import OVERALL

NEURAL = ("LSTM", "TXL", "GPT-2")  # of Warstadt et al. 2020; the fourth model is the 5-gram
COLUMNS = ["place", "statement", "relation", "value", "tolerance", "ours", "agrees", "chosen", "note"]
_TRAINED_ON = {"LSTM": 83e6, "TXL": 103e6}  # words; Warstadt et al. 2020, section 4
_SLOPES = {"LSTM": "LSTM", "TXL": "Transformer-XL"}  # as slopes.csv names them
# Paradigms of each phenomenon of CLiMP (Xiang et al. 2021, table 1; its coverb and classifier are swapped there).
CLIMP_PARADIGMS = {
    "anaphor_agreement": 1, "ba": 1, "binding": 1, "classifier": 3, "coverb": 2, "filler_gap_dependency": 1,
    "head_final": 1, "passive": 1, "verb_complement": 5,
}  # fmt: skip


def check(benchmark: str, measures: Mapping[str, float]) -> pd.DataFrame:
    """Check the statements about one benchmark: COLUMNS; `chosen` is True where one agrees by our choice.

    Relation "=": within the tolerance of the value, which is half of the last digit that is stated unless the statement
    is a range; "<", ">": below it, above it. Raises KeyError for a statement about a number that is not there.
    """
    rows = published_file("statements")
    rows = rows[rows["benchmark"] == benchmark].reset_index(drop=True)
    rows["note"], rows["chosen"] = rows["note"].fillna(""), rows["chosen"].eq(1)
    rows["ours"] = [measures[name] for name in rows["measure"]]
    near = (rows["ours"] - rows["value"]).abs() <= rows["tolerance"] + 1e-9
    below, above = rows["ours"] < rows["value"], rows["ours"] > rows["value"]
    rows["agrees"] = np.select([rows["relation"] == "=", rows["relation"] == "<"], [near, below], above)
    return rows[COLUMNS]


def check_printed(benchmark: str, accuracies: pd.DataFrame) -> pd.DataFrame:
    """Check the cells of the papers' tables: how many of each agree, and which do not."""
    printed = published_file("printed")
    printed = printed[printed["benchmark"] == benchmark]
    rows = printed.merge(accuracies, on=["level", "name", "model"], how="left", validate="one_to_one")
    rows["value"] = rows["percent"] / 100
    rows["tolerance"] = np.where(rows["place"] == "table 4", 0.005, 0.0005)  # whole per cent there, else tenths
    rows["agrees"] = (rows["accuracy"] - rows["value"]).abs() <= rows["tolerance"] + 1e-9
    checks = []
    for place, part in rows.groupby("place", sort=True):
        legible = " that our copy of the paper's text has in one piece" if place == "table 4" else ""
        statement = f"cells that are the rounded accuracies or means of them, of {len(part)}{legible}"
        slips = part.loc[~part["agrees"], ["name", "model", "percent", "accuracy"]].to_numpy()
        notes = [f"{name} {model}: {cell:g} printed, {100 * ours:.2f} follows" for name, model, cell, ours in slips]
        agree = float(part["agrees"].sum())
        checks.append((place, statement, "=", float(len(part)), 0.0, agree, not len(slips), False, "; ".join(notes)))
    return pd.DataFrame(checks, columns=COLUMNS)


def _values(accuracies: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return accuracies of phenomena and of the whole by (name, model)."""
    rows = accuracies[accuracies["level"] != "paradigm"]
    return {(name, model): float(value) for name, model, value in rows[["name", "model", "accuracy"]].to_numpy()}


def _names(accuracies: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return phenomena, and models without people."""
    table = wide(accuracies, "phenomenon")
    return [str(name) for name in table.index], [str(model) for model in table if model != PEOPLE]


def blimp_measures(accuracies: pd.DataFrame) -> dict[str, float]:
    """Return numbers of Warstadt et al. 2020 from the published accuracies (eval.published: blimp)."""
    values, (phenomena, models) = _values(accuracies), _names(accuracies)
    measures = {f"{name} {model}": value for (name, model), value in values.items()}
    whole = {model: values[OVERALL, model] for model in models}
    measures["lead of GPT-2"] = whole["GPT-2"] - max(value for model, value in whole.items() if model != "GPT-2")
    measures["lag of 5-gram"] = min(value for model, value in whole.items() if model != "5-gram") - whole["5-gram"]
    measures |= _gaps(accuracies)
    reached = [name for name in phenomena if values[name, "GPT-2"] >= values[name, PEOPLE]]
    measures["phenomena where GPT-2 reaches people"] = float(len(reached))
    hardest = [min(phenomena, key=lambda name: values[name, model]) for model in models]
    measures["models whose hardest phenomenon is island_effects"] = float(hardest.count("island_effects"))
    paradigms = wide(accuracies, "paradigm")
    without = paradigms.loc[["wh_vs_that_no_gap", "wh_vs_that_no_gap_long_distance"], models]
    gapped = paradigms.loc[["wh_vs_that_with_gap", "wh_vs_that_with_gap_long_distance"], models]
    measures["filler-gap margin"] = float(without.to_numpy().min() - gapped.to_numpy().max())
    measures |= _correlations(accuracies) | _losses(accuracies) | _words_to_people(values)
    shuffled = published_file("blimp_paradigms").set_index("paradigm")["word_shuffling"].reindex(paradigms.index) == 1
    measures["people on word-shuffling paradigms"] = float(paradigms.loc[shuffled, PEOPLE].mean())
    measures["people on other paradigms"] = float(paradigms.loc[~shuffled, PEOPLE].mean())
    return measures


def _gaps(accuracies: pd.DataFrame) -> dict[str, float]:
    measures = {f"gap {row['name']} {row['model']}": float(row["gap"]) for row in gaps(accuracies).to_dict("records")}
    return measures | {name.replace("gap", "distance", 1): abs(gap) for name, gap in measures.items()}


def _correlations(accuracies: pd.DataFrame) -> dict[str, float]:
    rows = correlations(accuracies)[["model", "other", "r"]].to_numpy()
    r = {(model, other): float(value) for model, other, value in rows}
    measures = {f"r {model} {other}": value for (model, other), value in r.items()}
    with_people = {model: r[model, PEOPLE] for model in NEURAL}
    others = [value for model, value in with_people.items() if model != "GPT-2"]
    measures["lead of r GPT-2 people"] = with_people["GPT-2"] - max(others)
    measures["lag of r 5-gram people"] = min(with_people.values()) - r["5-gram", PEOPLE]
    among = [r[model, other] for model in NEURAL for other in NEURAL if model != other]
    measures["neural r margin"] = min(among) - max(with_people.values())
    return measures


def _losses(accuracies: pd.DataFrame) -> dict[str, float]:
    measures: dict[str, float] = {}
    for name, panel in {"locality": ADJECTIVE, "attractor": ATTRACTOR}.items():
        lost = losses(by_condition(accuracies, panel))[["model", "loss"]].to_numpy()
        measures |= {f"loss {name} {model}": float(loss) for model, loss in lost}
    measures |= {f"loss irregular {model}": float(loss) for model, loss in pooled_loss(accuracies, REGULARITY).items()}
    rows = by_condition(accuracies, ATTRACTOR)
    attracted = rows[rows["model"].isin(NEURAL) & (rows["condition"] != "no attractor")]
    measures["lowest neural accuracy with an attractor"] = float(attracted["accuracy"].min())
    return measures


def _words_to_people(values: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return the words at which the published slope reaches people, from the accuracy of the fully trained model."""
    rows = published_file("slopes")[["model", "phenomenon", "slope"]].to_numpy()
    slopes = {(model, name): float(slope) for model, name, slope in rows}
    measures = {}
    for model, words in _TRAINED_ON.items():
        for name in ("npi_licensing", "island_effects"):
            doublings = (values[name, PEOPLE] - values[name, model]) / slopes[_SLOPES[model], name]
            measures[f"words to people {model} {name}"] = words * 2**doublings
    return measures


def climp_models(models: Sequence[str]) -> pd.DataFrame:
    """Return the published models of CLiMP in several sizes and units: model, kind, size (sentences), unit."""
    parts = pd.Series(models).str.extract(r"^(?P<kind>LSTM|5-gram)-(?P<size>[\d.]+M)-(?P<unit>word|char)$")
    parts["unit"] = parts["unit"].map({"word": "words", "char": "characters"})
    return parts.assign(model=list(models)).dropna()[["model", "kind", "size", "unit"]].reset_index(drop=True)


def climp_measures(accuracies: pd.DataFrame, people_of_blimp: float) -> dict[str, float]:
    """Return numbers of Xiang et al. 2021 from table 2 (eval.published: climp)."""
    values, (phenomena, models) = _values(accuracies), _names(accuracies)
    total = sum(CLIMP_PARADIGMS.values())
    sums = {m: sum(CLIMP_PARADIGMS[name] * values[name, m] for name in phenomena) for m in (*models, PEOPLE)}
    means = {model: value / total for model, value in sums.items()}
    measures = {f"mean {model}": value for model, value in means.items()} | _gaps(accuracies)
    # Both the cells and the overall accuracy are rounded to a thousandth.
    equal = [model for model, mean in means.items() if abs(mean - values[OVERALL, model]) <= 0.001 + 1e-9]
    measures["overall rows that are means over paradigms"] = float(len(equal))
    measures["people above those of BLiMP"] = values[OVERALL, PEOPLE] - people_of_blimp
    order = sorted(phenomena, key=lambda name: sum(values[name, model] for model in models))
    measures["easiest two"] = float(len({"classifier", "verb_complement"}.intersection(order[-2:])))
    measures["hardest three"] = float(len({"ba", "binding", "filler_gap_dependency"}.intersection(order[:3])))
    measures["coverb best but BERT"] = max(values["coverb", model] for model in models if model != "Chinese BERT")
    known = climp_models(models)
    for kind, part in known.groupby("kind"):
        of_kind = [values[OVERALL, model] for model in part["model"]]
        measures |= {f"lowest {kind}": min(of_kind), f"highest {kind}": max(of_kind)}
        measures[f"head_final {kind}s"] = float(np.mean([values["head_final", model] for model in part["model"]]))
    rows = known.assign(accuracy=[values[OVERALL, model] for model in known["model"]]).drop(columns="model")
    by_kind = against(rows, "kind")
    measures["LSTM above 5-gram"] = float(np.sum(by_kind["LSTM"] > by_kind["5-gram"]))
    by_unit = against(rows, "unit").set_index(["kind", "size"])
    gain: dict[Any, float] = (by_unit["characters"] - by_unit["words"]).to_dict()
    for kind in ("LSTM", "5-gram"):
        measures[f"{kind}s better on characters"] = float(sum(of == kind and gain[of, n] > 0 for of, n in gain))
    measures["LSTM-0.4M characters over words"] = gain["LSTM", "0.4M"]
    by_size = against(rows[rows["kind"] == "5-gram"], "size")
    measures["5-grams better on more text"] = float(np.sum(by_size["2M"] > by_size["0.4M"]))
    return measures


def methods_measures(table: pd.DataFrame, blimp: Mapping[str, float]) -> dict[str, float]:
    """Return numbers of Ide et al. from their tables (acceptability_methods); `blimp`: of blimp_measures."""
    mean, best, share = (
        table[table["measure"] == measure].pivot(index="method", columns=["benchmark", "model"], values="value")
        for measure in ("accuracy", "best", "share of A")
    )
    people = round(blimp["overall people"], 3)

    def row(of: pd.DataFrame, method: str, benchmark: str | None = None) -> Array:
        return np.asarray((of[benchmark] if benchmark else of).loc[method], dtype=np.float64)

    plain = np.max([row(mean, method) for method in ("lp", "mean_lp", "pen_lp")], axis=0)
    mixed = np.max([row(mean, method) for method in ("vote_mix_p3", "vote_mix_l3")], axis=0)
    oracle = np.max([row(best, method) for method in ("in_template_lp", "yes_no")], axis=0)
    single = mean[~mean.index.str.startswith("vote_")].rank(ascending=False)
    counts = {
        "yes_no best": row(single, "yes_no", "blimp") == 1,
        "in_template_lp in the best two": row(single, "in_template_lp", "blimp") <= 2,
        "yes_no above people": row(mean, "yes_no", "blimp") > people,
        "plain below in_template_lp": plain < row(mean, "in_template_lp"),
        "ab_prompt below yes_no": row(mean, "ab_prompt") < row(mean, "yes_no"),
        "comparative below in_template_lp": row(mean, "in_template_comparative_lp") < row(mean, "in_template_lp"),
        "mixed above oracle": mixed > oracle,
    }
    measures = {name: float(true.sum()) for name, true in counts.items()}
    ensembles = [row(mean, method, "blimp") for method in mean.index if str(method).startswith("vote_")]
    measures["best ensemble over people"] = float(np.max(ensembles)) - people
    measures["least preference"] = float(np.abs(2 * row(share, "ab_prompt") - 1).min())
    shared = ("people on word-shuffling paradigms", "people on other paradigms")
    return measures | {name: blimp[name] for name in shared}
