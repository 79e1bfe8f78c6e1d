"""Outcomes that others publish, rows of paradigms or of pairs, and the study and judgements that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pandas as pd

from analysis.config import AnalysisConfig
from analysis.published import published_file
from analysis.study.collect import PROBLEMS, UNSCORED, UNTRAINED, Study, by_group, with_problems
from analysis.study.judgements import Judgements, Scores, judged_by
from analysis.study.sources.config import OWN, RUNS, SHARED, WORDS, ResultsConfig
from analysis.study.sources.sizes import check_sizes, size_texts
from eval.benchmarks.cells import shown
from eval.config import is_of_pairs
from pairscale.errors import ConfigError, InputError, first_few
from pairscale.files import sha256_json
from train.runs.interventions import FULL_DOSE, FULL_TEXT

RUN = ("model", "removed", "size", "seed")  # columns that tell runs apart
COLUMNS = (*RUN, "paradigm", "phenomenon", "pair", "accuracy", "n", "tests", "place")
BLIMP = "blimp"
MOST_NAMED = 4  # paradigms that a note names
LEAST_WORDS = 2000  # of a largest size: below it, sizes may count thousands or millions of words
_CHECKPOINTS = (
    "The points of a curve are checkpoints of {}, by {}, repeats included. Those of one training depend on each other, "
    "so a curve has no interval, test or rank: {}."
)
_ONE_TRAINING = "only several trainings would show what another initialisation or another order of the text changes"
_TRAININGS = "intervals over trainings are not computed"
_TEXTS = {
    None: "Nothing says whether runs of one size were trained on the same text. If they were, intervals are over new "
    "initialisations only: results.text=shared leaves them out, results.text=own says that each run has a sample.",
    OWN: "",
    SHARED: "Runs of one size were trained on the same text.",
}


@dataclass
class Outcomes:
    """What a source holds.

    rows: COLUMNS, a row for each run and paradigm, or pair: model, removed ("" of the full text), size (units), seed,
    paradigm, phenomenon, pair ("" where a row is a paradigm), accuracy (0 to 1), n (pairs; NaN: not known), tests (True
    where the paradigm tests what is removed), place (file and line). benchmark: its name. method: what accuracies are
    called. origin: where they come from, in words. seeds: if a seed is given, by file or by model. n_known: False if
    nothing says of how many pairs accuracies are. told_apart_by: the settings that tell runs apart.
    """

    rows: pd.DataFrame
    benchmark: str
    method: str
    origin: str
    seeds: Mapping[str, bool] = field(default_factory=dict)
    n_known: bool = True
    notes: list[str] = field(default_factory=list)
    problems: list[dict[str, str]] = field(default_factory=list)
    told_apart_by: str = "results.pattern, with (?P<model>...), (?P<size>...) or (?P<seed>...)"

    @property
    def of_pairs(self) -> bool:
        """True if every row is one pair, with an id."""
        return bool((self.rows["pair"] != "").all())


def study_of(name: str, outcomes: Outcomes, config: AnalysisConfig) -> Study:
    """Return the study of others' outcomes, whose `scores` `outcome_judgements` reads.

    Runs at size 0 have no place on a logarithmic axis; they, and with results.missing=runs those that lack paradigms,
    are problems. Raises ConfigError for a benchmark's name that is not of pairs, and InputError for two rows of one
    thing, accuracies out of range, runs without a paradigm in common, and a paradigm of two phenomena.
    """
    label, settings = outcomes.benchmark, config.results
    if not is_of_pairs(label):
        raise ConfigError(f"results.benchmark={label}: names items, not pairs, here; give another name")
    _check_names(outcomes.rows)
    _check_spelling(outcomes.rows, "paradigm")
    rows, notes = _with_phenomena(outcomes), list(outcomes.notes)
    _check_spelling(rows, "phenomenon")
    _check(rows, outcomes)
    check_sizes(settings, set(rows["size"]), outcomes.origin)
    runs = _runs(rows, name, settings)
    rows = rows.assign(run=pd.MultiIndex.from_frame(rows[[*RUN]]).map(dict(zip(_keys(runs), runs.index, strict=True))))
    problems = pd.DataFrame(outcomes.problems, columns=list(PROBLEMS))
    untrained = list(runs.index[runs["sample_words"] == 0])
    problems = with_problems(problems, untrained, UNTRAINED, "size 0 has no place on a logarithmic axis")
    if len(untrained) == len(runs):
        raise InputError(f"{rows['place'].iloc[0]}: size 0, as all are: curves need sizes above 0")
    rows = rows[~rows["run"].isin(untrained)]
    rows, incomplete, of_paradigms = _complete(rows, settings.missing)
    problems = with_problems(problems, incomplete, UNSCORED, f"lacks paradigms that other runs of {label} have")
    rows, of_pairs = _same_pairs(rows) if outcomes.of_pairs else (rows, _of_numbers(rows))
    runs = runs[runs.index.isin(rows["run"])]
    notes = [*notes, *_of_source(outcomes, runs, settings), *of_paradigms, *of_pairs]
    study = Study(name, by_group(runs), problems, notes)
    for run, of in rows.groupby("run", sort=False):
        study.scores[str(run)] = {label: {outcomes.method: {"rows": of, "origin": outcomes.origin}}}
        tests = sorted(of.loc[of["tests"], "paradigm"].unique())
        study.config[str(run)] = {"filter": {"paradigms": {label: tests}}}
    return study


def outcome_judgements(study: Study, label: str, method: str, ties: str) -> Judgements:
    """Return judgements by pair, or by paradigm, of what a source holds; its only method stands for any `method`.

    Ties count as the source counts them.
    """
    scores = {str(run): study.scores[str(run)][label] for run in study.runs.index}
    (name,) = {name for of in scores.values() for name in of}
    tables: list[pd.DataFrame] = [
        of[name]["rows"].sort_values(["phenomenon", "paradigm", "pair"], ignore_index=True) for of in scores.values()
    ]
    first = tables[0]
    if (first["pair"] != "").all():
        pairs = first[["pair", "paradigm", "phenomenon"]].rename(columns={"pair": "pair_id"})
    else:
        counts = np.stack([table["n"].to_numpy(dtype=np.float64) for table in tables])
        # The harmonic mean has the variance that chance gives to a mean over runs.
        mean = np.maximum(counts.min(axis=0), np.floor(1 / (1 / counts).mean(axis=0)))
        known = bool(np.isfinite(mean).all())
        pairs = first[["paradigm", "phenomenon"]].assign(n_pairs=mean.astype(np.int64) if known else np.nan)
    outcome = np.stack([table["accuracy"].to_numpy(dtype=np.float64) for table in tables])
    none = np.zeros(outcome.shape)
    digest = sha256_json(pairs.fillna(0).to_dict("list"))
    flags = none.astype(bool) if "pair_id" in pairs else none
    policies: dict[str, dict[str, Any]] = {run: {} for run in scores}
    judged = judged_by(
        study, label, Scores(digest, dict.fromkeys(scores, name), policies, pairs, outcome, none, flags, [""])
    )
    judged.origin = next(iter(scores.values()))[name]["origin"]
    return judged


def check_printable(name: str, where: str, column: str) -> None:
    """Raise InputError for a name that a terminal or a figure cannot show."""
    if not name.isprintable():
        raise InputError(f"{where}: {column} is {shown(name)}, must consist of printable characters")


def _check_names(rows: pd.DataFrame) -> None:
    for column in ("model", "removed", "paradigm", "phenomenon"):
        for name, where in rows.drop_duplicates(column)[[column, "place"]].itertuples(index=False):
            check_printable(name, where, column)


def _check_spelling(rows: pd.DataFrame, column: str) -> None:
    """Raise InputError for two names that are read as one: island_effects, Island effects."""
    first: dict[str, tuple[str, str]] = {}
    for name, where in rows.drop_duplicates(column)[[column, "place"]].itertuples(index=False):
        other, there = first.setdefault(" ".join(name.replace("_", " ").casefold().split()), (name, where))
        if other != name:
            raise InputError(
                f"{where}: {column} is {name!r}, but {other!r} at {there}; one {column} must be written in one way"
            )


def _with_phenomena(outcomes: Outcomes) -> pd.DataFrame:
    """Fill in phenomena that a source does not name: of BLiMP's paradigms the published ones, else the paradigms."""
    rows = outcomes.rows.reset_index(drop=True)
    named = rows["phenomenon"] != ""
    known: dict[str, str] = {}
    if outcomes.benchmark == BLIMP:
        table = published_file("blimp_paradigms")
        known = dict(zip(table["paradigm"], table["phenomenon"], strict=True))
    others = [known.get(paradigm, paradigm) for paradigm in rows["paradigm"]]
    rows["phenomenon"] = rows["phenomenon"].where(named, pd.Series(others, index=rows.index, dtype=object))
    several = rows.groupby("paradigm")["phenomenon"].nunique()
    if (several > 1).any():
        paradigm = str(several.index[several > 1][0])
        of = sorted(rows.loc[rows["paradigm"] == paradigm, "phenomenon"].unique())
        raise InputError(f"{outcomes.origin}: paradigm {paradigm} is of several phenomena: {', '.join(of)}")
    return rows


