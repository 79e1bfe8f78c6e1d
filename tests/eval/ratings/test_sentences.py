"""Tables of rated sentences: layouts, and one clear line for cells and columns that do not fit."""

import json

import numpy as np
import pytest

from eval.benchmarks.config import RatingsConfig
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


def test_labels_are_measured_beside_constant_ratings(write):
    path = write("sentence,rating,label\n" + "".join(f"s{n} x,3,{n % 2}\n" for n in range(12)))
    rows = load_ratings(config(path, "benchmark.columns={sentence:sentence,rating:rating,label:label}")).rows
    scores = np.arange(12.0) + 10 * rows["label"].to_numpy(dtype=float)  # good ones above most bad ones
    counts = dict.fromkeys(("tokens", "words", "chars"), 3) | {"unk": 0, "unseen": 0, "unigram_lp": -9.0}
    found = measures(rows.assign(lp=scores, **counts))
    assert set(found["level"]) == {"AUC", "accuracy", "MCC"}
    assert not found["accuracy"].isna().any()


def test_a_sentence_or_a_label_per_row(write):
    path = write('sentence,rating,extra\n"The cat, which sleeps.",3.5,x\nCat the.,-1,y\n')
    ratings = load_ratings(config(path))
    assert ratings.rows["sentence"].tolist() == ["The cat, which sleeps.", "Cat the."]
    assert ratings.rows["rating"].tolist() == [3.5, -1]
    assert ratings.rows[["label", "pair"]].isna().all(axis=None)
    other = write('sentence,rating\n"The cat, which sleeps.",3.5\nCat the.,-2\n', "other.csv")
    assert load_ratings(config(other)).digest != ratings.digest
    cola = write("gj04\t1\t\tOur friends won't.\ngj04\t0\t*\tOur friend's won't.\n", "dev.tsv")
    columns = "benchmark.columns={sentence:'3',rating:null,label:'1'}"
    rows = load_ratings(config(cola, "benchmark.header=false", columns)).rows
    assert rows["label"].tolist() == [True, False]
    assert rows["rating"].isna().all()


LABELS = "benchmark.columns={rating:null,label:ok"


@pytest.mark.parametrize(
    ("text", "override", "message"),
    [
        ("sentence,rating\nA cat.,good\n", None, r"mine\.csv: line 2: rating .*good"),
        ("sentence,rating\nA cat.,nan\n", None, r"line 2: rating .*nan"),
        ("sentence,rating\n,1\n", None, r"line 2: sentence"),
        ("text,rating\nA cat.,1\n", None, r"sentence.*text, rating"),
        ("sentence,ok\nA cat.,maybe\n", LABELS + "}", r"line 2: .*maybe.*benchmark\.labels"),
        ("sentence,ok,id\nA cat.,1,a\nCat a.,1,a\n", LABELS + ",pair_id:id}", r"pair .*a"),
        ("sentence,rating\nA cat.,1\n", "benchmark.name=mine", r"benchmark\.name=mine"),
        ("sentence,rating\nA cat.,1\n", "scoring.snapshots=true", r"scoring\.snapshots=true .* benchmark=ratings"),
        *(
            ("sentence,rating\nA cat.,1\n", f"benchmark.columns.{value}", r"benchmark\.columns")
            for value in ("rating=null", "pair_id=id", "good=g", "good_rating=g", "rating=sentence", "paradigm=p")
        ),
    ],
)
def test_bad_cells_and_settings_are_named(write, text, override, message):
    with pytest.raises((ConfigError, InputError), match=message):
        load_ratings(config(write(text), *([override] if override else [])))
