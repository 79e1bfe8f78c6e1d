"""The report and its command: complete, self-contained, with text from data escaped."""

import dataclasses
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pandas as pd
import pytest

from analysis.config import FigureConfig
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.sentences.curves import warnings
from analysis.exhibits.tables.text import as_it_is
from analysis.report.curves import curve_items
from analysis.report.report import write_report
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from eval.scores.files import score_path
from tests.support.commands import run_command
from tests.support.simulated_section import CONFIG, EVIL, report_of, section_of
from tests.support.simulated_study import SimulatedStudy


class Page(HTMLParser):
    """Tags, attributes and visible text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self.scripts, self._inside = [], [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text.append(data)

    @property
    def visible(self):
        return " ".join(" ".join(self.text).split())


def page_of(folder, *sections):
    path = write_report(folder, report_of(*sections, commands=["python -m eval -m experiment=simulated"]))
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return the page of the usual simulated study's report, and its folder."""
    folder = tmp_path_factory.mktemp("study")
    return page_of(folder / "report", section_of(folder / "runs", unk_share=0.3)), folder / "report"


@pytest.mark.slow
def test_the_report_has_its_sections_figures_and_downloads(report):
    page, folder = report
    for text in (
        "16 runs: 2 curves, 4 sizes from 125k to 1M words, seeds 1 and 2", "overall accuracy rises over",
        "Anaphor agreement", "+.0623", "Accuracy at the largest size", ".917", ".886", "Slopes without unknown words",
        "pairs with <unk>", "multiplies perplexity by", "t interval", "new samples of text and new initialisations",
        "be" * 8, "1234567890", "torch 2.13.0", "python -m eval -m experiment=simulated",
        "python -m analysis study=simulated", "people_correlation=null", "Warstadt et al. 2020",
        "runs left out (CSV)",
    ):  # fmt: skip
        assert text in page.visible, text
    charts = json.loads(page.scripts[0])
    drawn = {attributes["data-chart"] for _, attributes in page.tags if "data-chart" in attributes}
    shown = {"curve-0", "curve-1", "slopes", "perplexity-runs", "correlations-matrix", "vocabulary-unk"}
    shown |= {"vocabulary-unequal_unk", "vocabulary-ties", "without-unk-slopes"}
    assert drawn == set(charts) == {f"blimp-{name}" for name in shown}
    linked = {
        attributes["href"] for tag, attributes in page.tags if tag == "a" and not attributes["href"].startswith("#")
    }
    assert linked
    for name in linked:
        assert (folder / name).stat().st_size > 0
    names = {path.name for path in folder.iterdir()}
    assert {"blimp-slopes.tex", "blimp-slopes-without-unk.csv", "blimp-curves.svg", "blimp-curves.png"} < names


@pytest.mark.slow
def test_the_table_of_slopes_is_for_a_column_and_its_caption_in_plain_words(tmp_path):
    section = section_of(tmp_path / "runs")
    for width, table in (("3.3in", "table"), ("6.9in", "table*")):
        config = dataclasses.replace(CONFIG, figure=FigureConfig(width=width))
        write_report(tmp_path / width, report_of(section, config=config))
        file = tmp_path / width / "blimp-slopes.tex"
        assert f"\\begin{{{table}}}" in file.read_text()
    caption = re.search(r"caption\{(.*)\}", file.read_text())[1]
    assert caption == (
        r"Accuracy on BLiMP gained per doubling of the training text, with 95\% intervals for new "
        r"runs on these pairs (t intervals). A pair counts as right where the good sentence has the higher "
        "log-probability; a tie counts as wrong."
    )


@pytest.mark.slow
def test_limits_that_no_curve_has_are_not_explained(tmp_path):
    section = section_of(tmp_path / "runs")
    explained = {"Band", "95% interval", "New pairs too"}

    def shown():
        items = curve_items(section, report_of(section))
        columns = [column["name"].capitalize() for item in items for column in item["columns"]]
        return {*columns, *(term for item in items for term in item["definitions"])}

    assert explained <= shown()
    section.curves.slopes[["low", "high", "low_new_pairs", "high_new_pairs"]] = float("nan")
    section.curves.lines[["low", "high"]] = float("nan")
    assert not explained & shown()
    write_report(tmp_path / "report", report_of(section))
    assert "interval" not in (tmp_path / "report" / "blimp-slopes.tex").read_text()


def test_links_within_the_page_lead_to_one_place_each(report):
    page, _ = report
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inner = {attributes["href"][1:] for tag, attributes in page.tags if tag == "a" and attributes["href"][:1] == "#"}
    assert len(inner) > 10
    assert {unquote(name) for name in inner} <= set(ids)


def test_the_report_needs_no_network(report):
    page, _ = report
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "img")
        assert "src" not in attributes
        assert "://" not in attributes.get("href", "")
    policy = [attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes]
    assert policy[0].startswith("default-src 'none'")
    assert "vegaEmbed" in page.scripts[2]


