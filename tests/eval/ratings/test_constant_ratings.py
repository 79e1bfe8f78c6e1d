"""Ratings that are all the same: one sentence, and no measure of them."""

import numpy as np
import pytest

from eval.ratings.measures import measures
from eval.ratings.sentences import load_ratings
from eval.run import check_benchmark
from pairscale.command.compose import compose
from pairscale.errors import InputError

LABELLED = "benchmark.columns={sentence:sentence,rating:rating,label:label}"


def configured(folder, text, *overrides):
    (folder / "mine.csv").write_text(text)
    return compose("eval", ["corpus=toy", "benchmark=ratings", f"benchmark.path={folder}/mine.csv", *overrides])


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        ("sentence,rating\na b,3\nc d,3\ne f,3\ng h,3\n", ()),
        ("sentence,rating,label\na b,3,1\nc d,3,1\ne f,3,1\n", (LABELLED,)),
        (
            "sentence,label\na b,1\nc d,1\ne f,1\n",
            ("benchmark.columns={sentence:sentence,label:label,rating:null}",),
        ),
        ("sentence,rating\na b,3\nc d,4\n", ()),
    ],
)
def test_what_nothing_can_agree_with_is_refused_before_a_model_is_loaded(tmp_path, text, overrides):
    with pytest.raises(InputError, match="benchmark=ratings: agreement needs"):
        check_benchmark(configured(tmp_path, text, *overrides))


def test_labels_are_measured_beside_constant_ratings(tmp_path):
    text = "sentence,rating,label\n" + "".join(f"s{n} x,3,{n % 2}\n" for n in range(12))
    config = configured(tmp_path, text, LABELLED)
    check_benchmark(config)
    ratings = load_ratings(config.benchmark)
    scores = np.arange(12.0) + 10 * ratings.rows["label"].to_numpy(dtype=float)  # good ones above most bad ones
    counts = dict.fromkeys(("tokens", "words", "chars"), 3) | {"unk": 0, "unseen": 0, "unigram_lp": -9.0}
    found = measures(ratings.rows.assign(lp=scores, **counts))
    assert set(found["level"]) == {"AUC", "accuracy", "MCC"}
    assert not found["accuracy"].isna().any()
    good, bad = scores[ratings.rows["label"] == True], scores[ratings.rows["label"] == False]  # noqa: E712
    wins = np.mean([(one > other) + (one == other) / 2 for one in good for other in bad])
    assert found.set_index(["name", "level"]).at[("lp", "AUC"), "accuracy"] == pytest.approx(wins)
