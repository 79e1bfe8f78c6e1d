"""Checkpoints that are damaged, old or foreign; runs that are moved, run twice at once, or diverge."""

import shutil
from hashlib import sha256
from pathlib import Path

import pytest
import torch

import pairscale.files
import train.loop.training
from eval.run import score_run
from pairscale.command.compose import compose
from pairscale.errors import RunError, WriteError
from pairscale.files import sha256_file, write_bytes
from tests.bench.stages import LSTM, SMALL, contents, difference
from tests.support.small_runs import trained
from train.loop.device import Ranks
from train.loop.state import TrainState
from train.loop.training import LanguageModelling
from train.runs.folder import RunFolder


class Stopped(Exception):
    """Raised to stop a run in the middle, as a signal would."""


def configuration(*more):
    """Return the configuration of a run of 75 steps and 12 checkpoints, in relative folders."""
    return compose("eval", [*SMALL, "sample.size=4k", *LSTM, "benchmark=toy", *more])


def stop_at(step: int) -> RunFolder:
    """Train until a step and return the unfinished run."""
    step_end = LanguageModelling.on_train_batch_end

    def end(self, *arguments):
        step_end(self, *arguments)
        if self.state.step == step:
            raise Stopped

    config = configuration()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LanguageModelling, "on_train_batch_end", end)
        with pytest.raises(Stopped):
            trained(config)
    return RunFolder.of(config)


def test_the_mean_loss_is_that_of_the_tokens_since_the_last_log_point():
    state = TrainState(torch.nn.Linear(1, 1), Ranks())
    for nats, tokens, mean in [(6.0, 2, 3.0), (8.0, 2, 4.0)]:
        state.add_loss(torch.tensor(nats), tokens)
        assert state.take_loss() == mean


