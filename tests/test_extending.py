"""docs/guides/extending.md: its plug-in is installed, trained, scored and reported."""

import re
import shlex
import subprocess
import sys

import pytest

from eval import load_scorer
from pairscale import environment
from pairscale.errors import RunError
from tests.support import ROOT

PAGE = (ROOT / "docs" / "guides" / "extending.md").read_text(encoding="utf-8")
TINY = [
    "corpus.words=20000", "recipe.validation_words=200", "recipe.budget.epochs=1",
    "trainer.accelerator=cpu", "hydra.launcher.jobs=1",
]  # fmt: skip


@pytest.fixture
def plugin(tmp_path):
    """Return a folder with the files of the page and the metadata of an installed distribution."""
    for path, text in re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", PAGE, flags=re.DOTALL):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    (entry,) = re.findall(r'entry-points\."pairscale\.plugins"\]\n(\w+ = )"(\w+)"\n', PAGE)
    (tmp_path / "my_pairscale-1.dist-info").mkdir()
    for name, text in (
        ("METADATA", "Metadata-Version: 2.1\nName: my-pairscale\nVersion: 1\n"),
        ("entry_points.txt", "[pairscale.plugins]\n" + "".join(entry)),
    ):
        (tmp_path / "my_pairscale-1.dist-info" / name).write_text(text)
    (tmp_path / "pairs.txt").write_text("The cats sleep . / The cats sleeps .\nThe boy sleeps . / The boy sleep .\n")
    (tmp_path / "questions").mkdir()
    questions = "item\tcontext\ttrue\tfalse\n1\tThe cats\tsleep\tsleeps\n2\tThe boy\tsleeps\tsleep\n"
    (tmp_path / "questions" / "verbs.tsv").write_text(questions)
    return tmp_path


def variables(plugin):
    return environment() | {"PYTHONPATH": f"{environment()['PYTHONPATH']}:{plugin}"}


def run(plugin, *words):
    command = [sys.executable, "-P", "-m", "pairscale", *words]
    done = subprocess.run(
        command, cwd=plugin, env=variables(plugin), capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_plugin_of_the_page_works(plugin):
    (block,) = re.findall(r"## Together\n\n```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines():
        _, command, *words = shlex.split(line)
        run(plugin, command, *words, *(TINY if "-m" in words else []), "analysis.resamples=20")
    folders = sorted(path.name.partition("-")[0] for path in (plugin / "runs" / "mine").glob("normed*"))
    assert folders == ["normed_tiny", "normed_tiny"]
    scores = list(plugin.glob("runs/mine/normed*/scores/slashes/*.parquet"))
    assert {path.stem for path in scores} >= {"lp", "per_token_squared"}
    assert len(list(plugin.glob("runs/mine/normed*/scores/verbs/cloze.parquet"))) == 2
    points, _ = plugin.glob("runs/mine/normed*/points.jsonl")
    assert "valid_ppl" in points.read_text()
    code = f"from eval import load_scorer; load_scorer({str(scores[0].parents[2])!r}).score(['The cats sleep .'])"
    subprocess.run([sys.executable, "-c", code], cwd=plugin, env=variables(plugin), check=True, timeout=200)
    report = (plugin / "reports" / "mine" / "report.html").read_text()
    assert "Runs of each size" in report
    assert "verbs has no published results to compare with." in report


@pytest.mark.slow
def test_an_architecture_of_a_plugin_trains_on_two_devices_and_its_runs_name_it(plugin):
    run(plugin, "train", "--config-dir", "my_conf", "corpus=toy", "model=normed_tiny", "sample.size=4k", "study=two",
        "trainer.devices=2", *TINY)  # fmt: skip
    (folder,) = plugin.glob("runs/two/normed*")
    with pytest.raises(RunError, match=r"no architecture 'normed'; available: lstm, gru, .*; install the plug-in"):
        load_scorer(folder)
