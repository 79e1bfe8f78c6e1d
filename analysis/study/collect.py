"""Collection of a study: from run folders and score files to the tables of the analysis.

A *group* is a curve: runs that differ in nothing but size and seed. Whatever else differs
between runs of a study (model, tokenizer, corpus, recipe, any other key) makes another group and is in its name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from pairscale.errors import RunError
from pairscale.sizes import format_size, parse_size
from train.runs.axes import in_order, labels
from train.runs.folder import DONE, RunFolder, study_runs
from train.runs.metrics import exported_validation

MISSING = "missing"
DAMAGED = "damaged"
PRETRAINED = "pretrained"
UNTRAINED = "untrained"
PROBLEMS = ("run", "status", "reason")
_ONE_TRAINING = (
    "The points of a curve are checkpoints of one training, by tokens seen, repeats included. They depend on each "
    "other, so a curve has no interval, test or rank: only several trainings would show what another initialisation "
    "or another order of the text changes."
)
_NO_PLACE = "comes trained on a text whose size is not known, so it has no place on a curve"

_COUNTED = {"sentences": " sentences", "characters": " characters"}  # what a size counts, where it is not words
_COLUMNS = [
    "model", "tokenizer", "corpus", "size", "reference", "seed", "nested", "sample_words", "words_seen", "parameters",
    "words_per_s", "wall_s", "overlap", "valid_ppl", "valid_oov_rate", "training", "manifest", "group",
]  # fmt: skip
_COMES_TRAINED = {"path", "checkpoint"}  # keys that only models have which were not trained here


@dataclass
class Study:
    """The runs of a study.

    runs: one row per run that is done, indexed by run id: study, model, tokenizer, corpus, size ("125k", "4k
    sentences"), reference, seed, nested, sample_words, words_seen, parameters, words_per_s, wall_s, valid_ppl (per
    reference word), valid_oov_rate, overlap (share of text that two samples of
    this size have in common), training (what the run is a checkpoint of: itself, or the model whose revision it is),
    group, manifest.
    problems: one row per run that is wanted but cannot be used: run, status, reason.
    untrained: runs of no training (recipe.budget.epochs=0), rows as of `runs` without a place on a curve.
    unplaced: models that come trained and have no place on the curves, indexed by run id: group, manifest. What needs
    no size of text (a diagnostic's tables) shows them.
    notes: sentences that a reader of the curves has to know.
    """

    name: str
    runs: pd.DataFrame
    problems: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    config: dict[str, dict[str, Any]] = field(default_factory=dict)
    folders: dict[str, RunFolder] = field(default_factory=dict)  # of a study that is read from files
    scores: dict[str, dict[str, Any]] = field(
        default_factory=dict
    )  # of one that was tracked: see eval/scores/record.py
    unplaced: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["group", "manifest"]))
    untrained: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_COLUMNS))


@dataclass(frozen=True)
class RunRecord:
    """The resolved configuration and manifest of a run and, if done, valid_ppl and valid_oov_rate of its model."""

    config: dict[str, Any]
    manifest: dict[str, Any]
    validation: dict[str, float | None] = field(default_factory=dict)


def collect(runs: str | Path, study: str, expected: Mapping[str, str] | None = None) -> Study:
    """Collect the runs of a study; `expected` (of requested runs) are those that there should be.

    A run whose files are damaged is one of its problems. Raises RunError when there is no such study or no
    run is done. Where all that is done comes trained and has no place on a curve, `runs` is empty.
    """
    folders = {folder.path.name: folder for folder in study_runs(runs, study)}
    records, damaged = {}, []
    for name, folder in folders.items():
        try:
            records[name] = _read(folder)
        except RunError as error:  # of this run's files: the others can be analysed
            damaged.append({"run": name, "status": DAMAGED, "reason": str(error)})
    assembled = assemble(study, records, expected or {}, str(Path(runs) / study), damaged)
    assembled.folders = folders
    return assembled


def assemble(
    study: str,
    records: Mapping[str, RunRecord],
    expected: Mapping[str, str],
    where: str,
    problems: Sequence[Mapping[str, str]] = (),
) -> Study:
    """Return the study of all known runs, by run id, with `problems` of others.

    Raises RunError when none is done, and where two pretrained models of different names have the same weights.
    """
    configs = {name: record.config for name, record in records.items()}
    _check_weights(study, records)
    rows, revisions, unplaced, problems = [], [], [], [dict(problem) for problem in problems]
    for name, record in records.items():
        manifest = record.manifest
        status = manifest.get("status", "no manifest")
        if status == DONE and not _COMES_TRAINED.isdisjoint(configs[name]["model"]):
            if manifest.get("tokens"):
                revisions.append(_revision_row(name, configs[name], manifest))
                configs[name] = _revision_config(configs[name])
            else:
                unplaced.append(name)
                problems.append({"run": name, "status": PRETRAINED, "reason": _NO_PLACE})
        elif status == DONE:
            rows.append(_run_row(f"{where}/{name}", name, record))
        else:
            problems.append({"run": name, "status": status, "reason": manifest.get("reason") or ""})
    untrained = [row for row in rows if row["words_seen"] == 0]
    rows = [row for row in rows if row["words_seen"] != 0]
    if rows:  # words of a sample and tokens seen are not one x
        reason = "its curve is over tokens of training text: give such models a study of their own"
        problems += [{"run": row["run"], "status": PRETRAINED, "reason": reason} for row in revisions]
        unplaced += [row["run"] for row in revisions]
    elif not revisions:
        problems += [{"run": row["run"], "status": UNTRAINED, "reason": "a baseline of no curve"} for row in untrained]
    rows = rows or revisions
    problems += _missing(expected, [*records, *(problem["run"] for problem in problems)])
    if not rows and not unplaced:
        examples = [p["reason"] if p["status"] == DAMAGED else f"{p['run']} {p['status']}" for p in problems[:5]]
        listed = "; ".join(examples) or "the folder is empty"
        raise RunError(f"study={study}: no run in {where} is done ({listed}); train with python -m train")
    problem_table = pd.DataFrame(problems, columns=list(PROBLEMS))
    beside = _unplaced({name: records[name] for name in unplaced})
    if not rows:
        return Study(study, pd.DataFrame(columns=_COLUMNS), problem_table, [], configs, unplaced=beside)
    table = pd.DataFrame(rows).set_index("run")
    table.insert(0, "study", study)
    table["group"], notes = group_names(table, configs)
    if rows is revisions:
        notes.append(_ONE_TRAINING)
    baselines = pd.DataFrame(untrained, columns=["run", *_COLUMNS]).set_index("run").assign(group=UNTRAINED)
    baselines.insert(0, "study", study)
    return Study(study, by_group(table), problem_table, notes, configs, unplaced=beside, untrained=baselines)


def group_names(table: pd.DataFrame, configs: Mapping[str, Mapping[str, Any]]) -> tuple[pd.Series, list[str]]:
    """Name the groups of runs (rows with `manifest`, indexed as `configs` is); return notes on what names leave out."""
    names, notes = labels({str(run): configs[str(run)] for run in table.index})
    groups, other_texts = _by_text(pd.Series(names), table["manifest"], configs)
    return groups, notes + other_texts


def by_group(table: pd.DataFrame) -> pd.DataFrame:
    """Sort runs by group; those of a group stay in order."""
    place = {group: number for number, group in enumerate(in_order(table["group"]))}
    return table.iloc[table["group"].map(place).argsort(kind="stable")]


def _read(folder: RunFolder) -> RunRecord:
    config, manifest = folder.read_config(), folder.read_manifest()
    if manifest.get("status") != DONE:
        return RunRecord(config, manifest)
    export = (config.get("recipe") or {}).get("export", "last")
    return RunRecord(config, manifest, exported_validation(folder.metrics, export))


def _run_row(where: str, name: str, record: RunRecord) -> dict[str, Any]:
    config, manifest = record.config, record.manifest
    known = {key: math.nan if value is None else value for key, value in record.validation.items()}
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
            "valid_ppl": known.get("valid_ppl", math.nan),
            "valid_oov_rate": known.get("valid_oov_rate", math.nan),
            "training": name,
            "manifest": manifest,
        }
    except KeyError as error:
        raise RunError(f"{where}: {error} is neither in config.yaml nor in manifest.json") from None


def _revision_row(name: str, config: dict[str, Any], manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a model that comes trained, at a known number of tokens seen."""
    unknown = dict.fromkeys(("words_seen", "parameters", "words_per_s", "wall_s"))
    return {
        "run": name,
        "model": config["model"]["name"],
        "tokenizer": "its own",
        "corpus": "its own",
        "size": f"{_rounded(manifest['tokens'])} tokens",
        "reference": "tokens",
        "seed": 0,
        "nested": False,
        "sample_words": int(manifest["tokens"]),
        **unknown,
        "overlap": math.nan,
        "valid_ppl": math.nan,
        "valid_oov_rate": math.nan,
        "training": config["model"]["path"],
        "manifest": manifest,
    }


def _check_weights(study: str, records: Mapping[str, RunRecord]) -> None:
    """Raise RunError where models of different names have the same weights (manifest: digest).

    On the Hugging Face Hub several revisions of a model may hold the same file, and would make a curve of one point.
    Models that differ in how they are read alone (dtype, begin symbol) share their weights by design.
    """
    named: dict[str, tuple[str, str]] = {}
    for run, record in records.items():
        digest = record.manifest.get("digest")
        if not digest or record.manifest.get("status") != DONE or _COMES_TRAINED.isdisjoint(record.config["model"]):
            continue
        model = record.config["model"]
        revision = model.get("revision")
        name = (model.get("path") or model["checkpoint"]) + (f" at revision {revision}" if revision else "")
        other, other_name = named.setdefault(digest, (run, name))
        if name != other_name:
            raise RunError(
                f"study={study}: {other_name} and {name} have the same weights (digest {digest[:8]}; runs {other} and "
                f"{run}): one model under two names cannot be two points; remove one of the runs"
            )


def _unplaced(records: Mapping[str, RunRecord]) -> pd.DataFrame:
    """Return Study.unplaced: models by the last part of their path, and by what distinguishes two of one name."""
    configs = {}
    for name, record in records.items():
        model = record.config["model"]
        source = model.get("path") or model["checkpoint"]
        identity = {key: model.get(key) for key in ("revision", "dtype", "begin", "load_in_4bit")}
        configs[name] = {"model": {**identity, "path": source, "name": Path(source).name}, "sample": {"size": "1"}}
    groups, _ = labels(configs)
    rows = [{"run": name, "group": groups[name], "manifest": record.manifest} for name, record in records.items()]
    return pd.DataFrame(rows, columns=["run", "group", "manifest"]).set_index("run")


def _rounded(count: int) -> str:
    """Format tokens: 2.097B; four digits distinguish the revisions of a model."""
    for letter, unit in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= unit:
            return f"{count / unit:.4g}{letter}"
    return str(count)


def _revision_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return what distinguishes curves of revisions: the model, at whatever revision."""
    identity = {key: config["model"].get(key) for key in ("path", "dtype", "begin", "load_in_4bit")}
    return {"model": {**identity, "name": Path(identity["path"]).name}, "sample": {"size": "1"}}


def _missing(expected: Mapping[str, str], there: Sequence[str]) -> list[dict[str, str]]:
    """List the runs of the declared grid without a folder, and similar ones under another configuration."""
    problems = []
    for run, point in expected.items():
        if run not in there:
            like = [other for other in there if other.rpartition("-")[0] == run.rpartition("-")[0]]
            reason = f"{', '.join(like)} has another configuration than requested" if like else ""
            problems.append({"run": point, "status": MISSING, "reason": reason})
    return problems


def _by_text(
    groups: pd.Series, manifests: pd.Series, configs: Mapping[str, Mapping[str, Any]]
) -> tuple[pd.Series, list[str]]:
    """Add the digest of the text or tokenizer to group names where runs of one group differ in it; return notes.

    A text that was replaced under its old name makes such groups.

    A tokenizer that is fitted on each sample, as an open vocabulary is, differs by design.
    """
    notes = []
    for what in ("text", "tokenizer"):
        digests = pd.Series(
            [
                manifest["corpus"][what][:8]
                if "corpus" in manifest and (what == "text" or not _fitted_on_samples(configs[str(run)]))
                else ""
                for run, manifest in manifests.items()
            ],
            index=manifests.index,
        )
        if varies(digests, [groups]):
            groups = groups + f", {what} " + digests
            notes.append(f"Runs of one name were trained on different {what}s; each {what} has a curve of its own.")
    return groups, notes


def _fitted_on_samples(config: Mapping[str, Any]) -> bool:
    return bool(config["tokenizer"]["fit_on"] == "sample" or config["model"].get("vocabulary") == "open")


def varies(values: pd.Series, by: list[pd.Series]) -> bool:
    return bool((values.groupby(by).nunique() > 1).any())
