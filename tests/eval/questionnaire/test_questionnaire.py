"""Questionnaires from end to end: forms answered in a real browser, saved, read back, and shown in a report."""

import json
import re
from functools import cache

import pandas as pd
import pytest

from eval.benchmarks.load import Benchmark
from eval.questionnaire.agreement import agreement
from eval.questionnaire.answers import counted, read_sheets
from eval.questionnaire.config import CheckConfig
from eval.questionnaire.forms import deal, texts_of
from eval.questionnaire.page import write_page
from tests.support.browser import OpenPage
from tests.support.commands import run_command
from tests.support.questionnaires import config, forms_of
from tests.support.simulated_study import SimulatedStudy

EVIL = "</script><script>alert(1)</script><b>"
PAUSE = 350  # milliseconds: a pair that has just appeared takes no answer
PHENOMENA = {"binding": (2, 0.6, 0.05), "islands": (1, 0.5, 0.0)}


class Study(SimulatedStudy):
    """A simulated study whose sentences name their pair."""

    def items(self):
        named = (items := super().items())["paradigm"] + " " + items["pair_id"]
        return items.assign(good=named + " is right.", bad=named + " right is.")


STUDY = Study(models=("lstm_tiny",), sizes=("125k", "250k"), pairs=2, phenomena=PHENOMENA)
BENCHMARK = Benchmark("blimp", STUDY.items(), "be" * 32)


@pytest.fixture(scope="module")
def form(tmp_path_factory):
    """Page of a form with all six pairs of the simulated study and two checks."""
    path = tmp_path_factory.mktemp("forms") / "form.html"
    (one,) = forms_of(BENCHMARK, "questionnaire.per_paradigm=2", "questionnaire.checks=2")
    write_page(path, one, BENCHMARK, texts_of(config(), "en")["en"], "en", "en")
    return path


@cache
def good_checks():
    # Without a capital, as the pairs of the simulated study.
    return {check.good[:1].lower() + check.good[1:] for check in config().by_language["en"].checks}


