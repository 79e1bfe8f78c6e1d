"""Check statements in papers against the published accuracies, and reproduce the papers' tables.

Each row of `published/statements.csv` contains a statement and the formula that computes its number. A formula is a
Python expression that uses the names in `_namespace`. The functions that make tables use accuracies with the columns
level (paradigm, phenomenon, overall), name, model and accuracy. These come from `eval.published.read_published`, and
you can add a study's own models.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from analysis.config import AnalysisConfig
from analysis.published import published_file
from analysis.report.exhibit import Cell, Exhibit
from analysis.report.write import Part, write_report
from eval.published import OVERALL, read_published
from pairscale.command.line import current
from pairscale.errors import ConfigError

PEOPLE = "people"  # the human baseline among published accuracies
NEURAL = ["LSTM", "TXL", "GPT-2"]  # in Warstadt et al. 2020; their fourth model is the 5-gram
_panels = published_file("panels")
# The panels of figures 3 and 4 in Warstadt et al. 2020. The columns are panel, condition (the plain one first) and
# paradigm. The paper doesn't name the paradigms of figure 3, so we chose paradigms that reproduce the losses in section
# 6.1. Among the 15 choices without an attractor, only ours results in a loss of 20 points for the LSTM and 5 points for
# Transformer-XL.
ADJECTIVE, ATTRACTOR, REGULARITY = (
    _panels[_panels["figure"] == figure].drop(columns="figure") for figure in ("adjective", "attractor", "regularity")
)
# The number of paradigms per phenomenon in CLiMP (Xiang et al. 2021, table 1, which swaps coverb and classifier).
CLIMP_PARADIGMS = {
    "anaphor_agreement": 1, "ba": 1, "binding": 1, "classifier": 3, "coverb": 2, "filler_gap_dependency": 1,
    "head_final": 1, "passive": 1, "verb_complement": 5,
}  # fmt: skip
# Each model's name in slopes.csv and number of training words (Warstadt et al. 2020, section 4).
_TRAINED = {"LSTM": ("LSTM", 83e6), "TXL": ("Transformer-XL", 103e6)}


def check_statements(blimp: pd.DataFrame | None = None) -> pd.DataFrame:
    """Compute the number of every statement, and compare it with the number in the paper.

    Args:
        blimp: Accuracies on BLiMP (default: the published ones).

    Returns:
        One row per statement: paper, place, statement, relation ("is", "below" or "above"), stated, tolerance,
        computed, agrees, by_choice, note and formula. With the relation "is", a statement agrees if `computed` is
        within `tolerance` of `stated`. The tolerance is half a unit of the last digit in the paper. `by_choice` marks
        statements about paradigms that we chose because the paper doesn't name them.
    """
    rows = published_file("statements")
    rows["note"], rows["by_choice"] = rows["note"].fillna(""), rows["by_choice"].eq(1)
    names = _namespace(read_published("blimp") if blimp is None else blimp)
    rows["computed"] = [float(eval(formula, names)) for formula in rows["formula"]]  # safe: the formulas are ours
    difference = rows["computed"] - rows["stated"]
    is_near = difference.abs() <= rows["tolerance"] + 1e-9
    on_its_side = difference * rows["relation"].map({"above": 1, "below": -1}) > 0
    rows["agrees"] = is_near.where(rows["relation"] == "is", on_its_side)
    columns = ["paper", "place", "statement", "relation", "stated", "tolerance", "computed", "agrees"]
    return rows[[*columns, "by_choice", "note", "formula"]]


def _namespace(blimp: pd.DataFrame) -> dict[str, Any]:
    """Return the names that formulas in statements.csv may use, with their values."""
    known = published_file("blimp_paradigms")
    methods = published_file("acceptability_methods")
    accuracy, best, share_of_a = (
        methods[methods["measure"] == measure].pivot(index="method", columns=["benchmark", "model"], values="value")
        for measure in ("accuracy", "best", "share of A")
    )
    ranks = accuracy[~accuracy.index.str.startswith("vote_")].rank(ascending=False)
    runs = published_file("sg_scores")
    runs = runs[runs["architecture"].isin(["LSTM", "ON-LSTM", "RNNG", "GPT-2", "n-gram"])]  # compared by Hu et al. 2020
    return {
        "__builtins__": {"abs": abs},
        "blimp": _Published(blimp),
        "climp": _Published(read_published("climp")),
        "methods": SimpleNamespace(accuracy=accuracy, best=best, share_of_a=share_of_a, ranks=ranks),
        "syntaxgym": runs.groupby(["architecture", "corpus"])["SG score"].mean().unstack(),
        "ADJECTIVE": ADJECTIVE, "ATTRACTOR": ATTRACTOR, "REGULARITY": REGULARITY, "NEURAL": NEURAL,
        "WORD_SHUFFLING": list(known.loc[known["word_shuffling"] == 1, "paradigm"]),
    }  # fmt: skip


class _Published:
    """Published accuracies in the form that formulas use.

    `r` contains the correlations between models over paradigms. `means` contains the overall accuracies on CLiMP, which
    are means over its paradigms. They are computed from the accuracies of phenomena, because the accuracies of
    paradigms aren't published.
    """

    def __init__(self, accuracies: pd.DataFrame):
        self.accuracies = accuracies
        self.overall = wide(accuracies, OVERALL).T[OVERALL]
        self.phenomena, self.paradigms = wide(accuracies, "phenomenon"), wide(accuracies, "paradigm")
        self.models = [model for model in self.overall.index if model != PEOPLE]
        self.r = self.paradigms.corr()
        weights = pd.Series(CLIMP_PARADIGMS)
        self.means = self.phenomena.mul(weights, axis=0).sum() / weights.sum()

    def gap(self, name: str, model: str) -> float:
        """Return the accuracy of a model minus the human baseline."""
        row = self.overall if name == OVERALL else self.phenomena.T[name]
        return float(row[model] - row[PEOPLE])

    def loss(self, panels: pd.DataFrame) -> pd.Series:
        """Return the loss of each model (`losses`) over all panels together, with equal weights for paradigms."""
        return losses(by_condition(self.accuracies, panels.assign(panel=""))).set_index("model")["loss"]

    def words_to_people(self, model: str, phenomenon: str) -> float:
        """Return how many words of training a model would need to match humans, at the published slope."""
        slopes = published_file("slopes").pivot(index="phenomenon", columns="model", values="slope")
        name, words = _TRAINED[model]
        return float(words * 2 ** (-self.gap(phenomenon, model) / slopes[name][phenomenon]))

    def sizes(self, kind: str) -> pd.DataFrame:
        """Return an architecture's overall accuracies on CLiMP by amount of text, in the columns char and word."""
        names = self.overall.index.to_series().str.extract(rf"^{kind}-(?P<size>[\d.]+M)-(?P<unit>\w+)$").dropna()
        return names.assign(accuracy=self.overall).pivot(index="size", columns="unit", values="accuracy")

    def cells_that_agree(self, place: str) -> int:
        """Return how many cells of a paper's table equal the accuracies, or their means, after rounding."""
        printed = published_file("printed")
        printed = printed[printed["place"] == place].drop(columns="benchmark")
        rows = printed.merge(self.accuracies, on=["level", "name", "model"], how="left", validate="one_to_one")
        tolerance = 0.005 if place == "table 4" else 0.0005  # table 4 has whole per cents, other tables tenths
        return int(((rows["accuracy"] - rows["percent"] / 100).abs() <= tolerance + 1e-9).sum())


