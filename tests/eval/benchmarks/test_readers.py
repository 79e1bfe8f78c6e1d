"""Pairs in tables of any format: all give the same pairs, and each bad file raises a one-line error."""

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from eval.benchmarks.load import load_benchmark
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError

COMPRESS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}


def own_benchmark(path, columns=None, **values):
    return BenchmarkConfig(name="own", path=str(path), columns=ColumnsConfig(**columns or {}), **values)


def load(path, columns=None, **values):
    return load_benchmark(own_benchmark(path, columns, **values)).pairs


def separated(rows, delimiter, end="\n"):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    return text.getvalue().encode()


def parquet(rows):
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


WRITERS = {
    "csv": lambda rows: separated(rows, ","),
    "tsv": lambda rows: separated(rows, "\t", "\r\n"),
    "jsonl": lambda rows: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(),
    "parquet": parquet,
}

# No carriage return, a line end in some CSV files, and no byte order mark.
TEXT = (
    st.text(st.characters(codec="utf-8", exclude_characters="\r\0\ufeff"), min_size=1, max_size=20)
    .map(str.strip)
    .filter(bool)
)
NAME = st.text("abc_-/ é中", min_size=1, max_size=6).map(str.strip).filter(bool)


def of_one_phenomenon(rows):
    """Return the rows with one phenomenon for each paradigm, the first."""
    phenomena = {}
    return [(*row[:3], phenomena.setdefault(row[2], row[3]), row[4]) for row in rows]


ROWS = st.lists(st.tuples(TEXT, TEXT, NAME, NAME, NAME | st.just("")), min_size=1, max_size=6).map(of_one_phenomenon)


@settings(max_examples=50)
@given(ROWS, st.sampled_from(sorted(WRITERS)), st.sampled_from(sorted(COMPRESS)), st.booleans())
def test_pairs_are_read_from_every_format_and_compression(rows, kind, ending, reverse):
    names = ("sentence_good", "sentence_bad", "UID", "phenomenon", "field")
    tables = [{**dict(zip(names, row, strict=True)), "pair_id": index} for index, row in enumerate(rows)]
    if reverse:
        tables = [dict(reversed(row.items())) for row in tables]
    ending = "" if kind == "parquet" else ending
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"file.{kind}{ending}"
        file.write_bytes(COMPRESS[ending](WRITERS[kind](tables)))
        pairs = load(file)
    expected = sorted(
        ((uid, str(n), good, bad, f) for n, (good, bad, uid, f, _) in enumerate(rows)), key=lambda row: row[0]
    )
    assert pairs[["paradigm", "pair_id", "good", "bad", "phenomenon"]].to_numpy().tolist() == [
        list(r) for r in expected
    ]
    fields = {str(n): field or None for n, (*_, field) in enumerate(rows)}
    assert pairs.set_index("pair_id")["field"].replace({float("nan"): None}).to_dict() == fields


@settings(max_examples=50)
@given(ROWS, st.sampled_from(sorted(WRITERS)), st.booleans(), st.randoms())
def test_labelled_sentences_are_joined_to_pairs(rows, kind, alternating, rng):
    labels = ("yes", "no")
    sentences = [
        {"text": text, "ok": label, "set": paradigm, "kind": phenomenon}
        | ({} if alternating else {"pair_id": f"{index}x"})
        for index, (good, bad, paradigm, phenomenon, _) in enumerate(rows)
        for text, label in zip((good, bad), labels, strict=True)
    ]
    if not alternating:
        rng.shuffle(sentences)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"file.{kind}"
        file.write_bytes(WRITERS[kind](sentences))
        columns = {"sentence": "text", "label": "ok", "paradigm": "set", "phenomenon": "kind"}
        pairs = load(file, columns, labels=["Yes", "NO"])
    expected = sorted((paradigm, good, bad, kind) for good, bad, paradigm, kind, _ in rows)
    assert sorted(pairs[["paradigm", "good", "bad", "phenomenon"]].itertuples(index=False, name=None)) == expected
    if alternating:
        numbers = pairs.groupby("paradigm")["pair_id"].apply(list)
        assert all(ids == [str(n) for n in range(len(ids))] for ids in numbers)


