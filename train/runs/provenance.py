"""Provenance of a run for its manifest: code, versions and machine."""

import os
import platform
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from pairscale.sizes import parse_size
from train.config import described
from train.runs.folder import RunFolder
from train.trackers.tracker import Job

PACKAGES = (
    "torch", "lightning", "hydra-core", "numpy", "sentencepiece", "tokenizers", "rjieba", "transformers", "ufal-kenlm",
    "kenlm", "pairscale",
)  # fmt: skip
DIFFERENCE_LIMIT = 100_000  # characters of `git diff`


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        result = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None  # no git, or an installed package
    return result.stdout


@lru_cache(maxsize=1)  # a process runs the code of its start, whatever is committed meanwhile
def git_state() -> dict[str, Any]:
    """Return the commit of this code and its difference from that commit; nulls outside a checkout."""
    commit = _git("rev-parse", "HEAD")
    kinds = (":/*.py", ":/*.yaml", ":/*.tsv", ":/*.csv")  # of the whole checkout, not of this folder
    difference = _git("diff", "HEAD", "--", *kinds)
    untracked = _git("ls-files", "--others", "--exclude-standard", "--full-name", "--", *kinds)
    return {
        "commit": commit.strip() if commit else None,
        "difference": difference[:DIFFERENCE_LIMIT] if difference is not None else None,
        "difference_cut": difference is not None and len(difference) > DIFFERENCE_LIMIT,
        "untracked": untracked.splitlines() if untracked is not None else None,
    }


def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the packages that numbers depend on; null for one that is missing."""
    installed: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = None
    return installed


def machine(device: str, threads: int) -> dict[str, Any]:
    """Return host, device and thread count: resuming is bit-exact only where these are the same."""
    return {
        "host": platform.node(),
        "processor": platform.machine(),
        "cpus": os.cpu_count(),
        "device": device,
        "threads": threads,
        "slurm_job": _slurm_job(),
    }


def cost(earlier: Mapping[str, float], seconds: float, device: str, devices: int, threads: int) -> dict[str, float]:
    """Return what a run has cost after another `seconds`: hours of GPUs or of CPU cores, by unit.

    earlier: of the attempts before, which other devices may have run.
    """
    unit, used = ("core_hours", devices * threads) if device == "cpu" else ("gpu_hours", devices)
    return {**earlier, unit: round(earlier.get(unit, 0.0) + used * seconds / 3600, 6)}


def _slurm_job() -> str | None:
    """Return the id of the SLURM job as in sacct ("12", or "12_3" for a task of an array); None outside of SLURM."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    return f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ.get("SLURM_JOB_ID")


def here() -> dict[str, Any]:
    """Return the commit and host of this process, as trackers show them."""
    return {"commit": git_state()["commit"], "host": platform.node()}


def job_of(kind: Literal["train", "eval"], run: RunFolder, config: Mapping[str, Any], study: str | None) -> Job:
    """Return the work on a run as trackers show it: its configuration, its size as a number, commit and host.

    size counts what sample.count names, and sample_words is there only if that is words: a tracker can draw it.
    """
    facts, sample = {**described(config), **here()}, config.get("sample") or {}
    names = [config[group]["name"] for group in ("model", "corpus") if config.get(group)]
    if {"path", "checkpoint"}.isdisjoint(config["model"]):  # others were trained elsewhere
        facts["size"] = parse_size(sample["size"])
        facts |= {"sample_words": facts["size"]} if sample.get("count", "words") == "words" else {}
        names.append(str(sample["size"]))
    return Job(kind, run.path.name, study, run.path, facts, tuple(names))
