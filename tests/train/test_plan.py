"""The plan of a sweep: its table, its totals, and the estimates behind them."""

import pytest
import torch

from corpora.prepare import prepare
from eval.__main__ import plan as planned_by_eval
from eval.__main__ import planned
from pairscale.command.compose import compose
from pairscale.command.errors import describe
from pairscale.command.line import Line
from pairscale.errors import InputError
from tests.support.commands import run_command
from train.config import run_id
from train.estimate import PROCESS_BYTES, estimate, saved_of_row
from train.loop.batches import Columns
from train.models.build import build_model
from train.plan import Plan
from train.runs.folder import RunFolder
from train.sweeps import points

SPEEDS = "dry_run_words_per_s={lstm_tiny:10000,lstm_demo:10000,txl_demo:5000}"


@pytest.fixture
def paths(tmp_path):
    return [f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs"]


def test_hours_follow_from_words_seen_and_the_configured_speed(paths):
    """A run of the demo sees 140,000 words, whatever its size; it takes 3 s to start."""
    plan = Plan()
    for point in points("train", Line(("experiment=demo", SPEEDS, *paths))):
        plan.add(estimate(point.config))
    assert len(plan.runs) == 20
    expected = 20 * 3 + 10 * (140_000 / 10_000 + 140_000 / 5_000)
    assert sum(run.seconds for run in plan.runs) == pytest.approx(expected, rel=0.02)  # steps are whole
    assert [(label, size, len(runs)) for label, size, runs in plan.cells()] == [
        (model, size, 2) for model in ("lstm_demo", "txl_demo") for size in ("4k", "8k", "16k", "32k", "64k")
    ]
    totals = plan.totals()[0]
    assert totals.startswith("20 runs (0 already done), 2.8M words in all")


@pytest.mark.parametrize(("gpus", "more"), [(0, []), (1, []), (1, ["trainer.accelerator=cpu"])])
def test_runs_on_cpu_cores_are_planned_side_by_side(paths, monkeypatch, gpus, more):
    """Those on GPUs go one to a GPU."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr("train.loop.device.available_cores", lambda: 2)
    plan = Plan()
    for seed in (1, 2, 3):
        config = compose("train", ["experiment=demo", "model=lstm_tiny", f"seed={seed}", SPEEDS, *more, *paths])
        plan.add(estimate(config))
    _, line, memory, *_ = plan.totals()
    on_cpu = not gpus or bool(more)
    assert ("on 2 cores" in line) is on_cpu
    assert (f"up to {2 * plan.runs[0].memory_bytes / 2**20:,.0f} MiB for 2 runs" in memory) is on_cpu


def test_a_finished_run_takes_no_more_time(paths):
    config = compose("train", ["corpus=toy", "model=lstm_tiny", "sample.size=50k", "dry_run_words_per_s=1000", *paths])
    before = estimate(config)
    assert before.words_seen == pytest.approx(250_000, rel=0.01)
    tokens = torch.zeros(before.tokens, dtype=torch.int32).numpy()
    assert before.steps == len(Columns(tokens, before.words, config.recipe))
    assert before.seconds == pytest.approx(250 + 3, rel=0.02)
    assert before.memory_bytes > PROCESS_BYTES
    # fp32: what is exported, once; Adam's two moments and the weights in each of three checkpoints
    assert before.disk_bytes == 4 * before.parameters
    assert before.checkpoint_bytes == 3 * 3 * 4 * before.parameters
    RunFolder.of(config).update_manifest(status="done")
    after = estimate(config)
    assert after.seconds == 0
    plan = Plan()
    plan.add(after)
    plan.add(after)  # a grid that names a run twice
    assert len(plan.runs) == 1


def test_points_of_a_sweep_are_those_composed_alone(paths):
    """For an experiment's grid changed on the command line."""
    fixed = ["experiment=demo", "model=lstm_tiny", "recipe.lr=1e-3", *paths]
    swept = points("train", Line((*fixed, "seed=1,2,3", "model.dropout=0,0.5")))
    names = [RunFolder.of(point.config).path.name for point in swept]
    assert len(names) == 30
    assert set(names) == {
        run_id(compose("train", [*fixed, f"seed={seed}", f"model.dropout={rate}", f"sample.size={size}"]))
        for seed in (1, 2, 3)
        for rate in ("0", "0.5")
        for size in ("4k", "8k", "16k", "32k", "64k")
    }


@pytest.mark.parametrize("model", ["txl_tiny", "gpt2_tiny", "roberta_tiny", "llama_tiny"])
def test_texts_of_a_step_keep_as_many_bytes_each_as_one_text(model):
    length = "recipe.bptt=70" if model == "txl_tiny" else "recipe.context=70"
    net = build_model(compose("train", ["corpus=toy", f"model={model}", length]).model, 500).train()
    weights = {parameter.untyped_storage().data_ptr() for parameter in net.parameters()}
    saved: dict[int, torch.Tensor] = {}

    def save(tensor):
        if tensor.untyped_storage().data_ptr() not in weights:
            saved[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    tokens = torch.randint(500, (16, 70))
    _, state = net(tokens, net.initial_state(16))
    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        net(tokens, state)
    real = sum(tensor.untyped_storage().nbytes() for tensor in saved.values())
    assert 16 * saved_of_row(net, 70)[0] == pytest.approx(real, rel=0.1)


def test_estimates_for_chinese_differ_from_those_for_english(paths, tmp_path):
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


def test_a_speed_that_is_not_above_0_is_refused():
    for speed in ("0", "fast", "{lstm_tiny:-1}", "true"):
        with pytest.raises(Exception, match="dry_run_words_per_s") as raised:
            compose("train", [f"dry_run_words_per_s={speed}"])
        assert "number above 0" in (describe(raised.value) or "")


def test_training_is_planned_without_the_benchmarks_files(paths, tmp_path):
    planned.runs.clear()
    try:
        overrides = ["corpus=toy", "model=lstm_tiny", "sample.size=2k", SPEEDS, f"paths.data={tmp_path}", *paths]
        planned_by_eval([compose("eval", overrides)])
        (run,) = planned.runs
        assert run.scoring_seconds == 0
        assert [note.startswith("The estimate doesn't include scoring:") for note in planned.notes] == [True]
    finally:
        planned.runs.clear()
        planned.notes.clear()


def test_the_command_prints_one_table(paths):
    """Runs that are refused are named, and the others are planned."""
    sizes = "sample.size=8k,16k,32k,64k,2"
    done = run_command("train", "-m", "experiment=demo", sizes, "dry_run=true", SPEEDS, *paths)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "too many columns for a sample of 2 tokens" in done.stderr
    assert done.stdout.count("16 runs") == 1
    assert "10,000 words/s (from dry_run_words_per_s) for lstm_demo" in done.stdout
    lines = done.stdout.splitlines()
    assert all(len(line.split()) >= 8 for line in lines if line.startswith("  16k"))  # no column is cut in a pipe
    assert any(line.startswith("Corpus toy: not prepared yet") for line in lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (["corpus.path=nowhere.txt"], "corpus.path=nowhere.txt: "),
        (["corpus.path=${paths.data}/a.txt", "paths.data=null"], "PAIRSCALE_DATA to the folder"),
    ],
)
def test_a_plan_without_its_text_is_refused(paths, text, message):
    config = compose("train", ["corpus=local", *text, "model=lstm_tiny", *paths])
    for work in (estimate, prepare):
        with pytest.raises(InputError, match=message):
            work(config)
