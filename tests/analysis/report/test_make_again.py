"""The commands of a report make its study, and the report, again."""

import html
import re
import shlex
import shutil

import pytest

from tests.support.commands import run_command

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
