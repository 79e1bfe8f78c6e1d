"""The finished runs of studies, read from their folders: one row per run, the names of curves, and what is missing.

A curve is a set of runs that differ in nothing but size and seed. Whatever else differs is in its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.formats import rows_of
from corpora.ablation.config import NONE
from pairscale.errors import ConfigError, RunError, first_few
from pairscale.sizes import format_size, parse_size
from train.runs.axes import base_labels, in_order, labels
from train.runs.folder import DONE, RunFolder, study_runs
from train.runs.interventions import FULL_DOSE, constructions, intervention_of
from train.runs.metrics import exported_validation

# The columns that every table of a study begins with, and those that only `analysis.runs` has.
RUN_COLUMNS = (
    "study", "run", "curve", "model", "size", "sample_words", "seed", "sample", "nested", "unit", "baseline",
)  # fmt: skip
FURTHER_COLUMNS = (
    "tokenizer", "corpus", "reference", "overlap", "words_seen", "tokens", "parameters", "valid_ppl",
    "valid_pseudo_ppl", "valid_oov_rate", "words_per_s", "wall_s", "vocabulary", "construction", "action", "dose",
    "base",
)  # fmt: skip
PROBLEM_COLUMNS = ("study", "run", "status", "reason")
REMOVED_COLUMNS = (
    "construction", "action", "dose", "runs", "sentences", "of_sentences", "words", "of_words", "matching_sentences",
    "rewritten",
)  # fmt: skip
WORDS, CHARACTERS, TOKENS = "words", "characters", "tokens"  # units of `sample_words`
UNTRAINED = "untrained"

_TYPES = dict.fromkeys(("sample_words", "seed", "words_seen", "tokens", "parameters"), "Int64") | dict.fromkeys(
    ("curve", "construction", "action", "dose", "base"), "str"
)
_WHOLE_WORDS = {"word", "whitespace", "jieba"}  # kinds of tokenizers that know whole words
_GROUPS = ("model", "tokenizer", "corpus")  # groups of a configuration that a baseline shares with its curve
_LOADED = ("dtype", "begin", "load_in_4bit")  # how a model that comes trained is loaded


@dataclass(frozen=True)
class Studies:
    """The finished runs of one study or several.

    Attributes:
        names: the names of the studies.
        runs: one row per run, with RUN_COLUMNS and FURTHER_COLUMNS.
        folders: the folder of each run, by study and run, in the order of `runs`.
        problems: one row per run that cannot be used, with PROBLEM_COLUMNS.
        notes: sentences that a reader of the curves should know.
    """

    names: list[str]
    runs: pd.DataFrame
    folders: dict[tuple[str, str], RunFolder]
    problems: pd.DataFrame
    notes: list[str]

    def __str__(self) -> str:
        return "study=" + "+".join(self.names)


def study_names(studies: Sequence[str], folder: str | Path) -> list[str]:
    """Return the names of studies; "a+b" names two of them, unless `folder` contains a study of just that name.

    Raises ConfigError without a name, and for names that are empty or repeated.
    """
    names = [name for one in studies for name in ([one] if (Path(folder) / one).is_dir() else one.split("+"))]
    if not names or "" in names or len(set(names)) < len(names):
        given = "+".join(studies)
        raise ConfigError(
            f"study={given}: give the name of a study, or several different ones as in study=first+second."
        )
    return names


def read_studies(studies: Sequence[str], folder: str | Path) -> Studies:
    """Read the run folders of studies, in the order of their curves' names with numbers in them by size.

    A run whose files are damaged is one of the problems, and so is a copy of a run that an earlier study has: copies
    have one name and started at the same time.

    Raises:
        ConfigError: without the name of a study.
        RunError: if there is no such study, if none of its runs is finished, if each of its runs is in an earlier
            study, or if models of different names have the same weights.
    """
    names = study_names(studies, folder)
    rows: list[dict[str, Any]] = []
    problems: list[tuple[str, str, str, str]] = []
    for study in names:
        for run in study_runs(folder, study):
            try:
                config, manifest = run.read_config(), run.read_manifest()
                if manifest.get("status") == DONE:
                    rows.append(_row(study, run, config, manifest))
                    continue
                status, reason = manifest.get("status", "not started"), manifest.get("reason") or ""
            except RunError as error:
                status, reason = "damaged", str(error)
            except KeyError as error:
                problem = f"{run.path}: {error} is missing from config.yaml and manifest.json."
                status, reason = "damaged", f"{problem} Train the run again."
            problems.append((study, run.path.name, status, reason))
    if not rows:
        examples = first_few([f"{run}: {reason or status}" for _, run, status, reason in problems])
        problem = f"no run is finished ({examples or 'the folder is empty'})"
        raise RunError(f"study={'+'.join(names)}: {problem}. Train with python -m train.")
    table = pd.DataFrame(rows, index=[f"{row['study']}/{row['run']}" for row in rows])
    first = table.groupby(["run", "started"])["study"].transform("first")
    copies = table.assign(first=first)[first.notna() & (first != table["study"])]
    table = table.drop(index=copies.index)
    if whole := sorted(set(copies["study"]) - set(table["study"])):
        others = ", ".join(sorted(set(copies.loc[copies["study"] == whole[0], "first"])))
        raise RunError(f"study={whole[0]}: each of its runs is also a run of {others}. Leave {whole[0]} out.")
    for copy in rows_of(copies):
        problems.append((copy.study, copy.run, "shared", f"the same run as {copy.first}/{copy.run}"))
    _check_weights(table)
    notes = _name_curves(table, table.index.isin(copies["first"] + "/" + copies["run"]))
    place = {curve: number for number, curve in enumerate(in_order(table["curve"]))}
    table = table.sort_values("curve", key=lambda curves: curves.map(place), kind="stable", ignore_index=True)
    return Studies(
        names,
        table.reindex(columns=[*RUN_COLUMNS, *FURTHER_COLUMNS]).astype(_TYPES),
        dict(zip(zip(table["study"], table["run"], strict=True), table["folder"], strict=True)),
        pd.DataFrame(problems, columns=list(PROBLEM_COLUMNS)),
        notes,
    )


def _row(study: str, run: RunFolder, config: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a run without the names of its curve, and what these depend on.

    Raises KeyError for a value that its files lack, and RunError for damaged metrics.
    """
    model, corpus = config["model"], manifest.get("corpus", {})
    row = {
        "study": study, "run": run.path.name, "folder": run, "config": config, "started": manifest.get("started"),
        "source": None, "weights": None, "nested": False, "baseline": "", "parameters": manifest.get("parameters"),
        "tokens": manifest.get("tokens"), "text digest": "", "tokenizer digest": "",
    }  # fmt: skip
    if source := model.get("path") or model.get("checkpoint"):
        tokens = manifest.get("tokens") or None
        return row | {
            "source": source,
            "weights": manifest.get("digest"),
            "model": Path(source).name,
            "size": f"{rounded(tokens)} tokens" if tokens else None,
            "sample_words": tokens,
            "unit": TOKENS if tokens else None,
        }
    sample, reference, tokenizer = config["sample"], config["corpus"].get("reference"), config["tokenizer"]
    count, of_sample = sample.get("count", WORDS), corpus["sample"]
    fitted_on_sample = tokenizer.get("fit_on") == "sample" or model.get("vocabulary") == "open"
    whole_words = "sample" if fitted_on_sample else "text"
    return row | {
        **{part: config[part]["name"] for part in _GROUPS},
        "size": format_size(parse_size(sample["size"])) + ("" if count == WORDS else f" {count}"),
        "sample_words": int(manifest["sample_words"]),
        "seed": int(config["seed"]),
        "sample": of_sample.get("digest"),
        "nested": bool(sample.get("nested", False)),
        "unit": CHARACTERS if reference == CHARACTERS else WORDS,
        "baseline": UNTRAINED if manifest.get("words_seen") == 0 else str(sample.get("shuffle") or ""),
        "reference": reference,
        "overlap": of_sample.get("overlap"),
        **{name: manifest.get(name) for name in ("words_seen", "words_per_s", "wall_s")},
        **exported_validation(run.metrics, (config.get("recipe") or {}).get("export", "last")),
        "vocabulary": whole_words if tokenizer.get("kind") in _WHOLE_WORDS else "pieces",
        "text digest": corpus.get("text", "")[:8],
        "tokenizer digest": "" if fitted_on_sample else corpus.get("tokenizer", "")[:8],
    }