def test_missing_columns_get_default_values(tmp_path):
    (tmp_path / "b.csv").write_text("good,bad\nB one.,B ones.\nB two.,B twos.\n")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress("\ufeffbad,good\r\nA ones.,A one.\r\n\r\n".encode()))
    (tmp_path / "notes.txt").write_text("not a table")
    (tmp_path / "._b.csv").write_bytes(b"\0\x05")
    pairs = load(tmp_path)
    assert pairs[["paradigm", "phenomenon", "pair_id", "good", "bad"]].to_numpy().tolist() == [
        ["a", "a", "0", "A one.", "A ones."],
        ["b", "b", "0", "B one.", "B ones."],
        ["b", "b", "1", "B two.", "B twos."],
    ]
    assert pairs.drop(columns=["pair_id", "paradigm", "phenomenon", "good", "bad"]).isna().all(axis=None)
    assert load(tmp_path / "b.csv", pairs=1)["good"].tolist() == ["B one."]


def test_columns_can_have_other_names(tmp_path):
    (tmp_path / "a.csv").write_text("ok;no;set;part;paradigm\nA dog.;A dogs.;x;1;wrong\nA cat.;A cats.;y;1;wrong\n")
    columns = {"good": "ok", "bad": "no", "paradigm": ["set", "part"], "phenomenon": "part"}
    pairs = load(tmp_path / "a.csv", columns, delimiter=";")
    assert pairs[["paradigm", "phenomenon", "pair_id"]].to_numpy().tolist() == [["x/1", "1", "0"], ["y/1", "1", "0"]]
    pairs = load(tmp_path / "a.csv", columns | {"paradigm": "", "phenomenon": None}, delimiter=";")
    assert pairs[["paradigm", "phenomenon", "pair_id"]].to_numpy().tolist() == [["a", "a", "0"], ["a", "a", "1"]]


def test_phenomena_and_fields_can_be_renamed(tmp_path):
    (tmp_path / "a.csv").write_text("good,bad,paradigm,field\nA dog.,A dogs.,x,s/t\nA cat.,A cats.,y,s\n")
    pairs = load(tmp_path / "a.csv", rename={"x": "number", "s/t": "s_t"})
    assert pairs[["paradigm", "phenomenon", "field"]].to_numpy().tolist() == [["x", "number", "s_t"], ["y", "y", "s"]]


