"""The record of a scored run: all of it that learning curves need, as one JSON text that a tracker can keep.

    {"version", "run", "study", "config" (train.config.DESCRIBED), "manifest", "validation",
     "scores": {label: {method: {"digest", "policy", "parameters", "over", "paradigms"}}}}

`paradigms` are rows [phenomenon, paradigm, pairs, right, tie, unk], the last three as shares of the pairs: those whose
good sentence has the higher score, those whose scores are equal, and those with <unk> in either sentence. Of a method
with templates or trials the first two are means over these. Imports no torch.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict, cast

import pandas as pd

from eval.scores.accuracy import outcome, repeats_of, repeats_text, tied, unk_free
from eval.scores.files import ITEMS_FILE, read_items, read_scores, with_phenomena
from pairscale.errors import RunError
from pairscale.schema import FolderName, Positive, Share, parse_json
from train.config import described
from train.runs.folder import RunFolder
from train.runs.metrics import exported_validation
from train.runs.schemas import Manifest, StoredConfig

RECORD_VERSION = 1
RECORD = "record"  # name under which a tracker keeps it
SHARES = ("right", "tie", "unk")
PARADIGM_COLUMNS = ("phenomenon", "paradigm", "pairs", *SHARES)


class _Judged(TypedDict):
    digest: str
    policy: dict[str, Any]
    parameters: dict[str, Any]
    over: str
    paradigms: list[tuple[str, str, Positive, Share, Share, Share]]  # PARADIGM_COLUMNS


class Record(TypedDict):
    """Schema of a record."""

    run: FolderName
    study: FolderName | None
    config: StoredConfig
    manifest: Manifest
    validation: dict[str, float | None]
    scores: dict[FolderName, dict[FolderName, _Judged]]


@dataclass(frozen=True)
class Scored:
    """Scores of a run on a benchmark by one method: eval.scores.schemas.SCORES with `phenomenon`, and metadata."""

    label: str
    method: str
    rows: pd.DataFrame
    metadata: dict[str, Any]


def scored_pairs(run: RunFolder) -> Iterator[Scored]:
    """Yield all scores of pairs that a run has, but for trajectories. Raises RunError for a damaged file."""
    for folder in sorted(run.scores("").glob("*")):
        if not (folder / ITEMS_FILE).exists():
            continue
        items, _ = read_items(folder)
        for path in sorted(folder.glob("*.parquet")):
            if path.stem not in ("items", "tokens") and "@" not in path.stem:
                rows, metadata = read_scores(path)
                yield Scored(folder.name, path.stem, with_phenomena(rows, items), metadata)


def write_record(run: RunFolder, scores: list[Scored]) -> str:
    """Return the record of a run that is done, with `scores`."""
    config = run.read_config()
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
    """Return rows of PARADIGM_COLUMNS of one method's scores: shares of each paradigm's pairs."""
    good, bad = scores["good"].to_numpy(), scores["bad"].to_numpy()
    judged = scores[["phenomenon", "paradigm"]].assign(
        pairs=1, right=outcome(good, bad), tie=tied(good, bad), unk=~unk_free(scores)
    )
    shares = judged.groupby(["phenomenon", "paradigm"], sort=True).agg(
        {"pairs": "sum", "right": "mean", "tie": "mean", "unk": "mean"}
    )
    shares["pairs"] //= len(repeats_of(scores))
    return [
        [*keys, int(row[0]), *map(float, row[1:])] for keys, row in zip(shares.index, shares.to_numpy(), strict=True)
    ]


def read_record(text: Any, where: str) -> dict[str, Any]:
    """Return what `write_record` wrote. Raises RunError, naming `where` it came from, for what it did not write."""
    remedy = "score the run again with logger=wandb"
    if not isinstance(text, str):
        raise RunError(f"{where}: no record of a scored run (its summary holds a {type(text).__name__}); {remedy}")
    return cast(dict[str, Any], parse_json(text, Record, where, RunError, remedy, RECORD_VERSION))