def rounded(count: int) -> str:
    """Format tokens: 2.097B; four digits distinguish the checkpoints of a training."""
    for letter, unit in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= unit:
            return f"{count / unit:.4g}{letter}"
    return str(count)


def _check_weights(table: pd.DataFrame) -> None:
    """Raise RunError if models of different names have the same weights.

    Several revisions on the Hugging Face Hub may contain the same file; a curve of them would be one point.
    """
    revisions = [config["model"].get("revision") for config in table["config"]]
    at = [f" at revision {revision}" if revision else "" for revision in revisions]
    for digest, rows in table.assign(name=table["source"].astype("str") + pd.Series(at, table.index)).groupby(
        "weights"
    ):
        models = rows.drop_duplicates("name")
        if len(models) > 1:
            raise RunError(
                f"{' and '.join(models['name'])} have the same weights (digest {str(digest)[:8]}), so they are one "
                f"model and not points of a curve. Keep only one of the runs {' and '.join(models.index)}."
            )


def _name_curves(table: pd.DataFrame, are_copied: npt.NDArray[np.bool_]) -> list[str]:
    """Add curve, base, construction, action and dose to the runs; return notes on what the names don't say.

    `are_copied`: the runs of which another study has a copy, so that their curve belongs to both studies.
    """
    come_trained, are_baselines = table["source"].notna(), table["baseline"].ne("")
    configs = {str(run): config for run, config in table.loc[~come_trained & ~are_baselines, "config"].items()}
    interventions = {run: intervention_of(config) for run, config in configs.items()}
    names, notes = labels(configs)
    curves, on_texts = _divided(names, table, are_copied)
    bases, _ = _divided(base_labels(configs)[0], table, are_copied)
    named = {
        "construction": constructions(interventions)[0],
        "action": {run: one.action for run, one in interventions.items()},
        "dose": {run: one.dose for run, one in interventions.items()},
    }
    for run, config in table.loc[are_baselines, "config"].items():
        same = {
            curves[other] for other, of in configs.items() if all(of.get(key) == config.get(key) for key in _GROUPS)
        }
        curves[str(run)] = same.pop() if len(same) == 1 else config["model"]["name"]
    is_checkpoint = table["unit"].eq(TOKENS)  # checkpoints of one training share a curve, whatever their revision
    for chosen, keys in ((is_checkpoint, _LOADED), (come_trained & ~is_checkpoint, (*_LOADED, "revision"))):
        taken = set(curves)
        for run, name in labels({str(row.Index): _identity(row, keys) for row in table[chosen].itertuples()})[
            0
        ].items():
            curves[run] = f"{name}, pretrained" if name in taken else name
    table["curve"] = curves
    table["base"] = bases.reindex(table.index).fillna(table["curve"])
    for column, usual in (("construction", ""), ("action", NONE), ("dose", FULL_DOSE)):
        table[column] = [named[column].get(run, usual) for run in table.index]
    return [*notes, *on_texts]


