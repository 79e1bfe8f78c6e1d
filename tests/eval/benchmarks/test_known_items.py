"""Notes and errors about pairs: known faulty pairs, pairs under the name of another benchmark, identical sentences."""

import os

import pandas as pd
import pytest

from eval.benchmarks.known_items import faulty_note, faulty_pairs, unpublished_questions_note
from eval.benchmarks.load import load_benchmark
from eval.library import judge
from pairscale.command.compose import compose
from pairscale.errors import InputError
from tests.support.prompted_models import byte_level, scorer

real = pytest.mark.skipif(not os.environ.get("PAIRSCALE_DATA"), reason="needs PAIRSCALE_DATA")


def table(tmp_path, text, name="own.csv", **values):
    (tmp_path / name).write_text(text)
    overrides = [f"benchmark.{key}={value}" for key, value in values.items()]
    return compose("eval", ["benchmark=local", f"benchmark.path={tmp_path / name}", *overrides]).benchmark


@real
def test_the_faulty_pairs_of_blimp_are_those_that_its_sentences_show():
    benchmark = load_benchmark(compose("eval", ["benchmark=blimp"]).benchmark)
    pairs = benchmark.pairs
    phrase = (pairs["good"] + pairs["bad"]).str.contains("out in the open")
    predicate = pairs["good"].str.contains(r"(?:was|is|are|were)(?:n't)? out in the open\.$")  # where it is grammatical
    irregular = pairs["paradigm"] == "irregular_past_participle_verbs"
    expected = {
        "out_in_the_open": phrase & ~predicate,
        "same_sentence": pairs["good"] == pairs["bad"],
        "misspelt": pairs["good"].str.contains("unsuprising"),
        "no_word": pairs["bad"].str.contains(r"\bdishs\b"),
        "past_tense": irregular & pairs["bad"].str.contains(r"\bshrunk\b"),
    }
    listed = faulty_pairs("blimp", pairs).merge(pairs.reset_index(), on=["paradigm", "pair_id"])
    for reason, shown in expected.items():
        assert set(listed.loc[listed["reason"] == reason, "index"]) <= set(pairs.index[shown]), reason
    counts = {"out_in_the_open": 180, "same_sentence": 7, "misspelt": 18, "no_word": 9, "past_tense": 37}
    assert listed["reason"].value_counts().to_dict() == counts
    (note,) = benchmark.notes  # the only note: the seven pairs of one sentence are among the known ones
    assert note.startswith("251 of 67,000 pairs (0.4%) are known to be faulty")


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
    assert note.startswith("benchmark.name=blimp: these differ from the published benchmark: mine")
    columns = ["item", "condition", "context", "candidate", "role", "trial"]
    questions = pd.DataFrame([["1", "original", "He saw a", "dog", "expected", pd.NA]], columns=columns)
    assert "benchmark.name=cprag: these differ from the published benchmark: its questions" in str(
        unpublished_questions_note("cprag", questions)
    )
    assert faulty_note("mine", pd.DataFrame({"paradigm": ["a"], "pair_id": ["1"]})) is None


def test_pairs_of_identical_sentences_are_reported(tmp_path):
    some = "good,bad,paradigm\nA cat sleeps.,A cat  sleeps. ,p\nA cat sleeps.,A cat sleep.,p\nA dog.,A dog.,p\n"
    (note,) = load_benchmark(table(tmp_path, some)).notes
    assert note == "1 of 3 pairs have two equal sentences, so every model ties: p 2."


def test_tables_without_a_header_are_read_as_those_of_clams(tmp_path):
    text = "True\tthe author laughs\nFalse\tthe author laugh\nTrue\tthe pilots smile\nFalse\tthe pilots smiles\n"
    values = {"header": "false", "columns.label": "'0'", "columns.sentence": "'1'", "labels": "['true','false']"}
    pairs = load_benchmark(table(tmp_path, text, "simple_agrmt.txt", **values)).pairs
    assert pairs["good"].tolist() == ["the author laughs", "the pilots smile"]
    assert pairs["bad"].tolist() == ["the author laugh", "the pilots smiles"]
    assert set(pairs["paradigm"]) == {"simple_agrmt"}
    with pytest.raises(InputError, match=r"The columns are True, the author laughs\. .* benchmark\.header"):
        load_benchmark(table(tmp_path, text, "simple_agrmt.txt"))


def test_an_empty_sentence_raises_an_error():
    """Its log-probability would be 0, so it would always win."""
    with pytest.raises(InputError, match=r"pairs: row 1: bad is ' ', but must be text"):
        judge(scorer(byte_level()), [("The cat", "The dog"), ("The cat", " ")])
