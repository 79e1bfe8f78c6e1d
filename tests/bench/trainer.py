"""Training beside the Trainer of Hugging Face, on the same batches from the same weights: loss, speed, memory.

    python tests/bench/trainer.py [--models NAME ...] [--size 125k] [--seeds 1 2 3] [--threads N] [--json FILE]

Text: --text FILE, else the built-in language. Both ways get the network of one seed, every batch in the same order, the
same AdamW, schedule and clipping; only dropout draws other numbers. The validation of both is ours. Each run is a
process of its own; the ways take turns. Speed is of training alone, memory the peak of the process.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from torch.utils.data import Dataset, SequentialSampler

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # started as a script
    sys.path.insert(0, str(ROOT))

from pairscale.command.compose import compose  # noqa: E402
from train.loop.device import Ranks  # noqa: E402
from train.loop.training import LanguageModelling, fit, quiet_lightning, set_up  # noqa: E402
from train.models.huggingface import HuggingFaceModel  # noqa: E402
from train.recipes import AdamWConfig  # noqa: E402
from train.runs.folder import RunFolder  # noqa: E402

WAYS = ("pairscale", "Trainer")


def main() -> None:
    """Run all, print a table, write --json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["gpt2_tiny", "roberta_tiny"])
    parser.add_argument("--size", default="125k")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("WAY", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(arguments, *arguments.one)))
        return
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models:
            for seed in arguments.seeds:
                for way in WAYS:
                    words = [
                        sys.executable,
                        __file__,
                        "--models",
                        model,
                        "--seeds",
                        str(seed),
                        "--size",
                        arguments.size,
                    ]
                    words += ["--threads", str(arguments.threads), "--one", way, folder]
                    words += ["--text", str(arguments.text.resolve())] if arguments.text else []
                    done = subprocess.run(words, capture_output=True, text=True, check=False)
                    if done.returncode:
                        sys.exit(done.stderr[-2000:])
                    results.append(json.loads(done.stdout.splitlines()[-1]))
                    print(results[-1], file=sys.stderr, flush=True)
    for line in table(results):
        print(line)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


def table(results: list[dict[str, Any]]) -> Iterator[str]:
    """Yield lines: per model and way the loss over seeds, words a second and memory, and the ratio of the speeds."""
    for model in dict.fromkeys(row["model"] for row in results):
        speeds = {}
        for way in WAYS:
            rows = [row for row in results if (row["model"], row["way"]) == (model, way)]
            losses = [row["nats_per_word"] for row in rows]
            spread = f" ± {stdev(losses):.3f}" if len(losses) > 1 else ""
            speeds[way] = [row["words_per_s"] for row in rows]
            yield (
                f"{model:14} {way:10} {mean(losses):.3f}{spread} nats a word, {mean(speeds[way]):,.0f} words/s, "
                f"{max(row['peak_mib'] for row in rows):,.0f} MiB"
            )
        ratios = [ours / theirs for ours, theirs in zip(*speeds.values(), strict=True)]
        yield f"{model:14} speed beside the Trainer: {', '.join(f'{ratio:.2f}' for ratio in ratios)}"


def one(arguments: argparse.Namespace, way: str, folder: str) -> dict[str, Any]:
    """Train one model one way in this process."""
    (model,), (seed,) = arguments.models, arguments.seeds
    text = ["corpus=local", "corpus.name=bench", f"corpus.path={arguments.text}"] if arguments.text else ["corpus=toy"]
    config = compose("train", [
        *text, "tokenizer=unigram", f"model={model}", f"sample.size={arguments.size}", f"seed={seed}", "study=bench",
        "recipe.budget={epochs:2,words:null}", "recipe.validate_every=1000M", "recipe.validation_words=2000",
        "trainer.accelerator=cpu", "trainer.progress=false", f"trainer.threads={arguments.threads}",
        f"paths.store={folder}/store", f"paths.runs={folder}/runs",
        *([] if arguments.text else ["tokenizer.vocab_size=1000"]),
    ])  # fmt: skip
    run = RunFolder.of(config)
    run.path.mkdir(parents=True, exist_ok=True)
    with quiet_lightning():
        training = set_up(config, run, None, Ranks())
        started = time.perf_counter()
        if way == "Trainer":
            fit_by_trainer(training, folder)
        else:
            fit(training)
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    validation, batches = training.data.validation(training.model, torch.device("cpu")), training.data.batches
    return {
        "model": model, "way": way, "seed": seed, "nats_per_word": validation.nats / validation.words,
        "words_per_s": batches.words_seen(len(batches)) / seconds, "peak_mib": peak,
    }  # fmt: skip


def fit_by_trainer(training: LanguageModelling, folder: str) -> None:
    """Train the network of a run by the Trainer of transformers, which has its own place in the random numbers."""
    from transformers import Trainer, TrainingArguments

    recipe, data, model = training.config.recipe, training.data, training.model
    batches = data.batches
    assert isinstance(recipe, AdamWConfig)
    assert isinstance(model, HuggingFaceModel)

    class Steps(Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return len(batches)

        def __getitem__(self, step: int) -> dict[str, Any]:
            batch = batches.at(step)
            if data.masked is not None:
                return {"input_ids": batch.inputs, "labels": batch.targets}
            # A causal network moves its labels by one itself.
            whole = torch.cat([batch.inputs, batch.targets[:, -1:]], dim=1)
            return {"input_ids": whole, "labels": whole}

    class InOrder(Trainer):
        def _get_train_sampler(self, *_: Any) -> Any:
            return SequentialSampler(self.train_dataset)

    settings = TrainingArguments(
        output_dir=f"{folder}/trainer", per_device_train_batch_size=1, max_steps=len(batches), learning_rate=recipe.lr,
        lr_scheduler_type="cosine", warmup_steps=round(recipe.warmup * len(batches)), weight_decay=recipe.weight_decay,
        adam_beta1=recipe.betas[0], adam_beta2=recipe.betas[1], adam_epsilon=recipe.eps, max_grad_norm=recipe.clip,
        save_strategy="no", logging_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
        seed=training.config.seed,
    )  # fmt: skip
    InOrder(model.network, settings, train_dataset=Steps(), data_collator=lambda rows: rows[0]).train()


if __name__ == "__main__":
    main()
