"""Hydra's way to pool.py (`hydra/launcher=local`). It goes away once main.py composes the points of a sweep itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import MISSING, DictConfig

from pairscale.command.pool import PoolSettings, check_codes, run_jobs
from pairscale.command.rooms import runs
from pairscale.command.schemas import store_schemas


@dataclass
class LocalConfig(PoolSettings):
    """Schema of conf/hydra/launcher/local.yaml."""

    _target_: str = MISSING


class LocalLauncher(Launcher):
    """Launcher of all runs by `run_jobs`."""

    def __init__(self, **values: Any) -> None:
        self.settings = PoolSettings(**values)

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Store what Hydra hands to a launcher."""
        self.config = config
        self.loader = hydra_context.config_loader

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all jobs. Raises as `check_codes`."""
        jobs = runs().jobs(self.loader, self.config, job_overrides)
        progress = bool(self.config.trainer.progress) and not self.config.verbose
        memory = partial(runs().memory_of, jobs)
        check_codes(run_jobs(self.config.hydra.job.name, jobs, self.settings, progress, memory))
        return [
            JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED, _return_value=None)
            for overrides in job_overrides
        ]


store_schemas("hydra/launcher", local_schema=LocalConfig)
Plugins.instance().class_name_to_class["hydra_plugins.pairscale.LocalLauncher"] = LocalLauncher
