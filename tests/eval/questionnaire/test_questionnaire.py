"""Questionnaires from end to end: forms answered in a real browser, saved, read back, and shown in a report."""

import json
import re

import pandas as pd
import pytest

from eval.benchmarks.load import Benchmark
from eval.questionnaire.agreement import agreement
from eval.questionnaire.answers import counted, read_sheets
from eval.questionnaire.config import CheckConfig
from eval.questionnaire.forms import deal, form_digest, texts_of
from eval.questionnaire.page import write_page
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
        assert set(content) == {
            "schema",
            "version",
            "benchmark",
            "form",
            "rater",
            "native",
            "hidden_field",
            "answers",
            "checks",
        }
        assert content["benchmark"] == {"name": "blimp", "digest": "be" * 32}
        assert content["native"] is True
        assert content["hidden_field"] is False
        assert re.fullmatch("[0-9a-f]{16}", content["rater"])
        assert path.name == f"answers-blimp-form-1-{content['rater']}.json"
        for answer in content["answers"]:
            assert set(answer) == {"paradigm", "pair_id", "position", "first", "second", "chosen", "ms", "earlier"}
            assert answer["ms"] >= PAUSE
        for check, half in zip(content["checks"], (range(4), range(4, 8)), strict=True):
            assert set(check) == {"position", "first", "second", "chosen", "ms", "earlier", "passed"}
            assert check["passed"]
            assert check["position"] in half
        orders.append([(answer["paradigm"], answer["pair_id"], answer["first"]) for answer in content["answers"]])
    assert len(orders) == 3
    assert orders[0] != orders[1] != orders[2] != orders[0]  # equal by chance once in 6! * 2^6


@pytest.mark.slow
def test_agreement_and_majority_are_as_counted_by_hand(answers):
    result = counted(read_sheets([str(answers)]), "blimp", "be" * 32, BENCHMARK.pairs, config())
    assert (result.raters, result.notes) == (3, [])
    table = agreement(result.judgements).set_index("name")
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
def test_the_command_writes_forms_and_reads_answers(tmp_path):
    options = ["benchmark=toy", "benchmark.paradigms=null", f"questionnaire.folder={tmp_path}/forms"]
    done = run_command("eval.questionnaire", *options, "questionnaire.per_paradigm=1")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "forms").iterdir()) == ["en", "index.html"]
    folder = tmp_path / "forms" / "en"
    assert sorted(path.name for path in folder.iterdir()) == ["form-1.html", "questionnaire.json"]
    questionnaire = json.loads((folder / "questionnaire.json").read_text())
    (form,) = questionnaire["forms"]
    assert f"toy: {len(form['pairs'])} pairs of {len(form['pairs'])} paradigms" in done.stdout
    assert "whom people can ask is not named (en)" in done.stdout
    before = (folder / "form-1.html").read_bytes()
    assert run_command("eval.questionnaire", *options, "questionnaire.per_paradigm=1").returncode == 0
    assert (folder / "form-1.html").read_bytes() == before
    chinese = run_command(
        "eval.questionnaire", *options, "questionnaire.per_paradigm=1", "questionnaire.languages=[zh]"
    )
    assert chinese.returncode == 0, "a folder a language"
    other = run_command("eval.questionnaire", *options, "questionnaire.per_paradigm=2")
    assert other.returncode == 2
    assert "of another questionnaire, which people may be answering" in other.stderr
    assert other.stderr.count("\n") == 1
    answer = {"first": "x", "second": "y", "chosen": "first", "ms": 1, "passed": True}
    answers = [
        {**answer, "paradigm": pair["paradigm"], "pair_id": pair["pair_id"], "first": pair["good"],
         "second": pair["bad"], "position": i}
        for i, pair in enumerate(form["pairs"])
    ]  # fmt: skip
    pairs = [(pair["paradigm"], pair["pair_id"], pair["good"], pair["bad"]) for pair in form["pairs"]]
    digest = form_digest(questionnaire["benchmark"]["digest"], pairs, [])
    one = {
        "schema": "pairscale-answers", "version": 1,
        "benchmark": questionnaire["benchmark"], "form": {"digest": digest},
        "rater": "0" * 16, "native": True, "hidden_field": False, "answers": answers, "checks": [],
    }  # fmt: skip
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(one))
    table = run_command("eval.questionnaire", *options, f"people={file}")
    assert table.returncode == 0, table.stderr
    assert "toy · 1 rater" in table.stdout
    assert re.search(r"^ *[Oo]verall .*100\.0", table.stdout, re.MULTILINE), table.stdout
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
    assert opened.page.locator("#task").is_visible()


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
    assert len(read_sheets([str(person.save_answers(tmp_path))])) == 1


def test_the_next_person_at_a_device_gets_a_new_id(browser, form, tmp_path):
    opened = OpenPage(browser, form)
    person = Person(opened)
    person.begin()
    person.answer_all("number")
    first = json.loads(opened.page.locator("#text").input_value())["rater"]
    opened.page.once("dialog", lambda dialog: dialog.accept())
    opened.page.click("#again")
    assert opened.page.locator("#intro").is_visible()
    assert not opened.page.is_checked("input[name=consent]")
    person.begin()
    assert opened.page.inner_text("#progress") == "1 of 8"
    stored = opened.page.evaluate("Object.entries(localStorage).find(([key]) => key.startsWith('pairscale:'))[1]")
    assert json.loads(stored)["rater"] != first


def test_html_in_texts_is_shown_and_not_executed(browser, tmp_path):
    pairs = BENCHMARK.pairs.assign(good=EVIL + BENCHMARK.pairs["good"], paradigm=EVIL + BENCHMARK.pairs["paradigm"])
    benchmark = Benchmark("blimp", pairs, "be" * 32)
    file = tmp_path / "texts.yaml"
    shown = dict.fromkeys(("title", "consent", "question", "progress", "start", "finished"), EVIL)
    file.write_text(json.dumps({**shown, "introduction": [EVIL], "checks": [{"good": EVIL, "bad": "x"}]}))
    settings = config(f"questionnaire.texts={file}", "questionnaire.checks=1")
    texts = texts_of(settings, "en")["en"]
    assert texts.checks == [CheckConfig(EVIL, "x")]
    (one,) = deal(benchmark, settings, texts)
    write_page(tmp_path / "form.html", one, benchmark, texts, "en", "en")
    html = (tmp_path / "form.html").read_text()
    assert "<script>alert" not in html
    assert not re.search(r"(https?:)?//[\w.]+\.\w", html)  # nothing to load
    opened = OpenPage(browser, tmp_path / "form.html")
    assert opened.page.inner_text("h1 >> nth=0") == EVIL
    Person(opened).begin()
    assert any(EVIL in opened.page.inner_text(f"#{side}") for side in ("first", "second"))
    assert (opened.page.locator("b").count(), opened.console) == (0, [])
