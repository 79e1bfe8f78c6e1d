"""Try learning rates for the `tiny` and `small` recipes on samples of real text (analysis/results/recipes.csv).

    PAIRSCALE_DATA=FOLDER python tests/bench/recipes.py --models NAME ... [--rates RATE ...] [--jobs N]

Each model trains in bf16 with three learning rates (or `--rates`) and two seeds, on samples of 31,250 and 250,000 words
of English. The budget is the recipe's, but at most `--words`, so that a run takes minutes on one core. Run the command
again to continue. Finished runs are kept. Each row of the table is a run. `valid` is its lowest validation loss over
10,000 words, in nats per reference word. Masked models have a pseudo-loss, which can be compared only with other masked
models.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2]))

from pairscale.command.compose import compose
from pairscale.files import write_text
from pairscale.sizes import parse_size
from train.runs.folder import MetricsFile, RunFolder, numbers, study_runs

TABLE = Path(__file__).parents[2] / "analysis" / "results" / "recipes.csv"
KEY = ["model", "sample_words", "lr", "seed"]
SIZES = (31_250, 250_000)
SEEDS = (1, 2)
CORPUS = [
    "corpus=local",
    "corpus.name=english_1M",
    "corpus.path=${paths.data}/text/english.txt.xz",
    "corpus.share=0.03",
    "tokenizer=unigram",
    "precision=bf16",
    "study=recipes",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", required=True, help="models to train")
    parser.add_argument(
        "--rates", nargs="+", type=float, help="learning rates (default: the recipe's, and half and twice this rate)"
    )
    parser.add_argument("--words", default="600k", help="maximum number of words that a run reads (default: 600k)")
    parser.add_argument("--jobs", type=int, default=2, help="number of simultaneous runs (default: 2)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder for the runs (default: runs)")
    arguments = parser.parse_args()
    for model in arguments.models:
        for size in SIZES:
            train(model, size, arguments)
        write_table(arguments.runs)


def train(model: str, size: int, arguments: argparse.Namespace) -> None:
    """Train a model on samples of `size` words with each learning rate and seed."""
    recipe = compose("train", [*CORPUS, f"model={model}"]).recipe
    rates = arguments.rates or [recipe.lr / 2, recipe.lr, recipe.lr * 2]
    most = parse_size(arguments.words, "--words")
    budget = [] if recipe.budget.words_seen(size) <= most else [f"recipe.budget={{epochs: null, words: {most}}}"]
    command = [sys.executable, "-m", "train", "-m", *CORPUS, *budget, f"model={model}", f"sample.size={size}"]
    command += ["recipe.validation_words=10000", f"recipe.lr={','.join(map(str, rates))}"]
    command += [f"seed={','.join(map(str, SEEDS))}", f"pool.jobs={arguments.jobs}"]
    command += [f"paths.runs={arguments.runs}"]
    subprocess.run(command, check=True)


def write_table(runs: Path) -> None:
    """Add the study's finished runs to the table, replacing earlier rows of the same runs."""
    rows = [row_of(run) for run in study_runs(runs, "recipes") if run.done]
    table = pd.DataFrame(rows)
    if TABLE.exists():
        table = pd.concat([pd.read_csv(TABLE), table]).drop_duplicates(KEY, keep="last")
    write_text(TABLE, table.sort_values(KEY).to_csv(index=False, lineterminator="\n"))


def row_of(run: RunFolder) -> dict[str, object]:
    """Return the table's row for a finished run."""
    config = run.read_config()
    rows = [numbers(row) for row in MetricsFile(run.path / "metrics.csv").rows]
    losses = ("valid_pseudo_nats_per_word", "valid_nats_per_word")
    loss = next(name for name in losses if any(name in row for row in rows))
    return {
        "model": config["model"]["name"],
        "sample_words": run.read_manifest()["sample_words"],
        "lr": config["recipe"]["lr"],
        "seed": config["seed"],
        "precision": config["precision"],
        "words_seen": int(rows[-1]["words_seen"]),
        "measure": loss,
        "valid": round(min(row[loss] for row in rows if loss in row), 6),
    }


if __name__ == "__main__":
    main()
