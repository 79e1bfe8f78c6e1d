"""Perplexity on held-out text against a token-by-token reference, and the shares of <eos> and <unk>."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from corpora.prepare import HeldOut
from corpora.tokenizers import EOS, UNK
from tests.support.random_models import TXL
from train.loop.perplexity import COLUMNS, STEP, Perplexity, evaluate, evaluate_masked, evaluate_windows
from train.models.build import build_model
from train.models.config import HuggingFaceConfig, LstmConfig

MODELS = {
    "lstm": LstmConfig(name="l", seed=None, embedding=6, hidden=6, layers=1, dropout=0.5, tied=False),
    "txl": dataclasses.replace(TXL, d_model=8, d_head=4, d_inner=8, memory=600),
}


def reference(model, tokens):
    """Return -ln p of each token after <eos> and all earlier tokens, computed one at a time."""
    model.eval()
    state, before, losses = model.initial_state(1), EOS, []
    with torch.no_grad():
        for token in tokens:
            hidden, state = model(torch.tensor([[before]]), state)
            logits = hidden[0, 0] @ model.output_weight.T + model.output_bias
            losses.append(-logits.log_softmax(0)[token].item())
            before = token
    return np.asarray(losses)


@pytest.mark.parametrize("name", MODELS)
def test_perplexity_equals_a_loop_over_single_tokens(name):
    torch.manual_seed(1)
    model = build_model(MODELS[name], 12).train()
    tokens = np.random.default_rng(0).integers(0, 12, STEP + 50).astype(np.uint16)  # one column, two steps
    ended, unknown = int((tokens == EOS).sum()), int((tokens == UNK).sum())
    words = len(tokens) - ended
    perplexity = evaluate(model, HeldOut(tokens, words, ended, unknown), torch.device("cpu"))
    losses = reference(model, tokens.tolist())
    model.train()
    assert perplexity.nats == pytest.approx(losses.sum(), rel=1e-5)
    assert perplexity.eos_nats == pytest.approx(losses[tokens == EOS].sum(), rel=1e-5)
    assert perplexity.unk_nats == pytest.approx(losses[tokens == UNK].sum(), rel=1e-5)
    assert perplexity.value == pytest.approx(math.exp(losses.sum() / words), rel=1e-5)
    assert model.training, "evaluation must leave the model as it was"


def test_text_in_many_columns_counts_every_token_once():
    model = build_model(MODELS["lstm"], 12)
    with torch.no_grad():
        model.output_weight.zero_()  # every token has probability 1/12 wherever it stands
    tokens = np.full(COLUMNS * STEP + 7, 5, np.uint16)
    perplexity = evaluate(model, HeldOut(tokens, len(tokens), 0, 0), torch.device("cpu"))
    assert perplexity.nats == pytest.approx(len(tokens) * math.log(12), rel=1e-6)
    assert perplexity.value == pytest.approx(12, rel=1e-5)


def test_variants_of_perplexity_leave_out_eos_or_unk():
    perplexity = Perplexity(nats=100.0, eos_nats=10.0, unk_nats=20.0, words=50, sentences=5, tokens=50, unk=10)
    assert perplexity.value == pytest.approx(math.exp(2.0))
    assert perplexity.without_eos == pytest.approx(math.exp(90 / 50))
    assert perplexity.without_unk == pytest.approx(math.exp(70 / 40))
    assert perplexity.metrics()["valid_oov_rate"] == 0.2
    of_characters = dataclasses.replace(perplexity, words=90, tokens=40)  # tokens are no reference words
    assert of_characters.metrics()["valid_oov_rate"] == 0.25
    assert math.isnan(of_characters.without_unk)
    assert math.isnan(Perplexity(1.0, 0.0, 1.0, words=3, sentences=1, tokens=3, unk=3).without_unk)
    assert Perplexity(1e6, 0.0, 0.0, words=3, sentences=1, tokens=3, unk=0).value == math.inf


def test_a_model_that_is_stuck_in_its_first_state_is_reported():
    """A stuck model is worse than chance, or some columns are far worse than others as they never leave their state."""
    torch.manual_seed(1)
    model = build_model(MODELS["lstm"], 12)
    tokens = np.full(COLUMNS * STEP, 5, np.uint16)
    held_out = HeldOut(tokens, len(tokens), 0, 0)
    found = {}
    for bias in (0, 1, -1):
        with torch.no_grad():
            model.output_weight.zero_()
            model.output_bias.zero_()
            model.output_bias[5] = bias
        found[bias] = evaluate(model, held_out, torch.device("cpu"))
    assert found[0].columns == pytest.approx([math.log(12)] * COLUMNS, rel=1e-6)
    assert found[1].stuck is None
    assert "guessing among 12 tokens (2.5 nats)" in str(found[-1].stuck)
    counts = {"words": 50, "sentences": 5, "tokens": 50, "unk": 0}
    # As lstm_tiny after one epoch on 125k words: 10 of 16 columns at about 10 nats, ln 10,002 = 9.2.
    for columns, message in (((10.0,) * 10 + (6.1,) * 6, "10 of them"), ((5.0, 8.5), "5.0 to 8.5")):
        uneven = Perplexity(100.0, 0.0, 0.0, **counts, columns=columns, vocabulary=10_002)
        assert message in str(uneven.stuck)
    assert Perplexity(100.0, 0.0, 0.0, **counts, columns=(4.0, 6.0), vocabulary=10_002).stuck is None


def network(architecture, objective, **fields):
    config = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, **fields}
    torch.manual_seed(1)
    return build_model(
        HuggingFaceConfig(name="m", seed=None, architecture=architecture, objective=objective, config=config), 12
    )


@pytest.mark.parametrize("tokens", [5, 8, 9, 61])
def test_windows_predict_each_token_from_half_a_window_or_more(tokens):
    model, context = network("llama", "causal", intermediate_size=24), 8
    text = np.random.default_rng(0).integers(0, 12, tokens).astype(np.uint16)
    ended, unknown = int((text == EOS).sum()), int((text == UNK).sum())
    perplexity = evaluate_windows(model, HeldOut(text, 40, ended, unknown), torch.device("cpu"), context)
    losses, model = [], model.eval()
    read = [EOS, *text.tolist()]
    for place, token in enumerate(text.tolist()):
        # The first window is read whole; each later one begins four tokens on, the last where it ends with the text.
        window = min(max(0, -(-(place + 1 - context) // 4) * 4), max(0, tokens - context))
        with torch.no_grad():
            logits = model.network(input_ids=torch.tensor([read[window : place + 1]])).logits[0, -1]
        losses.append(-logits.log_softmax(0)[token].item())
    assert perplexity.nats == pytest.approx(sum(losses), rel=1e-5)
    assert perplexity.eos_nats == pytest.approx(np.asarray(losses)[text == EOS].sum(), rel=1e-5)
    assert perplexity.value == pytest.approx(math.exp(sum(losses) / 40), rel=1e-5)


@pytest.mark.parametrize(("objective", "shift"), [("mlm", 0), ("mntp", 1)])
def test_pseudo_perplexity_hides_each_token_of_a_sentence(objective, shift):
    model = network("bert", objective, intermediate_size=24, max_position_embeddings=32)
    sentences = [[3, 4, 5], [6], [7, UNK, 9, 10]]
    text = np.array([token for sentence in sentences for token in [*sentence, EOS]], np.uint16)
    perplexity = evaluate_masked(model, HeldOut(text, 9, 3, 1), torch.device("cpu"), 30, shift)
    nats, model = 0.0, model.eval()
    for sentence in sentences:
        for place, token in enumerate(sentence):
            read = [2, *(2 + other for other in sentence), 2]  # ids of the network, whose <eos> is 2
            read[1 + place] = 1  # its mask
            with torch.no_grad():
                logits = model.network(input_ids=torch.tensor([read])).logits[0, 1 + place - shift]
            nats -= logits.log_softmax(0)[2 + token].item()
    assert perplexity.nats == pytest.approx(nats, rel=1e-5)
    assert perplexity.metrics() == {
        "valid_pseudo_nats_per_word": pytest.approx(nats / 9, rel=1e-5),
        "valid_pseudo_ppl": pytest.approx(math.exp(nats / 9), rel=1e-5),
        "valid_oov_rate": 1 / 8,
    }
