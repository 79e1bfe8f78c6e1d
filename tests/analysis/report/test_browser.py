"""The report in a real browser: legends, sorting, search, downloads and print, without console errors."""

import csv
import io
import itertools
import json
import re
import subprocess

import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

from analysis.curves.fit import fit_curves
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.methods import length_chart
from analysis.exhibits.sentences.findings import comparisons
from analysis.exhibits.tables.curves import curve_tables
from analysis.exhibits.tables.slopes import with_published
from analysis.exhibits.tables.text import as_it_is
from analysis.report.report import write_report
from analysis.sections.curves import curve_exhibits
from analysis.sections.section import Section
from analysis.sections.together import common_sizes_exhibit, overview_exhibit, phenomena_exhibit
from analysis.study.collect import collect
from analysis.study.combine import combine
from analysis.study.judgements import judgements
from eval.published import read_published
from tests.support.browser import OpenPage
from tests.support.simulated_section import CONFIG, EVIL, report_of, section_of
from tests.support.simulated_study import SimulatedStudy

pytestmark = pytest.mark.slow
FADED = 0.15  # opacity below which a line counts as faded


ERRORS = Exhibit(
    "errors",
    "A sample of errors",
    "Wrongly judged pairs.",
    pd.DataFrame(
        [
            ("anaphor_gender_agreement", "lstm_tiny", "A woman hid herself .", "anaphor_agreement"),
            ("anaphor_number_agreement", "txl_tiny", "Two cats hid themselves .", "anaphor_agreement"),
            ("wh_island", "txl_tiny", "Who hid <b>that</b> cat ?", "island_effects"),
        ],
        columns=["paradigm", "curve", "good", "phenomenon"],
    ),
    cells=dict.fromkeys(("curve", "good"), as_it_is),
    filtered=True,
)


