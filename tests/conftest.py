"""What tests need that a machine may lack, as fixtures that skip with a reason; and no skips where none are allowed."""

import importlib.util
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Set before any library reads it: a test that would reach for the hub fails at once instead of waiting for a network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "offline")
# Models of tests are too small for two threads, which on a busy machine wait for each other twenty times longer.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Times vary on a shared machine, so none of them may fail a test.
settings.register_profile("pairscale", deadline=None)
settings.load_profile("pairscale")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, so that at the end of two processes none waits minutes for the other."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of the published benchmarks and real texts (PAIRSCALE_DATA)."""
    folder = os.environ.get("PAIRSCALE_DATA")
    if not folder:
        pytest.skip("needs the real data: set PAIRSCALE_DATA to its folder")
    assert Path(folder).is_dir(), f"PAIRSCALE_DATA={folder}: no such folder"
    return Path(folder).resolve()


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs {name}: `make system` installs it")
    return path


@pytest.fixture(scope="session")
def peers() -> None:
    """minicons and lm-evaluation-harness are installed."""
    if not all(importlib.util.find_spec(name) for name in ("minicons", "lm_eval")):
        pytest.skip("needs minicons and lm-eval: `make peers` installs them")


@pytest.fixture(scope="module")  # while it lives no test can have an event loop of its own
def browser() -> Iterator[Any]:
    """The browser that opens reports (playwright.sync_api.Browser)."""
    from tests.support.browser import browser_of

    with browser_of(_program("chromium")) as found:
        yield found


@pytest.fixture(scope="session")
def pdflatex() -> str:
    """Path of the program that tables for papers are tried with."""
    return _program("pdflatex")


@pytest.fixture(scope="session")
def gnu_time() -> str:
    """Path of GNU time, which measures the peak memory of a command."""
    return _program("time")


@pytest.fixture(scope="session")
def slurm() -> None:
    """What slurm/local_cluster/up.sh needs."""
    for name in ("munged", "slurmctld", "slurmd"):
        if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None:
            pytest.skip(f"needs {name}: `make system` installs it")
    if os.getuid() != 0:
        pytest.skip("needs root: slurmd starts jobs as their users")


@pytest.fixture(scope="session")
def lmplz() -> Any:
    """KenLM's programs, which estimate n-gram models (train.lmplz.Programs)."""
    from pairscale.errors import ConfigError
    from train.lmplz import find_programs

    try:
        return find_programs()
    except ConfigError:
        pytest.skip("needs KenLM's lmplz: `make lmplz` builds it")


@pytest.fixture
def small_text(tmp_path: Path) -> None:
    """text.txt, which the runs of tests.support.small_runs train on."""
    from tests.support.small_runs import write_text

    write_text(tmp_path)


@pytest.fixture
def same_threads() -> Iterator[None]:
    """torch computes in as many threads after the test as before."""
    import torch

    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With PAIRSCALE_NO_SKIPS=1 (.ci/run) a skipped test fails, unless it is marked `gpu`."""
    report = yield
    forbidden = os.environ.get("PAIRSCALE_NO_SKIPS") == "1" and item.get_closest_marker("gpu") is None
    if report.skipped and forbidden and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be (PAIRSCALE_NO_SKIPS=1): {report.longrepr}"
    return report
