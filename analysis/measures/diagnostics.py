"""Measures of diagnostics (Ettinger 2020), or of suites, for each run of a study, and their means over runs.

With tens of items no line is fitted, and each size stands for itself. Two intervals: over runs (new samples and
initialisations, these items) and over items (new items of this kind, these runs).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.curves.designs import design_of
from analysis.curves.fit import spread_limits
from analysis.study.collect import UNSCORED, Study, with_problems
from analysis.study.judgements import one_digest, one_policy
from eval.diagnostics.files import cloze_metadata, read_cloze, read_topk
from eval.diagnostics.measures import inexpressible, measures
from pairscale.errors import RunError
from pairscale.shares import wilson

KEYS = ["level", "name"]
CONSTRAINTS = {"H": "high constraint", "L": "low constraint"}  # cprag's column `group`
_SIDES = {"a": "fitting roles", "b": "reversed roles"}


@dataclass
class Answers:
    """Measures of a study's runs on a benchmark of items instead of pairs: a diagnostic, or suites.

    runs: one row per scored run: columns of Study.runs; of models that have no place on a curve group and manifest
      alone, the others null (size "").
    measured: one row per run and measure: run and the columns of eval.diagnostics.measures.MEASURES.
    """

    label: str
    digest: str
    policies: dict[str, dict[str, Any]]
    runs: pd.DataFrame
    measured: pd.DataFrame
    problems: pd.DataFrame
    notes: list[str]

    @property
    def benchmark(self) -> str:
        return self.label.partition("+")[0]


@dataclass
class Diagnosed(Answers):
    """Answers of a study's runs to one diagnostic.

    measured: the parts of CPRAG by constraint are named as in CONSTRAINTS.
    probabilities: run, name, probability: means over items (mean_probabilities). people: the same of people's cloze
      probabilities, where the diagnostic's files hold them: name, probability.
    words: of one run of each group at its largest size: group, item, condition, context, fitting (words that people or
      truth ask for), words (the most probable ones, the first one first).
    inexpressible: group, words, items: how many words (of how many items) that run cannot express.
    """

    probabilities: pd.DataFrame
    people: pd.DataFrame
    people_measured: pd.DataFrame
    words: pd.DataFrame
    inexpressible: pd.DataFrame


def diagnosed(study: Study, label: str) -> Diagnosed:
    """Read the answers of every run that has them; raises as `read_answers`."""
    benchmark = label.partition("+")[0]
    answers = read_answers(study, label, cloze_metadata, partial(_measured, benchmark))
    probabilities = []
    for run in answers.runs.index:
        cloze, _ = read_cloze(study.folders[run].scores(label))
        probabilities.append(mean_probabilities(benchmark, cloze).assign(run=run))
    people, people_measured = _people(benchmark, cloze)
    shown = {group: study.folders[run].scores(label) for group, run in _first_runs(answers.runs).items()}
    return Diagnosed(
        **vars(answers),
        probabilities=pd.concat(probabilities, ignore_index=True),
        people=people,
        people_measured=people_measured,
        words=pd.concat([_words(folder).assign(group=group) for group, folder in shown.items()], ignore_index=True),
        inexpressible=pd.DataFrame([_inexpressible(folder) | {"group": group} for group, folder in shown.items()]),
    )


def _measured(benchmark: str, folder: Path) -> pd.DataFrame:
    cloze, _ = read_cloze(folder)
    whole = measures(benchmark, cloze)
    return pd.concat([whole, by_constraint(cloze)]) if benchmark == "cprag" else whole


def read_answers(
    study: Study,
    label: str,
    metadata_of: Callable[[Path], dict[str, Any] | None],
    measured: Callable[[Path], pd.DataFrame],
) -> Answers:
    """Read the measures of every run that has answers; the others are listed in `problems`.

    `metadata_of`, `measured`: functions of a folder of answers; the first returns None where they are not whole. Raises
    RunError for damaged files, if no run has whole answers, and if runs answered different questions.
    """
    benchmark = label.partition("+")[0]
    runs_of_study = [*study.runs.index, *study.unplaced.index]
    metadata = {run: metadata_of(study.folders[run].scores(label)) for run in runs_of_study}
    scored = {run: record for run, record in metadata.items() if record is not None}
    if not scored:
        remedy = f"python -m eval study={study.name} benchmark={benchmark}"
        raise RunError(f"study={study.name}: no run has whole scores of {label}; {remedy}")
    digest = one_digest(label, {run: record["benchmark"]["digest"] for run, record in scored.items()})
    placed, beside = (table[table.index.isin(scored)] for table in (study.runs, study.unplaced))
    runs = pd.concat([part for part in (placed, beside.assign(size="", sample_words=np.nan)) if len(part)])
    if "seed" in runs:
        runs["seed"] = runs["seed"].astype("Int64")
    # A pretrained model has its own tokenizer.
    runs["tokenizer"] = runs["tokenizer"].fillna(runs["group"]) if "tokenizer" in runs else runs["group"]
    compared = _compared({run: scored[run]["policy"] for run in runs.index})
    notes = one_policy(f"study={study.name}: answers of {label}", runs, compared)
    policies = {str(runs.at[run, "group"]): dict(scored[run]["policy"]) for run in runs.index}
    tables = [measured(study.folders[run].scores(label)).assign(run=run) for run in runs.index]
    unscored = [run for run in study.runs.index if run not in scored]
    problems = study.problems[~study.problems["run"].isin(scored)]
    return Answers(
        label=label,
        digest=digest,
        policies=policies,
        runs=runs,
        measured=pd.concat(tables, ignore_index=True),
        problems=with_problems(problems, unscored, UNSCORED, f"no scores of {label}"),
        notes=[*study.notes, *notes],
    )


def _compared(policies: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return policies with the same keys; `pll` is a key only where two masked models differ in it."""
    keys = dict.fromkeys(key for policy in policies.values() for key in policy)
    if len({policy["pll"] for policy in policies.values() if "pll" in policy}) < 2:
        keys.pop("pll", None)
    return {run: {key: policy.get(key) for key in keys} for run, policy in policies.items()}


