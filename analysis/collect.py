"""From run folders and score files to the tables that everything else in the analysis is a function of.

A *group* is a curve: runs that differ in nothing but size and seed, scored under one policy. Whatever else differs
between runs of a study (model, tokenizer, corpus, recipe, any other key) makes another group and is in its name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import yaml

from corpora.config import format_size, parse_size
from corpora.errors import RunError
from eval.accuracy import outcome, unk_free
from eval.scores import judged_pairs, read_items, read_metadata, read_scores, score_path
from train.runs import DONE, RunFolder, study_runs

MISSING = "missing"
UNSCORED = "unscored"
PRETRAINED = "pretrained"

# Keys of a run's configuration that cannot make another curve: size and seeds, and what cannot change a number.
_NO_AXIS = ("seed", "sample.size", "sample.seed", "model.seed", "recipe.seed", "recipe.checkpoint_every")
_NO_AXIS_GROUPS = ("study", "paths", "logger", "trainer", "dry_run", "corpus.path", "corpus.url")
_COUNTED = {"sentences": " sentences", "characters": " characters"}  # what a size counts, where it is not words
_SCORING_GROUPS = ("benchmark", "method", "policy", "scoring", "ties", "analysis")
_COMES_TRAINED = {"path", "checkpoint"}  # keys that only models have which were not trained here
_NAMES = ("model.name", "tokenizer.name", "corpus.name", "corpus.reference", "recipe.name", "precision")


@dataclass
class Study:
    """The runs of a study.

    runs: one row per run that is done, indexed by run id: model, tokenizer, corpus, size ("125k", "4k
    sentences"), reference, seed, nested, sample_words, words_seen, parameters, words_per_s, wall_s, valid_ppl (per
    reference word), valid_oov_rate, overlap (share of text that two samples of
    this size have in common), group, manifest.
    problems: one row per run that is wanted but cannot be used: run, status, reason.
    notes: sentences that a reader of the curves has to know.
    """

    name: str
    runs: pd.DataFrame
    problems: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    config: dict[str, dict[str, Any]] = field(default_factory=dict)
    folders: dict[str, RunFolder] = field(default_factory=dict)


@dataclass
class Judgements:
    """Runs x pairs of one benchmark under one method.

    runs: R rows of Study.runs, with the policy in `group` where it differs.
    pairs: P rows pair_id, paradigm, phenomenon, sorted by phenomenon and paradigm.
    outcome: (R, P) what each pair adds to accuracy; tie, unk: (R, P) whether its two scores are equal, whether either
    sentence holds <unk>.
    """

    label: str
    method: str
    digest: str
    policies: dict[str, dict[str, Any]]  # group -> its scoring policy and the method's parameters
    runs: pd.DataFrame
    pairs: pd.DataFrame
    outcome: npt.NDArray[np.float32]
    tie: npt.NDArray[np.bool_]
    unk: npt.NDArray[np.bool_]
    problems: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    def select(self, pairs: npt.NDArray[np.bool_]) -> Judgements:
        """The same on some of the pairs: `pairs` (P,) says which."""
        cut = {name: getattr(self, name)[:, pairs] for name in ("outcome", "tie", "unk")}
        kept = self.pairs[pairs].reset_index(drop=True)
        return Judgements(
            self.label, self.method, self.digest, self.policies, self.runs, kept, problems=self.problems, **cut
        )

    @property
    def unit(self) -> str:
        """What the curves' x counts: "words", or "characters" where they are the reference of all runs."""
        return "characters" if set(self.runs["reference"]) == {"characters"} else "words"

    @property
    def unk_free(self) -> npt.NDArray[np.bool_]:
        """(P,) pairs without <unk> in any of the runs compared."""
        return np.logical_not(self.unk.any(axis=0))


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted keys of a nested configuration."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def collect(runs: str | Path, study: str, expected: Mapping[str, str] | None = None) -> Study:
    """The runs of a study; `expected` (conf.expected_runs) declares those that there should be.

    Raises RunError when there is no such study, a manifest is broken, or no run is done.
    """
    folders = {folder.path.name: folder for folder in study_runs(runs, study)}
    configs = {name: _read_config(folder) for name, folder in folders.items()}
    rows, problems = [], []
    for name, folder in folders.items():
        manifest = folder.read_manifest()
        status = manifest.get("status", "no manifest")
        if status == DONE and not _COMES_TRAINED.isdisjoint(configs[name]["model"]):
            reason = "comes trained on a text that is not ours, so it has no place on a curve"
            problems.append({"run": name, "status": PRETRAINED, "reason": reason})
        elif status == DONE:
            rows.append(_run_row(name, folder, configs[name], manifest))
        else:
            problems.append({"run": name, "status": status, "reason": manifest.get("reason") or ""})
    problems += _missing(expected or {}, list(folders))
    if not rows:
        listed = "; ".join(f"{p['run']} {p['status']}" for p in problems[:5]) or "the folder is empty"
        raise RunError(f"study={study}: no run in {Path(runs) / study} is done ({listed}); train with python -m train")
    table = pd.DataFrame(rows).set_index("run")
    labels, notes = group_labels({name: configs[name] for name in table.index})
    table["group"], other_texts = _by_text(labels, table["manifest"], configs)
    notes += other_texts
    return Study(study, table, pd.DataFrame(problems, columns=["run", "status", "reason"]), notes, configs, folders)


