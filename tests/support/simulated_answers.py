"""Simulated answers of models to the diagnostics, for tests of the analysis."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from eval.benchmarks.config import DiagnosticConfig
from eval.diagnostics.questions import load_questions
from eval.scores.files import write_answers
from eval.scores.schemas import CLOZE, TOPK
from train.runs.folder import RunFolder

WORDS = ("the", "a", "bird", "first", "new")


def answers(questions: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return a CLOZE table of random probabilities and ranks (1 to 8); one word in nine cannot be expressed."""
    n = len(questions)
    expressible = rng.random(n) > 1 / 9
    rank = pd.array(rng.integers(1, 9, n), dtype="Int32")
    rank[~expressible] = pd.NA
    cloze = questions.assign(
        prob=np.where(expressible, rng.random(n) / 20, np.nan), rank=rank, n_tokens=1, expressible=expressible
    )
    return cloze[CLOZE.names]


def answer(run: RunFolder, config: DiagnosticConfig, seed: int, policy: dict[str, str] | None = None) -> pd.DataFrame:
    """Write a run's simulated answers to the diagnostic that `config` names; return those in cloze.parquet."""
    questions = load_questions(config)
    cloze = answers(questions.rows, np.random.default_rng(seed))
    fixed = cloze[cloze["trial"].isna()].drop_duplicates(["item", "condition", "context"])
    top = [
        (*row, place, word, 0.1 / place)
        for row in fixed[["item", "condition", "context"]].itertuples(index=False)
        for place, word in enumerate(WORDS, start=1)
    ]
    metadata = {
        "parameters": {"top_words": 5},
        "policy": {"context": "none", "context_tokens": 32, "precision": "fp32"} | (policy or {}),
        "benchmark": {"name": config.name, "digest": questions.digest},
        "model": {"name": "simulated", "digest": "0d" * 32},
        "tokenizer_digest": "70" * 32,
        "step": None,
        "sample_words": None,
        "torch": "2.13.0",
    }
    folder: Path = run.scores(config.name)
    folder.mkdir(parents=True, exist_ok=True)
    write_answers(folder, {"topk": pd.DataFrame(top, columns=TOPK.names), "cloze": cloze}, metadata)
    return cloze
