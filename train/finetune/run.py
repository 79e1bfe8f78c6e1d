"""Fine-tune the model of each finished run of a study, or a pretrained one: skip what is done, resume the rest."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.benchmark import Timer

from pairscale.command.compose import compose
from pairscale.command.line import Line, current
from pairscale.console import say
from pairscale.errors import ConfigError, InputError, RunError, RunInUse
from pairscale.files import sha256_file
from pairscale.progress import Activity, shown, working
from pairscale.schema import checked
from pairscale.sizes import clock
from train.config import FinetuneConfig, RunConfig
from train.estimate import MEASURED_SECONDS, READING
from train.finetune.pretrained import load_pretrained
from train.finetune.table import Batch, Row, encode, labels_of, read_table
from train.finetune.training import FineTuning
from train.loop.device import device_of, enough_memory, set_up_cpu, set_up_gpu
from train.loop.state import newest_checkpoint
from train.loop.training import quiet_lightning, run_loop
from train.models.config import PretrainedConfig
from train.run import record_pretrained
from train.runs.folder import AGAIN, UNFINISHED, RunFolder, study_runs
from train.runs.labels import flatten
from train.runs.model_folder import load_model
from train.runs.provenance import git_state, job_of, machine, versions
from train.trackers.tracker import Job, tracked

_REMEDY = "lower task.batch or task.tokens"


def finetune_study(config: FinetuneConfig) -> None:
    """Fine-tune the finished runs of a study on a task with one seed, one after the other, or a pretrained model.

    With `config.dry_run`, say what would be done and how long it takes. An error of one run doesn't stop the others.

    Raises:
        ConfigError: if no study is given, if the tables don't fit the task, or if a pretrained model can't be used.
        InputError: if a table or a pretrained model can't be used.
        RunError: if there is no such study or run, and at the end if some runs could not be fine-tuned.
        RunInUse: at the end, if other processes were working on all of those runs.
    """
    if config.study is None:
        raise ConfigError("Which study should be fine-tuned? Add study=NAME.")
    pretrained = isinstance(config.model, PretrainedConfig)
    if pretrained and config.run is not None:
        raise ConfigError(f"run={config.run} and model={config.model.name} both choose a model. Leave one of them out.")
    if not pretrained and current()["model"] is not None:
        raise ConfigError(
            f"model={config.model.name}: only pretrained models can be chosen with model=. For a run, use run=NAME."
        )
    runs = [] if pretrained else study_runs(config.paths.runs, config.study, config.run)
    tables = read_table(config.task.train, config.task), read_table(config.task.valid, config.task)
    labels = labels_of(config.task, *tables)
    if pretrained:
        _finetune(RunFolder.of(_as_run(config)), config, tables, labels)
        return
    failed: list[RunError | ConfigError | InputError] = []
    done = [run for run in runs if run.done]
    for run in runs:
        if run not in done:
            say(f"{run.path.name}: its training isn't finished.", "not fine-tuned", "yellow")
    if not done:
        raise RunError(f"study={config.study}: no run is finished. Run the training command again to continue.")
    for run in done:
        try:
            _finetune(run, config, tables, labels)
        except (ConfigError, InputError, RunError) as error:
            if len(done) == 1:
                raise
            say(str(error), "not fine-tuned", "yellow")
            failed.append(error)
    if failed:
        kind = RunInUse if all(isinstance(error, RunInUse) for error in failed) else RunError
        raise kind(f"study={config.study}: {len(failed)} of {len(done)} runs could not be fine-tuned (see above).")


def _as_run(config: FinetuneConfig) -> RunConfig:
    """Return the configuration of a pretrained model as a run of the study, which is that of `python -m eval`."""
    assert isinstance(config.model, PretrainedConfig)
    line = Line((f"model=hf_{config.model.kind}", "model.path=FOLDER"), current().folders)
    whole: RunConfig = compose("train", line)
    return dataclasses.replace(whole, study=config.study, model=config.model, paths=config.paths)


def _pretrained(run: RunFolder, config: FinetuneConfig) -> PretrainedConfig | None:
    """Return the pretrained model that the command names or that the run consists of, or None if there is none."""
    if isinstance(config.model, PretrainedConfig):
        return config.model
    if "path" not in (described := run.read_model_config()):
        return None
    return checked(described, PretrainedConfig, run.config, RunError, AGAIN, root="$.model")


def _finetune(run: RunFolder, config: FinetuneConfig, tables: tuple[list[Row], list[Row]], labels: list[str]) -> None:
    """Fine-tune the model of a run, unless that is done. Raises RunError as `finetune_study`, and RunInUse."""
    task, title = config.task, f"{run.path.name} on {config.task.name}, seed {config.seed}"
    folder, pretrained = run.finetuned(task.name, config.seed), _pretrained(run, config)
    if pretrained is None and not run.model.weights.exists():
        say(f"{run.path.name}: only neural models can be fine-tuned.", "skipped", "yellow")
        return
    loaded = load_pretrained(pretrained) if pretrained else None
    weights = loaded.digest if loaded else run.model.digest()
    digests = [sha256_file(Path(path)) for path in (task.train, task.valid)]
    identity = {"weights": weights, "tables": digests, "settings": config.settings}
    _check_same(folder, identity)
    if folder.done:
        say(f"{title}: {_result(folder)}", "Already fine-tuned:", "green")
        return
    loaded = loaded or load_model(run.model)
    encoded = (encode(tables[0], labels, loaded, task), encode(tables[1], labels, loaded, task))
    facts = {"labels": labels, "rows": list(map(len, tables)), "cut_rows": [items.cut for items in encoded]}
    if config.dry_run:
        print(f"{title}: {_plan(FineTuning(config, folder, loaded.model, encoded, labels))}")
        return
    if not run.done:  # a pretrained model that is new in this study
        record_pretrained(_as_run(config), digest=loaded.digest)
    with folder.locked(), shown(title, config.trainer.progress), quiet_lightning():
        if not folder.done:  # by another process, meanwhile
            _train(run, FineTuning(config, folder, loaded.model, encoded, labels), identity | facts)
    print(f"{title}: {_result(folder)}")


def _check_same(folder: RunFolder, identity: dict[str, Any]) -> None:
    """Raise RunError if the folder has results for other weights, tables or settings."""
    there = folder.read_manifest()
    before, now = (flatten({key: of.get(key, {}) for key in identity}) for of in (there, identity))
    if others := [key.removeprefix("settings.") for key in now if there and before.get(key) != now[key]]:
        raise RunError(
            f"{folder.path}: this folder has results with another value of {', '.join(others)}. Choose another "
            "task.name for new results, or remove the folder."
        )


def _train(run: RunFolder, module: FineTuning, facts: dict[str, Any]) -> None:
    config, folder, earlier = module.config, module.folder, module.earlier
    checkpoint = newest_checkpoint(folder)
    device = _set_up(module, earlier.get("machine", {}).get("threads") if checkpoint is not None else None)
    if checkpoint is not None:
        module.state.read(checkpoint)
        say(f"Resuming {folder.path} after {module.state.step:,} of {module.steps:,} steps.")
    attempts = {"status": UNFINISHED, "attempts": earlier.get("attempts", 0) + 1}
    about = {"machine": machine(device, torch.get_num_threads()), "git": git_state(), "versions": versions()}
    folder.update_manifest(**attempts, **facts, **about)
    module.started, rows = time.monotonic(), config.task.batch
    module.activity = Activity("fine-tuning", module.steps * rows, "rows", module.state.step * rows)
    with tracked(config.logger, _job(run, config, folder)) as module.tracker:
        with module.activity:
            run_loop(module, module.batches(module.state.step), _REMEDY)
        module.finish()
        best = folder.read_manifest()["best"]
        module.tracker.summarise({f"best/{key}": best[key] for key in best if key != "weights"})


def _job(run: RunFolder, config: FinetuneConfig, folder: RunFolder) -> Job:
    """Describe fine-tuning for trackers."""
    job, task = job_of("train", run, run.read_config(), config.study), config.task
    facts = {**job.config, "task": dataclasses.asdict(task), "finetune_seed": config.seed}
    name = f"{run.path.name} {task.name} seed-{config.seed}"
    return Job("finetune", name, config.study, folder.path, facts, (*job.tags, task.name), x="step")


def _set_up(module: FineTuning, recorded: int | None = None) -> str:
    """Set the threads and the precision, and return the kind of device: "cuda" or "cpu"."""
    config, device = module.config, device_of(module.config.trainer)
    set_up_cpu(config.trainer, sum(weight.numel() for weight in module.parameters()), recorded)
    set_up_gpu(config.precision == "bf16")
    module.used = (device, 1, torch.get_num_threads())
    return device


def _result(folder: RunFolder) -> str:
    """Return the measures of the best epoch in words."""
    best = folder.read_manifest()["best"]
    measures = [f"{name} {best[name]:.3f}" for name in ("accuracy", "f1", "mcc") if name in best]
    return f"{', '.join(measures)} after epoch {best['epoch']}, the best one"


def _plan(module: FineTuning) -> str:
    """Say what fine-tuning would do, and how long it takes, from measured steps."""
    task, device = module.task, _set_up(module)
    module.to(device).train()
    optimizer, batch = module.configure_optimizers(), Batch(*(part.to(device) for part in next(module.batches())))

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=module.config.precision == "bf16"):
            loss = module.loss(batch)
        torch.autograd.backward(loss)
        optimizer.step()

    with enough_memory(_REMEDY), working("measuring fine-tuning on this machine"):
        timer = Timer("step()", globals={"step": step}, num_threads=torch.get_num_threads())
        seconds = timer.blocked_autorange(min_run_time=MEASURED_SECONDS).mean
    finished = int(module.folder.checkpoints[0].name.partition("-")[0]) if module.folder.checkpoints else 0
    left, valid = module.steps - finished, len(module.valid.ids)
    reading = left / module.steps_per_epoch * valid / task.batch / READING  # in steps of training
    return (
        f"would train on {len(module.table.ids):,} and predict {valid:,} rows, {left:,} steps of {task.batch} rows "
        f"({task.epochs} epochs), in about {clock(seconds * (left + reading))}"
    )
