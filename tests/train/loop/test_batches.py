"""Batches: every token once an epoch, exact positions, whole units, what is hidden, and ranks that share a step."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.prepare import SampleTokens
from corpora.tokenizers import EOS, MASK, PAD, SPECIAL_TOKENS
from pairscale.errors import ConfigError
from train.loop.batches import NO_TARGET, Blocks, Columns, Masked, cut
from train.models.config import MaskingConfig
from train.recipes import AdamWConfig, BudgetConfig, RecipeConfig

VOCABULARY = 50


def of_columns(batch=3, bptt=4, **budget):
    return RecipeConfig(
        name="r", batch=batch, bptt=bptt, lr=1.0, clip=1.0, export="last", validation_words=1,
        budget=BudgetConfig(**(budget or {"epochs": 1})),
    )  # fmt: skip


def stream(count):
    return np.arange(1, count + 1, dtype=np.uint16)


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 200), batch=st.integers(1, 9), bptt=st.integers(1, 12))
def test_an_epoch_predicts_every_token_from_the_one_before_it(count, batch, bptt):
    if count < batch:
        with pytest.raises(ConfigError, match=f"recipe.batch={batch}: .*too many columns for a sample"):
            Columns(stream(count), 10, of_columns(batch, bptt))
        return
    batches = Columns(stream(count), 10, of_columns(batch, bptt))
    steps = list(batches.after(0))
    assert len(steps) == len(batches) == batches.steps_per_epoch
    inputs = torch.cat([step.inputs for step in steps], 1).flatten().tolist()  # columns one after the other
    targets = torch.cat([step.targets for step in steps], 1).flatten().tolist()
    assert targets[:count] == stream(count).tolist()
    assert len(targets) - count < batch
    assert inputs == [EOS, *targets[:-1]]
    assert [step.first for step in steps] == [True] + [False] * (len(steps) - 1)
    assert all(step.inputs.shape == step.targets.shape == (batch, bptt) for step in steps[:-1])
    assert steps[0].inputs.dtype == torch.int64


def test_a_run_goes_on_with_the_next_batch():
    """Every epoch has the same order and a new state."""
    batches = Columns(stream(50), 10, of_columns(epochs=2))
    whole = [one.targets.tolist() for one in batches.after(0)]
    assert [one.first for one in batches.after(0)] == [True, False, False, False, False] * 2
    assert whole[:5] == whole[5:]
    for step in range(11):
        assert [one.targets.tolist() for one in batches.after(step)] == whole[step:]


@pytest.mark.parametrize(
    ("budget", "steps"),
    [
        ({"epochs": 3}, 15),
        ({"epochs": 0.5}, 3),
        ({"words": "1k"}, 5),
        ({"words": "1001"}, 6),
        ({"epochs": 1, "min_words": "2k"}, 10),
        ({"epochs": 3, "min_words": "2k"}, 15),
        ({"epochs": 0, "min_words": "2k"}, 0),
    ],
)
def test_the_budget_is_converted_to_steps(budget, steps):
    """50 tokens in 3 columns are 17 tokens a column: 4 steps of 4 and one of 1."""
    assert len(Columns(stream(50), 1000, of_columns(**budget))) == steps


def test_words_seen_are_exact_at_the_end_of_an_epoch():
    batches = Columns(stream(50), 1000, of_columns(epochs=2))
    # 4 steps of 4 tokens a column are 16 of 17, and one step is 4 of 17.
    assert [batches.words_seen(step) for step in (0, 4, 5, 6, 10)] == [0, 941, 1000, 1235, 2000]
    with pytest.raises(ConfigError, match=r"recipe.budget.epochs=1e-09"):
        Columns(stream(50), 1000, of_columns(epochs=1e-9))


def recipe(packing="stream", context=8, batch=3, **values):
    return AdamWConfig(
        name="r", budget=BudgetConfig(**(values or {"epochs": 2})), batch=batch, context=context, packing=packing,
        lr=1e-3, clip=1.0, export="last", validation_words=10, schedule="cosine", warmup=0.1, decay=0.2, min_lr=0.0,
        weight_decay=0.1, betas=[0.9, 0.95], eps=1e-8,
    )  # fmt: skip


def sample(lengths, documents=None):
    """A sample of sentences of so many tokens, each different from all others, and an `<eos>`."""
    tokens, number = [], 2
    for length in lengths:
        tokens += [*range(number, number + length), EOS]
        number += length
    return SampleTokens(np.array(tokens), sum(lengths), 0, len(lengths), "", documents)


def masked(share=0.15, shift=0, whole_words=False, begins=None, causal=None):
    begins = np.ones(VOCABULARY, dtype=bool) if begins is None else begins
    masking = MaskingConfig(share=share, masked=0.8, random=0.1, whole_words=whole_words, causal_share=causal)
    return Masked(masking, shift, VOCABULARY, begins)


def targets_of(blocks, epoch=0):
    steps = range(epoch * blocks.steps_per_epoch, (epoch + 1) * blocks.steps_per_epoch)
    return np.concatenate([blocks.at(step).targets.numpy().ravel() for step in steps])


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20), st.integers(2, 12), st.integers(1, 4))
def test_whole_units_hold_every_token_once_and_no_unit_is_cut_without_need(lengths, context, batch):
    blocks = Blocks(sample(lengths), recipe("sentences", context, batch), seed=1)
    for epoch in (0, 1):
        targets = targets_of(blocks, epoch)
        counted = targets[targets != NO_TARGET]
        assert sorted(counted) == sorted(sample(lengths).tokens)
    for row in blocks.blocks:
        ends = np.flatnonzero(row[1:] == EOS)
        real = row[1:][row[1:] != NO_TARGET]
        # A row ends at the end of a sentence, or holds a part of one that is longer than a block.
        assert (len(ends) and ends[-1] == len(real) - 1) or len(real) == context


def test_packing_is_the_one_computed_by_hand():
    rows = cut(sample([2, 1, 6, 1]), "sentences", 6)  # sentences of 3, 2, 7 and 2 tokens in rows of 5
    n = NO_TARGET
    assert rows.tolist() == [[0, 2, 3, 0, 4, 0], [0, 5, 6, 7, 8, 9], [0, 10, 0, 11, 0, n]]
    assert cut(sample([2, 1, 6, 1]), "stream", 6).tolist() == [
        [0, 2, 3, 0, 4, 0], [0, 5, 6, 7, 8, 9], [0, 10, 0, 11, 0, 2]
    ]  # fmt: skip
    two = sample([1, 1, 1, 1], np.array([3, 1]))  # documents of 6 and 2 tokens
    assert cut(two, "documents", 8).tolist() == [[0, 2, 0, 3, 0, 4, 0, n], [0, 5, 0, n, n, n, n, n]]
    with pytest.raises(ConfigError, match=r"sample\.unit=document"):
        cut(sample([3]), "documents", 6)


def test_the_next_token_is_predicted_at_each_place():
    blocks = Blocks(sample([20, 20]), recipe(context=8), seed=1)
    for step in range(len(blocks)):
        batch = blocks.at(step)
        assert batch.first
        assert batch.inputs.shape[1] == 8
        assert (batch.inputs[:, 0] == EOS).all()
        assert (batch.targets[:, :-1] == batch.inputs[:, 1:]).all()
        assert batch.count == batch.targets.numel()


def test_each_epoch_has_an_order_of_its_own_that_the_seed_repeats():
    one, same, other = (Blocks(sample([9] * 40), recipe(), seed=seed) for seed in (1, 1, 2))
    assert (targets_of(one) == targets_of(same)).all()
    assert (targets_of(one, 0) != targets_of(one, 1)).any()
    assert (targets_of(one) != targets_of(other)).any()
    assert sorted(targets_of(one, 0)) == sorted(targets_of(one, 1)) == sorted(targets_of(other))


@given(st.integers(1, 400), st.integers(0, 40))
def test_steps_and_words_agree(words, step):
    blocks = Blocks(sample([9] * 40), recipe(), seed=1)
    assert blocks.words_seen(blocks.steps_for(words)) >= words - 1  # to the nearest word
    assert blocks.words_seen(step) <= blocks.words_seen(step + 1)
    assert blocks.words_seen(blocks.steps_per_epoch) == blocks.words


@pytest.mark.parametrize("objective", [None, masked(), masked(shift=1, causal=0.3)])
def test_ranks_read_the_parts_of_a_step(objective):
    text = sample([9] * 39)  # 49 blocks: the last step has one, for two ranks
    whole = Blocks(text, recipe(batch=4), seed=1, masked=objective)
    ranks = [Blocks(text, recipe(batch=4), 1, objective, (rank, 2)) for rank in (0, 1)]
    for step in range(whole.steps_per_epoch):
        parts = [blocks.at(step) for blocks in ranks]
        together, expected = torch.cat([part.targets for part in parts]), whole.at(step).targets
        assert torch.equal(together[: len(expected)], expected)
        assert (together[len(expected) :] == NO_TARGET).all()
        assert sum(part.count for part in parts) == whole.at(step).count
        if whole.at(step).causal is not None:
            causal = torch.cat([part.causal for part in parts])
            assert torch.equal(causal[: len(expected)], whole.at(step).causal)
            assert sum(part.causal_count for part in parts) == whole.at(step).causal_count
        assert len(parts[0].targets) == len(parts[1].targets)


def test_ranks_read_their_own_columns():
    whole = Columns(stream(50), 10, of_columns(batch=5))
    ranks = [Columns(stream(50), 10, of_columns(batch=5), (rank, 3)) for rank in range(3)]
    for step in range(whole.steps_per_epoch):
        assert torch.equal(torch.cat([one.at(step).targets for one in ranks]), whole.at(step).targets)


def test_parts_of_a_step_have_the_loss_of_the_whole():
    nats = np.random.default_rng(0).random((5, 8))  # of each place

    def loss(batch, nats):
        return sum(nats.flatten()[places].sum() / divisor for places, divisor in batch.terms())

    for objective in (None, masked(0.4, shift=1, causal=0.4)):
        whole = Blocks(sample([9] * 40), recipe(batch=5), seed=1, masked=objective).at(0)
        first, second = whole.parts(2)
        assert [len(first.inputs), len(second.inputs)] == [3, 2]
        assert torch.equal(torch.cat([first.targets, second.targets]), whole.targets)
        assert loss(first, nats[:3]) + loss(second, nats[3:]) == pytest.approx(loss(whole, nats))
    expected = 0.0
    for rows in (whole.causal, ~whole.causal):  # the mean of each kind, by its share of the blocks
        there = (whole.targets != NO_TARGET) & rows[:, None]
        expected += rows.double().mean().item() * nats[there].mean()
    assert loss(whole, nats) == pytest.approx(expected)
    assert whole.causal.sum() == 2


@pytest.mark.parametrize(("share", "batch"), [(1 / 16, 16), (0.1, 3), (0.93, 3)])
def test_causal_blocks_are_read_as_they_are_in_the_share_asked_for(share, batch):
    blocks = Blocks(sample([9] * 40), recipe(batch=batch, epochs=60), 1, masked(0.15, shift=1, causal=share))
    count = read = 0
    for step in range(len(blocks)):
        one = blocks.at(step)
        causal = one.inputs[one.causal]
        assert (causal > MASK).all()  # neither hidden nor padding
        assert one.targets[one.causal][:, :-1].equal(causal[:, 1:])
        assert (one.targets[one.causal][:, -1] == NO_TARGET).all()
        assert one.causal.all() or (one.targets[~one.causal] != NO_TARGET).any()
        count, read = count + int(one.causal.sum()), read + len(one.causal)
        assert abs(count - share * read) <= 1
    assert count


@settings(max_examples=20)
@given(st.integers(0, 2**40), st.sampled_from([0, 1]))
def test_hidden_tokens_are_the_targets_at_their_places(seed, shift):
    text = np.random.default_rng(seed).integers(2, VOCABULARY, size=(16, 40))
    text[:, 0] = EOS
    text[:, 20] = EOS
    text[3:, 30:] = NO_TARGET
    inputs, targets = masked(0.15, shift).hidden(text, np.random.default_rng(seed))
    places = np.argwhere(targets != NO_TARGET)
    assert len(places)
    for row, place in places:
        token = text[row, place + shift]
        assert token not in (EOS, NO_TARGET)
        assert targets[row, place] == token + SPECIAL_TOKENS
    changed = inputs != np.where(text == NO_TARGET, PAD, text + SPECIAL_TOKENS)
    hidden = np.zeros_like(changed)
    hidden[places[:, 0], places[:, 1] + shift] = True
    assert not (changed & ~hidden).any()
    assert (inputs[text == NO_TARGET] == PAD).all()


def test_shares_are_those_asked_for():
    text = np.full((400, 101), 7)
    text[:, 0] = EOS
    inputs, targets = masked(0.15).hidden(text, np.random.default_rng(0))
    drawn = targets != NO_TARGET
    assert drawn.mean() == pytest.approx(0.15, abs=0.006)  # five standard errors
    of = inputs[drawn]
    assert (of == MASK).mean() == pytest.approx(0.8, abs=0.03)
    assert (of == 7 + SPECIAL_TOKENS).mean() == pytest.approx(0.1 + 0.1 / VOCABULARY, abs=0.02)
    _, few = masked(1e-9).hidden(np.array([[EOS, 5, 6, EOS]]), np.random.default_rng(0))
    assert (few != NO_TARGET).sum() == 1  # at least


def test_whole_words_are_hidden_together():
    begins = np.arange(VOCABULARY) % 2 == 0  # odd tokens continue a word
    text = np.tile([EOS, 2, 3, 5, 4, 6, 7, EOS, 9, 8], (200, 1))
    for seed in range(5):
        _, targets = masked(0.4, whole_words=True, begins=begins).hidden(text, np.random.default_rng(seed))
        drawn = targets != NO_TARGET
        assert (drawn[:, 1] == drawn[:, 2]).all()
        assert (drawn[:, 2] == drawn[:, 3]).all()
        assert (drawn[:, 5] == drawn[:, 6]).all()
        assert not drawn[:, [0, 7]].any()
        assert 0 < drawn[:, 8].mean() < 1  # a continuation behind an <eos> is a word of its own
        assert drawn[:, 4].mean() == pytest.approx(0.4, abs=0.17)