def test_prefix_fields_determine_the_methods_of_a_pair(tmp_path):
    header = "good,bad,one_prefix_prefix,one_prefix_word_good,one_prefix_word_bad,lexically_identical\n"
    (tmp_path / "a.csv").write_text(
        header + "A dog barks.,A dog bark.,A dog, barks,bark,true\nHe runs.,He ran.,,,,False\n"
    )
    pairs = load(tmp_path / "a.csv")
    assert pairs["one_prefix_method"].tolist() == [True, False]
    assert pairs["two_prefix_method"].isna().all()
    assert pairs["lexically_identical"].tolist() == [True, False]
    assert pairs["one_prefix_word_good"].iat[0] == "barks"
    rows = [
        {"good": "A.", "bad": "B.", "two_prefix_method": True, "two_prefix_word": "c"},
        {"good": "A.", "bad": "B.", "two_prefix_method": False},
    ]
    (tmp_path / "b.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert load(tmp_path / "b.jsonl")["two_prefix_method"].tolist() == [True, False]
    (tmp_path / "a.csv").write_text(header + "A dog barks.,A dog bark.,A dog,barks,,\n")
    assert load(tmp_path / "a.csv")["one_prefix_method"].tolist() == [False]  # a part is missing


def test_climp_can_be_read_as_a_table_of_labelled_sentences(real_data):
    # Of its 16 files 15 have a header, 0 to 3 for phenomenon, paradigm, sentence and label.
    config = compose("eval", [
        "benchmark=local", f"benchmark.path={real_data}/climp", "benchmark.files=['[!b]*.csv',binding*.csv]",
        "benchmark.columns.sentence=2", "benchmark.columns.label=3", "benchmark.columns.phenomenon=0",
        "benchmark.columns.paradigm=1",
    ]).benchmark  # fmt: skip
    climp = load_benchmark(compose("eval", ["benchmark=climp", f"benchmark.path={real_data}/climp"]).benchmark).pairs
    expected = climp[climp["paradigm"] != "ba_construction"].reset_index(drop=True)
    assert load_benchmark(config).pairs.equals(expected)


def test_quotes_can_be_read_as_text(tmp_path):
    (tmp_path / "a.tsv").write_text('good\tbad\n"Go!" he said.\t"Go!" he say.\n')
    with pytest.raises(InputError, match=r"a\.tsv: line 2: not CSV .* benchmark\.quotes=false"):
        load(tmp_path / "a.tsv")
    assert load(tmp_path / "a.tsv", quotes=False)["good"].tolist() == ['"Go!" he said.']


CSV = b"good,bad,n\nA dog.,A dogs.,1\n"
BAD_FILES = {
    "latin-1": ("a.csv", CSV + b"caf\xe9,b,2\n", r"a\.csv:3: not UTF-8"),
    "an open quote": ("a.csv", CSV + b'"A cat,A cats.,2\nB,C,3\n', r"line 3: not CSV .* benchmark\.quotes=false"),
    "after a quoted line end": (
        "a.csv",
        CSV + b'"A\ncat.","A\ncats.",2\nA cow.,A cows.\n',
        r"line 6: 2 cells, must be 3",
    ),
    "too many cells": ("a.csv", CSV + b"A cat, too.,A cats.,2\n", r"line 3: 4 cells, must be 3"),
    "a column twice": ("a.csv", b"good,bad,good\na,b,c\n", r"line 1: two columns named good"),
    "an empty file": ("a.csv", b"", r"a\.csv: holds no rows"),
    "only a header": ("a.csv", b"good,bad\n", r"a\.csv: holds no rows"),
    "only empty lines": ("a.jsonl", b"\n \n", r"a\.jsonl: holds no rows"),
    "another separator": (
        "a.csv",
        b"good;bad\na;b\n",
        r"no column good or .*: good;bad; see also benchmark\.delimiter",
    ),
    "two that may be it": ("a.csv", b"good,bad,sentence_bad\na,b,c\n", r"both bad and sentence_bad may be the bad"),
    "an empty sentence": ("a.csv", CSV + b"A cat., ,2\n", r"line 3: bad is '', must be text"),
    "an empty paradigm": ("a.csv", b"good,bad,paradigm\na,b,\n", r"line 2: paradigm is '', must be text or a whole"),
    "NUL": ("a.csv", CSV + b"A\0 cat.,A cats.,2\n", r"line 3: good is 'A\\x00 cat\.'"),
    "ids twice": ("a.csv", b"good,bad,pair_id\na,b,7\nc,d,7\n", r"line 3: .* two pairs 7"),
    "a flag": ("a.csv", b"good,bad,one_prefix_method\na,b,yes\n", r"one_prefix_method is 'yes', must be true or false"),
    "a broken archive": ("a.csv.gz", gzip.compress(CSV * 99)[:-9], r"a\.csv\.gz: cannot be read to its end"),
    "not JSON": ("a.jsonl", b'{"good": "a", "bad": "b"}\n{"good"\n', r"a\.jsonl: line 2: not JSON"),
    "a JSON list": ("a.jsonl", b'["a", "b"]\n', r"line 1: a JSON list, must be an object"),
    "deep JSON": ("a.jsonl", b"[" * 99_999, r"a\.jsonl: line 1: not JSON"),
    "NaN": ("a.jsonl", b'{"good": "a", "bad": NaN}\n', r"line 1: bad is None, must be text"),
    "half an id": ("a.jsonl", rb'{"good": "a", "bad": "b", "pair_id": "\ud800"}', r"pair_id is '\\ud800'"),
    "an id": ("a.jsonl", b'{"good": "a", "bad": "b", "pair_id": 1.5}', r"pair_id is 1\.5, must be text or a whole n"),
    "a long cell": ("a.jsonl", b'{"good": [%b1], "bad": "b"}' % (b"1," * 99), r"good is \[1, .{60,75}\.\.\., must be"),
    "no Parquet": ("a.parquet", CSV, r"a\.parquet: not a readable Parquet file \(.*\)"),
    "a truncated Parquet": ("a.parquet", parquet([{"good": "a"}])[:-9], r"a\.parquet: not a readable Parquet"),
    "numbers in Parquet": ("a.parquet", parquet([{"good": "a", "bad": 3.0}]), r"row 1: bad is 3\.0, must be text"),
    "no rows of Parquet": (
        "a.parquet",
        parquet([{"good": "a", "bad": "b"}][:1])[:0],
        r"a\.parquet: not a readable Parquet",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_raises_a_one_line_error(tmp_path, case):
    name, content, message = BAD_FILES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        load(tmp_path / name)
    assert "\n" not in str(error.value)
    str(error.value).encode()  # can be printed


def test_parquet_without_rows_raises_an_error(tmp_path):
    pd.DataFrame({"good": [], "bad": []}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: holds no rows"):
        load(tmp_path / "a.parquet")
    pd.DataFrame({"good": ["a", None], "bad": ["b", "c"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: row 2: good is None, must be text"):
        load(tmp_path / "a.parquet")


LABELLED = "text,ok,pair_id,paradigm\nA dog.,1,x,p\nA dogs.,0,x,p\nA cat.,1,y,p\nA cats.,0,y,p\n"
TURNS = LABELLED.replace("pair_id", "n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LABELLED.replace("A dogs.,0", "A dogs.,1"), "line 3: its pair has 2 good and 0 bad sentences"),
        (LABELLED.replace("A cats.,0,y,p\n", ""), "line 4: its pair has 1 good and 0 bad sentences"),
        (LABELLED.replace("A cats.,0,y,p", "A cats.,0,y,q"), "line 4: its pair has 1 good and 0 bad sentences"),
        (LABELLED.replace("A cat.,1", "A cat.,2"), "line 4: label 2, must be 1 or 0"),
        (LABELLED.replace("A cats.", ""), "line 5: text is '', must be text"),
        (TURNS.replace("dogs.,0", "dogs.,1"), "line 3: label 1, must be 1 or 0 by turns"),
        (TURNS.replace("dogs.,0,x,p", "dogs.,0,x,q"), "line 3: label 0, must be 1 or 0 by turns"),
        (TURNS.replace("A cats.,0,y,p\n", ""), "line 4: its pair has 1 good and 0 bad sentences"),
    ],
)
def test_labels_that_do_not_form_pairs_raise_errors(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        load(tmp_path / "a.csv", {"sentence": "text", "label": "ok"})
    (tmp_path / "a.csv").write_text(TURNS)
    assert load(tmp_path / "a.csv", {"sentence": "text", "label": "ok"})["good"].tolist() == ["A dog.", "A cat."]


def test_files_are_chosen_by_patterns_and_unusable_ones_raise_errors(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("b.jsonl", "deep/a.jsonl"):
        (tmp_path / name).write_text('{"good": "a", "bad": "b"}\n')
    assert load(tmp_path)["paradigm"].tolist() == ["b"]
    assert load(tmp_path, files=["**/*.jsonl", "b.*"])["paradigm"].tolist() == ["a", "b"]
    (tmp_path / "c.csv").write_text("good,bad\na,b\n")
    with pytest.raises(ConfigError, match=r"holds \.csv and \.jsonl files; say which by benchmark\.files"):
        load(tmp_path)
    for values, message in (
        ({"files": ["*.tsv"]}, r"folder with \*\.tsv files"),
        ({"files": ["/etc/*"]}, r"benchmark\.files=\['/etc/\*'\]: must be patterns below the folder"),
        ({"files": [""]}, r"benchmark\.files=\[''\]: must be patterns below the folder"),
        ({"subset": "x"}, r"benchmark\.subset: of a data set of the hub, but benchmark\.path=.* is read"),
        ({"columns": {"good": "text"}}, r"no column 'text' \(benchmark\.columns\.good\); there are: good, bad"),
    ):
        with pytest.raises((ConfigError, InputError), match=message):
            load(tmp_path / "deep" if "columns" in values else tmp_path, **values)
    (tmp_path / "a.xlsx").touch()
    for name in ("a.xlsx", "a.parquet.gz"):
        (tmp_path / name).touch()
        with pytest.raises(ConfigError, match=rf"benchmark\.path=.*{name}: must end in \.csv, \.jsonl"):
            load(tmp_path / name)
    with pytest.raises(InputError, match=r"nowhere\.csv: no such file, or folder with tables"):
        load(tmp_path / "nowhere.csv")
    with pytest.raises(ConfigError, match=r"benchmark=own: give benchmark\.path=FOLDER or benchmark\.dataset=NAME"):
        load_benchmark(BenchmarkConfig(name="own"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sentence": "a"}, "give good and bad, or sentence and label"),
        ({"sentence": "a", "label": "b", "good": "c"}, "give good and bad, or sentence and label"),
    ],
)
def test_invalid_columns_raise_errors(columns, message):
    with pytest.raises(ConfigError, match=message):
        ColumnsConfig(**columns)


@pytest.mark.parametrize("values", [{"delimiter": ", "}, {"delimiter": '"'}, {"labels": ["1"]}, {"labels": ["a", "A"]}])
def test_invalid_delimiters_and_labels_raise_errors(values):
    with pytest.raises(ConfigError, match=rf"benchmark\.{next(iter(values))}=.*: must be"):
        own_benchmark("a.csv", **values)


def test_a_data_set_of_the_hub_is_read_or_raises_one_line_errors(monkeypatch):
    rows = {"b": [{"good": "B.", "bad": "Bs."}], "a": [{"good": f"{n}.", "bad": "As."} for n in range(2)]}
    requests = []

    def load_dataset(dataset, subset, split, revision):
        requests.append((dataset, subset, split, revision))
        parts = {"train": rows[subset], "test": rows[subset]}
        return parts[split] if split else {k: v for k, v in parts.items() if k == "train" or subset == "b"}

    monkeypatch.setattr("datasets.get_dataset_config_names", lambda dataset, revision: list(rows))
    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    hub = {"name": "own", "dataset": "some/set", "revision": "v1"}
    pairs = load_benchmark(BenchmarkConfig(**hub, split="test")).pairs
    assert pairs[["paradigm", "pair_id", "good"]].to_numpy().tolist() == [
        ["a", "0", "0."],
        ["a", "1", "1."],
        ["b", "0", "B."],
    ]
    assert requests == [("some/set", subset, "test", "v1") for subset in "ab"]
    assert len(load_benchmark(BenchmarkConfig(**hub, subset="a")).pairs) == 2
    with pytest.raises(ConfigError, match=r"some/set: b: has the splits train, test: give benchmark\.split=NAME"):
        load_benchmark(BenchmarkConfig(**hub))
    rows["a"][1]["bad"] = None
    with pytest.raises(InputError, match=r"some/set: a: row 2: bad is None, must be text"):
        load_benchmark(BenchmarkConfig(**hub, subset="a"))
    rows["a"].clear()
    with pytest.raises(InputError, match=r"some/set: a: holds no rows"):
        load_benchmark(BenchmarkConfig(**hub, subset="a"))

    def broken(dataset, revision):
        raise RuntimeError("Dataset scripts are no longer supported\nmore")

    monkeypatch.setattr("datasets.get_dataset_config_names", broken)
    with pytest.raises(
        InputError, match=r"needs some/set from the Hugging Face hub \(Dataset scripts are no longer supp"
    ) as e:
        load_benchmark(BenchmarkConfig(**hub))
    assert "\n" not in str(e.value)


def test_the_only_subset_of_a_data_set_is_named_after_it(monkeypatch):
    monkeypatch.setattr("datasets.get_dataset_config_names", lambda dataset, revision: ["default"])
    rows = [{"good": "a", "bad": "b"}]
    monkeypatch.setattr("datasets.load_dataset", lambda dataset, subset, split, revision: rows)
    assert load_benchmark(BenchmarkConfig(name="own", dataset="some/set")).pairs["paradigm"].tolist() == ["set"]


def test_tables_larger_than_a_batch_are_read_completely(tmp_path):
    rows = [{"good": f"{n} a.", "bad": f"{n} b."} for n in range(3000)]  # more than a batch of Parquet
    for kind, write in WRITERS.items():
        (tmp_path / f"a.{kind}").write_bytes(write(rows))
    tables = [load(tmp_path / f"a.{kind}") for kind in WRITERS]
    assert tables[0]["good"].tolist() == [row["good"] for row in rows]
    assert all(one.equals(other) for one, other in itertools.pairwise(tables))
