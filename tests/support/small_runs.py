"""Provide overrides for runs that train in a second, and a text that they can learn from."""

import random
from collections.abc import Callable
from pathlib import Path

from train.config import RunConfig
from train.run import corpus_of, train_run
from train.runs.folder import RunFolder

SMALL = ["corpus=local", "corpus.split.valid=0.1", "tokenizer=word", "sample.size=12k", "recipe.validation_words=500"]
NARROW = ["model.config.hidden_size=24", "model.config.num_hidden_layers=2", "recipe.context=20"]
HEADS = ["model.heads=2", "model.d_head=12"]
MODELS = {
    "lstm": ["model=lstm_tiny", "model.embedding=24", "model.hidden=24"],
    "gru": ["model=gru_tiny", "model.embedding=24", "model.hidden=24"],
    "gpt2": ["model=gpt2_tiny", "model.config.n_embd=24", "model.config.n_layer=2", "recipe.context=20"],
    "opt": ["model=opt_tiny", "model.config.word_embed_proj_dim=24", *NARROW],
    **{family: [f"model={family}_tiny", *NARROW] for family in ("gpt_neox", "llama", "bert", "roberta")},
    "mamba": ["model=mamba", "recipe=adamw", *NARROW],
    "deberta_v2": ["model=deberta_v2", "model.config.intermediate_size=512", "recipe=adamw_masked", *NARROW],
    "gpt_bert": ["model=gpt_bert_tiny", *NARROW, "model.masking.causal_share=0.3"],
    "txl": ["model=txl_tiny", "model.layers=2", "model.d_model=24", "model.d_inner=32", *HEADS],
}
RUN = ["recipe.budget.epochs=3", "trainer.progress=false", "trainer.threads=1", "trainer.accelerator=cpu"]


def overrides(tmp_path: Path, model: str, runs: str, *more: str) -> list[str]:
    paths = [f"corpus.path={tmp_path}/text.txt", f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/{runs}"]
    return [*SMALL, *MODELS[model], *RUN, *paths, *more]


def trained(config: RunConfig, check: Callable[[], object] | None = None) -> RunFolder:
    """Return the folder of a run. Train the run first if it is unfinished."""
    return train_run(config, corpus_of(config), check)


def study_overrides(folder: Path) -> list[str]:
    """Return the overrides for a study "s" on the CPU, with runs and data below `folder`."""
    return [f"paths.data={folder}", f"paths.runs={folder}/runs", "trainer.accelerator=cpu", "study=s"]


def for_training(overrides: list[str]) -> list[str]:
    """Return the overrides that `python -m train` uses, without overrides for scoring."""
    return [override for override in overrides if not override.startswith(("benchmark", "method"))]


def write_text(folder: Path) -> None:
    """Write text.txt. Its documents have ten sentences, in which each word has few likely successors."""
    draw = random.Random(0)
    words = [f"w{n}" for n in range(300)]
    lines = []
    for number in range(3_000):
        at = draw.randrange(300)
        sentence = [words[at]]
        for _ in range(draw.randrange(4, 9)):
            at = (3 * at + draw.randrange(4)) % 300
            sentence.append(words[at])
        lines.append(" ".join(sentence) + " ." + ("\n" if number % 10 == 9 else ""))
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
