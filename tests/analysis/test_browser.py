"""The report in a real browser: desktop, phone and dark, sorting, links to files, and what axe finds."""

import pytest

from tests.support.browser import OpenPage, violations
from tests.support.commands import run_command
from tests.support.simulated_study import SimulatedStudy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    SimulatedStudy(pairs=20, unk_share=0.3).write(folder / "runs")
    words = ["study=simulated", "analysis.sections=all", f"paths.runs={folder}/runs", f"paths.reports={folder}/reports"]
    assert run_command("analysis", *words).returncode == 0
    return folder / "reports" / "simulated" / "report.html"


@pytest.mark.parametrize(
    ("width", "scheme", "touch"), [(1280, "light", False), (1280, "dark", False), (390, "light", True)]
)
def test_a_page_has_no_errors_no_overflow_and_nothing_that_axe_objects_to(browser, report_path, width, scheme, touch):
    page = OpenPage(browser, report_path, width, scheme, touch)
    assert page.console == []
    assert page.overflow == 0
    assert page.charts == page.page.locator(".chart").count() >= 6
    assert violations(page.page) == {}
    legend = page.page.locator(".first .chart .role-legend-label text").all_inner_texts()
    assert bool(legend) == (width < 460)  # else names stand beside the lines
    links = page.page.locator(".files a").evaluate_all(
        "(links) => links.map((link) => decodeURIComponent(link.getAttribute('href')))"
    )
    assert len(links) > 20
    assert all((report_path.parent / link).is_file() for link in links)
    page.page.context.close()


def test_tables_are_sorted_by_mouse_and_keyboard(browser, report_path):
    page = OpenPage(browser, report_path).page
    table = page.locator("#blimp-paradigms table")
    place = table.locator("thead th").all_inner_texts().index("slope") + 1
    values = lambda: [  # noqa: E731
        float(text.replace("\N{MINUS SIGN}", "-"))
        for text in table.locator(f"tbody tr > :nth-child({place})").all_text_contents()
    ]
    header = table.locator("thead th").nth(place - 1)
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    assert values() == pytest.approx(sorted(values(), reverse=True), abs=0.006)  # each has the digits of its interval
    header.locator("button").press("Enter")
    assert values() == pytest.approx(sorted(values()), abs=0.006)
    page.context.close()