def wide(accuracies: pd.DataFrame, level: str) -> pd.DataFrame:
    """Return the accuracies of one level, with one row per name and one column per model. Missing values are NaN."""
    rows = accuracies[accuracies["level"] == level]
    table = rows.pivot(index="name", columns="model", values="accuracy")
    return table.reindex(index=rows["name"].unique(), columns=rows["model"].unique()).rename_axis(columns=None)


def phenomenon_table(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return overall accuracy and the accuracy of each phenomenon, with one column per model, as in BLiMP's table 3."""
    table = pd.concat([wide(accuracies, OVERALL), wide(accuracies, "phenomenon").sort_index()])
    return table.rename_axis("phenomenon").reset_index()


def paradigm_table(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return BLiMP's table 4.

    The columns are field, phenomenon, paradigm, the models, and one_prefix and two_prefix (whether these methods
    apply).
    """
    about = published_file("blimp_paradigms").set_index("paradigm")
    table = about[["field", "phenomenon"]].join(wide(accuracies, "paradigm"), how="right")
    table = table.join(about[["one_prefix", "two_prefix"]]).rename_axis("paradigm").reset_index()
    table.insert(2, "paradigm", table.pop("paradigm"))
    return table.sort_values(["phenomenon", "paradigm"], ignore_index=True)


def by_condition(accuracies: pd.DataFrame, panels: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers in BLiMP's figures 3 and 4, the mean accuracy over the paradigms of each condition.

    Args:
        accuracies: Accuracies of models on paradigms.
        panels: ADJECTIVE, ATTRACTOR or REGULARITY, or your own table with the columns panel, condition and paradigm.

    Returns:
        The columns panel, model, condition, accuracy and paradigms (their number). If a model lacks a paradigm of a
        panel, the panel has no rows for this model.
    """
    table, parts = wide(accuracies, "paradigm"), []
    for panel, rows in panels.groupby("panel", sort=False):
        condition = rows.set_index("paradigm")["condition"]
        means = table.reindex(condition.index).dropna(axis=1).groupby(condition, sort=False).mean()
        part = means.melt(ignore_index=False, var_name="model", value_name="accuracy").reset_index()
        parts.append(part.assign(panel=panel, paradigms=part["condition"].map(condition.value_counts())))
    return pd.concat(parts)[["panel", "model", "condition", "accuracy", "paradigms"]].reset_index(drop=True)


def losses(conditions: pd.DataFrame) -> pd.DataFrame:
    """Return the first condition's accuracy minus the mean of the others, per panel and model of `by_condition`."""
    by_model = conditions.groupby(["panel", "model"], sort=False)["accuracy"]
    return by_model.agg(lambda means: means.iloc[0] - means.iloc[1:].mean()).rename("loss").reset_index()


def paper_tables() -> dict[str, pd.DataFrame]:
    """Return the tables of Warstadt et al. 2020, the numbers in their figures, and table 2 of Xiang et al. 2021."""
    blimp, climp = read_published("blimp"), read_published("climp")
    figures = {"figure-3-adjective": ADJECTIVE, "figure-3-attractor": ATTRACTOR, "figure-4": REGULARITY}
    return {
        "blimp-table-3": phenomenon_table(blimp),
        "blimp-table-4": paradigm_table(blimp),
        "blimp-figure-1": wide(blimp, "paradigm").corr().rename_axis("model").reset_index(),
        **{f"blimp-{name}": by_condition(blimp, panels) for name, panels in figures.items()},
        "climp-table-2": phenomenon_table(climp),
    }


def agreement(checks: pd.DataFrame) -> str:
    """Return a sentence without its full stop, such as "58 of 68 statements agree with ..."."""
    chosen = int((checks["agrees"] & checks["by_choice"]).sum())
    by_choice = f"; {chosen} of them use paradigms that we chose because the paper doesn't name them" if chosen else ""
    return f"{int(checks['agrees'].sum())} of {len(checks)} statements agree with the published accuracies{by_choice}"


def write_statements(config: AnalysisConfig) -> None:
    """Check the papers' statements, and print and write the results (`python -m analysis published=true`).

    Raises ConfigError if the command line sets a key that isn't used here.
    """
    others = [one for one in current().overrides if not one.startswith(("published=", "paths.reports="))]
    if others:
        raise ConfigError(f"published=true only uses paths.reports. Leave out {', '.join(others)}.")
    checks = check_statements()
    about = "The table compares each number in a paper with the number computed from its published accuracies."
    cells: dict[str, Cell] = dict.fromkeys(("stated", "tolerance", "computed"), "{:.4g}".format)
    cells |= {"agrees": str, "by_choice": str}
    statements = Exhibit("statements", "Statements", about, checks.sort_values("agrees", kind="stable"), cells)
    print(checks.loc[~checks["agrees"], ["paper", "place", "statement", "stated", "computed"]].to_string(index=False))
    print(f"{agreement(checks)}.")
    part = Part("published", "Statements of papers", f"{agreement(checks)}.", None, [statements], tables=paper_tables())
    folder, command = Path(config.paths.reports, "published"), "python -m analysis published=true"
    print(write_report(folder, "published", [part], [command], config.analysis.figure, question=part.name))
