"""Imports of the Hugging Face libraries, offline if the hub cannot be reached."""

import os
import socket
from typing import Any
from urllib.parse import urlsplit


def import_datasets() -> Any:
    """Import `datasets`; without a network it fails at once instead of retrying for 23 seconds."""
    _set_offline()
    import datasets

    return datasets


def import_transformers() -> Any:
    """Import `transformers`, offline without a network, and silent but for errors."""
    _set_offline()
    import transformers
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return transformers


def _set_offline() -> None:
    if not _is_reachable():
        os.environ["HF_HUB_OFFLINE"] = "1"


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
