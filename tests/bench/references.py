"""Run the training scripts of the models' authors on simulated text, and read their speed from their logs.

Each script runs in its own process, which is stopped (SIGSTOP) during the turns of others. The checkouts are
github.com/facebookresearch/colorlessgreenRNNs (LSTM) and github.com/kimiyoung/transformer-xl. We run copies, in which
we replace only the few expressions that torch no longer supports (REPLACED).
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
STEPS = 2_000 if torch.cuda.is_available() else 400  # steps in the simulated text, more than any benchmark needs


class AuthorsScript:
    """A way (tests/bench/training.py) that runs a few steps of `tokens` tokens, and reads their times from the log."""

    def __init__(self, command: list[str], folder: Path, temporary: tempfile.TemporaryDirectory[str], tokens: int):
        self.command, self.folder, self.temporary, self.tokens = command, folder, temporary, tokens
        self.process: subprocess.Popen[str] | None = None

    def __call__(self, seconds: float) -> tuple[float, float]:
        if self.process is None:
            threads = str(torch.get_num_threads())  # as many as for our model
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
        self._step()  # this step includes the pause
        times: list[float] = []
        while not times or sum(times) < seconds:
            times.append(self._step())
        self.process.send_signal(signal.SIGSTOP)
        return self.tokens * len(times), sum(times)

    def _step(self) -> float:
        """Return the duration of the next step in seconds."""
        assert self.process is not None
        assert self.process.stdout is not None
        output = []
        for line in self.process.stdout:
            output.append(line)
            if match := STEP.search(line):
                return float(match[1]) / 1000
        raise RuntimeError(f"{self.folder}: the script ended early. Its last lines are:\n{''.join(output[-20:])}")

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.temporary.cleanup()


def authors_lstm(checkout: Path, vocabulary: int, batch: int | None) -> AuthorsScript:
    """Return main.py with the published values: two layers of 650, batch 128, bptt 35, dropout 0.2, lr 20."""
    options = f"""main.py --model LSTM --emsize 650 --nhid 650 --nlayers 2 --dropout 0.2 --batch_size {batch or 128}
        --bptt 35 --lr 20 --epochs 1 --save model.pt --log log.txt"""
    return _script(checkout / "src/language_models", options, vocabulary, (batch or 128) * 35)


def authors_txl(checkout: Path, vocabulary: int, batch: int | None) -> AuthorsScript:
    """Return train.py with the WikiText-103 base model (16 layers of 410, 150 tokens and memory) and full softmax."""
    options = f"""train.py --dataset wt103 --n_layer 16 --d_model 410 --n_head 10 --d_head 41 --d_inner 2100
        --dropout 0.1 --dropatt 0.0 --optim adam --lr 0.00025 --warmup_step 0 --max_step 200000 --tgt_len 150
        --mem_len 150 --eval_tgt_len 150 --batch_size {batch or 60} --work_dir work"""
    return _script(checkout / "pytorch", options, vocabulary, (batch or 60) * 150)


AUTHORS = {"lstm": authors_lstm, "txl": authors_txl}


def _script(source: Path, options: str, vocabulary: int, tokens: int) -> AuthorsScript:
    """Return a script that runs on simulated text, in a copy of its folder with REPLACED applied."""
    if not source.is_dir():
        raise SystemExit(
            f"{source}: this folder does not exist. Set REFERENCE_LSTM and REFERENCE_TXL to checkouts of the authors' "
            "code (docs/benchmarks.md)."
        )
    temporary = tempfile.TemporaryDirectory(prefix="pairscale-reference-")
    code = Path(shutil.copytree(source, Path(temporary.name) / "code"))
    for file in code.rglob("*.py"):
        text = file.read_text()
        for old, new in REPLACED.items():
            text = text.replace(old, new)
        file.write_text(text)
    _write_text(code / "data", vocabulary, tokens * STEPS)
    command = [sys.executable, *options.split(), "--data", "data", "--log-interval", "1"]
    return AuthorsScript(command + ["--cuda"] * torch.cuda.is_available(), code, temporary, tokens)


def _write_text(folder: Path, vocabulary: int, tokens: int) -> None:
    """Write text with Zipfian frequencies and twenty words per line. Each word occurs at least once."""
    folder.mkdir()
    words = np.array(["<unk>", "<eos>", *(f"w{number}" for number in range(vocabulary - 2))])
    weights = 1 / np.arange(1, vocabulary + 1)
    drawn = np.random.default_rng(1).choice(vocabulary, tokens, p=weights / weights.sum())
    parts = {"train": np.r_[np.arange(vocabulary), drawn], "valid": drawn[:20_000], "test": drawn[:20_000]}
    for name, ids in parts.items():
        lines = ids[: len(ids) // 20 * 20].reshape(-1, 20)
        (folder / f"{name}.txt").write_text("\n".join(" ".join(words[line]) for line in lines) + "\n")
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")  # the LSTM's script reads this file
