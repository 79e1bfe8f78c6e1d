"""The finished runs of a study, for commands that work on all of them."""

from rich.console import Console

from corpora.config import RootConfig
from pairscale.console import print_text
from pairscale.errors import RunError
from train.runs.folder import DONE, RunFolder, study_runs


def done_runs(config: RootConfig, action: str, run: str | None = None) -> tuple[list[RunFolder], int]:
    """Return the finished runs of a study, or only the one named `run`, and the number of damaged runs.

    The other runs are listed as not `action` ("scored"), with the reason. Raises RunError if no run is finished, and
    the errors of `study_runs`.
    """
    done, damaged = [], 0
    for folder in study_runs(config.paths.runs, config.study or "", run):
        try:
            manifest = folder.read_manifest()
        except RunError as error:
            _say(f"not {action}: {error}")
            damaged += 1
            continue
        if manifest.get("status") == DONE:
            done.append(folder)
        else:
            status = ": ".join(filter(None, [manifest.get("status", "not started"), manifest.get("reason")]))
            _say(f"not {action}: {folder.path.name}: {status}")
    if not done:
        raise RunError(
            f"study={config.study}: no run is finished, so none can be {action} (see above). Run the training command "
            "again to continue."
        )
    return done, damaged


def check_failures(config: RootConfig, action: str, failed: int, total: int) -> None:
    """Raise RunError if some runs of a study could not be `action` ("scored"). Their errors have been printed."""
    if failed:
        raise RunError(f"study={config.study}: {failed} of {total} runs could not be {action} (see above).")


def _say(text: str) -> None:
    print_text(Console(highlight=False), text)
