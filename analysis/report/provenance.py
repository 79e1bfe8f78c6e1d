"""The provenance of a section: its runs, their versions and digests, and the runs that are left out."""

from typing import Any

import pandas as pd

_COLUMNS = ["group", "size", "seed", "sample_words", "words_seen", "parameters", "words_per_s", "wall_s", "valid_ppl"]


def provenance(runs: pd.DataFrame, problems: pd.DataFrame, digest: str) -> dict[str, Any]:
    """Return what provenance.html shows; `digest`: of the benchmark."""
    return {
        "problems": problems.to_dict("records"),
        "runs": [_run(run, row) for run, row in runs.iterrows()],
        "versions": _versions(runs),
        "digest": digest,
    }


def _run(run: Any, row: pd.Series) -> dict[str, Any]:
    """Return the fields of one run, readable ones first, then digests."""
    manifest = row["manifest"]
    git = manifest.get("git") or {}
    machine = manifest.get("machine") or {}
    corpus = manifest.get("corpus") or {}
    digests = {"configuration": manifest.get("config_digest"), "sample": corpus.get("sample", {}).get("digest")}
    digests |= {"text": corpus.get("text"), "tokenizer": corpus.get("tokenizer"), "weights": manifest.get("digest")}
    commit = git.get("commit")
    return {
        "run": run,
        **{name: row.get(name) for name in _COLUMNS},
        "device": machine.get("device"),
        "threads": machine.get("threads"),
        "host": machine.get("host"),
        "ended": manifest.get("ended"),
        "commit": commit[:10] + (" with changes" if git.get("difference") else "") if commit else "unknown",
        "digests": {key: str(value)[:16] for key, value in digests.items() if value},
    }


def _versions(runs: pd.DataFrame) -> list[str]:
    """Return the distinct sets of versions of the runs, as text."""
    versions = [manifest.get("versions") or {} for manifest in runs["manifest"]]
    texts = {", ".join(f"{name} {version}" for name, version in of.items() if version) for of in versions}
    return sorted(texts - {""})
