"""Run folders from someone else: none of their files can execute code."""

import contextlib
import json
import os
import pickle
import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from analysis import runs
from analysis.__main__ import run as analyse
from corpora.prepare import prepare
from eval.run import score_study
from eval.scorers.load import load_scorer
from eval.scores.files import ITEMS_FILE, score_path
from pairscale.command.compose import compose
from pairscale.errors import PairscaleError
from pairscale.files import sha256_file, write_json
from tests.bench.stages import LSTM, SMALL
from tests.support.commands import exit_code
from tests.support.small_runs import trained
from train.runs.folder import RunFolder


class Evil:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch touched",)


YAML = "model: !!python/object/apply:os.system [touch touched]\n"


@pytest.fixture(scope="module")
def trained_run(tmp_path_factory):
    """Return the configuration of a run and the folder in which it was trained."""
    folder = tmp_path_factory.mktemp("trained")
    few = ["sample.size=2k", "recipe.budget.epochs=1", "benchmark=toy", "benchmark.per_paradigm=2"]
    config = compose("eval", [*SMALL, *LSTM, *few])
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setattr(torch, "set_num_threads", lambda _: None)
        trained(config)
    return config, folder


@pytest.fixture
def foreign(trained_run, tmp_path, monkeypatch):
    """Yield the configuration and folder of a finished run; check afterwards that nothing was executed."""
    config, folder = trained_run
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    yield config, RunFolder.of(config)
    assert not Path("touched").exists()


def evil(path: Path) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(pickle.dumps({"state_dict": Evil()}, 2))


def evil_archive(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    torch.save({"state_dict": Evil(), "global_step": 3}, path)


def record_digest(run: RunFolder, path: Path) -> None:
    """Write the digest of a replaced file where the folder records it."""
    described, more = run.model.description, {}
    if path.parent == run.model.tokenizer:
        described, more = run.model.tokenizer / "tokenizer.json", {"vocabulary": path.name}
    write_json(described, json.loads(described.read_text()) | {"digest": sha256_file(path)} | more)


def test_the_pickles_of_these_tests_execute_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for write in (evil, evil_archive):
        write(tmp_path / "file")
        Path("touched").unlink(missing_ok=True)
        with contextlib.suppress(RuntimeError):  # once it is too late
            torch.load(tmp_path / "file", weights_only=False)
        assert Path("touched").exists(), "or the tests below say nothing"


@pytest.mark.parametrize("write", [evil, evil_archive])
def test_foreign_checkpoints_execute_nothing(foreign, write):
    config, run = foreign
    run.update_manifest(status="unfinished")
    path = run.checkpoint_folder / "checkpoint"
    write(path)
    path.rename(run.checkpoint(3, sha256(path.read_bytes()).hexdigest()))
    with pytest.raises(PairscaleError, match=r"ckpt: this checkpoint is undamaged, but .* can't resume"):
        trained(config)


@pytest.mark.parametrize(
    ("name", "write"),
    [("model.safetensors", evil), ("model.safetensors", evil_archive), ("tokenizer/vocab.txt", evil),
     ("tokenizer/model.spm", evil_archive), ("pairscale.json", evil)],
)  # fmt: skip
def test_foreign_models_and_tokenizers_execute_nothing(foreign, name, write):
    config, run = foreign
    write(run.model.path / name)
    if not name.endswith(".json"):
        record_digest(run, run.model.path / name)
    with pytest.raises(PairscaleError):
        load_scorer(run)
    with pytest.raises(PairscaleError):
        score_study(config)


def test_the_code_in_a_models_folder_is_not_executed(foreign):
    _, run = foreign
    for file in ("modeling.py", "recurrent.py", "base.py"):
        assert (run.model.path / file).exists()
        (run.model.path / file).write_text("open('touched', 'w')")
    for folder in (run, run.model.path):
        assert load_scorer(folder).score(["The cat sleeps ."])[0].logprobs.sum() < 0


def test_foreign_configurations_execute_nothing(foreign, capsys):
    config, run = foreign
    run.config.write_text(YAML)
    with pytest.raises(PairscaleError, match=r"study=s: 1 of 1 runs could not be scored"):
        score_study(config)
    with pytest.raises(PairscaleError, match=r"config\.yaml: .* as YAML"):
        load_scorer(run)
    paths = [f"paths.{name}={Path(name).resolve()}" for name in ("runs", "reports")]
    assert exit_code("analysis", analyse, "study=s", *paths) == 2
    assert "as YAML" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["trust_remote_code", "allow_pickle"])
def test_a_run_folder_cannot_allow_code_of_a_model(foreign, key):
    """The run folder is of a Hugging Face model, whose own folder has code and a pickle."""
    _, run = foreign
    model = Path("model")
    model.mkdir()
    described = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config"}}
    (model / "config.json").write_text(json.dumps(described))
    (model / "evil.py").write_text("import os; os.system('touch touched')")
    evil(model / "pytorch_model.bin")
    model_config = {"name": "hf_causal", "kind": "causal", "path": str(model.resolve()), "dtype": "fp32"}
    for allowed, message in (
        ({key: True}, rf"config\.yaml: model\.{key}=true would run code"),
        ({}, r"its own code|only available as a pickle"),
    ):
        run.config.write_text(json.dumps({"model": model_config | allowed, "corpus": {"reference": "treebank"}}))
        with pytest.raises(PairscaleError, match=message):
            load_scorer(run)


def test_foreign_score_files_execute_nothing(foreign):
    """Parquet can hold pickles of pandas and Arrow extension types; neither is read."""
    config, run = foreign
    score_study(config)
    scores = score_path(next(run.path.glob("scores/*")), "lp")
    whole = scores.read_bytes()
    for path in (scores, scores.parent / ITEMS_FILE):
        table = pq.read_table(path)
        kind = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": pickle.dumps(Evil())}
        first, *others = table.schema
        fields = [first.with_metadata(kind), *others]
        pq.write_table(table.cast(pa.schema(fields, metadata=table.schema.metadata)), path)
    score_study(config)
    flipped = bytearray(whole)
    flipped[200] ^= 1  # one bit, within the first column
    for write in (evil, lambda path: path.write_bytes(flipped)):
        write(scores)
        with pytest.raises(PairscaleError, match="1 of 1 runs could not be scored"):
            score_study(config)


@pytest.mark.parametrize("name", ["offsets.npy", "words.npy"])
def test_foreign_arrays_of_a_store_execute_nothing(foreign, name):
    config, _ = foreign
    np.save(Path("store/toy/text") / name, np.array([Evil()], dtype=object), allow_pickle=True)
    with pytest.raises(PairscaleError, match=rf"{name}: .*read"):
        prepare(config)


def test_foreign_metrics_execute_nothing(foreign):
    """metrics.csv is text to both of its readers: the analysis, and a run that resumes."""
    config, run = foreign
    score_study(config)
    evil(run.metrics)
    run.update_manifest(status="unfinished")
    for work in (lambda: trained(config), lambda: runs("s")):
        with pytest.raises(PairscaleError, match=r"metrics\.csv: .*can't be read"):
            work()
        run.update_manifest(status="done")
