"""Import the Hugging Face libraries without their messages, and offline if the hub cannot be reached."""

import os
import socket
from typing import Any
from urllib.parse import urlsplit


def import_datasets() -> Any:
    """Import `datasets`, offline if there is no network."""
    offline_without_network()
    import datasets

    return datasets


def import_transformers() -> Any:
    """Import `transformers`, which prints only errors. To load from the hub, call `offline_without_network` first."""
    import transformers
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return transformers


def offline_without_network() -> None:
    """If the hub does not answer within 3 seconds, make the libraries fail at once instead of retrying for 23."""
    if not _is_reachable():
        from huggingface_hub import constants

        os.environ["HF_HUB_OFFLINE"] = "1"  # for processes that this one starts
        constants.HF_HUB_OFFLINE = True  # it has already read the environment if a library was imported before


def _is_reachable() -> bool:
    """Return True if the hub answers, or if there is a proxy, which might reach it."""
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
