"""The configurations of published benchmarks, with files in their formats and sentences of our own."""

import csv
import json

import pytest
import yaml

from eval.benchmarks.load import load_benchmark
from eval.diagnostics.diagnostic import diagnostics
from pairscale.command.compose import FOLDER, compose
from pairscale.errors import InputError

LANGUAGES = {
    "blimp": "en", "blimp_nl": "nl", "blimp_supplement": "en", "climp": "zh", "generated": "en", "jblimp": "ja",
    "local": None, "multiblimp": None, "rublimp": "ru", "sling": "zh", "syntaxgym": "en", "toy": "en",
    "turblimp": "tr", "zhoblimp": "zh",
}  # fmt: skip


def load(name, folder, *overrides):
    return load_benchmark(
        compose("eval", [f"benchmark={name}", f"benchmark.path={folder}", *overrides]).benchmark
    ).pairs


def values_of(pairs, *columns):
    return pairs[["paradigm", "pair_id", *columns]].to_numpy().tolist()


def write_jsonl(file, rows):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


def write_csv(file, header, rows, delimiter=",", end="\n"):
    with file.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
        writer.writerows([header.split(","), *rows])


def test_every_benchmark_states_its_language():
    entries = {path.stem: yaml.safe_load(path.read_text()) for path in (FOLDER / "benchmark").glob("*.yaml")}
    assert {entries.pop(name)["language"] for name in [*diagnostics(), "ratings"]} == {"en"}
    assert {name: entry["language"] for name, entry in entries.items()} == LANGUAGES


def test_zhoblimp_is_read(tmp_path):
    for uid, phenomenon in (("BA_meiba", "BA"), ("passive_agent", "passive")):
        rows = [
            {
                "UID": uid,
                "phenomenon": phenomenon,
                "sentence_good": f"第{n}只猫睡了。",
                "sentence_bad": f"第{n}猫只睡了。",
            }
            for n in range(2)
        ]
        write_jsonl(tmp_path / f"{uid}.jsonl", [row | {"pairID": n} for n, row in enumerate(rows)])
    pairs = load("zhoblimp", tmp_path)
    assert values_of(pairs, "phenomenon") == [
        [uid, n, phenomenon]
        for uid, phenomenon in (("BA_meiba", "BA"), ("passive_agent", "passive"))
        for n in ("0", "1")
    ]
    assert pairs["bad"].tolist()[:2] == ["第0猫只睡了。", "第1猫只睡了。"]


def test_sling_is_read(tmp_path):
    row = {"sentence_good": "三只猫睡了。", "sentence_bad": "三猫只睡了。", "pair_ID": 0, "field": "syntax"}
    for file, paradigm in (
        ("Aspect/zai_le", "zai_le"),
        ("Anaphor/self_male", "self_male"),
        ("Anaphor/Plural/menself_male", "Plural"),
        ("Anaphor/Plural/menself_female", "Plural"),
    ):
        phenomenon = file.partition("/")[0]
        write_jsonl(tmp_path / f"{file}.jsonl", [row | {"phenomenon": phenomenon, "paradigm": paradigm}])
    (tmp_path / "Anaphor" / ".DS_Store").write_bytes(b"\0")
    other = {"Phenomenon": "Reflexive_auto", "Paradigm": "animacy_effect", "pair_ID": "0"}
    write_jsonl(tmp_path / "Anaphor/reflexive_auto/animacy.jsonl", [row | other])
    assert values_of(load("sling", tmp_path), "phenomenon", "field") == [
        ["menself_female", "0", "Anaphor", "syntax"],
        ["menself_male", "0", "Anaphor", "syntax"],
        ["self_male", "0", "Anaphor", "syntax"],
        ["zai_le", "0", "Aspect", "syntax"],
    ]


def test_jblimp_is_read(tmp_path):
    rows = [
        {"ID": 4, "good_sentence": "猫が寝た。", "bad_sentence": "猫を寝た。", "type": "acceptability",
         "phenomenon": "argument structure", "phenomenon-2": second, "paradigm": "case marking"}
        for second in (None, "filler-gap")
    ]  # fmt: skip
    write_jsonl(tmp_path / "validated_minimal_pairs.jsonl", [rows[0], rows[1] | {"ID": 9}])
    (tmp_path / "raw_minimal_pairs.csv").write_text("ID,good_sentence\n4,猫が寝た。\n")
    pairs = load("jblimp", tmp_path)
    assert values_of(pairs, "phenomenon", "good") == [
        ["case marking", n, "argument structure", "猫が寝た。"] for n in ("4", "9")
    ]


RUBLIMP = "id,source_sentence,target_sentence,source_word,target_word,level,phenomenon,PID,subtype,domain,tree_depth"


def test_rublimp_is_read(tmp_path):
    for pid in ("np_agreement_case", "add_new_suffix"):
        annotation = ("спит", "спят", "Syntax", "Agreement", pid, pid, "w", 2)
        rows = [(n, "Кошка, как видно, спит.", "Кошка, как видно, спят.", *annotation) for n in (7, 3)]
        write_csv(tmp_path / f"{pid}.csv", RUBLIMP, rows)
    assert values_of(load("rublimp", tmp_path), "phenomenon", "field", "bad") == [
        [pid, n, "Agreement", "Syntax", "Кошка, как видно, спят."]
        for pid in ("add_new_suffix", "np_agreement_case")
        for n in ("7", "3")
    ]


