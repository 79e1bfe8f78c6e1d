"""Collection of a study: from run folders and score files to the tables of the analysis.

A *group* is a curve: runs that differ in nothing but size and seed. Any other difference is in the group's name.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from pairscale.errors import RunError
from pairscale.sizes import format_size, parse_size
from train.runs.axes import base_labels, in_order, labels
from train.runs.folder import DONE, RunFolder, study_runs
from train.runs.interventions import constructions, intervention_of
from train.runs.metrics import exported_validation

MISSING = "missing"
DAMAGED = "damaged"
PRETRAINED = "pretrained"
UNTRAINED = "untrained"
UNSCORED = "unscored"
PROBLEMS = ("run", "status", "reason")
_ONE_TRAINING = (
    "The points of a curve are checkpoints of one training, by tokens seen, repeats included. They depend on each "
    "other, so a curve has no interval, test or rank: only several trainings would show what another initialisation "
    "or another order of the text changes."
)
_NO_PLACE = "comes trained on a text whose size is not known, so it has no place on a curve"

_COUNTED = {"sentences": " sentences", "characters": " characters"}  # unit of a size other than words
_COLUMNS = [
    "model", "tokenizer", "corpus", "size", "reference", "seed", "nested", "sample_words", "words_seen", "parameters",
    "words_per_s", "wall_s", "overlap", "valid_ppl", "valid_oov_rate", "vocabulary", "training", "filter", "action",
    "dose", "manifest", "group", "base",
]  # fmt: skip
_COMES_TRAINED = {"path", "checkpoint"}  # keys of models that were not trained here
PIECES, OF_TEXT, OF_SAMPLE = "pieces", "text", "sample"  # what a tokenizer knows: pieces, or words of which text
_OF_WORDS = {"word", "whitespace", "jieba"}  # kinds of tokenizers that know whole words
_ANY_SIZE = {"sample": {"size": "1"}}  # `labels` reads a size


@dataclass
class Study:
    """The runs of a study.

    runs: one row per run that is done, indexed by run id: study, model, tokenizer, corpus, size ("125k", "4k
    sentences"), reference, seed, nested, sample_words, words_seen, parameters, words_per_s, wall_s, valid_ppl (per
    reference word), valid_oov_rate, overlap (share of text that two samples of this size have in common), vocabulary
    (PIECES, OF_TEXT or OF_SAMPLE), training (the run itself, or the model whose revision it is), filter, action and
    dose (of the intervention in its text; "", none and 1 for the full text), group, base (the group without the
    intervention: what treatment, control and full text have in common), manifest.
    problems: one row per run that is wanted but cannot be used: run, status, reason.
    baselines: runs without training (recipe.budget.epochs=0) and on shuffled text (sample.shuffle), columns as of
    `runs` and baseline (UNTRAINED, or the value of sample.shuffle).
    unplaced: pretrained models without a place on the curves, indexed by run id: group, manifest. Tables that need no
    size of text show them.
    folders: of a study read from files. scores: of a tracked one (eval/scores/record.py).
    notes: sentences that a reader of the curves has to know.
    """

    name: str
    runs: pd.DataFrame
    problems: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    config: dict[str, dict[str, Any]] = field(default_factory=dict)
    folders: dict[str, RunFolder] = field(default_factory=dict)
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    unplaced: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["group", "manifest"]))
    baselines: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*_COLUMNS, "baseline"]))


def with_problems(problems: pd.DataFrame, runs: Iterable[str], status: str, reason: str) -> pd.DataFrame:
    """Return `problems` with a row for each of `runs`, all of one status and reason."""
    rows = [{"run": run, "status": status, "reason": reason} for run in runs]
    return pd.concat([problems, pd.DataFrame(rows, columns=problems.columns)], ignore_index=True)


@dataclass(frozen=True)
class RunRecord:
    """The resolved configuration and manifest of a run and, if done, valid_ppl and valid_oov_rate of its model."""

    config: dict[str, Any]
    manifest: dict[str, Any]
    validation: dict[str, float | None] = field(default_factory=dict)

    @property
    def pretrained(self) -> bool:
        """True for a model that was not trained here."""
        return not _COMES_TRAINED.isdisjoint(self.config["model"])


def collect(runs: str | Path, study: str, expected: Mapping[str, str] | None = None) -> Study:
    """Collect the runs of a study; `expected`: run id -> point of the grid, for each requested run.

    A run whose files are damaged is one of the study's problems. Raises RunError if there is no such study or no run
    is done; `runs` is empty if only baselines and models without a place on a curve are.
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
    """Build the study of `records`, by run id; `problems`: those of other runs, `where`: the source, for messages.

    Raises RunError if no run is done, or if two pretrained models of different names have the same weights.
    """
    configs = {name: record.config for name, record in records.items()}
    _check_weights(study, records)
    rows, revisions, unplaced, problems = [], [], [], [dict(problem) for problem in problems]
    for name, record in records.items():
        status = record.manifest.get("status", "no manifest")
        if status != DONE:
            problems.append({"run": name, "status": status, "reason": record.manifest.get("reason") or ""})
        elif not record.pretrained:
            rows.append(_run_row(f"{where}/{name}", name, record))
        elif record.manifest.get("tokens"):
            revisions.append(_revision_row(name, record))
            configs[name] = _identity(record.config, "dtype", "begin", "load_in_4bit")
        else:
            unplaced.append(name)
            problems.append({"run": name, "status": PRETRAINED, "reason": _NO_PLACE})
    kinds = {row["run"]: _baseline(row, configs[row["run"]]) for row in rows}
    of_no_curve = [row for row in rows if kinds[row["run"]]]
    rows = [row for row in rows if not kinds[row["run"]]]
    if rows:  # words of a sample and tokens seen cannot share an axis
        reason = "its curve is over tokens of training text: give such models a study of their own"
        problems += [{"run": row["run"], "status": PRETRAINED, "reason": reason} for row in revisions]
        unplaced += [row["run"] for row in revisions]
    rows = rows or revisions
    problems += _missing(expected, [*records, *(problem["run"] for problem in problems)])
    if not rows and not unplaced and not of_no_curve:
        examples = [p["reason"] if p["status"] == DAMAGED else f"{p['run']} {p['status']}" for p in problems[:5]]
        listed = "; ".join(examples) or "the folder is empty"
        raise RunError(f"study={study}: no run in {where} is done ({listed}); train with python -m train")
    problem_table = pd.DataFrame(problems, columns=list(PROBLEMS))
    beside = _unplaced({name: records[name] for name in unplaced})
    baselines = pd.DataFrame(of_no_curve, columns=["run", *_COLUMNS]).set_index("run")
    baselines["group"] = baselines["baseline"] = [kinds[run] for run in baselines.index]
    baselines.insert(0, "study", study)
    if not rows:
        none = pd.DataFrame(columns=["study", *_COLUMNS])
        return Study(study, none, problem_table, [], configs, unplaced=beside, baselines=baselines)
    table = pd.DataFrame(rows).set_index("run")
    table.insert(0, "study", study)
    table["group"], notes = group_names(table, configs)
    table = with_interventions(table, configs)
    if rows is revisions:
        notes.append(_ONE_TRAINING)
    return Study(study, by_group(table), problem_table, notes, configs, unplaced=beside, baselines=baselines)


