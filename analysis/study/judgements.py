"""Judgements: the outcomes of all runs on all pairs of one benchmark, under one method."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.study.collect import UNSCORED, Study, varies, with_problems
from eval.benchmarks.known_items import faulty_note
from eval.config import is_of_pairs
from eval.scores.accuracy import TIE_WORTH, outcome, repeats_of, repeats_text, tied, unk_free
from eval.scores.files import ITEMS_FILE, TOKENS_FILE, judged_pairs, read_items, read_metadata, read_scores, score_path
from eval.scores.names import benchmark_name
from eval.scores.record import PARADIGM_COLUMNS, SHARES, paradigm_shares
from pairscale.errors import RunError
from pairscale.files import sha256_json
from pairscale.sizes import readable_size, written
from train.runs.axes import flatten
from train.runs.folder import RunFolder

# The method of masked models that stands for a method of all others: pseudo-log-likelihood (Salazar et al. 2020).
OF_MASKED = {"lp": "pll"}
SEEN = frozenset({"tokens", "words seen", "steps"})  # units of how far one training was
_UNITS = SEEN | {"characters", "sentences"}
_OWN_PAIRS = re.compile(r"\+run-k\d+")  # in a label: generated pairs of the words of each run's own sample


@dataclass
class Judgements:
    """Runs x pairs of one benchmark under one method; or runs x paradigms, where no more was tracked (`of_paradigms`).

    runs: R rows of Study.runs.
    pairs: P rows pair_id, paradigm, phenomenon, sorted by phenomenon and paradigm.
    outcome: (R, P) contribution of each pair to accuracy: a mean over templates or trials, where the method has them,
    so that a pair stays one unit when pairs are resampled. tie: (R, P) share of its judgements with two equal scores.
    unk: (R, P) True if either sentence contains <unk>. over: what an outcome is a mean over, "5 templates", or "".
    unequal: run -> share of its judgements whose two sentences hold <unk> unequally often, where that is known.
    Of paradigms, rows of `pairs` have the column n_pairs, the pairs that they stand for, and outcome, tie and unk are
    means over these; n_pairs is NaN where it is not published. origin: what outcomes of others were read from, "" for
    our scores; of these, ties and `<unk>` are not known. left_out: pairs that were scored and are not counted.
    """

    label: str
    method: str  # of most runs
    digest: str
    policies: dict[str, dict[str, Any]]  # group -> its scoring policy and the method's parameters
    runs: pd.DataFrame
    pairs: pd.DataFrame
    outcome: npt.NDArray[np.floating]
    tie: npt.NDArray[np.floating]
    unk: npt.NDArray[np.bool_ | np.float64]
    problems: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    over: str = ""
    unequal: pd.Series = field(default_factory=lambda: pd.Series(dtype=float))
    methods: dict[str, str] = field(default_factory=dict)  # group -> its method
    origin: str = ""
    left_out: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["paradigm", "pair_id"]))

    @property
    def method_names(self) -> str:
        """The method, or those of several kinds of models: "lp or pll"."""
        return " or ".join(dict.fromkeys([self.method, *self.methods.values()]))

    def method_of(self, run: str) -> str:
        """Return the method by which a run was judged."""
        return self.methods[str(self.runs.at[run, "group"])]

    def select(self, pairs: npt.NDArray[np.bool_]) -> Judgements:
        """Return the judgements of some of the pairs: `pairs` (P,) is a mask."""
        cut = {name: getattr(self, name)[:, pairs] for name in ("outcome", "tie", "unk")}
        rows = self.pairs[pairs].reset_index(drop=True)
        return replace(self, pairs=rows, notes=[], unequal=pd.Series(dtype=float), **cut)

    def of_runs(self, runs: Sequence[str]) -> Judgements:
        """Return the judgements of some of the runs, in this order."""
        rows = self.runs.index.get_indexer(pd.Index(runs))
        cut = {name: getattr(self, name)[rows] for name in ("outcome", "tie", "unk")}
        return replace(self, runs=self.runs.iloc[rows], **cut)

    @property
    def of_paradigms(self) -> bool:
        """True if judgements of single pairs are not known."""
        return "n_pairs" in self.pairs

    @property
    def n_pairs(self) -> int | None:
        """Pairs that were judged; None where their number is not published."""
        if not self.of_paradigms:
            return len(self.pairs)
        counts = self.pairs["n_pairs"]
        return None if counts.isna().any() else int(counts.sum())

    @property
    def pairs_text(self) -> str:
        """How many pairs were judged, in words."""
        number = self.n_pairs
        return "an unknown number of pairs" if number is None else f"{number:,} pair{'' if number == 1 else 's'}"

    def share(self, what: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the (R,) mean of `tie` or `unk` over all pairs."""
        weights = self.pairs["n_pairs"].to_numpy() if self.of_paradigms and self.n_pairs is not None else None
        return np.asarray(np.average(what, axis=1, weights=weights))

    @property
    def unit(self) -> str:
        """The unit of the curves' x, as of `unit_of`."""
        return unit_of(self.runs)

    @property
    def over_training(self) -> bool:
        """True if curves are over one training, and not over trainings on texts of several sizes."""
        return self.unit in SEEN

    @property
    def unk_free(self) -> npt.NDArray[np.bool_]:
        """(P,) pairs without <unk> in any of the runs compared."""
        return np.logical_not(self.unk.any(axis=0))


