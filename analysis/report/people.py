"""People who answered a questionnaire (eval/questionnaire): their accuracy on a benchmark, next to that of models."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.formats import count, decimal_text, plural
from analysis.report.exhibit import Exhibit
from eval.questionnaire.agreement import agreement
from eval.questionnaire.answers import Counted, Sheet, counted, read_sheets
from eval.questionnaire.config import QuestionnaireConfig
from eval.scores.files import ITEMS_FILE, read_items, read_metadata
from pairscale.errors import ConfigError, InputError
from train.runs.folder import RunFolder

UNITS = ["level", "name"]


@dataclass(frozen=True)
class People:
    """The people who answered a questionnaire on a benchmark.

    Attributes:
        accuracy: level, name, accuracy and error: individual agreement with the labels overall, per phenomenon and per
            paradigm, as accuracies of models are. Units are left out if not all of their paradigms were asked.
        agreement: the table of eval.questionnaire.agreement.agreement.
        raters: how many people's answers count.
        notes: sentences on answers that don't count, and why.
    """

    accuracy: pd.DataFrame
    agreement: pd.DataFrame
    raters: int
    notes: list[str]


def read_people(
    paths: Sequence[str], runs: pd.DataFrame, labels: Sequence[str], folder: str | Path = "runs"
) -> dict[str, list[Sheet]]:
    """Read people's answers, by the label of the scores whose pairs they are about.

    Several labels may be about the same pairs: with and without a context, for example.

    Args:
        paths: files of answers, or folders of them.
        runs: the table of `analysis.runs`.
        labels: the folders of scores of minimal pairs.
        folder: where studies are (`paths.runs`).

    Raises:
        InputError: for answers on other pairs than any of these, and as eval.questionnaire.answers.read_sheets does.
    """
    about = {label: (label.partition("+")[0], _digest(runs, label, folder)) for label in labels}
    by_label: dict[str, list[Sheet]] = {}
    for sheet in read_sheets(paths):
        same = [label for label, pairs in about.items() if pairs == (sheet.benchmark, sheet.digest)]
        if not same:
            scored = (
                ", ".join(sorted({f"{name} (pairs {digest[:8]})" for name, digest in about.values()})) or "no pairs"
            )
            raise InputError(
                f"{sheet.path}: these are answers on {sheet.benchmark} (pairs {sheet.digest[:8]}), but the runs were "
                f"scored on {scored}"
            )
        for label in same:
            by_label.setdefault(label, []).append(sheet)
    return by_label


def _scores_of(runs: pd.DataFrame, label: str, folder: str | Path) -> Path:
    """Return the first folder of a run's scores that has the pairs of a label."""
    keys = runs[["study", "run"]].itertuples(index=False, name=None)
    folders = (RunFolder(Path(folder) / study / run).scores(label) for study, run in keys)
    return next(one for one in folders if (one / ITEMS_FILE).exists())


def _digest(runs: pd.DataFrame, label: str, folder: str | Path) -> str:
    digest: str = read_metadata(_scores_of(runs, label, folder) / ITEMS_FILE)["benchmark"]["digest"]
    return digest


def people_of(
    sheets: Sequence[Sheet],
    accuracies: pd.DataFrame,
    config: QuestionnaireConfig,
    confidence: float = 0.95,
    folder: str | Path = "runs",
) -> People:
    """Return the people who answered on the pairs of one benchmark.

    Args:
        sheets: answers of `read_people`.
        accuracies: rows of one benchmark of `analysis.accuracies`, whose paradigms count.
        config: which answers count (`questionnaire`).
        confidence: the level of the intervals of agreement.
        folder: where studies are (`paths.runs`).

    Raises:
        ConfigError: if no answer is about a paradigm of `accuracies`.
        InputError: as eval.questionnaire.answers.counted does.
    """
    label = str(accuracies["benchmark"].iloc[0])
    scores = _scores_of(accuracies.drop_duplicates(["study", "run"]), label, folder)
    digest = read_metadata(scores / ITEMS_FILE)["benchmark"]["digest"]
    answers: Counted = counted(sheets, label.partition("+")[0], digest, read_items(scores)[0], config)
    paradigms = accuracies.drop_duplicates("paradigm").set_index("paradigm")["phenomenon"]
    rows = answers.judgements[answers.judgements["paradigm"].isin(paradigms.index)]
    if rows.empty:
        raise ConfigError(f"people: nobody was asked about the paradigms that models have accuracies of ({label}).")
    table = agreement(rows, confidence)
    return People(complete_units(table, paradigms), table, rows["rater"].nunique(), answers.notes)


def complete_units(table: pd.DataFrame, phenomena: pd.Series) -> pd.DataFrame:
    """Return people's accuracy in the units all of whose paradigms they were asked about.

    Models' accuracies are means over all paradigms, so they can be compared with these alone.

    Args:
        table: of eval.questionnaire.agreement.agreement.
        phenomena: the phenomenon of each paradigm that models were scored on, by its name.

    Returns:
        level, name, accuracy and error, which is a standard error.
    """
    wanted = {("overall", "overall"): len(phenomena)}
    wanted |= {("phenomenon", str(name)): number for name, number in phenomena.value_counts().items()}
    wanted |= {("paradigm", str(name)): 1 for name in phenomena.index}
    rows = table[[*UNITS, "paradigms"]].itertuples(index=False, name=None)
    complete = table[[wanted[level, name] == number for level, name, number in rows]]
    return complete.rename(columns={"agreement": "accuracy"})[[*UNITS, "accuracy", "error"]].reset_index(drop=True)


def exhibit(people: People, threshold: float, confidence: float = 0.95) -> Exhibit:
    """Return people's agreement overall and per phenomenon.

    Args:
        people: the people.
        threshold: the share of a paradigm's pairs that a majority has to agree with (`questionnaire.threshold`).
        confidence: the level of the intervals.
    """
    units = people.agreement[people.agreement["level"] != "paradigm"]
    units = units.sort_values("level", key=lambda level: level != "overall", kind="stable", ignore_index=True)
    paradigms = people.agreement[people.agreement["level"] == "paradigm"]
    passed = f"{int((paradigms['majority'] >= threshold).sum())} of {plural(len(paradigms), 'paradigm')}"
    columns = {"name": "phenomenon", "raters": "people", "pairs": "pairs", "judgements": "judgments",
               "agreement": "individual", "low": "low", "high": "high", "majority": "majority", "ties": "tied",
               "seconds": "seconds"}  # fmt: skip
    about = "People chose one sentence of each pair (Warstadt et al. 2020, section 3.4)."
    return Exhibit(
        "people",
        "People who answered the questionnaire",
        " ".join([about, *people.notes]),
        units[list(columns)].rename(columns=columns),
        cells={"people": count, "tied": count, "seconds": decimal_text},
        confidence=confidence,
        takeaways=[("", f"In {passed}, a majority agrees with at least {threshold:.0%} of the pairs.")],
        definitions={
            "Individual": "Share of single judgments that agree with the labels: the mean over the paradigms asked. "
            "The interval is for new people and new pairs.",
            "Majority": "Share of pairs on which more than half of the judgments agree. A tie is no majority.",
        },
    )
