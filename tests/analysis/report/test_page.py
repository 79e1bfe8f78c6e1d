"""The page of a report: first screen, contents, phone, paper, and readers without a mouse or with a screen reader."""

import re
import subprocess

import pytest

from tests.support.browser import OpenPage, violations

pytestmark = pytest.mark.slow


def test_the_first_screen_has_question_findings_warnings_and_figure(browser, report_path):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(report_path.as_uri())
    page.wait_for_selector("html[data-drawn=true]", state="attached")
    assert page.locator("h1").inner_text() == "How does knowledge of grammar grow with text?"
    assert page.locator(".findings p").count() == 2
    assert "Unknown words could explain these results" in page.locator(".warning").inner_text()
    for part in ("h1", ".findings", ".warning", "#blimp-overview figure"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 900, part
    context.close()


def test_the_contents_lead_to_every_section_by_names_that_last(open_page):
    page = open_page.page
    targets = [link.get_attribute("href")[1:] for link in page.locator("#contents a").all()]
    assert {"blimp", "blimp-overview", "blimp-slopes", "blimp-provenance", "make-again"} <= set(targets)
    assert set(targets) >= {section.get_attribute("id") for section in page.locator("section.exhibit").all()}
    for target in targets:
        assert page.locator(f"[id='{target}']").count() == 1, target
    captions = page.locator("figcaption b, .caption b").all_inner_texts()
    for kind in ("Figure", "Table"):
        numbers = [int(text.split()[1].rstrip(".")) for text in captions if text.startswith(kind)]
        assert numbers == list(range(1, len(numbers) + 1))


def test_the_contents_are_a_menu_on_a_phone(browser, report_path):
    open_page = OpenPage(browser, report_path, 390, touch=True)
    page, contents = open_page.page, open_page.page.locator("#contents")
    assert not contents.is_visible()
    page.locator("#menu").tap()
    assert contents.is_visible()
    page.keyboard.press("Escape")
    assert not contents.is_visible()
    page.locator("#menu").press("Enter")
    contents.locator("a[href='#blimp-slopes']").tap()
    assert not contents.is_visible()
    page.wait_for_function("() => document.querySelector('#blimp-slopes').getBoundingClientRect().top < 200")
    page.context.close()


def test_definitions_open_by_keyboard(open_page):
    terms = open_page.page.locator("#blimp-slopes details.terms")
    assert not terms.locator("dd").first.is_visible()
    terms.locator("summary").focus()
    open_page.page.keyboard.press("Enter")
    assert terms.locator("dd").first.is_visible()
    assert "Accuracy gained per doubling" in terms.inner_text()


def test_names_and_headings_stay_in_sight_of_a_wide_table(browser, report_path):
    open_page = OpenPage(browser, report_path, 390)
    scroll = open_page.page.locator("#blimp-paradigms .scroll")
    scroll.locator("xpath=..").locator("button.more").click()
    scroll.evaluate("(box) => { box.style.maxHeight = '200px'; box.scrollTo(200, 150); }")
    frame = scroll.bounding_box()
    assert scroll.evaluate("(box) => [box.scrollLeft, box.scrollTop]") == [200, 150]
    name = scroll.locator("tbody tr:nth-child(9) th").bounding_box()
    assert name["x"] == pytest.approx(frame["x"], abs=2)
    assert 100 < name["width"] < frame["width"] / 2
    heading = scroll.locator("thead th").first.bounding_box()
    assert (heading["x"], heading["y"]) == pytest.approx((frame["x"], frame["y"]), abs=2)
    open_page.page.context.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_axe_finds_nothing_to_mend(browser, report_path, width, scheme):
    open_page = OpenPage(browser, report_path, width, scheme, touch=width == 390)
    assert violations(open_page.page) == {}
    open_page.page.context.close()


def test_a_tooltip_is_readable_on_a_dark_page(browser, report_path):
    open_page = OpenPage(browser, report_path, 1280, "dark")
    open_page.page.locator("#blimp-overview .mark-symbol path").last.hover(force=True)
    tooltip = open_page.page.locator("#vg-tooltip-element")
    tooltip.wait_for()
    for cell in tooltip.locator("td").all():
        ink, paper = cell.evaluate(
            """(cell) => [getComputedStyle(cell).color, getComputedStyle(cell.closest("div")).backgroundColor]
                 .map((colour) => colour.match(/[0-9]+/g).slice(0, 3))
                 .map((parts) => parts.reduce((sum, part) => sum + Number(part), 0) / 3)"""
        )
        assert ink - paper > 100
        assert cell.evaluate("(cell) => getComputedStyle(cell.parentElement).backgroundColor") == "rgba(0, 0, 0, 0)"
    open_page.page.context.close()


def test_nothing_on_paper_waits_for_a_click(open_page):
    page = open_page.page
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert (
        page.locator("header, nav, summary, input, select, .tools button, .files").locator("visible=true").count() == 0
    )
    assert page.locator("#blimp-paradigms tbody tr:visible").count() == 12
    assert page.locator("html").get_attribute("data-theme") == "light"
    breaks = page.locator("figure").evaluate_all("(all) => all.map((one) => getComputedStyle(one).breakInside)")
    assert set(breaks) == {"avoid"}
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.terms:not([open])").count() > 0


def test_the_printed_report_is_complete(open_page, report_path, tmp_path):
    """Nothing on paper lies beyond the edge."""
    page = open_page.page
    page.pdf(path=tmp_path / "report.pdf", format="A4", print_background=True)
    text = subprocess.run(
        ["pdftotext", "-layout", tmp_path / "report.pdf", "-"], capture_output=True, text=True, check=True
    ).stdout
    for heading in ("Learning curves", "Slopes", "Methods and limits", "Provenance", "Digests"):
        assert heading in text, heading
    assert "c0ffeec0ffeec0ff" in text  # a digest, in the last column of the widest table
    boxes = subprocess.run(
        ["pdftotext", "-bbox", tmp_path / "report.pdf", "-"], capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "boxes").write_text(boxes)
    width = float(re.search(r'page width="([\d.]+)"', boxes)[1])
    beyond = [word for x, word in re.findall(r'xMax="([\d.]+)"[^>]*>([^<]*)<', boxes) if float(x) > width]
    assert beyond == []
