"""Architectures of Hugging Face: losses of the library itself, weights in files, refused values, and output layers."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from corpora.tokenizers import EOS, SPECIAL_TOKENS
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support.random_models import random_model, saved
from train.loop.batches import NO_TARGET, Batch, Masked
from train.models.build import build_model, parameter_count
from train.models.config import HYBRID, HuggingFaceConfig, MaskingConfig
from train.models.huggingface import has_plain_head, inputs_of_head, logits_at, reads_places, softmax_of
from train.runs.folder import ModelFolder
from train.runs.model_folder import load_model

VOCABULARY = 40
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
NETWORKS = {
    "gpt2": ("causal", {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}),
    "llama": ("causal", {**SMALL, "max_position_embeddings": 32}),
    "gpt_neox": ("causal", {**SMALL, "max_position_embeddings": 32}),
    "mamba": ("causal", {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}),
    # It caps its logits, so that its softmax cannot be computed from hidden states and weights alone.
    "gemma2": ("causal", {**SMALL, "head_dim": 8, "num_key_value_heads": 1, "max_position_embeddings": 32}),
    "bert": ("mlm", {**SMALL, "max_position_embeddings": 32}),
    "roberta": ("mlm", {**SMALL, "max_position_embeddings": 33}),
    "deberta-v2": ("mntp", {**SMALL, "max_position_embeddings": 32}),
}


def config(architecture, **values):
    objective, fields = NETWORKS[architecture]
    return HuggingFaceConfig(name="m", architecture=architecture, objective=objective, config=fields | values)


@pytest.fixture(params=NETWORKS)
def model(request):
    torch.manual_seed(1)
    return build_model(config(request.param), VOCABULARY).eval()


def texts(model):
    """Tokens (3, 8), the last of one text padded where the model is masked, and targets of some of them."""
    tokens = torch.randint(4, VOCABULARY, (3, 8), generator=torch.Generator().manual_seed(0))
    targets = torch.where(torch.arange(8) % 3 == 1, tokens, NO_TARGET)
    if model.pad is not None:
        tokens[1, 6:] = model.pad
        targets[1, 6:] = NO_TARGET
    return tokens, targets


def test_the_loss_and_its_gradients_are_those_of_the_library(model):
    tokens, targets = texts(model)
    attended = {} if model.pad is None else {"attention_mask": (tokens != model.pad).long()}
    logits = model.network(input_ids=tokens, **attended).logits.float()
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=NO_TARGET, reduction="sum"
    )
    expected.backward()
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad()

    hidden, state = model(tokens, model.initial_state(3))
    assert state == ()
    chosen = targets.flatten() != NO_TARGET
    loss = model.loss(hidden.flatten(0, 1)[chosen], targets.flatten()[chosen])
    loss.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    for name, weight in model.named_parameters():
        if name in gradients:
            torch.testing.assert_close(weight.grad, gradients[name], rtol=1e-4, atol=1e-5)
    logprobs = model.logprobs(hidden.flatten(0, 1)[chosen], targets.flatten()[chosen])
    torch.testing.assert_close(-logprobs.sum(), expected.detach(), rtol=1e-5, atol=1e-5)
    whole = model.all_logprobs(hidden[0])
    torch.testing.assert_close(whole, logits[0].log_softmax(-1).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("architecture", NETWORKS)
def test_weights_go_to_a_file_and_back_once_each(architecture, tmp_path):
    loaded = random_model(config(architecture))
    assert loaded.model.plain == (architecture != "gemma2")
    saved(tmp_path, loaded)
    weights, model = load_file(tmp_path / "model.safetensors"), load_model(ModelFolder(tmp_path)).model
    assert sum(weight.numel() for weight in weights.values()) == sum(map(torch.numel, model.parameters()))
    tokens = torch.arange(4, 12)[None]
    assert torch.equal(model(tokens, ())[0], loaded.model(tokens, ())[0])
    network = model.network
    embedding, head = network.get_input_embeddings().weight, network.get_output_embeddings().weight
    assert (embedding is head) == network.config.tie_word_embeddings


@pytest.mark.parametrize(
    ("name", "vocabulary", "millions"),
    [("gpt2", 50257, 124.4), ("gpt_neox", 50304, 162.3), ("opt", 50272, 125.2), ("bert", 30520, 109.5)],
)
def test_published_sizes_have_the_published_number_of_weights(name, vocabulary, millions):
    """Over the vocabularies of the published models, as their papers and model cards round them."""
    count = parameter_count(compose("train", [f"model={name}"]).model, vocabulary)
    assert count / 1e6 == pytest.approx(millions, abs=0.6)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.architecture=gpt3"], "model.architecture=gpt3: "),
        (["model.architecture=gpt2", "model.config.n_layers=3"], "not a field of GPT2Config"),
        (["model.architecture=gpt2", "model.config.vocab_size=9"], "config.vocab_size"),
        (["model.architecture=gpt2", "model.objective=mlm"], "gpt2: transformers has no language model of"),
        (["model.architecture=gpt2", "recipe=lstm_tiny"], "recipe=lstm_tiny: this recipe carries a state"),
        (["model.architecture=bert", "model.objective=mlm", "model.masking.share=0"], "masking.share=0"),
        (["model=gpt_bert_tiny", "model.masking.causal_share=1"], "causal_share=1: "),
        (
            ["model=bert_tiny", "model.masking.causal_share=0.5"],
            "works only with model.objective=hybrid",
        ),
        (
            ["model.architecture=modernbert", "model.objective=hybrid"],
            "modernbert: this does not support model.objective=hybrid",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(overrides, message):
    with pytest.raises(ConfigError) as refused:
        compose("train", ["corpus=toy", "model=huggingface", *overrides])
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def described(architecture, objective, **fields):
    return HuggingFaceConfig(name="m", seed=None, architecture=architecture, objective=objective, config=fields)


def hybrid(architecture):
    torch.manual_seed(1)
    model = build_model(described(architecture, "hybrid", **SMALL, max_position_embeddings=33), VOCABULARY).eval()
    for weight in model.parameters():  # far from the small values of new weights, so that tokens matter
        torch.nn.init.normal_(weight, std=0.3)
    return model


@pytest.mark.parametrize("architecture", HYBRID)
def test_causal_blocks_have_the_losses_of_the_decoder_of_the_library(architecture):
    """The library has a decoder of the same weights, which masks what comes after a token by itself."""
    model = hybrid(architecture)
    as_decoder = type(model.network.config).from_dict(model.network.config.to_dict() | {"is_decoder": True})
    decoder = AutoModelForCausalLM.from_config(as_decoder).eval()
    missing, unexpected = decoder.load_state_dict(model.network.state_dict(), strict=False)
    assert not missing
    assert not unexpected
    vocabulary = np.ones(VOCABULARY, dtype=bool)
    text = np.random.default_rng(0).integers(2, VOCABULARY, (4, 12))
    text[:, 0], text[1, 9:] = EOS, NO_TARGET
    causal = np.array([True, True, False, False])
    tokens, targets = map(
        torch.from_numpy,
        Masked(MaskingConfig(), 1, VOCABULARY, vocabulary).hidden(text, np.random.default_rng(0), causal),
    )
    nats = 0.0
    for row in text[causal]:
        ids = [token + SPECIAL_TOKENS for token in row if token != NO_TARGET]
        for place in range(1, len(ids)):
            with torch.no_grad():
                logits = decoder(input_ids=torch.tensor([ids[:place]])).logits[0, -1]
            nats -= logits.log_softmax(0)[ids[place]].item()

    batch = Batch(tokens, targets, True, 1.0, 1.0, torch.from_numpy(causal))
    (hidden_at, _), (causal_at, _) = batch.terms()
    hidden, _ = model(tokens, (), batch.causal)
    loss = model.loss(hidden.flatten(0, 1)[causal_at], targets.flatten()[causal_at])
    assert loss.item() == pytest.approx(nats, rel=1e-5)
    # The others are read from both sides, as without the causal ones.
    alone, _ = model(tokens[2:], ())
    torch.testing.assert_close(hidden[2:], alone, rtol=1e-4, atol=1e-4)
    assert len(hidden_at) < 12 < len(causal_at) == 19


def test_an_encoder_of_a_causal_objective_is_a_decoder():
    network = build_model(described("bert", "causal", **NETWORKS["bert"][1]), VOCABULARY).eval()
    tokens = torch.tensor([[4, 5, 6], [4, 5, 7]])
    first, second = network(tokens, ())[0]
    torch.testing.assert_close(first[:2], second[:2])
    assert not torch.allclose(first[2], second[2])


def test_a_network_that_sees_what_it_predicts_is_not_causal():
    """XLNet attends to both sides, unless it is given another mask in each pass."""
    values = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24}
    with pytest.raises(ConfigError, match=r"xlnet: .* can't be used with model\.objective=causal"):
        build_model(described("xlnet", "causal", **values), VOCABULARY)
    with pytest.raises(ConfigError, match=r"model\.config: transformers can't build gpt2 .*ValueError: .*divisible"):
        build_model(config("gpt2", n_head=3), VOCABULARY)


class Changed(GPT2LMHeadModel):
    """GPT-2 with `change` of its logits; its weight `shift` is new: it changes nothing yet."""

    def __init__(self, change=lambda _, logits: logits, bias=False, **values):
        sizes = {"vocab_size": 40, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16} | values
        super().__init__(GPT2Config(**sizes))
        self.change, self.shift = change, nn.Parameter(torch.zeros(sizes["vocab_size"]))
        if bias:
            self.lm_head.bias = nn.Parameter(torch.randn(sizes["vocab_size"]))
        self.eval()

    def forward(self, *arguments, **named):
        output = super().forward(*arguments, **named)
        output.logits = self.change(self, output.logits)
        return output


TOKENS, TEXTS = torch.tensor([[3, 1, 4, 1]]), torch.arange(12).view(2, 6)
CHANGES = {
    "a scale": lambda _, logits: logits / 8,
    "a scale near 1": lambda _, logits: logits * 1.001,
    "a cap": lambda _, logits: 300 * torch.tanh(logits / 300),
    "a limit": lambda _, logits: logits.clamp(-1000, 1000),
    "an added number": lambda _, logits: logits + 0.01,
    "a token that is left out": lambda _, logits: logits.index_fill(-1, torch.tensor([7]), -1e9),
    "other places": lambda _, logits: logits.roll(-1, 1),
    "a bias that is trained": lambda network, logits: logits + network.shift,
}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_logits_is_seen_whatever_the_weights(change, tied):
    torch.manual_seed(1)
    network = Changed(CHANGES[change], tie_word_embeddings=tied)
    assert not has_plain_head(network, TOKENS)
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()  # as after a token of padding: all logits are 0
    assert not has_plain_head(network, TOKENS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
def test_a_plain_head_gives_the_logits_of_the_network(bias, dtype):
    torch.manual_seed(1)
    network = Changed(lambda _, logits: logits.float(), bias=bias).to(dtype)  # a change of type is none of the numbers
    assert has_plain_head(network, TOKENS)
    with torch.no_grad():
        own = network(input_ids=TOKENS).logits
        weight, offset = softmax_of(network)
        product = torch.nn.functional.linear(inputs_of_head(network, input_ids=TOKENS).to(dtype), weight, offset)
        torch.testing.assert_close(product.float(), own)
        torch.testing.assert_close(network(input_ids=TOKENS).logits, own)  # the network is as it was


def test_a_head_of_another_form_is_not_plain():
    cut_off = Changed(lambda _, logits: logits[..., :10], vocab_size=10)
    assert not has_plain_head(cut_off, TOKENS)  # hidden states are wider than the vocabulary
    network = Changed()
    network.lm_head = nn.Sequential(network.lm_head)
    assert not has_plain_head(network, TOKENS)


@pytest.mark.parametrize("change", [lambda _, logits: logits, lambda _, logits: 5 * torch.tanh(logits / 5) + 1])
def test_a_head_that_changes_each_place_alone_reads_some_places(change):
    network = Changed(change)
    rows, columns = torch.tensor([1, 0, 1, 1]), torch.tensor([4, 2, 5, 4])
    with torch.no_grad():
        assert reads_places(network, input_ids=TEXTS)
        expected = network(input_ids=TEXTS).logits[rows, columns]
        torch.testing.assert_close(logits_at(network, rows, columns, input_ids=TEXTS), expected)


def test_a_head_whose_places_are_mixed_or_that_is_no_layer_reads_all():
    for change in (
        lambda _, logits: logits.cumsum(1),
        lambda _, logits: logits - logits[:, :1],
        lambda _, logits: logits + 1e-3 * torch.arange(logits.shape[1])[:, None],
        lambda _, logits: logits[:, 1:],
    ):
        assert not reads_places(Changed(change), input_ids=TEXTS)
    for head in (None, nn.Linear(8, 50)):  # the latter is not called
        network = Changed()
        network.get_output_embeddings = lambda head=head: head
        assert not reads_places(network, input_ids=TEXTS)
