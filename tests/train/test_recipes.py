"""Learning rates against the formulas of the papers and torch's schedules."""

import pandas as pd
import pytest
import torch

from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support import ROOT


def test_cosine_is_torchs_cosine_over_the_runs_own_steps():
    config = compose("train", ["model=txl"]).recipe
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=2.5e-4)
    reference = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50)
    for step in range(50):
        assert config.scheduled_rate(step, 50) == pytest.approx(reference.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        reference.step()


def test_warm_up_rises_in_equal_steps_to_the_full_rate():
    config = compose("train", ["model=lstm_tiny", "recipe.warmup=0.1", "recipe.lr=1.0"]).recipe
    rates = [config.scheduled_rate(step, 100) for step in range(11)]
    assert rates == pytest.approx([n / 11 for n in range(1, 11)] + [1.0])


def test_plateau_divides_by_four_only_without_a_better_loss():
    config = compose("train", ["model=lstm_blimp"]).recipe
    assert config.scheduled_rate(7, 10) is None
    assert config.rate_after_validation(20.0, improved=True) == 20.0
    assert config.rate_after_validation(20.0, improved=False) == 5.0


def test_published_recipes_of_the_two_models_of_the_curves():
    lstm = compose("train", ["model=lstm_blimp"])
    assert isinstance(lstm.recipe.optimizer([torch.zeros(1, requires_grad=True)]), torch.optim.SGD)
    assert (lstm.recipe.batch, lstm.recipe.bptt, lstm.recipe.lr, lstm.recipe.clip) == (128, 35, 20.0, 0.25)
    assert lstm.recipe.budget.epochs == 60
    txl = compose("train", ["model=txl"])
    assert isinstance(txl.recipe.optimizer([torch.zeros(1, requires_grad=True)]), torch.optim.Adam)
    assert (txl.recipe.batch, txl.recipe.bptt, txl.recipe.lr, txl.recipe.clip) == (60, 150, 2.5e-4, 0.25)


def test_rates_are_near_the_best_of_the_table_of_rates():
    """A rate that is copied from another architecture can cost most of a nat per word: the LSTM's in a GRU does."""
    table = pd.read_csv(ROOT / "analysis" / "results" / "recipes.csv")
    for model, rows in table.groupby("model"):
        losses = rows.pivot_table(values="valid", index="sample_words", columns="lr")
        rate = compose("train", [f"model={model}"]).recipe.lr
        assert (losses[rate] - losses.min(axis="columns")).max() < 0.2, model


def test_wsd_keeps_its_rate_until_it_falls_in_a_line():
    values = ["recipe.schedule=wsd", "recipe.warmup=0.1", "recipe.decay=0.2", "recipe.lr=1.0", "recipe.min_lr=0.1"]
    config = compose("train", ["model=gpt2_tiny", *values]).recipe
    rates = [config.scheduled_rate(step, 100) for step in range(100)]
    assert rates[:10] == pytest.approx([n / 11 for n in range(1, 11)])
    assert rates[10:80] == [1.0] * 70
    assert rates[80:] == pytest.approx([0.1 + 0.9 * left / 20 for left in range(20, 0, -1)])


def test_only_matrices_decay():
    recipe = compose("train", ["model=gpt2_tiny", "recipe.weight_decay=0.3"]).recipe
    matrix, gain = torch.zeros(2, 3, requires_grad=True), torch.zeros(4, requires_grad=True)
    decaying, others = recipe.optimizer([gain, matrix]).param_groups
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.3, 0.0)
    assert decaying["params"][0] is matrix
    assert others["params"][0] is gain


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("recipe.packing=lines", r"recipe\.packing=lines: .*must be one of columns, stream"),
        ("recipe.schedule=linear", r"recipe\.schedule=linear: .*must be one of cosine, wsd"),
        ("recipe.betas=[0.9]", r"recipe\.betas=\[0\.9\]: .*must be two numbers"),
        ("recipe.accumulate=17", r"recipe\.accumulate=17: .*must be from 1 to 8"),
        ("recipe.bptt=35", r"recipe\.bptt=35: .* \(now 128\)\. Write recipe\.context=35"),
        ("recipe.warmup=2", r"recipe\.warmup=2: .*must be a number from 0 to 1"),
    ],
)
def test_values_out_of_range_are_refused(override, message):
    with pytest.raises(ConfigError, match=message):
        compose("train", ["corpus=toy", "model=gpt2_tiny", override])
