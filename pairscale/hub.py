"""The Hugging Face libraries: offline if the hub cannot be reached, and silent."""

import os
import socket
from typing import Any
from urllib.parse import urlsplit


def import_datasets() -> Any:
    """Import `datasets`, which reads from the hub: offline without a network."""
    offline_without_network()
    import datasets

    return datasets


def import_transformers() -> Any:
    """Import `transformers`, silent but for errors. What loads from the hub calls `offline_without_network`, too."""
    import transformers
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return transformers


def offline_without_network() -> None:
    """Let the libraries fail at once where the hub does not answer within 3 seconds: they would retry for 23."""
    if not _is_reachable():
        from huggingface_hub import constants

        os.environ["HF_HUB_OFFLINE"] = "1"  # for processes that this one starts
        constants.HF_HUB_OFFLINE = True  # read from the environment before, where a library was imported


def _is_reachable() -> bool:
    """Return True if the hub answers, or a proxy may."""
    if os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
        return False
    if any(os.environ.get(key) for key in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True  # only the proxy knows
    address = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    try:
        socket.create_connection((address.hostname or "", address.port or 443), timeout=3).close()
    except OSError:
        return False
    return True
