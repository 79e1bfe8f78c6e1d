"""docs/guides/extending.md: its plug-in is installed, trained, scored and reported."""

import re
import shlex
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from eval import load_scorer
from eval.scores.files import read_metadata
from pairscale import environment
from pairscale.errors import RunError
from tests.support import ROOT

PAGE = (ROOT / "docs" / "guides" / "extending.md").read_text(encoding="utf-8")
TINY = [
    "corpus.words=20000", "recipe.validation_words=200", "recipe.budget.epochs=1",
    "trainer.accelerator=cpu", "pool.jobs=1",
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
        run(plugin, command, *words, *(TINY if "-m" in words else []))
    folders = sorted(path.parent.name.partition("-")[0] for path in (plugin / "runs" / "mine").glob("*/config.yaml"))
    assert folders == ["convolution_tiny", "convolution_tiny", "normed_tiny", "normed_tiny"]
    assert len(list(plugin.glob("runs/mine/convolution*/scores/slashes/lp.parquet"))) == 2
    scores = list(plugin.glob("runs/mine/normed*/scores/slashes/*.parquet"))
    (power,) = {read_metadata(path)["parameters"]["exponent"] for path in scores if path.stem == "per_token_power"}
    assert (power, "lp" in {path.stem for path in scores}) == (3.0, True)
    assert len(list(plugin.glob("runs/mine/normed*/scores/verbs/cloze.parquet"))) == 2
    points, _ = plugin.glob("runs/mine/normed*/points.jsonl")
    assert "valid_ppl" in points.read_text()
    code = f"from eval import load_scorer; load_scorer({str(scores[0].parents[2])!r}).score(['The cats sleep .'])"
    subprocess.run([sys.executable, "-c", code], cwd=plugin, env=variables(plugin), check=True, timeout=200)
    report = (plugin / "reports" / "mine" / "report.html").read_text()
    assert "Runs per size" in report
    assert "The diagnostic verbs." in report


@pytest.mark.slow
def test_an_architecture_of_a_plugin_trains_on_two_devices_and_its_runs_name_it(plugin):
    run(plugin, "train", "--config-dir", "my_conf", "corpus=toy", "model=normed_tiny", "sample.size=4k", "study=two",
        "trainer.devices=2", *TINY)  # fmt: skip
    (folder,) = plugin.glob("runs/two/normed*")
    with pytest.raises(RunError, match=r"no architecture 'normed'; available: lstm, gru, .*; install the plug-in"):
        load_scorer(folder)


def test_the_convolution_of_the_page_reads_a_text_at_once_and_token_by_token_alike(plugin):
    code: dict = {}
    exec((plugin / "my_pairscale" / "convolution.py").read_text(), code)
    torch.manual_seed(0)
    model = code["Convolution"](SimpleNamespace(channels=8, width=3, layers=2, dropout=0.1), 20).eval()
    tokens = torch.randint(20, (2, 9))
    state, rows = model.initial_state(2), []
    for column in tokens.split(1, dim=1):
        hidden, state = model(column, state)
        rows.append(hidden)
    whole, after = model(tokens, model.initial_state(2))
    torch.testing.assert_close(whole, torch.cat(rows, dim=1))
    torch.testing.assert_close(after, state)