@dataclass
class Scores:
    """One method's scores of a benchmark as they are read: R runs, P pairs or paradigms; fields as of `Judgements`.

    methods: run -> the method that judged it. policies: run -> its scoring policy and the method's parameters. over:
    what outcomes of runs are means over.
    """

    digest: str
    methods: Mapping[str, str]
    policies: Mapping[str, Mapping[str, Any]]
    pairs: pd.DataFrame
    outcome: npt.NDArray[np.floating]
    tie: npt.NDArray[np.floating]
    unk: npt.NDArray[np.bool_ | np.float64]
    over: Collection[str]


def unit_of(runs: pd.DataFrame) -> str:
    """Return the unit of the runs' sizes: "words", or another that all runs have as their reference."""
    references = set(runs["reference"])
    return str(references.pop()) if len(references) == 1 and references < _UNITS else "words"


def sized(size: str, unit: str) -> str:
    """Add the unit to a size: "125k words"; one that names its unit, such as "4k sentences", stays as it is."""
    return readable_size(size if " " in size else f"{size} {unit}")


def score_labels(study: Study, benchmark: str | None = None) -> list[str]:
    """Return the labels of a study's scores, pairs first: "blimp", "blimp+context-eos-32", "cprag".

    `benchmark`: of this one only. Models without a place on a curve count too. Raises RunError if there are none.
    """
    labels = {label for run in [*study.runs.index, *study.unplaced.index] for label in labels_of(study, run)}
    of = {label: label.partition("+")[0] for label in labels}
    chosen = sorted(label for label in labels if benchmark in (None, of[label]))
    if not chosen:
        there = f"; scores there: {', '.join(sorted(labels))}" if labels else ""
        wanted = f"benchmark={benchmark}" if benchmark else "a benchmark"
        raise RunError(f"study={study.name}: no run has scores of {wanted}{there}; python -m eval study={study.name}")
    return sorted(chosen, key=is_of_pairs, reverse=True)


def is_of_own_pairs(label: str) -> bool:
    """True if each run was scored on generated pairs of its own sample's words."""
    return bool(_OWN_PAIRS.search(label))


def labels_of(study: Study, run: str) -> list[str]:
    """Return the names of a run's folders of scores."""
    if run in study.scores:
        return list(study.scores[run])
    return [path.name for path in study.folders[run].scores("").glob("*") if path.is_dir()]


def methods_of(study: Study, run: str, label: str) -> list[str]:
    """Return the methods by which a run's exported model has scores of a benchmark of pairs."""
    if run in study.scores:
        return list(study.scores[run].get(label, {}))
    paths = sorted(study.folders[run].scores(label).glob("*.parquet"))
    return [path.stem for path in paths if path.name not in (ITEMS_FILE, TOKENS_FILE) and "@" not in path.stem]


def methods_by_run(available: Mapping[str, Collection[str]], method: str) -> dict[str, str]:
    """Return the method that judges each run: `method`, or its counterpart of masked models; `available`: by run."""
    chosen = {}
    for run, methods in available.items():
        name = method if method in methods else OF_MASKED.get(method)
        if name in methods:
            chosen[run] = str(name)
    return chosen


