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

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from eval.benchmarks.load import load_benchmark
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
CHARACTERS = st.characters(codec="utf-8", exclude_characters="\r\0\ufeff")
TEXT = st.text(CHARACTERS, min_size=1, max_size=20).map(str.strip).filter(bool)
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
    expected = [(uid, str(n), good, bad, kind, field or "-") for n, (good, bad, uid, kind, field) in enumerate(rows)]
    found = pairs[["paradigm", "pair_id", "good", "bad", "phenomenon", "field"]].fillna("-")
    assert [*found.itertuples(index=False, name=None)] == sorted(expected, key=lambda row: row[0])


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


def test_columns_and_values_can_have_other_names(tmp_path):
    (tmp_path / "a.csv").write_text("ok;no;set;part;field\nA dog.;A dogs.;x;1;s/t\nA cat.;A cats.;y;2;s\n")
    columns = {"good": "ok", "bad": "no", "paradigm": ["set", "part"], "phenomenon": "part"}
    pairs = load(tmp_path / "a.csv", columns, delimiter=";", rename={"1": "number", "s/t": "s_t"})
    found = pairs[["paradigm", "phenomenon", "pair_id", "field"]].to_numpy().tolist()
    assert found == [["x/1", "number", "0", "s_t"], ["y/2", "2", "0", "s"]]
    pairs = load(tmp_path / "a.csv", columns | {"paradigm": "", "phenomenon": None}, delimiter=";")
    assert pairs[["paradigm", "phenomenon", "pair_id"]].to_numpy().tolist() == [["a", "a", "0"], ["a", "a", "1"]]


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


def test_quotes_can_be_read_as_text(tmp_path):
    (tmp_path / "a.tsv").write_text('good\tbad\n"Go!" he said.\t"Go!" he say.\n')
    with pytest.raises(InputError, match=r"a\.tsv: line 2 .*CSV.* benchmark\.quotes=false"):
        load(tmp_path / "a.tsv")
    assert load(tmp_path / "a.tsv", quotes=False)["good"].tolist() == ['"Go!" he said.']


