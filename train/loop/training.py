"""Train one run, from its configuration to its exported model, in the order in which things happen.

Start at `train`, which prepares the text, builds the model, resumes from a checkpoint, lets Lightning run the loop, and
exports the model. `LanguageModelling` is the module that Lightning runs. Its hooks appear in the order in which they
are called. Nothing depends on the clock, so a killed run repeats the same steps.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import lightning as L
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor

from corpora.fast_tokenizers import check_masked
from corpora.prepare import Corpus, HeldOut, SampleTokens
from pairscale.console import say
from pairscale.errors import RunError
from pairscale.files import write_json
from pairscale.progress import Activity
from pairscale.seeds import derived_seed
from pairscale.sizes import parse_size
from train.config import RunConfig, config_digest
from train.loop.batches import Batch, Batches, Blocks, Columns, Masked
from train.loop.device import Ranks, device_of, enough_memory, set_up_cpu, set_up_gpu
from train.loop.perplexity import Perplexity, evaluate, evaluate_masked, evaluate_windows
from train.loop.preemption import Preemption
from train.loop.snapshots import Snapshots
from train.loop.state import TrainState, write_checkpoint
from train.models.base import LanguageModel
from train.models.build import build_model, check_context, parameter_count
from train.models.config import HuggingFaceConfig, architectures
from train.recipes import COLUMNS, RecipeConfig
from train.runs.folder import DONE, MetricsFile, RunFolder
from train.runs.model_folder import read_description, save_model
from train.runs.provenance import cost, machine
from train.trackers.tracker import Tracker

LOG_POINTS = 200  # number of logged points of the training loss per run
DETAIL_SECONDS = 1.0  # time between readings of the loss for the terminal, because each makes a GPU wait
FILE_SECONDS = 5  # time between updates of progress.json


def train(
    config: RunConfig,
    corpus: Corpus,
    folder: RunFolder,
    tracker: Tracker | None,
    ranks: Ranks,
    checkpoint: Path | None = None,
) -> None:
    """Train a run in this process, one of its `ranks`. The first rank exports the model and marks the run as done.

    With a `checkpoint`, training resumes from it. Raises RunError if the run diverges or cannot be resumed, and
    WriteError if a file cannot be written. Raises InputError for bad text, and ConfigError for bad values.
    """
    with quiet_lightning():
        module = set_up(config, corpus, folder, tracker, ranks, checkpoint)
        fit(module)
        if ranks.first:
            module.finish()


def set_up(
    config: RunConfig,
    corpus: Corpus,
    folder: RunFolder,
    tracker: Tracker | None,
    ranks: Ranks,
    checkpoint: Path | None = None,
) -> LanguageModelling:
    """Load a run's text, model and checkpoint, ready for training, and record them in the manifest."""
    earlier = folder.read_manifest()  # written by earlier attempts
    device = device_of(config.trainer, ranks.size)
    data = TrainingData.prepare(config, corpus, ranks)
    check_context(config.model, config.recipe, data.vocabulary)
    parameters = parameter_count(config.model, data.vocabulary)
    recorded = earlier.get("machine", {}).get("threads") if checkpoint is not None else None
    set_up_cpu(config.trainer, parameters, recorded, ranks.size)
    set_up_gpu(config.precision == "bf16")

    torch.manual_seed(derived_seed(config.model.seed, config.seed, "initialisation"))
    model = build_model(config.model, data.vocabulary)
    # Dropout has its own seed, so that it doesn't depend on what the initialisation has drawn.
    part = "training" if ranks.first else f"training of rank {ranks.rank}"
    torch.manual_seed(derived_seed(config.recipe.seed, config.seed, part))
    module = LanguageModelling(config, folder, data, model, ranks, tracker)

    if checkpoint is not None:
        if earlier.get("sample_digest") not in (None, data.sample.digest):
            raise RunError(
                f"{checkpoint}: this checkpoint was trained on a different sample of text. Remove the run's folder to "
                "start again."
            )
        module.state.read(checkpoint)
    module.earlier, module.used = earlier, (device, ranks.size, torch.get_num_threads())
    if ranks.first:
        folder.update_manifest(
            **data.digests,
            devices=ranks.size,
            parameters=parameters,
            vocabulary=data.vocabulary,
            tokens=len(data.sample.tokens),
            corpus=data.corpus.manifest,
            machine=machine("cuda:0" if device == "cuda" else device, torch.get_num_threads()),
            steps=len(data.batches),
        )
    return module


