"""Hydra launchers: processes of this machine (local.py) and jobs of SLURM (slurm.py).

Values: conf/hydra/launcher/. jobs.py has a job as local.py sees it, forks.py starts small runs quickly, remaining.py
estimates the time left. The other way to a cluster, slurm/submit, has sbatch options of its own.
"""

from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher

from pairscale.errors import RunError, RunInUse


def register_launcher(launcher: type[Launcher]) -> None:
    """Make a launcher known to Hydra as hydra_plugins.pairscale.NAME.

    Hydra makes plugins of one package only, and looks them up by a name in it; the classes may live elsewhere.
    """
    Plugins.instance().class_name_to_class[f"hydra_plugins.pairscale.{launcher.__name__}"] = launcher


def check_all(total: int, failed: int, unfinished: int) -> None:
    """Raise RunError if runs of a sweep failed, else RunInUse (exit code 75) if some have to be started again.

    The latter are nobody's fault: most often another process is working on them.
    """
    again = "(see above); the same command"
    if failed:
        rest = f", and {unfinished} did not begin or end" if unfinished else ""
        raise RunError(f"{failed} of {total} runs failed{rest} {again} tries them again")
    if unfinished:
        raise RunInUse(f"{unfinished} of {total} runs did not begin or end {again} goes on with them")
