"""Read the finished runs of studies from their folders, name their curves, and list the runs that can't be used.

A curve is a set of runs that differ only in size and seed. Its name contains the other settings that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.formats import rows_of
from eval.config import is_of_pairs
from eval.scores.files import ITEMS_FILE, TOKENS_FILE, read_metadata
from pairscale.errors import ConfigError, RunError, first_few
from pairscale.sizes import format_size, parse_size
from train.runs.folder import DONE, RunFolder, exported_validation, study_runs
from train.runs.labels import Intervention, constructions, in_order, name_curves

# The first columns of every table of a study, and the columns that only `analysis.runs` has.
RUN_COLUMNS = (
    "study", "run", "curve", "model", "size", "sample_words", "seed", "sample", "nested", "unit", "baseline",
)  # fmt: skip
FURTHER_COLUMNS = (
    "tokenizer", "corpus", "reference", "overlap", "words_seen", "tokens", "parameters", "valid_ppl",
    "valid_pseudo_ppl", "valid_oov_rate", "words_per_s", "wall_s", "vocabulary", "construction", "action", "dose",
    "base",
)  # fmt: skip
PROBLEM_COLUMNS = ("study", "run", "status", "reason")
TOKENS = "tokens"  # the unit of sizes of external checkpoints
UNTRAINED = "untrained"

_TYPES = dict.fromkeys(("sample_words", "seed", "words_seen", "tokens", "parameters"), "Int64")
_REMOVED = ["sentences", "of_sentences", "words", "of_words", "matching_sentences", "rewritten"]
_WHOLE_WORDS = {"word", "whitespace", "jieba"}  # kinds of tokenizers whose tokens are whole words
_GROUPS = ("model", "tokenizer", "corpus")  # groups of a configuration that a baseline shares with its curve
_LOADED = ("kind", "dtype", "begin", "load_in_4bit")  # settings for loading a pretrained model


@dataclass(frozen=True)
class Studies:
    """The finished runs of one or more studies, read once for all tables.

    Attributes:
        names: The names of the studies.
        folder: The folder that contains the studies (`paths.runs`).
        runs: One row per run, with RUN_COLUMNS and FURTHER_COLUMNS.
        details: One row per run, with its folder, manifest, digest (of the weights, if known) and config (the part that
            names the curve).
        problems: One row per run that can't be used, with PROBLEM_COLUMNS.
        notes: Notes for readers of the curves.
        metadata_of: A function that returns the metadata of a score file. Each file is read only once.
    """

    names: list[str]
    folder: str | Path
    runs: pd.DataFrame
    details: pd.DataFrame
    problems: pd.DataFrame
    notes: list[str]
    metadata_of: Callable[[Path], dict[str, Any]] = field(default_factory=lambda: cache(read_metadata))

    def __str__(self) -> str:
        return "study=" + "+".join(self.names)

    @cached_property
    def files(self) -> pd.DataFrame:
        """The score files of pairs in the order of `runs`: their row there, benchmark, method, path and is_snapshot."""
        rows = [
            (row, path.parent.name, path.stem.partition("@")[0], path, "@" in path.stem)
            for row, folder in enumerate(self.details["folder"])
            for path in sorted(folder.scores("").glob("*/*.parquet"))
            if path.name not in (ITEMS_FILE, TOKENS_FILE) and is_of_pairs(path.parent.name)
        ]
        columns = ["row", "benchmark", "method", "path", "is_snapshot"]
        return pd.DataFrame(rows, columns=columns).astype({"is_snapshot": bool})

    @property
    def removed_text(self) -> pd.DataFrame:
        """The changes of each intervention (construction, action, dose) to the train split, as means over its `runs`.

        `sentences` and `words` count what was left out or rewritten. `of_sentences` and `of_words` count the whole
        split, and `matching_sentences` counts the sentences that contain the construction.
        """
        done = [manifest.get("corpus", {}).get("ablation") or {} for manifest in self.details["manifest"]]
        counts = pd.json_normalize(done, sep="_").reindex(columns=_REMOVED).astype(float)
        changed = self.runs.join(counts)[self.runs["construction"] != ""].dropna(subset="sentences")
        interventions = changed.groupby(["construction", "action", "dose"], sort=False)
        return interventions.size().to_frame("runs").join(interventions[_REMOVED].mean()).reset_index()

    def direct_paradigms(self, benchmark: str) -> dict[str, set[str]]:
        """Return the paradigms of a benchmark that test each removed construction, according to filter.paradigms."""
        listed = self.details["config"].str.get("filter").str.get("paradigms").str.get(benchmark)
        tested = listed[self.runs["construction"] != ""].groupby(self.runs["construction"])
        return {str(construction): set(of.explode().dropna()) for construction, of in tested}


def read_studies(studies: Sequence[str | Studies], folder: str | Path) -> Studies:
    """Read the run folders of studies. Runs are sorted by curve name, with numbers in natural order (2 before 10).

    The problems include runs with damaged files and copies of earlier runs. A copy has the same name and start time, or
    is a pretrained model with the same weights. Several revisions on the Hugging Face Hub may contain the same file.

    Args:
        studies: Names of studies ("a+b" means two studies). A `Studies` is returned unchanged.
        folder: The folder that contains the studies (`paths.runs`).

    Raises:
        ConfigError: If no study is chosen, or if a name is empty or repeated.
        RunError: If there is no such study, or if none of its runs is finished.
    """
    for one in studies:
        if isinstance(one, Studies):
            return one
    names = "+".join(map(str, studies)).split("+")
    if "" in names or len(set(names)) < len(names):
        raise ConfigError(
            f"study={'+'.join(names)}: a name is missing or repeated. Use study=NAME or study=FIRST+SECOND."
        )
    rows, problems = [], []
    for run in [run for study in names for run in study_runs(folder, study)]:
        try:
            config, manifest = run.read_config(), run.read_manifest()
            if manifest.get("status") == DONE:
                rows.append(_row(run, config, manifest))
                continue
            status, reason = manifest.get("status", "not started"), manifest.get("reason") or ""
        except (RunError, KeyError) as error:
            lacks = f"{run.path}: the value {error} is missing from its files. Train the run again."
            status, reason = "damaged", lacks if isinstance(error, KeyError) else str(error)
        problems.append((run.path.parent.name, run.path.name, status, reason))
    if not rows:
        listed = first_few([f"{run}: {reason or status}" for _, run, status, reason in problems])
        reasons = f" ({listed})" if listed else ""
        raise RunError(f"study={'+'.join(names)}: no run is finished{reasons}. Train the runs with python -m train.")
    table = pd.DataFrame(rows, index=[f"{row['study']}/{row['run']}" for row in rows])
    table["first"] = table.index.to_series().groupby(table["identity"]).transform("first")
    copies = table[table["first"] != table.index]
    problems += [(copy.study, copy.run, "shared", f"the same model as {copy.first}") for copy in rows_of(copies)]
    table = table.drop(index=copies.index)
    notes = _name_curves(table, list(copies["first"]))
    place = in_order(table["curve"]).index
    table = table.sort_values("curve", key=lambda curves: curves.map(place), kind="stable", ignore_index=True)
    of_runs = table.reindex(columns=[*RUN_COLUMNS, *FURTHER_COLUMNS]).astype(_TYPES)
    if len(curves := of_runs.loc[of_runs["unit"] == TOKENS, "curve"].unique()):
        notes.append(
            f"The points of {' | '.join(curves)} are checkpoints of a single training run, by tokens seen (including "
            "repeats). They depend on each other, so the curve has no confidence interval."
        )
    details = table[["folder", "config", "manifest", "digest"]]
    return Studies(names, folder, of_runs, details, pd.DataFrame(problems, columns=list(PROBLEM_COLUMNS)), notes)


def _row(run: RunFolder, config: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a run before its curve is named, with the values that determine the name.

    Copies of a run have the same `identity`. A baseline has the same `groups` as its curve. The `groups` of a
    pretrained model are None. `texts` and `tokenizers` distinguish curves whose names would otherwise be the same.

    Raises KeyError if a value is missing from the run's files, and RunError for damaged metrics.
    """
    model, tokens = config["model"], manifest.get("tokens")
    row = {
        "study": run.path.parent.name, "run": run.path.name, "folder": run, "config": config, "manifest": manifest,
        "digest": run.model.digest(), "nested": False, "baseline": "", "groups": None, "texts": "", "tokenizers": "",
        **{name: manifest.get(name) for name in ("parameters", "tokens", "words_seen", "words_per_s", "wall_s")},
    }  # fmt: skip
    if source := model.get("path") or model.get("checkpoint"):
        name, loaded = Path(source).name, {key: model.get(key) for key in _LOADED}
        revision = None if tokens else model.get("revision") or "main"  # checkpoints of one training run share a curve
        return row | {
            "model": name,
            **({"size": f"{rounded(tokens)} tokens", "sample_words": tokens, "unit": TOKENS} if tokens else {}),
            "identity": f"{manifest.get('digest') or run.path} {loaded}",
            "config": {
                "model": {"name": name, "path": source, "revision": revision, **loaded},
                "sample": {"size": "1"},
            },
        }
    sample, corpus, tokenizer = config["sample"], manifest["corpus"], config["tokenizer"]
    reference, unit = config["corpus"].get("reference"), sample.get("count", "words")
    fitted_on_sample = tokenizer.get("fit_on") == "sample" or model.get("vocabulary") == "open"
    whole_words = "sample" if fitted_on_sample else "text"
    return row | {
        **{part: config[part]["name"] for part in _GROUPS},
        "size": format_size(parse_size(sample["size"])) + ("" if unit == "words" else f" {unit}"),
        "sample_words": int(manifest["sample_words"]),
        "seed": int(config["seed"]),
        "sample": corpus["sample"].get("digest"),
        "nested": bool(sample.get("nested", False)),
        "unit": "characters" if reference == "characters" else "words",
        "baseline": UNTRAINED if manifest.get("words_seen") == 0 else str(sample.get("shuffle") or ""),
        "reference": reference,
        "overlap": corpus["sample"].get("overlap"),
        **exported_validation(run.metrics, (config.get("recipe") or {}).get("export", "last")),
        "vocabulary": whole_words if tokenizer.get("kind") in _WHOLE_WORDS else "pieces",
        "identity": f"{run.path.name} {manifest.get('started') or run.path}",
        "groups": str([config[part] for part in _GROUPS]),
        "texts": f"text {corpus.get('text', '')[:8]}",
        "tokenizers": "" if fitted_on_sample else f"tokenizer {corpus.get('tokenizer', '')[:8]}",
    }


