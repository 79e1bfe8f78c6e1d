"""Report how people answered a questionnaire (eval/questionnaire), as a human baseline for the models."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from analysis.formats import count, decimal_text, plural
from analysis.report.exhibit import Exhibit
from eval.config import QuestionnaireConfig
from eval.questionnaire.answers import agreement, counted, read_answers
from eval.scores.files import read_items
from pairscale.errors import InputError
from train.runs.folder import RunFolder

_COLUMNS = {
    "name": "phenomenon", "raters": "people", "pairs": "pairs", "judgements": "judgments", "agreement": "individual",
    "low": "low", "high": "high", "majority": "majority", "ties": "tied", "seconds": "seconds",
}  # fmt: skip


class People(NamedTuple):
    """The people who answered a questionnaire on a benchmark.

    Attributes:
        table: The table of eval.questionnaire.answers.agreement with the column `accuracy` added. This is the agreement
            of single judgments. It is missing if people weren't asked about all paradigms of a unit.
        notes: Notes on the baseline and on answers that were left out.
    """

    table: pd.DataFrame
    notes: list[str]


def read_people(
    paths: Sequence[str],
    accuracies: pd.DataFrame,
    config: QuestionnaireConfig,
    confidence: float = 0.95,
    folder: str | Path = "runs",
) -> dict[str, People]:
    """Read people's answers, and return them by the label of the scores on the same pairs.

    Several labels may have the same pairs.

    Args:
        paths: Files of answers, or folders with such files.
        accuracies: The long table.
        config: The settings of questionnaires, such as which answers to use.
        confidence: The level of the intervals.
        folder: The folder that contains the studies (`paths.runs`).

    Raises:
        InputError: If no run was scored on the pairs or paradigms of an answer, or in the same cases as
            eval.questionnaire.answers.
    """
    left, known_pairs, people = read_answers(paths), set(), {}
    answers = left
    for label, scored in accuracies.groupby("benchmark", sort=False):
        run = RunFolder(Path(folder, scored["study"].iloc[0], scored["run"].iloc[0]))
        items, metadata = read_items(run.scores(str(label)))
        pairs = str(label).partition("+")[0], metadata["benchmark"]["digest"]
        known_pairs.add(pairs)
        of_pairs = (answers["benchmark"] == pairs[0]) & (answers["digest"] == pairs[1])
        if not of_pairs.any():
            continue
        judgements, notes = counted(answers[of_pairs], *pairs, items, config)
        paradigms = scored.drop_duplicates("paradigm")
        judged = judgements[judgements["paradigm"].isin(paradigms["paradigm"])]
        if judged.empty:
            continue
        left = left.drop(index=of_pairs.index[of_pairs], errors="ignore")
        table = agreement(judged, confidence)
        in_units = {"overall": len(paradigms), **paradigms["phenomenon"].value_counts()}
        is_complete = (table["level"] == "paradigm") | (table["paradigms"] == table["name"].map(in_units))
        asked = plural(judgements["rater"].nunique(), "person")
        own = f"The human baseline comes from {asked} who answered the questionnaire on these pairs, not from a paper."
        people[str(label)] = People(table.assign(accuracy=table["agreement"].where(is_complete)), [own, *notes])
    for row in left.to_dict("records"):
        known = ", ".join(f"{name} (pairs {digest[:8]})" for name, digest in sorted(known_pairs))
        raise InputError(
            f"{row['file']}: no run was scored on the paradigms that these people saw in {row['benchmark']} (pairs "
            f"{row['digest'][:8]}). The runs were scored on {known}. Leave this file out, or score these pairs."
        )
    return people


def exhibit(people: People, threshold: float, confidence: float = 0.95) -> Exhibit:
    """Return people's agreement with the labels, overall and per phenomenon.

    Args:
        people: The people who answered.
        threshold: The share of a paradigm's pairs with which a majority must agree.
        confidence: The level of the intervals.
    """
    is_paradigm = people.table["level"] == "paradigm"
    units = people.table[~is_paradigm].sort_values("level", ignore_index=True, kind="stable")
    passed = people.table.loc[is_paradigm, "majority"] >= threshold
    in_how_many = f"{passed.sum()} of {plural(len(passed), 'paradigm')}"
    return Exhibit(
        "people",
        "People who answered the questionnaire",
        " ".join(["People chose one sentence of each pair (Warstadt et al. 2020, section 3.4).", *people.notes]),
        units[list(_COLUMNS)].rename(columns=_COLUMNS),
        cells={"people": count, "tied": count, "seconds": decimal_text},
        confidence=confidence,
        takeaways=[("", f"A majority agrees with at least {threshold:.0%} of the labels in {in_how_many}.")],
        definitions={
            "Individual": "The share of single judgments that agree with the labels, as a mean over the paradigms. The "
            "interval applies to new people and new pairs.",
            "Majority": "The share of pairs for which more than half of the judgments agree with the label.",
        },
    )
