"""Copy the models and snapshots of a study to folders with model cards, and upload them to the hub on request."""

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
SNAPSHOT = "chck_"  # prefix of a snapshot's folder and branch, as in the BabyLM challenge


def export(config: ExportConfig) -> list[Path]:
    """Export each finished run of `config.study` with its snapshots.

    Returns:
        The folders of the runs. They are in `config.output`, which is reports/STUDY/huggingface by default. Snapshots
        are in subfolders, such as chck_1M after a million words seen.

    Raises:
        ConfigError: If there is no `config.study`.
        RunError: If there is no such run, or if none can be exported.
        InputError: If uploading to the hub fails.
    """
    if config.study is None:
        raise ConfigError("Which study should be exported? Add study=NAME.")
    done, damaged = done_runs(config, "exported", config.run)
    runs = [run for run in done if _is_exportable(run)]
    if not runs:
        raise RunError(
            f"study={config.study}: none of the finished runs in {Path(config.paths.runs) / config.study} can be "
            "exported, for the reasons above. Train a neural model in this study."
        )
    output = Path(config.output or Path(config.paths.reports) / config.study / FORMAT)
    # A repository contains one model. If there are several runs, the run's name is added to the repository's name.
    names = [config.push and config.push + (f"-{run.path.name}" if len(runs) > 1 else "") for run in runs]
    folders = [_export_run(run, output / run.path.name, name, config) for run, name in zip(runs, names, strict=True)]
    check_failures(config, "exported", damaged, len(done) + damaged)
    return folders


def _is_exportable(run: RunFolder) -> bool:
    """Return True if a run's model can be exported. If not, print the reason."""
    reason = ""
    if not run.model.description.exists():
        reason = "this is a pretrained model. Use its own files on the hub or in model.path."
    elif read_description(run.model, (*architectures(), NGRAM))["kind"] == NGRAM:
        reason = "n-gram models can't be converted to transformers."
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
            branch = snapshot_name(loaded.info["words_seen"], loaded.info["moment"])
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


def snapshot_name(words: int, moment: str = "") -> str:
    """Return a snapshot's name as in the BabyLM challenge, such as chck_1M after a million words.

    A moment that is a number of words gives the name, because the first step after it has seen a few more words. Other
    names are the words seen, to three digits.
    """
    if moment.endswith(("M", "k")):
        return f"{SNAPSHOT}{moment}"
    for unit, letter in ((10**6, "M"), (10**3, "k")):
        if words >= unit * 0.9995:
            return f"{SNAPSHOT}{float(f'{words / unit:.3g}'):g}{letter}"
    return f"{SNAPSHOT}{words}"


def upload(folder: Path, snapshots: Mapping[str, Path], repository: str, api: Any = None) -> str:
    """Upload a model to a repository on the hub, and return the address of the repository.

    Args:
        folder: The exported model, for the main branch.
        snapshots: Folders of snapshots, by the name of the branch.
        repository: The repository, as OWNER/NAME.
        api: A huggingface_hub.HfApi. The default is one with this machine's token.

    Raises:
        InputError: If the hub rejects the upload or can't be reached.
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
        raise InputError(
            f"push={repository}: the upload to the Hugging Face hub failed ({' '.join(str(error).split())[:300]}). "
            "Check the name, your token and the network, and run the command again."
        ) from None
    return str(address)
