"""Fine-tuning: the parts against independent definitions, and the command from tables to predictions."""

import json
import math
import random
import shutil
import signal
import time
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError, RunInUse
from tests.support.commands import Command, exit_code
from tests.support.small_runs import overrides, trained, write_text
from train.config import FinetuneConfig
from train.finetune.__main__ import run as finetune
from train.finetune.run import finetune_study
from train.finetune.table import encode, read_table
from train.finetune.training import Classifier, FineTuning, classification_metrics, learning_rate
from train.runs.folder import RunFolder, study_runs
from train.runs.model_folder import load_model

MODELS = ("lstm", "txl", "gpt2", "bert", "roberta")
FAST = ["recipe.budget.epochs=1", "study=s"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return a folder with the study "s" of barely trained runs, and two tables that can be learnt."""
    folder = tmp_path_factory.mktemp("finetune")
    write_text(folder)
    for model in MODELS:
        trained(compose("train", overrides(folder, model, "runs", *FAST)))
    draw = random.Random(1)
    for name, rows in (("train", 96), ("valid", 41), ("long", 400)):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for _ in range(rows):
                right = draw.random() < 0.4
                words = [f"w{draw.randrange(40, 300)}" for _ in range(draw.randrange(3))]
                words.insert(draw.randrange(len(words) + 1), "w7" if right else "w31")
                row = {"a": " ".join(words), "b": "w5 w6", "label": int(right)}
                file.write(json.dumps(row) + "\n")
    return folder


@pytest.fixture
def own(study, tmp_path):
    """Return a copy of the study that a test may change."""
    shutil.copytree(study, tmp_path / "own", ignore=shutil.ignore_patterns("store"))
    return tmp_path / "own"


def words(folder, *more):
    tables = [f"task.{name}={folder}/{name}.jsonl" for name in ("train", "valid")]
    quiet = ["trainer.progress=false", "trainer.threads=1", "trainer.accelerator=cpu"]
    task = ["task=local", "task.name=t", "task.first='{b} {a}'", "task.batch=8", "task.epochs=3", "task.lr=3e-3"]
    return ["study=s", f"paths.runs={folder}/runs", *tables, *quiet, *task, *more]


def configuration(folder, *more) -> FinetuneConfig:
    return compose("finetune", words(folder, *more))


def run_of(folder, model) -> RunFolder:
    return next(run for run in study_runs(folder / "runs", "s") if run.path.name.startswith(f"{model}_"))


def loaded(study, model):
    return load_model(run_of(study, model).model)


CLASSES = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1).map(lambda of: (n, of))
)


@pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")
@given(CLASSES)
@example((2, [(0, 0), (0, 0)]))
@example((2, [(1, 0), (1, 0)]))
def test_metrics_equal_those_of_scikit_learn(drawn):
    count, pairs = drawn
    true, predicted = np.array(pairs).T
    values = classification_metrics(true, predicted, count)
    assert values["accuracy"] == pytest.approx(accuracy_score(true, predicted))
    assert values["mcc"] == pytest.approx(matthews_corrcoef(true, predicted))
    assert ("f1" in values) == (count == 2)
    if count == 2:
        assert values["f1"] == pytest.approx(f1_score(true, predicted, zero_division=0))


def test_metrics_of_a_table_counted_by_hand():
    # right: 3 of class 1, 4 of class 0; wrong: 1 taken for class 1, 2 taken for class 0
    true = np.array([1, 1, 1, 0, 0, 0, 0, 0, 1, 1])
    predicted = np.array([1, 1, 1, 0, 0, 0, 0, 1, 0, 0])
    expected = {"accuracy": 0.7, "f1": 6 / 9, "mcc": (3 * 4 - 1 * 2) / math.sqrt(4 * 5 * 5 * 6)}
    assert classification_metrics(true, predicted, 2) == pytest.approx(expected)


def test_the_head_equals_a_calculation_by_hand(study):
    torch.manual_seed(0)
    classifier = Classifier(loaded(study, "gpt2").model, 3, 0.1).eval()
    hidden = torch.randn(4, 24)
    weights = {name: weight.detach().double().numpy() for name, weight in classifier.head.named_parameters()}
    assert sorted(weights) == ["1.bias", "1.weight", "5.bias", "5.weight"]

    def normed(x):
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)

    middle = normed(hidden.double().numpy()) @ weights["1.weight"].T + weights["1.bias"]
    middle = middle * 0.5 * (1 + np.vectorize(math.erf)(middle / math.sqrt(2)))
    expected = normed(middle) @ weights["5.weight"].T + weights["5.bias"]
    assert classifier.head(hidden).detach().numpy() == pytest.approx(expected, abs=1e-5)


def test_the_rate_rises_from_zero_and_falls_along_a_cosine_to_a_share(study):
    task = configuration(study, "task.lr=1.0", "task.warmup=0.1", "task.min_lr=0.2").task
    assert [learning_rate(task, step, 100) for step in (0, 5, 10, 55)] == pytest.approx([0, 0.5, 1, 0.6])
    assert learning_rate(task, 99, 100) == pytest.approx(0.2 + 0.4 * (1 + math.cos(math.pi * 89 / 90)))
    assert learning_rate(configuration(study, "task.lr=1.0", "task.warmup=0").task, 0, 4) == 1


@pytest.fixture(scope="module", params=["lstm", "bert"])
def readers(request, study, tmp_path_factory):
    """Return a model, its tokenizer of transformers, a task, and a file."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(run_of(study, request.param).model.path)
    path = tmp_path_factory.mktemp("table") / "t.jsonl"
    return loaded(study, request.param), tokenizer, configuration(study).task, path


TEXT = st.lists(st.sampled_from(["w1", "w2", "unknown", "."]), min_size=1, max_size=14).map(" ".join)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5), st.booleans(), st.integers(4, 20))
def test_inputs_equal_those_of_transformers(readers, pairs, has_second, longest):
    ours, tokenizer, task, path = readers
    path.write_text("".join(json.dumps({"a": a, "b": b, "label": 0}) + "\n" for a, b in pairs))
    task = replace(task, first="{a}", second="{b}" if has_second else None, tokens=longest)
    items = encode(read_table(str(path), task), ["0"], ours, task)
    texts = [[a for a, _ in pairs], *([[b for _, b in pairs]] if has_second else [])]
    assert items.ids == tokenizer(*texts, truncation="longest_first", max_length=longest)["input_ids"]
    assert items.cut == sum(len(ids) > longest for ids in tokenizer(*texts)["input_ids"])