class Person:
    """A person who answers a form, wrongly in the pairs of `wrong` and in `failed` attention checks.

    A fake clock skips the pauses before answers, unless the person `reloads` the page, which would remove it.
    """

    def __init__(self, opened, wrong=(), failed=0, reloads=False):
        self.opened, self.page, self.wrong, self.failed = opened, opened.page, set(wrong), failed
        self.reloads = reloads
        if not reloads:
            self.page.clock.install()

    def begin(self, native="yes"):
        self.page.check(f"input[name=native][value={native}]")
        self.page.check("input[name=consent]")
        self.page.click("#intro button[type=submit]")

    def choose(self, by="click"):
        """Answer one pair, by a click, a tap or a key; return False if none is left."""
        if self.page.locator("#task").is_hidden():
            return False
        if self.reloads:
            self.page.wait_for_timeout(PAUSE)
        else:
            self.page.clock.fast_forward(PAUSE)
        number = self.page.inner_text("#progress")
        shown = [self.page.inner_text(f"#{side}") for side in ("first", "second")]
        if not good_checks().isdisjoint(shown):
            right = 0 if shown[0] in good_checks() else 1
            wrong, self.failed = self.failed > 0, self.failed - 1
        else:
            right = [text.endswith(" is right.") for text in shown].index(True)
            wrong = " ".join(shown[0].split()[:2]) in self.wrong
        side = 1 - right if wrong else right
        button = self.page.locator(".sentence").nth(side)
        match by:
            case "click":
                button.click()
            case "tap":
                button.tap()
            case "number":
                self.page.keyboard.press("12"[side])
            case "arrow":
                self.page.keyboard.press(["ArrowLeft", "ArrowRight"][side])
            case "tab":
                for _ in range(1 + side):
                    self.page.keyboard.press("Tab")
                self.page.keyboard.press("Enter")
        self.page.wait_for_function(
            """(number) => document.getElementById("task").hidden
                 || document.getElementById("progress").textContent !== number""",
            arg=number,
        )
        return True

    def answer_all(self, by="click"):
        """Answer the remaining pairs."""
        while self.choose(by):
            pass

    def save_answers(self, folder):
        """Download the answers to a folder; return the file."""
        with self.page.expect_download() as started:
            self.page.click("#download")
        name = started.value.suggested_filename
        started.value.save_as(folder / name)
        assert name in self.page.inner_text("#downloaded")
        assert self.page.locator("#text").input_value() == (folder / name).read_text()
        assert self.opened.console == []
        self.page.context.close()
        return folder / name


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
    rows = pd.read_csv(folder / "blimp-asked.csv").set_index("phenomenon")
    assert rows["individual"].to_dict() == pytest.approx({name: AGREE[name] for name in rows.index})
    assert list(rows.index) == ["overall", "binding", "islands"]
    paradigms = pd.read_csv(folder / "blimp-asked-paradigms.csv").set_index("paradigm")
    assert paradigms["majority"].to_dict() == pytest.approx({name: MAJORITY[name] for name in paradigms.index})
    assert paradigms["passes"].to_dict() == {"binding_1": "no", "binding_2": "yes", "islands_1": "yes"}
    reach = pd.read_csv(folder / "blimp-words-to-people.csv")
    assert set(reach.loc[reach["name"] == "overall", "people"].round(6)) == {round(AGREE["overall"], 6)}
    page = OpenPage(browser, folder / "report.html")
    levels = page.page.locator("#s1-levels")
    heads = levels.locator("thead th").all_inner_texts()
    assert [re.sub(r"\s+", " ", head) for head in heads if "people" in head] == ["people own answers, 3 raters"]
    overall = levels.locator("tr.overall td").all_inner_texts()
    assert overall[[("people" in head) for head in heads].index(True) - 1] == ".778"
    text = page.page.inner_text("body")
    assert "In 2 of 3 paradigms a majority agrees with at least 80% of the pairs." in text
    assert "beside people who answered a questionnaire" in text
    assert "People are those who answered a questionnaire on these pairs, not published ones: 3 raters" in text
    assert f"people={answers} questionnaire.max_failed_checks=0" in text
    assert page.console == []
    assert page.overflow == 0


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


@pytest.mark.parametrize(("width", "touch"), [(1280, False), (390, True)])
def test_a_step_back_changes_an_answer_and_the_file_says_so(browser, form, tmp_path, width, touch):
    """Every pair is answered once, the last answer counts, and the file has those before, with their times."""
    by = "tap" if touch else "click"
    person = Person(OpenPage(browser, form, width, touch=touch))
    page = person.page

    def press(name):
        page.clock.fast_forward(PAUSE)
        page.locator(name).tap() if touch else page.locator(name).click()

    def pressed():
        return [page.locator(".sentence").nth(side).get_attribute("aria-pressed") for side in (0, 1)]

    person.begin()
    assert page.locator("#back").is_hidden()
    person.choose(by)
    person.choose(by)
    assert pressed() == [None, None]
    assert page.locator("#next").is_hidden()
    press("#back")
    assert page.inner_text("#progress") == "2 of 8"
    assert sorted(pressed()) == ["false", "true"]  # the answer that was given
    assert person.opened.overflow == 0
    second = [page.inner_text(f"#{side}") for side in ("first", "second")]
    press("#back")
    assert page.inner_text("#progress") == "1 of 8"
    first = [page.inner_text(f"#{side}") for side in ("first", "second")]
    press("#next")
    assert page.inner_text("#progress") == "2 of 8"
    page.clock.fast_forward(PAUSE)
    other = pressed().index("false")
    page.keyboard.press("12"[other])
    assert page.inner_text("#progress") == "3 of 8"
    assert page.locator("#bar").evaluate("bar => bar.value") == 2
    page.keyboard.press("Backspace")
    assert page.inner_text("#progress") == "3 of 8", "a pair that has just appeared takes no key"
    person.answer_all(by)
    press("#back-from-end")
    assert page.inner_text("#progress") == "8 of 8"
    press("#next")
    path = person.save_answers(tmp_path)
    content = json.loads(path.read_text())
    choices = sorted([*content["answers"], *content["checks"]], key=lambda choice: choice["position"])
    assert [choice["position"] for choice in choices] == list(range(8))
    assert [[choices[n]["first"], choices[n]["second"]] for n in (0, 1)] == [first, second]
    assert [len(choice["earlier"]) for choice in choices] == [0, 1, 0, 0, 0, 0, 0, 0]
    (earlier,) = choices[1]["earlier"]
    assert {earlier["chosen"], choices[1]["chosen"]} == {"first", "second"}
    assert choices[1]["chosen"] == ["first", "second"][other]
    assert PAUSE <= earlier["ms"] < choices[1]["ms"]
    assert choices[1]["ms"] >= 3 * PAUSE  # three times on the screen
    if "pair_id" in choices[1]:
        result = counted(read_sheets([str(path)]), "blimp", "be" * 32, BENCHMARK.pairs, config())
        assert result.notes == ["1 answer changed after a step back: the last one counts."]
        row = result.judgements[result.judgements["position"] == 1].iloc[0]
        assert row["seconds"] == earlier["ms"] / 1000
        assert not row["right"]


