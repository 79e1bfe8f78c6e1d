"""The finished runs of studies, read from their folders: one row per run, the names of curves, and what is missing.

A curve is a set of runs that differ in nothing but size and seed. Whatever else differs is in its name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from corpora.ablation.config import NONE
from pairscale.errors import ConfigError, RunError
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
WORDS, CHARACTERS, TOKENS = "words", "characters", "tokens"  # units of `sample_words`
UNTRAINED = "untrained"
DAMAGED, SHARED = "damaged", "shared"  # states of runs that a table leaves out

_COUNTS = ("sample_words", "seed", "words_seen", "tokens", "parameters")
_TEXTS = ("curve", "construction", "action", "dose", "base")
_SIZE_UNITS = {"sentences": " sentences", "characters": " characters"}  # where a size doesn't count words
_WHOLE_WORDS = {"word", "whitespace", "jieba"}  # kinds of tokenizers that know whole words
_LOADED = ("dtype", "begin", "load_in_4bit")  # how a model that comes trained is loaded
Key = tuple[str, str]  # study and run


@dataclass
class _Record:
    """What the files of a finished run say, and its row of the table."""

    folder: RunFolder
    config: dict[str, Any]
    manifest: dict[str, Any]
    row: dict[str, Any] = field(default_factory=dict)

    @property
    def comes_trained(self) -> bool:
        return not {"path", "checkpoint"}.isdisjoint(self.config["model"])

    @property
    def tokens(self) -> int | None:
        """The tokens that a model which comes trained has seen, if they are known."""
        return self.manifest.get("tokens") if self.comes_trained else None

    @property
    def path(self) -> str:
        model = self.config["model"]
        return str(model.get("path") or model.get("checkpoint"))


@dataclass
class Studies:
    """The finished runs of one study or several.

    Attributes:
        names: the names of the studies.
        runs: one row per run, with RUN_COLUMNS and FURTHER_COLUMNS.
        folders: the folder of each run, by study and run.
        problems: one row per run that cannot be used, with PROBLEM_COLUMNS.
        notes: sentences that a reader of the curves should know.
    """

    names: list[str]
    runs: pd.DataFrame
    folders: dict[Key, RunFolder]
    problems: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "study=" + "+".join(self.names)


REMOVED_COLUMNS = (
    "construction", "action", "dose", "runs", "sentences", "of_sentences", "words", "of_words", "matching_sentences",
    "rewritten",
)  # fmt: skip


def removed_text(found: Studies) -> pd.DataFrame:
    """Return what each intervention did to the train split, with the columns REMOVED_COLUMNS.

    sentences and words count what was left out or rewritten, of_sentences and of_words the whole split, and
    matching_sentences those that contain the construction. They are means over the runs of an intervention.
    """
    rows = []
    for run in found.runs[found.runs["construction"] != ""].to_dict("records"):
        corpus = found.folders[run["study"], run["run"]].read_manifest().get("corpus") or {}
        done = corpus.get("ablation") or {}
        matching = (done.get("matching") or {}).get("sentences")
        rows.append({**run, **done, "runs": 1, "matching_sentences": matching} if done else {})
    table = pd.DataFrame([row for row in rows if row]).reindex(columns=list(REMOVED_COLUMNS))
    keys, counts = list(REMOVED_COLUMNS[:3]), list(REMOVED_COLUMNS[4:])
    means = table.astype(dict.fromkeys(counts, float)).groupby(keys, as_index=False, sort=False)
    return means.agg({"runs": "sum", **dict.fromkeys(counts, "mean")})


def direct_paradigms(found: Studies, benchmark: str) -> dict[str, set[str]]:
    """Return the paradigms of a benchmark that test each removed construction, as its filter lists them."""
    direct: dict[str, set[str]] = {}
    for run in found.runs[found.runs["construction"] != ""].to_dict("records"):
        config = found.folders[run["study"], run["run"]].read_config()
        listed = ((config.get("filter") or {}).get("paradigms") or {}).get(benchmark) or ()
        direct.setdefault(run["construction"], set()).update(listed)
    return direct


def study_names(studies: Sequence[str], folder: str | Path) -> list[str]:
    """Return the names of studies; "a+b" names two of them, unless `folder` contains a study of just that name.

    Raises ConfigError without a name, and for names that are empty or repeated.
    """
    if not studies:
        raise ConfigError('Give the name of at least one study, as in accuracies("demo").')
    names: list[str] = []
    for study in studies:
        names += [study] if (Path(folder) / study).is_dir() else study.split("+")
    if "" in names or len(set(names)) < len(names):
        given = "+".join(studies)
        raise ConfigError(f"study={given} names a study twice, or none. Join different studies: study=first+second.")
    return names


def read_studies(studies: Sequence[str], folder: str | Path) -> Studies:
    """Read the run folders of studies, in the order of their curves' names with numbers in them by size.

    A run whose files are damaged is one of the problems, and so is a copy of a run that an earlier study has.

    Raises:
        ConfigError: without the name of a study.
        RunError: if there is no such study, if none of its runs is finished, if each of its runs is in an earlier
            study, or if models of different names have the same weights.
    """
    names = study_names(studies, folder)
    problems: list[dict[str, Any]] = []
    records: dict[Key, _Record] = {}
    copied: set[Key] = set()  # runs of which another study has a copy
    for study in names:
        found = _finished_runs(study, folder, problems)
        copies = _copies(found, records)
        problems += [
            {"study": key[0], "run": key[1], "status": SHARED, "reason": f"the same run as {'/'.join(first)}"}
            for key, first in copies.items()
        ]
        if found and len(copies) == len(found):
            others = ", ".join(sorted({first[0] for first in copies.values()}))
            raise RunError(f"study={study}: each of its runs is also a run of {others}. Leave {study} out.")
        records |= {key: record for key, record in found.items() if key not in copies}
        copied |= set(copies.values())
    if not records:
        examples = "; ".join(f"{one['run']}: {one['reason'] or one['status']}" for one in problems[:3])
        problem = f"no run is finished ({examples or 'the folder is empty'})"
        raise RunError(f"study={'+'.join(names)}: {problem}. Train with python -m train.")
    _check_weights(records)
    table = pd.DataFrame([record.row for record in records.values()])
    notes = _name_curves(table, list(records.values()), {list(records).index(key) for key in copied})
    types = dict.fromkeys(_COUNTS, "Int64") | dict.fromkeys(_TEXTS, "str")
    place = {curve: number for number, curve in enumerate(in_order(table["curve"]))}
    order = table["curve"].map(place).argsort(kind="stable")
    table = table.iloc[order].reset_index(drop=True).reindex(columns=[*RUN_COLUMNS, *FURTHER_COLUMNS]).astype(types)
    folders = {key: records[key].folder for key in zip(table["study"], table["run"], strict=True)}
    return Studies(names, table, folders, pd.DataFrame(problems, columns=list(PROBLEM_COLUMNS)), notes)


def _finished_runs(study: str, folder: str | Path, problems: list[dict[str, Any]]) -> dict[Key, _Record]:
    """Return the finished runs of a study, and add the others to `problems`."""
    found = {}
    for run in study_runs(folder, study):
        problem = {"study": study, "run": run.path.name}
        try:
            config, manifest = run.read_config(), run.read_manifest()
            if manifest.get("status") != DONE:
                status = manifest.get("status", "not started")
                problems.append({**problem, "status": status, "reason": manifest.get("reason") or ""})
                continue
            record = _Record(run, config, manifest)
            record.row = _row((study, run.path.name), record)
        except RunError as error:
            problems.append({**problem, "status": DAMAGED, "reason": str(error)})
        except KeyError as error:
            reason = f"{run.path}: {error} is missing from config.yaml and manifest.json. Train the run again."
            problems.append({**problem, "status": DAMAGED, "reason": reason})
        else:
            found[study, run.path.name] = record
    return found


def _copies(found: Mapping[Key, _Record], earlier: Mapping[Key, _Record]) -> dict[Key, Key]:
    """Return the runs that are copies of earlier ones: copies have one name, and started at the same time."""
    known = {(key[1], record.manifest.get("started")): key for key, record in earlier.items()}
    copies = {}
    for key, record in found.items():
        started = record.manifest.get("started")
        if started and (key[1], started) in known:
            copies[key] = known[key[1], started]
    return copies


def _check_weights(records: Mapping[Key, _Record]) -> None:
    """Raise RunError if models of different names have the same weights.

    Several revisions on the Hugging Face Hub may contain the same file; a curve of them would be one point.
    """
    first: dict[str, tuple[str, str]] = {}
    for key, record in records.items():
        digest, revision = record.manifest.get("digest"), record.config["model"].get("revision")
        if digest and record.comes_trained:
            name = record.path + (f" at revision {revision}" if revision else "")
            other, run = first.setdefault(digest, (name, "/".join(key)))
            if other != name:
                raise RunError(
                    f"{other} and {name} have the same weights (digest {digest[:8]}), so they are one model and not "
                    f"two points of a curve. Remove one of the runs {run} and {'/'.join(key)}."
                )


def _row(key: Key, record: _Record) -> dict[str, Any]:
    """Return the row of a run without the names of its curve. Raises KeyError for a value that its files lack."""
    config, manifest = record.config, record.manifest
    of_run = {"study": key[0], "run": key[1], "nested": False, "baseline": ""}
    if record.comes_trained:
        tokens = record.tokens
        return {
            **of_run,
            "model": Path(record.path).name,
            "size": f"{_rounded(tokens)} tokens" if tokens else None,
            "sample_words": tokens or None,
            "unit": TOKENS if tokens else None,
            "tokens": tokens,
            "parameters": manifest.get("parameters"),
        }
    sample, reference = config["sample"], config["corpus"].get("reference")
    unit = _SIZE_UNITS.get(sample.get("count", WORDS), "")
    measured = ("words_seen", "tokens", "parameters", "words_per_s", "wall_s")
    return {
        **of_run,
        **{part: config[part]["name"] for part in ("model", "tokenizer", "corpus")},
        "size": format_size(parse_size(sample["size"])) + unit,
        "sample_words": int(manifest["sample_words"]),
        "seed": int(config["seed"]),
        "sample": manifest["corpus"]["sample"].get("digest"),
        "nested": bool(sample.get("nested", False)),
        "unit": CHARACTERS if reference == CHARACTERS else WORDS,
        "baseline": UNTRAINED if manifest.get("words_seen") == 0 else str(sample.get("shuffle") or ""),
        "reference": reference,
        "overlap": manifest["corpus"]["sample"].get("overlap"),
        **{name: manifest.get(name) for name in measured},
        **exported_validation(record.folder.metrics, (config.get("recipe") or {}).get("export", "last")),
        "vocabulary": _vocabulary(config),
    }


def _rounded(count: int) -> str:
    """Format tokens: 2.097B; four digits distinguish the checkpoints of a training."""
    for letter, unit in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= unit:
            return f"{count / unit:.4g}{letter}"
    return str(count)


def _vocabulary(config: Mapping[str, Any]) -> str:
    """Return what the tokenizer knows: "pieces", or the words of the whole "text" or of each run's own "sample"."""
    if config["tokenizer"].get("kind") not in _WHOLE_WORDS:
        return "pieces"
    return "sample" if _fitted_on_sample(config) else "text"