def _check(rows: pd.DataFrame, outcomes: Outcomes) -> None:
    taken = rows[rows["phenomenon"].str.lower() == "overall"]
    if len(taken):
        row = taken.iloc[0]
        raise InputError(
            f"{row['place']}: the phenomenon (of paradigm {row['paradigm']}) is {row['phenomenon']!r}, which names the "
            "mean over all phenomena; must have another name"
        )
    keys = [*RUN, "paradigm", "pair"]
    twice = rows[rows.duplicated(keys)]
    if len(twice):
        row = twice.iloc[0]
        first = rows[(rows[keys] == row[keys]).all(axis=1)].iloc[0]
        named = ", ".join(f"{key} {row[key]}" for key in keys if row[key] != "")
        raise InputError(
            f"{row['place']}: a second row of {named} (first: {first['place']}); what tells them apart is named by "
            f"{outcomes.told_apart_by}"
        )
    mixed = rows["pair"] != ""
    if mixed.any() and not mixed.all():
        raise InputError(f"{rows.loc[~mixed, 'place'].iloc[0]}: no id of its pair, but other rows have one")


def _keys(runs: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(runs[["model", "filter", "sample_words", "seed"]].itertuples(index=False, name=None))


def _runs(rows: pd.DataFrame, study: str, settings: ResultsConfig) -> pd.DataFrame:
    """Return rows of Study.runs, one for each run."""
    runs = rows[[*RUN]].drop_duplicates().sort_values([*RUN], kind="stable", ignore_index=True)
    unit = settings.unit.replace("_", " ")
    removed = runs["removed"] != ""
    names = runs["removed"].where(~removed, runs["removed"] + " removed").where(removed, FULL_TEXT)
    group = runs["model"] + ", " + names if removed.any() else runs["model"]
    texts = size_texts(runs["size"], unit)
    sizes = [texts[size] for size in runs["size"]]
    by_seed = pd.Series([f"-{seed}" for seed in runs["seed"]], index=runs.index)
    training = runs["model"] + by_seed if settings.seen else None
    index = group + "-" + pd.Series(sizes, index=runs.index).str.replace(" ", "-") + by_seed
    table = pd.DataFrame({
        "study": study, "model": runs["model"], "tokenizer": "", "corpus": "", "size": sizes,
        "reference": unit if unit != WORDS else "words", "seed": runs["seed"].astype(np.int64), "nested": False,
        "sample_words": runs["size"], "words_seen": None, "parameters": None, "words_per_s": None, "wall_s": None,
        "overlap": 1.0 if settings.text == SHARED and not settings.seen else np.nan, "valid_ppl": np.nan,
        "valid_oov_rate": np.nan, "vocabulary": "", "training": index if training is None else training,
        "filter": runs["removed"], "action": np.where(removed, "remove", "none"),
        "dose": np.where(removed, "0", FULL_DOSE), "group": group, "base": runs["model"],
        "seeds_match": False, "manifest": [{} for _ in runs.index], "run": index,
    })  # fmt: skip
    return table.set_index("run")


def _complete(rows: pd.DataFrame, missing: str) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Return rows on the same paradigms of each run, the runs that are left out for that, and notes."""
    of_run = rows.groupby("run", sort=False)["paradigm"].agg(frozenset)
    everything = frozenset().union(*of_run)
    lacking = of_run[of_run != everything]
    if lacking.empty:
        return rows, [], []
    shared = frozenset.intersection(*of_run)
    if missing == RUNS:
        if len(lacking) == len(of_run):
            hint = "; results.missing=paradigms leaves those out" if shared else ", and none is in all runs"
            raise InputError(f"every run lacks some of the {len(everything)} paradigms{hint}")
        return rows[~rows["run"].isin(lacking.index)], [str(run) for run in lacking.index], []
    if not shared:
        fewest = str(of_run.map(len).idxmin())
        leaves = len(lacking) < len(of_run)
        hint = "results.missing=runs leaves runs out instead" if leaves else "no run has all; runs must share paradigms"
        raise InputError(
            f"no paradigm is in all of the {len(of_run)} runs ({fewest} has {len(of_run[fewest])} of "
            f"{len(everything)}); {hint}"
        )
    left = sorted(everything - shared)
    note = (
        f"Left out, as some runs lack them: {first_few(left, MOST_NAMED)} ({len(left)} of {len(everything)} paradigms; "
        f"runs without some: {first_few([str(run) for run in lacking.index], MOST_NAMED)}). results.missing=runs keeps "
        "the paradigms and leaves out these runs."
    )
    return rows[rows["paradigm"].isin(shared)], [], [note]


def _same_pairs(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of the pairs that all runs have, and a note on others."""
    keys = pd.MultiIndex.from_frame(rows[["paradigm", "pair"]])
    shared = rows.groupby(["paradigm", "pair"])["run"].nunique() == rows["run"].nunique()
    left = int((~shared).sum())
    if not left:
        return rows, []
    kept = rows[shared.reindex(keys).to_numpy()]
    lost = set(rows["paradigm"]) - set(kept["paradigm"])
    if lost:
        raise InputError(f"no pair of {first_few(sorted(lost))} is in all runs; are the ids those of the same pairs?")
    return kept, [f"Left out, as some run lacks them: {left:,} of {len(shared):,} pairs."]


def _of_numbers(rows: pd.DataFrame) -> list[str]:
    """Note paradigms of other numbers of pairs in some runs."""
    numbers = rows.groupby("paradigm")["n"].agg(["min", "max"])
    differ = numbers[numbers["min"] < numbers["max"]]
    if differ.empty:
        return []
    return [
        f"Runs have different numbers of pairs, from {differ['min'].min():,.0f} to {differ['max'].max():,.0f}, of "
        f"{first_few([str(name) for name in differ.index], MOST_NAMED)} ({len(differ)} of {len(numbers)} paradigms): "
        "chance in judgements is that of their harmonic mean."
    ]


def _of_source(outcomes: Outcomes, runs: pd.DataFrame, settings: ResultsConfig) -> list[str]:
    """Say what a source lacks, and what that leaves out."""
    notes = [f"Not our numbers: read from {outcomes.origin}."]
    if not outcomes.of_pairs:
        notes.append(
            "Accuracies of paradigms are known, not judgements of pairs: there are no intervals over new pairs, and no "
            "mixed model."
        )
    if not outcomes.n_known:
        notes.append(
            "Of how many pairs an accuracy is a mean is not known: chance in single judgements is in no band or "
            "interval."
        )
    largest = runs["sample_words"].max()
    if settings.unit == WORDS and settings.scale == 1 and largest < LEAST_WORDS:
        notes.append(f"The largest size is {largest:.0f} words: results.scale=1000000 if sizes count millions.")
    several = runs.groupby(["group", "size"]).size().max() > 1
    notes += _of_seeds(outcomes.seeds)
    if settings.seen and runs.duplicated(["group", "training"]).any():
        notes.append(_of_checkpoints(runs, settings.unit.replace("_", " ")))
    elif several:
        notes += [note for note in (_TEXTS[settings.text],) if note]
    return notes


def _of_seeds(seeds: Mapping[str, bool]) -> list[str]:
    """Note which files or models have no seeds."""
    without = [name for name, given in seeds.items() if not given]
    if not without:
        return []
    if len(without) == len(seeds):
        return ["No seeds are given: one run a size, so nothing shows how far runs of a size lie apart."]
    return [
        f"No seeds are given for {first_few(without, MOST_NAMED)}: one run a size there, and nothing shows how far "
        "runs like it lie apart."
    ]


def _of_checkpoints(runs: pd.DataFrame, unit: str) -> str:
    trainings = runs.groupby("group")["training"].nunique()
    if trainings.max() == 1:
        return _CHECKPOINTS.format("one training", unit, _ONE_TRAINING)
    most = "" if trainings.nunique() == 1 else "up to "
    return _CHECKPOINTS.format(f"{most}{trainings.max()} trainings", unit, _TRAININGS)


def with_number(rows: pd.DataFrame, number: int | None) -> tuple[pd.DataFrame, bool]:
    """Return rows with `number` pairs where they do not say how many, and if all of them are known.

    Raises InputError where only some are: a mean over paradigms needs all of them. Raises ConfigError for a `number`
    where all rows say how many.
    """
    if number is not None and rows["n"].notna().all():
        raise ConfigError(f"results.n={number}: every row says how many pairs it is of; leave results.n out")
    n = rows["n"] if number is None else rows["n"].fillna(float(number))
    unknown = n.isna()
    if unknown.any() and not unknown.all():
        raise InputError(
            f"{rows.loc[unknown, 'place'].iloc[0]}: no number of pairs (n), but others have one "
            f"({rows.loc[~unknown, 'place'].iloc[0]}); results.n=NUMBER is that of those without"
        )
    return rows.assign(n=n), not unknown.any()


def read_cell_number(cell: Any) -> float | None:
    """Return the number in a cell; NaN if it is empty or NA, None if it holds something else."""
    if cell is None or str(cell).strip().lower() in ("", "na", "nan"):
        return float("nan")
    if isinstance(cell, bool):
        return None
    try:
        value = float(cast(Any, cell))
    except (TypeError, ValueError):
        return None
    return value if np.isfinite(value) else None