def judgements(study: Study, label: str, method: str, ties: str) -> Judgements:
    """Load one method's scores of a benchmark for every run that has them; the others are listed in `problems`.

    Masked models without them are judged by the method that stands for it (`OF_MASKED`).

    Raises RunError if no run has the method, if a file has other pairs than its benchmark, or if runs were scored on
    different versions of the benchmark or, of one tokenizer, under different policies.
    """
    available = {run: methods_of(study, run, label) for run in study.runs.index}
    methods = methods_by_run(available, method)
    if not methods:
        raise no_such_scores(study, label, method, {name for names in available.values() for name in names})
    paths = {run: score_path(study.folders[run].scores(label), name) for run, name in methods.items()}
    metadata = {run: read_metadata(path) for run, path in paths.items()}
    for run, record in metadata.items():
        _check_model(study.folders[run], paths[run], record)
    digests = {run: record["benchmark"]["digest"] for run, record in metadata.items()}
    if is_of_own_pairs(label):
        return _of_own_pairs(study, label, methods, ties, digests)
    digest = one_digest(label, digests)
    folder = paths[next(iter(metadata))].parent
    items, _ = read_items(folder)
    pairs = items.loc[judged_pairs(method, items), ["pair_id", "paradigm", "phenomenon"]]
    pairs = pairs.sort_values(["phenomenon", "paradigm", "pair_id"], ignore_index=True)
    keys = pd.MultiIndex.from_frame(pairs[["paradigm", "pair_id"]])
    if keys.has_duplicates:
        raise RunError(f"{folder}: items.parquet names a pair twice: {keys[keys.duplicated()][0]}")
    shape = (len(metadata), len(pairs))
    right, tie, unk = np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.zeros(shape, np.bool_)
    over: dict[str, None] = {}
    unequal: dict[str, float] = {}
    for row, run in enumerate(metadata):
        scores, _ = read_scores(paths[run])
        repeats = repeats_of(scores)
        over[repeats_text(scores)] = None
        unequal[run] = float((scores["good_unk"] != scores["bad_unk"]).mean())
        for part in (scores[rows] for rows in repeats.values()):
            order = keys.get_indexer(pd.MultiIndex.from_frame(part[["paradigm", "pair_id"]]))
            if len(order) != len(keys) or (np.sort(order) != np.arange(len(keys))).any():
                problem = f"{len(order)} rows that are not the {len(keys)} pairs of {label} that {method} judges"
                raise RunError(f"{paths[run]}: {problem}; remove the file to score again")
            good, bad = part["good"].to_numpy(), part["bad"].to_numpy()
            right[row, order] += outcome(good, bad, ties)
            tie[row, order] += tied(good, bad)
            unk[row, order] |= ~unk_free(part).to_numpy()
        right[row] /= len(repeats)
        tie[row] /= len(repeats)
    policies = {run: record["policy"] | record["parameters"] for run, record in metadata.items()}
    judged = judged_by(study, label, Scores(digest, methods, policies, pairs, right, tie, unk, over))
    judged.unequal = pd.Series(unequal)
    return judged


def _check_model(folder: RunFolder, path: Path, metadata: Mapping[str, Any]) -> None:
    """Raise RunError for scores of other weights than those of their run."""
    scored, own = metadata["model"]["digest"], folder.model_digest()
    if own is not None and scored != own:
        problem = f"scores of another model (digest {scored[:8]}) than the run's ({own[:8]})"
        raise RunError(f"{path}: {problem}; remove the file to score again")


def _of_own_pairs(
    study: Study, label: str, methods: Mapping[str, str], ties: str, digests: Mapping[str, str]
) -> Judgements:
    """Return judgements of paradigms of runs that were each scored on pairs of their own sample's words."""
    tables, policies = {}, {}
    over: dict[str, None] = {}
    for run in digests:
        folder = study.folders[run].scores(label)
        rows, metadata = read_scores(score_path(folder, methods[run]))
        items, _ = read_items(folder)
        rows = rows.merge(items[["paradigm", "pair_id", "phenomenon"]], on=["paradigm", "pair_id"])
        table = pd.DataFrame(paradigm_shares(rows), columns=list(PARADIGM_COLUMNS))
        tables[run] = table.set_index("paradigm")
        policies[run] = metadata["policy"] | metadata["parameters"]
        over[repeats_text(rows)] = None
    shared = set.intersection(*(set(table.index) for table in tables.values()))
    if not shared:
        raise RunError(f"{label}: no paradigm has pairs in all {len(tables)} runs")
    missing = sorted(set().union(*(table.index for table in tables.values())) - shared)
    of_shared = [table[table.index.isin(shared)].reset_index() for table in tables.values()]
    digest = sha256_json(sorted(digests.items()))
    judged = judged_by(study, label, paradigm_scores(of_shared, ties, digest, methods, policies, over))
    left_out = f"; left out, as some runs have no pairs of them: {', '.join(missing)}" if missing else ""
    judged.notes.append(
        f"{benchmark_name(label)}: each run has pairs of its own words, so runs are compared by paradigm{left_out}"
    )
    return judged


def paradigm_scores(
    tables: Sequence[pd.DataFrame],
    ties: str,
    digest: str,
    methods: Mapping[str, str],
    policies: Mapping[str, Mapping[str, Any]],
    over: Collection[str],
) -> Scores:
    """Return scores by paradigm, of one table for each run (PARADIGM_COLUMNS), all on the same paradigms."""
    tables = [table.sort_values(["phenomenon", "paradigm"], ignore_index=True) for table in tables]
    right, tie, unk = (np.stack([table[name].to_numpy(np.float64) for table in tables]) for name in SHARES)
    n_pairs = np.min([table["pairs"] for table in tables], axis=0)
    pairs = tables[0][["paradigm", "phenomenon"]].assign(n_pairs=n_pairs)
    return Scores(digest, methods, policies, pairs, right + tie * TIE_WORTH[ties], tie, unk, over)