def _fitted_on_sample(config: Mapping[str, Any]) -> bool:
    """Return True if a run's tokenizer or vocabulary was made from its own sample."""
    fit_on = (config.get("tokenizer") or {}).get("fit_on")
    return bool(fit_on == "sample" or config["model"].get("vocabulary") == "open")


def _name_curves(table: pd.DataFrame, records: Sequence[_Record], copied: Collection[int]) -> list[str]:
    """Add curve, base, construction, action and dose to the runs; return notes on what the names don't say.

    `copied`: the rows of runs of which another study has a copy, so that their curve belongs to both studies.
    """
    trained = [row for row, record in enumerate(records) if not record.comes_trained]
    placed = {row: records[row].config for row in trained if not table.at[row, "baseline"]}
    named = {str(row): config for row, config in placed.items()}

    def distinct(names: Mapping[str, str]) -> tuple[dict[int, str], list[str]]:
        by_row, notes = _by_text({row: names[str(row)] for row in placed}, records)
        return _by_study(by_row, table["study"], copied), notes

    names, notes = labels(named)
    curves, on_texts = distinct(names)
    interventions = {run: intervention_of(config) for run, config in named.items()}
    filters, _ = constructions(interventions)
    columns: dict[str, dict[int, str]] = {
        "base": distinct(base_labels(named)[0])[0],
        "construction": {row: filters[str(row)] for row in placed},
        "action": {row: interventions[str(row)].action for row in placed},
        "dose": {row: interventions[str(row)].dose for row in placed},
    }
    untrained = [row for row in trained if row not in placed]
    curves |= {row: _baseline_curve(row, records, curves) for row in untrained}
    curves |= _pretrained_curves({row: one for row, one in enumerate(records) if one.comes_trained}, curves)
    table["curve"] = pd.Series(curves, dtype=object)
    for column, usual in (("base", table["curve"]), ("construction", ""), ("action", NONE), ("dose", FULL_DOSE)):
        table[column] = pd.Series(columns[column], table.index, dtype=object).fillna(usual)
    return [*notes, *on_texts]