@pytest.mark.parametrize("model", MODELS)
def test_logits_read_the_first_or_the_last_token_and_no_padding(study, model):
    of = loaded(study, model)
    task = configuration(study).task
    items = encode(read_table(task.valid, task), ["0", "1"], of, task)
    classifier = Classifier(of.model, 2, 0.1).eval()
    batch = items.batch(range(8))
    assert batch.places.tolist() == [len(ids) - 1 for ids in items.ids[:8]]
    with torch.no_grad():
        together = classifier(batch.tokens, batch.places)
        for row in range(8):
            assert classifier(*items.batch([row])[:2])[0] == pytest.approx(together[row], abs=1e-5)


@pytest.mark.parametrize("model", ["gpt2", "bert"])
def test_the_classifier_reads_the_last_hidden_states_of_transformers(study, model):
    network = transformers.AutoModel.from_pretrained(run_of(study, model).model.path).eval()
    tokens = torch.arange(4, 12)[None]
    with torch.no_grad():
        expected = network(input_ids=tokens).last_hidden_state
        assert torch.allclose(Classifier(loaded(study, model).model, 2, 0.1)._hidden(tokens), expected, atol=1e-6)


def results(folder) -> dict[str, object]:
    """Return what must not depend on interruptions."""
    files = {name: (folder.path / name).read_bytes() for name in ("predictions.csv", "metrics.csv")}
    return {**files, "best": folder.read_manifest()["best"]}


