"""The chunked loss against torch's own, in value and gradients."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import train.models.loss
from tests.support import ROOT
from train.models.loss import all_logprobs, cross_entropy, token_logprobs


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
def test_log_probabilities_of_all_tokens_equal_log_softmax(problem, rows, block, monkeypatch):
    monkeypatch.setattr(train.models.loss, "CHUNK_BYTES", rows * 8 * 31)
    monkeypatch.setattr(train.models.loss, "BLOCK_BYTES", block * 8 * 31)
    hidden, weight, bias, _ = problem
    expected = F.log_softmax(hidden @ weight.T + bias, dim=-1)
    torch.testing.assert_close(all_logprobs(hidden, weight, bias), expected.detach(), rtol=1e-12, atol=1e-14)


def test_token_logprobs_sum_to_the_loss(problem, monkeypatch):
    monkeypatch.setattr(train.models.loss, "CHUNK_BYTES", 5 * 8 * 31)
    hidden, weight, bias, targets = problem
    logprobs = token_logprobs(hidden, weight, bias, targets)
    torch.testing.assert_close(logprobs, (hidden @ weight.T + bias).log_softmax(1).gather(1, targets[:, None])[:, 0])
    torch.testing.assert_close(-logprobs.sum(), cross_entropy(hidden, weight, bias, targets).detach())


def test_several_tokens_may_follow_one_hidden_state(problem, monkeypatch):
    monkeypatch.setattr(train.models.loss, "CHUNK_BYTES", 5 * 8 * 31)
    monkeypatch.setattr(train.models.loss, "BLOCK_BYTES", 2 * 8 * 31)
    hidden, weight, bias, targets = problem
    rows = torch.sort(torch.randint(len(hidden), (len(targets),), generator=torch.Generator().manual_seed(1))).values
    logprobs = token_logprobs(hidden, weight, bias, targets, rows)
    expected = (hidden @ weight.T + bias).log_softmax(1)[rows, targets]
    torch.testing.assert_close(logprobs, expected)


def test_chunks_are_yielded_under_the_callers_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in train.models.loss._product_chunks(torch.ones(3, 2), torch.ones(4, 2), 4 * 4):
            assert torch.is_autocast_enabled("cpu")


def test_without_gradients_the_loss_is_the_same(problem):
    expected = cross_entropy(*problem)
    with torch.no_grad():
        loss = cross_entropy(*problem)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, expected.detach())


def test_only_tensors_that_require_a_gradient_get_one(problem):
    hidden, weight, bias, targets = problem
    cross_entropy(hidden, weight.detach(), bias.detach(), targets).backward()
    assert hidden.grad is not None
    assert weight.grad is None


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
