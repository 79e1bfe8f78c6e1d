"""Ids of W&B runs and names of artifacts: one for each study, run and kind of job, and always the same."""

import re
from types import SimpleNamespace

import pytest

from tests.support.offline_wandb import hide_account, offline_runs
from train.trackers.tracker import Job, LoggerConfig, tracked

LOGGER = LoggerConfig(name="wandb", project="pairscale")


@pytest.fixture(autouse=True)
def _no_account(monkeypatch, tmp_path):
    hide_account(monkeypatch, tmp_path)


def track_job(folder, study, name="lstm-1M-s1-01234567", kind="train"):
    """Track a job that keeps a file; return the id of its W&B run and the name of its artifact."""
    (folder / "weights").write_text("1")
    with tracked(LOGGER, Job(kind, name, study, folder, {})) as tracker:
        tracker.artifact(f"{name}-model", "model", [folder / "weights"])
    (run,) = offline_runs(folder).values()
    return run.id, run.artifacts[0]["name"]


def test_the_ids_of_two_studies_differ_and_stay(tmp_path):
    """One project holds them all, and W&B continues a run whose id it knows."""
    folders = [tmp_path / name for name in ("wa", "wb", "wa again")]
    for folder in folders:
        folder.mkdir()
    (id_a, model_a), (id_b, model_b), again = (track_job(folder, folder.name[:2]) for folder in folders)
    assert ("wa" in id_a, "wb" in id_b) == (True, True)
    assert id_a != id_b
    assert model_a != model_b
    assert again == (id_a, model_a)


LONG = "s" * 64
JOBS = [
    ("train", "r-01234567", None), ("train", "r-01234567", "a b"), ("train", "r-01234567", "a_b"),
    ("eval", "r-01234567", "a_b"), ("train", "b-r-01234567", "a"), ("train", "r-01234567", "a-b"),
    ("train", "r-01234567", "ä"), ("train", "r-01234567", "ö"), ("analysis", "a+b", "a+b"), ("analysis", "a_b", "a_b"),
    ("train", "m" * 150 + "-01234567", LONG), ("train", "m" * 150 + "-89abcdef", LONG), ("eval", "m" * 150, LONG),
]  # fmt: skip


def test_ids_are_valid_and_no_two_jobs_share_one(tmp_path, monkeypatch):
    chosen = []
    run = SimpleNamespace(
        summary={}, define_metric=lambda *_, **__: None, finish=lambda exit_code: None,
        settings=SimpleNamespace(mode="online"),
    )  # fmt: skip
    monkeypatch.setattr("wandb.init", lambda **values: chosen.append(values["id"]) or run)
    for kind, name, study in JOBS:
        with tracked(LOGGER, Job(kind, name, study, tmp_path, {})):
            pass
    assert len(set(chosen)) == len(JOBS)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", one) for one in chosen)
    assert all(study in one for one, (_, _, study) in zip(chosen, JOBS, strict=True) if study in ("a_b", "a-b", LONG))
