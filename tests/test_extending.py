"""docs/extending.md: the plug-in that it builds is installed, trained, scored and reported as it stands there."""

import re
import shlex
import subprocess
import sys

import pytest

from pairscale import environment
from tests.support import ROOT

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
TINY = [
    "corpus.words=20000", "recipe.validation_words=200", "recipe.budget.epochs=1",
    "trainer.accelerator=cpu", "hydra.launcher.jobs=1",
]  # fmt: skip


@pytest.fixture
def plugin(tmp_path):
    """A folder with the files of the page, installed as far as importlib.metadata can see."""
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
    return tmp_path


@pytest.mark.slow
def test_the_plugin_of_the_page_works(plugin):
    (block,) = re.findall(r"## Together\n\n```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    variables = environment()
    variables["PYTHONPATH"] = f"{variables['PYTHONPATH']}:{plugin}"
    for line in block.replace("\\\n", " ").splitlines():
        _, command, *words = shlex.split(line)
        more = TINY if command == "eval" else []
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pairscale", command, *words, *more, "analysis.resamples=20"],
            cwd=plugin, env=variables, capture_output=True, text=True, timeout=500,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    folders = sorted(path.name.partition("-")[0] for path in (plugin / "runs" / "mine").glob("gru*"))
    assert folders == ["gru_tiny", "gru_tiny"]
    scores = list(plugin.glob("runs/mine/gru*/scores/slashes/*.parquet"))
    assert {path.stem for path in scores} >= {"lp", "per_token_squared"}
    (points, _) = plugin.glob("runs/mine/gru*/points.jsonl")
    assert "valid_ppl" in points.read_text()
    code = f"from eval import load_scorer; load_scorer({str(scores[0].parents[2])!r}).score(['The cats sleep .'])"
    subprocess.run([sys.executable, "-c", code], cwd=plugin, env=variables, check=True, timeout=200)
    assert "Runs of each size" in (plugin / "reports" / "mine" / "report.html").read_text()