def judged_by(study: Study, label: str, scores: Scores) -> Judgements:
    """Return the judgements of the runs in `scores.policies`, in its order; raises the error of `one_policy`."""
    policies, pairs = scores.policies, scores.pairs
    method = Counter(scores.methods.values()).most_common(1)[0][0]
    runs = study.runs.loc[list(policies)].copy()
    unscored = [run for run in study.runs.index if run not in policies]
    problems = with_problems(study.problems, unscored, UNSCORED, f"no {method} scores of {label}")
    of_policy = one_policy(f"study={study.name}: {method} scores of {label}", runs, policies)
    by_group = {str(runs.at[run, "group"]): dict(policy) for run, policy in policies.items()}
    methods = {str(runs.at[run, "group"]): name for run, name in scores.methods.items()}
    notes = [*study.notes, *of_policy, *_two_methods(methods), *uneven(runs)]
    if "pair_id" in pairs and (faulty := faulty_note(label.partition("+")[0], pairs)):
        notes.append(f"{benchmark_name(label)}: {faulty}.")
    over = " or ".join(filter(None, scores.over))
    arrays = scores.outcome, scores.tie, scores.unk
    return Judgements(
        label, method, scores.digest, by_group, runs, pairs, *arrays, problems, notes, over, methods=methods
    )


def _two_methods(methods: Mapping[str, str]) -> list[str]:
    """Note the groups that were judged by the counterpart of the others' method; `methods`: of groups."""
    names = sorted(set(methods.values()))
    if len(names) < 2:
        return []
    of = "; ".join(f"{name} for {' | '.join(sorted(g for g in methods if methods[g] == name))}" for name in names)
    return [
        f"Not one method: {of}. Masked models have no log-probability of a sentence (lp), only the sum of those of "
        "each token given all others (pll). Compare their levels with care."
    ]


def no_such_scores(study: Study, label: str, method: str, available: Collection[str]) -> RunError:
    """Return the error for a method that no run has."""
    return RunError(
        f"analysis.method={method}: no run of study={study.name} has such scores of {label}; "
        f"methods there: {', '.join(sorted(available)) or 'none'}"
    )


def one_digest(label: str, run_digests: Mapping[str, str]) -> str:
    """Return the benchmark's digest of all runs. Raises RunError if they differ."""
    digests: dict[str, list[str]] = {}
    for run, digest in run_digests.items():
        digests.setdefault(digest, []).append(run)
    if len(digests) > 1:
        versions = "; ".join(f"{digest[:8]} in {_some(runs)}" for digest, runs in digests.items())
        problem = f"runs were scored on different versions of the benchmark ({versions})"
        raise RunError(f"{label}: {problem}; score again those of one")
    return next(iter(digests))


def one_policy(subject: str, runs: pd.DataFrame, policies: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return notes on fields of the policy that differ between tokenizers.

    Raises RunError if one differs between runs of one tokenizer.
    """
    table = pd.DataFrame.from_dict({run: flatten(policy) for run, policy in policies.items()}, orient="index")
    table = table.astype(object).map(written)
    notes = []
    for key in table:
        values = sorted(set(table[key]))
        if varies(table[key], [runs["tokenizer"]]):
            where = "; ".join(f"{value} in {_some(table.index[table[key] == value])}" for value in values)
            problem = f"runs were scored under different policies ({key}: {where})"
            raise RunError(f"{subject}: {problem}; score again those of one")
        if len(values) > 1:
            groups = {value: sorted(set(runs.loc[table[key] == value, "group"])) for value in values}
            named = "; ".join(f"{value} for {' | '.join(of)}" for value, of in groups.items())  # names hold commas
            notes.append(f"Not one scoring policy: {key} is {named}. Compare their levels with care.")
    return notes


def _some(runs: Sequence[Any]) -> str:
    return str(runs[0]) + (f" and {len(runs) - 1} more" if len(runs) > 1 else "")


def uneven(runs: pd.DataFrame) -> list[str]:
    """Note each group without some of its seeds at a size, unless every size has one run."""
    notes, unit = [], unit_of(runs)
    for group, part in runs.groupby("group", sort=True):
        seeds = set(part["seed"])
        missing = []
        for size, at_size in part.groupby("size", sort=False):
            if absent := sorted(seeds - set(at_size["seed"])):
                plural = "s" if len(absent) > 1 else ""
                missing.append(f"{sized(str(size), unit)} with seed{plural} {', '.join(map(str, absent))}")
        if missing and part["size"].duplicated().any():
            notes.append(f"{group}: no scored run at {'; at '.join(missing)}.")
    return notes
