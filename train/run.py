"""One run from configuration to a model that can be scored: skip if done, resume if unfinished, train, export."""

from __future__ import annotations

import contextlib
import logging
import time
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf
from rich.console import Console
from rich.text import Text

from corpora.prepare import corpus_folder
from corpora.text import text_manifest
from pairscale.errors import ConfigError, InputError, RunError, WriteError
from pairscale.files import write_bytes, write_text
from pairscale.seeds import derived_seed
from pairscale.sizes import parse_size, written
from train.config import RunConfig
from train.loop.lightning_import import import_lightning
from train.models.config import NgramConfig, TxlConfig
from train.runs.differences import beside_others
from train.runs.folder import DONE, FAILED, UNFINISHED, RunFolder, config_digest
from train.runs.grid import is_asked_by_a_sweep
from train.runs.provenance import git_state, machine, versions
from train.runs.wandb import Tracker, described, track_trained, tracked

if TYPE_CHECKING:
    from train.loop.ranks import Ranks

LOG_POINTS = 200  # of the training loss over a run

console = Console(stderr=True, highlight=False)


def train_run(config: RunConfig, command: bool = False, check: Callable[[], object] | None = None) -> RunFolder:
    """Train the run that `config` describes unless it is done; resume it if it was stopped.

    `command`: this process is one of our own commands, which starts sooner (train/loop/lightning_import.py). `check` is
    called before the work, and raises what would stop whatever comes after training.

    Returns its folder, whose manifest says "done". Raises RunError when another process is at work on it or its
    training diverges, WriteError where a disk is full, and whatever stops training, after noting the reason in the
    manifest. Bad input that stops a run before any work leaves its folder as it was, and none where there was none,
    unless a sweep asked for the run.
    """
    folder = RunFolder.of(config)
    if folder.done:
        _check_text(config, folder)
        if folder.checkpoint_folder.exists():  # killed between the end and this
            with folder.locked():
                folder.remove_checkpoints()
        console.print(Text("done already", "green"), Text(str(folder.path)), soft_wrap=True)
        if config.trainer.snapshots is not None and not folder.snapshots and not isinstance(config.model, NgramConfig):
            console.print(
                f"{folder.path.name}: has no snapshots, which are kept while a run trains: remove its folder, or give "
                f"another study, for trainer.snapshots={written(config.trainer.snapshots)}",
                markup=False,
                soft_wrap=True,
            )
        return folder
    with folder.locked():
        if folder.done:
            return folder
        if told := beside_others(config):
            console.print(f"new run {folder.path.name} {told}", markup=False, soft_wrap=True)
        fresh = all(path == folder.lock for path in folder.path.iterdir())
        files = {path: path.read_bytes() if path.exists() else None for path in (folder.config, folder.manifest)}
        before, git = folder.read_manifest(), git_state()
        write_text(folder.config, OmegaConf.to_yaml(OmegaConf.structured(config)))
        folder.update_manifest(
            status=UNFINISHED,
            config_digest=config_digest(config),
            started=before.get("started", _now()),
            attempts=before.get("attempts", 0) + 1,
            git=git,
            # code of attempts that this one goes on from, where it was another
            earlier_git=before.get("earlier_git", [])
            + [then for then in [before.get("git")] if then not in (None, git)],
            versions=versions(),
            reason=None,
        )
        begun = folder.read_manifest()
        plain: Any = OmegaConf.to_container(OmegaConf.structured(config))
        try:
            if check is not None:
                check()
            with tracked(
                config.logger, "train", folder.path.name, config.study, folder.path, described(plain)
            ) as tracker:
                if tracker is not None:
                    tracker.catch_up(folder.metrics)
                if isinstance(config.model, NgramConfig):
                    from train.ngram import train_ngram

                    train_ngram(config, folder)
                else:
                    from train.loop.ranks import other_ranks

                    with other_ranks(config) as ranks:
                        _train(config, folder, tracker, ranks, command)
                if tracker is not None:
                    track_trained(tracker, config, folder)
        except Exception as error:
            # Where the disk is full, the manifest cannot say so either: what stopped the run is raised all the same.
            with contextlib.suppress(WriteError):
                of_input = isinstance(error, (ConfigError, InputError)) and folder.read_manifest() == begun
                if not of_input or is_asked_by_a_sweep(folder):
                    folder.update_manifest(status=FAILED, reason=f"{type(error).__name__}: {error}", ended=_now())
                else:  # nothing was done: a name mistyped, or a text that is not there
                    _undo(folder, files, fresh)
            raise
    return folder


