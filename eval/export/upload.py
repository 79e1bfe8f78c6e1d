"""The upload of exported models to the Hugging Face Hub."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairscale.errors import ConfigError, InputError
from pairscale.hub import offline_without_network

SNAPSHOT = "chck_"  # begins the name of a snapshot's folder and branch, as in the BabyLM challenge


def check_repository(name: str) -> None:
    """Raise ConfigError for a name that is no OWNER/NAME."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name, re.ASCII):
        raise ConfigError(f"push={name[:100]}: must be OWNER/NAME")


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