def _identity(row: Any, keys: Sequence[str]) -> dict[str, Any]:
    """Return what tells a model that comes trained from others, as a configuration; `labels` reads a size."""
    model = {key: row.config["model"].get(key) for key in keys}
    return {"model": model | {"path": row.source, "name": row.model}, "sample": {"size": "1"}}


def _divided(
    names: Mapping[str, str], table: pd.DataFrame, are_copied: npt.NDArray[np.bool_]
) -> tuple[pd.Series, list[str]]:
    """Divide curves by the digest of their text or tokenizer and by study; return names by run, and notes."""
    curves, notes = pd.Series(names, dtype="str"), []
    runs = table.assign(is_copied=are_copied).loc[curves.index]
    for part in ("text", "tokenizer"):
        digests = runs[f"{part} digest"]
        differ = digests.groupby(curves).transform("nunique") > 1
        if differ.any():
            listed = " | ".join(sorted(set(curves[differ])))
            notes.append(f"Runs of {listed} were trained with different {part}s, so each {part} has its own curve.")
        curves = curves.where(~differ, curves + f", {part} " + digests)
    of_several = runs["study"].groupby(curves).transform("nunique") > 1
    of_several &= ~curves.isin(curves[runs["is_copied"]])
    return curves.where(~of_several, curves + ", " + runs["study"]), notes


def removed_text(found: Studies) -> pd.DataFrame:
    """Return what each intervention did to the train split, with the columns REMOVED_COLUMNS.

    sentences and words count what was left out or rewritten, of_sentences and of_words the whole split, and
    matching_sentences those that contain the construction. They are means over the runs of an intervention.
    """
    rows = []
    for run in found.runs[found.runs["construction"] != ""].to_dict("records"):
        corpus = found.folders[run["study"], run["run"]].read_manifest().get("corpus", {})
        if done := corpus.get("ablation"):
            matching = (done.get("matching") or {}).get("sentences")
            rows.append({**run, **done, "runs": 1, "matching_sentences": matching})
    counts = dict.fromkeys(REMOVED_COLUMNS[4:], float)
    table = pd.DataFrame(rows).reindex(columns=list(REMOVED_COLUMNS)).astype(counts)
    means = table.groupby(list(REMOVED_COLUMNS[:3]), as_index=False, sort=False)
    return means.agg({"runs": "sum", **dict.fromkeys(counts, "mean")})


def direct_paradigms(found: Studies, benchmark: str) -> dict[str, set[str]]:
    """Return the paradigms of a benchmark that test each removed construction, as its filter lists them."""
    direct: dict[str, set[str]] = {}
    for run in found.runs[found.runs["construction"] != ""].to_dict("records"):
        of_filter = found.folders[run["study"], run["run"]].read_config().get("filter") or {}
        listed = (of_filter.get("paradigms") or {}).get(benchmark) or ()
        direct.setdefault(run["construction"], set()).update(listed)
    return direct