def group_names(table: pd.DataFrame, configs: Mapping[str, Mapping[str, Any]]) -> tuple[pd.Series, list[str]]:
    """Name the groups of runs (rows with `manifest`, indexed as `configs` is); return notes on what names leave out."""
    names, notes = labels({str(run): configs[str(run)] for run in table.index})
    groups, other_texts = _by_text(pd.Series(names), table["manifest"], configs)
    return groups, notes + other_texts


def with_interventions(table: pd.DataFrame, configs: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Add filter, action, dose and base, the group without its intervention, to runs (rows as for `group_names`)."""
    interventions = {str(run): intervention_of(configs[str(run)]) for run in table.index}
    bases, _ = base_labels({run: configs[run] for run in interventions})
    return table.assign(
        filter=pd.Series(constructions(interventions)[0]),
        action=pd.Series({run: of.action for run, of in interventions.items()}),
        dose=pd.Series({run: of.dose for run, of in interventions.items()}),
        base=_by_text(pd.Series(bases), table["manifest"], configs)[0],
    )


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
            **{part: config[part]["name"] for part in ("model", "tokenizer", "corpus")},
            "size": format_size(parse_size(config["sample"]["size"])) + _COUNTED.get(config["sample"]["count"], ""),
            "reference": config["corpus"]["reference"],
            "seed": int(config["seed"]),
            "nested": bool(config["sample"]["nested"]),
            "sample_words": int(manifest["sample_words"]),
            **{key: manifest.get(key) for key in ("words_seen", "parameters", "words_per_s", "wall_s")},
            "overlap": manifest["corpus"]["sample"]["overlap"],
            **{key: known.get(key, math.nan) for key in ("valid_ppl", "valid_oov_rate")},
            "vocabulary": _vocabulary(config),
            "training": name,
            "manifest": manifest,
        }
    except KeyError as error:
        raise RunError(f"{where}: {error} is neither in config.yaml nor in manifest.json") from None


def _baseline(row: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Return which baseline a run is, "" for a run of a curve."""
    return UNTRAINED if row["words_seen"] == 0 else str(config["sample"].get("shuffle") or "")


def _revision_row(name: str, record: RunRecord) -> dict[str, Any]:
    """Return the row of a pretrained model at a known number of tokens seen."""
    model, tokens = record.config["model"], int(record.manifest["tokens"])
    return {
        **dict.fromkeys(_COLUMNS),
        **dict.fromkeys(("overlap", "valid_ppl", "valid_oov_rate"), math.nan),
        "run": name, "model": model["name"], "tokenizer": "its own", "corpus": "its own", "seed": 0, "nested": False,
        "size": f"{_rounded(tokens)} tokens", "sample_words": tokens, "reference": "tokens",
        "vocabulary": PIECES, "training": model["path"], "manifest": record.manifest,
    }  # fmt: skip


def _check_weights(study: str, records: Mapping[str, RunRecord]) -> None:
    """Raise RunError if models of different names have the same weights (manifest: digest).

    Several revisions on the Hugging Face Hub may hold the same file; a curve of them would be one point.
    """
    named: dict[str, tuple[str, str]] = {}
    for run, record in records.items():
        digest = record.manifest.get("digest")
        if not digest or record.manifest.get("status") != DONE or not record.pretrained:
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


def _identity(config: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return what distinguishes the curve of a pretrained model: its path, and `keys` of its configuration."""
    model = config["model"]
    path = model.get("path") or model["checkpoint"]
    return {"model": {key: model.get(key) for key in keys} | {"path": path, "name": Path(path).name}, **_ANY_SIZE}


def _unplaced(records: Mapping[str, RunRecord]) -> pd.DataFrame:
    """Return Study.unplaced: models by the last part of their path, and by what distinguishes two of one name."""
    keys = ("revision", "dtype", "begin", "load_in_4bit")
    groups, _ = labels({name: _identity(record.config, *keys) for name, record in records.items()})
    rows = [{"run": name, "group": groups[name], "manifest": record.manifest} for name, record in records.items()]
    return pd.DataFrame(rows, columns=["run", "group", "manifest"]).set_index("run")


def _rounded(count: int) -> str:
    """Format tokens: 2.097B; four digits distinguish the revisions of a model."""
    for letter, unit in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= unit:
            return f"{count / unit:.4g}{letter}"
    return str(count)


def _missing(expected: Mapping[str, str], known: Sequence[str]) -> list[dict[str, str]]:
    """List the runs of the declared grid without a folder, and similar ones under another configuration."""
    problems = []
    for run, point in expected.items():
        if run not in known:
            like = [other for other in known if other.rpartition("-")[0] == run.rpartition("-")[0]]
            reason = f"{', '.join(like)} has another configuration than requested" if like else ""
            problems.append({"run": point, "status": MISSING, "reason": reason})
    return problems


def _by_text(
    groups: pd.Series, manifests: pd.Series, configs: Mapping[str, Mapping[str, Any]]
) -> tuple[pd.Series, list[str]]:
    """Add the digest of the text or tokenizer to group names where runs of one group differ in it; return notes.

    A tokenizer fitted on each sample, as an open vocabulary is, differs by design.
    """
    notes = []
    for part in ("text", "tokenizer"):
        digests = manifests.map(lambda manifest, part=part: manifest.get("corpus", {}).get(part, "")[:8])
        if part == "tokenizer":
            digests[[fitted_on_samples(configs[str(run)]) for run in digests.index]] = ""
        if varies(digests, [groups]):
            groups = groups + f", {part} " + digests
            notes.append(f"Runs of one name were trained on different {part}s; each {part} has a curve of its own.")
    return groups, notes


def _vocabulary(config: Mapping[str, Any]) -> str:
    if config["tokenizer"].get("kind") not in _OF_WORDS:
        return PIECES
    return OF_SAMPLE if fitted_on_samples(config) else OF_TEXT


def fitted_on_samples(config: Mapping[str, Any]) -> bool:
    """Return True if a run's tokenizer, or its vocabulary, is that of its own sample."""
    fit_on = config.get("tokenizer", {}).get("fit_on")
    return bool(fit_on == "sample" or config["model"].get("vocabulary") == "open")


def varies(values: pd.Series, by: list[pd.Series]) -> bool:
    """True if `values` differ within a group of `by`."""
    return bool((values.groupby(by).nunique() > 1).any())
