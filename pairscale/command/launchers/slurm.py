"""Hydra launcher for SLURM (`hydra/launcher=slurm`): submitit's, but a failed run ends no sweep and is reported."""

import shutil
from collections.abc import Sequence
from typing import Any

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, filter_overrides
from hydra_plugins.hydra_submitit_launcher import submitit_launcher
from hydra_plugins.hydra_submitit_launcher.config import BaseQueueConf
from omegaconf import OmegaConf

from pairscale.command.launchers import check_all, register_launcher
from pairscale.command.rooms import register
from pairscale.console import say
from pairscale.errors import ConfigError, RunInUse


class SlurmLauncher(submitit_launcher.SlurmLauncher):  # type: ignore[misc]  # published without types
    """Launcher of one job array; it waits for every run and reports each failure with the last line of its reason."""

    def __call__(self, *args: Any, **kwargs: Any) -> JobReturn:
        """Run one job, within the job. Raises what the run raised, so that SLURM reports FAILED."""
        register()
        returned: JobReturn = super().__call__(*args, **kwargs)
        _ = returned.return_value
        return returned

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Submit all runs and wait. Raises ConfigError if they cannot be submitted, and as `check_all` at the end."""
        import submitit

        if shutil.which("srun") is None:
            raise ConfigError("hydra/launcher=slurm: no srun on the PATH; start this where SLURM is (a login node)")
        values = dict(self.params)
        # Since SLURM 22.05 srun takes one CPU by default, whatever the number for sbatch.
        cpus = f"export SRUN_CPUS_PER_TASK={values['cpus_per_task'] or 1}"
        values["setup"] = [cpus, "export PYTHONIOENCODING=utf-8", *(values["setup"] or [])]
        executor = submitit.AutoExecutor(
            cluster="slurm", folder=values.pop("submitit_folder"), slurm_max_num_timeout=values.pop("max_num_timeout")
        )
        shared = set(OmegaConf.structured(BaseQueueConf))
        executor.update_parameters(**{key if key in shared else f"slurm_{key}": values[key] for key in values})
        calls = [
            (list(overrides), "hydra.sweep.dir", initial_job_idx + n, f"job_id_for_{n}", Singleton.get_state())
            for n, overrides in enumerate(job_overrides)
        ]
        try:
            jobs = executor.map_array(self, *zip(*calls, strict=True))
        except submitit.core.utils.FailedJobError as error:
            raise ConfigError(f"sbatch refused the jobs of hydra/launcher=slurm: {_last(str(error))}") from None
        array = jobs[0].job_id.partition("_")[0]
        say(f"SLURM job {array}: {len(jobs)} runs, logs in {jobs[0].paths.folder}")
        alike = set.intersection(*map(set, job_overrides)) if len(jobs) > 1 else set()
        in_use = f"{RunInUse.__module__}.{RunInUse.__qualname__}: "  # as a traceback ends
        results, unfinished = [], 0
        try:
            for job, overrides in zip(jobs, job_overrides, strict=True):
                try:
                    results.append(job.result())
                except submitit.core.utils.UncompletedJobError as error:  # and FailedJobError, which is one
                    point = [override for override in filter_overrides(overrides) if override not in alike]
                    reason = _reason(error)
                    busy = reason.startswith(in_use)
                    unfinished += busy
                    state = "did not begin" if busy else "failed"
                    say(f"job {job.job_id} {state}: {' '.join(point)}: {reason.removeprefix(in_use)}")
        except KeyboardInterrupt:
            say(f"SLURM job {array} goes on; scancel {array} would end it")
            raise
        check_all(len(jobs), len(jobs) - len(results) - unfinished, unfinished)
        return results


def _reason(error: Exception) -> str:
    """Return the last line of the traceback in submitit's message, or of the message if there is none."""
    lines = [line.strip() for line in str(error).splitlines()]
    rules = [n for n, line in enumerate(lines) if line and not line.strip("-")]
    return _last("\n".join(lines[: rules[1]] if len(rules) > 1 else lines[:1]))


def _last(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip("- ")), "no reason")


register_launcher(SlurmLauncher)
