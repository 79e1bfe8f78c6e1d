"""Record the code, versions, machine and cost behind a run's results in its manifest."""

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
DIFFERENCE_LIMIT = 100_000  # how many characters of `git diff` to record


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        result = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None  # no git, or an installed package
    return result.stdout


@lru_cache(maxsize=1)  # a process keeps running the code it started with, whatever is committed later
def git_state() -> dict[str, Any]:
    """Return the commit of this code and its difference from that commit. Outside a checkout, all values are None."""
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
    """Return the versions of Python and of all packages that affect results, with None for a missing package."""
    installed: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = None
    return installed


def machine(device: str, threads: int) -> dict[str, Any]:
    """Describe the machine. Resuming is bit-exact only on the same host and device, with the same number of threads."""
    return {
        "host": platform.node(),
        "processor": platform.machine(),
        "cpus": os.cpu_count(),
        "device": device,
        "threads": threads,
        "slurm_job": _slurm_job(),
    }


def cost(earlier: Mapping[str, float], seconds: float, device: str, devices: int, threads: int) -> dict[str, float]:
    """Add `seconds` of computing to a run's cost, and return the total GPU hours or core hours, by unit.

    `earlier` is the cost of earlier attempts, which may have used other devices.
    """
    unit, used = ("core_hours", devices * threads) if device == "cpu" else ("gpu_hours", devices)
    return {**earlier, unit: round(earlier.get(unit, 0.0) + used * seconds / 3600, 6)}


def _slurm_job() -> str | None:
    """Return the SLURM job's id as sacct shows it ("12", or "12_3" for an array task), or None outside SLURM."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    return f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ.get("SLURM_JOB_ID")


def here() -> dict[str, Any]:
    """Return the commit and the host of this process, for trackers."""
    return {"commit": git_state()["commit"], "host": platform.node()}


def job_of(kind: Literal["train", "eval"], run: RunFolder, config: Mapping[str, Any], study: str | None) -> Job:
    """Describe the work on a run for trackers: its configuration, its size as a number, commit and host.

    `size` is in the unit of sample.count. If that is words, `sample_words` has the same number, for plots.
    """
    facts, sample = {**described(config), **here()}, config.get("sample") or {}
    names = [config[group]["name"] for group in ("model", "corpus") if config.get(group)]
    if {"path", "checkpoint"}.isdisjoint(config["model"]):  # all other models were trained elsewhere
        facts["size"] = parse_size(sample["size"])
        facts |= {"sample_words": facts["size"]} if sample.get("count", "words") == "words" else {}
        names.append(str(sample["size"]))
    return Job(kind, run.path.name, study, run.path, facts, tuple(names))
