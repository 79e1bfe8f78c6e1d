"""Write curves for TensorBoard (logger=tensorboard), to `tensorboard` in the job's folder."""

from functools import cached_property
from importlib.util import find_spec
from typing import Any

from pairscale.errors import ConfigError
from train.trackers.tracker import Job, LoggerConfig, Tracker, tracker


@tracker("tensorboard")
class TensorBoardTracker(Tracker):
    """A tracker that writes an event file with all points. A resumed run replaces the earlier file."""

    def __init__(self, logger: LoggerConfig, job: Job):
        """Prepare to write. Raises ConfigError, before a run begins its work, if TensorBoard is not installed."""
        super().__init__(logger, job)
        if job.kind in ("train", "finetune") and find_spec("tensorboard") is None:
            raise ConfigError('logger=tensorboard: TensorBoard is not installed. Run: pip install -e ".[tensorboard]"')

    @cached_property
    def _writer(self) -> Any:
        from torch.utils.tensorboard import SummaryWriter

        # Scoring has its own folder, so that the file of the run's training stays.
        folder = self.job.folder / "tensorboard" / ("snapshots" if self.job.kind == "eval" else "")
        for earlier in folder.glob("events.out.tfevents.*"):  # TensorBoard would sort them by second and process
            earlier.unlink()
        return SummaryWriter(folder, purge_step=0)  # makes a running TensorBoard drop the earlier points

    def log(self, point: dict[str, float]) -> None:
        for name, value in point.items():
            self._writer.add_scalar(name, value, point[self.job.x])

    def finish(self, failed: bool) -> None:
        if "_writer" in self.__dict__:
            self._writer.close()
