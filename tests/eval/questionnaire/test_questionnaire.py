"""Questionnaires from end to end: forms answered in a real browser, saved, read back, and shown in a report."""

import json
import re

import pytest

from eval.benchmarks.load import Benchmark
from eval.questionnaire.answers import agreement, counted, read_answers
from eval.questionnaire.forms import deal, form_page, read_texts
from tests.support.browser import OpenPage
from tests.support.commands import run_command
from tests.support.questionnaires import BENCHMARK, PAUSE, Person, config, write_form

EVIL = "</script><script>alert(1)</script><b>"


# Two of three people err in one pair, so a majority does.
WRONG = [[], ["binding_1 0", "islands_1 1"], ["binding_1 0", "binding_2 1"]]
AGREE = {"binding_1": 4 / 6, "binding_2": 5 / 6, "islands_1": 5 / 6, "binding": 9 / 12, "islands": 5 / 6,
         "overall": 14 / 18}  # fmt: skip
MAJORITY = {"binding_1": 1 / 2, "binding_2": 1, "islands_1": 1, "binding": 3 / 4, "islands": 1, "overall": 5 / 6}


@pytest.fixture(scope="module")
def form(tmp_path_factory):
    """Page of a form with six pairs and two checks."""
    path = tmp_path_factory.mktemp("forms") / "form.html"
    write_form(path)
    return path


@pytest.mark.slow
def test_the_command_writes_forms_and_reads_answers(browser, tmp_path):
    options = ["benchmark=toy", "benchmark.paradigms=null", f"questionnaire.folder={tmp_path}/forms"]
    few = [*options, "questionnaire.per_paradigm=1", "questionnaire.checks=0"]
    done = run_command("eval.questionnaire", *few)
    assert done.returncode == 0, done.stderr
    assert "toy: 1 form of up to 41 questions (6 minutes)" in done.stdout
    assert "questionnaire.texts=FILE" in done.stderr
    form = tmp_path / "forms" / "form-1.html"
    before = form.read_bytes()
    assert run_command("eval.questionnaire", *few).returncode == 0
    assert form.read_bytes() == before
    other = run_command("eval.questionnaire", *options, "questionnaire.per_paradigm=2")
    assert other.returncode == 2
    assert "another questionnaire" in other.stderr
    assert other.stderr.count("\n") == 1
    person = Person(OpenPage(browser, form))
    person.begin()
    while person.page.locator("#task").is_visible():
        person.page.clock.fast_forward(PAUSE)
        person.page.keyboard.press("1")
    person.save_answers(tmp_path)
    (file,) = tmp_path.glob("*.json")
    table = run_command("eval.questionnaire", *options, f"people={file}")
    assert table.returncode == 0, table.stderr
    assert re.search(r"^ *overall +1 +41 +41 ", table.stdout, re.MULTILINE), table.stdout
    for benchmark in ("cprag", "ewok"):
        other = run_command("eval.questionnaire", f"benchmark={benchmark}", f"people={file}")
        assert other.returncode == 2
        assert "this benchmark has no minimal pairs" in other.stderr


def test_html_in_texts_is_shown_and_not_executed(browser, tmp_path):
    pairs = BENCHMARK.pairs.assign(good=EVIL + BENCHMARK.pairs["good"], paradigm=EVIL + BENCHMARK.pairs["paradigm"])
    benchmark = Benchmark("blimp", pairs, "be" * 32)
    file = tmp_path / "texts.yaml"
    shown = dict.fromkeys(("title", "consent", "question", "progress", "start", "finished"), EVIL)
    file.write_text(json.dumps({**shown, "introduction": EVIL, "checks": {EVIL: "x"}}))
    settings = config(f"questionnaire.texts={file}", "questionnaire.checks=1")
    texts = read_texts(settings, "en")
    (one,) = deal(benchmark, settings, texts["checks"])
    (tmp_path / "form.html").write_text(form_page("form-1", one, benchmark, texts, "en", "en"))
    html = (tmp_path / "form.html").read_text()
    assert "<script>alert" not in html
    assert not re.search(r"(https?:)?//[\w.]+\.\w", html)  # nothing to load
    opened = OpenPage(browser, tmp_path / "form.html")
    assert opened.page.inner_text("h1 >> nth=0") == EVIL
    Person(opened).begin()
    assert any(EVIL in opened.page.inner_text(f"#{side}") for side in ("first", "second"))
    assert (opened.page.locator("b").count(), opened.console) == (0, [])


@pytest.mark.slow
def test_three_people_answer_a_form_and_agree_as_counted_by_hand(browser, form, tmp_path):
    """One with a mouse, one on a phone, one with a keyboard who reloads the page."""
    desktop = Person(OpenPage(browser, form), WRONG[0])
    desktop.page.click("#intro button[type=submit]")
    assert desktop.page.locator("#intro").is_visible()  # the form starts only with consent
    desktop.begin()
    desktop.answer_all()
    files = [desktop.save_answers(tmp_path)]
    phone = Person(OpenPage(browser, form, 390, "dark", touch=True), WRONG[1])
    phone.begin()
    phone.answer_all("tap")
    files.append(phone.save_answers(tmp_path))
    keyboard = Person(OpenPage(browser, form), WRONG[2], reloads=True)
    page = keyboard.page
    for key in ("Tab", "Space", "Tab", "Space", "Tab", "Enter"):  # native, consent, start
        page.keyboard.press(key)
    for by in ("number", "arrow"):
        assert keyboard.choose(by)
    before = [page.inner_text(name) for name in ("#progress", "#first", "#second")]
    page.reload()
    page.wait_for_selector("html[data-drawn=true]", state="attached")
    assert [page.inner_text(name) for name in ("#progress", "#first", "#second")] == before
    keyboard.answer_all("number")
    files.append(keyboard.save_answers(tmp_path))
    orders = []
    for file in files:
        content = json.loads(file.read_text())
        assert set(content) == {"schema", "version", "benchmark", "digest", "form", "rater", "native", "answers"}
        assert (content["benchmark"], content["digest"], content["native"]) == ("blimp", "be" * 32, True)
        assert all(answer["ms"] >= PAUSE for answer in content["answers"])
        orders.append([(answer.get("pair_id"), answer["first"]) for answer in content["answers"]])
    assert orders[0] != orders[1] != orders[2] != orders[0]  # equal by chance once in 6! * 2^6
    judgements, notes = counted(read_answers([str(tmp_path)]), "blimp", "be" * 32, BENCHMARK.pairs, config())
    assert (judgements["rater"].nunique(), notes) == (3, [])
    table = agreement(judgements).set_index("name")
    assert table["agreement"].to_dict() == pytest.approx(AGREE)
    assert table["majority"].to_dict() == pytest.approx(MAJORITY)
    assert table.loc["overall", ["paradigms", "pairs", "raters", "judgements", "ties"]].tolist() == [3, 6, 3, 18, 0]
