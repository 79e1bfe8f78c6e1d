"""Forms: pairs are distributed evenly, forms are reproducible, texts can be replaced."""

from collections import Counter as Tally

import pandas as pd
import pytest

from eval.benchmarks.load import Benchmark
from eval.questionnaire.forms import texts_of
from eval.questionnaire.page import write_page
from pairscale.errors import ConfigError, InputError
from tests.support.questionnaires import config, forms_of


def large(paradigms=7, pairs=20):
    rows = [
        {"pair_id": str(pair), "paradigm": f"p{k}", "phenomenon": f"f{k % 2}", "good": f"g {k} {pair}", "bad": f"b {k}"}
        for k in range(paradigms)
        for pair in range(pairs)
    ]
    return Benchmark("local", pd.DataFrame(rows), "ab" * 32)


def test_pairs_are_distributed_evenly_over_forms():
    forms = forms_of(large(), "questionnaire.per_paradigm=6", "questionnaire.pairs=10", "questionnaire.raters=3")
    assert len(forms) == 15  # 42 pairs, three times, on forms of ten at most
    assert {len(form.pairs) for form in forms} == {8, 9}
    on = Tally(key for form in forms for key in zip(form.pairs["paradigm"], form.pairs["pair_id"], strict=True))
    assert len(on) == 42
    assert set(on.values()) == {3}
    for form in forms:
        assert set(form.pairs["paradigm"].value_counts()) <= {1, 2}  # six over five forms
        assert len({check.good for check in form.checks}) == 3
    rounds = [{frozenset(form.pairs.index) for form in forms[at : at + 5]} for at in (0, 5, 10)]
    assert not rounds[0] & rounds[1]  # grouped differently
    assert len({form.digest for form in forms}) == 15


def test_forms_depend_on_the_seed():
    def digests(*more):
        return [form.digest for form in forms_of(large(), "questionnaire.pairs=20", *more)]

    assert digests() == digests()
    assert not set(digests()) & set(digests("questionnaire.seed=2"))


def test_a_form_does_not_reveal_which_sentence_is_good(tmp_path):
    benchmark = large(paradigms=1, pairs=5)
    first, second = benchmark.pairs, benchmark.pairs.rename(columns={"good": "bad", "bad": "good"})
    pages = []
    for number, pairs in enumerate((first, second)):
        form = forms_of(Benchmark("local", pairs, "ab" * 32))[0]
        write_page(tmp_path / f"{number}.html", form, benchmark, texts_of(config(), "en")["en"], "en", "en")
        pages.append((tmp_path / f"{number}.html").read_text())
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("template", "shown"), [("G {}.", "Her b"), ("g {} .", "her b"), ("g {}", "her b"), ("G {}", "Her b")]
)
def test_attention_checks_are_written_as_the_pairs_are(template, shown):
    rows = [
        {"pair_id": str(n), "paradigm": "p", "phenomenon": "f", "good": template.format(n), "bad": "b"}
        for n in range(9)
    ]
    (form,) = forms_of(Benchmark("local", pd.DataFrame(rows), "ab" * 32), "questionnaire.checks=6")
    checks = [sentence for check in form.checks for sentence in (check.good, check.bad)]
    assert {sentence.endswith(".") for sentence in checks} == {template.endswith(".")}
    assert next(sentence for sentence in checks if "brother bought a" in sentence).startswith(shown)
    assert form.minutes == 2  # 15 questions of 8 seconds


def test_attention_checks_have_the_words_of_their_good_sentence():
    for texts in config().by_language.values():
        for check in texts.checks:
            good, bad = (sentence.strip(".。") for sentence in (check.good, check.bad))
            split = str.split if " " in good else list
            assert sorted(split(good)) == sorted(split(bad))
            assert good != bad


def test_each_language_has_its_texts(tmp_path):
    assert list(texts_of(config("questionnaire.languages=[zh,en]"), "en")) == ["zh", "en"]
    (tmp_path / "zh.yaml").write_text("title: a")
    (tmp_path / "en.yaml").write_text("title: b")
    both = texts_of(config("questionnaire.languages=[zh,en]", f"questionnaire.texts={tmp_path}"), None)
    assert {language: (texts.title, texts.name) for language, texts in both.items()} == {
        "zh": ("a", "中文"), "en": ("b", "English"),
    }  # fmt: skip
    one = f"questionnaire.texts={tmp_path}/zh.yaml"
    with pytest.raises(ConfigError, match=r"must be a folder with a file a language: zh\.yaml, en\.yaml"):
        texts_of(config("questionnaire.languages=[zh,en]", one), None)
    with pytest.raises(ConfigError, match="must name each language once"):
        config("questionnaire.languages=[en,en]")
    with pytest.raises(ConfigError, match=r"questionnaire\.languages=\.\./x"):
        config("questionnaire.languages=[../x]")


def test_texts_can_be_replaced_by_a_file_of_the_user(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text('consent: "Ethics board 7"\nintroduction: ["One.", "Two."]\n')
    texts = texts_of(config(f"questionnaire.texts={file}"), "zh")["zh"]
    assert (texts.consent, texts.introduction, texts.start) == ("Ethics board 7", ["One.", "Two."], "开始")
    for content, message in (
        ("consnt: a", "has consnt; must be texts under some of name, title"),
        ("consent: yes", "$.consent: expected str, got bool; put in quotes"),
        ("thanks: a", "$.thanks: expected array, got str"),
        ("checks: [{good: a}]", "checks must be a list, each with the texts good and bad"),
        ("[", "not YAML"),
    ):
        file.write_text(content)
        with pytest.raises(InputError) as caught:
            texts_of(config(f"questionnaire.texts={file}"), "en")
        assert message in str(caught.value)
    file.write_text("consent: a")
    with pytest.raises(InputError, match=r"\$: without name, .*; there are no texts of the language to add them"):
        texts_of(config(f"questionnaire.texts={file}"), "ja")
    with pytest.raises(ConfigError, match=r"language ja .*; available: en, zh; give one of these"):
        texts_of(config(), "ja")
    assert list(texts_of(config("questionnaire.languages=[en]"), "ja")) == ["en"]
    with pytest.raises(ConfigError, match="the texts hold 6 attention checks"):
        forms_of(large(), "questionnaire.checks=9")