_LENGTHS = pd.DataFrame(
    [(method, at, 9, 0.5 + slope * at, 0.4, 0.6) for method, slope in (("lp", 0.04), ("mean_lp", -0.02))
     for at in range(-5, 6)],
    columns=["method", "difference", "judgements", "accuracy", "low", "high"],
)  # fmt: skip
LENGTHS = Exhibit(
    "lengths",
    "Unequal lengths",
    "Named at the ends of lines.",
    charts={"curve-0": lambda width: length_chart(_LENGTHS, width=width)},
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    section = section_of(folder / "runs", unk_share=0.3)
    section.first = [overview_exhibit(section, 0.95), phenomena_exhibit(section, 0.95)]
    section.exhibits += [
        *curve_exhibits(curve_tables(section.judged, section.published, CONFIG), 0.95),
        ERRORS,
        LENGTHS,
    ]
    return write_report(folder / "report", report_of(section))


@pytest.fixture
def open_page(browser, report):
    page = OpenPage(browser, report)
    yield page
    assert page.console == []
    page.page.context.close()


def opacities(page, chart):
    """Return the opacities of a chart's lines by colour."""
    return page.evaluate(
        """(chart) => Object.fromEntries(
            [...document.querySelectorAll(`[data-chart="${chart}"] .mark-line path`)]
              .map((line) => [line.getAttribute("stroke"), Number(line.getAttribute("opacity") ?? 1)]))""",
        chart,
    )


def test_a_legend_fades_the_other_lines_and_brings_them_back(open_page):
    page = open_page.page
    before = opacities(page, "blimp-curve-0")
    assert len(before) == 4  # three phenomena and the whole
    assert min(before.values()) > FADED
    entry = page.locator("#blimp-curves .legend button").first
    entry.click()
    assert entry.get_attribute("aria-pressed") == "true"
    for chart in ("blimp-curve-0", "blimp-curve-1"):
        page.wait_for_function(
            """(chart) => [...document.querySelectorAll(`[data-chart="${chart}"] .mark-line path`)]
                 .filter((line) => Number(line.getAttribute("opacity") ?? 1) > 0.15).length === 1""",
            arg=chart,
        )
    chosen = page.locator("#blimp-curves .legend button line").first.get_attribute("stroke")
    assert [colour for colour, opacity in opacities(page, "blimp-curve-0").items() if opacity > FADED] == [chosen]
    entry.focus()
    page.keyboard.press("Space")
    assert entry.get_attribute("aria-pressed") == "false"
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-chart="blimp-curve-0"] .mark-line path')]
             .every((line) => Number(line.getAttribute("opacity") ?? 1) > 0.15)"""
    )
    assert opacities(page, "blimp-curve-0") == before


def column(page, number):
    cells = page.locator(f"#blimp-slopes table.sortable >> nth=0 >> tbody tr > :nth-child({number})")
    return cells.all_inner_texts()


def test_a_table_is_sorted_by_mouse_and_by_keyboard(open_page):
    page = open_page.page
    header = page.locator("#blimp-slopes table.sortable >> nth=0 >> thead th", has_text="Slope")
    place = 1 + header.evaluate("(th) => th.cellIndex")
    numbers = lambda: [float(text.replace("\N{MINUS SIGN}", "-")) for text in column(page, place)]  # noqa: E731
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    assert numbers() == sorted(numbers(), reverse=True)
    assert len(set(numbers())) > 4
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert numbers() == sorted(numbers())
    first = page.locator("#blimp-slopes table.sortable >> nth=0 >> thead th").first
    header.locator("button").focus()
    for _ in range(place - 1):
        page.keyboard.press("Shift+Tab")  # back to the first column, as a reader without a mouse would go
    page.keyboard.press("Enter")
    assert first.get_attribute("aria-sort") == "ascending"
    assert header.get_attribute("aria-sort") is None
    assert column(page, 1) == sorted(column(page, 1), key=str.lower)
    page.keyboard.press("Space")
    assert first.get_attribute("aria-sort") == "descending"
    interval = page.locator("#blimp-slopes table.sortable >> nth=0 >> thead th", has_text="Interval")
    interval.locator("button").click()
    lower = [
        float(text[1:].partition(",")[0].replace("\N{MINUS SIGN}", "-"))
        for text in column(page, 1 + interval.evaluate("(th) => th.cellIndex"))
    ]
    assert lower == sorted(lower, reverse=True)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_table_is_searched_and_filtered_by_keyboard(browser, report, width, scheme):
    open_page = OpenPage(browser, report, width, scheme)
    page = open_page.page
    page.context.set_offline(True)
    errors = page.locator("#blimp-errors")
    errors.locator("input").focus()

    def visible_rows():
        return [row.split(" ")[0] for row in errors.locator("tbody tr:visible td:nth-child(2)").all_inner_texts()]

    def count():
        return errors.locator("output").inner_text()

    assert visible_rows() == ["lstm_tiny", "txl_tiny", "txl_tiny"]
    assert count() == "3 of 3 rows"
    page.keyboard.type("TXL_tiny hid")
    assert visible_rows() == ["txl_tiny", "txl_tiny"]
    page.keyboard.press("Tab")  # to the choice of paradigms
    page.keyboard.press("Tab")
    phenomenon = errors.locator("select").nth(1)
    assert phenomenon.evaluate("(field) => field === document.activeElement")
    assert phenomenon.locator("option").all_inner_texts() == ["all", "Anaphor agreement", "Island effects"]
    page.keyboard.type("Isl")
    assert visible_rows() == ["txl_tiny"]
    assert count() == "1 of 3 rows"
    assert errors.locator("tbody tr:visible").inner_text().count("<b>that</b>") == 1
    assert errors.locator("select").first.locator("option").all_inner_texts() == ["all", "Wh island"]
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("nowhere")
    assert (visible_rows(), count()) == ([], "0 of 3 rows")
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    phenomenon.select_option("all")
    assert count() == "3 of 3 rows"
    field = errors.locator("input").bounding_box()
    assert field["height"] >= 40  # a finger's width
    assert field["x"] + field["width"] <= width
    assert (open_page.overflow, open_page.console) == (0, [])
    page.context.close()


@pytest.mark.parametrize(("width", "in_legend"), [(1280, 0), (390, 2)])
def test_lines_have_labels_beside_them_or_a_legend_on_a_phone(browser, report, width, in_legend):
    open_page = OpenPage(browser, report, width)
    chart = open_page.page.locator("#blimp-lengths svg.marks")
    names = chart.locator("text", has_text=re.compile("^(mean_)?lp$"))
    assert sorted(names.all_text_contents()) == ["lp", "mean_lp"]
    assert chart.locator(".role-legend-label text").count() == in_legend
    frame = chart.bounding_box()
    texts = [text.bounding_box() for text in chart.locator("text:visible").all()]
    assert all(frame["x"] <= box["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"] + 1 for box in texts)
    ticks = [text.bounding_box() for text in chart.locator(".role-axis-label text:visible").all()]
    for one, other in itertools.combinations([box for box in ticks if box["width"]], 2):
        apart = other["x"] >= one["x"] + one["width"] or one["x"] >= other["x"] + other["width"]
        assert apart or abs(one["y"] - other["y"]) >= 10
    panels = open_page.page.locator('[data-chart="blimp-curve-0"]')
    assert panels.locator(".role-legend-label").count() == 0  # the page has their legend
    open_page.page.context.close()


@pytest.mark.parametrize("kind", ["CSV", "LaTeX", "SVG", "PNG"])
def test_a_table_or_figure_can_be_downloaded(open_page, report, tmp_path, kind):
    with open_page.page.expect_download() as started:
        open_page.page.locator("#blimp-slopes .files a", has_text=re.compile(f"^{kind}$")).click()
    name = started.value.suggested_filename
    assert name == f"blimp-slopes.{ {'LaTeX': 'tex'}.get(kind, kind.lower()) }"
    started.value.save_as(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    beside = (report.parent / name).read_bytes()
    if kind == "PNG":  # drawn by the browser
        assert content.startswith(b"\x89PNG")
        drawn, file = (Image.open(io.BytesIO(png)) for png in (content, beside))
        assert drawn.size == pytest.approx(file.size, abs=4)
        assert len(drawn.convert("RGB").getcolors(2**24)) > 20  # no empty sheet
        return
    assert content == beside
    if kind == "CSV":
        rows = list(csv.DictReader(content.decode().splitlines()))
        assert {row["group"] for row in rows} == {"lstm_tiny", "txl_tiny"}
    else:
        assert content.startswith({"LaTeX": b"% needs", "SVG": b"<svg"}[kind])


def test_the_first_screen_has_question_findings_warnings_and_figure(browser, report):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(report.as_uri())
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


def test_the_contents_are_a_menu_on_a_phone(browser, report):
    open_page = OpenPage(browser, report, 390, touch=True)
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


def test_a_long_table_is_folded_and_a_second_interval_is_shown_on_demand(open_page):
    table = open_page.page.locator("#blimp-paradigms .tabular")
    assert (table.locator("tbody tr").count(), table.locator("tbody tr:visible").count()) == (12, 6)
    table.locator("button.more").press("Enter")
    assert table.locator("tbody tr:visible").count() == 12
    second = table.locator("th", has_text="new pairs too")
    assert not second.is_visible()
    table.locator("button.further").press("Enter")
    assert second.is_visible()


def test_names_and_headings_stay_in_sight_of_a_wide_table(browser, report):
    open_page = OpenPage(browser, report, 390)
    scroll = open_page.page.locator("#blimp-paradigms .scroll")
    scroll.locator("xpath=..").locator("button.more").click()
    scroll.evaluate("(box) => { box.style.maxHeight = '200px'; box.scrollTo(200, 150); }")
    frame = scroll.bounding_box()
    assert scroll.evaluate("(box) => [box.scrollLeft, box.scrollTop]") == [200, 150]
    name = scroll.locator("tbody tr:nth-child(9) th").bounding_box()
    assert name["x"] == pytest.approx(frame["x"], abs=2)
    heading = scroll.locator("thead th").first.bounding_box()
    assert (heading["x"], heading["y"]) == pytest.approx((frame["x"], frame["y"]), abs=2)
    open_page.page.context.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_axe_finds_nothing_to_mend(browser, report, width, scheme):
    open_page = OpenPage(browser, report, width, scheme, touch=width == 390)
    page = open_page.page
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    for button in page.locator(".more, .further, .legend button:first-child").all():
        button.click()
    assert {rule["id"]: rule["nodes"][0]["html"] for rule in Axe().run(page).response["violations"]} == {}
    page.context.close()


def test_a_tooltip_is_readable_on_a_dark_page(browser, report):
    open_page = OpenPage(browser, report, 1280, "dark")
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


def test_the_printed_report_is_complete(open_page, report, tmp_path):
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


def test_studies_are_compared_in_one_page(browser, tmp_path):
    """Two studies of one configuration are distinguished by name and share panels, a legend and links."""
    for number, name in enumerate(("first", EVIL.replace("/", "") + "second")):
        SimulatedStudy(pairs=20, name=name, models=("lstm_tiny",), seeds=(2 * number + 1, 2 * number + 2)).write(
            tmp_path / "runs", seed=number
        )
    names = ["first", EVIL.replace("/", "") + "second"]
    both = combine([collect(tmp_path / "runs", name) for name in names])
    judged = judgements(both, "blimp", "lp", "wrong")
    curves = fit_curves(judged, CONFIG)
    curves.slopes = with_published(curves.slopes, judged.runs, "blimp")
    tables = curve_tables(judged, read_published("blimp"), CONFIG)
    section = Section(judged, curves, read_published("blimp"))
    together = [overview_exhibit(section, 0.95), phenomena_exhibit(section, 0.95), common_sizes_exhibit(judged, curves)]
    section.first = [*together, *curve_exhibits(tables, 0.95)]
    section.findings = comparisons(tables["slope-differences"], section.curves.slopes, "words", 0.95)
    (tmp_path / "reports" / "first").mkdir(parents=True)
    (tmp_path / "reports" / "first" / "report.html").write_text("its own")
    path = write_report(tmp_path / "reports" / "both", report_of(section, name=both.name))
    for width in (1280, 390):
        open_page = OpenPage(browser, path, width, "dark")
        assert open_page.console == []
        assert open_page.overflow == 0
        charts = json.loads(re.search(r'id="charts">(.*?)</script>', path.read_text(), re.DOTALL)[1])
        assert open_page.charts == len(charts)
        assert sum(name.startswith("blimp-together-") for name in charts) == 3  # three phenomena
    page = open_page.page
    button = page.locator("#blimp-together .legend button", has_text="first")
    button.click()
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-chart="blimp-together-2"] .mark-line path')]
             .filter((line) => Number(line.getAttribute("opacity") ?? 1) > 0.15).length === 1"""
    )
    assert min(opacities(page, "blimp-curve-0").values()) > FADED  # another section's panels stay as they were
    page.locator(".studies a").click()
    assert page.inner_text("body") == "its own"