def _read_config(folder: RunFolder) -> dict[str, Any]:
    try:
        config = yaml.safe_load(folder.config.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(
            f"{folder.config}: not readable as YAML ({reason}); remove the run's folder to train it again"
        ) from None
    if not isinstance(config, dict):
        raise RunError(f"{folder.config}: no configuration of a run in it; remove the run's folder to train it again")
    return config


def _run_row(name: str, folder: RunFolder, config: dict[str, Any], manifest: dict[str, Any]) -> dict[str, Any]:
    try:
        return {
            "run": name,
            "model": config["model"]["name"],
            "tokenizer": config["tokenizer"]["name"],
            "corpus": config["corpus"]["name"],
            "size": format_size(parse_size(config["sample"]["size"])) + _COUNTED.get(config["sample"]["count"], ""),
            "reference": config["corpus"]["reference"],
            "seed": int(config["seed"]),
            "nested": bool(config["sample"]["nested"]),
            "sample_words": int(manifest["sample_words"]),
            "words_seen": manifest.get("words_seen"),
            "parameters": manifest.get("parameters"),
            "words_per_s": manifest.get("words_per_s"),
            "wall_s": manifest.get("wall_s"),
            "overlap": manifest["corpus"]["sample"]["overlap"],
            **_validation(folder, config),
            "manifest": manifest,
        }
    except KeyError as error:
        raise RunError(f"{folder.path}: {error} is neither in config.yaml nor in manifest.json") from None


def _validation(folder: RunFolder, config: dict[str, Any]) -> dict[str, float]:
    """Perplexity and OOV rate of the exported model, from metrics.csv: the best validation, or the last one."""
    none = {"valid_ppl": math.nan, "valid_oov_rate": math.nan}
    if not folder.metrics.exists():
        return none
    metrics = pd.read_csv(folder.metrics)
    validated = metrics[metrics["valid_ppl"].notna()]
    if validated.empty:
        return none
    best = (config.get("recipe") or {}).get("export") == "best"
    row = int(validated["valid_ppl"].argmin()) if best else -1
    return {name: float(validated[name].iloc[row]) for name in none}


def _missing(expected: Mapping[str, str], there: Sequence[str]) -> list[dict[str, str]]:
    """Runs of the declared grid that have no folder, and those that stand near them under another configuration."""
    problems = []
    for run, point in expected.items():
        if run not in there:
            like = [other for other in there if other.rpartition("-")[0] == run.rpartition("-")[0]]
            reason = f"{', '.join(like)} has another configuration than the experiment" if like else ""
            problems.append({"run": point, "status": MISSING, "reason": reason})
    return problems


def group_labels(configs: Mapping[str, Mapping[str, Any]]) -> tuple[pd.Series, list[str]]:
    """Name of each run's group: the model, then whatever else differs between runs of the same name so far.

    A key of the recipe that is one and the same at each size (a budget that grows with the text, say) does not cut a
    curve into pieces; it is noted. Returns the names by run id, and the notes.
    """
    table = pd.DataFrame.from_dict({run: flatten(config) for run, config in configs.items()}, orient="index")
    table = table.astype(object).map(_text)
    size = table["sample.size"].map(lambda text: format_size(parse_size(text)))
    label = table["model.name"].rename("group")
    notes = []
    keys = [key for key in table if not _ignored(str(key))]
    for key in sorted(keys, key=lambda key: (_NAMES.index(key) if key in _NAMES else len(_NAMES), key)):
        if not _varies(table[key], [label]):
            continue
        if str(key).startswith("recipe.") and key != "recipe.name" and not _varies(table[key], [label, size]):
            notes.append(f"{key} differs between sizes of one curve: {', '.join(sorted(set(table[key])))}.")
            continue
        label = label + ", " + (table[key] if str(key).endswith(".name") else f"{key}=" + table[key])
    return label, notes


def _by_text(
    groups: pd.Series, manifests: pd.Series, configs: Mapping[str, Mapping[str, Any]]
) -> tuple[pd.Series, list[str]]:
    """Group names with the digest of the text, or of the tokenizer, where runs of one group were trained on different
    ones (a text that was replaced under its old name), and notes on that.

    A tokenizer that is fitted on each sample differs by design.
    """
    notes = []
    for what in ("text", "tokenizer"):
        digests = pd.Series(
            [
                manifest["corpus"][what][:8]
                if what == "text" or configs[str(run)]["tokenizer"]["fit_on"] == "train"
                else ""
                for run, manifest in manifests.items()
            ],
            index=manifests.index,
        )
        if _varies(digests, [groups]):
            groups = groups + f", {what} " + digests
            notes.append(f"Runs of one name were trained on different {what}s; each {what} has a curve of its own.")
    return groups, notes


def _varies(values: pd.Series, by: list[pd.Series]) -> bool:
    return bool((values.groupby(by).nunique() > 1).any())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "null" if missing else json.dumps(value, default=str) if isinstance(value, list) else str(value)


def _ignored(key: str) -> bool:
    groups = (*_NO_AXIS_GROUPS, *_SCORING_GROUPS)
    return key in _NO_AXIS or any(key == group or key.startswith(f"{group}.") for group in groups)


def score_labels(study: Study, benchmark: str | None = None) -> list[str]:
    """Folders of scores that runs of the study have: "blimp", "blimp+context-eos-32"; of one benchmark if given.

    Raises RunError when there are none.
    """
    labels = {
        path.name for run in study.runs.index for path in study.folders[run].scores("").glob("*") if path.is_dir()
    }
    chosen = sorted(label for label in labels if benchmark is None or label.partition("+")[0] == benchmark)
    if not chosen:
        there = f"; scores there: {', '.join(sorted(labels))}" if labels else ""
        asked = f"benchmark={benchmark}" if benchmark else "any benchmark"
        raise RunError(f"study={study.name}: no run has scores of {asked}{there}; python -m eval study={study.name}")
    return chosen


def judgements(
    study: Study, label: str, method: str, ties: str, progress: Callable[[str], None] = lambda run: None
) -> Judgements:
    """Load one method's scores of a benchmark for every run that has them; the others are listed in `problems`.

    Runs under different policies become different groups. Raises RunError when no run has the method, when a file has
    other pairs than its benchmark, or when runs were scored on different versions of the benchmark.
    """
    paths = {run: score_path(study.folders[run].scores(label), method) for run in study.runs.index}
    scored = [run for run, path in paths.items() if path.exists()]
    unscored = [
        {"run": run, "status": UNSCORED, "reason": f"no {method} scores of {label}"}
        for run in paths
        if run not in scored
    ]
    if not scored:
        there = sorted(
            {path.stem for path in paths[study.runs.index[0]].parent.glob("*.parquet")} - {"items", "tokens"}
        )
        raise RunError(
            f"analysis.method={method}: no run of study={study.name} has such scores of {label}; "
            f"methods there: {', '.join(there) or 'none'}"
        )
    metadata = {run: read_metadata(paths[run]) for run in scored}
    digest = _one_digest(label, metadata)
    items, _ = read_items(paths[scored[0]].parent)
    pairs = items.loc[judged_pairs(method, items), ["pair_id", "paradigm", "phenomenon"]].sort_values(
        ["phenomenon", "paradigm", "pair_id"], ignore_index=True
    )
    keys = pd.MultiIndex.from_frame(pairs[["paradigm", "pair_id"]])
    if keys.has_duplicates:
        raise RunError(f"{paths[scored[0]].parent}: items.parquet names a pair twice: {keys[keys.duplicated()][0]}")
    shape = (len(scored), len(pairs))
    right, tie, unk = np.empty(shape, np.float32), np.empty(shape, np.bool_), np.empty(shape, np.bool_)
    for row, run in enumerate(scored):
        scores, _ = read_scores(paths[run])
        order = keys.get_indexer(pd.MultiIndex.from_frame(scores[["paradigm", "pair_id"]]))
        if len(order) != len(keys) or (np.sort(order) != np.arange(len(keys))).any():
            told = f"{len(order)} rows that are not the {len(keys)} pairs of {label} that {method} judges"
            raise RunError(f"{paths[run]}: {told}; remove the file to score again")
        good, bad = scores["good"].to_numpy(), scores["bad"].to_numpy()
        right[row, order] = outcome(good, bad, ties)
        tie[row, order] = good == bad
        unk[row, order] = ~unk_free(scores).to_numpy()
        progress(run)
    runs = study.runs.loc[scored].copy()
    policies = {run: metadata[run]["policy"] | metadata[run]["parameters"] for run in scored}
    runs["group"], notes = _by_policy(runs["group"], policies)
    by_group = {str(runs.at[run, "group"]): policy for run, policy in policies.items()}
    problems = pd.concat([study.problems, pd.DataFrame(unscored, columns=study.problems.columns)], ignore_index=True)
    notes = [*study.notes, *notes, *_uneven(runs)]
    return Judgements(label, method, digest, by_group, runs, pairs, right, tie, unk, problems, notes)


def _one_digest(label: str, metadata: Mapping[str, Mapping[str, Any]]) -> str:
    digests: dict[str, list[str]] = {}
    for run, found in metadata.items():
        digests.setdefault(found["benchmark"]["digest"], []).append(run)
    if len(digests) > 1:
        told = "; ".join(f"{digest[:8]} in {runs[0]} and {len(runs) - 1} more" for digest, runs in digests.items())
        raise RunError(
            f"{label}: runs were scored on different versions of the benchmark ({told}); score again those of one"
        )
    return next(iter(digests))


def _by_policy(groups: pd.Series, policies: Mapping[str, Mapping[str, Any]]) -> tuple[pd.Series, list[str]]:
    """Group names with the policy's fields in them where runs of one group differ, and notes on all that differs."""
    table = pd.DataFrame.from_dict({run: flatten(policy) for run, policy in policies.items()}, orient="index")
    table = table.astype(object).map(_text)
    notes = []
    for key in table:
        if table[key].nunique() > 1:
            told = "; ".join(
                f"{value}: {', '.join(sorted(set(groups[table[key] == value])))}" for value in sorted(set(table[key]))
            )
            notes.append(f"Not one scoring policy: {key} is {told}. Compare their levels with care.")
        if _varies(table[key], [groups]):
            groups = groups + f", {key}=" + table[key]
    return groups, notes


def _uneven(runs: pd.DataFrame) -> list[str]:
    """Notes on sizes that lack seeds which other sizes of the same group have."""
    notes = []
    for group, part in runs.groupby("group", sort=True):
        seeds = set(part["seed"])
        for size, at_size in part.groupby("size", sort=False):
            lacking = sorted(seeds - set(at_size["seed"]))
            if lacking:
                notes.append(f"{group}: no scored run at {size} with seed {', '.join(map(str, lacking))}.")
    return notes
