"""Words and children in the report: ages of acquisition against the surprisal curves of words."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.config import AnalysisConfig
from analysis.curves.acquisition.sizes import size_means
from analysis.exhibits.exhibit import Exhibit, existing
from analysis.exhibits.figures.acquisition import words_chart
from analysis.exhibits.sentences.curves import extent, plural
from analysis.exhibits.sentences.findings import Finding
from analysis.exhibits.tables.text import as_it_is, count, decimal_text, per_cent_text, signed_text, supported_digits
from analysis.measures.age_lists import AgeList, described, read_ages
from analysis.measures.children import (
    ALONE,
    CORRELATION_COLUMNS,
    LEAST_OCCURRENCES,
    LEAST_WORDS,
    PARTIAL,
    SIZE,
    SPEARMAN,
    groups_of,
    learnt,
    surprisal_folder,
    word_surprisals,
)
from analysis.sections.section import CHILDREN, TableSection
from analysis.study.collect import PROBLEMS, Study
from analysis.study.judgements import unit_of
from corpora.word_counts import sample_counts
from eval.ratings.statistics import Array
from pairscale.errors import ConfigError, InputError, StoreError
from pairscale.files import sha256_file
from pairscale.sizes import readable_size


def children_sections(study: Study, config: AnalysisConfig) -> list[TableSection]:
    """Return the section of analysis.children, if it is set.

    Raises ConfigError without surprisals or with several texts of them, InputError for what is wrong in the file or if
    too few of its words are in the text, RunError for damaged surprisals.
    """
    if config.analysis.children is None:
        return []
    if config.source != "files":
        raise ConfigError("analysis.children: needs run folders (source=files), as surprisals are files beside them")
    return [Children(study, config, Path(config.analysis.children).expanduser()).section()]


class Children:
    """One list of ages, and one study."""

    def __init__(self, study: Study, config: AnalysisConfig, path: Path):
        self.study, self.config, self.path = study, config, path
        self.confidence = config.analysis.confidence
        self.list: AgeList = read_ages(path)
        self.folder = surprisal_folder(Path(config.paths.reports), study.name, config.analysis.children_text)
        placed = [str(run) for run in study.runs.index]
        self.read, of = word_surprisals(self.folder, placed, set(self.list.ages.index))
        if len(of.words) < LEAST_WORDS:
            raise InputError(
                f"analysis.children={path}: {plural(len(of.words), 'word')} of the list "
                f"{'has' if len(of.words) == 1 else 'have'} {LEAST_OCCURRENCES} occurrences in the text of "
                f"{self.folder} "
                f"(needs {LEAST_WORDS})"
            )
        self.words = of
        self.ages = self.list.ages.loc[of.words].to_numpy(np.float64)
        self.controls, self.control_note = self._controls()
        self.groups = groups_of(study.runs, self.read, of, self.ages, self.controls)

    def _controls(self) -> tuple[Array | None, str]:
        """Return log2 frequency and length (2, W), the first counted in the largest sample that was read."""
        runs = self.study.runs.loc[self.read]
        run = str(runs["sample_words"].idxmax())
        manifest: Any = runs.at[run, "manifest"]
        try:
            counts = sample_counts(
                self.study.config[run],
                manifest,
                Path(self.config.paths.store),
                str(runs.at[run, "reference"]),
            )
        except StoreError as error:
            return None, f"Without controls for frequency, as the training text is not there: {error}."
        folded: dict[str, int] = {}
        for word, number in counts.of.items():
            folded[word.lower()] = folded.get(word.lower(), 0) + number
        frequency = np.log2([folded.get(word, 0) + 0.5 for word in self.words.words])
        return np.stack([frequency, [float(len(word)) for word in self.words.words]]), ""

    def section(self) -> TableSection:
        settings = self.config.analysis
        rows = [
            row
            for of in self.groups
            for row in of.correlations(self.confidence, min(settings.resamples, 200), settings.seed)
        ]
        table = pd.DataFrame(rows, columns=CORRELATION_COLUMNS)
        runs = self.study.runs.loc[self.read]
        missing = [str(run) for run in self.study.runs.index if str(run) not in set(self.read)]
        warnings = (
            [f"{plural(len(missing), 'run')} of the study without surprisals of {self.folder.name}"] if missing else []
        )
        left_out = described(self.list.left_out)
        return TableSection(
            label=self.path.stem,
            file=f"children-{self.path.stem}",
            kind=CHILDREN,
            extent=f"{plural(len(self.ages), 'word')} of {self.path.name}, with the age at which children know them "
            f"({self.list.kind}), against their surprisal in {self.folder.name}. {extent(runs)}.",
            warnings=[*warnings, *([self.control_note] if self.control_note else [])],
            exhibits=existing([self._correlations(table), self._words()]),
            methods=self._methods(left_out),
            problems=pd.DataFrame(columns=list(PROBLEMS)),
            runs=runs,
            digest=sha256_file(self.path),
            findings=[finding for of in self.groups for finding in findings(table, of.name, self.confidence)],
        )

    def _correlations(self, table: pd.DataFrame) -> Exhibit:
        shown = table.drop(columns=["note"] if (table["note"] == "").all() else [])
        return Exhibit(
            "correlations",
            "Models and children",
            "Correlations with the age at which children know a word: of the amount of text from which a model has "
            "learnt it, and "
            "of its surprisal at each size.",
            shown.rename(columns={"group": "curve", "value": "correlation", "quantity": "of"}),
            cells={"correlation": signed_text, "censored": per_cent_text, "words": count, "size": as_it_is},
            intervals={
                f"{self.confidence:.0%} interval": ("correlation", "low", "high"),
                "over words alone": ("correlation", "low_words", "high_words"),
            },
            heads={"censored": "outside of the sizes"},
            definitions={
                "Interval": "For new words like these and new runs; over words alone: for these runs.",
                "Controls": "Partial correlations given log-frequency in the largest training sample and length in "
                "characters.",
                "Outside of the sizes": "Words learnt before the smallest size or not by the largest, which are tied.",
            },
        )  # fmt: skip

    def _words(self) -> Exhibit:
        """Return the words with both ages, and a panel for each curve."""
        table: dict[str, Any] = {"word": self.words.words, "age": self.ages, "occurrences": self.words.occurrences}
        charts, texts = {}, {}
        unit = unit_of(self.study.runs)
        for number, of in enumerate(self.groups):
            at, weights = size_means(of.design)
            means = weights @ of.surprisal
            if len(at) > 2:
                found = learnt(at, means, of.chance)
                where = np.exp2(found.x).round(3)
                column = f"{of.name}, {unit}"
                table[column] = where
                texts[column] = [_amount(*cell) for cell in zip(where, found.early, found.late, strict=True)]
                points = pd.DataFrame(
                    {"word": self.words.words, "age": self.ages, "at": where, "censored": found.early | found.late}
                )
                sizes = [round(2**x, 3) for x in at.tolist()]
                charts[str(number)] = partial(words_chart, points, sizes, unit, title=of.name)
            for s in dict.fromkeys((0, len(at) - 1)):
                table[f"{of.name}, bits at {readable_size(of.sizes[s])}"] = means[s]
        rows = pd.DataFrame(table).sort_values(["age", "word"])
        order = rows.index.tolist()
        return Exhibit(
            "words",
            "Words",
            "Words by the age at which children know them (months), the amount of text from which a curve has learnt "
            "them (hollow "
            "in the figure: outside of its sizes), and their mean surprisal at the smallest and the largest size.",
            rows.reset_index(drop=True),
            cells={str(name): decimal_text for name in rows if rows[name].dtype.kind == "f"} | {"occurrences": count},
            texts={name: [of[place] for place in order] for name, of in texts.items()},
            intervals={},
            charts=charts,
        )  # fmt: skip

    def _methods(self, left_out: str) -> list[str]:
        return [
            f"Ages: {self.list.kind}, of {self.path.name}; left out: {left_out or 'nothing'}. Words are compared in "
            "small letters, "
            f"without punctuation, with {LEAST_OCCURRENCES} occurrences or more in the text, none of them unknown to "
            "a model.",
            "A model has learnt a word where its mean surprisal has fallen halfway from chance (uniform over the "
            "vocabulary, for "
            "each of its tokens) to that at the largest size, by a sigmoid over log2 of the training text (Chang and "
            "Bergen 2022, "
            "with sizes of samples in place of steps). Where that lies below the smallest size it is not extrapolated.",
            f"Intervals ({self.confidence:.0%}) on Fisher's scale: the variance over words by influence functions, "
            "over runs between the "
            "runs of a size, for amounts of text by resampling runs within sizes; both are added.",
        ]  # fmt: skip


def _amount(words: float, early: bool, late: bool) -> str:
    size = readable_size(f"{words:.0f}") if words < 1000 else f"{float(f'{words:.2g}'):,.0f}"
    return f"{'below ' if early else 'beyond ' if late else ''}{size}"


def findings(table: pd.DataFrame, group: str, confidence: float) -> list[Finding]:
    """Say of a curve whether amounts of text, or else surprisal at the largest size, agree with children."""
    rows = table[(table["group"] == group) & (table["measure"] == SPEARMAN)]
    texts = []
    for controls in (ALONE, PARTIAL):
        of = rows[rows["controls"] == controls]
        chosen = of[(of["quantity"] == SIZE) & of["value"].notna()]
        if chosen.empty:
            chosen = of[of["quantity"] != SIZE].iloc[-1:]
        if len(chosen):
            texts.append(_finding(chosen.iloc[0], confidence))
    censored = rows.loc[rows["quantity"] == SIZE, "note"]
    texts += [f"Their order of acquisition says nothing: {note}." for note in dict.fromkeys(censored) if note]
    return [Finding(group, " ".join(texts))] if texts else []


def _finding(row: pd.Series, confidence: float) -> str:
    single = row["low"] != row["low"]
    low, high = (row["low_words"], row["high_words"]) if single else (row["low"], row["high"])
    digits = supported_digits(low, high)
    value, *ends = (signed_text(of, digits=digits) for of in (row["value"], low, high))
    over = "words alone" if single else "words and runs"
    given = "" if row["controls"] == ALONE else f", given {row['controls']}"
    numbers = f"Spearman {value}, {confidence:.0%} interval over {over} [{', '.join(ends)}]{given}"
    size = f" at {readable_size(str(row['size']))}" if row["size"] else ""
    what = "the text that the model needs for a word" if row["quantity"] == SIZE else f"the surprisal of a word{size}"
    if low != low:
        return f"No interval for {what}{given}."
    if low <= 0 <= high:
        return f"No relation of {what} to the age at which children know it is shown: {numbers}."
    more = (
        {True: "needs more text", False: "needs less text"}
        if row["quantity"] == SIZE
        else {True: "is higher", False: "is lower"}
    )
    subject = "The model" if row["quantity"] == SIZE else f"Surprisal{size}"
    return f"{subject} {more[low > 0]} for words that children know later: {numbers}."
