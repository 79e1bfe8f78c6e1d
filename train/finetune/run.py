"""Fine-tune the model of each finished run of a study: skip what is done, resume what is unfinished."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from pairscale.console import say
from pairscale.errors import ConfigError, InputError, RunError, WriteError
from pairscale.progress import shown, working
from pairscale.sizes import clock, written
from train.config import FinetuneConfig
from train.estimate import READING
from train.finetune.table import Table, read_table
from train.finetune.training import FineTuning, TaskData
from train.loop.device import device_of, enough_memory, set_up_cpu, set_up_gpu
from train.loop.state import newest_checkpoint
from train.loop.training import quiet_lightning, run_loop
from train.models.config import architectures
from train.runs.finished import check_failures, done_runs
from train.runs.folder import FAILED, UNFINISHED, RunFolder
from train.runs.labels import flatten
from train.runs.model_folder import NGRAM, load_model, read_description
from train.runs.provenance import git_state, machine, versions

_RUN_ERRORS = (ConfigError, InputError, RunError)  # errors that concern one run, so that the others can go on
_REMEDY = "lower task.batch or task.tokens"
MEASURED_STEPS = 3  # steps that a dry run times, after one to warm up


def finetune_study(config: FinetuneConfig) -> None:
    """Fine-tune the finished runs of a study on a task with one seed, one after the other.

    With `config.dry_run`, say what would be done and how long it takes. An error of one run doesn't stop the others.

    Raises:
        ConfigError: if no study is given, or if values don't fit together.
        InputError: if a table can't be used.
        RunError: if there is no finished run, and at the end if some runs could not be fine-tuned.
    """
    if config.study is None:
        raise ConfigError("Which study should be fine-tuned? Add study=NAME.")
    task = config.task
    tables = read_table(task.train, task), read_table(task.valid, task)
    done, damaged = done_runs(config, "fine-tuned", config.run)
    failed = damaged
    for run in done:
        try:
            _finetune(run, config, *tables)
        except _RUN_ERRORS as error:
            if len(done) == 1:
                raise
            say(f"{run.path.name}: {error}", "not fine-tuned", "yellow")
            failed += 1
    check_failures(config, "fine-tuned", failed, len(done) + damaged)


def _finetune(run: RunFolder, config: FinetuneConfig, train: Table, valid: Table) -> None:
    """Fine-tune the model of a run unless that is done. Raises the errors of `finetune_study`, and RunInUse."""
    title = f"{run.path.name} on {config.task.name}, seed {config.seed}"
    if not run.model.description.exists():
        raise RunError(f"{run.path}: its model was not trained here, and only models in RUN/model can be fine-tuned.")
    if read_description(run.model, (*architectures(), NGRAM))["kind"] == NGRAM:
        say(f"{run.path.name}: n-gram models can't be fine-tuned", "skipped", "yellow")
        return
    identity = {"weights": run.model.digest(), "tables": [train.digest, valid.digest], "settings": config.settings}
    folder = run.finetuned(config.task.name, config.seed)
    _check_same(folder, identity)
    if folder.done:
        say(f"{title}: {_result(folder, config)}", "Already fine-tuned:", "green")
        return
    loaded = load_model(run.model)
    data = TaskData.of(config, train, valid, loaded)
    make = partial(FineTuning, config, folder, data, loaded.model)
    if config.dry_run:
        print(f"{title}: {_plan(config, make())}")
        return
    with folder.locked(), shown(title, config.trainer.progress), quiet_lightning():
        _check_same(folder, identity)
        if not folder.done:
            try:
                _train(config, folder, identity, make())
            except Exception as error:
                with suppress(WriteError):  # the disk may be full; `error` is raised in any case
                    folder.update_manifest(status=FAILED, reason=f"{type(error).__name__}: {error}")
                raise
    print(f"{title}: {_result(folder, config)}")


def _check_same(folder: RunFolder, identity: dict[str, Any]) -> None:
    """Raise RunError if earlier work in the folder used other weights, tables or settings."""
    there = folder.read_manifest()
    if not there:
        return
    others = [f"other {key}" for key in ("weights", "tables") if there.get(key) != identity[key]]
    before, now = (flatten(of.get("settings", {})) for of in (there, identity))
    others += [f"{key}={written(before.get(key))}" for key in now if before.get(key) != now[key]]
    if others:
        raise RunError(
            f"{folder.path}: this folder has results with {', '.join(others)}. Choose another task.name for new "
            "results, or remove the folder."
        )


def _train(config: FinetuneConfig, folder: RunFolder, identity: dict[str, Any], module: FineTuning) -> None:
    checkpoint, earlier, data = newest_checkpoint(folder), folder.read_manifest(), module.data
    recorded = earlier.get("machine", {}).get("threads") if checkpoint is not None else None
    device = _set_up(config, module, recorded)
    if checkpoint is not None:
        module.state.read(checkpoint)
    folder.update_manifest(
        status=UNFINISHED,
        reason=None,
        started=earlier.get("started", datetime.now(UTC).isoformat(timespec="seconds")),
        attempts=earlier.get("attempts", 0) + 1,
        **identity,
        labels=list(data.labels),
        rows={"train": len(data.train), "valid": len(data.valid)},
        cut_rows={"train": data.train.cut, "valid": data.valid.cut},
        steps=module.steps,
        machine=machine(device, torch.get_num_threads()),
        git=git_state(),
        versions=versions(),
    )
    module.started = time.monotonic()
    batches = data.batches(module.state.step, module.steps)
    run_loop(module, batches, config, folder, _REMEDY)
    module.finish()


def _set_up(config: FinetuneConfig, module: FineTuning, recorded: int | None = None) -> str:
    """Set the threads and the precision, and return the kind of device: "cuda" or "cpu"."""
    device = device_of(config.trainer)
    set_up_cpu(config.trainer, sum(weight.numel() for weight in module.parameters()), recorded)
    set_up_gpu(config.precision == "bf16")
    module.used = (device, 1, torch.get_num_threads())
    return device


def _result(folder: RunFolder, config: FinetuneConfig) -> str:
    """Return the measures of the best epoch in words."""
    best = folder.read_manifest()["best"]
    measures = [f"{name} {best[name]:.3f}" for name in ("accuracy", "f1", "mcc") if name in best]
    return f"{', '.join(measures)} after epoch {best['epoch']} of {config.task.epochs} (best {config.task.metric})"


def _plan(config: FinetuneConfig, module: FineTuning) -> str:
    """Say what fine-tuning would do, and how long it takes, from a few measured steps."""
    data, task = module.data, config.task
    device, bf16 = _set_up(config, module), config.precision == "bf16"
    module.classifier.to(device).train()
    optimizer = module.configure_optimizers()
    times = []
    with enough_memory(_REMEDY), working("measuring fine-tuning on this machine"):
        for batch in data.batches(0, min(module.steps, MEASURED_STEPS + 1)):
            began = time.monotonic()
            with torch.autocast(device, torch.bfloat16, enabled=bf16):
                logits = module.classifier(batch.tokens.to(device), batch.places.to(device))
            optimizer.zero_grad()
            torch.autograd.backward(functional.cross_entropy(logits.float(), batch.classes.to(device)))
            optimizer.step()
            float(logits.detach().sum())  # makes a GPU wait
            times.append(time.monotonic() - began)
    finished = int(module.folder.checkpoints[0].name.partition("-")[0]) if module.folder.checkpoints else 0
    left, seconds = module.steps - finished, sum(times[1:] or times) / len(times[1:] or times)
    predicted = len(data.valid) * left / data.steps_per_epoch / READING  # rows to predict, as rows to train on
    return (
        f"would train on {len(data.train):,} and predict {len(data.valid):,} rows, {left:,} steps of {task.batch} rows "
        f"({task.epochs} epochs), in about {clock(seconds * (left + predicted / task.batch))}"
    )