@pytest.mark.slow
def test_the_command_fine_tunes_every_model_and_skips_what_is_done(own, capsys):
    command = words(own, f"task.train={own}/long.jsonl", "task.epochs=8", "task.lr=5e-3")
    assert exit_code("finetune", finetune, *command) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(MODELS)
    for run in study_runs(own / "runs", "s"):
        folder = run.finetuned("t", 1)
        manifest, metrics = folder.read_manifest(), pd.read_csv(folder.metrics)
        predictions = pd.read_csv(folder.path / "predictions.csv")
        assert sorted(path.name for path in folder.path.iterdir()) == [
            ".lock", "manifest.json", "metrics.csv", "predictions.csv"
        ]  # fmt: skip
        rows = [json.loads(line) for line in (own / "valid.jsonl").read_text().splitlines()]
        assert predictions["label"].tolist() == [row["label"] for row in rows]
        accuracy = accuracy_score(predictions["label"], predictions["predicted"])
        assert accuracy == manifest["best"]["accuracy"] == metrics["accuracy"].max()
        assert manifest["best"]["epoch"] == metrics["epoch"][metrics["accuracy"].idxmax()]
        assert accuracy > 0.9, run.path.name
        assert manifest["weights"] == run.model.digest()
        assert any(run.path.name in line and f"accuracy {accuracy:.3f}" in line for line in printed)
    files = {path: path.stat().st_mtime_ns for path in own.rglob("finetuned/*/*/*.csv")}
    assert exit_code("finetune", finetune, *command) == 0
    assert capsys.readouterr().err.count("Already fine-tuned") == len(MODELS)
    assert files == {path: path.stat().st_mtime_ns for path in own.rglob("finetuned/*/*/*.csv")}


class Stopped(Exception):
    """Raised to stop fine-tuning in the middle."""


@pytest.mark.parametrize("model", ["lstm", "bert"])
def test_stopped_work_goes_on_to_the_same_end(own, model, monkeypatch):
    run = run_of(own, model)
    config = configuration(own, f"run={run.path.name}")
    finetune_study(configuration(own, f"run={run.path.name}", "task.name=whole"))
    step = FineTuning.training_step

    def stop(self, batch, batch_idx):
        step(self, batch, batch_idx)
        if self.state.step == 17:
            raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(FineTuning, "training_step", stop)
        with pytest.raises(Stopped):
            finetune_study(config)
    whole, stopped = run.finetuned("whole", 1), run.finetuned("t", 1)
    assert stopped.read_manifest()["status"] == "unfinished"
    assert [path.name.partition("-")[0] for path in stopped.checkpoints] == ["12"]
    finetune_study(config)
    assert results(stopped) == results(whole)
    assert stopped.read_manifest()["attempts"] == 2
    assert not stopped.checkpoint_folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_command_goes_on_to_the_same_end(own, number):
    run = run_of(own, "gpt2")
    more = ["task.epochs=20", f"run={run.path.name}"]
    finetune_study(configuration(own, *more, "task.name=whole"))
    whole, killed = run.finetuned("whole", 1), run.finetuned("t", 1)
    process = Command("train.finetune", *words(own, *more))
    while not killed.checkpoints and process.code is None:
        time.sleep(0.001)
    time.sleep(random.Random(int(number)).random() * 0.1)
    process.kill(number)
    process.wait()
    assert not killed.done, process.output()
    finetune_study(configuration(own, *more))
    assert killed.read_manifest()["attempts"] == 2
    assert results(killed) == results(whole)


