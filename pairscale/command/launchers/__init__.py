"""Hydra's launchers of ours; pairscale.command.rooms.register makes them known to Hydra (values: conf/hydra/launcher/)."""

from __future__ import annotations

from pairscale.errors import RunError, RunInUse


def check_all(total: int, failed: int, unfinished: int) -> None:
    """Raise RunError where runs of a sweep failed, else RunInUse where some have to be started again (exit code 75).

    Those are nobody's fault: another process is at work on them, most often.
    """
    again = "(told above); the same command"
    if failed:
        rest = f", and {unfinished} did not begin or end" if unfinished else ""
        raise RunError(f"{failed} of {total} runs failed{rest} {again} tries them again")
    if unfinished:
        raise RunInUse(f"{unfinished} of {total} runs did not begin or end {again} goes on with them")
