"""Questionnaires from end to end: forms answered in a real browser, saved, read back, and shown in a report."""

import json
import re

import pandas as pd
import pytest

from eval.benchmarks.load import Benchmark
from eval.questionnaire.answers import agreement, counted, read_answers
from eval.questionnaire.forms import deal, form_page, read_texts
from tests.support.browser import OpenPage
from tests.support.commands import run_command
from tests.support.questionnaires import BENCHMARK, PAUSE, STUDY, Person, config, write_form

EVIL = "</script><script>alert(1)</script><b>"


@pytest.fixture(scope="module")
def form(tmp_path_factory):
    """Page of a form with six pairs and two checks."""
    path = tmp_path_factory.mktemp("forms") / "form.html"
    write_form(path)
    return path


# Two of three people err in one pair, so a majority does.
WRONG = [[], ["binding_1 0", "islands_1 1"], ["binding_1 0", "binding_2 1"]]
AGREE = {
    "binding_1": 4 / 6,
    "binding_2": 5 / 6,
    "islands_1": 5 / 6,
    "binding": 9 / 12,
    "islands": 5 / 6,
    "overall": 14 / 18,
}
MAJORITY = {"binding_1": 1 / 2, "binding_2": 1, "islands_1": 1, "binding": 3 / 4, "islands": 1, "overall": 5 / 6}


@pytest.fixture(scope="module")
def answers(browser, form, tmp_path_factory):
    """Answers of three people: one with a mouse, one on a phone, one with a keyboard who reloads the page."""
    folder = tmp_path_factory.mktemp("answers")
    desktop = Person(OpenPage(browser, form), WRONG[0])
    desktop.begin()
    desktop.answer_all()
    desktop.save_answers(folder)
    phone = Person(OpenPage(browser, form, 390, "dark", touch=True), WRONG[1])
    phone.begin()
    assert phone.opened.overflow == 0
    first, second = (phone.page.locator(".sentence").nth(i).bounding_box() for i in (0, 1))
    assert second["y"] >= first["y"] + first["height"]  # one above the other
    phone.answer_all("tap")
    phone.save_answers(folder)
    keyboard = Person(OpenPage(browser, form), WRONG[2], reloads=True)
    page = keyboard.page
    for keys in (["Tab", "Space"], ["Tab", "Space"], ["Tab", "Enter"]):  # native, consent, start
        for key in keys:
            page.keyboard.press(key)
    for by in ("tab", "number", "arrow"):
        assert keyboard.choose(by)
    before = [page.inner_text(name) for name in ("#progress", "#first", "#second")]
    assert before[0] == "4 of 8"
    page.reload()
    page.wait_for_selector("html[data-drawn=true]", state="attached")
    assert [page.inner_text(name) for name in ("#progress", "#first", "#second")] == before
    keyboard.answer_all("number")
    keyboard.save_answers(folder)
    return folder


@pytest.mark.slow
def test_the_saved_file_has_the_answers_and_nothing_else(answers):
    orders = []
    for path in answers.glob("*.json"):
        content = json.loads(path.read_text())
        assert set(content) == {"schema", "version", "benchmark", "digest", "form", "rater", "native", "answers"}
        assert (content["benchmark"], content["digest"], content["native"]) == ("blimp", "be" * 32, True)
        assert path.name == f"answers-blimp-form-1-{content['rater']}.json"
        for answer in content["answers"]:
            about = {"check"} if "check" in answer else {"paradigm", "pair_id"}
            assert set(answer) == {*about, "first", "second", "chosen", "ms"}
            assert answer["ms"] >= PAUSE
        orders.append(
            [(answer.get("paradigm"), answer.get("pair_id"), answer["first"]) for answer in content["answers"]]
        )
    assert len(orders) == 3
    assert orders[0] != orders[1] != orders[2] != orders[0]  # equal by chance once in 6! * 2^6


@pytest.mark.slow
def test_agreement_and_majority_are_as_counted_by_hand(answers):
    judgements, notes = counted(read_answers([str(answers)]), "blimp", "be" * 32, BENCHMARK.pairs, config())
    assert (judgements["rater"].nunique(), notes) == (3, [])
    table = agreement(judgements).set_index("name")
    assert table["agreement"].to_dict() == pytest.approx(AGREE)
    assert table["majority"].to_dict() == pytest.approx(MAJORITY)
    assert table.loc["overall", ["paradigms", "pairs", "raters", "judgements", "ties"]].tolist() == [3, 6, 3, 18, 0]
    assert list(table.index[:3]) == ["binding_1", "binding_2", "islands_1"]


