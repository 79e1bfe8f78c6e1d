"""Score files: round trips, one-line errors for damaged files, and the accuracies computed from them."""

import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from eval.benchmarks.config import BenchmarkConfig
from eval.config import PolicyConfig, score_label
from eval.published import read_published
from eval.scores.accuracy import accuracies, outcome, outcomes, unk_free
from eval.scores.files import read_items, read_metadata, read_scores, score_path, write_items, write_scores
from eval.scores.schemas import ITEMS, SCORES, ScoreMetadata
from pairscale.errors import RunError
from pairscale.shares import wilson

ROW = {
    "pair_id": "0", "paradigm": "p", "template": None, "trial": None, "good": -1.5, "bad": float("nan"),
    "good_lp": -3.0, "bad_lp": -4.0, "good_tokens": 2, "bad_tokens": 3, "good_words": 2, "bad_words": 2,
    "good_chars": 9, "bad_chars": 8, "good_unk": 0, "bad_unk": 1, "crit_unk": 1, "order": None,
    "rival": None, "rivals": None,
}  # fmt: skip
NAMED = {"name": "blimp", "digest": "äö"}
ABOUT = dict.fromkeys(ScoreMetadata.__required_keys__, "") | {
    "method": "lp", "parameters": {}, "policy": {"context": "none", "unk": "skip"}, "benchmark": NAMED, "model": NAMED,
    "step": None, "sample_words": None,
}  # fmt: skip


def test_written_scores_are_read_back_unchanged(tmp_path):
    path = score_path(tmp_path / "new" / "folder", "lp")
    write_scores(path, pd.DataFrame([ROW]), ABOUT)
    frame, metadata = read_scores(path)
    assert metadata == ABOUT == read_metadata(path)
    assert list(frame) == SCORES.names
    assert frame["good"].tolist() == [-1.5]
    assert np.isnan(frame["bad"]).all()
    assert frame["template"].isna().all()
    assert [file.name for file in path.parent.iterdir()] == ["lp.parquet"]


def test_a_trajectory_has_a_file_per_step(tmp_path):
    assert score_path(tmp_path, "lp", 300).name == "lp@300.parquet"


def test_items_can_have_missing_columns(tmp_path):
    pairs = pd.DataFrame({"pair_id": ["0"], "paradigm": ["p"], "phenomenon": ["f"], "good": ["a"], "bad": ["b"]})
    write_items(tmp_path, pairs.reindex(columns=ITEMS.names), "toy", "d1")
    items, metadata = read_items(tmp_path)
    assert metadata == {"benchmark": {"name": "toy", "digest": "d1"}}
    assert items["field"].isna().all()
    assert items["good"].tolist() == ["a"]


def test_damaged_score_files_raise_one_line_errors(tmp_path):
    path = tmp_path / "lp.parquet"
    with pytest.raises(RunError, match=r"this score file doesn't exist"):
        read_scores(path)
    write_scores(path, pd.DataFrame([ROW]), ABOUT)
    path.write_bytes(path.read_bytes()[:-40])
    for read in (read_scores, read_metadata):
        with pytest.raises(
            RunError, match=r"lp\.parquet: this file is damaged .* Remove this file and score again"
        ) as error:
            read(path)
        assert "\n" not in str(error.value)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(RunError, match=r"not written by pairscale"):
        read_scores(path)
    other_version = pa.table({"a": [1]}).replace_schema_metadata({"pairscale": '{"version": 99}'})
    pq.write_table(other_version, path)
    with pytest.raises(RunError, match=r"version 99, but .* version 1\. Remove this file and score again"):
        read_scores(path)
    pq.write_table(other_version.replace_schema_metadata({"pairscale": json.dumps({"version": 1} | ABOUT)}), path)
    with pytest.raises(RunError, match=r"no column pair_id, "):
        read_scores(path)


def policy(**values):
    usual = {"context": "none", "context_tokens": 32, "score_eos": None, "unk": "score", "precision": "fp32"}
    return PolicyConfig(**usual | values)


def test_each_scoring_policy_has_its_own_folder():
    blimp = BenchmarkConfig(name="blimp")
    assert score_label(blimp, policy()) == "blimp"
    assert score_label(blimp, policy(context="eos", unk="skip")) == "blimp+context-eos-32+unk-skip"
    assert score_label(blimp, policy(score_eos=False, precision="bf16")) == "blimp+score_eos-false+precision-bf16"
    texts = {score_label(blimp, policy(context="text", context_text=text)) for text in ("One.", "Two.")}
    assert len(texts) == 2
    assert score_label(BenchmarkConfig(name="blimp", pairs=10), policy()) == "blimp+pairs-10"
    part = score_label(BenchmarkConfig(name="blimp", paradigms=["b", "a"]), policy())
    assert part == score_label(BenchmarkConfig(name="blimp", paradigms=["a", "b"]), policy()) != "blimp"
    labels = {
        score_label(BenchmarkConfig(name="toy", seed=s, per_paradigm=n), policy()) for s in (1, 2) for n in (5, 9)
    }
    assert labels == {f"toy+seed-{s}+per_paradigm-{n}" for s in (1, 2) for n in (5, 9)}
    hub = BenchmarkConfig(name="mine", dataset="some/set", subset="a b/c")
    assert score_label(hub, policy()) == "mine+subset-a_b_c"


