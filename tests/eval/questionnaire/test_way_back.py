"""The ways of a person: a step back to change an answer, none once the file is saved, and the start page."""

import json

import pytest

from eval.questionnaire.answers import counted, read_sheets
from tests.support.browser import OpenPage
from tests.support.commands import run_command
from tests.support.questionnaires import BENCHMARK, PAUSE, Person, config, write_form


@pytest.fixture(scope="module")
def form(tmp_path_factory):
    """Page of a form with six pairs and two checks."""
    path = tmp_path_factory.mktemp("forms") / "form.html"
    write_form(path)
    return path


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
    page.clock.pause_at(page.evaluate("Date.now() + 60_000"))  # a slow machine takes longer than the pause
    page.keyboard.press("12"[other])
    assert page.inner_text("#progress") == "3 of 8"
    assert page.locator("#bar").evaluate("bar => bar.value") == 2
    page.keyboard.press("Backspace")
    assert page.inner_text("#progress") == "3 of 8", "a pair that has just appeared takes no key"
    page.clock.resume()
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