def by_constraint(cloze: pd.DataFrame) -> pd.DataFrame:
    """Return CPRAG's MEASURES of unchanged contexts, by how much they constrain people (Federmeier and Kutas 1999)."""
    original = cloze[cloze["condition"] == "original"]
    parts = {name: original[original["group"] == letter] for letter, name in CONSTRAINTS.items()}
    tables = [measures("cprag", part).assign(name=name) for name, part in parts.items() if len(part)]
    return pd.concat(tables, ignore_index=True)


def mean_probabilities(benchmark: str, cloze: pd.DataFrame, column: str = "prob") -> pd.DataFrame:
    """Return name, probability: the mean of good and bad words in unchanged contexts, if they can be expressed.

    cprag: the expected word, and the two that do not fit. role: the target with roles that fit and with reversed ones.
    neg: the true and the false word of each condition. `column`: prob, the model's, or cloze, people's.
    """
    match benchmark:
        case "cprag":
            rows = cloze[cloze["condition"] == "original"]
            names = rows["role"].str.replace("_", " ")
        case "role":
            rows = cloze[cloze["role"] == "target"]
            names = rows["item"].str.rpartition("-")[2].map(_SIDES)
        case _:
            rows = cloze
            names = rows["condition"].str.replace("_", " ").str.replace("simp", "simple") + ", " + rows["role"]
    means = rows[column].groupby(names, sort=False).mean()
    order = [name for name in _SIDES.values() if name in means.index] or list(means.index)
    return means.reindex(order).rename("probability").rename_axis("name").reset_index()