def test_a_saved_file_is_final(browser, form, tmp_path):
    """Another file of the same person on the same form would have other answers."""
    person = Person(OpenPage(browser, form), reloads=True)
    person.begin()
    person.answer_all("number")
    assert person.page.locator("#back-from-end").is_visible()
    with person.page.expect_download():
        person.page.click("#download")
    assert person.page.locator("#back-from-end").is_hidden()
    person.page.reload()
    person.page.wait_for_selector("html[data-drawn=true]", state="attached")
    assert person.page.locator("#end").is_visible()
    assert person.page.locator("#back-from-end").is_hidden()


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Folder of a questionnaire in two languages, of two forms each."""
    folder = tmp_path_factory.mktemp("several")
    texts = folder / "texts"
    texts.mkdir()
    (texts / "en.yaml").write_text('contact: "Ask A. Person: a@example.org"\n')
    (texts / "zh.yaml").write_text('contact: "a@example.org"\nduration: ""\n')
    done = run_command(
        "eval.questionnaire", "benchmark=toy", "benchmark.per_paradigm=2", "questionnaire.per_paradigm=1",
        "questionnaire.raters=2", "questionnaire.languages=[en,zh]", f"questionnaire.texts={texts}",
        f"questionnaire.folder={folder}/forms",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "forms", done.stdout


@pytest.mark.slow
def test_a_start_page_leads_to_a_form_in_a_language(browser, several):
    folder, printed = several
    assert f"start page: {folder}/index.html draws a form; ?lang=en|zh" in printed
    page = browser.new_page()
    page.goto((folder / "index.html").as_uri())
    page.wait_for_selector("html[data-drawn=true]", state="attached")
    assert page.locator("a.language strong").all_inner_texts() == ["English", "中文"]
    page.click("a.language >> nth=1")
    page.wait_for_url("**/zh/form-*.html")
    drawn = page.url.rpartition("/")[2]
    text = page.inner_text("#intro")
    assert "a@example.org" in text
    assert "分钟" not in text  # no duration: ""
    for _ in range(3):  # the same form again, in any language
        page.goto((folder / "index.html").as_uri() + "?lang=en")
        page.wait_for_url(f"**/en/{drawn}")
    assert "This takes about 6 minutes." in page.inner_text("#intro")  # 44 questions of 8 seconds
    assert "Ask A. Person" in page.inner_text("#intro")
    page.goto((folder / "index.html").as_uri() + "?lang=en&form=2")
    page.wait_for_url("**/en/form-2.html")


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
