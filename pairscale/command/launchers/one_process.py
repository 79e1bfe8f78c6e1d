"""Hydra launcher of one process (`hydra/launcher=basic`): Hydra's own, with its runs on a board."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hydra._internal.core_plugins.basic_launcher import BasicLauncher
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from pairscale.command.launchers import register_launcher
from pairscale.command.launchers.board import Board, run_names, shows_board
from pairscale.command.rooms import runs

BOARD_COMMANDS = ("train", "eval")  # those whose runs are work for a board


class OneProcessLauncher(BasicLauncher):
    """Launcher of one run after another in this process."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Store what Hydra hands to a launcher."""
        super().setup(hydra_context=hydra_context, task_function=task_function, config=config)
        self.loader = hydra_context.config_loader

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all jobs in turn."""
        assert self.config is not None
        assert self.task_function is not None
        several = len(job_overrides) > 1 and self.config.hydra.job.name in BOARD_COMMANDS
        if not several or not shows_board(self.config):
            return super().launch(job_overrides, initial_job_idx)
        jobs, run = runs().jobs(self.loader, self.config, job_overrides), self.task_function
        board = Board(run_names(jobs), [job.work for job in jobs], 1)

        def shown_run(config: DictConfig) -> None:
            board.run_here(HydraConfig.get().job.num - initial_job_idx, partial(run, config))

        self.task_function = shown_run
        with board.shown():
            return super().launch(job_overrides, initial_job_idx)


@dataclass
class OneProcessConfig:
    """Values of the launcher; it has none, as Hydra's."""

    _target_: str = "hydra_plugins.pairscale.OneProcessLauncher"


# Hydra's own has the name already, and a YAML file would have to be of its type.
ConfigStore.instance().store(group="hydra/launcher", name="basic", node=OneProcessConfig, provider="pairscale")
register_launcher(OneProcessLauncher)