def _digest(record: _Record, part: str) -> str:
    """Return the start of the digest of a run's text or tokenizer; "" for a tokenizer that is fitted on its sample."""
    fitted = part == "tokenizer" and _fitted_on_sample(record.config)
    return "" if fitted else str(record.manifest.get("corpus", {}).get(part, ""))[:8]


def _by_text(names: Mapping[int, str], records: Sequence[_Record]) -> tuple[dict[int, str], list[str]]:
    """Add the digest of the text or tokenizer to the names of curves whose runs differ in it; return notes, too."""
    curves, notes = dict(names), []
    for part in ("text", "tokenizer"):
        digests = {row: _digest(records[row], part) for row in curves}
        different = _names_with_several(curves, digests)
        if different:
            listed = " | ".join(sorted(different))
            notes.append(f"Runs of {listed} were trained with different {part}s, so each {part} has its own curve.")
        curves |= {row: f"{name}, {part} {digests[row]}" for row, name in curves.items() if name in different}
    return curves, notes


def _by_study(names: Mapping[int, str], studies: pd.Series, copied: Collection[int]) -> dict[int, str]:
    """Add the study to the names of curves that several studies have, unless they have runs in common."""
    several = _names_with_several(names, studies) - {names[row] for row in copied if row in names}
    return {row: f"{name}, {studies[row]}" if name in several else name for row, name in names.items()}


