"""One training from its configuration to the exported model: build, resume, fit, finish."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.pytorch.strategies import DDPStrategy

from pairscale.errors import RunError
from pairscale.seeds import derived_seed
from train.config import RunConfig
from train.loop.checkpoints import UNREADABLE, CheckpointFiles, newest_checkpoint
from train.loop.data import TrainingData
from train.loop.device import device_of, enough_memory, set_up_cpu, set_up_gpu
from train.loop.module import LanguageModelling
from train.loop.preemption import Preemption
from train.loop.progress import TrainingProgress
from train.loop.ranks import Ranks
from train.loop.snapshots import Snapshots
from train.loop.state import TrainState
from train.models.build import build_model, check_context, parameter_count
from train.models.config import architectures
from train.runs.folder import DONE, RunFolder
from train.runs.model_folder import read_description
from train.runs.provenance import machine
from train.trackers.tracker import Tracker


def train(config: RunConfig, folder: RunFolder, tracker: Tracker | None, ranks: Ranks) -> None:
    """Train a run as one of its `ranks`, from its newest checkpoint; the first exports it and says "done".

    Raises RunError if it diverges or cannot be resumed, WriteError, and InputError or ConfigError for text and values.
    """
    with quiet_lightning():
        training = Training(config, folder, tracker, ranks)
        checkpoint = training.checkpoint()
        training.record()
        training.fit(checkpoint)
        training.finish()


class Training:
    """The parts of a training in one process: data, model, state, Lightning's module and trainer."""

    def __init__(self, config: RunConfig, folder: RunFolder, tracker: Tracker | None, ranks: Ranks):
        self.config = config
        self.folder = folder
        self.ranks = ranks
        self.earlier = folder.read_manifest()  # of the attempts before this one
        device = device_of(config.trainer, ranks.size)
        self.data = TrainingData.prepare(config, ranks)
        check_context(config.model, config.recipe, self.data.vocabulary)
        self.parameters = parameter_count(config.model, self.data.vocabulary)
        recorded = self.earlier.get("machine", {}) if folder.checkpoints else {}
        set_up_cpu(config.trainer, self.parameters, recorded.get("threads"), ranks.size)
        set_up_gpu(config.precision == "bf16")
        torch.manual_seed(derived_seed(config.model.seed, config.seed, "initialisation"))
        self.model = build_model(config.model, self.data.vocabulary)
        # Dropout draws from its own seed, so that it is the same whatever the initialisation drew.
        part = "training" if ranks.first else f"training of rank {ranks.rank}"
        torch.manual_seed(derived_seed(config.recipe.seed, config.seed, part))
        snapshots = Snapshots(folder, config.trainer.snapshots, self.data.batches)
        self.state = TrainState(folder, self.data.batches, snapshots, ranks)
        self.preemption = Preemption()
        self.module = LanguageModelling(config, self.model, self.data, self.state, self.preemption, tracker)
        progress = TrainingProgress(self.state, show=config.trainer.progress)
        artifacts = tracker if "checkpoint" in config.logger.artifacts else None
        self.trainer = L.Trainer(
            accelerator=device,
            devices=ranks.size,
            strategy=_strategy(config, ranks),
            precision="bf16-mixed" if config.precision == "bf16" else "32-true",
            max_epochs=1,  # the loader holds the whole run: a checkpoint is always in the middle of one pass
            logger=False,  # the module writes metrics.csv and calls the tracker
            callbacks=[progress, self.preemption] if ranks.first else [self.preemption],
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder.path,
            plugins=[*_environments(ranks), CheckpointFiles(folder, artifacts)],
        )

    def checkpoint(self) -> Path | None:
        """Return the newest whole checkpoint, None for a run that starts; RunError if it is of another sample."""
        path = newest_checkpoint(self.folder, tell=self.ranks.first)
        if path and self.earlier.get("sample_digest") not in (None, self.data.sample.digest):
            raise RunError(f"{path}: of a run on another sample of text; remove the run's folder to start again")
        return path

    def record(self) -> None:
        """Record model, text and machine in the manifest."""
        if self.ranks.first:
            self.folder.update_manifest(
                **self.data.digests,
                devices=self.ranks.size,
                parameters=self.parameters,
                vocabulary=self.data.vocabulary,
                tokens=len(self.data.sample.tokens),
                corpus=self.data.corpus.manifest,
                machine=machine(str(self.trainer.strategy.root_device), torch.get_num_threads()),
                steps=len(self.data.batches),
            )

    def fit(self, checkpoint: Path | None) -> None:
        """Train from `checkpoint`, or from the start, to the end of the budget; a budget of 0 is only validated."""
        if self.config.trainer.compile:
            self.model.compile()
        self.state.start_clock(self.earlier.get("wall_s", 0))
        try:
            with enough_memory("give trainer.devices=2, which divides each step, or a smaller recipe.batch"):
                if len(self.data.batches):
                    self.trainer.fit(self.module, self.data.batches, ckpt_path=checkpoint, weights_only=True)
                elif self.ranks.first:
                    self.state.last = self.data.validation(self.model, torch.device("cpu"))
                    self.module.keep_best(0)
        except (*UNREADABLE, OSError) as error:
            if checkpoint and self.trainer.global_step == 0:
                reason = " ".join(str(error).split())[:300]
                raise RunError(
                    f"{checkpoint}: whole, but this code cannot resume from it ({reason}); resume with the versions in "
                    f"{self.folder.manifest.name}, or remove {self.folder.checkpoint_folder} to start again"
                ) from error
            raise
        except SystemExit as ended:  # by which Lightning ends on Ctrl-C
            if isinstance(ended.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise

    def finish(self) -> None:
        """Export the last weights with export=last, mark the run as done, and remove its checkpoints."""
        if not self.ranks.first:
            return
        batches, state = self.data.batches, self.state
        assert state.last is not None
        if self.config.recipe.export == "last":
            self.module.export(len(batches))
        steps = len(batches) - state.first_step
        self.folder.update_manifest(
            status=DONE,
            ended=datetime.now(UTC).isoformat(timespec="seconds"),
            stuck=read_description(self.folder.model, architectures())["info"].get("stuck"),
            words_seen=batches.words_seen(len(batches)),
            words_per_s=round(batches.words_seen(steps) / state.attempt_s) if steps else None,
            wall_s=state.wall_s,
            export=self.config.recipe.export,
            last=state.last.metrics(),
            best_nats_per_word=state.best,
        )
        self.folder.progress.unlink(missing_ok=True)
        self.folder.remove_checkpoints()
        self.preemption.ended()


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Silence Lightning: banners, advice on data loaders, deprecated names of torch."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        for category in (UserWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category, module="lightning")
        yield


def _strategy(config: RunConfig, ranks: Ranks) -> Any:
    """Return Lightning's strategy; DDP has to know if a step may leave weights without a gradient."""
    return "auto" if ranks.size == 1 else DDPStrategy(find_unused_parameters=config.model.skips_weights)


def _environments(ranks: Ranks) -> list[Any]:
    if ranks.size > 1:  # also within a job of SLURM, whose one task starts all ranks
        return [LightningEnvironment()]
    # slurm/run.sbatch requeues; if Lightning did so too, the job would start twice.
    return [SLURMEnvironment(auto_requeue=False)] if SLURMEnvironment.detect() else []
