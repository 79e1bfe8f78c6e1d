"""Collect the results of a study on one benchmark of minimal pairs, including the statistics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import pandas as pd

from analysis.config import LEAVE_OUT, ReportConfig
from analysis.curves.comparisons import compare
from analysis.curves.fit import fit_curves, fitted_lines
from analysis.curves.units import unit_accuracies
from analysis.figures.style import looks_of
from analysis.report.labels import check_names, display_names, in_order, renamed, renamed_text
from analysis.report.people import People
from analysis.sources.published import tested_paradigms
from analysis.study.long_table import STANDS_FOR, accuracies, pairs, trajectories
from analysis.study.run_folders import PROBLEM_COLUMNS, Studies
from eval.published import on_paradigms, read_published
from eval.scores.names import benchmark_name
from eval.scores.table import BESIDE
from pairscale.errors import ConfigError

HUMANS = "people"  # name of the human baseline in published accuracies (eval/published)


@dataclass
class BenchmarkResults:
    """The results on one benchmark, with the display names of curves.

    Attributes:
        label: The name of its folder of scores, such as "blimp".
        accuracies: Rows of the long table (`analysis.accuracies`) for this benchmark. Only the curves' rows by `method`
            are kept.
        runs: Rows of `analysis.runs`. Only the runs that were scored on this benchmark are kept.
        options: The section `analysis` of the configuration.
        notes: Notes for readers of the report.
        problems: Rows of `analysis.problems`.
        ties: What a tie counts as: "wrong", "half" or "right".
        people: The people who answered a questionnaire, or None for the published human baseline.
        studies: The studies whose run folders were read, or None for external results.
        chance: The accuracy of guessing.
        names: The display name of each curve of the long table.
        method: The judgment method of the curves, such as "lp", or "lp or pll" if masked models need another one.
        every_method: The curves' rows of the long table, by all methods.
        models: The rows of models that aren't on a curve, by all methods.
        baselines: The rows of untrained models and of models trained on shuffled text, by `method`.

    Raises:
        ConfigError: If no run was scored with the method, or if `labels`, `colours` or `order` contain an unknown
            curve.
    """

    label: str
    accuracies: pd.DataFrame
    runs: pd.DataFrame
    options: ReportConfig
    notes: Sequence[str] = ()
    problems: pd.DataFrame = field(default_factory=partial(pd.DataFrame, columns=list(PROBLEM_COLUMNS)))
    ties: str = "wrong"
    people: People | None = None
    studies: Studies | None = None
    chance: float = 0.5

    def __post_init__(self) -> None:
        table, options = self.accuracies, self.options
        every_method = table[table["sample_words"].notna() & (table["baseline"] == "")]
        self.names = display_names(list(every_method["curve"].unique()), options.labels)
        for key in ("colours", "order"):
            check_names(f"analysis.{key}", getattr(options, key), [*self.names, *self.names.values()])
        self.every_method = renamed(every_method, self.names, options.order)
        main = _of_method(self.every_method, options.method)
        if main.empty and len(every_method):
            there = ", ".join(sorted(every_method["method"].unique()))
            raise ConfigError(
                f"analysis.method={options.method}: no run was scored on {self.label} with this method. Choose "
                f"from {there}."
            )
        self.method = " or ".join(main["method"].unique())
        self.accuracies = main.assign(method=self.method)
        self.models = table[table["sample_words"].isna()].reset_index(drop=True)
        self.baselines = _of_method(table[table["baseline"] != ""], options.method)
        self.runs = renamed(self.runs[self.runs["run"].isin(table["run"])], self.names, options.order)
        self.notes = [renamed_text(note, self.names) for note in self.notes]
        for construction, tests in self.direct.items():
            if unknown := sorted(tests.difference(table["paradigm"].dropna())):
                self.notes.append(
                    f"Some paradigms of the filter {construction} have no scores: {', '.join(unknown)}. Check their "
                    "names in filter.paradigms."
                )

    def show_curves(self, curves: Sequence[str] | str | None) -> None:
        """Keep only the accuracies of the given curves, in this order. None keeps all curves.

        Raises ConfigError if a curve is unknown.
        """
        chosen = [curves] if isinstance(curves, str) else list(curves or self.curves)
        check_names("curves", chosen, [*self.names, *self.curves])
        chosen = [self.names.get(curve, curve) for curve in chosen]
        self.accuracies = in_order(self.accuracies[self.accuracies["curve"].isin(chosen)], chosen)

    @property
    def name(self) -> str:
        """The display name of the benchmark."""
        return benchmark_name(self.label)

    @property
    def has_choices(self) -> bool:
        """Whether there are more than two options, so that an item isn't a minimal pair."""
        return self.chance < 0.5

    @property
    def benchmark(self) -> str:
        """The name of the benchmark, which is the label without scoring settings."""
        return self.label.partition("+")[0]

    @property
    def curve_runs(self) -> pd.DataFrame:
        """The runs of the curves, without baselines."""
        return self.runs[self.runs["run"].isin(self.accuracies["run"])]

    @property
    def unit(self) -> str:
        """The unit of sizes, such as "words" or "tokens"."""
        return str(self.accuracies["unit"].iloc[0]) if len(self.accuracies) else "words"

    @property
    def curves(self) -> list[str]:
        """The names of the curves, in order."""
        return list(self.accuracies["curve"].unique())

    @property
    def looks(self) -> pd.DataFrame:
        """The colour, dash and shape of each curve."""
        colours = {self.names.get(curve, curve): colour for curve, colour in self.options.colours.items()}
        return looks_of(self.curves, colours)

    @cached_property
    def units(self) -> pd.DataFrame:
        """The accuracies of runs overall, per phenomenon and per paradigm."""
        return unit_accuracies(self.accuracies)

    @cached_property
    def slopes(self) -> pd.DataFrame:
        """The table of `analysis.fit_curves`."""
        pairs = None
        if self.options.new_items and self.studies:
            pairs = self.read_pairs(list(self.accuracies["run"].unique())).assign(method=self.method)
        return fit_curves(self.accuracies, confidence=self.options.confidence, pairs=pairs)

    @cached_property
    def differences(self) -> pd.DataFrame:
        """The table of `analysis.compare`, without ablations, which have a separate section."""
        changed = self.runs.loc[self.runs["construction"].fillna("") != "", "run"]
        accuracies = self.accuracies[~self.accuracies["run"].isin(changed)]
        return compare(accuracies, margin=self.options.margin, confidence=self.options.confidence)

    @cached_property
    def lines(self) -> pd.DataFrame:
        """Points of the fitted lines with their confidence bands."""
        return fitted_lines(self.accuracies, confidence=self.options.confidence)

    @cached_property
    def published(self) -> pd.DataFrame:
        """Published accuracies on the same paradigms, with the columns level, name, model and accuracy."""
        table = self.accuracies if len(self.accuracies) else self.models
        paradigms = table.dropna(subset=["paradigm"]).drop_duplicates("paradigm")
        phenomena = dict(zip(paradigms["paradigm"], paradigms["phenomenon"], strict=True))
        return on_paradigms(read_published(self.benchmark), phenomena)

    @property
    def published_models(self) -> pd.DataFrame:
        """The published models shown with the curves, in the columns level, name, accuracy and model."""
        names = {name: f"{text} (published)" for name, text in BESIDE.get(self.benchmark, {}).items() if name != HUMANS}
        return self.published.assign(model=self.published["model"].map(names)).dropna(subset=["model"])

    @cached_property
    def humans(self) -> pd.DataFrame:
        """The human baseline, with the columns level, name and accuracy. It may be empty."""
        published = self.published[self.published["model"] == HUMANS]
        return (self.people.table if self.people else published)[["level", "name", "accuracy"]].dropna()

    @cached_property
    def direct(self) -> dict[str, set[str]]:
        """The paradigms that test each removed construction, by construction."""
        studies = self.studies
        return studies.direct_paradigms(self.benchmark) if studies else tested_paradigms(self.every_method, self.runs)

    def read_pairs(self, runs: Sequence[str], method: str | None = None) -> pd.DataFrame:
        """Return the rows of `analysis.pairs` for the given runs, by default with the report's method."""
        table = self._read(pairs, method, runs=runs)
        return table[table["faulty"] == ""] if self.options.faulty_pairs == LEAVE_OUT else table

    def read_trajectories(self) -> pd.DataFrame:
        """Return the accuracies of snapshots (`analysis.trajectories`)."""
        return self._read(trajectories, ties=self.ties).dropna(subset=["curve"])

    def read_without_unknown(self) -> pd.DataFrame:
        """Return the accuracies of the curves on the pairs whose words are known to all runs."""
        counted = {"ties": self.ties, "faulty_pairs": self.options.faulty_pairs, "unknown_words": LEAVE_OUT}
        table = self._read(accuracies, **counted)
        return in_order(table[table["run"].isin(self.accuracies["run"])].assign(method=self.method), self.curves)

    def _read(self, table: Callable[..., pd.DataFrame], method: str | None = None, **options: Any) -> pd.DataFrame:
        """Return a table of these studies with display names of curves. Curves outside this report have none."""
        rows = table(self.studies, benchmark=self.label, method=method or self.options.method, **options)
        return rows.assign(curve=rows["curve"].map(self.names))

    @property
    def largest(self) -> pd.DataFrame:
        """The accuracies of the runs at each curve's largest size, by all methods."""
        table = self.every_method
        return table[table["sample_words"] == table.groupby("curve")["sample_words"].transform("max")]


def _of_method(accuracies: pd.DataFrame, method: str) -> pd.DataFrame:
    """Return the rows of one method. For masked models that lack it, return the rows of the method that replaces it."""
    has = accuracies.groupby("run")["method"].transform(lambda methods: method in set(methods))
    return accuracies[(accuracies["method"] == method) | (~has & (accuracies["method"].map(STANDS_FOR) == method))]
