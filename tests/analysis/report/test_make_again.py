"""The commands of a report make its study, and the report, again."""

import html
import re
import shlex
import shutil

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from analysis.report.context import analysis_command
from tests.support.commands import run_command
from tests.support.simulated_section import report_of, section_of

TINY = [
    "study=again", "model=lstm_tiny", "model.embedding=16", "model.hidden=16", "corpus=toy", "corpus.words=30000",
    "recipe.budget.epochs=1", "recipe.validation_words=200", "benchmark=toy", "benchmark.per_paradigm=3",
    "method=[lp]", "trainer.progress=false", "trainer.threads=1", "trainer.accelerator=cpu", "hydra/launcher=basic",
]  # fmt: skip


@pytest.mark.slow
def test_what_the_page_prints_makes_it_again(tmp_path):
    paths = [f"paths.{name}={tmp_path}/{name}" for name in ("store", "runs", "reports")]
    swept = run_command("eval", "-m", *TINY, *paths, "sample.size=1k,2k,4k", "seed=1,2")
    assert swept.returncode == 0, swept.stderr
    analysed = run_command("analysis", "study=again", "analysis.resamples=50", *paths)
    assert analysed.returncode == 0, analysed.stderr
    report = tmp_path / "reports" / "again"
    before = {path.name: path.read_bytes() for path in report.glob("*-slopes*.csv")}
    page = (report / "report.html").read_text(encoding="utf-8")
    printed = re.search(r'id="make-again".*?<pre>(.*?)</pre>', page, re.DOTALL)[1]
    commands = [shlex.split(line) for line in html.unescape(printed).strip().splitlines()]
    assert [words[:3] for words in commands] == [["python", "-m", "eval"], ["python", "-m", "analysis"]]

    for folder in ("runs", "reports"):
        shutil.rmtree(tmp_path / folder)
    for words in commands:
        done = run_command(*words[2:])
        assert done.returncode == 0, done.stderr
    assert before
    assert {path.name: path.read_bytes() for path in report.glob("*-slopes*.csv")} == before
    assert (report / "report.html").read_text(encoding="utf-8").count("<section") == page.count("<section")


@pytest.mark.parametrize("name", ["données", "my study (2)", "a"])
def test_the_printed_command_is_one_that_hydra_reads(tmp_path, name):
    section = section_of(tmp_path)
    report = report_of(section, name=name)
    report.config.paths.reports = "résultats"
    report.config.people = ["a.csv", "réponses,2.csv"]
    words = shlex.split(analysis_command(report))[3:]
    read = {one.key_or_group: one.value() for one in OverridesParser.create().parse_overrides(words)}
    assert read["study"] == name
    assert read["paths.reports"] == "résultats"
    assert read["people"] == ["a.csv", "réponses,2.csv"]
    assert read["analysis.figure"] == {"width": "6.9in", "height": None, "font_size": "8pt"}
