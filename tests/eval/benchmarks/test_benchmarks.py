"""Benchmarks: the pitfalls of the published files, and a one-line error for each kind of broken file."""

import dataclasses
import json

import pytest

from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.load import load_benchmark
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError

PAIR = {
    "sentence_good": "The cats sleep.",
    "sentence_bad": "The cats sleeps.",
    "field": "syntax/semantics",
    "linguistics_term": "s-selection",
    "UID": "simulated",
    "simple_LM_method": True,
    "one_prefix_method": False,
    "two_prefix_method": True,
    "lexically_identical": False,
    "two_prefix_prefix_good": "The cats",
    "two_prefix_prefix_bad": "The cat",
    "two_prefix_word": " sleep",
    "pairID": "0",
}


def blimp(folder, **values):
    published = compose("eval", ["benchmark=blimp"]).benchmark
    return dataclasses.replace(published, path=str(folder), dataset="some/set", **values)


def write_blimp(folder, paradigm, pairs=3, **values):
    rows = [PAIR | {"UID": paradigm, "pairID": str(index), "crucial_item": "x"} | values for index in range(pairs)]
    (folder / f"{paradigm}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_fields_of_blimp_are_read_under_our_names(tmp_path):
    write_blimp(tmp_path, "b", pairs=12)
    write_blimp(tmp_path, "a", linguistics_term="binding", field="syntax_semantics")
    benchmark = load_benchmark(blimp(tmp_path))
    assert benchmark.pairs["paradigm"].tolist() == ["a"] * 3 + ["b"] * 12
    assert benchmark.pairs["pair_id"].tolist()[3:] == [str(n) for n in range(12)]
    assert benchmark.pairs["phenomenon"].unique().tolist() == ["binding", "argument_structure"]
    assert benchmark.pairs["field"].unique().tolist() == ["syntax_semantics"]
    row = benchmark.pairs.iloc[0]
    assert (row["good"], row["bad"], row["two_prefix_word"]) == ("The cats sleep.", "The cats sleeps.", "sleep")
    assert (row["one_prefix_method"], row["two_prefix_method"]) == (False, True)
    assert benchmark.pairs["one_prefix_prefix"].isna().all()


def test_the_digest_depends_only_on_the_sentences(tmp_path):
    folders = [tmp_path / name for name in ("one", "same", "other")]
    for folder in folders:
        folder.mkdir()
        write_blimp(folder, "a")
    write_blimp(folders[1], "a", two_prefix_word="sleep")  # the files of the hub have no prefixes
    write_blimp(folders[2], "a", sentence_bad="The cats slept.")
    one, same, other = (load_benchmark(blimp(folder)).digest for folder in folders)
    assert one == same != other


def test_a_selection_of_paradigms_and_pairs_is_loaded(tmp_path):
    for paradigm in ("principle_A_case_1", "principle_A_case_2", "passive_1"):
        write_blimp(tmp_path, paradigm)
    pairs = load_benchmark(blimp(tmp_path, paradigms=["passive_1", "principle_A_case_1"], pairs=2)).pairs
    expected = [["passive_1", "0"], ["passive_1", "1"], ["principle_A_case_1", "0"], ["principle_A_case_1", "1"]]
    assert pairs[["paradigm", "pair_id"]].to_numpy().tolist() == expected
    with pytest.raises(ConfigError, match=r"principal_A_case_2: .* Did you mean principle_A_case_2"):
        load_benchmark(blimp(tmp_path, paradigms=["principal_A_case_2"]))


def test_missing_files_raise_errors_that_name_a_remedy(tmp_path):
    for path, message in (
        ("None/blimp", r"PAIRSCALE_DATA .* blimp/, or .*benchmark\.path"),
        (tmp_path / "nowhere", r"nowhere: .* no such file.*benchmark\.path=null to read some/set"),
        (tmp_path, r"folder with \*\.jsonl files"),
    ):
        with pytest.raises(InputError, match=message):
            load_benchmark(blimp(path))
    for name, values, message in (
        ("mine", {}, r"benchmark=mine: .* Add benchmark\.path=FOLDER, or benchmark\.dataset=NAME"),
        ("mine", {"form": "glue"}, r"benchmark\.form=glue: .*must be one of climp, generated, pairs, toy"),
        ("blimp", {"dataset": "some/set"}, r"some/set .* Hugging Face hub .* benchmark\.path"),
    ):
        with pytest.raises((ConfigError, InputError), match=message):  # HF_HUB_OFFLINE is set (tests/conftest.py)
            load_benchmark(BenchmarkConfig(name=name, **values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"paradigms": []}, r"benchmark\.paradigms=\[\]: .* null"),
        ({"seed": 2}, r"benchmark\.seed=2: form=pairs doesn't use this key"),
        ({"form": "climp"}, r"benchmark\.dataset=some/set: form=climp doesn't use this key"),
        ({"language": "English"}, r"benchmark\.language=English: .* ISO 639"),
        ({"name": "../blimp"}, r"benchmark\.name=\.\./blimp: .*name of a folder\. Use letters"),
        ({"name": "a+b"}, r"benchmark\.name=a\+b: .*name of a folder\. Use letters"),
    ],
)
def test_invalid_settings_raise_errors(tmp_path, values, message):
    with pytest.raises(ConfigError, match=message):
        blimp(tmp_path, **values)


