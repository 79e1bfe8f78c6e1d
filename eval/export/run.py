"""`export`: copies of the models of a study with model cards, its snapshots as such folders, and on request the hub."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.config import ExportConfig
from eval.export.card import card, citation
from eval.run import check_failures, done_runs
from pairscale.console import say
from pairscale.errors import ConfigError, InputError, RunError
from pairscale.files import write_text, writing
from pairscale.hub import offline_without_network
from train.loop.snapshots import load_snapshot
from train.models.config import architectures
from train.runs.folder import ModelFolder, RunFolder
from train.runs.model_folder import NGRAM, load_model, read_description, save_weights

FORMAT = "huggingface"
SNAPSHOT = "chck_"  # begins the name of a snapshot's folder and branch, as in the BabyLM challenge


def export(config: ExportConfig) -> list[Path]:
    """Write each finished run of `config.study`, with its snapshots, and return the folders.

    They lie in `config.output`, by default reports/STUDY/huggingface: RUN/, and RUN/chck_1M/ of a snapshot after a
    million words seen. Raises ConfigError without a study, RunError if there is no such run, or none can be exported,
    InputError if the hub refuses.
    """
    if config.study is None:
        raise ConfigError("study=null: name a study")
    done, damaged = done_runs(config, "exported", config.run)
    runs = [run for run in done if _is_exportable(run)]
    if not runs:
        raise RunError(f"study={config.study}: no run in {Path(config.paths.runs) / config.study} can be exported")
    output = Path(config.output or Path(config.paths.reports) / config.study / FORMAT)
    # A repository holds one model: those of several runs have the run's name behind the one that was given.
    names = [config.push and config.push + (f"-{run.path.name}" if len(runs) > 1 else "") for run in runs]
    folders = [_export_run(run, output / run.path.name, name, config) for run, name in zip(runs, names, strict=True)]
    check_failures(config, "exported", damaged, len(done) + damaged)
    return folders


def _is_exportable(run: RunFolder) -> bool:
    """Return True for a model that was trained here; say why of another."""
    reason = ""
    if not run.model.description.exists():
        reason = "comes trained; its own files are on the hub or where it was read from"
    elif read_description(run.model, (*architectures(), NGRAM))["kind"] == NGRAM:
        reason = "an n-gram model"
    if reason:
        say(f"{run.path.name}: {reason}", "not exported", "yellow")
    return not reason


def _export_run(run: RunFolder, folder: Path, repository: str | None, config: ExportConfig) -> Path:
    name = repository or run.path.name
    snapshots: dict[str, Path] = {}
    for step in (None, *run.snapshots):
        loaded = load_model(run.model) if step is None else load_snapshot(run, step)
        copy = folder
        if step is not None:
            branch = snapshot_name(loaded.info["words_seen"])
            branch = f"{branch}_step{step}" if branch in snapshots else branch
            copy = snapshots[branch] = folder / branch
        with writing(copy):
            shutil.copytree(run.model.path, copy, dirs_exist_ok=True)
        if step is not None:
            save_weights(ModelFolder(copy), loaded.model, loaded.config, loaded.info)
        write_text(copy / "README.md", card(run, loaded, name, step, config.licence, config.ties))
        write_text(copy / "CITATION.cff", citation(run, name, config.licence))
    say(f"{folder}" + (f", snapshots {', '.join(snapshots)}" if snapshots else ""), "exported", "green")
    if repository is not None:
        say(upload(folder, snapshots, repository), "uploaded", "green")
    return folder


def snapshot_name(words: int) -> str:
    """Return the name of a snapshot by words seen, to three digits, as the BabyLM challenge writes it: chck_1M."""
    for unit, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if words >= unit * 0.9995:
            return f"{SNAPSHOT}{words / unit:.3g}{letter}"
    return f"{SNAPSHOT}{words}"


def upload(folder: Path, snapshots: Mapping[str, Path], repository: str, api: Any = None) -> str:
    """Upload a model to the main branch of a repository, each snapshot to a branch of its name; return the address.

    `api`: a huggingface_hub.HfApi; without it one with the machine's own token. Raises InputError where the hub
    refuses or cannot be reached.
    """
    import huggingface_hub

    offline_without_network()
    api = api or huggingface_hub.HfApi()
    try:
        address = api.create_repo(repository, exist_ok=True)
        api.upload_folder(
            repo_id=repository, folder_path=folder, ignore_patterns=[f"{SNAPSHOT}*/*"], commit_message="Model"
        )
        for name, path in snapshots.items():
            api.create_branch(repository, branch=name, exist_ok=True)
            api.upload_folder(repo_id=repository, folder_path=path, revision=name, commit_message=f"Model at {name}")
    except (OSError, ValueError) as error:  # HfHubHTTPError is an OSError
        raise InputError(f"push={repository}: {' '.join(str(error).split())[:300]}") from None
    return str(address)