def test_a_column_that_is_hidden_at_first_is_so_from_head_to_foot(tmp_path):
    table = pd.DataFrame({"curve": ["a", "b"], "share": [0.5, 0.25], "caution": ["few runs", ""]})
    section = section_of(tmp_path / "runs")
    cells = dict.fromkeys(("curve", "caution"), as_it_is)
    section.exhibits = [Exhibit("hidden", "Hidden", "About.", table, cells=cells, optional=["share", "caution"])]
    text = write_report(tmp_path / "report", report_of(section, commands=[])).read_text(encoding="utf-8")
    (body,) = re.findall(r'id="blimp-hidden-table">(.*?)</table>', text, flags=re.DOTALL)
    assert len(re.findall(r'<t[hd][^>]* class="[^"]*optional"', body)) == 2 * 3


def test_text_from_data_is_escaped(tmp_path):
    phenomena = {EVIL: (2, 0.6, 0.05), "=cmd|' /C calc'!A0": (1, 0.5, 0.0)}
    section = section_of(tmp_path / "runs", phenomena=phenomena, models=("lstm_tiny",))
    section.judged.problems.loc[0] = [EVIL, "failed", EVIL]
    page = page_of(tmp_path / "report", section)
    assert len(page.scripts) == 4  # charts, files, Vega, ours
    assert "alert(1)" not in page.scripts[2] + page.scripts[3]
    assert "<" not in page.scripts[0]
    assert "alert(1)" in page.visible
    assert "\n=cmd" not in (tmp_path / "report" / "blimp-paradigms.csv").read_text()


def test_missing_runs_and_overlapping_samples_are_warned_of(tmp_path):
    study = SimulatedStudy(pairs=10, overlap=0.7)
    folders = study.write(tmp_path)
    score_path(folders[0].scores("blimp"), "lp").unlink()
    expected = {folder.path.name: "" for folder in folders} | {"a-4M": "sample.size=4M", "b-4M": "sample.size=4M"}
    collected = collect(tmp_path, "simulated", expected)
    text = " ".join(warnings(judgements(collected, "blimp", "lp", "wrong"), "wrong"))
    assert "3 runs not in these curves: 2 missing and 1 unscored" in text
    assert "70% at 125k words" in text
    assert "no scored run at 125k words with seed 1" in text


def test_runs_on_the_same_text_are_warned_of(tmp_path):
    folders = SimulatedStudy(pairs=10, models=("lstm_tiny",)).write(tmp_path)
    text = " ".join(warnings(judgements(collect(tmp_path, "simulated"), "blimp", "lp", "wrong"), "wrong"))
    assert "very same text" not in text
    manifests = [folder.read_manifest()["corpus"] for folder in folders[:2]]
    for folder, corpus in zip(folders[:2], manifests, strict=True):
        folder.update_manifest(corpus=corpus | {"sample": manifests[0]["sample"]})
    text = " ".join(warnings(judgements(collect(tmp_path, "simulated"), "blimp", "lp", "wrong"), "wrong"))
    assert "trained on the same text (lstm_tiny at 125k words)" in text


def test_a_report_says_that_it_has_few_runs(tmp_path):
    one = section_of(tmp_path / "one", models=("lstm_tiny",), sizes=("1M",), seeds=(1,))
    page = page_of(tmp_path / "report", one)
    assert "one size only: no slope" in page.visible
    assert "blimp-slopes" not in json.loads(page.scripts[0])
    assert "Without an interval: lstm_tiny (one size only: no slope)." in page.visible


@pytest.mark.slow
def test_several_benchmarks_have_their_own_sections_in_one_report(tmp_path):
    sections = [section_of(tmp_path / name, name, models=("lstm_tiny",)) for name in ("blimp", "toy")]
    page = page_of(tmp_path / "report", *sections)
    assert {"blimp-curve-0", "toy-curve-0"} < set(json.loads(page.scripts[0]))
    toy = page.visible.partition("toy, 120 pairs")[2]
    assert "published" not in toy.partition("Methods")[0].lower()


@pytest.mark.slow
def test_the_command_writes_the_report(tmp_path):
    """The study's experiment declares other runs than the study has."""
    SimulatedStudy(pairs=10, name="demo", models=("lstm_tiny",)).write(tmp_path / "runs")
    done = run_command("analysis", "study=demo", f"paths.runs={tmp_path}/runs", f"paths.reports={tmp_path}/reports")
    assert done.returncode == 0, done.stderr
    assert "Anaphor agreement" in done.stdout
    assert re.search(r"\d+ missing", done.stderr)
    assert re.search(r"report: .*report\.html", done.stdout)
    table = pd.read_csv(tmp_path / "reports" / "demo" / "blimp-slopes.csv")
    assert len(table) == 4


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ((), "study=null: name a study"),
        (("study=simulated", "benchmark=climp"), "no run has scores of benchmark=climp; scores there: blimp"),
    ],
)
def test_a_mistake_of_the_user_gives_a_message_of_one_line(tmp_path, overrides, message):
    SimulatedStudy(pairs=10, sizes=("125k",), models=("lstm_tiny",)).write(tmp_path / "runs")
    done = run_command("analysis", *overrides, f"paths.runs={tmp_path}/runs", f"paths.reports={tmp_path}/reports")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
