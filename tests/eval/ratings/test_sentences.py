"""Tables of rated sentences: layouts, and one clear line for cells and columns that do not fit."""

import json
import re

import numpy as np
import pytest

from eval.ratings.config import RatingsConfig, is_ratings
from eval.ratings.measures import measures
from eval.ratings.sentences import load_ratings
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError

PAIRS = "benchmark.columns={sentence:null,rating:null,good:g,bad:b,good_rating:gr,bad_rating:br}"


def config(path, *overrides) -> RatingsConfig:
    return compose("eval", ["benchmark=ratings", f"benchmark.path={path}", *overrides]).benchmark


@pytest.fixture
def write(tmp_path):
    """A function from text to the path of a file with it."""

    def written(text, name="mine.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return written


def test_a_sentence_a_row(write):
    path = write('sentence,rating,extra\n"The cat, which sleeps.",3.5,x\nCat the.,-1,y\n')
    ratings = load_ratings(config(path))
    assert ratings.rows["sentence"].tolist() == ["The cat, which sleeps.", "Cat the."]
    assert ratings.rows["rating"].tolist() == [3.5, -1]
    assert ratings.rows[["label", "pair"]].isna().all(axis=None)
    other = write('sentence,rating\n"The cat, which sleeps.",3.5\nCat the.,-2\n', "other.csv")
    assert load_ratings(config(other)).digest != ratings.digest


def test_cola_has_labels_and_no_header(write):
    path = write("gj04\t1\t\tOur friends won't.\ngj04\t0\t*\tOur friend's won't.\n", "dev.tsv")
    columns = "benchmark.columns={sentence:'3',rating:null,label:'1'}"
    rows = load_ratings(config(path, "benchmark.header=false", columns)).rows
    assert rows["label"].tolist() == [True, False]
    assert np.isnan(rows["rating"]).all()


def test_pairs_side_by_side_or_by_id(write):
    beside = write("g,b,gr,br\nA cat sleeps.,A cat sleep.,0.9,-1\nDogs bark.,Dogs barks.,0.5,-0.5\n")
    rows = load_ratings(config(beside, PAIRS)).rows
    assert rows["label"].tolist() == [True, False, True, False]
    assert rows["rating"].tolist() == [0.9, -1, 0.5, -0.5]
    assert rows["pair"].tolist() == ["mine-1", "mine-1", "mine-2", "mine-2"]
    lines = [
        {"sentence": row.sentence, "rating": row.rating, "ok": "yes" if row.label else "no", "id": row.pair}
        for row in rows.itertuples()
    ]
    by_id = write("\n".join(map(json.dumps, lines)) + "\n", "ids.jsonl")
    columns = ["+benchmark.columns.pair_id=id", "benchmark.columns.label=ok", "benchmark.labels=[yes,no]"]
    again = load_ratings(config(by_id, *(column.removeprefix("+") for column in columns))).rows
    assert again.equals(rows)


@pytest.mark.parametrize(
    ("text", "overrides", "words"),
    [
        ("sentence,rating\nA cat.,good\n", [], ["mine.csv", "line 2", "rating", "good"]),
        ("sentence,rating\nA cat.,nan\n", [], ["line 2", "rating", "nan"]),
        ("sentence,rating\n,1\n", [], ["line 2", "sentence"]),
        ("text,rating\nA cat.,1\n", [], ["sentence", "text, rating"]),
        (
            "sentence,ok\nA cat.,maybe\n",
            ["benchmark.columns.rating=null", "benchmark.columns.label=ok"],
            ["line 2", "maybe", "benchmark.labels"],
        ),
        ("sentence,ok,id\nA cat.,1,a\nCat a.,1,a\n", ["benchmark.columns={rating:null,label:ok,pair_id:id}"], ["a"]),
    ],
)
def test_bad_cells_are_named(write, text, overrides, words):
    with pytest.raises(InputError) as raised:
        load_ratings(config(write(text), *overrides))
    assert all(word in str(raised.value) for word in words)


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("benchmark.name=mine", "benchmark.name=mine"),
        *(
            (f"benchmark.columns.{value}", "benchmark.columns")
            for value in (
                "rating=null",
                "pair_id=id",
                "good=g",
                "good_rating=g",
                "rating=sentence",
                "paradigm=p",
            )
        ),
        ("benchmark.pairs=3", "benchmark.pairs"),
        ("benchmark.seed=3", "benchmark.seed=3"),
        ("scoring.snapshots=true", "scoring.snapshots=true with benchmark=ratings"),
    ],
)
def test_other_values_are_refused(override, key):
    with pytest.raises(ConfigError, match=re.escape(key)):
        config("mine.csv", override)


def test_names_of_folders():
    names = ["ratings", "ratings_lau+unk-skip", "blimp", "ratingsx"]
    assert [is_ratings(name) for name in names] == [True, True, False, False]


def test_labels_are_measured_beside_constant_ratings(write):
    path = write("sentence,rating,label\n" + "".join(f"s{n} x,3,{n % 2}\n" for n in range(12)))
    rows = load_ratings(config(path, "benchmark.columns={sentence:sentence,rating:rating,label:label}")).rows
    scores = np.arange(12.0) + 10 * rows["label"].to_numpy(dtype=float)  # good ones above most bad ones
    counts = dict.fromkeys(("tokens", "words", "chars"), 3) | {"unk": 0, "unseen": 0, "unigram_lp": -9.0}
    found = measures(rows.assign(lp=scores, **counts))
    assert set(found["level"]) == {"AUC", "accuracy", "MCC"}
    assert not found["accuracy"].isna().any()