CSV = b"good,bad,n\nA dog.,A dogs.,1\n"
# File, content, and what the message must name.
BAD_FILES = [
    ("a.csv", CSV + b"caf\xe9,b,2\n", r"a\.csv:3: .*UTF-8"),
    ("a.csv", CSV + b'"A cat,A cats.,2\nB,C,3\n', r"line 3 .*CSV.* benchmark\.quotes=false"),
    (
        "a.csv",
        CSV + b'"A\ncat.","A\ncats.",2\nA cow.,A cows.\n',
        r"line 6: .* has 2 cells, but the table has 3 columns",
    ),
    ("a.csv", CSV + b"A cat, too.,A cats.,2\n", r"line 3: .* has 4 cells, but the table has 3 columns"),
    ("a.csv", b"good,bad,good\na,b,c\n", r"line 1: two columns are named good"),
    ("a.csv", b"good,bad\n", r"a\.csv: .*no rows"),
    ("a.jsonl", b"\n \n", r"a\.jsonl: .*no rows"),
    ("a.parquet", parquet([{"good": "a"}][:0]), r"a\.parquet: .*no rows"),
    ("a.csv", b"good;bad\na;b\n", r"no column good or .*benchmark\.delimiter"),
    ("a.csv", b"good,bad,sentence_bad\na,b,c\n", r"both bad and sentence_bad"),
    ("a.csv", CSV + b"A cat., ,2\n", r"line 3: bad is ''"),
    ("a.csv", b"good,bad,paradigm\na,b,\n", r"line 2: paradigm is ''"),
    ("a.csv", CSV + b"A\0 cat.,A cats.,2\n", r"line 3: good .* 'A\\x00 cat\.'"),
    ("a.csv", b"good,bad,pair_id\na,b,7\nc,d,7\n", r"line 3: .* id 7"),
    ("a.csv", b"good,bad,paradigm,phenomenon\na,b,p,x\nc,d,p,y\n", r"paradigm p .* phenomena x and y"),
    ("a.csv", b"good,bad,one_prefix_method\na,b,yes\n", r"one_prefix_method is 'yes', but must be true or false"),
    ("a.csv.gz", gzip.compress(CSV * 99)[:-9], r"a\.csv\.gz: .*can't be read to its end"),
    ("a.jsonl", b'{"good": "a", "bad": "b"}\n{"good"\n', r"a\.jsonl: line 2: this line is not valid JSON"),
    ("a.jsonl", b'["a", "b"]\n', r"line 1: .* list"),
    ("a.jsonl", b"[" * 99_999, r"a\.jsonl: line 1: this line is not valid JSON"),
    ("a.jsonl", b'{"good": "a", "bad": NaN}\n', r"line 1: bad is None"),
    ("a.jsonl", rb'{"good": "a", "bad": "b", "pair_id": "\ud800"}', r"pair_id .* '\\ud800'"),
    ("a.jsonl", b'{"good": "a", "bad": "b", "pair_id": 1.5}', r"pair_id is 1\.5"),
    ("a.jsonl", b'{"good": [%b1], "bad": "b"}' % (b"1," * 99), r"good is \[1, .{60,75}\.\.\."),
    ("a.parquet", parquet([{"good": "a"}])[:-9], r"a\.parquet: this file can't be read as Parquet"),
    ("a.parquet", parquet([{"good": "a", "bad": 3.0}]), r"row 1: bad is 3\.0"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_a_bad_file_raises_a_one_line_error(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        load(tmp_path / name)
    assert "\n" not in str(error.value)
    str(error.value).encode()  # can be printed


LABELLED = "text,ok,pair_id,paradigm\nA dog.,1,x,p\nA dogs.,0,x,p\nA cat.,1,y,p\nA cats.,0,y,p\n"
TURNS = LABELLED.replace("pair_id", "n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LABELLED.replace("A dogs.,0", "A dogs.,1"), "line 3: .* 2 good and 0 bad sentences"),
        (LABELLED.replace("A cats.,0,y,p", "A cats.,0,y,q"), "line 4: .* 1 good and 0 bad sentences"),
        (LABELLED.replace("A cat.,1", "A cat.,2"), "line 4: .* label 2 "),
        (LABELLED.replace("A cats.", ""), "line 5: text is ''"),
        (TURNS.replace("dogs.,0,x,p", "dogs.,0,x,q"), "line 3: .* label 0 .* 1 and 0 in turn"),
        (TURNS.replace("A cats.,0,y,p\n", ""), "line 4: .* 1 good and 0 bad sentences"),
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
    with pytest.raises(ConfigError, match=r"contains \.csv and \.jsonl files\. Choose one kind, .*benchmark\.files"):
        load(tmp_path)
    for values, message in (
        ({"files": ["*.tsv"]}, r"folder with \*\.tsv files"),
        ({"files": ["/etc/*"]}, r"benchmark\.files=\['/etc/\*'\]: .* patterns"),
        ({"files": [""]}, r"benchmark\.files=\[''\]: .* patterns"),
        ({"subset": "x"}, r"benchmark\.subset=x: this setting is for data sets on the hub"),
        ({"files": ["b.*"], "columns": {"good": "text"}}, r"no column 'text', .*benchmark\.columns\.good"),
    ):
        with pytest.raises((ConfigError, InputError), match=message):
            load(tmp_path, **values)
    for name in ("a.xlsx", "a.parquet.gz"):
        (tmp_path / name).touch()
        with pytest.raises(ConfigError, match=rf"benchmark\.path=.*{name}: .* \.csv, \.jsonl"):
            load(tmp_path / name)


@pytest.mark.parametrize("columns", [{"sentence": "a"}, {"sentence": "a", "label": "b", "good": "c"}])
def test_invalid_columns_raise_errors(columns):
    with pytest.raises(ConfigError, match=r"good and bad .* sentence and label"):
        ColumnsConfig(**columns)


@pytest.mark.parametrize("values", [{"delimiter": ", "}, {"delimiter": '"'}, {"labels": ["1"]}, {"labels": ["a", "A"]}])
def test_invalid_delimiters_and_labels_raise_errors(values):
    with pytest.raises(ConfigError, match=rf"benchmark\.{next(iter(values))}=.*: "):
        own_benchmark("a.csv", **values)


def test_a_data_set_of_the_hub_is_read_or_raises_one_line_errors(monkeypatch):
    rows = {"b": [{"good": "B.", "bad": "Bs."}], "a": [{"good": f"{n}.", "bad": "As."} for n in range(2)]}
    requests = []

    def load_dataset(dataset, subset, split, revision):
        requests.append((dataset, subset, split, revision))
        splits = ["train"] if subset == "default" else ["train", "test"]
        return rows[subset] if split else dict.fromkeys(splits, rows[subset])

    monkeypatch.setattr("datasets.get_dataset_config_names", lambda dataset, revision: list(rows))
    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    hub = {"name": "own", "dataset": "some/set", "revision": "v1"}
    pairs = load_benchmark(BenchmarkConfig(**hub, split="test")).pairs
    expected = [["a", "0", "0."], ["a", "1", "1."], ["b", "0", "B."]]
    assert pairs[["paradigm", "pair_id", "good"]].to_numpy().tolist() == expected
    assert requests == [("some/set", subset, "test", "v1") for subset in "ab"]
    with pytest.raises(ConfigError, match=r"some/set: a: .* splits train, test\. Add benchmark\.split=NAME"):
        load_benchmark(BenchmarkConfig(**hub))
    rows["a"][1]["bad"] = None
    with pytest.raises(InputError, match=r"some/set: a: row 2: bad is None"):
        load_benchmark(BenchmarkConfig(**hub, subset="a", split="test"))
    rows |= {"default": rows.pop("b")}  # the only subset of a data set, which is named after it, with one split
    assert load_benchmark(BenchmarkConfig(**hub, subset="default")).pairs["paradigm"].tolist() == ["set"]

    def broken(dataset, revision):
        raise RuntimeError("Dataset scripts are no longer supported\nmore")

    monkeypatch.setattr("datasets.get_dataset_config_names", broken)
    with pytest.raises(InputError, match=r"some/set .* Hugging Face hub .* benchmark\.path") as error:
        load_benchmark(BenchmarkConfig(**hub))
    assert "\n" not in str(error.value)


def test_tables_larger_than_a_batch_are_read_completely(tmp_path):
    rows = [{"good": f"{n} a.", "bad": f"{n} b."} for n in range(3000)]  # more than a batch of Parquet
    for kind, write in WRITERS.items():
        (tmp_path / f"a.{kind}").write_bytes(write(rows))
    tables = [load(tmp_path / f"a.{kind}") for kind in WRITERS]
    assert tables[0]["good"].tolist() == [row["good"] for row in rows]
    assert all(one.equals(other) for one, other in itertools.pairwise(tables))