def _undo(folder: RunFolder, files: Mapping[Path, bytes | None], fresh: bool) -> None:
    """Leave a run's folder as an attempt found it: with its `files`, or no folder where it was `fresh`."""
    if fresh:
        folder.discard()
        with contextlib.suppress(OSError):  # other runs are in it
            folder.path.parent.rmdir()
        return
    for path, data in files.items():
        if data is None:
            path.unlink(missing_ok=True)
        else:
            write_bytes(path, data)


def _check_text(config: RunConfig, folder: RunFolder) -> None:
    """Raise RunError where a run that is done was trained on another text than the one that is prepared now."""
    store = corpus_folder(config) / "text"
    if not store.is_dir():
        return
    trained, prepared = folder.read_manifest()["corpus"]["text"], text_manifest(store)["digest"]
    if trained != prepared:
        raise RunError(
            f"{folder.path}: done, but trained on another text ({trained[:8]}) than {store} holds ({prepared[:8]}); "
            "give another corpus.name or study, or remove the run's folder"
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def train_rank(config: RunConfig, ranks: Ranks) -> None:
    """Take part in a run as one of its ranks but the first, which started this process (train/loop/ranks.py)."""
    _train(config, RunFolder.of(config), None, ranks, command=True)


def _train(config: RunConfig, folder: RunFolder, tracker: Tracker | None, ranks: Ranks, command: bool) -> None:
    # Imported here so that a command that trains nothing starts at once.
    if command:
        import_lightning()
    import lightning as L
    import torch

    from corpora.prepare import prepare
    from train.loop.batches import Batches
    from train.loop.checkpoints import UNREADABLE, CheckpointFiles, newest_checkpoint
    from train.loop.device import device_of, enough_memory, set_up_cpu, set_up_gpu
    from train.loop.loggers import loggers
    from train.loop.module import LanguageModelling
    from train.loop.perplexity import Perplexity, evaluate
    from train.loop.preemption import Preemption
    from train.loop.progress import TrainingProgress
    from train.loop.snapshots import Snapshots
    from train.models.build import build_model, parameter_count
    from train.runs.export import KINDS, read_description, save_model
    from train.runs.metrics import MetricsFile

    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)  # its banners say nothing about the run
    device = device_of(config.trainer, ranks.size)
    corpus = prepare(config)
    sample = corpus.sample()
    held_out = corpus.held_out("valid", config.recipe.validation_words)
    torch.manual_seed(derived_seed(config.model.seed, config.seed, "initialisation"))
    begun = folder.read_manifest().get("machine", {}) if folder.checkpoints else {}
    parameters = parameter_count(config.model, len(corpus.tokenizer))
    set_up_cpu(config.trainer, parameters, begun.get("threads"), ranks.size)
    set_up_gpu(config.precision == "bf16")
    model = build_model(config.model, len(corpus.tokenizer))
    # Dropout draws from its own seed, so that it is the same whatever the initialisation drew.
    part = "training" if ranks.first else f"training of rank {ranks.rank}"
    torch.manual_seed(derived_seed(config.recipe.seed, config.seed, part))
    batches = Batches(sample.tokens, sample.words, config.recipe, (ranks.rank, ranks.size))
    intervals = step_intervals(config, batches.steps_per_epoch, len(batches), sample.words)
    info = {"sample_words": sample.words, "sample_digest": sample.digest, "config_digest": config_digest(config)}

    def export(perplexity: Perplexity, step: int) -> None:
        saved = {**info, "step": step, "words_seen": batches.words_seen(step), **perplexity.metrics()}
        if perplexity.stuck and step:
            saved["stuck"] = perplexity.stuck
        save_model(folder, model, config.model, corpus.tokenizer, saved)

    def keep_best(perplexity: Perplexity, step: int) -> None:
        if config.recipe.export == "best":
            export(perplexity, step)

    def checkpoint() -> None:
        """After any step: metrics.csv up to it, then all that resuming needs. Raises RunError if it is not finite."""
        module.check_finite()
        if ranks.first:
            module.metrics.write()
        trainer.save_checkpoint(folder.checkpoint_folder, weights_only=False)
        if ranks.first:
            folder.update_manifest(wall_s=round(earlier + time.monotonic() - started, 1))
        if tracker is not None and "checkpoint" in config.logger.artifacts:
            tracker.artifact(f"{folder.path.name}-checkpoint", "checkpoint", folder.checkpoints[:1])
        preemption.saved()

    preemption = Preemption()
    module = LanguageModelling(
        config,
        model,
        batches,
        held_out,
        MetricsFile(folder.metrics),
        Snapshots(folder, config.trainer.snapshots, batches),
        intervals,
        keep_best,
        checkpoint,
        lambda: preemption.asked(trainer),
        ranks,
    )
    with warnings.catch_warnings():
        # Lightning advises worker processes and validation loops that these loaders do without on purpose, and it calls
        # names that torch 2.13 deprecates.
        for category in (UserWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category, module="lightning")
        progress = TrainingProgress(folder, batches, show=config.trainer.progress)
        trainer = L.Trainer(
            accelerator=device,
            devices=ranks.size,
            strategy=_strategy(config, ranks),
            precision="bf16-mixed" if config.precision == "bf16" else "32-true",
            max_epochs=1,  # the loader holds the whole run: a checkpoint is always in the middle of one pass
            logger=loggers(config, folder, tracker) if ranks.first else False,
            callbacks=[progress, preemption] if ranks.first else [preemption],
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder.path,
            plugins=[*_plugins(ranks), CheckpointFiles(folder)],
        )
        resume = newest_checkpoint(folder, tell=ranks.first)
        started_on = folder.read_manifest().get("sample_digest")
        if resume and started_on not in (None, sample.digest):
            raise RunError(f"{resume}: of a run on another sample of text; remove the run's folder to start again")
        if ranks.first:
            folder.update_manifest(
                **info,
                devices=ranks.size,
                parameters=parameters,
                vocabulary=len(corpus.tokenizer),
                tokens=len(sample.tokens),
                corpus=corpus.manifest,
                machine=machine(str(trainer.strategy.root_device), torch.get_num_threads()),
                steps=len(batches),
            )
        if config.trainer.compile:
            model.compile()
        # Of attempts that were killed, up to their last checkpoints: what came after is done again, and counted then.
        earlier = folder.read_manifest().get("wall_s", 0)
        started = time.monotonic()
        try:
            with enough_memory("trainer.devices=2 shares the columns of a step out, recipe.batch makes fewer of them"):
                if len(batches):
                    trainer.fit(module, batches, ckpt_path=resume, weights_only=True)
                elif ranks.first:  # an untrained model
                    module.last = evaluate(model, held_out, torch.device("cpu"))
                    module.best = module.last.nats / module.last.words
                    keep_best(module.last, 0)
        except (*UNREADABLE, OSError) as error:
            if resume and trainer.global_step == 0:
                reason = " ".join(str(error).split())[:300]
                raise RunError(
                    f"{resume}: whole, but this code cannot resume from it ({reason}); resume with the versions in "
                    f"{folder.manifest.name}, or remove {folder.checkpoint_folder} to start again"
                ) from error
            raise
        except SystemExit as ended:  # Lightning's, without a word
            if isinstance(ended.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise
    if not ranks.first:
        return
    assert module.last is not None
    if config.recipe.export == "last":
        export(module.last, len(batches))
    seconds = time.monotonic() - started
    steps = len(batches) - progress.first_step
    folder.update_manifest(
        status=DONE,
        ended=_now(),
        stuck=read_description(folder, KINDS)["info"].get("stuck"),
        words_seen=batches.words_seen(len(batches)),
        words_per_s=round(batches.words_seen(steps) / seconds) if steps else None,
        wall_s=round(earlier + seconds, 1),
        export=config.recipe.export,
        last=module.last.metrics(),
        best_nats_per_word=module.best,
    )
    folder.progress.unlink(missing_ok=True)
    folder.remove_checkpoints()
    preemption.ended()


def step_intervals(config: RunConfig, steps_per_epoch: int, total_steps: int, sample_words: int) -> dict[str, int]:
    """Optimiser steps between log points, validations and checkpoints."""

    def steps(words: str | None, key: str, otherwise: int) -> int:
        if words is None:
            return otherwise
        return max(1, round(parse_size(words, key) / sample_words * steps_per_epoch))

    validate = steps(config.recipe.validate_every, "recipe.validate_every", steps_per_epoch)
    return {
        "log": max(1, total_steps // LOG_POINTS),
        "validate": validate,
        "checkpoint": steps(config.recipe.checkpoint_every, "recipe.checkpoint_every", validate),
    }


def _strategy(config: RunConfig, ranks: Ranks) -> Any:
    """Lightning's."""
    if ranks.size == 1:
        return "auto"
    from lightning.pytorch.strategies import DDPStrategy

    # A softmax over clusters leaves out those that no word of a step is in.
    return DDPStrategy(find_unused_parameters=isinstance(config.model, TxlConfig) and config.model.adaptive)


def _plugins(ranks: Ranks) -> list[Any]:
    if ranks.size > 1:  # also within a job of SLURM, whose one task starts all ranks
        from lightning.fabric.plugins.environments.lightning import LightningEnvironment

        return [LightningEnvironment()]
    from lightning.fabric.plugins.environments.slurm import SLURMEnvironment

    # The launcher requeues; Lightning doing it too would start the job twice.
    return [SLURMEnvironment(auto_requeue=False)] if SLURMEnvironment.detect() else []
