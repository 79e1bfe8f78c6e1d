"""Choices and pairs with a context: tables, comparisons of the options, and the benchmarks of BabyLM."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.benchmarks.choices import compared, hardest
from eval.benchmarks.load import load_benchmark
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError

# Rows in the form of BabyLM's files, with sentences of our own.
EWOK = {"Domain": "weather", "Context1": "It rains.", "Context2": "It is dry.", "Target1": "The street is wet."}
EWOK |= {"Target2": "The street is dusty.", "ContextDiff": "antonym"}
BOXES = {"numops": 2, "input_prefix": "Box 0 contains the pen. Box 0 contains ", "example_id": 7}
BOXES |= {"options": ["the pen.", "the cup.", "the bag.", "the hat.", "the key."]}
EMPTY = BOXES | {"options": ["nothing.", "the cup.", "the bag.", "the hat.", "the key."]}
GNU = {"prefix_acceptable": "a gnu", "prefix_unacceptable": "a gun", "property_phrase": "eats grass."}
MORE = {"question": "Who barks?", "answers": ["the dog", "the cat", "the hen"], "right": 0}
COLUMNS = "benchmark.columns={context:question,options:answers,label:right}"


def load(folder, rows, *overrides, name="choices", file="table.jsonl"):
    (folder / file).parent.mkdir(exist_ok=True, parents=True)
    (folder / file).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    config = compose("eval", [f"benchmark={name}", f"benchmark.path={folder}", *overrides]).benchmark
    return load_benchmark(config)


@pytest.mark.parametrize(
    ("name", "file", "row", "paradigm", "phenomenon", "texts"),
    [
        ("ewok", "weather.jsonl", EWOK, "weather", "weather",
         ["It rains. The street is wet.", "It is dry. The street is wet."]),
        ("comps", "comps_wugs.jsonl", GNU, "comps_wugs", "comps_wugs", ["a gnu eats grass.", "a gun eats grass."]),
        ("entity_tracking", "regular.jsonl", BOXES, "regular/2", "regular",
         [BOXES["input_prefix"] + option for option in BOXES["options"]]),
    ],
)  # fmt: skip
def test_items_of_babylm_are_read(name, file, row, paradigm, phenomenon, texts, tmp_path):
    (item,) = load(tmp_path, [row], name=name, file=file).pairs.to_dict("records")
    assert (item["paradigm"], item["phenomenon"], item["gold"], item["ties"]) == (paradigm, phenomenon, 0, "half")
    assert [context + option for context, option in zip(item["contexts"], item["options"], strict=True)] == texts
    assert item["good"] == texts[0]
    assert item["bad"] == " | ".join(item["options"][1:] if name == "entity_tracking" else texts[1:])


def test_choices_with_an_excluded_text_are_left_out(tmp_path):
    table = [EMPTY, BOXES, EMPTY]
    assert load(tmp_path, table, name="entity_tracking").pairs["pair_id"].tolist() == ["0"]
    everything = load(tmp_path, table, "benchmark.exclude=null", name="entity_tracking")
    assert everything.pairs["pair_id"].tolist() == ["0", "1", "2"]
    with pytest.raises(ConfigError, match=r"benchmark\.exclude='nothing'"):
        load(tmp_path, [GNU], "benchmark.exclude=nothing", name="comps")


@pytest.mark.parametrize(("part", "count"), [("parallel", 4), ("nonparallel", 2)])
def test_global_piqa_is_read(part, count, tmp_path):
    solutions = {f"solution{number}": f"try {number}." for number in range(count)}
    row = {"prompt": "To open it,", **solutions, "label": 1, "language": "eng_latn", "example_id": "x"}
    local = []
    (item,) = load(tmp_path, [row], *local, name=f"global_piqa_{part}").pairs.to_dict("records")
    assert (item["pair_id"], item["gold"], item["good"]) == ("x", 1, "To open it, try 1.")
    assert item["options"] == [*solutions.values()]


def test_hanzi_with_unknown_tokens_are_wrong_by_configuration(tmp_path):
    pairs = load(tmp_path, [{"sentence_good": "木在林中", "sentence_bad": "水在林中"}], name="hanzi").pairs
    assert pairs["unk_wrong"].tolist() == [True]


@pytest.mark.parametrize(
    ("label", "overrides", "gold"),
    [
        (2, [], 2), ("1", [], 1), ("c", [], 2), ("B", [], 1), ("the hen", [], 2),
        ("3", ["benchmark.labels=['1','2','3']"], 2), ("second", ["benchmark.labels=[first,second,third]"], 1),
    ],
)  # fmt: skip
def test_labels_are_numbers_letters_texts_or_listed(label, overrides, gold, tmp_path):
    pairs = load(tmp_path, [MORE | {"right": label}], COLUMNS, *overrides).pairs
    assert pairs["gold"].tolist() == [gold]
    assert pairs["good"].tolist() == [f"Who barks? {MORE['answers'][gold]}"]


@pytest.mark.parametrize(
    ("row", "overrides", "error", "message"),
    [
        (MORE | {"right": 3}, [], InputError, r"line 1: the label '3' .*3 options"),
        (MORE | {"right": "1", "answers": ["2", "3", "1"]}, [], InputError, r"the label '1' .*benchmark\.labels"),
        (MORE | {"answers": ["one"]}, [], InputError, r"answers must be a list of two or more options"),
        (MORE | {"answers": "one"}, [], InputError, r"answers must be a list of two or more options.*'one'"),
        (MORE | {"answers": ["one", " ", "three"]}, [], InputError, r"answers is ' ', but must be text"),
        (MORE, ["benchmark.columns.context=[question,question]"], InputError, r"2 contexts but 3 options"),
        (MORE, ["benchmark.columns.good=question"], ConfigError, r"good and bad .* options"),
        (MORE, ["benchmark.labels=[a,A,b]"], ConfigError, r"benchmark\.labels"),
        (MORE, ["benchmark.ties=often"], ConfigError, r"ties=often.*half"),
    ],
)
def test_other_tables_and_values_raise_one_line(row, overrides, error, message, tmp_path):
    with pytest.raises(error, match=message) as raised:
        load(tmp_path, [row], COLUMNS, *overrides)
    assert "\n" not in str(raised.value)


def test_white_space_between_context_and_option_is_not_doubled(tmp_path):
    rows = [MORE | {"question": question} for question in ("Who?", "Who? ", "Who?\n", "", "谁？")]
    contexts = [of[0] for of in load(tmp_path, rows, COLUMNS).pairs["contexts"]]
    assert contexts == ["Who? ", "Who? ", "Who?\n", "", "谁？ "]
    rows = [MORE | {"question": "谁？"}, MORE | {"question": "Who?"}]
    contexts = [of[0] for of in load(tmp_path, rows, COLUMNS, "benchmark.separator=''").pairs["contexts"]]
    assert contexts == ["谁？", "Who?"]


def test_a_given_separator_always_precedes_sentences_and_options(tmp_path):
    """As in lm-evaluation-harness, which adds a space after white space and at the beginning of a sentence, too."""
    rows = [MORE | {"question": question} for question in ("Who?", "Who? ", "")]
    contexts = [of[0] for of in load(tmp_path, rows, COLUMNS, "benchmark.separator=' '").pairs["contexts"]]
    assert contexts == ["Who? ", "Who?  ", " "]
    found = load(tmp_path, [{"good": "A cat.", "bad": "A cats."}], "benchmark.separator=' '", name="local")
    assert found.pairs[["good", "bad"]].to_numpy().tolist() == [[" A cat.", " A cats."]]
    assert not found.notes  # about blanks


@pytest.mark.parametrize("name", ["mubench", "xcomps"])
def test_tasks_of_babylms_multilingual_track_are_read(name, tmp_path):
    rows = {
        "mubench": {"prompt": "Wie blaft?", "choices": ["De kat.", "De hond."], "label": 1},
        "xcomps": {"acceptable_sent": "De hond blaft.", "unacceptable_sent": "De kat blaft."},
    }
    (item,) = load(tmp_path, [rows[name]], "benchmark.language=nl", name=name, file="test.jsonl").pairs.to_dict(
        "records"
    )
    texts = {"mubench": ("Wie blaft? De hond.", "De kat."), "xcomps": ("De hond blaft.", "De kat blaft.")}
    assert (item["good"], item["bad"]) == texts[name]
    assert (item["paradigm"], item["pair_id"]) == ("test", "0")


def test_options_can_be_columns_and_lists_in_csv(tmp_path):
    (tmp_path / "a.csv").write_text('q,one,two,three\nWho?,"a, b",c,\nWho?,a,b,c\n', encoding="utf-8")
    (tmp_path / "b.csv").write_text('q,both\nWho?,"[""a, b"", ""c""]"\n', encoding="utf-8")
    read = [
        load_benchmark(compose("eval", ["benchmark=choices", f"benchmark.path={tmp_path}/{file}",
                                        f"benchmark.columns={{context:q,options:{options},label:null}}"]).benchmark)
        for file, options in (("a.csv", "[one,two,three]"), ("b.csv", "both"))
    ]  # fmt: skip
    assert [*read[0].pairs["options"], *read[1].pairs["options"]] == [["a, b", "c"], ["a", "b", "c"], ["a, b", "c"]]


def test_the_digest_depends_on_contexts_and_options_but_not_on_ties(tmp_path):
    rows = {"": [], "ties": ["benchmark.ties=wrong"], "label": ["benchmark.columns.label=null"]}
    digests = {name: load(tmp_path, [MORE], COLUMNS, *overrides).digest for name, overrides in rows.items()}
    digests["context"] = load(tmp_path, [MORE | {"question": "Who purrs?"}], COLUMNS).digest
    digests["options"] = load(tmp_path, [MORE | {"answers": MORE["answers"][::-1], "right": 2}], COLUMNS).digest
    assert digests[""] == digests["ties"] == digests["label"]
    assert len(set(digests.values())) == 3


def test_own_columns_with_names_of_ours_are_kept(tmp_path):
    row = {"good": "The cat sleeps.", "bad": "The cat sleep.", "options": "x", "gold": 3}
    pairs = load(tmp_path, [row], name="local").pairs
    assert pairs[["item_options", "item_gold"]].to_numpy().tolist() == [["x", "3"]]
    assert pairs["options"].isna().all()


def test_an_option_that_equals_the_right_one_is_reported(tmp_path):
    (note,) = load(tmp_path, [MORE, MORE | {"answers": ["the dog", "the cat", "the dog"]}], COLUMNS).notes
    assert "1 of 2" in note


SCORES = st.lists(st.sampled_from([-3.0, -2.0, -1.0, np.nan]), min_size=2, max_size=5)


@given(st.lists(SCORES, min_size=1, max_size=6), st.data())
def test_the_best_other_option_is_compared_and_ties_with_it_are_counted(items, draw):
    """The right option wins if its score is the only maximum, found here by sorting all scores."""
    golds = [draw.draw(st.integers(0, len(scores) - 1)) for scores in items]
    table = pd.DataFrame({
        "paradigm": "p", "pair_id": [str(number) for number in range(len(items))], "gold": golds,
        "options": [[f"{value} {place}" for place, value in enumerate(scores)] for scores in items],
        "contexts": [["c "] * len(scores) for scores in items], "good": "", "bad": "",
    })  # fmt: skip
    pairs = compared(table)
    assert len(pairs) == sum(len(scores) - 1 for scores in items)
    rows = pairs.assign(template=None, trial=None, rivals=None)
    for side in ("good", "bad"):
        rows[side] = [float(text.split()[0]) for text in rows[side]]
    kept = hardest(rows).set_index("pair_id")
    assert list(kept.index) == list(table["pair_id"])
    for number, (scores, gold) in enumerate(zip(items, golds, strict=True)):
        row = kept.loc[str(number)]
        others = {place: value for place, value in enumerate(scores) if place != gold}
        best = max(np.inf if np.isnan(value) else value for value in others.values())
        places = [place for place, value in others.items() if (np.inf if np.isnan(value) else value) == best]
        assert (row["rival"], row["rivals"]) == (places[0], len(places))
        assert np.array_equal(row["bad"], others[places[0]], equal_nan=True)
        assert np.array_equal(row["good"], scores[gold], equal_nan=True)


def test_pairs_without_a_context_are_compared_as_they_are(tmp_path):
    pairs = load(tmp_path, [{"good": "The cat sleeps.", "bad": "The cat sleep."}], name="local").pairs
    assert compared(pairs) is pairs
