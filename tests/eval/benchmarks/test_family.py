"""The configurations of published benchmarks, with files in their formats and sentences of our own."""

import json

import pytest
import yaml

from eval.benchmarks.load import load_benchmark
from eval.diagnostics.diagnostic import diagnostics
from pairscale.command.compose import FOLDER, compose
from pairscale.errors import InputError

LANGUAGES = {
    "babylm_blimp": "en", "blimp": "en", "blimp_nl": "nl", "blimp_supplement": "en", "choices": None, "climp": "zh",
    "comps": "en", "entity_tracking": "en", "ewok": "en", "generated": "en", "global_piqa_nonparallel": "en",
    "global_piqa_parallel": "en", "hanzi": "zh", "jblimp": "ja",
    "local": None, "mubench": "en", "multiblimp": None, "rublimp": "ru", "sling": "zh", "syntaxgym": "en", "toy": "en",
    "turblimp": "tr", "xcomps": "nl", "zhoblimp": "zh",
}  # fmt: skip


def jsonl(*rows):
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def pair(good, bad, **more):
    return {"sentence_good": good, "sentence_bad": bad} | more


CAT = pair("三只猫睡了。", "三猫只睡了。", field="syntax")
PLURAL = jsonl(CAT | {"phenomenon": "Anaphor", "paradigm": "Plural", "pair_ID": 0})
JAPANESE = {"good_sentence": "猫が寝た。", "bad_sentence": "猫を寝た。", "type": "acceptability",
            "phenomenon": "argument structure", "paradigm": "case marking"}  # fmt: skip
RUBLIMP = "id,source_sentence,target_sentence,source_word,target_word,level,phenomenon,PID,subtype,domain,tree_depth\n"
RUSSIAN = '{},"Кошка, как видно, спит.","Кошка, как видно, спят.",спит,спят,Syntax,Agreement,case,case,w,2\n'
BLIMP_NL = (
    "Number (phenomenon),Phenomenon,Number (paradigm),Paradigm,Item,Grammaticality,Sentence,"
    "Critical word(s),Cue word(s)"
)
DUTCH = (
    '1,Islands,1,{0},{1},Grammatical,"De kat slaapt, zegt men.",slaapt,kat{2}'
    '1,Islands,1,{0},{1},Ungrammatical,"De kat slapen, zegt men.",slapen,kat{2}'
)
TURKISH = (
    "good_sentence;bad_sentence;good_cue;bad_cue;critical_region;phenomenon\n"
    + "Kedi, bugün uyudu.;Kedi, bugün uyudum.;∅;m;uyudu;argument_structure  \n" * 2
)
AGREEMENT = "sen\tverb\tchild_features\twrong_sen\tphenomenon\tlang\tgrammatical_feature\n" + "".join(
    f'"The ""cat"" sleeps."\tv\t{{\'Case\': \'Nom\'}}\t"The ""cat"" sleep."\t{kind}\tLANG\tSG\n'
    for kind in ("SV-#", "SV-#", "SV-P")
)
TURNS = pair("A: Who slept?\nB: The cat.", "A: Who slept?\nB: The hat.")
# Name -> files, and the paradigms, ids, phenomena and good sentences that are read from them.
FILES = {
    "zhoblimp": (
        {"BA_meiba.jsonl": jsonl(*(CAT | {"UID": "BA_meiba", "phenomenon": "BA", "pairID": n} for n in (0, 1)))},
        [("BA_meiba", n, "BA", "三只猫睡了。") for n in "01"],
    ),
    "sling": (
        {
            "Aspect/zai_le.jsonl": jsonl(CAT | {"phenomenon": "Aspect", "paradigm": "zai_le"}),
            "Anaphor/Plural/menself_male.jsonl": PLURAL,
            "Anaphor/Plural/menself_female.jsonl": PLURAL,
            "Anaphor/reflexive_auto/animacy.jsonl": jsonl(CAT | {"Phenomenon": "x", "Paradigm": "animacy_effect"}),
        },
        [
            ("menself_female", "0", "Anaphor", "三只猫睡了。"),
            ("menself_male", "0", "Anaphor", "三只猫睡了。"),
            ("zai_le", "0", "Aspect", "三只猫睡了。"),
        ],
    ),
    "jblimp": (
        {
            "validated_minimal_pairs.jsonl": jsonl(*(JAPANESE | {"ID": n, "phenomenon-2": None} for n in (4, 9))),
            "raw_minimal_pairs.csv": "ID,good_sentence\n4,猫が寝た。\n",
        },
        [("case marking", n, "argument structure", "猫が寝た。") for n in "49"],
    ),
    "rublimp": (
        {"case.csv": RUBLIMP + RUSSIAN.format(7) + RUSSIAN.format(3)},
        [("case", n, "Agreement", "Кошка, как видно, спит.") for n in "73"],
    ),
    "blimp_nl": (
        {
            "Phenomenon01.csv": f"{BLIMP_NL}\n" + DUTCH.format("island", 1, "\n") + DUTCH.format("wh", 2, "\n"),
            # One of the published files has a column without a name, and some end their lines in another way.
            "Phenomenon02.csv": f"{BLIMP_NL},\r\n" + DUTCH.replace("Islands", "Topics").format("island", 1, ",\r\n"),
        },
        [
            (paradigm, n, paradigm.partition("/")[0], "De kat slaapt, zegt men.")
            for paradigm, n in (("Islands/island", "1"), ("Islands/wh", "2"), ("Topics/island", "1"))
        ],
    ),
    "turblimp": (
        {"augmented_transitive.csv": TURKISH, "binding_SOV.csv": "good_sentence,bad_sentence\nİyi.,İyim.\n"},
        [("augmented_transitive", n, "augmented_transitive", "Kedi, bugün uyudu.") for n in "01"],
    ),
    "multiblimp": (
        {f"{lang}/data.tsv": AGREEMENT.replace("LANG", lang) for lang in ("eng", "deu")},
        [
            (f"{lang}/{kind}", n, kind, 'The "cat" sleeps.')
            for lang in ("deu", "eng")
            for kind, n in (("SV-#", "0"), ("SV-#", "1"), ("SV-P", "0"))
        ],
    ),
    "blimp_supplement": (
        {
            "turn_taking.jsonl": jsonl(*(TURNS | {"other": other} for other in (None, "y"))),
            "aux_inversion.jsonl": jsonl(*[TURNS | {"pair_ID": 0, "row": 0, "ambiguous": False}] * 2),
        },
        [(name, n, name, TURNS["sentence_good"]) for name in ("aux_inversion", "turn_taking") for n in "01"],
    ),
}


