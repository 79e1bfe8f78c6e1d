"""Output layers of networks whose logits are their product, and of networks that change it in every way."""

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from train.models.huggingface import has_plain_head, inputs_of_head, logits_at, reads_places, softmax_of


class Changed(GPT2LMHeadModel):
    """GPT-2 with `change` of its logits; its weights `scale` and `bias` are new: they change nothing yet."""

    def __init__(self, change, bias=False, **values):
        sizes = {"vocab_size": 40, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16} | values
        super().__init__(GPT2Config(**sizes))
        self.change = change
        self.scale, self.shift = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(sizes["vocab_size"]))
        if bias:
            self.lm_head.bias = nn.Parameter(torch.randn(sizes["vocab_size"]))
        self.eval()

    def forward(self, *arguments, **named):
        output = super().forward(*arguments, **named)
        output.logits = self.change(self, output.logits)
        return output


def same(_, logits):
    return logits


TOKENS = torch.tensor([[3, 1, 4, 1]])
CHANGES = {
    "a scale": lambda _, logits: logits / 8,
    "a scale near 1": lambda _, logits: logits * 1.001,
    "a cap": lambda _, logits: 300 * torch.tanh(logits / 300),
    "a limit": lambda _, logits: logits.clamp(-1000, 1000),
    "an added number": lambda _, logits: logits + 0.01,
    "a token that is left out": lambda _, logits: logits.index_fill(-1, torch.tensor([7]), -1e9),
    "other places": lambda _, logits: logits.roll(-1, 1),
    "a bias that is trained": lambda network, logits: logits + network.shift,
    "a scale that is trained": lambda network, logits: logits * network.scale,
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
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


def test_logits_that_are_cut_off_at_the_vocabulary_are_not_those_of_wider_hidden_states():
    network = Changed(lambda _, logits: logits[..., :10], vocab_size=10)
    assert not has_plain_head(network, TOKENS)


@pytest.mark.parametrize("network", [Changed(same)])
def test_a_head_whose_product_another_layer_gives_is_not_plain(network):
    network.lm_head = nn.Sequential(network.lm_head)
    assert not has_plain_head(network, TOKENS)


TEXTS = torch.arange(12).view(2, 6)


@pytest.mark.parametrize("change", [same, lambda _, logits: 5 * torch.tanh(logits / 5) + 1])
def test_a_head_that_changes_each_place_alone_reads_some_places(change):
    network = Changed(change)
    rows, columns = torch.tensor([1, 0, 1, 1]), torch.tensor([4, 2, 5, 4])
    with torch.no_grad():
        assert reads_places(network, input_ids=TEXTS)
        expected = network(input_ids=TEXTS).logits[rows, columns]
        torch.testing.assert_close(logits_at(network, rows, columns, input_ids=TEXTS), expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda _, logits: logits.cumsum(1),
        lambda _, logits: logits.flip(1),
        lambda _, logits: logits - logits[:, :1],
        lambda _, logits: logits + 1e-3 * torch.arange(logits.shape[1])[:, None],
        lambda _, logits: logits[:, 1:],
    ],
)
def test_a_head_whose_places_are_mixed_reads_all(change):
    assert not reads_places(Changed(change), input_ids=TEXTS)


def test_a_head_that_is_no_layer_or_is_not_called_reads_all():
    network = Changed(same)
    network.get_output_embeddings = lambda: None
    assert not reads_places(network, input_ids=TEXTS)
    network.get_output_embeddings = lambda: nn.Linear(8, 50)
    assert not reads_places(network, input_ids=TEXTS)
