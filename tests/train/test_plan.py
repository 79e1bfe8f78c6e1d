"""What a sweep would take: the table, its sums, and the guesses that it rests on."""

import re
import subprocess
import sys

import pytest
import torch

from corpora.prepare import prepare
from eval.__main__ import plan as planned_by_eval
from eval.__main__ import planned
from eval.sweeps import points
from pairscale.command.compose import compose
from pairscale.command.errors import describe
from pairscale.errors import InputError
from tests.support import ROOT
from tests.support.commands import run_command
from tests.support.expected_runs import expected_runs
from train.estimate import PROCESS_BYTES, activation_bytes, estimate
from train.loop.batches import Batches
from train.models.build import build_model
from train.plan import Plan, Planned
from train.runs.folder import RunFolder
from train.runs.identity import run_id

GIVEN = "dry_run_words_per_s={lstm_tiny:10000,txl_tiny:5000}"


@pytest.fixture
def paths(tmp_path):
    return [f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs"]


def test_hours_are_those_of_the_words_and_the_given_speed(paths):
    """By hand: lstm_tiny sees each word 5 times, txl_tiny 2.5 times; 3 s to start a run."""
    plan = Plan()
    for _, _, config in points("train", ["experiment=demo", GIVEN, *paths]):
        plan.add(Planned(config, estimate(config)))
    assert len(plan.runs) == 16
    words = 2 * (16_000 + 32_000 + 64_000 + 128_000)
    expected = 16 * 3 + 5 * words / 10_000 + 2.5 * words / 5_000
    assert sum(run.seconds for run in plan.runs) == pytest.approx(expected, rel=0.02)  # steps are whole
    assert [(label, size, len(runs)) for label, size, runs in plan.cells()] == [
        (model, size, 2) for model in ("lstm_tiny", "txl_tiny") for size in ("16k", "32k", "64k", "128k")
    ]
    told = plan.totals()[0]
    assert told.startswith("16 runs (0 done already), 3.6M words seen")


@pytest.mark.parametrize(
    ("gpus", "words", "told"),
    [
        (0, [], "; on 2 cores, a run on each, about "),
        (1, [], None),  # runs go one to a GPU
        (1, ["trainer.accelerator=cpu"], "; on 2 cores, a run on each, about "),
    ],
)
def test_hours_of_runs_side_by_side_are_those_of_runs_on_cores(paths, monkeypatch, gpus, words, told):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr("train.loop.device.available_cores", lambda: 2)
    plan = Plan()
    for seed in (1, 2, 3):
        config = compose("train", ["experiment=demo", "model=lstm_tiny", f"seed={seed}", GIVEN, *words, *paths])
        plan.add(Planned(config, estimate(config)))
    line, memory, *_ = plan.totals()
    assert "idle" not in line
    assert told in line if told else "a run on each" not in line
    together = f": 2 at a time take up to {2 * plan.runs[0].memory_bytes / 2**20:,.0f} MiB"
    assert (together in memory) is (told is not None)


def test_a_done_run_takes_nothing_more(paths):
    config = compose("train", ["corpus=toy", "model=lstm_tiny", "sample.size=2k", "dry_run_words_per_s=1000", *paths])
    before = Planned(config, estimate(config))
    RunFolder.of(config).update_manifest(status="done")
    after = Planned(config, estimate(config))
    assert before.seconds > 3
    assert after.seconds == 0
    plan = Plan()
    plan.add(after)
    plan.add(after)  # a grid that names a run twice
    assert len(plan.runs) == 1


def test_points_of_a_sweep_are_hydras(paths):
    """The same runs as composing each by itself: of the grid of an experiment that the command line changes."""
    asked = ["experiment=demo", "model=lstm_tiny", "seed=1,2,3", "model.dropout=0,0.5", "recipe.lr=1e-3", *paths]
    found = [RunFolder.of(config).path.name for _, _, config in points("train", asked)]
    fixed = ["experiment=demo", "model=lstm_tiny", "recipe.lr=1e-3", *paths]
    alone = {
        run_id(compose("train", [*fixed, f"seed={seed}", f"model.dropout={rate}", f"sample.size={size}"]))
        for seed in (1, 2, 3)
        for rate in ("0", "0.5")
        for size in ("16k", "32k", "64k", "128k")
    }  # fmt: skip
    assert len(found) == 24
    assert set(found) == alone
    assert set(expected_runs("demo")) == {
        RunFolder.of(config).path.name for _, _, config in points("train", ["experiment=demo"])
    }


def test_activations_of_an_lstm_grow_with_its_tokens():
    """At least four gates, the cell and the output of each layer and token; a fixed part for weights besides."""
    model = ["corpus=toy", "model=lstm_tiny", "model.dropout=0"]
    one, two, three = (
        activation_bytes(compose("train", [*model, f"recipe.batch={columns}", "recipe.bptt=50"]), 500)
        for columns in (8, 16, 24)
    )
    assert three - two == two - one
    assert two - one >= 4 * 8 * 50 * 128 * 2 * 6


@pytest.mark.parametrize("more", [[], ["model.cutoffs=[100]", "model.div_val=2"]])
def test_activations_are_what_a_real_step_keeps(more):
    config = compose("train", ["corpus=toy", "model=txl_tiny", "recipe.batch=16", "recipe.bptt=70", *more])
    net = build_model(config.model, 500).train()
    weights = {parameter.untyped_storage().data_ptr() for parameter in net.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in weights:
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    tokens = torch.randint(500, (16, 70))
    _, state = net(tokens, net.initial_state(16))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        hidden, _ = net(tokens, state)
        loss = net.loss(hidden.flatten(0, 1), tokens.flatten())
    real = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    assert loss.isfinite()
    assert activation_bytes(config, 500) == pytest.approx(real, rel=0.1)


def test_guesses_for_chinese_are_not_those_of_english(paths, tmp_path):
    (tmp_path / "a.txt").write_text("a b\n")
    text = ["corpus=local", f"corpus.path={tmp_path}/a.txt", "dry_run_words_per_s=1000", "model=lstm_tiny", *paths]
    english = estimate(compose("train", [*text, "tokenizer=char", "sample.size=100k"]))
    chinese = estimate(compose("train", [*text, "corpus.reference=characters", "tokenizer=char", "sample.size=100k"]))
    assert english.guessed
    assert chinese.guessed
    assert 5 * 100_000 < english.tokens < 5.5 * 100_000
    assert 100_000 < chinese.tokens < 105_000  # a character is a token, and a sentence has 40
    by_sentence = ["corpus.reference=characters", "tokenizer=jieba", "sample.size=1k", "sample.count=sentences"]
    assert estimate(compose("train", [*text, *by_sentence])).words == 40_000


@pytest.mark.parametrize("given", ["0", "fast", "{lstm_tiny:-1}", "true"])
def test_a_speed_that_is_none_is_refused(given):
    with pytest.raises(Exception, match="dry_run_words_per_s") as caught:
        compose("train", [f"dry_run_words_per_s={given}"])
    assert "must be a number above 0" in (describe(caught.value) or "")


def test_training_is_planned_where_the_benchmark_is_not(paths, tmp_path):
    planned.runs.clear()
    try:
        overrides = ["corpus=toy", "model=lstm_tiny", "sample.size=2k", GIVEN, f"paths.data={tmp_path}", *paths]
        planned_by_eval(compose("eval", overrides))
        (run,) = planned.runs
        assert run.scoring_seconds == 0
        assert [note.startswith("scoring is not counted:") for note in planned.notes] == [True]
    finally:
        planned.runs.clear()
        planned.notes.clear()


def test_the_command_prints_one_table(paths):
    """Runs that are refused are said, and the others are planned all the same."""
    sizes = "sample.size=8k,16k,32k,64k,2"
    done = run_command("train", "-m", "experiment=demo", sizes, "dry_run=true", GIVEN, *paths)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "more columns than the sample has tokens" in done.stderr
    assert done.stdout.count("16 runs") == 1
    assert "10,000 words/s (given): lstm_tiny" in done.stdout
    assert "hours" in done.stdout.splitlines()[0] + done.stdout.splitlines()[1]
    lines = done.stdout.splitlines()
    assert all(len(line.split()) >= 8 for line in lines if line.startswith("  16k"))  # no column is cut in a pipe
    assert any(line.startswith("corpus toy: not prepared in") for line in lines)


def test_one_run_tells_its_corpus_its_memory_with_the_program_and_what_stays_on_the_disk(paths, capsys):
    plan = Plan()
    config = compose("train", ["corpus=toy", "model=lstm_tiny", "sample.size=2k", "dry_run_words_per_s=1000", *paths])
    found = estimate(config)
    plan.add(Planned(config, found))
    plan.show()
    printed = capsys.readouterr().out
    assert re.search(r"corpus +toy: not prepared in .*store/toy, about 14 MiB more to be prepared", printed)
    assert re.search(r"parameters, (\d+) MiB of memory in training, the program included", printed)
    assert found.memory_bytes > PROCESS_BYTES
    # fp32: what is exported, once; Adam's two moments and the weights in each of three checkpoints
    assert found.disk_bytes == 4 * found.parameters
    assert found.checkpoint_bytes == 3 * 3 * 4 * found.parameters


def test_a_program_without_a_model_takes_what_is_said_of_it():
    """Within a third: it depends on the machine."""
    code = "import train.run, eval.run, pandas, train.lightning_import as first; first.import_lightning()\n"
    # Not ru_maxrss, which begins with what the process of the tests took when it forked.
    code += (
        "import lightning, train.loop.module, re; print(re.search('VmHWM:(.*)kB', open('/proc/self/status').read())[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 == pytest.approx(PROCESS_BYTES, rel=1 / 3)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["corpus.path=nowhere.txt"], "corpus.path: no file nowhere.txt"),
        (["corpus.path=${paths.data}/a.txt", "paths.data=null"], "set PAIRSCALE_DATA to the folder that holds a.txt"),
    ],
)
def test_a_plan_without_its_text_is_refused(paths, given, told):
    config = compose("train", ["corpus=local", *given, "model=lstm_tiny", *paths])
    with pytest.raises(InputError, match=re.escape(told)):
        estimate(config)
    with pytest.raises(InputError, match=re.escape(told)):
        prepare(config)


def test_words_seen_at_the_end_are_the_budget(paths):
    """What hours are counted from."""
    config = compose("train", ["corpus=toy", "model=lstm_tiny", "sample.size=50k", "dry_run_words_per_s=1000", *paths])
    found = estimate(config)
    assert found.words_seen == pytest.approx(250_000, rel=0.01)
    assert found.steps == len(Batches(torch.zeros(found.tokens, dtype=torch.int32).numpy(), found.words, config.recipe))
