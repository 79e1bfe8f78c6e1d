"""Forms: pairs are distributed evenly, forms are reproducible, texts can be replaced."""

from collections import Counter as Tally
from importlib.resources import files

import pandas as pd
import pytest

from eval.benchmarks.load import Benchmark
from eval.questionnaire.forms import form_page, minutes, read_texts
from pairscale.errors import ConfigError, InputError
from tests.support.questionnaires import config, forms_of


def large(paradigms=7, pairs=20):
    rows = [
        {"pair_id": str(pair), "paradigm": f"p{k}", "phenomenon": f"f{k % 2}", "good": f"g {k} {pair}", "bad": f"b {k}"}
        for k in range(paradigms)
        for pair in range(pairs)
    ]
    return Benchmark("local", pd.DataFrame(rows), "ab" * 32)


def pairs_of(form):
    return [(question["paradigm"], question["pair_id"]) for question in form if "check" not in question]


def test_pairs_are_distributed_evenly_over_forms():
    forms = forms_of(large(), "questionnaire.per_paradigm=6", "questionnaire.pairs=10", "questionnaire.raters=3")
    assert len(forms) == 15  # 42 pairs, three times, on forms of ten at most
    pairs = [pairs_of(form) for form in forms]
    assert {len(form) for form in pairs} == {8, 9}
    on = Tally(pair for form in pairs for pair in form)
    assert len(on) == 42
    assert set(on.values()) == {3}
    for form, of_form in zip(forms, pairs, strict=True):
        assert set(Tally(paradigm for paradigm, _ in of_form).values()) <= {1, 2}  # six over five forms
        assert len({question["check"] for question in form if "check" in question}) == 3
    rounds = [{frozenset(form) for form in pairs[at : at + 5]} for at in (0, 5, 10)]
    assert not rounds[0] & rounds[1]  # grouped differently
    assert len(set(map(frozenset, pairs))) == 15


def test_forms_depend_on_the_seed():
    def forms(*more):
        return forms_of(large(), "questionnaire.pairs=20", *more)

    assert forms() == forms()
    assert not any(form in forms() for form in forms("questionnaire.seed=2"))


def test_a_form_does_not_reveal_which_sentence_is_good():
    benchmark, texts = large(paradigms=1, pairs=5), read_texts(config(), "en")
    swapped = benchmark.pairs.rename(columns={"good": "bad", "bad": "good"})
    forms = [forms_of(Benchmark("local", pairs, "ab" * 32))[0] for pairs in (benchmark.pairs, swapped)]
    first, second = (form_page("form-1", form, benchmark, texts, "en", "en") for form in forms)
    assert first == second


@pytest.mark.parametrize(
    ("template", "shown"), [("G {}.", "Her b"), ("g {} .", "her b"), ("g {}", "her b"), ("G {}", "Her b")]
)
def test_attention_checks_are_written_as_the_pairs_are(template, shown):
    rows = [
        {"pair_id": str(n), "paradigm": "p", "phenomenon": "f", "good": template.format(n), "bad": "b"}
        for n in range(9)
    ]
    (form,) = forms_of(Benchmark("local", pd.DataFrame(rows), "ab" * 32), "questionnaire.checks=6")
    checks = [sentence for question in form if "check" in question for sentence in question["sentences"]]
    assert {sentence.endswith(".") for sentence in checks} == {template.endswith(".")}
    assert next(sentence for sentence in checks if "brother bought a" in sentence).startswith(shown)
    assert minutes(len(form)) == 2  # 11 questions of 8 seconds


def test_texts_can_be_replaced_by_a_file_of_the_user(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text('consent: "Ethics board 7"\n')
    mine = config(f"questionnaire.texts={file}")
    texts = read_texts(mine, "zh")
    assert (texts["consent"], texts["start"]) == ("Ethics board 7", "开始")
    for content in ("consnt: a", "consent: yes", "checks: {a: 1}", "["):
        file.write_text(content)
        with pytest.raises((ConfigError, InputError), match=r"mine\.yaml"):
            read_texts(mine, "en")
    file.write_text("consent: a")
    with pytest.raises(ConfigError, match=r"title, introduction"):
        read_texts(mine, "ja")
    file.write_text((files("eval.questionnaire") / "zh.yaml").read_text())
    assert read_texts(mine, "ja") == read_texts(config(), "zh")
    with pytest.raises(ConfigError, match="6 attention checks"):
        forms_of(large(), "questionnaire.checks=9")
