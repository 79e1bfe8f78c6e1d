"""The training scripts of the models' authors, run as they are, on simulated text; their own log says how fast they go.

A script runs in a process of its own, which is stopped (SIGSTOP) while others have their turn. Checkouts:
github.com/facebookresearch/colorlessgreenRNNs (LSTM) and github.com/kimiyoung/transformer-xl. The copies that are run
differ from them in the few words that torch no longer takes (REPLACED).
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
    """A way (tests/bench/turns.py): goes on for some steps, each of `tokens` tokens, that its log gives the time of."""

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
        self._step()  # that of the pause
        times: list[float] = []
        while not times or sum(times) < seconds:
            times.append(self._step())
        self.process.send_signal(signal.SIGSTOP)
        return self.tokens * len(times), sum(times)

    def _step(self) -> float:
        """Seconds of the next step."""
        assert self.process is not None
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            if found := STEP.search(line):
                return float(found[1]) / 1000
        raise RuntimeError(f"{self.folder}: the script ended:\n{''.join(said[-20:])}")

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.temporary.cleanup()


def authors_lstm(checkout: Path, vocabulary: int, batch: int | None) -> AuthorsScript:
    """main.py with the published hyperparameters: 650, two layers, batch 128, bptt 35, dropout .2, lr 20."""
    batch = batch or 128
    temporary, code = copied(checkout / "src/language_models")
    _write_text(code / "data", vocabulary, batch * 35 * STEPS, "vocab.txt")
    command = [
        sys.executable, "main.py", "--data", "data", "--model", "LSTM", "--emsize", "650", "--nhid", "650",
        "--nlayers", "2", "--dropout", "0.2", "--batch_size", str(batch), "--bptt", "35", "--lr", "20", "--epochs", "1",
        "--log-interval", "1", "--save", "model.pt", "--log", "log.txt", *_on_gpu(),
    ]  # fmt: skip
    return AuthorsScript(command, code, temporary, batch * 35)


def authors_txl(checkout: Path, vocabulary: int, batch: int | None) -> AuthorsScript:
    """train.py with the base model of WikiText-103 and a full softmax: 16 layers, 410, 150 tokens and 150 of memory."""
    batch = batch or 60
    temporary, code = copied(checkout / "pytorch")
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


def copied(code: Path) -> tuple[tempfile.TemporaryDirectory[str], Path]:
    if not code.is_dir():
        raise SystemExit(
            f"{code}: no such folder; REFERENCE_LSTM and REFERENCE_TXL name checkouts (tests/bench/README.md)"
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
    """Words with Zipf's frequencies, all of the vocabulary among them; twenty a line."""
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