@pytest.mark.slow
def test_a_report_shows_the_people_of_the_questionnaire(answers, browser, tmp_path):
    """They replace published people everywhere, and the report says so."""
    STUDY.write(tmp_path / "runs")
    where = [f"paths.{name}={tmp_path}/{name}" for name in ("runs", "reports")]
    done = run_command("analysis", "study=simulated", f"people={answers}", *where)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "reports" / "simulated"
    rows = pd.read_csv(folder / "tables" / "people.csv").set_index("phenomenon")
    assert rows["individual"].to_dict() == pytest.approx({name: AGREE[name] for name in rows.index})
    assert list(rows.index) == ["overall", "binding", "islands"]
    for table in ("phenomena", "published"):  # in place of published people
        shown = pd.read_csv(folder / "tables" / f"{table}.csv").set_index("phenomenon")["humans"]
        assert shown.to_dict() == pytest.approx({name: AGREE[name] for name in shown.index})
    page = OpenPage(browser, folder / "report.html")
    page.page.evaluate("document.querySelectorAll('details').forEach((folded) => { folded.open = true; })")
    text = page.page.inner_text("body")
    assert re.search(r"2 of 3 paradigms.* 80% of the pairs", text)
    assert "Humans are the 3 people" in text
    assert f"people={answers}" in text
    assert page.console == []
    assert page.overflow == 0


@pytest.mark.slow
def test_the_command_writes_forms_and_reads_answers(browser, tmp_path):
    options = ["benchmark=toy", "benchmark.paradigms=null", f"questionnaire.folder={tmp_path}/forms"]
    few = [*options, "questionnaire.per_paradigm=1", "questionnaire.checks=0"]
    done = run_command("eval.questionnaire", *few)
    assert done.returncode == 0, done.stderr
    assert "toy: 1 forms of up to 41 questions (6 minutes)" in done.stdout
    assert "don't say whom people can ask" in done.stderr
    form = tmp_path / "forms" / "form-1.html"
    before = form.read_bytes()
    assert run_command("eval.questionnaire", *few).returncode == 0
    assert form.read_bytes() == before
    other = run_command("eval.questionnaire", *options, "questionnaire.per_paradigm=2")
    assert other.returncode == 2
    assert "of another questionnaire, which people may be answering" in other.stderr
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
    diagnostic = run_command("eval.questionnaire", "benchmark=cprag", f"people={file}")
    assert diagnostic.returncode == 2
    assert "a diagnostic has no pairs for people to choose from" in diagnostic.stderr


def test_the_form_starts_only_with_consent(browser, form):
    opened = OpenPage(browser, form)
    opened.page.check("input[name=native][value=no]")
    opened.page.click("#intro button[type=submit]")
    assert opened.page.locator("#intro").is_visible()
    opened.page.check("input[name=consent]")
    opened.page.click("#intro button[type=submit]")
    assert opened.page.inner_text(".keys").startswith("Choose with a click")


def test_a_double_tap_is_one_answer_and_a_repeated_key_none(browser, form):
    opened = OpenPage(browser, form)
    person = Person(opened)
    person.begin()
    opened.page.wait_for_timeout(PAUSE)
    opened.page.evaluate("for (let i = 0; i < 3; i++) document.querySelector('.sentence').click()")
    assert opened.page.inner_text("#progress") == "2 of 8"
    opened.page.wait_for_timeout(PAUSE)
    opened.page.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', { key: '1', repeat: true }))")
    assert opened.page.inner_text("#progress") == "2 of 8"


def test_a_browser_without_storage_shows_a_warning_and_still_works(browser, form, tmp_path):
    context = browser.new_context(accept_downloads=True)
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError') } })"
    )
    opened = OpenPage.__new__(OpenPage)
    opened.page, opened.console = context.new_page(), []
    opened.page.on("console", lambda message: opened.console.append(message.text))
    opened.page.on("pageerror", lambda error: opened.console.append(str(error)))
    opened.page.goto(form.as_uri())
    person = Person(opened)
    person.begin()
    assert "do not close or reload" in opened.page.inner_text("#no-storage")
    person.answer_all("number")
    assert len(read_answers([str(person.save_answers(tmp_path))])) == 6


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
