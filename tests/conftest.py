"""Define fixtures for data and programs that a machine may lack. Their tests are then skipped with a reason."""

import gc
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Set before a library reads it, so that a test that needs the hub fails at once instead of waiting for a network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "offline")
# The tests' models are too small for two threads. On a busy machine, these wait for each other most of the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Transformers copies the code of models into this folder. Each test process has its own, because names can clash.
_CODE_OF_MODELS = tempfile.TemporaryDirectory(prefix="code-of-models-")
os.environ["HF_MODULES_CACHE"] = _CODE_OF_MODELS.name

# Times vary on a shared machine, so no deadline may fail a test.
settings.register_profile("pairscale", deadline=None)
settings.load_profile("pairscale")


# As in pairscale/command/main.py, don't look for garbage among the objects of imported libraries again and again. This
# would take a quarter of the tests' time.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that open a browser as slow. Begin with this folder's tests, which take longest."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.path.parent != Path(__file__).parent)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder with published benchmarks and real texts (PAIRSCALE_DATA)."""
    folder = os.environ.get("PAIRSCALE_DATA")
    if not folder:
        pytest.skip("This test needs the real data. Set PAIRSCALE_DATA to its folder.")
    assert Path(folder).is_dir(), f"PAIRSCALE_DATA={folder}: this folder does not exist. Correct the path."
    return Path(folder).resolve()


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"This test needs {name}. Install it with `make system`.")
    return path


@pytest.fixture(scope="session")
def peers() -> None:
    """Skip unless minicons, lm-evaluation-harness and wordsprobability are installed."""
    if not all(importlib.util.find_spec(name) for name in ("minicons", "lm_eval", "wordsprobability")):
        pytest.skip("This test needs minicons, lm-eval and wordsprobability. Install them with `make peers`.")


@pytest.fixture(scope="module")  # while it is open, no test can have its own event loop
def browser() -> Iterator[Any]:
    """Yield the browser that opens reports (playwright.sync_api.Browser)."""
    from tests.support.browser import browser_of

    with browser_of(_program("chromium")) as chromium:
        yield chromium


@pytest.fixture(scope="session")
def pdflatex() -> str:
    """Return the path of pdflatex, which compiles tables for papers."""
    return _program("pdflatex")


@pytest.fixture(scope="session")
def slurm() -> None:
    """Skip unless the programs of slurm/local_cluster/up.sh are installed."""
    for name in ("munged", "slurmctld", "slurmd"):
        if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None:
            pytest.skip(f"This test needs {name}. Install it with `make system`.")
    if os.getuid() != 0:
        pytest.skip("This test must run as root, because slurmd starts jobs as their users.")


@pytest.fixture(scope="session")
def lmplz() -> Any:
    """Return KenLM's programs, which estimate n-gram models (train.lmplz.Programs)."""
    from pairscale.errors import ConfigError
    from train.lmplz import find_programs

    try:
        return find_programs()
    except ConfigError:
        pytest.skip("This test needs KenLM's lmplz. Build it with `make lmplz`.")


@pytest.fixture(autouse=True)
def no_command_line() -> None:
    """Forget the command line of an earlier test in this process."""
    from pairscale.command.line import Line, set_current

    set_current(Line())


@pytest.fixture
def small_text(tmp_path: Path) -> None:
    """Write text.txt, which the runs of tests.support.small_runs train on."""
    from tests.support.small_runs import write_text

    write_text(tmp_path)


@pytest.fixture
def same_threads() -> Iterator[None]:
    """Restore torch's number of threads after the test."""
    import torch

    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """If PAIRSCALE_NO_SKIPS=1 (.ci/run), fail a skipped test unless it is marked `gpu` or `download`."""
    report = yield
    elsewhere = any(item.get_closest_marker(name) for name in ("gpu", "download"))
    forbidden = os.environ.get("PAIRSCALE_NO_SKIPS") == "1" and not elsewhere
    if report.skipped and forbidden and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"This test was skipped, which PAIRSCALE_NO_SKIPS=1 forbids: {report.longrepr}"
    return report
