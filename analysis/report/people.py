"""People who answered a questionnaire (eval/questionnaire): their accuracy on a benchmark, next to that of models."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.formats import count, decimal_text, plural
from analysis.report.exhibit import Exhibit
from eval.questionnaire.agreement import agreement
from eval.questionnaire.answers import counted, read_sheets
from eval.questionnaire.config import QuestionnaireConfig
from eval.scores.files import read_items
from pairscale.errors import ConfigError, InputError, first_few
from train.runs.folder import RunFolder

_COLUMNS = {
    "name": "phenomenon", "raters": "people", "pairs": "pairs", "judgements": "judgments", "agreement": "individual",
    "low": "low", "high": "high", "majority": "majority", "ties": "tied", "seconds": "seconds",
}  # fmt: skip


@dataclass(frozen=True)
class People:
    """The people who answered a questionnaire on a benchmark.

    Attributes:
        accuracy: level, name, accuracy and error: individual agreement with the labels overall, per phenomenon and per
            paradigm, as accuracies of models are. Units are left out if not all of their paradigms were asked.
        agreement: the table of eval.questionnaire.agreement.agreement.
        notes: sentences on answers that don't count, and why.
    """

    accuracy: pd.DataFrame
    agreement: pd.DataFrame
    notes: list[str]


def read_people(
    paths: Sequence[str],
    accuracies: pd.DataFrame,
    config: QuestionnaireConfig,
    confidence: float = 0.95,
    folder: str | Path = "runs",
) -> dict[str, People]:
    """Read people's answers, by the label of the scores whose pairs they are about.

    Several labels may be about the same pairs: with and without a context, for example.

    Args:
        paths: files of answers, or folders of them.
        accuracies: the long table; its paradigms count.
        config: which answers count (`questionnaire`).
        confidence: the level of the intervals of agreement.
        folder: where studies are (`paths.runs`).

    Raises:
        ConfigError: if no answer is about a paradigm of `accuracies`.
        InputError: for answers on other pairs than any of these, and as eval.questionnaire.answers does.
    """
    sheets = read_sheets(paths)
    items, scored = {}, {}
    for label, study, run in accuracies.drop_duplicates("benchmark")[["benchmark", "study", "run"]].to_numpy():
        items[label], metadata = read_items(RunFolder(Path(folder) / study / run).scores(label))
        scored[label] = (label.partition("+")[0], metadata["benchmark"]["digest"])
    for sheet in sheets:
        if (sheet.benchmark, sheet.digest) not in scored.values():
            known = sorted({f"{name} (pairs {digest[:8]})" for name, digest in scored.values()})
            raise InputError(
                f"{sheet.path}: these are answers on {sheet.benchmark} (pairs {sheet.digest[:8]}), but the runs were "
                f"scored on {', '.join(known) or 'no pairs'}"
            )
    people = {}
    for label, (name, digest) in scored.items():
        of_label = [sheet for sheet in sheets if (sheet.benchmark, sheet.digest) == (name, digest)]
        if of_label:
            answers = counted(of_label, name, digest, items[label], config)
            rows = accuracies[accuracies["benchmark"] == label].drop_duplicates("paradigm")
            phenomena = rows.set_index("paradigm")["phenomenon"]
            asked = plural(int(answers.judgements["rater"].nunique()), "person")
            own = f"Humans are the {asked} who answered the questionnaire on these pairs, not published ones."
            people[label] = _people_of(answers.judgements, phenomena, [own, *answers.notes], confidence)
    return people


def _people_of(judgements: pd.DataFrame, phenomena: pd.Series, notes: list[str], confidence: float) -> People:
    """Return the people who gave some judgments; `phenomena` has the phenomenon of each paradigm of the models.

    Models' accuracies are means over all paradigms of a unit, so only units all of whose paradigms people were asked
    about have an accuracy of people.
    """
    rows = judgements[judgements["paradigm"].isin(phenomena.index)]
    if rows.empty:
        raise ConfigError(
            f"people: nobody was asked about the paradigms of the models: {first_few(list(phenomena.index))}."
        )
    table = agreement(rows, confidence)
    wanted = {"overall": len(phenomena), **phenomena.value_counts()}
    is_complete = (table["level"] == "paradigm") | (table["paradigms"] == table["name"].map(wanted))
    accuracy = table[is_complete].rename(columns={"agreement": "accuracy"})
    return People(accuracy[["level", "name", "accuracy", "error"]].reset_index(drop=True), table, notes)


def exhibit(people: People, threshold: float, confidence: float = 0.95) -> Exhibit:
    """Return people's agreement overall and per phenomenon.

    Args:
        people: the people.
        threshold: the share of a paradigm's pairs that a majority has to agree with (`questionnaire.threshold`).
        confidence: the level of the intervals.
    """
    is_paradigm = people.agreement["level"] == "paradigm"
    units = people.agreement[~is_paradigm].sort_values("level", ignore_index=True, kind="stable")
    passed = people.agreement.loc[is_paradigm, "majority"] >= threshold
    in_how_many = f"{passed.sum()} of {plural(len(passed), 'paradigm')}"
    return Exhibit(
        "people",
        "People who answered the questionnaire",
        " ".join(["People chose one sentence of each pair (Warstadt et al. 2020, section 3.4).", *people.notes]),
        units[list(_COLUMNS)].rename(columns=_COLUMNS),
        cells={"people": count, "tied": count, "seconds": decimal_text},
        confidence=confidence,
        takeaways=[("", f"In {in_how_many}, a majority agrees with at least {threshold:.0%} of the pairs.")],
        definitions={
            "Individual": "Share of single judgments that agree with the labels: the mean over the paradigms asked. "
            "The interval is for new people and new pairs.",
            "Majority": "Share of pairs on which more than half of the judgments agree. A tie is no majority.",
        },
    )