BLIMP_NL = (
    "Number (phenomenon),Phenomenon,Number (paradigm),Paradigm,Item,Grammaticality,Sentence,"
    "Critical word(s),Cue word(s)"
)


def dutch(phenomenon, paradigm, item):
    shared = (1, phenomenon, 1, paradigm, item)
    return [
        (*shared, "Grammatical", "De kat slaapt, zegt men.", "slaapt", "kat"),
        (*shared, "Ungrammatical", "De kat slapen, zegt men.", "slapen", "kat"),
    ]


def test_blimp_nl_is_read(tmp_path):
    write_csv(tmp_path / "Phenomenon01.csv", BLIMP_NL, [*dutch("Islands", "island", 1), *dutch("Islands", "wh", 2)])
    # One of the published files has a column without a name, and some end their lines in another way.
    rows = [(*row, "") for row in dutch("Topicalization", "island", 1)]
    write_csv(tmp_path / "Phenomenon02.csv", BLIMP_NL + ",", rows, end="\r\n")
    assert values_of(load("blimp_nl", tmp_path), "phenomenon", "good", "bad") == [
        [paradigm, n, paradigm.partition("/")[0], "De kat slaapt, zegt men.", "De kat slapen, zegt men."]
        for paradigm, n in (("Islands/island", "1"), ("Islands/wh", "2"), ("Topicalization/island", "1"))
    ]
    broken = '1,Islands,1,island,{},{},""De kat {}, zegt men."",a,b\n'
    for label, verb in (("Grammatical", "slaapt"), ("Ungrammatical", "slapen")):
        with (tmp_path / "Phenomenon01.csv").open("a") as text:
            text.write(broken.format(3, label, verb))
    with pytest.raises(InputError, match=r"Phenomenon01\.csv: line 6: not CSV"):
        load("blimp_nl", tmp_path)


def test_turblimp_is_read(tmp_path):
    header = "good_sentence,bad_sentence,good_cue,bad_cue,critical_region,phenomenon"
    for name in ("argument_structure_transitive", "argument_structure_ditransitive"):
        rows = [("Kedi, bugün uyudu.", "Kedi, bugün uyudum.", "∅", "m", "uyudu", "argument_structure  ")] * 2
        write_csv(tmp_path / f"augmented_{name}.csv", header, rows, delimiter=";")
    assert values_of(load("turblimp", tmp_path), "phenomenon", "good") == [
        [f"augmented_argument_structure_{kind}", n, f"augmented_argument_structure_{kind}", "Kedi, bugün uyudu."]
        for kind in ("ditransitive", "transitive")
        for n in ("0", "1")
    ]
    write_csv(tmp_path / "binding_SOV.csv", header, [("İyi.", "İyim.", "", "", "", "binding")])
    other = ["benchmark.name=other", "benchmark.files=['binding*.csv']", "benchmark.delimiter=','"]
    assert values_of(load("turblimp", tmp_path, *other)) == [["binding_SOV", "0"]]


def test_multiblimp_is_read(tmp_path):
    header = "sen,verb,child_features,wrong_sen,phenomenon,lang,grammatical_feature"
    for lang, good, bad in (
        ("eng", 'The "cat" sleeps.', 'The "cat" sleep.'),
        ("deu", "Die Katze ruht.", "Die Katze ruhen."),
    ):
        (tmp_path / lang).mkdir()
        rows = [
            (good, "v", "{'Case': 'Nom', 'Person': '3'}", bad, kind, lang, "SG") for kind in ("SV-#", "SV-#", "SV-P")
        ]
        write_csv(tmp_path / lang / "data.tsv", header, rows, delimiter="\t")
    pairs = load("multiblimp", tmp_path)
    assert values_of(pairs, "phenomenon") == [
        [f"{lang}/{kind}", n, kind]
        for lang in ("deu", "eng")
        for kind, n in (("SV-#", "0"), ("SV-#", "1"), ("SV-P", "0"))
    ]
    one = load("multiblimp", tmp_path, "benchmark.files=[eng/data.tsv]")
    assert one["good"].unique().tolist() == ['The "cat" sleeps.']


def test_blimp_supplement_is_read(tmp_path):
    turns = {"sentence_good": "A: Who slept?\nB: The cat.", "sentence_bad": "A: Who slept?\nB: The hat."}
    write_jsonl(tmp_path / "turn_taking.jsonl", [{"quad": "x", "other": other, **turns} for other in (None, "y")])
    row = {"pair_ID": 0, "row": 0, "ambiguous": False, "template": "t"}
    write_jsonl(tmp_path / "subject_aux_inversion.jsonl", [row | turns, row | turns])
    pairs = load("blimp_supplement", tmp_path)
    assert values_of(pairs, "phenomenon") == [
        [name, n, name] for name in ("subject_aux_inversion", "turn_taking") for n in ("0", "1")
    ]
    assert set(pairs["good"]) == {"A: Who slept?\nB: The cat."}
