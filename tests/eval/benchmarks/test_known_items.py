"""Notes and errors about pairs: known faulty pairs, pairs under the name of another benchmark, identical sentences."""

import os

import pandas as pd
import pytest

from eval.benchmarks.known_items import REASONS, faulty_note, faulty_pairs, unpublished_questions_note
from eval.benchmarks.load import load_benchmark
from eval.library import judge
from eval.scores.accuracy import accuracies, outcome
from pairscale.command.compose import compose
from pairscale.errors import InputError
from tests.support import ROOT
from tests.support.prompted_models import byte_level, scorer

real = pytest.mark.skipif(not os.environ.get("PAIRSCALE_DATA"), reason="needs PAIRSCALE_DATA")


def table(tmp_path, text, name="own.csv", **values):
    (tmp_path / name).write_text(text)
    overrides = [f"benchmark.{key}={value}" for key, value in values.items()]
    return compose("eval", ["benchmark=local", f"benchmark.path={tmp_path / name}", *overrides]).benchmark


def test_the_list_of_faulty_pairs_has_only_ids():
    root = ROOT / "eval" / "benchmarks"
    faulty = pd.read_csv(root / "known_items.csv", dtype=str)
    assert set(faulty["reason"]) == set(REASONS)
    assert faulty["pair_id"].str.fullmatch(r"\d{1,3}").all()
    assert not faulty.duplicated(["benchmark", "paradigm", "pair_id"]).any()
    published = pd.read_csv(root / "published_pairs.csv", dtype=str)
    assert published["digest"].str.fullmatch("[0-9a-f]{16}").all()


@real
def test_the_list_of_faulty_pairs_matches_blimp():
    """The phrase is in 208 pairs; in 28 of them it is a predicate, where it is grammatical."""
    benchmark = load_benchmark(compose("eval", ["benchmark=blimp"]).benchmark)
    pairs = benchmark.pairs
    same = pairs["good"].str.split() == pairs["bad"].str.split()
    phrase = (pairs["good"] + pairs["bad"]).str.contains("out in the open")
    predicate = phrase & pairs["good"].str.contains(r"(?:was|is|are|were)(?:n't)? out in the open\.$")
    assert (phrase.sum(), predicate.sum(), same.sum()) == (208, 28, 7)
    faulty = faulty_pairs("blimp", pairs).merge(pairs, on=["paradigm", "pair_id"]).set_index("reason")
    assert len(faulty) == len(faulty_pairs("blimp", pairs)) == 251
    assert len(faulty.loc["out_in_the_open"]) == (phrase & ~predicate).sum() == 180
    assert (faulty.loc["same_sentence", "good"] == faulty.loc["same_sentence", "bad"]).all()
    assert faulty.loc["misspelt", "good"].str.contains("unsuprising").all()
    spelt = pairs["bad"].str.contains(r"\bdishs\b")
    assert len(faulty.loc["no_word"]) == spelt.sum() == 9
    assert faulty.loc["no_word", "bad"].str.contains("dishs").all()
    shrunk = (pairs["paradigm"] == "irregular_past_participle_verbs") & pairs["bad"].str.contains(r"\bshrunk\b")
    assert len(faulty.loc["past_tense"]) == shrunk.sum() == 37
    assert faulty.loc["past_tense", "good"].str.contains("shrank").all()
    assert not pairs.duplicated(["paradigm", "good", "bad"]).any()
    assert not pairs["bad"].isin(set(pairs.loc[~same, "good"])).any()  # no pair is another one the wrong way round
    (note,) = benchmark.notes  # the only note: the seven pairs of one sentence are among the known ones
    assert note.startswith(
        "251 of 67,000 pairs (0.4%) are known to be faulty, and counted as published: 180 'out in the open'"
    )


@real
@pytest.mark.parametrize("name", ["climp", "cprag", "role", "neg"])
def test_published_benchmarks_load_without_notes(name):
    from eval.diagnostics.questions import load_questions

    config = compose("eval", [f"benchmark={name}", "method=[]" if name != "climp" else "method=[lp]"]).benchmark
    assert (load_benchmark(config) if name == "climp" else load_questions(config)).notes == ()


def test_own_pairs_under_the_name_of_a_published_benchmark_are_reported(tmp_path):
    text = "good,bad,paradigm,pair_id\nA cat sleeps.,A cat sleep.,mine,0\n"
    assert load_benchmark(table(tmp_path, text, form="pairs")).notes == ()
    named = table(tmp_path, text, form="pairs")
    named.name = "blimp"
    (note,) = load_benchmark(named).notes
    assert note.startswith("benchmark.name=blimp: not as published: mine")
    columns = ["item", "condition", "context", "candidate", "role", "trial"]
    questions = pd.DataFrame([["1", "original", "He saw a", "dog", "expected", pd.NA]], columns=columns)
    assert "benchmark.name=cprag: not as published: its questions" in str(
        unpublished_questions_note("cprag", questions)
    )
    assert faulty_note("mine", pd.DataFrame({"paradigm": ["a"], "pair_id": ["1"]})) is None


def test_pairs_of_identical_sentences_are_reported(tmp_path):
    some = "good,bad,paradigm\nA cat sleeps.,A cat  sleeps. ,p\nA cat sleeps.,A cat sleep.,p\nA dog.,A dog.,p\n"
    (note,) = load_benchmark(table(tmp_path, some)).notes
    assert note == "1 of 3 pairs are one sentence twice, so every model ties: p 2"


def test_a_paradigm_in_two_phenomena_raises_an_error(tmp_path):
    text = "good,bad,paradigm,phenomenon\nA cat sleeps.,A cat sleep.,p,x\nA dog sleeps.,A dog sleep.,p,y\n"
    with pytest.raises(InputError, match=r"paradigm p is in the phenomena x and y: a paradigm belongs to one"):
        load_benchmark(table(tmp_path, text))


def test_tables_without_a_header_are_read_as_those_of_clams(tmp_path):
    text = "True\tthe author laughs\nFalse\tthe author laugh\nTrue\tthe pilots smile\nFalse\tthe pilots smiles\n"
    values = {"header": "false", "columns.label": "'0'", "columns.sentence": "'1'", "labels": "['true','false']"}
    pairs = load_benchmark(table(tmp_path, text, "simple_agrmt.txt", **values)).pairs
    assert pairs["good"].tolist() == ["the author laughs", "the pilots smile"]
    assert pairs["bad"].tolist() == ["the author laugh", "the pilots smiles"]
    assert set(pairs["paradigm"]) == {"simple_agrmt"}
    with pytest.raises(InputError, match=r"there are: True, the author laughs; .* benchmark\.header"):
        load_benchmark(table(tmp_path, text, "simple_agrmt.txt"))


def test_an_empty_sentence_raises_an_error():
    """Its log-probability would be 0, so it would always win."""
    with pytest.raises(InputError, match=r"pairs: row 1: bad is ' ', must be text"):
        judge(scorer(byte_level()), [("The cat", "The dog"), ("The cat", " ")])


def test_a_side_without_a_score_is_a_tie():
    nan = float("nan")
    assert outcome([nan, nan, 1.0], [nan, 1.0, nan], "half").tolist() == [0.5, 0.5, 0.5]
    scores = pd.DataFrame({"paradigm": "p", "phenomenon": "x", "good": [nan, 2.0], "bad": [nan, 1.0]})
    overall = accuracies(scores.assign(template=None, trial=None)).iloc[-1]
    assert (overall["ties"], overall["accuracy"]) == (1, 0.5)
