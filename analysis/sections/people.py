"""People who answered a questionnaire (eval/questionnaire), in place of those whose accuracy is published."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from analysis.config import AnalysisConfig
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.sentences.curves import plural
from analysis.exhibits.tables.text import count, decimal_text
from analysis.measures.accuracies import PEOPLE
from analysis.study.collect import Study
from analysis.study.judgements import Judgements
from analysis.study.sources.source import FILES
from eval.config import is_of_pairs
from eval.questionnaire.agreement import agreement
from eval.questionnaire.answers import Counted, Sheet, counted, read_sheets
from eval.scores.files import ITEMS_FILE, read_items, read_metadata
from pairscale.command.line import readable
from pairscale.errors import ConfigError, InputError


@dataclass(frozen=True)
class People:
    """The choices of people in pairs of a benchmark.

    table: eval.questionnaire.agreement.agreement. paradigms: phenomenon of each paradigm that models were judged on,
    by its name. threshold: share of a paradigm's pairs that a majority has to agree with.
    """

    counted: Counted
    table: pd.DataFrame
    paradigms: pd.Series
    confidence: float
    threshold: float

    @property
    def label(self) -> str:
        """Beside published people's "published"."""
        return f"own answers, {plural(self.counted.raters, 'rater')}"

    @cached_property
    def accuracy(self) -> pd.DataFrame:
        """Agreement of single judgements, as words_to_people.people_accuracy: level, name, accuracy, error.

        Only of units all of whose paradigms were put before people, as models' accuracy is about all.
        """
        wanted = {("overall", "overall"): len(self.paradigms)}
        wanted |= {("phenomenon", str(name)): number for name, number in self.paradigms.value_counts().items()}
        wanted |= {("paradigm", name): 1 for name in self.paradigms.index}
        units = zip(self.table["level"], self.table["name"], self.table["paradigms"], strict=True)
        rows = self.table[[wanted[level, name] == number for level, name, number in units]]
        rows = rows.rename(columns={"agreement": "accuracy"})
        return rows[["level", "name", "accuracy", "error"]].reset_index(drop=True)

    def beside(self, published: pd.DataFrame) -> pd.DataFrame:
        """Replace the people of published accuracies (eval.published.read_published) by these."""
        models = published[published["model"] != PEOPLE]
        own = self.accuracy.assign(model=PEOPLE)[published.columns]
        return pd.concat([models, own], ignore_index=True) if len(models) else own

    def methods_text(self) -> str:
        """Describe these people, for the methods of a report."""
        rows = self.table[self.table["level"] == "overall"].iloc[0]
        notes = "; ".join(note.rstrip(".") for note in self.counted.notes)
        return (
            "People are those who answered a questionnaire on these pairs, not published ones: "
            f"{plural(self.counted.raters, 'rater')}, {plural(rows['judgements'], 'judgement')} of "
            f"{plural(rows['pairs'], 'pair')} in {plural(rows['paradigms'], 'paradigm')}. In comparisons with models, "
            "their accuracy is individual agreement with the labels; it is given only where all paradigms were "
            f"asked.{f' {notes}.' if notes else ''}"
        )

    def exhibits(self) -> list[Exhibit]:
        """Return agreement by phenomenon, and by paradigm as in the papers' validation."""
        paradigms = self.table[self.table["level"] == "paradigm"].reset_index(drop=True)
        units = self.table[self.table["level"] != "paradigm"]
        units = units.sort_values("level", key=lambda level: level != "overall", kind="stable", ignore_index=True)
        below = paradigms["majority"] < self.threshold
        passes = f"{(~below).sum()} of {plural(len(paradigms), 'paradigm')}"
        majorities = f"In {passes} a majority agrees with at least {self.threshold:.0%} of the pairs."
        about = "People who chose one sentence of each pair (Warstadt et al. 2020, section 3.4)."
        about = " ".join([about, *self.counted.notes])
        takeaways = [("", majorities)]
        definitions = {
            "Individual": "Share of single judgements that agree with the labels.",
            f"{self.confidence:.0%} interval": "For new people and new pairs of the same paradigms; a dash with one "
            "person, or one pair of a paradigm.",
            "Majority": "Share of pairs on which more than half of the judgements agree; ties, counted beside it, are "
            "no majority.",
            "Overall": "Means of phenomena and overall are over the paradigms asked.",
        }
        asked = Exhibit(
            "asked", "People asked", about, self._shown(units, "phenomenon"), cells=_CELLS,
            confidence=self.confidence, takeaways=takeaways, definitions=definitions,
        )  # fmt: skip
        table = self._shown(paradigms, "paradigm").assign(passes=np.where(below, "no", "yes"))
        by_paradigm = Exhibit(
            "asked-paradigms", "People asked, by paradigm", "The same by paradigm.", table, cells=_CELLS,
            confidence=self.confidence,
        )  # fmt: skip
        return [asked, by_paradigm]

    def _shown(self, rows: pd.DataFrame, of: str) -> pd.DataFrame:
        return pd.DataFrame(
            {of: rows["name"], "people": rows["raters"], "pairs": rows["pairs"], "judgements": rows["judgements"],
             "individual": rows["agreement"], "low": rows["low"], "high": rows["high"], "majority": rows["majority"],
             "tied": rows["ties"], "seconds": rows["seconds"]}
        )  # fmt: skip


