"""Validation perplexity compared with the authors' scripts: same text, recipe and words.

    REFERENCE_LSTM=CHECKOUT REFERENCE_TXL=CHECKOUT python tests/bench/quality.py --text english.txt.xz [--seeds N]

Each of our models is trained in fp32 and in bf16, the authors' script on the very tokens of the same sample (word for
word, in the same order) with the same vocabulary, columns, learning rates and number of epochs, once a seed. Perplexity
is per token, `<eos>` included, on the same validation text, the best of all epochs. Two differences remain: the scripts
cut the text instead of filling the last column (fewer than `batch` tokens), and read validation text in ten columns,
ours in sixteen.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean, stdev

import pandas as pd
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # started as a script
    sys.path.insert(0, str(ROOT))

from corpora.prepare import HeldOut, Tokens, prepare  # noqa: E402
from corpora.tokenizers import EOS, UNK  # noqa: E402
from pairscale.command.compose import compose  # noqa: E402
from tests.bench.references import copy_checkout  # noqa: E402
from train.config import RunConfig  # noqa: E402
from train.loop.batches import Columns  # noqa: E402
from train.models.config import LstmConfig, TxlConfig  # noqa: E402
from train.run import train_run  # noqa: E402

RECIPES = {
    # at the published rate of 20 results after few epochs depend on chance reductions of the rate: use twenty epochs
    "lstm": ["model=lstm_tiny", "model.tied=false", "recipe=sgd_plateau", "recipe.batch=32"],
    "txl": ["model=txl_tiny", "recipe=adam_cosine", "recipe.batch=16", "recipe.bptt=64", "recipe.lr=0.001"],
}
FP32, BF16, AUTHORS = "fp32", "bf16", "authors' script, fp32"
console = Console(highlight=False, width=120)


def our_perplexity(config: RunConfig, held_out: HeldOut) -> float:
    """Train a run; return its best validation perplexity per token."""
    metrics = pd.read_csv(train_run(config).metrics)
    return math.exp(metrics["valid_nats_per_word"].min() * held_out.words / len(held_out.tokens))


def authors_perplexity(
    model: str, checkout: Path, config: RunConfig, sample: Tokens, held_out: HeldOut, vocabulary: int
) -> float:
    """Run the authors' script; return the best validation perplexity in its log."""
    parts = {"train": sample, "valid": held_out.tokens, "test": held_out.tokens}
    temporary, code = copy_checkout(checkout / {"lstm": "src/language_models", "txl": "pytorch"}[model])
    with temporary:
        write_text(code / "data", parts, model == "lstm", vocabulary)
        command = lstm_command(config) if model == "lstm" else txl_command(config, sample)
        done = subprocess.run(
            [sys.executable, *command, "--data", "data", "--seed", str(config.seed)],
            cwd=code,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
            check=False,  # both end by loading a pickle in a way that torch no longer allows
        )
        log = done.stdout + done.stderr
    perplexities = [float(value) for value in re.findall(r"valid ppl\s+([\d.]+)", log)]
    if len(perplexities) < epochs(config):
        raise RuntimeError(f"{checkout}: the script ended early:\n{log[-2000:]}")
    return min(perplexities)


def epochs(config: RunConfig) -> int:
    assert config.recipe.budget.epochs is not None
    return round(config.recipe.budget.epochs)


def lstm_command(config: RunConfig) -> list[str]:
    model, recipe = config.model, config.recipe
    assert isinstance(model, LstmConfig)
    values = {
        "model": "LSTM", "emsize": model.embedding, "nhid": model.hidden, "nlayers": model.layers,
        "dropout": model.dropout, "batch_size": recipe.batch, "bptt": recipe.bptt, "lr": recipe.lr, "clip": recipe.clip,
        "epochs": epochs(config), "log-interval": 10**6, "save": "model.pt", "log": "log.txt",
    }  # fmt: skip
    return ["main.py", *options(values)]


