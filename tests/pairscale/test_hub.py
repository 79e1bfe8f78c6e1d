"""The hub of Hugging Face: probed by what loads from it alone."""

import socket

import pytest
from huggingface_hub import is_offline_mode

from pairscale.command.compose import compose
from pairscale.hub import offline_without_network
from train.models.build import build_model


@pytest.fixture
def connections(monkeypatch):
    """Return the addresses that this process tries to connect to, in vain."""
    tried = []

    def connect(address, timeout):
        tried.append(address)
        raise TimeoutError

    for key in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HF_ENDPOINT"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "create_connection", connect)
    return tried


@pytest.mark.parametrize("model", ["gpt2_tiny", "roberta_tiny"])
def test_a_network_with_new_weights_needs_no_hub(model, connections):
    build_model(compose("train", ["corpus=toy", f"model={model}"]).model, 50)
    assert connections == []


def test_a_hub_out_of_reach_is_not_tried_again(connections):
    for _ in range(2):
        offline_without_network()
    assert connections == [("huggingface.co", 443)]
    assert is_offline_mode()  # also of a library that was imported before