def fit(module: LanguageModelling) -> None:
    """Train a run from its current state to the end of its budget. With a budget of 0, only validate the model."""
    config, ranks = module.config, module.ranks
    if config.trainer.compile:
        module.model.compile()
    module.started = time.monotonic()
    if not len(module.batches):
        if ranks.first:
            module.last = module.data.validation(module.model, torch.device("cpu"))
            module.keep_best()
        return
    # DDP has to know whether a step can leave some weights without a gradient.
    strategy = None if ranks.size == 1 else DDPStrategy(find_unused_parameters=config.model.skips_weights)
    remedy = "divide each step between two GPUs with trainer.devices=2, or lower recipe.batch"
    try:
        run_loop(module, module.batches.after(module.state.step), remedy, strategy)
    finally:
        module.progress.end()


def run_loop(module: Any, batches: Iterable[Any], remedy: str, strategy: DDPStrategy | None = None) -> None:
    """Let Lightning run the steps of a module, which has `config` and `folder` and writes its own files.

    If a GPU runs out of memory, the message ends with `remedy`. `strategy` is for several devices.
    """
    config, devices = module.config, module.config.trainer.devices
    environments: list[Any] = []
    if strategy is not None:  # in a SLURM job, too, because its only task starts all ranks
        environments = [LightningEnvironment()]
    elif SLURMEnvironment.detect():  # slurm/run.sbatch requeues; if Lightning did so too, the job would start twice
        environments = [SLURMEnvironment(auto_requeue=False)]
    trainer = L.Trainer(
        accelerator=device_of(config.trainer, devices),
        devices=devices,
        strategy=strategy or "auto",
        precision="bf16-mixed" if config.precision == "bf16" else "32-true",
        max_epochs=1,  # Lightning's epoch is the rest of the run
        logger=False,  # the module writes metrics.csv and calls the tracker
        enable_checkpointing=False,  # the module writes its own checkpoints
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=module.folder.path,
        plugins=environments,
    )
    try:
        with enough_memory(remedy):
            trainer.fit(module, batches)
    except SystemExit as ended:  # Lightning raises this on Ctrl-C
        if isinstance(ended.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Silence Lightning's banners, its advice on data loaders, and its use of deprecated torch names."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        for category in (UserWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category, module="lightning")
        yield


@dataclass(frozen=True)
class TrainingData:
    """A run's prepared corpus, its sample, and the text that one rank trains and validates on."""

    config: RunConfig
    corpus: Corpus
    sample: SampleTokens
    held_out: HeldOut
    batches: Batches
    masked: Masked | None  # the masked objective; None: predict the next token

    @classmethod
    def prepare(cls, config: RunConfig, corpus: Corpus, ranks: Ranks) -> TrainingData:
        """Prepare the corpus if needed and draw the sample.

        Raises InputError for bad text, and ConfigError if there is too little of it.
        """
        model, recipe, share = config.model, config.recipe, (ranks.rank, ranks.size)
        sample = corpus.sample()
        masked, words = None, recipe.validation_words
        if isinstance(model, HuggingFaceConfig) and model.masking is not None:
            check_masked(corpus.tokenizer)  # now, because its files are written only when the run ends
            masked, words = Masked.of(model.masking, model.shift, corpus.tokenizer), model.masking.validation_words
        held_out = corpus.held_out("valid", min(recipe.validation_words, words))
        batches: Batches
        if recipe.packing == COLUMNS:
            batches = Columns(sample.tokens, sample.words, recipe, share)
        else:
            batches = Blocks(sample, recipe, derived_seed(recipe.seed, config.seed, "blocks"), masked, share)
        return cls(config, corpus, sample, held_out, batches, masked)

    def validation(self, model: LanguageModel, device: torch.device) -> Perplexity:
        """Return the model's perplexity on the held-out text, or the pseudo-perplexity of a masked model."""
        if model.carries_state:
            return evaluate(model, self.held_out, device)
        context = self.config.recipe.bptt
        if self.masked is None:
            return evaluate_windows(model, self.held_out, device, context)
        return evaluate_masked(model, self.held_out, device, context, self.masked.shift)

    @property
    def vocabulary(self) -> int:
        return len(self.corpus.tokenizer)

    @property
    def digests(self) -> dict[str, Any]:
        """The facts about the training text for the manifest and the exported model."""
        return {
            "sample_words": self.sample.words,
            "sample_digest": self.sample.digest,
            "config_digest": config_digest(self.config),
        }


class LanguageModelling(L.LightningModule):
    """The training of one run, with everything that happens before the first step, in each step, and after it.

    The learning rate is set before each step. Logging, validation, snapshots and checkpoints follow the step, in this
    order.
    """

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        data: TrainingData,
        model: LanguageModel,
        ranks: Ranks,
        tracker: Tracker | None,
    ):
        super().__init__()
        self.automatic_optimization = False  # `training_step` calls the optimiser itself
        self.config, self.folder, self.data, self.ranks, self.tracker = config, folder, data, ranks, tracker
        self.model = model
        self.batches = data.batches
        self.state = TrainState(model, ranks)
        self.metrics = MetricsFile(folder.metrics)
        self.snapshots = Snapshots(folder, config.trainer.snapshots, data.batches)
        self.preemption = Preemption(ranks)
        self.progress = Progress(self, is_visible=config.trainer.progress)
        self.intervals = step_intervals(config.recipe, data.batches)
        self.last: Perplexity | None = None  # the latest validation of this attempt
        self.first_step = 0  # number of steps in earlier attempts
        self.checked = 0  # losses and gradients up to this step were finite
        self.earlier: Mapping[str, Any] = {}  # the manifest of earlier attempts, up to their last checkpoints
        self.used = ("cpu", 1, 1)  # kind of device, number of devices, number of threads
        self.started = time.monotonic()

    @property
    def spent(self) -> dict[str, Any]:
        """The time (wall_s, in seconds) and cost of all attempts so far, for the manifest."""
        seconds = time.monotonic() - self.started
        return {
            "wall_s": round(self.earlier.get("wall_s", 0) + seconds, 1),
            "cost": cost(self.earlier.get("cost", {}), seconds, *self.used),
        }

    def configure_optimizers(self) -> torch.optim.Optimizer:
        self.state.optimizer = self.config.recipe.optimizer(self.model.parameters())
        return self.state.optimizer

    def on_train_start(self) -> None:
        """Restore the checkpoint, cut the run's files back to its step, and start listening for signals."""
        step = self.first_step = self.checked = self.state.step
        self.state.restore(self.device)
        self.metrics.forget_after(step)
        # Loss (nats per token) and gradient norm of each step since the last log point, kept on the model's device.
        self.recent = torch.zeros(self.intervals["log"], 2, device=self.device)
        if self.ranks.first:
            self.snapshots.go_on_after(step)
            if step == 0 and 0 in self.snapshots.moments:
                self.snapshots.write(self.model, 0)
            self.progress.begin()
        self.preemption.listen()
        self.model.train()

    def training_step(self, batch: Batch, batch_idx: int) -> None:
        """Set the learning rate, add up the gradients over the parts of a batch, clip them, and update the weights."""
        state, recipe = self.state, self.config.recipe
        rate = recipe.scheduled_rate(state.step, len(self.batches))
        if rate is not None:
            state.rate = rate
        state.optimizer.zero_grad()
        total = torch.zeros((), device=self.device)
        for part in batch.parts(recipe.accumulate):
            loss = self._loss(part)
            with torch.autocast(self.device.type, enabled=False):
                self.manual_backward(loss)
            total = total + loss.detach()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        state.optimizer.step()
        self.recent[state.step % self.intervals["log"]] = torch.stack([total, norm])
        state.step += 1

    def _loss(self, batch: Batch) -> Tensor:
        """Return the loss of a batch, or of a part of it, in nats per target of the whole batch.

        With a hybrid objective, the mean losses of causal and masked blocks are weighted by their shares of the blocks.
        """
        carried = self.state.carried
        if batch.first or carried is None:
            carried = self.model.initial_state(batch.inputs.shape[0])
        modes = () if batch.causal is None else (batch.causal,)
        hidden, self.state.carried = self.model(batch.inputs, carried, *modes)
        targets = batch.targets.reshape(-1)
        hidden = hidden.reshape(targets.numel(), -1)
        terms = []
        for places, divisor in batch.terms():
            of, tokens = (hidden, targets) if places is None else (hidden[places], targets[places])
            nats = self.model.loss(of, tokens)
            self.state.add_loss(nats, len(tokens))
            terms.append(nats / divisor)
        return sum(terms[1:], terms[0])

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        """Log, validate, and write snapshots and checkpoints if any are due after this step."""
        step = self.state.step
        final = step == len(self.batches)
        log = final or step % self.intervals["log"] == 0
        validate = final or step % self.intervals["validate"] == 0
        if log or validate or step in self.snapshots.moments:
            self.check_finite()
        if log:
            self._add_row(lr=self.state.rate, train_nats_per_token=self.state.take_loss())
        if validate:
            improved = self.validate()
            self.state.rate = self.config.recipe.rate_after_validation(self.state.rate, improved)
        if self.tracker is not None and (values := self.metrics.at(step)):
            self.tracker.log(values)
        if self.ranks.first and step in self.snapshots.moments:
            self.snapshots.write(self.model, step)
        if final:
            if self.ranks.first:
                self.metrics.write()  # the export comes next; if killed before it, the run resumes from a checkpoint
        elif step % self.intervals["checkpoint"] == 0 or self.preemption.requested(step):
            self.save()
        if self.ranks.first:
            self.progress.update()

    def validate(self) -> bool:
        """Validate the model. Return True if this is the best validation so far."""
        step = self.state.step
        validation = self.data.validation(self.model, self.device) if self.ranks.first else None
        self.last = self.ranks.gathered(validation)[0]
        assert self.last is not None
        if not math.isfinite(loss := self.last.nats / self.last.words):
            raise RunError(
                f"The run diverged: the validation loss is {loss} after {step:,} steps, although all weights are "
                "finite. Lower recipe.lr."
            )
        self._add_row(**self.last.metrics())
        return self.keep_best()

    def keep_best(self) -> bool:
        """Return True if the latest validation is the best so far. With export=best, also write the model."""
        assert self.last is not None
        loss = self.last.nats / self.last.words
        improved = self.state.best is None or loss < self.state.best
        if improved:
            self.state.best = loss
            if self.ranks.first and self.config.recipe.export == "best":
                self.export()
        return improved

    def _add_row(self, **values: float) -> None:
        """Add values to this step's row of metrics.csv."""
        step = self.state.step
        at = {"words_seen": self.batches.words_seen(step), "epoch": step / self.batches.steps_per_epoch}
        self.metrics.add(step, {**at, **values})

    def save(self) -> None:
        """Write metrics.csv and a checkpoint, then handle any signal. Raises the same errors as `check_finite`."""
        self.check_finite()
        contents = self.state.state_dict()
        if self.ranks.first:
            self.metrics.write()
            write_checkpoint(self.folder, contents)
            if self.tracker is not None and "checkpoint" in self.config.logger.artifacts:
                name = f"{self.folder.path.name}-checkpoint"
                self.tracker.artifact(name, "checkpoint", self.folder.checkpoints[:1])
            self.folder.update_manifest(**self.spent)
        self.preemption.saved()

    def check_finite(self) -> None:
        """Raise RunError, naming the step, if any loss, gradient or weight since the last check is not finite.

        This makes a GPU wait, so it is called only at log points and before anything is exported or saved.
        """
        step, first = self.state.step, self.checked % self.intervals["log"]
        if step == self.checked:
            return
        recent = self.recent[first : first + step - self.checked]
        bad = ~recent.isfinite().all(dim=1)
        weights = [*self.model.parameters(), *(self.state.carried or ())]
        bad_weights = ~torch.stack([weight.isfinite().all() for weight in weights]).all()
        if any(self.ranks.gathered(bool(bad.any() | bad_weights))):
            at = int(bad.int().argmax()) if bool(bad.any()) else len(recent) - 1
            self._diverged(*min(self.ranks.gathered((self.checked + at + 1, *recent[at].tolist()))))
        self.checked = step

    def _diverged(self, step: int, loss: float, norm: float) -> NoReturn:
        if self.ranks.first:
            self.metrics.write()  # up to the last log point, to show how the run got here
        rate = self.config.recipe.scheduled_rate(step - 1, len(self.batches))
        if rate is None:
            rate = self.state.rate
        raise RunError(
            f"The run diverged at step {step:,} of {len(self.batches):,} ({self.batches.words_seen(step):,} words "
            f"seen). Its loss was {loss:.4g} nats per token, with a gradient norm of {norm:.4g} and a learning rate of "
            f"{rate:.4g}. Lower recipe.lr or recipe.clip to start another run. This one would only diverge again."
        )

    def export(self) -> None:
        """Write the model for scoring, together with the latest validation."""
        assert self.last is not None
        step = self.state.step
        info = {**self.data.digests, "step": step, "words_seen": self.batches.words_seen(step), **self.last.metrics()}
        if self.last.stuck and step:
            info["stuck"] = self.last.stuck
        save_model(self.folder.model, self.model, self.config.model, self.data.corpus.tokenizer, info)

    def finish(self) -> None:
        """Export the last weights with export=last, mark the run as done, and remove its checkpoints."""
        assert self.last is not None
        if self.config.recipe.export == "last":
            self.export()
        exported = read_description(self.folder.model, architectures())  # possibly written by an earlier attempt
        seconds = time.monotonic() - self.started
        steps = len(self.batches) - self.first_step
        self.folder.update_manifest(
            status=DONE,
            ended=datetime.now(UTC).isoformat(timespec="seconds"),
            stuck=exported["info"].get("stuck"),
            words_seen=self.batches.words_seen(len(self.batches)),
            words_per_s=round(self.batches.words_seen(steps) / seconds) if steps else None,
            **self.spent,
            export=self.config.recipe.export,
            last=self.last.metrics(),
            best_nats_per_word=self.state.best,
        )
        self.folder.progress.unlink(missing_ok=True)
        self.folder.remove_checkpoints()
        if steps and self.config.trainer.progress and self.last.stuck:
            say(f"{self.folder.path.name}: {self.last.stuck}")
        self.preemption.ended()


