"""Effects of ablations: against the paired t test, Satterthwaite's degrees of freedom and Fieller's set by hand."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import t as student
from scipy.stats import ttest_rel

from analysis.config import CurvesConfig
from analysis.curves.ablations.ablations import DIFFERENCES, Ablations, compare_ablations
from analysis.curves.ablations.effects import ALL_SIZES
from analysis.curves.ablations.matching import DIRECT, REST, SAME
from analysis.curves.ablations.shares import NOT_ABOVE
from analysis.study.judgements import Judgements

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=100, seed=1)
PARADIGMS = {"agreement_1": "agreement", "agreement_2": "agreement", "npi_1": "npi", "npi_2": "npi"}
PAIRS = 200
TESTED = {"there": ["agreement_1"]}
KINDS = {"full": ("", "none", "1"), "removed": ("there", "remove", "0"), "control": ("there", "control", "0")}
WORDS = {"125k": 125_000, "250k": 250_000, "500k": 500_000}


def judged(accuracies: dict[tuple[str, str, int], list[float]]) -> Judgements:
    """Return judgements from the accuracies of PARADIGMS, by kind of run, size and seed: the first pairs are right."""
    rows, outcomes = [], []
    for (kind, size, seed), of in accuracies.items():
        construction, action, dose = KINDS[kind]
        rows.append(
            {"run": f"{kind}-{size}-{seed}", "base": "lstm", "group": kind, "filter": construction, "action": action,
             "dose": dose, "reference": "treebank", "size": size, "seed": seed, "sample_words": WORDS[size],
             "nested": False}
        )  # fmt: skip
        outcomes.append(np.concatenate([np.arange(PAIRS) < round(PAIRS * accuracy) for accuracy in of]))
    pairs = [(str(n), name, phenomenon) for name, phenomenon in PARADIGMS.items() for n in range(PAIRS)]
    runs = pd.DataFrame(rows).set_index("run")
    outcome = np.stack(outcomes).astype(np.float64)
    of_pairs = pd.DataFrame(pairs, columns=["pair_id", "paradigm", "phenomenon"])
    return Judgements(
        "blimp", "lp", "", {}, runs, of_pairs, outcome, np.zeros_like(outcome), outcome > 1, pd.DataFrame()
    )


def spread(kind: str, size: str, seeds: int, level: float, deviation: float, rng: np.random.Generator) -> dict:
    """Return accuracies of runs that differ by much, so that chance in single judgements is no floor."""
    return {
        (kind, size, seed): rng.normal(level, deviation, len(PARADIGMS)).clip(0, 1).tolist() for seed in range(seeds)
    }


def compared(study: Judgements, tested: Mapping[str, list[str]] = TESTED) -> Ablations:
    ablations = compare_ablations(study, tested, CONFIG)
    assert ablations is not None
    return ablations


def rows_of(table: pd.DataFrame, **where: object) -> pd.DataFrame:
    for column, value in where.items():
        table = table[table[column] == value]
    return table


def accuracy(study: Judgements, kind: str, size: str, paradigms: list[str]) -> np.ndarray:
    """Return the mean accuracy over paradigms of each run of a kind and size, by seed."""
    runs = study.runs
    of = runs[(runs["group"] == kind) & (runs["size"] == size)].sort_values("seed")
    columns = study.pairs["paradigm"].isin(paradigms).to_numpy()
    return study.outcome[runs.index.get_indexer(of.index)][:, columns].mean(axis=1)


@pytest.fixture(scope="module")
def one_size() -> Judgements:
    rng = np.random.default_rng(1)
    levels = {"full": 0.7, "removed": 0.55, "control": 0.68}
    accuracies: dict = {}
    for kind, level in levels.items():
        accuracies |= spread(kind, "125k", 6, level, 0.12, rng)
    return judged(accuracies)


@pytest.mark.parametrize(("kind", "other"), [("treatment - control", "control"), ("treatment - full", "full")])
@pytest.mark.parametrize(
    ("name", "paradigms"), [("overall", [*PARADIGMS]), ("npi_1", ["npi_1"]), (DIRECT, ["agreement_1"])]
)
def test_one_size_is_the_paired_t_test_over_runs(one_size, kind, other, name, paradigms):
    table = rows_of(compared(one_size).differences, kind=kind, over=ALL_SIZES, name=name)
    assert list(table.columns) == DIFFERENCES
    assert len(table) == 1
    row = table.iloc[0]
    first, second = (accuracy(one_size, of, "125k", paradigms) for of in ("removed", other))
    expected = ttest_rel(first, second)
    low, high = expected.confidence_interval(0.95)
    assert row["pairs"] == 6
    assert [row["first"], row["second"]] == pytest.approx([first.mean(), second.mean()])
    assert [row["difference"], row["low"], row["high"], row["p"]] == pytest.approx(
        [(first - second).mean(), low, high, expected.pvalue]
    )
    # Two one-sided tests, of which the nearer bound counts.
    error = (first - second).std(ddof=1) / np.sqrt(6)
    assert row["p_tost"] == pytest.approx(student.sf((0.02 - abs(row["difference"])) / error, 5))
    assert row["low_new_pairs"] <= row["low"]
    assert row["high"] <= row["high_new_pairs"]


def test_sizes_weigh_equally_and_have_spreads_of_their_own():
    rng = np.random.default_rng(2)
    accuracies: dict = {}
    for size, seeds, deviation in (("125k", 5, 0.2), ("250k", 3, 0.08), ("500k", 3, 0.12)):
        accuracies |= spread("removed", size, seeds, 0.6, deviation, rng)
        accuracies |= spread("control", size, seeds, 0.7, 0.05, rng)
    study = judged(accuracies)
    table = rows_of(compared(study).differences, name="overall").set_index("over")
    paradigms = [*PARADIGMS]
    of_sizes = [
        accuracy(study, "removed", size, paradigms) - accuracy(study, "control", size, paradigms) for size in WORDS
    ]
    terms = np.array([of.var(ddof=1) / len(of) / 9 for of in of_sizes])
    degrees = terms.sum() ** 2 / sum(term**2 / (len(of) - 1) for term, of in zip(terms, of_sizes, strict=True))
    half = student.ppf(0.975, degrees) * np.sqrt(terms.sum())
    mean = np.mean([of.mean() for of in of_sizes])
    row = table.loc[ALL_SIZES]
    assert [row["difference"], row["low"], row["high"]] == pytest.approx([mean, mean - half, mean + half])
    assert row["pairs"] == 11
    # Each size alone is there, too, and the difference of the slopes.
    assert table.loc["250k", "difference"] == pytest.approx(of_sizes[1].mean())
    slope = (of_sizes[2].mean() - of_sizes[0].mean()) / 2
    assert table.loc["per doubling", "difference"] == pytest.approx(slope)


def test_the_share_that_survives_is_fiellers(one_size):
    row = rows_of(compared(one_size).shares, kind="treatment - control", over=ALL_SIZES, name="overall").iloc[0]
    treated, control = (accuracy(one_size, of, "125k", [*PARADIGMS]) - 0.5 for of in ("removed", "control"))
    quantile = student.ppf(0.975, 5)

    def outside(share: float) -> float:
        """Return how far a share is from being retained by the t test that treated - share * control is 0."""
        rest = treated - share * control
        return float(abs(rest.mean()) - quantile * rest.std(ddof=1) / np.sqrt(6))

    share = treated.mean() / control.mean()
    assert row["share"] == pytest.approx(share)
    assert row["low"] == pytest.approx(brentq(outside, share - 3, share))
    assert row["high"] == pytest.approx(brentq(outside, share, share + 3))
    assert row["note"] == ""


def test_nothing_learned_has_no_share():
    rng = np.random.default_rng(4)
    study = judged(spread("removed", "125k", 5, 0.5, 0.1, rng) | spread("control", "125k", 5, 0.5, 0.1, rng))
    row = rows_of(compared(study).shares, name="overall", over=ALL_SIZES).iloc[0]
    assert np.isnan([row["share"], row["low"], row["high"]]).all()
    assert row["note"] == NOT_ABOVE


def test_evidence_is_parted_into_direct_related_and_other(one_size):
    table = rows_of(compared(one_size).differences, kind="treatment - control", over=ALL_SIZES).set_index("name")
    assert table.loc[[DIRECT, SAME, REST], "paradigms"].tolist() == [1, 1, 2]
    assert table.loc[REST, "difference"] == pytest.approx(table.loc["npi", "difference"])
    assert table.loc[SAME, "difference"] == pytest.approx(table.loc["agreement_2", "difference"])
    assert table.index[table["direct"]].tolist() == ["agreement_1"]
    assert DIRECT not in set(compared(one_size, {}).differences["name"])


def test_p_values_are_corrected_within_a_family(one_size):
    table = rows_of(compared(one_size).differences, kind="treatment - control", over=ALL_SIZES)
    of = rows_of(table, level="paradigm").sort_values("p")
    steps = np.maximum.accumulate(of["p"].to_numpy() * np.arange(4, 0, -1)).clip(max=1)
    assert of["p_holm"].to_numpy() == pytest.approx(steps)
    overall = rows_of(table, level="overall").iloc[0]
    assert overall["p_holm"] == overall["p"]


def test_runs_are_paired_by_size_and_seed_and_those_alone_are_named():
    rng = np.random.default_rng(5)
    accuracies = spread("removed", "125k", 4, 0.6, 0.1, rng) | spread("control", "125k", 5, 0.7, 0.1, rng)
    columns = ["difference", "low", "p"]
    ablations = compared(judged(accuracies), {})
    row = rows_of(ablations.differences, name="overall", over=ALL_SIZES).iloc[0]
    assert row["pairs"] == 4
    assert "control-125k-4" in " ".join(ablations.notes)
    shuffled = dict(sorted(accuracies.items(), key=lambda item: item[0][2] % 3))
    again = rows_of(compared(judged(shuffled), {}).differences, name="overall", over=ALL_SIZES).iloc[0]
    assert again[columns].tolist() == pytest.approx(row[columns].tolist())


def test_one_run_of_each_kind_has_a_difference_without_an_interval():
    study = judged({("removed", "125k", 1): [0.5] * 4, ("control", "125k", 1): [0.6] * 4})
    row = rows_of(compared(study).differences, name="overall", over=ALL_SIZES).iloc[0]
    assert row["difference"] == pytest.approx(-0.1)
    assert np.isnan([row["low"], row["high"], row["p"], row["p_tost"]]).all()
    assert row["note"] == "one run: no interval"


def test_equal_runs_have_limits_of_some_width():
    """Chance in single judgements is in the limits, also where all judgements are alike."""
    study = judged({(kind, "125k", seed): [0.7] * 4 for kind in ("removed", "control") for seed in range(3)})
    row = rows_of(compared(study).differences, name="overall", over=ALL_SIZES).iloc[0]
    assert row["difference"] == 0
    assert row["low"] < 0 < row["high"]


def test_a_study_without_ablations_has_no_effects():
    rng = np.random.default_rng(6)
    assert compare_ablations(judged(spread("full", "125k", 3, 0.6, 0.1, rng)), {}, CONFIG) is None
