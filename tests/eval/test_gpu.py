"""Training steps, validation and scoring on a GPU compared with the CPU; skipped without a GPU."""

import os
import signal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from eval.scorers.base import Execution
from eval.scorers.load import trained_scorer
from pairscale.command.compose import compose
from tests.bench.training import step
from tests.support.random_models import LSTM, TXL, random_model
from tests.support.small_pretrained import bert, byte_level, gpt2, policy, with_random_weights, word_pieces
from tests.support.small_runs import overrides, trained
from train.loop.device import set_up_gpu, without_gradients
from train.loop.training import LanguageModelling
from train.models.build import build_model

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]
SENTENCES = ["The cats sleep near a dog .", "Who saw the zebras ?", "The", "the cat sees the dog ."]


@pytest.mark.parametrize("length", [1, 7, 64, 127, 128])
@pytest.mark.parametrize("model", ["lstm_tiny", "txl_tiny", "txl"])
def test_hidden_states_without_gradients_equal_those_of_the_cpu(model, length):
    """The mask of a Transformer-XL is a view whose alignment the kernels of a GPU may reject."""
    torch.manual_seed(1)
    net = build_model(compose("train", [f"model={model}"]).model, 100).eval()
    tokens = torch.randint(100, (3, 2 * length))
    hidden_states = {}
    for device in ("cpu", "cuda"):
        with without_gradients(torch.device(device), bf16=False):
            net = net.to(device)
            state, parts = net.initial_state(3), []
            for part in tokens.to(device).split(length, dim=1):  # the second has memory
                hidden, state = net(part, state)
                parts.append(hidden.cpu())
            hidden_states[device] = torch.cat(parts, dim=1)
    torch.testing.assert_close(hidden_states["cuda"], hidden_states["cpu"], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("model", ["lstm_tiny", "txl_tiny"])
def test_gradients_in_bf16_are_within_5_percent_of_those_in_float32(model):
    """float16, which autocast gives an LSTM, would lose those below 6e-8."""
    torch.manual_seed(1)
    net = build_model(compose("train", [f"model={model}", "model.dropout=0"]).model, 100).cuda()
    tokens = torch.randint(100, (4, 21), device="cuda")
    gradients = []
    for bf16 in (False, True):
        net.zero_grad()
        set_up_gpu(bf16)
        with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
            hidden, state = net(tokens[:, :-1], net.initial_state(4))
            loss = net.loss(hidden.flatten(0, 1), tokens[:, 1:].flatten())
        assert hidden.dtype in ((torch.float32, torch.bfloat16) if bf16 else (torch.float32,))
        assert all(part.dtype != torch.float16 for part in state)
        (loss * 1e-8).backward()
        gradients.append(torch.cat([weight.grad.flatten() for weight in net.parameters()]).double())
    exact, rounded = gradients
    assert (exact - rounded).norm() < 0.05 * exact.norm()


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("model", ["lstm_tiny", "txl_tiny"])
def test_a_training_step_runs(model, bf16):
    assert step(model, 500, 2, bf16)() > 0


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("config", [LSTM, TXL], ids=["lstm", "txl"])
def test_scores_of_trained_models_equal_those_of_the_cpu(config, precision):
    loaded = random_model(config)
    scores = {
        device: trained_scorer(loaded, "m", Execution(200, device)).score(SENTENCES, policy(precision=precision))
        for device in ("cpu", "cuda")
    }
    assert_alike(scores, precision)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_scores_of_hugging_face_models_equal_those_of_the_cpu(kind, precision):
    from eval.scorers.pretrained import scorer_of

    network, tokenizer = (gpt2, byte_level()) if kind == "causal" else (bert, word_pieces())
    model = with_random_weights(network, tokenizer)
    scores = {}
    for device in ("cpu", "cuda"):
        scorer = scorer_of(model, tokenizer, "m", Execution(200, device), masked=kind == "masked")
        scores[device] = scorer.score(SENTENCES, policy(precision=precision))
    assert_alike(scores, precision)


@pytest.mark.usefixtures("small_text")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("model", ["lstm", "gru", "txl"])
def test_resuming_a_stopped_run_gives_identical_weights(tmp_path, monkeypatch, model, precision):
    def config(runs):
        more = ["trainer.accelerator=gpu", f"precision={precision}", "model.dropout=0.2"]
        return compose("train", overrides(tmp_path, model, runs, *more))

    uninterrupted = trained(config("alone"))
    step = LanguageModelling.training_step

    def stopped(self, batch, batch_idx):
        if self.state.step == 20:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, batch, batch_idx)

    monkeypatch.setattr(LanguageModelling, "training_step", stopped)
    with pytest.raises(SystemExit):
        trained(config("stopped"))
    monkeypatch.undo()
    weights = [load_file(run.model.weights) for run in (uninterrupted, trained(config("stopped")))]
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])


def assert_alike(scores, precision):
    tolerance = 1e-4 if precision == "fp32" else 0.1
    for one, other in zip(scores["cpu"], scores["cuda"], strict=True):
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=tolerance)
