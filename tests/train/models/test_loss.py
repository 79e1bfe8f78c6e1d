"""The chunked loss and adaptive vocabularies against torch's own plain softmax, in values and gradients."""

import dataclasses
import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import train.models.loss
from eval.scorers.load import load_scorer
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support import ROOT
from tests.support.random_models import TXL
from tests.support.small_runs import overrides, trained
from train.models.build import build_model, parameter_count
from train.models.loss import AdaptiveVocabulary, all_logprobs, cross_entropy, token_logprobs
from train.runs.model_folder import load_model


@pytest.fixture
def problem():
    torch.manual_seed(0)
    hidden = torch.randn(23, 7, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(31, 7, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(31, dtype=torch.float64, requires_grad=True)
    return hidden, weight, bias, torch.randint(31, (23,))


@pytest.mark.parametrize(("rows", "block"), [(1, 1), (5, 2), (23, 4), (100, 1000)])
def test_value_and_gradients_equal_autograds(problem, rows, block, monkeypatch):
    monkeypatch.setattr(train.models.loss, "GRADIENT_CHUNK_BYTES", rows * 8 * 31)
    monkeypatch.setattr(train.models.loss, "BLOCK_BYTES", block * 8 * 31)
    hidden, weight, bias, targets = problem
    ours = cross_entropy(hidden, weight, bias, targets)
    theirs = F.cross_entropy(hidden @ weight.T + bias, targets, reduction="sum")
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=0)
    expected = torch.autograd.grad(theirs / 23, (hidden, weight, bias))
    gradients = torch.autograd.grad(ours / 23, (hidden, weight, bias))
    for ours_gradient, theirs_gradient in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours_gradient, theirs_gradient, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize(("rows", "block"), [(1, 1), (5, 2), (100, 1000)])
def test_log_probabilities_equal_log_softmax(problem, rows, block, monkeypatch):
    monkeypatch.setattr(train.models.loss, "CHUNK_BYTES", rows * 8 * 31)
    monkeypatch.setattr(train.models.loss, "BLOCK_BYTES", block * 8 * 31)
    hidden, weight, bias, targets = problem
    expected = F.log_softmax(hidden @ weight.T + bias, dim=-1).detach()
    torch.testing.assert_close(all_logprobs(hidden, weight, bias), expected, rtol=1e-12, atol=1e-14)
    one_each = token_logprobs(hidden, weight, bias, targets)
    torch.testing.assert_close(one_each, expected.gather(1, targets[:, None])[:, 0])
    followed = torch.sort(torch.randint(len(hidden), (len(targets),))).values  # several tokens may follow one state
    torch.testing.assert_close(token_logprobs(hidden, weight, bias, targets, followed), expected[followed, targets])


def test_chunks_are_yielded_under_the_callers_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in train.models.loss._product_chunks(torch.ones(3, 2), torch.ones(4, 2), 4 * 4):
            assert torch.is_autocast_enabled("cpu")


def test_only_tensors_that_require_a_gradient_get_one(problem):
    hidden, weight, bias, targets = problem
    loss = cross_entropy(hidden, weight.detach(), bias.detach(), targets)
    loss.backward()
    assert hidden.grad is not None
    assert weight.grad is None
    with torch.no_grad():
        alone = cross_entropy(*problem)
    assert not alone.requires_grad
    torch.testing.assert_close(alone, loss.detach())


@pytest.mark.slow
def test_memory_stays_far_below_that_of_all_logits():
    """4,480 tokens of 50,000 words are 896 MB of logits, of which autograd would hold at least two copies."""
    code = """
import resource, torch
from train.models.loss import cross_entropy
hidden, bias = torch.zeros(4480, 8, requires_grad=True), torch.zeros(50_000, requires_grad=True)
weight, targets = torch.zeros(50_000, 8, requires_grad=True), torch.zeros(4480, dtype=torch.long)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
cross_entropy(hidden, weight, bias, targets).backward()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert int(result.stdout) < 250e6


def test_a_target_too_improbable_for_a_float_has_its_loss():
    """exp(-200) is no float32: the loss comes from the logits."""
    hidden = torch.tensor([[200.0]], requires_grad=True)
    weight, bias = torch.tensor([[1.0], [0.0]], requires_grad=True), torch.zeros(2, requires_grad=True)
    loss = cross_entropy(hidden, weight, bias, torch.tensor([1]))
    assert loss.item() == 200.0
    gradients = torch.autograd.grad(loss, (hidden, weight, bias))
    for gradient, expected in zip(gradients, ([[1.0]], [[200.0], [-200.0]], [1.0, -1.0]), strict=True):
        assert gradient.tolist() == expected


@pytest.mark.parametrize("rows", [3, 64])
def test_bf16_gradients_are_as_exact_as_those_of_autocast(rows, monkeypatch):
    """Both these gradients and torch's own under autocast are within bfloat16's precision of the exact ones."""
    monkeypatch.setattr(train.models.loss, "GRADIENT_CHUNK_BYTES", rows * 4 * 50)
    torch.manual_seed(0)
    weights = torch.randn(64, 16), torch.randn(50, 16), torch.randn(50)
    targets = torch.randint(50, (64,))

    def gradients(loss, bf16):
        leaves = [tensor.clone().requires_grad_() for tensor in weights]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            value = loss(*leaves)
        return torch.autograd.grad(value, leaves)

    def plain(hidden, weight, bias):
        return F.cross_entropy(F.linear(hidden, weight, bias).float(), targets, reduction="sum")

    exact = gradients(plain, bf16=False)
    ours = gradients(lambda *leaves: cross_entropy(*leaves, targets), bf16=True)
    theirs = gradients(plain, bf16=True)
    for one, other, reference in zip(ours, theirs, exact, strict=True):
        error = (one - reference).norm() / reference.norm()
        assert error < 0.01
        assert error < 1.2 * (other - reference).norm() / reference.norm()


WORDS = 23
CASES = {
    "many clusters": {"cutoffs": [1, 2, 11, 22]},
    "untied": {"cutoffs": [5, 11], "tied": False},
    "divided, tied projections": {"cutoffs": [5, 11], "div_val": 2, "tied_projections": True},
    "projected, untied": {"cutoffs": [5, 11], "embedding": 4, "tied": False},
    "projected, no clusters": {"embedding": 6},
}


def config_of(**values):
    return dataclasses.replace(TXL, d_model=8, **values)


@pytest.fixture(params=CASES)
def vocabulary(request):
    torch.manual_seed(1)
    adaptive = AdaptiveVocabulary(config_of(**CASES[request.param]), WORDS).double()
    for weight in adaptive.parameters():
        torch.nn.init.normal_(weight, 0.0, 0.5)
    return adaptive


def word_by_word(vocabulary, hidden):
    """Return ln p (N, V): a frequent word's from the head, another's as its cluster's plus its own in the cluster."""
    columns = []
    starts, tables = vocabulary.starts, vocabulary.untied or vocabulary.tables
    states = []
    for cluster in range(len(tables)):
        projections = vocabulary.output_projections
        if cluster >= len(projections):
            projections = vocabulary.projections
        states.append(hidden @ projections[cluster] if len(projections) else hidden)
    head = [states[0] @ row + bias for row, bias in zip(tables[0], vocabulary.biases[0], strict=True)]
    for row, bias in zip(vocabulary.cluster_weight, vocabulary.cluster_bias, strict=True):
        head.append(states[0] @ row + bias)
    head = torch.stack(head, 1).log_softmax(1)
    for word in range(WORDS):
        cluster = sum(word >= start for start in starts[1:-1])
        if cluster == 0:
            columns.append(head[:, word])
        else:
            within = (states[cluster] @ tables[cluster].T + vocabulary.biases[cluster]).log_softmax(1)
            columns.append(head[:, starts[1] + cluster - 1] + within[:, word - starts[cluster]])
    return torch.stack(columns, 1)


def test_probabilities_are_exact_and_sum_to_one(vocabulary):
    hidden = torch.randn(4, 8, dtype=torch.float64)
    rows = torch.arange(4).repeat_interleave(WORDS)
    logprobs = vocabulary.logprobs(hidden, torch.arange(WORDS).repeat(4), rows).view(4, WORDS)
    torch.testing.assert_close(logprobs, word_by_word(vocabulary, hidden))
    torch.testing.assert_close(logprobs.exp().sum(1), torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(vocabulary.log_softmax(hidden), logprobs)


@pytest.mark.parametrize("chunk", [1, 200, 1 << 20])
def test_loss_and_gradients_equal_the_plain_softmax(vocabulary, chunk, monkeypatch):
    monkeypatch.setattr(train.models.loss, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(train.models.loss, "GRADIENT_CHUNK_BYTES", chunk)
    hidden = torch.randn(30, 8, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(WORDS, (30,))
    ours = vocabulary.loss(hidden, targets)
    plain = -word_by_word(vocabulary, hidden).gather(1, targets[:, None]).sum()
    torch.testing.assert_close(ours, plain)
    names, weights = zip(*vocabulary.named_parameters(), strict=True)
    gradients = torch.autograd.grad(ours / 30, (hidden, *weights), allow_unused=True)
    expected = torch.autograd.grad(plain / 30, (hidden, *weights), allow_unused=True)
    for name, gradient, reference in zip(("hidden", *names), gradients, expected, strict=True):
        assert (gradient is None or not gradient.numel()) == (reference is None), name
        if gradient is not None and gradient.numel():
            torch.testing.assert_close(gradient, reference, msg=lambda text, name=name: f"{name}: {text}")
    torch.testing.assert_close(-vocabulary.logprobs(hidden.detach(), targets).sum(), ours.detach())


def test_embeddings_are_rows_of_the_tables(vocabulary):
    tokens = torch.randint(WORDS, (3, 7))
    embeddings = vocabulary.embed(tokens)
    assert embeddings.shape == (3, 7, 8)
    for token, embedded in zip(tokens.flatten().tolist(), embeddings.view(21, 8), strict=True):
        cluster = sum(token >= start for start in vocabulary.starts[1:-1])
        expected = vocabulary.tables[cluster][token - vocabulary.starts[cluster]]
        if len(vocabulary.projections):
            expected = vocabulary.projections[cluster] @ expected
        torch.testing.assert_close(embedded, expected)
    (gradient,) = torch.autograd.grad(embeddings.sum(), [vocabulary.tables[0]])
    used = sorted({token for token in tokens.flatten().tolist() if token < vocabulary.starts[1]})
    assert gradient.abs().sum(1).nonzero().flatten().tolist() == used


def test_a_batch_may_have_targets_of_one_cluster_only(vocabulary):
    hidden = torch.randn(5, 8, dtype=torch.float64)
    for word in (0, WORDS - 1):
        targets = torch.full((5,), word)
        expected = word_by_word(vocabulary, hidden)[:, word]
        torch.testing.assert_close(vocabulary.logprobs(hidden, targets), expected)
        torch.testing.assert_close(vocabulary.loss(hidden, targets), -expected.sum())
    none = torch.zeros(0, dtype=torch.long)
    assert vocabulary.logprobs(hidden[:0], none).shape == (0,)


def test_bf16_keeps_sums_in_float32():
    torch.manual_seed(0)
    model = build_model(config_of(cutoffs=[5, 11], div_val=2), WORDS)
    tokens = torch.randint(WORDS, (2, 6))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden, _ = model(tokens, model.initial_state(2))
        loss = model.loss(hidden.flatten(0, 1), tokens.flatten())
        scored = model.logprobs(hidden.flatten(0, 1), tokens.flatten())
    assert loss.dtype == scored.dtype == torch.float32
    loss.backward()
    assert all(weight.grad.dtype == torch.float32 for weight in model.parameters())


def test_rare_words_have_smaller_embeddings():
    plain = parameter_count(config_of(), 1000) - (1000 * 8 + 1000)  # of all but words
    words = 100 * 16 + 400 * 4 + 500 * 1 + 1000  # tables, tied, and biases
    clusters, projections = 2 * 16 + 2, 2 * 8 * (16 + 4 + 1)
    parameters = parameter_count(config_of(cutoffs=[100, 500], embedding=16, div_val=4), 1000)
    assert parameters == plain + words + clusters + projections
    tied = config_of(cutoffs=[100, 500], embedding=16, div_val=4, tied_projections=True)
    assert parameter_count(tied, 1000) == parameters - 8 * (4 + 1)


def test_values_out_of_range_are_refused():
    for values, message in (
        ({"cutoffs": [9, 5]}, r"model\.cutoffs=\[9, 5\]: .*increasing"),
        ({"cutoffs": [5, 9], "div_val": 4}, r"model\.div_val=4: .*width 0"),
        ({"cutoffs": [5, 23]}, r"model\.cutoffs=\[5, 23\]: .*below 23"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_model(config_of(**values), WORDS)


@pytest.mark.usefixtures("small_text")
def test_an_adaptive_model_can_be_trained_and_scored(tmp_path):
    adaptive = ["model.cutoffs=[30,80]", "model.div_val=2", "model.tied_projections=true", "recipe.lr=5e-3"]
    run = trained(compose("train", overrides(tmp_path, "txl", "runs", *adaptive)))
    loaded = load_model(run.model)
    assert loaded.model.adaptive is not None
    assert loaded.config.cutoffs == [30, 80]
    assert run.read_manifest()["last"]["valid_nats_per_word"] < 0.9 * math.log(len(loaded.tokenizer))
    (score,) = load_scorer(run).score(["w1 w3 w9 ."], compose("eval", []).policy)
    assert math.isfinite(score.logprobs.sum())