def _names_with_several(names: Mapping[int, str], values: Mapping[int, str] | pd.Series) -> set[str]:
    """Return the names whose rows have several values."""
    of_name: dict[str, set[str]] = {}
    for row, name in names.items():
        of_name.setdefault(name, set()).add(values[row])
    return {name for name, of in of_name.items() if len(of) > 1}


def _baseline_curve(row: int, records: Sequence[_Record], curves: Mapping[int, str]) -> str:
    """Return the curve of a baseline: the one with its model, tokenizer and corpus, else the name of its model."""

    def shared(row: int) -> list[Any]:
        return [records[row].config.get(part) for part in ("model", "tokenizer", "corpus")]

    same = {curve for other, curve in curves.items() if shared(other) == shared(row)}
    return same.pop() if len(same) == 1 else str(records[row].config["model"]["name"])


def _pretrained_curves(records: Mapping[int, _Record], taken: Mapping[int, str]) -> dict[int, str]:
    """Return the curve of each model that comes trained; checkpoints of one training share a curve."""
    curves: dict[int, str] = {}
    for has_tokens in (True, False):
        keys = _LOADED if has_tokens else (*_LOADED, "revision")
        identities = {}
        for number, record in records.items():
            if bool(record.tokens) is has_tokens:
                model = {key: record.config["model"].get(key) for key in keys}
                model |= {"path": record.path, "name": Path(record.path).name}
                identities[str(number)] = {"model": model, "sample": {"size": "1"}}  # `labels` reads a size
        names = labels(identities)[0] if identities else {}
        used = {*taken.values(), *curves.values()}
        curves |= {int(run): f"{name}, pretrained" if name in used else name for run, name in names.items()}
    return curves
