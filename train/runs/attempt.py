"""An attempt at a run: config.yaml and manifest.json from its beginning to its end or failure."""

import contextlib
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TypedDict

from pairscale.command.schemas import yaml_of
from pairscale.errors import ConfigError, InputError, RunError, WriteError
from pairscale.files import write_bytes, write_text
from pairscale.schema import read_json
from train.config import RunConfig
from train.runs.folder import FAILED, GRID, UNFINISHED, RunFolder
from train.runs.identity import config_digest
from train.runs.provenance import git_state, versions


class _Sweep(TypedDict):
    """Schema of what is read of a file of the study's grid: the runs of a sweep, by id."""

    runs: dict[str, Any]


class Attempt:
    """Work on a run as a context, in a locked folder: begins with "unfinished", ends with "failed" if it raises.

    Bad input that stops it before any work leaves the folder as it was, unless a sweep requested the run.
    """

    def __init__(self, config: RunConfig, folder: RunFolder):
        self.config = config
        self.folder = folder
        self._fresh = all(path == folder.lock for path in folder.path.iterdir())
        self._files = {path: path.read_bytes() if path.exists() else None for path in (folder.config, folder.manifest)}

    def __enter__(self) -> None:
        """Write config.yaml, and the beginning, code and number of this attempt into the manifest."""
        folder, git = self.folder, git_state()
        before = folder.read_manifest()
        earlier = before.get("git")
        write_text(folder.config, yaml_of(self.config))
        self._begun = folder.update_manifest(
            status=UNFINISHED,
            config_digest=config_digest(self.config),
            started=before.get("started", _now()),
            attempts=before.get("attempts", 0) + 1,
            git=git,
            # The code of earlier attempts where it differs.
            earlier_git=[*before.get("earlier_git", []), *([] if earlier in (None, git) else [earlier])],
            versions=versions(),
            reason=None,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception):
            return
        folder = self.folder
        with contextlib.suppress(WriteError):  # the disk may be full: `error` is raised in any case
            bad_input = isinstance(error, (ConfigError, InputError)) and folder.read_manifest() == self._begun
            if not bad_input or _is_requested(folder):
                folder.update_manifest(status=FAILED, reason=f"{type(error).__name__}: {error}", ended=_now())
            else:  # nothing was done: a mistyped name, or a missing text
                self._undo()

    def _undo(self) -> None:
        """Restore the folder, or remove it if it is new."""
        if self._fresh:
            self.folder.discard()
            with contextlib.suppress(OSError):  # other runs are in it
                self.folder.path.parent.rmdir()
            return
        for path, data in self._files.items():
            if data is None:
                path.unlink(missing_ok=True)
            else:
                write_bytes(path, data)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _is_requested(run: RunFolder) -> bool:
    """Return True if a sweep requested a run, or if the grid of its study cannot be read."""
    try:
        sweeps = [read_json(path, _Sweep, RunError, "") for path in run.path.parent.glob(f"{GRID}/*.json")]
    except RunError:
        return True
    return any(run.path.name in sweep["runs"] for sweep in sweeps)
