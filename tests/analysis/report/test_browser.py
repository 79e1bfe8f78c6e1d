"""The report in a real browser: legends, sorting, search, downloads and print, without console errors."""

import csv
import io
import itertools
import json
import re

import pytest
from PIL import Image

from analysis.curves.fit import fit_curves
from analysis.exhibits.sentences.findings import comparisons
from analysis.exhibits.tables.curves import curve_tables
from analysis.exhibits.tables.slopes import with_published
from analysis.report.report import write_report
from analysis.sections.curves import curve_exhibits
from analysis.sections.section import Section
from analysis.sections.together import common_sizes_exhibit, overview_exhibit, phenomena_exhibit
from analysis.study.collect import collect
from analysis.study.combine import combine
from analysis.study.judgements import judgements
from eval.published import read_published
from tests.support.browser import OpenPage, violations
from tests.support.simulated_section import CONFIG, EVIL, report_of
from tests.support.simulated_study import SimulatedStudy

pytestmark = pytest.mark.slow
FADED = 0.15  # opacity below which a line counts as faded


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


ROUNDING = 0.005  # each row has the digits of its own interval, and rows are in order of their whole values


def test_a_table_is_sorted_by_mouse_and_by_keyboard(open_page):
    page = open_page.page
    header = page.locator("#blimp-slopes table.sortable >> nth=0 >> thead th", has_text="Slope")
    place = 1 + header.evaluate("(th) => th.cellIndex")
    numbers = lambda: [float(text.replace("\N{MINUS SIGN}", "-")) for text in column(page, place)]  # noqa: E731
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    assert numbers() == pytest.approx(sorted(numbers(), reverse=True), abs=ROUNDING)
    assert len(set(numbers())) > 4
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert numbers() == pytest.approx(sorted(numbers()), abs=ROUNDING)
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
    assert lower == pytest.approx(sorted(lower, reverse=True), abs=ROUNDING)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_table_is_searched_and_filtered_by_keyboard(browser, report_path, width, scheme):
    open_page = OpenPage(browser, report_path, width, scheme)
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
def test_lines_have_labels_beside_them_or_a_legend_on_a_phone(browser, report_path, width, in_legend):
    open_page = OpenPage(browser, report_path, width)
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
def test_a_table_or_figure_can_be_downloaded(open_page, report_path, tmp_path, kind):
    with open_page.page.expect_download() as started:
        open_page.page.locator("#blimp-slopes .files a", has_text=re.compile(f"^{kind}$")).click()
    name = started.value.suggested_filename
    assert name == f"blimp-slopes.{ {'LaTeX': 'tex'}.get(kind, kind.lower()) }"
    started.value.save_as(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    beside = (report_path.parent / name).read_bytes()
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


def test_a_long_table_is_folded_and_a_second_interval_is_shown_on_demand(open_page):
    table = open_page.page.locator("#blimp-paradigms .tabular")
    assert (table.locator("tbody tr").count(), table.locator("tbody tr:visible").count()) == (12, 6)
    table.locator("button.more").press("Enter")
    assert table.locator("tbody tr:visible").count() == 12
    second = table.locator("th", has_text="new pairs too")
    assert not second.is_visible()
    table.locator("button.further").press("Enter")
    assert second.is_visible()


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
    assert violations(page) == {}
    page.locator(".studies a").click()
    assert page.inner_text("body") == "its own"
