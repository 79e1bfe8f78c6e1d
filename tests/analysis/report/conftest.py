"""A report on a simulated study, and a page that shows it."""

import pandas as pd
import pytest

from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.methods import length_chart
from analysis.exhibits.tables.curves import curve_tables
from analysis.exhibits.tables.text import as_it_is
from analysis.report.report import write_report
from analysis.sections.curves import curve_exhibits
from analysis.sections.together import overview_exhibit, phenomena_exhibit
from tests.support.browser import OpenPage
from tests.support.simulated_section import CONFIG, report_of, section_of

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
    charts={"curve-0": lambda frame: length_chart(_LENGTHS, frame=frame)},
)


@pytest.fixture(scope="session")
def report_path(tmp_path_factory):
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
def open_page(browser, report_path):
    page = OpenPage(browser, report_path)
    yield page
    assert page.console == []
    page.page.context.close()
