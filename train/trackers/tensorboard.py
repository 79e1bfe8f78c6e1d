"""TensorBoard (logger=tensorboard): the curves of training over words seen, in `tensorboard` in the run folder."""

from functools import cached_property
from importlib.util import find_spec
from typing import Any

from pairscale.errors import ConfigError
from train.trackers.tracker import Job, LoggerConfig, Tracker, tracker


@tracker("tensorboard")
class TensorBoardTracker(Tracker):
    """An event file, written from the first point on. That of a resumed run has all points and replaces the earlier."""

    def __init__(self, logger: LoggerConfig, job: Job):
        """Raises ConfigError, before a run begins its work, if TensorBoard is not installed."""
        super().__init__(logger, job)
        if job.kind == "train" and find_spec("tensorboard") is None:
            raise ConfigError('logger=tensorboard: not installed; pip install -e ".[tensorboard]"')

    @cached_property
    def _writer(self) -> Any:
        from torch.utils.tensorboard import SummaryWriter

        folder = self.job.folder / "tensorboard"
        for earlier in folder.glob("events.out.tfevents.*"):  # whose names TensorBoard sorts by second, then process
            earlier.unlink()
        return SummaryWriter(folder, purge_step=0)  # a TensorBoard that runs drops the points it has

    def log(self, point: dict[str, float]) -> None:
        for name, value in point.items():
            self._writer.add_scalar(name, value, point["words_seen"])

    def finish(self, failed: bool) -> None:
        if "_writer" in self.__dict__:
            self._writer.close()