def rounded(count: int) -> str:
    """Format a number of tokens, such as 2.097B. Four digits distinguish the checkpoints of a training run."""
    for letter, unit in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= unit:
            return f"{count / unit:.4g}{letter}"
    return str(count)


def _name_curves(table: pd.DataFrame, shared: list[str]) -> list[str]:
    """Add curve, base, construction, action and dose to the runs, and return notes on what the names don't show.

    `shared` lists the runs that other studies also have.
    """
    comes_trained = table["groups"].isna()
    configs = dict(table.loc[table["baseline"].eq("") & ~comes_trained, "config"])
    curves = name_curves(configs)
    table["curve"], table["base"] = (pd.Series(of, dtype="str") for of in (curves.names, curves.bases))
    for column in ("texts", "tokenizers", "study"):
        differ = table[column].groupby(table["base"]).transform("nunique") > 1
        if column == "study":  # a curve belongs to two studies if they share one of its runs
            differ &= ~table["base"].isin(table.loc[shared, "base"])
        for name in ("curve", "base"):
            table[name] = table[name].mask(differ, table[name] + ", " + table[column])
    taken = set(table["curve"])
    for run, label in name_curves(dict(table.loc[comes_trained, "config"])).names.items():
        name = label.replace(", revision=null", "")
        table.loc[run, "curve"] = f"{name}, pretrained" if name in taken else name
    of_groups = table.groupby("groups")["curve"]
    of_baselines = of_groups.transform("first").where(of_groups.transform("nunique") == 1, table["model"])
    table["curve"] = table["curve"].fillna(of_baselines)
    table["base"] = table["base"].fillna(table["curve"])
    interventions = {run: Intervention.of(configs.get(run, {})) for run in table.index}
    filters, _ = constructions(interventions)
    of_runs = [(filters[run], of.action, of.dose) for run, of in interventions.items()]
    table[["construction", "action", "dose"]] = pd.DataFrame(of_runs, table.index, dtype="str")
    return curves.notes
