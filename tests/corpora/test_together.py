"""Jobs that start at the same time prepare each corpus once."""

import subprocess
import sys

import pytest

from pairscale.files import only_process
from tests.support import ROOT

OVERRIDES = ["corpus=toy", "corpus.words=20000", "sample.size=2k"]

# Forks processes that start at the same moment; each writes one file for each thing that it prepares.
SCRIPT = """
import os, sys, time
from pathlib import Path
import corpora.prepare as p
from pairscale.command.compose import compose

notes, processes, overrides = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]

def noting(kind, call):
    def noted(*arguments, **more):
        (notes / f"{kind}-{os.getpid()}").touch()
        time.sleep(0.3)  # long enough for all others to arrive
        return call(*arguments, **more)
    return noted

p.write_text_store = noting("text", p.write_text_store)
p.write_token_store = noting("tokens", p.write_token_store)
p.fit_tokenizer = noting("tokenizer", p.fit_tokenizer)
config = compose("train", overrides)
moment = time.monotonic() + 0.5
children = []
for _ in range(processes):
    child = os.fork()
    if not child:
        time.sleep(max(0.0, moment - time.monotonic()))
        corpus = p.prepare(config)
        tokens = corpus.sample().tokens
        (notes / f"read-{os.getpid()}").write_bytes(tokens.tobytes())
        os._exit(0)
    children.append(child)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


def together(tmp_path, processes, *more):
    """Return how often each thing was prepared, and the tokens that the processes read."""
    notes = tmp_path / "notes"
    notes.mkdir()
    overrides = [*OVERRIDES, f"paths.store={tmp_path}/store", *more]
    arguments = [sys.executable, "-c", SCRIPT, str(notes), str(processes), *overrides]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    kinds = [path.name.partition("-")[0] for path in notes.iterdir()]
    tokens = {path.read_bytes() for path in notes.glob("read-*")}
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}, tokens


@pytest.mark.slow
@pytest.mark.parametrize("fit_on", ["train", "sample"])
def test_sixteen_processes_prepare_each_thing_once(tmp_path, fit_on):
    counts, tokens = together(tmp_path, 16, f"tokenizer.fit_on={fit_on}")
    expected = {"read": 16, "text": 1, "tokenizer": 1} | ({"tokens": 1} if fit_on == "train" else {})
    assert counts == expected
    assert len(tokens) == 1


HOLDER = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(2)
"""


def test_a_long_wait_for_a_lock_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("pairscale.files.SAY_SECONDS", 0.2)
    lock = tmp_path / ".text.lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with only_process(lock, tmp_path / "text", wait=None) as acquired:
            assert acquired
    assert f"has locked {lock}" in capsys.readouterr().err
