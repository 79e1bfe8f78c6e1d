"""`export`: the runs of a study as folders that the transformers library loads, and on request on the hub."""

import shutil
from pathlib import Path

from eval.config import EvalConfig
from eval.export.card import Card
from eval.export.upload import SNAPSHOT, check_repository, upload
from pairscale.console import say
from pairscale.errors import ConfigError, RunError
from pairscale.files import write_text, writing
from train.loop.snapshots import load_snapshot
from train.models.config import architectures
from train.runs.folder import ModelFolder, RunFolder, study_runs
from train.runs.model_folder import NGRAM, LoadedModel, load_model, read_description, save_weights

FORMAT = "huggingface"


def export(config: EvalConfig) -> list[Path]:
    """Write each finished run of `config.study`, with its snapshots, and return the folders.

    They lie in `config.output`, by default reports/STUDY/huggingface: RUN/, and RUN/chck_1M/ of a snapshot after a
    million words seen. Raises ConfigError without a study and for an architecture that has no export, RunError where
    there is no such run, or none can be exported, InputError where the hub refuses.
    """
    if config.study is None:
        raise ConfigError("study=null: name a study")
    if config.format != FORMAT:
        raise ConfigError(
            f"format={config.format}: an export has format={FORMAT}; reports are made by python -m analysis"
        )
    if config.push is not None:
        check_repository(config.push)
    runs = [run for run in study_runs(config.paths.runs, config.study, config.run) if _is_exportable(run)]
    if not runs:
        raise RunError(f"study={config.study}: no run in {Path(config.paths.runs) / config.study} can be exported")
    output = Path(config.output or Path(config.paths.reports) / config.study / FORMAT)
    folders = []
    for run in runs:
        # A repository holds one model: those of several runs have the run's name behind the one that was given.
        repository = None if config.push is None else config.push + (f"-{run.path.name}" if len(runs) > 1 else "")
        folders.append(_export_run(run, output / run.path.name, repository, config))
    return folders


def _is_exportable(run: RunFolder) -> bool:
    """Return True for a trained model; say why of another."""
    if not run.done:
        reason = "not done"
    elif not run.model.description.exists():
        reason = "comes trained; its own files are on the hub or where it was read from"
    elif read_description(run.model, (*architectures(), NGRAM))["kind"] == NGRAM:
        reason = "an n-gram model"
    else:
        return True
    say(f"{run.path.name}: {reason}", "not exported", "yellow")
    return False


def _export_run(run: RunFolder, folder: Path, repository: str | None, config: EvalConfig) -> Path:
    name = repository or run.path.name
    write(run, load_model(run.model), folder, name, None, config)
    snapshots = {}
    for step in run.snapshots:
        loaded = load_snapshot(run, step)
        branch = snapshot_name(loaded.info["words_seen"])
        branch = f"{branch}_step{step}" if branch in snapshots else branch
        snapshots[branch] = folder / branch
        write(run, loaded, folder / branch, name, step, config)
    say(f"{folder}" + (f", snapshots {', '.join(snapshots)}" if snapshots else ""), "exported", "green")
    if repository is not None:
        say(upload(folder, snapshots, repository), "uploaded", "green")
    return folder


def write(run: RunFolder, loaded: LoadedModel, folder: Path, name: str, step: int | None, config: EvalConfig) -> None:
    """Write one model of a run: the exported one, or the snapshot after `step` steps."""
    with writing(folder):
        shutil.copytree(run.model.path, folder, dirs_exist_ok=True)
    if step is not None:
        save_weights(ModelFolder(folder), loaded.model, loaded.config, loaded.info)
    card = Card(name, run, loaded, step, config.licence, config.ties)
    write_text(folder / "README.md", card.text())
    write_text(folder / "CITATION.cff", card.citation())


def snapshot_name(words: int) -> str:
    """Return the name of a snapshot by words seen, to three digits, as the BabyLM challenge writes it: chck_1M."""
    for unit, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if words >= unit * 0.9995:
            return f"{SNAPSHOT}{words / unit:.3g}{letter}"
    return f"{SNAPSHOT}{words}"
