"""The training scripts of the models' authors, run unchanged on simulated text; their logs give their speed.

A script runs in a process of its own, which is stopped (SIGSTOP) during the turns of others. Checkouts:
github.com/facebookresearch/colorlessgreenRNNs (LSTM) and github.com/kimiyoung/transformer-xl. The copies that run
differ from them in the few expressions that torch no longer supports (REPLACED).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

REPLACED = {".byte()": ".bool()", "torch.version.cuda": "'0.0'"}
STEP = re.compile(r"ms/batch\s+([\d.]+)")
STEPS = 2_000 if torch.cuda.is_available() else 400  # of text: more than any benchmark asks for


class AuthorsScript:
    """A way (tests/bench/turns.py): runs for some steps of `tokens` tokens each, timed by the script's log."""

    def __init__(self, command: list[str], folder: Path, temporary: tempfile.TemporaryDirectory[str], tokens: int):
        self.command, self.folder, self.temporary, self.tokens = command, folder, temporary, tokens
        self.process: subprocess.Popen[str] | None = None

    def __call__(self, seconds: float) -> tuple[float, float]:
        if self.process is None:
            threads = str(torch.get_num_threads())  # as many as ours has
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": threads},
            )
        else:
            self.process.send_signal(signal.SIGCONT)
        self._step()  # includes the pause
        times: list[float] = []
        while not times or sum(times) < seconds:
            times.append(self._step())
        self.process.send_signal(signal.SIGSTOP)
        return self.tokens * len(times), sum(times)

    def _step(self) -> float:
        """Return the seconds of the next step."""
        assert self.process is not None
        assert self.process.stdout is not None
        output = []
        for line in self.process.stdout:
            output.append(line)
            if match := STEP.search(line):
                return float(match[1]) / 1000
        raise RuntimeError(f"{self.folder}: the script ended:\n{''.join(output[-20:])}")

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.temporary.cleanup()


def authors_lstm(checkout: Path, vocabulary: int, batch: int | None) -> AuthorsScript:
    """Return main.py with the published hyperparameters: 650, two layers, batch 128, bptt 35, dropout .2, lr 20."""
    batch = batch or 128
    temporary, code = copy_checkout(checkout / "src/language_models")
    _write_text(code / "data", vocabulary, batch * 35 * STEPS, "vocab.txt")
    command = [
        sys.executable, "main.py", "--data", "data", "--model", "LSTM", "--emsize", "650", "--nhid", "650",
        "--nlayers", "2", "--dropout", "0.2", "--batch_size", str(batch), "--bptt", "35", "--lr", "20", "--epochs", "1",
        "--log-interval", "1", "--save", "model.pt", "--log", "log.txt", *_on_gpu(),
    ]  # fmt: skip
    return AuthorsScript(command, code, temporary, batch * 35)


def authors_txl(checkout: Path, vocabulary: int, batch: int | None) -> AuthorsScript:
    """Return train.py with the base model of WikiText-103 and a full softmax: 16 layers, 410, 150 tokens and memory."""
    batch = batch or 60
    temporary, code = copy_checkout(checkout / "pytorch")
    _write_text(code / "data", vocabulary, batch * 150 * STEPS, None)
    command = [
        sys.executable, "train.py", "--data", "data", "--dataset", "wt103", "--n_layer", "16", "--d_model", "410",
        "--n_head", "10", "--d_head", "41", "--d_inner", "2100", "--dropout", "0.1", "--dropatt", "0.0", "--optim",
        "adam", "--lr", "0.00025", "--warmup_step", "0", "--max_step", "200000", "--tgt_len", "150", "--mem_len", "150",
        "--eval_tgt_len", "150", "--batch_size", str(batch), "--log-interval", "1", "--work_dir", "work", *_on_gpu(),
    ]  # fmt: skip
    return AuthorsScript(command, code, temporary, batch * 150)


AUTHORS = {"lstm": authors_lstm, "txl": authors_txl}


def _on_gpu() -> list[str]:
    return ["--cuda"] if torch.cuda.is_available() else []


def copy_checkout(code: Path) -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """Copy a folder of code with REPLACED applied; return the temporary folder and the copy in it."""
    if not code.is_dir():
        raise SystemExit(
            f"{code}: no such folder; REFERENCE_LSTM and REFERENCE_TXL name checkouts (docs/benchmarks.md)"
        )
    temporary = tempfile.TemporaryDirectory(prefix="pairscale-reference-")
    code_copy = Path(temporary.name) / "code"
    shutil.copytree(code, code_copy)
    for file in code_copy.rglob("*.py"):
        text = file.read_text()
        for old, new in REPLACED.items():
            text = text.replace(old, new)
        file.write_text(text)
    return temporary, code_copy


def _write_text(folder: Path, vocabulary: int, tokens: int, vocabulary_file: str | None) -> None:
    """Write words with Zipf's frequencies, each of the vocabulary at least once; twenty a line."""
    folder.mkdir()
    words = np.array(["<unk>", "<eos>", *(f"w{number}" for number in range(vocabulary - 2))])
    weights = 1 / np.arange(1, vocabulary + 1)
    drawn = np.random.default_rng(1).choice(vocabulary, tokens, p=weights / weights.sum())
    for name, ids in {
        "train": np.r_[np.arange(vocabulary), drawn],
        "valid": drawn[:20_000],
        "test": drawn[:20_000],
    }.items():
        ids = ids[: len(ids) // 20 * 20].reshape(-1, 20)
        (folder / f"{name}.txt").write_text("\n".join(" ".join(words[line]) for line in ids) + "\n")
    if vocabulary_file:
        (folder / vocabulary_file).write_text("\n".join(words) + "\n")