def txl_command(config: RunConfig, sample: Tokens) -> list[str]:
    model, recipe = config.model, config.recipe
    assert isinstance(model, TxlConfig)
    batches = Columns(sample, 1, recipe)
    values = {
        "n_layer": model.layers, "d_model": model.d_model, "n_head": model.heads, "d_head": model.d_head,
        "d_inner": model.d_inner, "dropout": model.dropout, "dropatt": model.attention_dropout,
        "init_std": model.initial_sd, "mem_len": model.memory, "tgt_len": recipe.bptt, "eval_tgt_len": recipe.bptt,
        "optim": "adam", "lr": recipe.lr, "warmup_step": 0, "clip": recipe.clip, "batch_size": recipe.batch,
        "dataset": "wt103", "log-interval": 10**6, "max_step": len(batches), "eval-interval": batches.steps_per_epoch,
        "work_dir": "work",
    }  # fmt: skip
    return ["train.py", *options(values)]


def options(values: dict[str, object]) -> list[str]:
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def write_text(folder: Path, parts: dict[str, Tokens], ends: bool, vocabulary: int) -> None:
    """Write the tokens as words, one sentence a line, with `<eos>` if `ends` (only one of the scripts adds it)."""
    folder.mkdir()
    names = [f"w{number}" for number in range(vocabulary)]
    names[EOS], names[UNK] = "<eos>", "<unk>"
    for part, tokens in parts.items():
        text = " ".join(names[token] for token in tokens)
        (folder / f"{part}.txt").write_text(text.replace(" <eos> ", " <eos>\n" if ends else "\n") + "\n")
    if ends:
        (folder / "vocab.txt").write_text("\n".join(names) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="one sentence a line: english.txt.xz, say")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--words", default="62500", help="of the sample; enough for <unk> to be among them")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--vocabulary", type=int, default=6000)
    parser.add_argument("--models", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--folder", type=Path, help="for the store and the runs (default: a temporary one)")
    parser.add_argument("--json", type=Path, help="write all figures there")
    arguments = parser.parse_args()
    checkouts = {model: Path(os.environ[f"REFERENCE_{model.upper()}"]).resolve() for model in arguments.models}
    results: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        for model in arguments.models:
            figures = results[model] = {FP32: [], BF16: [], AUTHORS: []}
            for seed in range(1, arguments.seeds + 1):
                common = [
                    *RECIPES[model], "study=quality", "corpus=local", "corpus.name=text",
                    f"corpus.path={arguments.text}", "tokenizer=word", "tokenizer.fit_on=sample",
                    f"tokenizer.vocab_size={arguments.vocabulary}",
                    f"seed={seed}", f"sample.size={arguments.words}", f"recipe.budget.epochs={arguments.epochs}",
                    "recipe.validation_words=20000", "trainer.progress=false", "trainer.accelerator=cpu",
                    f"paths.store={folder}/store", f"paths.runs={folder}/runs",
                ]  # fmt: skip
                for precision in (FP32, BF16):
                    config = compose("train", [*common, f"precision={precision}"])
                    corpus = prepare(config)
                    held_out = corpus.held_out("valid", config.recipe.validation_words)
                    figures[precision].append(our_perplexity(config, held_out))
                reference = authors_perplexity(
                    model, checkouts[model], config, corpus.sample().tokens, held_out, len(corpus.tokenizer)
                )
                figures[AUTHORS].append(reference)
                summary = ", ".join(f"{way} {values[-1]:.1f}" for way, values in figures.items())
                console.print(f"{model}, seed {seed}: {summary}")
    table = Table("best validation perplexity", "mean", "seeds", "standard deviation", box=None)
    for model, figures in results.items():
        for way, values in figures.items():
            spread = f"{stdev(values):.1f}" if len(values) > 1 else ""
            table.add_row(f"{model}, {way}", f"{mean(values):.1f}", ", ".join(f"{v:.1f}" for v in values), spread)
    console.print("", table)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