def _people(benchmark: str, cloze: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return people's mean cloze probabilities, and the sensitivities of a model that had them (ROLE-88 only)."""
    if benchmark != "role":
        return pd.DataFrame(columns=["name", "probability"]), pd.DataFrame(columns=[*KEYS, "accuracy"])
    as_model = measures("role", cloze.assign(prob=cloze["cloze"]))
    as_model = as_model[as_model["level"].str.startswith("sensitivity")]
    return mean_probabilities("role", cloze, "cloze"), as_model[[*KEYS, "accuracy"]].reset_index(drop=True)


def _first_runs(runs: pd.DataFrame) -> dict[str, str]:
    """Return one run of each group: the first of its largest size."""
    largest = runs["sample_words"].fillna(0).groupby(runs["group"], sort=False).idxmax()
    return {str(group): str(run) for group, run in largest.items()}


def _words(folder: Path) -> pd.DataFrame:
    cloze, _ = read_cloze(folder)
    keys = ["item", "condition", "context"]
    good = cloze[cloze["role"].isin(["expected", "true"])].groupby(keys, sort=False)["candidate"]
    fitting = good.agg(lambda words: " ".join(dict.fromkeys(words)))
    top = read_topk(folder).sort_values("place", kind="stable").groupby(keys, sort=False)
    rows = [(*key, fitting.get(key, ""), " ".join(of["word"])) for key, of in top]
    table = pd.DataFrame(rows, columns=[*keys, "fitting", "words"])
    order = {tuple(key): at for at, key in enumerate(cloze[keys].drop_duplicates().to_numpy())}
    return table.iloc[np.argsort([order[key] for key in table[keys].itertuples(index=False, name=None)])]


def _inexpressible(folder: Path) -> dict[str, int]:
    rows = inexpressible(read_cloze(folder)[0])
    return {"words": rows["candidate"].nunique(), "items": rows["item"].nunique()}


def over_sizes(answers: Answers, confidence: float) -> pd.DataFrame:
    """Average measures over the runs of a size.

    Columns: group, size, words (NaN: unknown), runs, KEYS, items, accuracy, low, high (over new runs, as of
    analysis.curves.fit.spread_limits, and no closer than Wilson's of as many answers; NaN where the runs give none),
    low_items, high_items (Wilson's 95% intervals over new items), sd (over trials, mean over runs), ties, unknown
    (items with a word that cannot be expressed, mean over runs) and known (accuracy without these).
    """
    parts = []
    for _, runs in answers.runs.groupby("group", sort=False):
        rows = answers.measured[answers.measured["run"].isin(runs.index)]
        keys = pd.MultiIndex.from_frame(rows[KEYS].drop_duplicates())
        columns = ("accuracy", "sd", "ties", "unknown", "known", "items")
        by_run = rows.set_index(["run", *KEYS])
        wide = {name: by_run[name].unstack("run").reindex(keys).T.reindex(runs.index).astype(float) for name in columns}
        if runs["sample_words"].isna().any():  # one model, at no size
            parts.append(_at(runs, wide, keys).assign(low=np.nan, high=np.nan))
            continue
        design = design_of(runs)
        size = design.size
        items = [wide["items"][size == s].sum(axis=0, min_count=1).to_numpy() for s in range(len(design.counts))]
        accuracy, chance = wide["accuracy"].to_numpy(dtype=np.float64), 1 / np.stack(items)
        _, low, high = spread_limits(accuracy, size, confidence, chance, design.overlap)
        for s in range(len(design.counts)):
            of_size = {name: table[size == s] for name, table in wide.items()}
            parts.append(_at(runs[size == s], of_size, keys).assign(low=low[s], high=high[s]))
    columns_in_order = [*KEYS, *columns, "low", "high", "low_items", "high_items", "group", "size", "words", "runs"]
    return pd.concat(parts, ignore_index=True)[columns_in_order]


def _at(runs: pd.DataFrame, wide: Mapping[str, pd.DataFrame], keys: pd.MultiIndex) -> pd.DataFrame:
    """Return the means over the runs of a size, with limits over items."""
    means = pd.DataFrame({name: table.mean() for name, table in wide.items()}).reindex(keys)
    limits = [wilson(share, items) for share, items in means[["accuracy", "items"]].to_numpy()]
    means["low_items"], means["high_items"] = zip(*limits, strict=True)
    size = {"group": runs["group"].iloc[0], "size": runs["size"].iloc[0], "words": runs["sample_words"].mean()}
    return means.assign(**size, runs=len(runs)).rename_axis(KEYS).reset_index()


def at_largest(means: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `over_sizes` at each group's largest size."""
    largest = means.groupby("group")["words"].transform("max")
    return means[(means["words"] == largest) | means["words"].isna()].reset_index(drop=True)


def points(answers: Diagnosed) -> pd.DataFrame:
    """Return one row per run and measure, of runs with a size: run, group, size, seed, words, KEYS, accuracy."""
    runs = answers.runs[answers.runs["sample_words"].notna()]
    table = answers.measured[answers.measured["run"].isin(runs.index)][["run", *KEYS, "accuracy"]]
    named = runs.rename(columns={"sample_words": "words"})
    columns = [name for name in ("group", "size", "seed", "words") if name in named]
    return table.join(named[columns], on="run")
