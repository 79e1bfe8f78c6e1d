"""TensorBoard (logger=tensorboard): the curves of training over words seen, in `tensorboard` in the run folder."""

from functools import cached_property
from importlib.util import find_spec
from typing import Any

from pairscale.errors import ConfigError
from train.trackers.tracker import Job, LoggerConfig, Tracker, tracker


@tracker("tensorboard")
class TensorBoardTracker(Tracker):
    """An event file, written from the first point on. A resumed run writes all its points again into a new one."""

    def __init__(self, logger: LoggerConfig, job: Job):
        """Raises ConfigError, before a run begins its work, if TensorBoard is not installed."""
        super().__init__(logger, job)
        if job.kind == "train" and find_spec("tensorboard") is None:
            raise ConfigError('logger=tensorboard: not installed; pip install -e ".[tensorboard]"')

    @cached_property
    def _writer(self) -> Any:
        from torch.utils.tensorboard import SummaryWriter

        # purge_step: TensorBoard shows none of the points in earlier files.
        return SummaryWriter(self.job.folder / "tensorboard", purge_step=0)

    def add_point(self, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, values["words_seen"])

    def finish(self, failed: bool) -> None:
        if "_writer" in self.__dict__:
            self._writer.close()
