"""The finished runs of studies, read from their folders: one row per run, the names of curves, and what is missing.

A curve is a set of runs that differ in nothing but size and seed. Whatever else differs is in its name.
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
TOKENS = "tokens"  # unit of the sizes of checkpoints from elsewhere
UNTRAINED = "untrained"

_TYPES = dict.fromkeys(("sample_words", "seed", "words_seen", "tokens", "parameters"), "Int64")
_REMOVED = ["sentences", "of_sentences", "words", "of_words", "matching_sentences", "rewritten"]
_WHOLE_WORDS = {"word", "whitespace", "jieba"}  # kinds of tokenizers that know whole words
_GROUPS = ("model", "tokenizer", "corpus")  # groups of a configuration that a baseline shares with its curve
_LOADED = ("kind", "dtype", "begin", "load_in_4bit")  # how a model that comes trained is loaded


@dataclass(frozen=True)
class Studies:
    """The finished runs of one study or several, read once for all tables.

    Attributes:
        names: the names of the studies, which are in `folder`.
        runs: one row per run, with RUN_COLUMNS and FURTHER_COLUMNS.
        details: folder, manifest, digest (of the weights, if known) and config (that names the curve) of each row.
        problems: one row per run that cannot be used, with PROBLEM_COLUMNS.
        notes: sentences that a reader of the curves should know.
        metadata_of: returns the metadata of a score file, which it reads once.
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
        """The score files of pairs in the order of the runs: row of a run, benchmark, method, path, is_snapshot."""
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
        """What each intervention (construction, action, dose) did to the train split, as means over its `runs`.

        sentences and words count what was left out or rewritten, of_sentences and of_words the whole split, and
        matching_sentences those that contain the construction.
        """
        done = [manifest.get("corpus", {}).get("ablation") or {} for manifest in self.details["manifest"]]
        counts = pd.json_normalize(done, sep="_").reindex(columns=_REMOVED).astype(float)
        changed = self.runs.join(counts)[self.runs["construction"] != ""].dropna(subset="sentences")
        interventions = changed.groupby(["construction", "action", "dose"], sort=False)
        return interventions.size().to_frame("runs").join(interventions[_REMOVED].mean()).reset_index()

    def direct_paradigms(self, benchmark: str) -> dict[str, set[str]]:
        """Return the paradigms of a benchmark that test each removed construction, as its filter lists them."""
        listed = self.details["config"].str.get("filter").str.get("paradigms").str.get(benchmark)
        tested = listed[self.runs["construction"] != ""].groupby(self.runs["construction"])
        return {str(construction): set(of.explode().dropna()) for construction, of in tested}


def read_studies(studies: Sequence[str | Studies], folder: str | Path) -> Studies:
    """Read the run folders of studies, in the order of their curves' names with numbers in them by size.

    The problems include runs whose files are damaged and copies of earlier runs: a run of the same name that started at
    the same time, or a model from elsewhere with the same weights (several revisions on the Hugging Face Hub may
    contain one file).

    Args:
        studies: names of studies in `folder` (`paths.runs`); "a+b" names two. Studies that are already read are
            returned as they are.

    Raises:
        ConfigError: without the name of a study, and for names that are empty or repeated.
        RunError: if there is no such study, or if none of its runs is finished.
    """
    for one in studies:
        if isinstance(one, Studies):
            return one
    names = "+".join(map(str, studies)).split("+")
    if "" in names or len(set(names)) < len(names):
        raise ConfigError(
            f"study={'+'.join(names)}: give study=NAME, the name of a study, or several as in study=first+second."
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
            lacks = f"{run.path}: its files lack {error}. Train the run again."
            status, reason = "damaged", lacks if isinstance(error, KeyError) else str(error)
        problems.append((run.path.parent.name, run.path.name, status, reason))
    if not rows:
        listed = first_few([f"{run}: {reason or status}" for _, run, status, reason in problems])
        raise RunError(f"study={'+'.join(names)}: no run is finished ({listed}). Train with python -m train.")
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
            f"The points of {' | '.join(curves)} are checkpoints of one training, by tokens seen with repeats. They "
            "depend on each other, so their curve has no confidence interval."
        )
    details = table[["folder", "config", "manifest", "digest"]]
    return Studies(names, folder, of_runs, details, pd.DataFrame(problems, columns=list(PROBLEM_COLUMNS)), notes)


def _row(run: RunFolder, config: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a run without the names of its curve, and what these depend on.

    identity: what copies of a run share. groups: what a baseline shares with its curve, None for a model that comes
    trained. texts, tokenizers: what tells these apart in names.

    Raises KeyError for a value that its files lack, and RunError for damaged metrics.
    """
    model, tokens = config["model"], manifest.get("tokens")
    row = {
        "study": run.path.parent.name, "run": run.path.name, "folder": run, "config": config, "manifest": manifest,
        "digest": run.model.digest(), "nested": False, "baseline": "", "groups": None, "texts": "", "tokenizers": "",
        **{name: manifest.get(name) for name in ("parameters", "tokens", "words_seen", "words_per_s", "wall_s")},
    }  # fmt: skip
    if source := model.get("path") or model.get("checkpoint"):
        name, loaded = Path(source).name, {key: model.get(key) for key in _LOADED}
        revision = None if tokens else model.get("revision") or "main"  # checkpoints of one training share a curve
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
    """Format tokens: 2.097B; four digits distinguish the checkpoints of a training."""
    for letter, unit in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= unit:
            return f"{count / unit:.4g}{letter}"
    return str(count)


def _name_curves(table: pd.DataFrame, shared: list[str]) -> list[str]:
    """Add curve, base, construction, action and dose to the runs; return notes on what the names don't say.

    `shared` are the runs that other studies have, too.
    """
    comes_trained = table["groups"].isna()
    configs = dict(table.loc[table["baseline"].eq("") & ~comes_trained, "config"])
    curves = name_curves(configs)
    table["curve"], table["base"] = (pd.Series(of, dtype="str") for of in (curves.names, curves.bases))
    for column in ("texts", "tokenizers", "study"):
        differ = table[column].groupby(table["base"]).transform("nunique") > 1
        if column == "study":  # a curve of which another study has a part belongs to both
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
