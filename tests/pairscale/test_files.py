"""Atomic writes of files, errors of the disk, and locks."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from pairscale.errors import WriteError
from pairscale.files import atomic_path, only_process, write_array, write_bytes, write_json, write_text
from tests.support import ROOT


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_is_a_message_of_one_line_and_changes_nothing(tmp_path, monkeypatch, number, call):
    path = tmp_path / "folder" / "file.json"
    write_json(path, {"version": 1})

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises(WriteError, match=rf"^{path}: .*cannot be written \({os.strerror(number)}\)"):
            write_json(path, {"version": 2})
    assert path.read_text() == '{\n "version": 1\n}\n'
    assert [file.name for file in path.parent.iterdir()] == ["file.json"]


def test_other_errors_are_not_converted(tmp_path):
    with pytest.raises(IsADirectoryError), atomic_path(tmp_path / "file"):
        tmp_path.write_text("half")
    with pytest.raises(FileNotFoundError), atomic_path(tmp_path / "file"):
        pass  # nothing was written
    assert not list(tmp_path.iterdir())


def test_contents_are_synced_before_the_rename(tmp_path, monkeypatch):
    done = []
    forced, moved = os.fsync, os.replace

    def fsync(descriptor):
        done.append(("forced", os.readlink(f"/proc/self/fd/{descriptor}")))
        forced(descriptor)

    def replace(source, target):
        done.append(("moved", str(source)))
        moved(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    write_text(tmp_path / "file", "text")
    temporary = str(tmp_path / f".file.{os.getpid()}.tmp")
    assert done == [("forced", temporary), ("moved", temporary), ("forced", str(tmp_path))]


def test_arrays_are_written_as_by_numpy(tmp_path):
    array = np.arange(12, dtype=np.uint16).reshape(3, 4)
    write_array(tmp_path / "array.npy", array)
    np.save(tmp_path / "other.npy", array)
    assert (tmp_path / "array.npy").read_bytes() == (tmp_path / "other.npy").read_bytes()
    with pytest.raises(ValueError, match="Object arrays"):
        write_array(tmp_path / "objects.npy", np.array([{}], dtype=object))


HOLD = """
import sys, time
from pathlib import Path
from pairscale.files import only_process
with only_process(Path(sys.argv[1]) / ".lock", Path(sys.argv[1])) as alone:
    print(alone, flush=True)
    time.sleep(60)
"""


def test_a_lock_is_for_one_process_and_files_of_a_killed_one_are_removed(tmp_path):
    (tmp_path / ".metrics.csv.17.tmp").touch()
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / ".vocab.txt.17.tmp").touch()
    (tmp_path / "notes.tmp").touch()  # not ours
    holder = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout.readline() == "True\n"
        assert sorted(path.name for path in tmp_path.rglob("*")) == [".lock", "notes.tmp", "tokenizer"]
        write_bytes(tmp_path / ".model.4.tmp", b"of the one that is at work")
        with only_process(tmp_path / ".lock", tmp_path) as alone:
            assert not alone
            assert (tmp_path / ".model.4.tmp").exists()
        holder.send_signal(signal.SIGKILL)
    with only_process(tmp_path / ".lock", tmp_path) as alone:
        assert alone
        assert not (tmp_path / ".model.4.tmp").exists()
