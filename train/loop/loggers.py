"""What Lightning writes the points of a run's curves to, besides metrics.csv."""

from __future__ import annotations

from typing import Any

from lightning.pytorch.loggers import Logger, TensorBoardLogger

from train.config import RunConfig
from train.runs.folder import RunFolder
from train.runs.wandb import Tracker


class TrackerLogger(Logger):
    """Passes points on to a W&B run that is open already, so that Lightning's part of tracking is these lines."""

    def __init__(self, tracker: Tracker):
        super().__init__()
        self.tracker = tracker

    @property
    def name(self) -> str:
        return "wandb"

    @property
    def version(self) -> str:
        return str(self.tracker.run.id)

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """One point; its x, words_seen, is among its values."""
        self.tracker.log(metrics)

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Nothing: the whole configuration went there when tracking began."""


def loggers(config: RunConfig, folder: RunFolder, tracker: Tracker | None) -> list[Logger]:
    """The loggers of a run; none for logger=csv, as metrics.csv is always written."""
    if config.logger.name == "tensorboard":
        return [TensorBoardLogger(folder.path, name="tensorboard", version="")]
    return [TrackerLogger(tracker)] if tracker is not None else []
