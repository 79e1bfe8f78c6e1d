"""White space around the cells of tables: removed where no format asks for it, and said."""

import csv

import pandas as pd
import pytest

from eval.benchmarks.config import RatingColumnsConfig, RatingsConfig
from eval.benchmarks.files import file_rows
from eval.benchmarks.load import load_benchmark
from eval.config import SurprisalConfig
from eval.ratings.sentences import load_ratings
from eval.surprisal.texts import read_texts
from pairscale.command.compose import compose
from pairscale.errors import InputError
from pairscale.schema import read_json


def load(path):
    return load_benchmark(own_benchmark(path)).pairs


def own_benchmark(path):
    return compose("eval", ["study=s", "benchmark=local", f"benchmark.path={path}", "benchmark.name=mine"]).benchmark


@pytest.mark.parametrize(("ending", "mark"), [("csv", ","), ("tsv", "\t")])
def test_white_space_around_cells_is_removed_and_counted_once(tmp_path, capfd, ending, mark):
    plain, blank = tmp_path / f"plain.{ending}", tmp_path / f"blank.{ending}"
    plain.write_text("good,bad\nA cat sleeps.,A cat sleep.\n".replace(",", mark))
    blank.write_text("\ufeffgood, bad\n A cat sleeps. , A cat sleep.\n".replace(",", mark), encoding="utf-8")
    expected = load(plain)[["good", "bad"]]
    assert capfd.readouterr().err == ""
    for _ in range(2):
        pd.testing.assert_frame_equal(load(blank)[["good", "bad"]], expected)
    assert " ".join(capfd.readouterr().err.split()).count(" 3 cells") == 1


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_blank_before_a_cell_is_removed_also_before_a_quotation_mark(tmp_path, capfd, quote):
    """The comma in the quoted cell is text; without quotes there is none."""
    bad = "A cat, sleep." if quote else "A cat sleep."
    (tmp_path / "a.csv").write_text(f"good,bad\nA cat sleeps., {quote}{bad}{quote}\n")
    assert load(tmp_path / "a.csv")["bad"].tolist() == [bad]
    assert "blanks around 1 cell was removed" in " ".join(capfd.readouterr().err.split())


def test_a_quoted_cell_is_kept_as_it_is(tmp_path, capfd):
    """Against the csv module of Python alone, which writes and reads these cells."""
    cells = [' "Hi," he said', "The cat ", "\tThe, cat\n sits", '" ', "\u3000猫。\u00a0", '"', "The dog"]
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerows([["good", "bad"], *([cell, str(number)] for number, cell in enumerate(cells))])
    rows = [row.cells for row in file_rows(tmp_path / "a.csv")]
    assert rows == [{"good": cell, "bad": str(number)} for number, cell in enumerate(cells)]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("line", "delimiter", "cells"),
    [
        ('"The cat "s,b', ",", None),  # text behind the quotation mark
        ('""The cat"",b', ",", None),
        ('"The cat,b', ",", None),
        ('"The cat " ,b', ",", ["The cat ", "b"]),
        ("\u3000猫。\u00a0 ,\tb\t", ",", ["\u3000猫。\u00a0", "b"]),  # white space of a script is text
        (' , "a ""b"" "', ",", ["", 'a "b" ']),
        ('a "b" , c "d"', ",", ['a "b"', 'c "d"']),
        ('"a" "b "', " ", ["a", "b "]),
        (" a\t b ", "\t", ["a", "b"]),
    ],
)
def test_blanks_around_cells_that_are_not_quoted_are_removed(tmp_path, line, delimiter, cells):
    (tmp_path / "a.csv").write_text(f"{line}\n", encoding="utf-8")
    rows = file_rows(tmp_path / "a.csv", delimiter, header=False)
    if cells is None:
        with pytest.raises(InputError, match="line 1 is not valid CSV"):
            list(rows)
        return
    assert [list(row.cells.values()) for row in rows] == [cells]


def test_texts_of_json_are_kept_as_they_are_and_their_white_space_is_said(tmp_path):
    """A pair of sentences that only differ in it is no tie."""
    lines = ['{"good": "A cat sleeps.", "bad": " A cat sleep."}', '{"good": "A dog.", "bad": "A dog. "}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    benchmark = load_benchmark(own_benchmark(tmp_path / "a.jsonl"))
    assert benchmark.pairs["bad"].tolist() == [" A cat sleep.", "A dog. "]
    (note,) = benchmark.notes
    assert note.startswith("2 of 4 sentences begin or end with white space")


def test_ratings_and_words_are_read_without_white_space(tmp_path):
    (tmp_path / "r.csv").write_text("\ufeffsentence , rating\n A cat sleeps. , 3\nA dog., 1\n", encoding="utf-8")
    columns = RatingColumnsConfig(sentence="sentence", rating="rating")
    rows = load_ratings(RatingsConfig(name="ratings", path=str(tmp_path / "r.csv"), columns=columns)).rows
    assert rows[["sentence", "rating"]].to_numpy().tolist() == [["A cat sleeps.", 3.0], ["A dog.", 1.0]]
    (tmp_path / "w.csv").write_text("\ufefftext_id, word , zone\n a, The , x y \n", encoding="utf-8")
    words = read_texts(tmp_path / "w.csv", SurprisalConfig())
    assert words.to_dict("records") == [{"text_id": "a", "number": 1, "word": "The", "zone": "x y"}]


def test_json_with_a_byte_order_mark_is_read(tmp_path):
    (tmp_path / "a.json").write_text('\ufeff{"a": 1}', encoding="utf-8")
    assert read_json(tmp_path / "a.json", dict[str, int], InputError, "") == {"a": 1}
