"""What a report knows about one benchmark of minimal pairs: its part of the long table, and the statistics of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from analysis.config import ReportConfig
from analysis.curves.comparisons import compare
from analysis.curves.fit import fit_curves, fitted_lines
from analysis.curves.units import unit_accuracies
from analysis.figures.style import looks_of
from analysis.report.labels import check_curves, display_names, in_order, renamed, renamed_text
from analysis.report.people import People
from eval.published import on_paradigms, read_published
from eval.scores.names import benchmark_name
from pairscale.errors import ConfigError

HUMANS = "people"  # the human baseline among published accuracies (eval/published)
MASKED = {"lp": "pll"}  # the method of masked models that stands for a method of all others (Salazar et al. 2020)


@dataclass
class BenchmarkResults:
    """The tables of one benchmark, with curves named as readers see them.

    Attributes:
        label: the name of its folder of scores, such as "blimp".
        method: the judgment method of the curves, such as "lp", or "lp or pll" if masked models need another one.
        accuracies: rows of the long table (`analysis.accuracies`): curves, by `method`.
        every_method: the same for all methods.
        models: rows of models that aren't on a curve, by all methods.
        baselines: rows of untrained models and of models of shuffled text, by `method`.
        runs: rows of `analysis.runs`.
        problems: the columns run, status and reason of runs that are left out.
        notes: sentences that a reader needs to know.
        options: `analysis` of the configuration.
        ties: what a tie counts as.
        of_folders: whether the study is one of run folders, so that missing runs are known.
        people: the people who answered a questionnaire, or None for the published human baseline.
        read_pairs: returns rows of `analysis.pairs` of the given runs by a method; None if pairs aren't known.
        read_trajectories: returns the accuracies of snapshots (`analysis.study.trajectories`); None if there are none.
        read_without_unknown: returns accuracies on the pairs that contain no unknown word in any run.
        direct: the paradigms that test each construction that a run's text lacks.
        removed: what each intervention did to the text (`analysis.study.run_folders.removed_text`).
        names: what each curve of the long table is called here.
    """

    label: str
    method: str
    accuracies: pd.DataFrame
    every_method: pd.DataFrame
    models: pd.DataFrame
    baselines: pd.DataFrame
    runs: pd.DataFrame
    problems: pd.DataFrame
    notes: list[str]
    options: ReportConfig
    ties: str = "wrong"
    of_folders: bool = True
    people: People | None = None
    read_pairs: Callable[..., pd.DataFrame] | None = None
    read_trajectories: Callable[[], pd.DataFrame] | None = None
    read_without_unknown: Callable[[], pd.DataFrame] | None = None
    direct: dict[str, set[str]] = field(default_factory=dict)
    removed: pd.DataFrame = field(default_factory=pd.DataFrame)
    names: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, label: str, accuracies: pd.DataFrame, runs: pd.DataFrame, options: ReportConfig, **others: Any
    ) -> "BenchmarkResults":
        """Divide the long table of one benchmark into curves, baselines and models, and name its curves.

        Raises ConfigError for a method by which no run was judged, and for labels, colours or an order of curves that
        aren't there.
        """
        every_method = accuracies[accuracies["sample_words"].notna() & (accuracies["baseline"] == "")]
        names = display_names(list(every_method["curve"].unique()), options.labels)
        for key in ("colours", "order"):
            check_curves(f"analysis.{key}", getattr(options, key), [*names, *names.values()])
        every_method = renamed(every_method, names, options.order)
        main = _of_method(every_method, options.method)
        if main.empty and len(every_method):
            there = ", ".join(sorted(every_method["method"].unique()))
            raise ConfigError(
                f"analysis.method={options.method}: no run has such scores of {label}. Methods there: {there}."
            )
        method = " or ".join(main["method"].unique())
        others["notes"] = [renamed_text(note, names) for note in others["notes"]]
        return cls(
            label=label,
            method=method,
            accuracies=main.assign(method=method),
            every_method=every_method,
            models=accuracies[accuracies["sample_words"].isna()].reset_index(drop=True),
            baselines=_of_method(accuracies[accuracies["baseline"] != ""], options.method),
            runs=renamed(runs[runs["run"].isin(accuracies["run"])], names, options.order),
            options=options,
            names=names,
            **others,
        )

    def of_curves(self, curves: Sequence[str] | str | None) -> "BenchmarkResults":
        """Return the results of some curves, in order; None for all. Raises ConfigError for an unknown curve."""
        chosen = [curves] if isinstance(curves, str) else list(curves or self.curves)
        check_curves("curves", chosen, [*self.names, *self.curves])
        chosen = [self.names.get(curve, curve) for curve in chosen]
        return replace(self, accuracies=in_order(self.accuracies[self.accuracies["curve"].isin(chosen)], chosen))

    @property
    def name(self) -> str:
        """The benchmark's name for readers."""
        return benchmark_name(self.label)

    @property
    def benchmark(self) -> str:
        """The benchmark without its scoring settings."""
        return self.label.partition("+")[0]

    @property
    def unit(self) -> str:
        """What sizes count: "words", "tokens", ..."""
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
        if self.options.new_items and self.read_pairs is not None:
            pairs = self.read_pairs(self.accuracies["run"].unique()).assign(method=self.method)
        return fit_curves(self.accuracies, confidence=self.options.confidence, pairs=pairs)

    @cached_property
    def differences(self) -> pd.DataFrame:
        """The table of `analysis.compare`; runs whose text lacks something are compared by the section on ablations."""
        accuracies = self.accuracies
        if "construction" in self.runs:
            changed = self.runs.loc[self.runs["construction"].fillna("") != "", "run"]
            accuracies = accuracies[~accuracies["run"].isin(changed)]
        return compare(accuracies, margin=self.options.margin, confidence=self.options.confidence)

    @cached_property
    def lines(self) -> pd.DataFrame:
        """Points of the fitted lines with their confidence bands."""
        return fitted_lines(self.accuracies, confidence=self.options.confidence)

    @cached_property
    def published(self) -> pd.DataFrame:
        """Published accuracies on the same paradigms: level, name, model, accuracy."""
        table = self.accuracies if len(self.accuracies) else self.models
        paradigms = table.dropna(subset=["paradigm"]).drop_duplicates("paradigm")
        phenomena = dict(zip(paradigms["paradigm"], paradigms["phenomenon"], strict=True))
        return on_paradigms(read_published(self.benchmark), phenomena)

    @cached_property
    def humans(self) -> pd.DataFrame:
        """The human baseline: level, name, accuracy; may be empty."""
        published = self.published[self.published["model"] == HUMANS] if self.people is None else self.people.accuracy
        return published[["level", "name", "accuracy"]]

    @property
    def largest(self) -> pd.DataFrame:
        """The accuracies of the runs at each curve's largest size, by every method."""
        table = self.every_method
        return table[table["sample_words"] == table.groupby("curve")["sample_words"].transform("max")]


def _of_method(accuracies: pd.DataFrame, method: str) -> pd.DataFrame:
    """Return the rows of one method; masked models without it have those of the method that stands for it."""
    has = accuracies.groupby("run")["method"].transform(lambda methods: method in set(methods))
    return accuracies[(accuracies["method"] == method) | (~has & (accuracies["method"] == MASKED.get(method)))]