def test_seeds_differ_and_have_folders_of_their_own(own):
    lstm = run_of(own, "lstm")
    for seed in (1, 2):
        finetune_study(configuration(own, f"run={lstm.path.name}", f"seed={seed}"))
    best = [lstm.finetuned("t", seed).read_manifest()["best"]["weights"] for seed in (1, 2)]
    assert best[0] != best[1]


@pytest.mark.parametrize(
    ("more", "said"),
    [(["task.lr=0.1"], r"another value of task\.lr\."), (["task.valid={}/train.jsonl"], "another value of tables")],
)
def test_results_with_other_settings_or_tables_are_not_replaced(own, more, said):
    lstm = f"run={run_of(own, 'lstm').path.name}"
    finetune_study(configuration(own, lstm, "task.epochs=1"))
    with pytest.raises(RunError, match=said):
        finetune_study(configuration(own, lstm, "task.epochs=1", *(one.format(own) for one in more)))


def test_one_process_works_in_a_folder_and_leaves_others_alone(own):
    lstm = run_of(own, "lstm")
    folder = lstm.finetuned("t", 1)
    with folder.locked():
        writing = folder.path / ".metrics.csv.1.tmp"
        writing.touch()
        with lstm.locked():  # by a process that scores the run
            assert writing.exists()
        with pytest.raises(RunInUse):
            finetune_study(configuration(own, f"run={lstm.path.name}"))


def test_a_study_that_others_work_on_can_be_started_again_later(own):
    folders = [run.finetuned("t", 1) for run in study_runs(own / "runs", "s") if run.model.weights.exists()]
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context(folder.locked())
        with pytest.raises(RunInUse):
            finetune_study(configuration(own))


def test_a_dry_run_says_what_is_left_and_writes_nothing(own, capsys):
    finetune_study(configuration(own, f"run={run_of(own, 'lstm').path.name}", "dry_run=true"))
    assert "train on 96 and predict 41 rows, 36 steps of 8 rows (3 epochs), in about" in capsys.readouterr().out
    assert not list(own.rglob("finetuned"))


@pytest.mark.parametrize(
    ("row", "more", "said"),
    [
        ('{"a": "w1", "label": 1}', [], "line 97.*'b'"),
        ('{"a": "w1", "b": "w1"}', [], "line 97.*'label'"),
        ('{"a": "w1", "b": "w1", "label": 0.5}', [], "line 97.*0.5"),
        ('["w1"]', [], "line 97.*object"),
        ('{"a": ', [], "line 97.*JSON"),
        ('{"a": "w1", "b": "w1", "label": 2}', ["task.metric=f1"], "different labels is 3.*metric"),
    ],
)
def test_bad_rows_are_named(own, row, more, said):
    with (own / "train.jsonl").open("a") as file:
        file.write(row + "\n")
    with pytest.raises((InputError, ConfigError), match=said):
        finetune_study(configuration(own, f"run={run_of(own, 'lstm').path.name}", *more))


def test_bad_tables_and_keys_are_explained(own, monkeypatch):
    def said(error, *more):
        with pytest.raises(error) as raised:
            finetune_study(configuration(own, f"run={run_of(own, 'lstm').path.name}", *more))
        assert not list(own.rglob("finetuned"))
        return str(raised.value)

    assert "missing.jsonl: this file does not exist" in said(InputError, "task.train=missing.jsonl")
    assert "has 96 rows" in said(ConfigError, "task.batch=97")
    assert "trainer.devices=2" in said(ConfigError, "trainer.devices=2")
    monkeypatch.delenv("PAIRSCALE_DATA", raising=False)
    with pytest.raises(InputError, match=r"glue_filtered/rte\.train\.jsonl"):
        finetune_study(compose("finetune", ["study=s", f"paths.runs={own}/runs", "task=rte"]))
    with (own / "valid.jsonl").open("a") as file:
        file.write('{"a": "w1", "b": "w1", "label": 7}\n')
    assert "the label '7' is not in" in said(InputError)