@pytest.fixture(scope="module", autouse=True)
def few_log_points():
    """Let checkpoints fall between two log points, so that the loss since the last one has to be resumed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(train.loop.training, "LOG_POINTS", 7)
        yield


@pytest.fixture(scope="module")
def folders(tmp_path_factory, few_log_points):
    """Return two folders with the same store: one with the finished run, one with the run stopped at step 60."""
    done, stopped_run = (tmp_path_factory.mktemp("checkpoints") / name for name in ("done", "stopped"))
    done.mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch, "set_num_threads", lambda _: None)
        patched.chdir(done)
        trained(configuration())
        shutil.copytree(done / "store", stopped_run / "store")
        patched.chdir(stopped_run)
        stop_at(60)
    return done, stopped_run


@pytest.fixture
def configure(folders, tmp_path, monkeypatch):
    """Return the function `configuration`, in this test's own folder with a prepared corpus."""
    shutil.copytree(folders[0] / "store", tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    return configuration


@pytest.fixture
def stopped_run(configure, folders, tmp_path):
    """Return the run, stopped at step 60."""
    shutil.copytree(folders[1] / "runs", tmp_path / "runs")
    return RunFolder.of(configure())


@pytest.fixture(scope="module")
def expected_files(folders):
    """Return the contents of the run that was not stopped."""
    return contents(folders[0] / RunFolder.of(configuration()).path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def flip(path: Path) -> None:
    """Flip one bit of a weight, which torch does not notice."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    torch.load(path, weights_only=True)


def read_stderr(capsys) -> str:
    """Return the standard error as one line."""
    return " ".join(capsys.readouterr().err.split())


def test_the_logged_loss_is_the_mean_over_the_tokens_since_it_was_last_taken():
    state = TrainState(torch.nn.Linear(1, 1), Ranks())
    state.add_loss(torch.tensor(6.0), 2)
    state.add_loss(torch.tensor(3.0), 4)
    assert [state.take_loss(), state.take_loss()] == [1.5, 0.0]


def test_two_checkpoints_are_kept_and_name_their_digest(stopped_run):
    steps = [int(path.name.partition("-")[0]) for path in stopped_run.checkpoints]
    assert len(steps) == 2
    assert steps == sorted(steps, reverse=True)
    for path, step in zip(stopped_run.checkpoints, steps, strict=True):
        assert path.name == f"{step}-{sha256_file(path)[:16]}.ckpt"
        assert torch.load(path, weights_only=True)["step"] == step
    assert sorted(stopped_run.checkpoint_folder.iterdir()) == sorted(stopped_run.checkpoints)


@pytest.mark.parametrize(("damage", "both"), [(cut, False), (flip, False), (flip, True)])
def test_a_damaged_checkpoint_is_reported_and_the_older_one_is_used(
    stopped_run, configure, expected_files, capsys, damage, both
):
    newest, older = stopped_run.checkpoints
    for path in (newest, older)[: 1 + both]:
        damage(path)
    again = stop_at(62)
    assert (again.checkpoint_folder / newest.with_suffix(".damaged").name).exists()
    output = read_stderr(capsys)
    assert output.count("damaged checkpoint") == 1
    assert newest.name in output
    assert ("training starts again" if both else f"Resuming from {older.name}.") in output
    assert ("Resuming" in output) is not both
    trained(configure())
    known = stopped_run.read_manifest()["damaged_checkpoints"]
    assert [line.partition(":")[0] for line in known] == [newest.name, older.name][: 1 + both]
    assert difference(expected_files, contents(stopped_run.path)) is None


def test_an_undamaged_checkpoint_of_other_code_is_not_deleted(stopped_run, configure):
    state = torch.load(stopped_run.checkpoints[0], weights_only=True)
    del state["best"]
    torch.save(state, "other")
    data = Path("other").read_bytes()
    write_bytes(stopped_run.checkpoint(10**6, sha256(data).hexdigest()), data)
    with pytest.raises(RunError, match=r"1000000-\w+\.ckpt: this checkpoint is undamaged, but .* can't resume"):
        trained(configure())
    assert len(stopped_run.checkpoints) == 3
    assert stopped_run.read_manifest()["status"] == "failed"


def test_a_moved_run_can_be_resumed_and_scored(stopped_run, configure, expected_files):
    config = configure("study=t", "paths.runs=elsewhere/runs", "benchmark.per_paradigm=2")
    moved = RunFolder.of(config)
    moved.path.parent.mkdir(parents=True)
    stopped_run.path.rename(moved.path)
    trained(config)
    files = contents(moved.path)
    # config.yaml names the folder of the run.
    assert difference({**expected_files, "config.yaml": files["config.yaml"]}, files) is None
    back = moved.path.rename(Path(moved.path.name))
    score_run(RunFolder(back), config)
    assert list(back.glob("scores/*/lp.parquet"))


def test_checkpoints_left_by_a_kill_at_the_end_of_a_run_are_removed(stopped_run, configure, expected_files):
    checkpoints = {path.name: path.read_bytes() for path in stopped_run.checkpoints}
    trained(configure())
    stopped_run.checkpoint_folder.mkdir()
    for name, data in checkpoints.items():
        (stopped_run.checkpoint_folder / name).write_bytes(data)
    (stopped_run.path / ".metrics.csv.4711.tmp").touch()
    trained(configure())
    assert difference(expected_files, contents(stopped_run.path)) is None


def test_a_run_in_use_is_not_scored(configure):
    config = configure("benchmark.per_paradigm=2")
    run = trained(config)
    with run.locked(), pytest.raises(RunError, match="another process is working on this run"):
        score_run(run, config)


def test_a_file_system_without_locks_is_an_error(configure, monkeypatch):
    def flock(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(WriteError, match=r"\.lock: this file system has no file locks \(Operation not supported\)"):
        trained(configure())


@pytest.mark.parametrize("what", ["loss", "gradient", "weight"])
def test_a_run_that_diverges_fails_at_its_step(configure, monkeypatch, what, capsys):
    """Step 40 is between two checkpoints and far from a validation."""
    train, clip = LanguageModelling.training_step, torch.nn.utils.clip_grad_norm_
    at_step_40 = [False]

    def step(self, *arguments):
        at_step_40[0] = self.state.step == 39
        if at_step_40[0] and what == "loss":  # read by this very step
            self.model.output_bias.data[:] = float("nan")
        train(self, *arguments)

    def clipped(parameters, limit):
        parameters = list(parameters)
        if at_step_40[0] and what == "gradient":
            parameters[-1].grad[0] = float("inf")
        norm = clip(parameters, limit)
        if at_step_40[0] and what == "weight":
            parameters[-1].grad[:] = float("inf")  # unnoticed by the norm: the step makes it a weight
        return norm

    monkeypatch.setattr(LanguageModelling, "training_step", step)
    monkeypatch.setattr("torch.nn.utils.clip_grad_norm_", clipped)
    config = configure("recipe.budget.epochs=30", "recipe.checkpoint_every=500")
    run = RunFolder.of(config)
    kept = []
    for _ in range(2):  # from the beginning, then from the last checkpoint
        with pytest.raises(RunError, match=r"diverged at step 40 of \d+ .* Lower recipe\.lr"):
            trained(config)
        manifest = run.read_manifest()
        assert manifest["status"] == "failed"
        assert "diverged at step 40" in manifest["reason"]
        for path in run.checkpoints:
            state = torch.load(path, weights_only=True)
            assert state["step"] < 40
            assert all(weight.isfinite().all() for weight in state["model"].values())
        kept.append([path.name for path in run.checkpoints])
    assert len(kept[0]) == 2
    assert kept[0] == kept[1]
    assert f"Resuming {run.path.name}" in read_stderr(capsys)


@pytest.mark.parametrize(
    "name", ["manifest.json", "config.yaml", "metrics.csv", ".ckpt", "model.safetensors", "pairscale.json", "vocab.txt"]
)
def test_a_run_can_be_resumed_after_the_disk_was_full_at_any_of_its_files(configure, expected_files, monkeypatch, name):
    """The error comes with the sync of the file of that name, with that of the second checkpoint."""
    seen = set()

    def full(path):
        if name in path.name:
            seen.add(path.name)
            if len(seen) == (2 if name == ".ckpt" else 1):
                raise OSError(28, "No space left on device")
        return forced(path)

    forced = pairscale.files._force
    config = configure()
    with monkeypatch.context() as patched:
        patched.setattr(pairscale.files, "_force", full)
        with pytest.raises(
            WriteError, match=rf"{name}.*: .*cannot be written \(No space left on device\)\. Free some space"
        ):
            trained(config)
    run = RunFolder.of(config)
    assert not list(run.path.rglob(".*.tmp"))
    assert all(path.name.partition("-")[2] == f"{sha256_file(path)[:16]}.ckpt" for path in run.checkpoints)
    assert len(run.checkpoints) == (1 if name == ".ckpt" else len(run.checkpoints))
    trained(config)
    assert difference(expected_files, contents(run.path)) is None