# Chinese sentences of our own, in the form of CLiMP's files.
CLIMP = ",0,1,2,3\n0,classifier,classifier_adj,我买了一本新书,1\n1,classifier,classifier_adj,我买了一条新书,0\n"
BARE = "我把书看完了\r\n我被书看完了\r\n他把门关上了\r\n他被门关上了"


def climp(folder):
    return compose("eval", ["benchmark=climp", f"benchmark.path={folder}"]).benchmark


def write_climp(folder, text=CLIMP, name="classifier_adj_1000.csv"):
    (folder / name).write_bytes(text.encode())


def test_both_kinds_of_climp_files_are_read(tmp_path):
    write_climp(tmp_path)
    write_climp(tmp_path, BARE, "ba_construction_1000.csv")
    pairs = load_benchmark(climp(tmp_path)).pairs
    assert pairs[["paradigm", "phenomenon", "pair_id"]].to_numpy().tolist() == [
        ["ba_construction", "ba", "0"],
        ["ba_construction", "ba", "1"],
        ["classifier_adj", "classifier", "0"],
    ]
    assert pairs["good"].tolist() == ["我把书看完了", "他把门关上了", "我买了一本新书"]
    assert pairs["bad"].tolist() == ["我被书看完了", "他被门关上了", "我买了一条新书"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CLIMP.replace(",1\n", ",0\n"), r"a\.csv: line 2: .* label 0 .* 1 and 0 in turn"),
        (
            CLIMP.replace("classifier_adj,我买了一条新书", "classifier_adj"),
            r"line 3: this line has 4 cells, but the table has 5 columns",
        ),
        (CLIMP[CLIMP.index("\n") + 1 :], r"a\.csv: .*no column '2'"),
    ],
)
def test_a_broken_climp_file_raises_an_error_that_names_the_line(tmp_path, text, message):
    write_climp(tmp_path, text, "a.csv")
    with pytest.raises(InputError, match=message):
        load_benchmark(climp(tmp_path))


def test_blimp_is_read_as_published(real_data):
    benchmark = load_benchmark(blimp(real_data / "blimp"))
    pairs = benchmark.pairs
    assert (pairs.groupby("paradigm").size() == 1000).all()
    assert (pairs["paradigm"].nunique(), pairs["phenomenon"].nunique()) == (67, 12)
    assert sorted(pairs["field"].unique()) == ["morphology", "semantics", "syntax", "syntax_semantics"]
    alike = pairs[pairs["good"] == pairs["bad"]]
    assert alike.groupby("paradigm").size().to_dict() == {"passive_1": 2, "principle_A_case_2": 5}
    for method, parts in {"one_prefix": ("prefix", "word_good"), "two_prefix": ("prefix_good", "word")}.items():
        flagged = pairs[pairs[f"{method}_method"]]
        assert flagged["paradigm"].nunique() == 20
        prefix, word = (flagged[f"{method}_{part}"] for part in parts)
        starts = [good.startswith(p + " " + w) for good, p, w in zip(flagged["good"], prefix, word, strict=True)]
        assert all(starts)
    # The digest in existing score files: with another one they would be rejected, or every run scored again.
    assert benchmark.digest == "e5e6c96cdb694169bfe084ee83c99e0200acf97f715709245b4cd8d1f4b1bd37"


def test_climp_is_read_as_published(real_data):
    benchmark = load_benchmark(climp(real_data / "climp"))
    assert benchmark.digest == "570d11b0ef8bd51f1be575671a24cd78c58c9af14c2b887f383ea7b5da32e7a9"
    pairs = benchmark.pairs
    assert (pairs.groupby("paradigm").size() == 1000).all()
    assert (pairs["paradigm"].nunique(), pairs["phenomenon"].nunique()) == (16, 9)
    assert (pairs["good"].str.len() == pairs["bad"].str.len()).all()
    assert (pairs["good"] != pairs["bad"]).all()
    assert not pairs["good"].str.contains(r"[\s\r]").any()


def test_the_digest_of_the_toy_benchmark_changes_with_its_version_only():
    config = compose("eval", ["benchmark=toy", "benchmark.seed=2", "benchmark.per_paradigm=7"]).benchmark
    assert load_benchmark(config).digest == "37f010ca64c52a03d4da8a6574190ce3aabf211d0a8d113756da05eeaa7c669c"