_CELLS = {"people": count, "tied": count, "seconds": decimal_text}


def read_people(config: AnalysisConfig, study: Study, labels: Sequence[str]) -> dict[str, list[Sheet]]:
    """Read answers by the label of the scores whose pairs they are about; {} without people.

    Several labels may be of the same pairs (a context before them), or of others under one name (generated ones).
    Raises what read_sheets does, InputError for answers on other pairs than any of these, and ConfigError where the
    report has no sentences that answers could be compared with.
    """
    if not config.people:
        return {}
    if config.source != FILES:
        source = config.source
        raise ConfigError(f"people: answers are compared with sentences, which source={source} lacks; leave it out")
    about = {label: (label.partition("+")[0], _digest(study, label)) for label in labels if is_of_pairs(label)}
    by_label: dict[str, list[Sheet]] = {}
    for sheet in read_sheets(config.people):
        same = [label for label, pairs in about.items() if pairs == (sheet.benchmark, sheet.digest)]
        if not same:
            scored = ", ".join(sorted({f"{name} (pairs {digest[:8]})" for name, digest in about.values()})) or "pairs"
            raise InputError(
                f"{sheet.path}: answers on {sheet.benchmark} (pairs {sheet.digest[:8]}), the scores are of {scored}"
            )
        for label in same:
            by_label.setdefault(label, []).append(sheet)
    return by_label


def _digest(study: Study, label: str) -> str:
    """Return the digest of the pairs that runs were scored on."""
    files = (folder.scores(label) / ITEMS_FILE for folder in study.folders.values())
    digest: str = read_metadata(next(file for file in files if file.exists()))["benchmark"]["digest"]
    return digest


def people_of(sheets: Sequence[Sheet], study: Study, judged: Judgements, config: AnalysisConfig) -> People:
    """Return people's answers to the pairs that a study was scored on; raises the errors of `counted`."""
    assert config.questionnaire is not None  # conf/analysis.yaml
    items, _ = read_items(study.folders[judged.runs.index[0]].scores(judged.label))
    name = judged.label.partition("+")[0]
    answers = counted(sheets, name, judged.digest, items, config.questionnaire)
    paradigms = judged.pairs.drop_duplicates("paradigm").set_index("paradigm")["phenomenon"]
    rows = answers.judgements[answers.judgements["paradigm"].isin(paradigms.index)]  # a method may judge only some
    if rows.empty:
        raise ConfigError(f"people: no answers on the paradigms that {judged.method_names} judges")
    confidence = config.analysis.confidence
    counts = Counted(rows, rows["rater"].nunique(), answers.notes)
    return People(counts, agreement(rows, confidence), paradigms, confidence, config.questionnaire.threshold)


def options(config: AnalysisConfig) -> list[str]:
    """Return the overrides about people that give the same report again."""
    if not config.people:
        return []
    assert config.questionnaire is not None
    paths = config.people[0]
    if len(config.people) > 1:
        paths = f"[{','.join(readable(f'people={one}').removeprefix('people=') for one in config.people)}]"
    rules = ("max_failed_checks", "native_only", "threshold")
    return [f"people={paths}", *(f"questionnaire.{name}={getattr(config.questionnaire, name)}" for name in rules)]
