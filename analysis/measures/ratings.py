"""Agreement of a study's runs with people's ratings: means over runs of a size, changes over sizes, fits of MORCELA."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.curves.designs import Design, design_of, sizes_of
from analysis.curves.graded.agreement import LIMITS, Contrast
from analysis.measures.diagnostics import Answers, read_answers
from analysis.study.collect import Study
from eval.ratings.files import read_sentences, sentences_metadata
from eval.ratings.measures import Agreement, agreements, scored_by_all
from eval.ratings.scores import Morcela, people
from eval.ratings.statistics import Array, Statistic, pearson

FIRST, LAST = "first", "last"
KEYS = ["score", "measure"]


@dataclass
class Rated(Answers):
    """Scores of a study's runs on rated sentences.

    measured: one row per run and sentence: run and eval.ratings.files.SENTENCES. counted: run -> the text that its
    unigrams are counted in, or why there are none (eval.methods.unigrams.UnigramSource.described).
    """

    counted: dict[str, dict[str, object]]

    @property
    def sentences(self) -> pd.DataFrame:
        """The rows of the first run, for what people said."""
        rows: pd.DataFrame = self.measured[self.measured["run"] == self.runs.index[0]]
        return rows


def rated(study: Study, label: str) -> Rated:
    """Read the scores of every run that has them; raises as `read_answers`."""
    answers = read_answers(study, label, sentences_metadata, _rows)
    counted = {}
    for run in answers.runs.index:
        metadata = sentences_metadata(study.folders[run].scores(label))
        assert metadata is not None, run
        counted[str(run)] = metadata["parameters"]["unigrams"]
    return Rated(**vars(answers), counted=counted)


def _rows(folder: Path) -> pd.DataFrame:
    return read_sentences(folder)[0]


@dataclass(frozen=True)
class Group:
    """The runs of a curve (design), or a model without a place on one (None), with all measures of theirs."""

    name: str
    runs: pd.DataFrame
    design: Design | None
    agreements: list[Agreement]

    @property
    def sizes(self) -> list[str]:
        return [""] if self.design is None else sizes_of(self.runs)

    def at(self, size: int) -> Array:
        """Return the weights (R,) of the mean over the runs of a size."""
        of = np.ones(len(self.runs), np.bool_) if self.design is None else self.design.size == size
        return np.asarray(of / of.sum())


def groups(answers: Rated) -> list[Group]:
    """Compute all measures of all runs, of sentences that each run has a score of."""
    tables = {run: rows.reset_index(drop=True) for run, rows in answers.measured.groupby("run", sort=False)}
    known = scored_by_all(tables.values())
    found = []
    for name, runs in answers.runs.groupby("group", sort=False):
        placed = runs["sample_words"].notna().all()
        of = list(agreements([tables[run] for run in runs.index], known))
        found.append(Group(str(name), runs, design_of(runs) if placed else None, of))
    return found


def over_sizes(of: list[Group], confidence: float) -> pd.DataFrame:
    """Average measures over the runs of a size, on Fisher's scale or that of logits.

    Columns: group, size, words (NaN: unknown), runs, KEYS, items, value, and LIMITS: for new runs and these sentences,
    for new sentences and these runs (items), and for new ones of both; NaN where the runs give none.
    """
    rows = []
    for group in of:
        for number, size in enumerate(group.sizes):
            c = group.at(number)
            there = {"group": group.name, "size": size, "words": _words(group, c), "runs": int((c > 0).sum())}
            for one in group.agreements:
                limits = Contrast.of(one.statistic.mapped(one.scale), c, group.design).limits(confidence)
                back = {name: float(one.scale.back(np.asarray(value))) for name, value in limits._asdict().items()}
                rows.append({**there, "score": one.score, "measure": one.measure, "items": one.items, **back})
    return pd.DataFrame(rows, columns=["group", "size", "words", "runs", *KEYS, "items", "value", *LIMITS])


def _words(group: Group, c: Array) -> float:
    return float(group.runs.loc[c > 0, "sample_words"].mean()) if group.design is not None else np.nan


def changes(of: list[Group], confidence: float) -> pd.DataFrame:
    """Return how much measures change from the smallest to the largest size of a curve: a difference of means.

    Columns: group, FIRST, LAST (sizes), runs, KEYS, value and LIMITS, as of `over_sizes`.
    """
    rows = []
    for group in of:
        if len(group.sizes) < 2:
            continue
        c = group.at(len(group.sizes) - 1) - group.at(0)
        there = {"group": group.name, FIRST: group.sizes[0], LAST: group.sizes[-1], "runs": int((c != 0).sum())}
        rows += [
            {**there, "score": one.score, "measure": one.measure, **_difference(one.statistic, c, group, confidence)}
            for one in group.agreements
        ]
    return pd.DataFrame(rows, columns=["group", FIRST, LAST, "runs", *KEYS, "value", *LIMITS])


def gains(of: list[Group], confidence: float, over: str = "lp") -> pd.DataFrame:
    """Return how much more the other scores agree with people than `over` does, at each curve's largest size.

    Paired by runs and sentences. Columns: group, size, runs, KEYS, value and LIMITS.
    """
    rows = []
    for group in of:
        c = group.at(len(group.sizes) - 1)
        base = {one.measure: one.statistic for one in group.agreements if one.score == over}
        there = {"group": group.name, "size": group.sizes[-1], "runs": int((c > 0).sum())}
        for one in group.agreements:
            if one.score != over and one.measure in base:
                other = base[one.measure]
                less = Statistic(one.statistic.value - other.value, one.statistic.influence - other.influence)
                rows.append(
                    {**there, "score": one.score, "measure": one.measure, **_difference(less, c, group, confidence)}
                )
    return pd.DataFrame(rows, columns=["group", "size", "runs", *KEYS, "value", *LIMITS])


def _difference(statistic: Statistic, c: Array, group: Group, confidence: float) -> dict[str, float]:
    return dict(Contrast.of(statistic, c, group.design).limits(confidence)._asdict())


def fits(answers: Rated) -> pd.DataFrame:
    """Fit MORCELA to all sentences of each run, and average over the runs of a size.

    Columns: group, size, runs, beta, gamma (over the runs in which sentences of higher probability are rated higher, as
    many as `fitted`), in_sample (Pearson correlation with the ratings of the fit, which is too high for new sentences).
    """
    rows = list(_fits(answers))
    table = pd.DataFrame(rows, columns=["group", "size", "words", "beta", "gamma", "in_sample"])
    by = table.groupby(["group", "size"], sort=False, dropna=False)
    means = by[["words", "beta", "gamma", "in_sample"]].mean()
    means.insert(0, "runs", by.size())
    means["fitted"] = by["beta"].count()
    return means.reset_index().sort_values(["group", "words"], kind="stable").reset_index(drop=True)


def _fits(answers: Rated) -> Iterator[tuple[str, str, float, float, float, float]]:
    for run, rows in answers.measured.groupby("run", sort=False):
        known = rows[rows["lp"].notna() & rows["unigram_lp"].notna()]
        if len(known) < 5:
            continue
        ratings = people(known)
        fit = Morcela.fit(known, ratings)
        (r,) = pearson(fit.predict(known)[None], ratings).value
        group, size, words = (answers.runs[name][run] for name in ("group", "size", "sample_words"))
        yield str(group), str(size), float(words), fit.beta, fit.gamma, float(r)
