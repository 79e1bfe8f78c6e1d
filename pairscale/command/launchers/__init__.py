"""Hydra's launchers of ours: processes of this machine (local.py), jobs of SLURM (slurm.py).

Values: conf/hydra/launcher/. jobs.py is what a launcher has to know of a run.
"""

from __future__ import annotations

from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher

from pairscale.errors import RunError, RunInUse


def register_launcher(launcher: type[Launcher]) -> None:
    """Make a launcher known to Hydra as hydra_plugins.pairscale.NAME.

    Hydra makes plugins of one package only, and looks them up by a name in it; the classes may live elsewhere.
    """
    Plugins.instance().class_name_to_class[f"hydra_plugins.pairscale.{launcher.__name__}"] = launcher


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