def test_a_tie_is_wrong_by_default():
    good, bad = [2.0, 1.0, 0.0, np.nan], [1.0, 1.0, 1.0, 1.0]
    assert outcome(good, bad).tolist() == [1, 0, 0, 0]
    assert outcome(good, bad, "half").tolist() == [1, 0.5, 0, 0.5]  # a side without a score counts as a tie
    assert outcome(good, bad, "right").tolist() == [1, 1, 0, 1]


@given(st.lists(st.tuples(st.sampled_from([1.0, 2.0, np.nan]), st.sampled_from([1.0, np.nan]), st.integers(1, 4))))
def test_a_tie_of_k_options_counts_as_one_of_k(rows):
    scores = pd.DataFrame(rows, columns=["good", "bad", "rivals"], dtype=float).assign(ties="half")
    expected = [1 if good > bad else 1 / (1 + rivals) for good, bad, rivals in rows]  # good is never below bad here
    assert outcomes(scores).tolist() == pytest.approx(expected)
    assert outcomes(scores.drop(columns="rivals")).tolist() == [1 if good > bad else 0.5 for good, bad, _ in rows]
    assert outcomes(scores, "wrong").tolist() == [float(good > bad) for good, bad, _ in rows]


def test_random_ties_are_drawn_by_seed_and_name():
    names = pd.DataFrame({"paradigm": "p", "pair_id": [str(number) for number in range(4000)]})
    tied = names.assign(good=1.0, bad=1.0, rivals=4, ties="half")
    first, again, other = (outcomes(tied, ties) for ties in ("random", "random:1", "random:2"))
    assert set(first) == {0, 1}
    assert (first == again).all()
    assert (first != other).any()
    assert first.mean() == pytest.approx(0.2, abs=4 * math.sqrt(0.2 * 0.8 / 4000))
    shuffled = tied.sample(frac=1, random_state=1).reset_index()
    assert (outcomes(shuffled, "random") == first[shuffled["index"]]).all()
    assert (outcomes(tied.assign(good=[2.0, 0.0] * 2000), "random") == [1, 0] * 2000).all()


def test_items_with_unknown_words_are_wrong_where_the_benchmark_says_so():
    scores = pd.DataFrame({"good": 2.0, "bad": 1.0, "good_unk": [0, 1, 0], "bad_unk": [0, 0, 2]})
    for strict, expected in ((True, [1, 0, 0]), (False, [1, 1, 1]), (None, [1, 1, 1])):
        assert outcomes(scores.assign(unk_wrong=strict)).tolist() == expected


@given(st.integers(1, 5000), st.floats(0, 1), st.sampled_from([0.9, 0.95, 0.99]))
def test_intervals_are_those_of_wilson(pairs, share, confidence):
    right = round(share * pairs)
    expected = proportion_confint(right, pairs, alpha=1 - confidence, method="wilson")
    assert wilson(right / pairs, pairs, confidence) == pytest.approx(expected, abs=1e-9)


def test_phenomena_are_unweighted_means_over_paradigms():
    right = {("f", "a"): [1, 1, 1, 0], ("f", "b"): [0, 1], ("g", "c"): [1, 1]}
    rows = [
        {"phenomenon": f, "paradigm": p, "good": float(r), "bad": 0.5, "good_unk": i % 2, "bad_unk": 0}
        for (f, p), outcomes in right.items()
        for i, r in enumerate(outcomes)
    ]
    scores = pd.DataFrame(rows)
    table = accuracies(scores).set_index(["level", "name"])
    assert table.loc[("phenomenon", "f"), "accuracy"] == (0.75 + 0.5) / 2
    assert table.loc[("overall", "overall"), "accuracy"] == (0.75 + 0.5 + 1) / 3
    assert table.loc[("overall", "overall"), ["paradigms", "pairs", "ties"]].tolist() == [3, 8, 0]
    assert table.loc[("paradigm", "a"), ["low", "high"]].tolist() == pytest.approx(wilson(0.75, 4))
    # with half a right and half a wrong pair added, the shares are .7 and .5, their mean .6, and its variance
    # (.7 * .3 / 4 + .5 * .5 / 2) / 4, and that of a share of n trials .6 * .4 / n
    trials = 0.6 * 0.4 / ((0.7 * 0.3 / 4 + 0.5 * 0.5 / 2) / 4)
    assert table.loc[("phenomenon", "f"), ["low", "high"]].tolist() == pytest.approx(wilson(0.625, trials))
    assert accuracies(scores[unk_free(scores)])["pairs"].tolist()[-1] == 4
    assert accuracies(scores[:0]).empty


def test_published_means_agree_with_published_accuracies():
    blimp = read_published("blimp")
    assert blimp.groupby("level").size().to_dict() == {"overall": 5, "paradigm": 335, "phenomenon": 60}
    means = blimp[blimp["level"] == "paradigm"].groupby("model")["accuracy"].mean()
    overall = blimp[blimp["level"] == "overall"].set_index("model")["accuracy"]
    assert means.to_dict() == pytest.approx(overall.to_dict(), abs=1e-5)
    assert overall.round(4).to_dict() == {
        "people": 0.8855, "5-gram": 0.6124, "LSTM": 0.6981, "TXL": 0.6963, "GPT-2": 0.8302,
    }  # fmt: skip
    assert read_published("toy").empty
