"""The record of a scored run: all of it that learning curves need, as one JSON text that a tracker can keep.

    {"version", "run", "study", "config" (train.tracking.DESCRIBED), "manifest", "validation",
     "scores": {label: {method: {"digest", "policy", "parameters", "over", "paradigms"}}}}

`paradigms` are rows [phenomenon, paradigm, pairs, right, tie, unk], the last three as shares of the pairs: those whose
good sentence has the higher score, those whose scores are equal, and those with <unk> in either sentence. Of a method
with templates or trials the first two are means over these. Imports no torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import yaml

from corpora.errors import RunError
from eval.accuracy import outcome, repeats_of, repeats_text, unk_free
from eval.config import DIAGNOSTICS
from eval.scores import read_items, read_scores
from train.metrics import exported_validation
from train.runs import RunFolder
from train.tracking import described

RECORD_VERSION = 1
RECORD_KEYS = ("run", "study", "config", "manifest", "validation", "scores")
_NAME = re.compile(r"\w[\w.+-]*")  # of a folder of scores, or a method
SHARES = ("right", "tie", "unk")
PARADIGM_COLUMNS = ("phenomenon", "paradigm", "pairs", *SHARES)


@dataclass(frozen=True)
class Scored:
    """One method's scores of a run on a benchmark: columns of eval.scores.SCORES with `phenomenon`, and metadata."""

    label: str
    method: str
    rows: pd.DataFrame
    metadata: dict[str, Any]


def scored_pairs(run: RunFolder) -> Iterator[Scored]:
    """All scores of pairs that a run has, whoever asked for them; diagnostics have none, and points of trajectories are
    left out. Raises RunError for a damaged file.
    """
    for folder in sorted(run.scores("").glob("*")):
        if folder.name.partition("+")[0] in DIAGNOSTICS or not (folder / "items.parquet").exists():
            continue
        items, _ = read_items(folder)
        phenomena = items[["paradigm", "pair_id", "phenomenon"]]
        for path in sorted(folder.glob("*.parquet")):
            if path.stem not in ("items", "tokens") and "@" not in path.stem:
                rows, metadata = read_scores(path)
                rows = rows.merge(phenomena, on=["paradigm", "pair_id"], validate="many_to_one")
                yield Scored(folder.name, path.stem, rows, metadata)


def write_record(run: RunFolder, scores: list[Scored]) -> str:
    """The record of a run that is done, with `scores`."""
    config = yaml.safe_load(run.config.read_text(encoding="utf-8"))
    manifest = run.read_manifest()
    git = manifest.get("git") or {}
    if git.get("difference"):
        manifest["git"] = git | {"difference": "in the run's own manifest"}
    by_label: dict[str, dict[str, Any]] = {}
    for scored in scores:
        by_label.setdefault(scored.label, {})[scored.method] = {
            "digest": scored.metadata["benchmark"]["digest"],
            "policy": scored.metadata["policy"],
            "parameters": scored.metadata["parameters"],
            "over": repeats_text(scored.rows),
            "paradigms": paradigm_shares(scored.rows),
        }
    record = {
        "version": RECORD_VERSION,
        "run": run.path.name,
        "study": config.get("study"),
        "config": described(config),
        "manifest": manifest,
        "validation": exported_validation(run.metrics, (config.get("recipe") or {}).get("export", "last")),
        "scores": by_label,
    }
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def paradigm_shares(scores: pd.DataFrame) -> list[list[Any]]:
    """Rows [phenomenon, paradigm, pairs, right, tie, unk] of one method's scores: shares of each paradigm's pairs."""
    good, bad = scores["good"].to_numpy(), scores["bad"].to_numpy()
    judged = scores[["phenomenon", "paradigm"]].assign(
        pairs=1, right=outcome(good, bad), tie=good == bad, unk=~unk_free(scores)
    )
    found = judged.groupby(["phenomenon", "paradigm"], sort=True).agg(
        {"pairs": "sum", "right": "mean", "tie": "mean", "unk": "mean"}
    )
    found["pairs"] //= len(repeats_of(scores))
    return [[*keys, int(row[0]), *map(float, row[1:])] for keys, row in zip(found.index, found.to_numpy(), strict=True)]


def read_record(text: str, where: str) -> dict[str, Any]:
    """What `write_record` wrote. Raises RunError, naming `where` it came from, for what it did not write."""
    try:
        record = json.loads(text)
        version = record["version"]
    except (ValueError, TypeError, KeyError) as error:
        raise RunError(f"{where}: no record of a scored run ({type(error).__name__}: {error})") from None
    missing = [key for key in RECORD_KEYS if key not in record]
    if version != RECORD_VERSION or missing:
        told = f"without {', '.join(missing)}" if version == RECORD_VERSION else f"version {version}"
        raise RunError(f"{where}: a record {told}; this code reads version {RECORD_VERSION}; score the run again")
    names = {name for label, methods in record["scores"].items() for name in (label, *methods)}
    strange = sorted(name for name in names if not _NAME.fullmatch(name))
    if strange:  # they become names of files
        raise RunError(f"{where}: a record of scores named {strange[0]!r}, which pairscale never calls them")
    return dict(record)