def load(name, folder, *overrides):
    config = compose("eval", [f"benchmark={name}", f"benchmark.path={folder}", *overrides]).benchmark
    return load_benchmark(config).pairs


@pytest.mark.parametrize("name", FILES)
def test_files_in_the_format_of_a_published_benchmark_are_read(name, tmp_path):
    files, expected = FILES[name]
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8", newline="")
    pairs = load(name, tmp_path)
    columns = pairs[["paradigm", "pair_id", "phenomenon", "good"]]
    assert list(columns.itertuples(index=False, name=None)) == expected
    assert (pairs["good"] != pairs["bad"]).all()


def test_other_files_of_a_published_benchmark_can_be_chosen(tmp_path):
    (tmp_path / "binding_SOV.csv").write_text(FILES["turblimp"][0]["binding_SOV.csv"], encoding="utf-8")
    other = ["benchmark.name=other", "benchmark.files=['binding*.csv']", "benchmark.delimiter=','"]
    assert load("turblimp", tmp_path, *other)["good"].tolist() == ["İyi."]


def test_lines_of_blimp_nl_that_are_no_csv_are_refused(tmp_path):
    broken = DUTCH.replace('"De', '""De').replace('men."', 'men.""').format("island", 3, "\n")
    (tmp_path / "Phenomenon01.csv").write_text(f"{BLIMP_NL}\n{broken}")
    with pytest.raises(InputError, match=r"Phenomenon01\.csv: line 2 .*CSV"):
        load("blimp_nl", tmp_path)


def test_every_benchmark_states_its_language():
    entries = {path.stem: yaml.safe_load(path.read_text()) for path in (FOLDER / "benchmark").glob("*.yaml")}
    assert {entries.pop(name)["language"] for name in [*diagnostics(), "ratings"]} == {"en"}
    assert {name: entry["language"] for name, entry in entries.items()} == LANGUAGES
