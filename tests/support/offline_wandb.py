"""Read offline W&B runs from disk."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


def hide_account(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Hide the machine's W&B key and mode, and let programs start their own W&B service."""
    for name in ("WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE", "WANDB_MODE", "WANDB_SERVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(folder / "netrc"))


@dataclass
class OfflineRun:
    """A W&B run from one or more offline folders with the same id, which are joined like `wandb sync` does."""

    id: str
    name: str
    group: str
    job_type: str
    project: str
    tags: list[str]
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    state: str = "crashed"

    def table(self, name: str) -> tuple[list[str], list[list[Any]]]:
        """Return the columns and rows of a table in the summary."""
        path = self.summary.get(f"{name}.path") or self.summary[name]["path"]  # the first if it was logged
        file = next(folder / "files" / path for folder in self.folders if (folder / "files" / path).exists())
        table = json.loads(file.read_text())
        return table["columns"], table["data"]


def records(folder: Path) -> list[dict[str, Any]]:
    """Return an offline folder's log, as `wandb leet inspect` prints it, or [] if its process was killed before it."""
    from wandb.util import get_core_path  # takes a second to import

    logs = list(folder.glob("*.wandb"))
    if not logs:
        return []
    (log,) = logs
    command = [get_core_path(), "leet", "inspect", "--no-observability", "--json", f"--run-file={log}", folder.parent]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def offline_runs(root: Path) -> dict[str, OfflineRun]:
    """Return all W&B runs below a folder by id, in the order of their starts."""
    runs: dict[str, OfflineRun] = {}
    for folder in sorted(root.rglob("offline-run-*-*"), key=lambda path: path.name):
        if folder.is_dir():
            _join(runs, folder)
    return runs


def tracked_job(root: Path, name: str, job_type: str) -> OfflineRun:
    """Return the W&B run for a job type of the run or study called `name`."""
    (run,) = [one for one in offline_runs(root).values() if one.name == f"{name} {job_type}"]
    return run


def _join(runs: dict[str, OfflineRun], folder: Path) -> None:
    log = records(folder)
    about = next((record["run"] for record in log if record["type"] == "run"), None)
    if about is None:
        return  # the W&B process was killed before it had written anything
    run = runs.setdefault(
        about["run_id"],
        OfflineRun(
            about["run_id"], about["display_name"], about.get("run_group", ""), about["job_type"],
            about.get("project", ""), about.get("tags", []),
        ),
    )  # fmt: skip
    run.folders.append(folder)
    run.config |= about["config"]["update"]
    run.state = "crashed"
    for record in log:
        match record["type"]:
            case "summary":
                run.summary |= record["summary"].get("update", {})
            case "history":
                run.history.append(record["history"]["item"])
            case "metric":
                run.metrics.append(record["metric"])
            case "artifact":
                run.artifacts.append(record["artifact"])
            case "config":
                run.config |= record["config"]["update"]
            case "exit":
                run.state = "failed" if record["exit"].get("exit_code") else "finished"