def step_intervals(recipe: RecipeConfig, batches: Batches) -> dict[str, int]:
    """Return the number of steps between log points ("log"), between validations, and between checkpoints."""

    def steps(words: str | None, key: str, otherwise: int) -> int:
        if words is None:
            return otherwise
        return max(1, round(parse_size(words, key) / batches.words * batches.steps_per_epoch))

    validate = steps(recipe.validate_every, "recipe.validate_every", batches.steps_per_epoch)
    return {
        "log": max(1, len(batches) // LOG_POINTS),
        "validate": validate,
        "checkpoint": steps(recipe.checkpoint_every, "recipe.checkpoint_every", validate),
    }


class Progress:
    """The progress of training, written to progress.json and, if `is_visible`, shown with loss and perplexity."""

    def __init__(self, module: LanguageModelling, is_visible: bool):
        self.module = module
        self.is_visible = is_visible
        self.activity: Activity | None = None

    def begin(self) -> None:
        """Start showing progress, and report where a resumed run continues."""
        module = self.module
        self.started = self.detailed = self.noted = time.monotonic()
        seen = module.batches.words_seen(module.state.step)
        if module.state.step:
            say(f"Resuming {module.folder.path.name} after {seen:,} words.")
        if self.is_visible:
            self.activity = Activity("training", module.batches.words_seen(len(module.batches)), "words", seen)
            self.activity.begin()

    def update(self) -> None:
        """Update the words seen. Every few seconds, also write progress.json and read the loss."""
        now, seen = time.monotonic(), self.module.batches.words_seen(self.module.state.step)
        if now - self.noted >= FILE_SECONDS:
            self.noted = now
            self._write(seen, now - self.started)
        if self.activity is not None:
            self.activity.completed = seen
            if now - self.detailed >= DETAIL_SECONDS:
                self.detailed = now
                self.activity.detail = self._summary()

    def _write(self, seen: int, seconds: float) -> None:
        batches = self.module.batches
        rate = (seen - batches.words_seen(self.module.first_step)) / seconds
        words = {"words_seen": seen, "words": batches.words_seen(len(batches)), "words_per_s": round(rate)}
        write_json(self.module.folder.progress, words | {"at": datetime.now(UTC).isoformat(timespec="seconds")})

    def _summary(self) -> str:
        """Return the training loss and the latest validation as text."""
        parts, state, last = [], self.module.state, self.module.last
        if state.tokens:
            loss = state.nats.item() / state.tokens
            parts.append(f"loss {loss:.3f} nats/token (perplexity {math.exp(min(loss, 50)):,.1f})")
        if last is not None:
            parts.append(f"validation {last.called} {last.value:,.1f} per word")
        return ", ".join(parts)

    def end(self) -> None:
        """Stop showing progress."""
        if self.activity is not None:
            self.activity.end()
            self.activity = None
