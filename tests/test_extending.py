"""docs/guides/extending.md: its plug-in is installed, trained, scored and reported."""

import re
import shlex
import subprocess
import sys

import pytest

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


# Trains a convolution in two folders, in the second with a stop in the middle, and scores its run.
CONVOLUTION = """
import os
import sys
from pathlib import Path
import torch
from eval import load_scorer
from eval.scores.files import read_metadata
from pairscale.command.compose import compose
from tests.bench.stages import contents, difference
from train.loop.training import LanguageModelling
from train.models.base import LanguageModel
from train.run import corpus_of, train_run
from train.runs.model_folder import load_model

here = Path.cwd()

def train(name):
    (here / name).mkdir(exist_ok=True)
    os.chdir(here / name)
    own = ["--config-dir", f"{here}/my_conf", f"paths.store={here}/store"]
    config = compose("train", [*own, *sys.argv[1:]])
    return train_run(config, corpus_of(config))

class Stopped(Exception):
    pass

step_end = LanguageModelling.on_train_batch_end

def end(self, *arguments):
    step_end(self, *arguments)
    if self.state.step == 15:
        raise Stopped

whole = train("whole")
expected = contents(whole.path)
LanguageModelling.on_train_batch_end = end
try:
    train("stopped")
except Stopped:
    pass
else:
    raise AssertionError("the run was not stopped")
LanguageModelling.on_train_batch_end = step_end
resumed = train("stopped")
found = difference(expected, contents(resumed.path))
assert found is None, found

loaded = load_model(resumed.model)
model = loaded.model
assert type(model).read_trees is LanguageModel.read_trees
texts = ["The cats sleep .", "The cats sleep near a dog .", "Who slept ?", "The cats ."]
scores = load_scorer(resumed.path).score(texts)
for text, score in zip(texts, scores, strict=True):
    ids = [0, *loaded.tokenizer.encode_raw(text)[0], 0]  # <eos> is 0
    with torch.no_grad():
        state, expected = model.initial_state(1), 0.0
        for token, following in zip(ids, ids[1:]):
            hidden, state = model(torch.tensor([[token]]), state)
            logits = hidden[0, 0] @ model.output_weight.T + model.output_bias
            expected += float(logits.double().log_softmax(-1)[following])
    assert abs(expected - score.logprobs.sum()) < 1e-4, (text, expected, score)
"""


def variables(plugin):
    return environment() | {"PYTHONPATH": f"{environment()['PYTHONPATH']}:{plugin}"}


def run(plugin, *words):
    run_python(plugin, "-m", "pairscale", *words)


def run_python(plugin, *words):
    command = [sys.executable, "-P", *words]
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
    assert "the diagnostic verbs" in report.lower()


@pytest.mark.slow
def test_an_architecture_of_a_plugin_trains_on_two_devices_and_its_runs_name_it(plugin):
    run(plugin, "train", "--config-dir", "my_conf", "corpus=toy", "model=normed_tiny", "sample.size=4k", "study=two",
        "trainer.devices=2", *TINY)  # fmt: skip
    (folder,) = plugin.glob("runs/two/normed*")
    with pytest.raises(RunError, match=r"no architecture 'normed'\. Install the plug-in .* lstm, gru, "):
        load_scorer(folder)


@pytest.mark.slow
def test_the_convolution_of_the_page_resumes_exactly_and_scores_as_reading_token_by_token_does(plugin):
    run_python(plugin, "-c", CONVOLUTION, "corpus=toy", "model=convolution_tiny", "sample.size=4k", "study=conv",
               "recipe.checkpoint_every=500", "recipe.bptt=20", *TINY)  # fmt: skip
