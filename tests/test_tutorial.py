"""docs/tutorial.md: its files are written and its commands run, in its order, on a small text."""

import json
import lzma
import re
import shlex

import pytest

from tests.support import ROOT
from tests.support.commands import run_command

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
SMALLER = {
    "25k, 50k, 100k, 200k": "2k, 8k",
    "pairs: 100": "pairs: 2",
    "pairs=100": "pairs=2",
    "min_count=5": "min_count=1",
    "=4000": "=800",
    ": 4000": ": 800",
}
QUICK = ["trainer.accelerator=cpu", "recipe.budget.epochs=1", "recipe.validation_words=200"]


def smaller(text):
    for size, less in SMALLER.items():
        text = text.replace(size, less)
    return text


@pytest.fixture
def folder(tmp_path, real_data):
    """Return a folder with a small text and the files that the page shows."""
    with lzma.open(real_data / "text" / "english.txt.xz", "rt", encoding="utf-8") as lines:
        text = "".join(line for line, _ in zip(lines, range(20_000), strict=False))
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    for name, block in re.findall(r"`(my_conf/\S+|pairs\.csv)`:\n\n```\w+\n(.*?)```", PAGE, flags=re.DOTALL):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(smaller(block), encoding="utf-8")
    return tmp_path


@pytest.mark.release
def test_the_tutorial_runs(folder):
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    for number, line in enumerate(lines):
        if line in lines[number + 1 :]:
            continue  # the analysis is repeated after each change: the last time has them all
        python, option, *words = shlex.split(smaller(line), comments=True)
        assert (python, option) == ("python", "-m")
        done = run_command(*words, *(QUICK if "experiment=first" in words else []), folder=folder)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    manifests = [json.loads(path.read_text()) for path in folder.glob("runs/first/*/manifest.json")]
    assert len(manifests) == 2 * (2 + 1 + 2)  # sizes x (two seeds, a third, both untied)
    report = (folder / "reports" / "first" / "report.html").read_text(encoding="utf-8")
    assert "tied" in report
    assert len(list((folder / "reports" / "first").rglob("*.pdf"))) > 2
