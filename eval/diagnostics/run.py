"""Score one run on a diagnostic: what eval/run.py does with pairs and methods, for questions without methods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from corpora.words import count_words
from eval.config import EvalConfig, PolicyConfig, recorded_policy, score_label
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.files import TOPK, cloze_metadata, read_cloze, read_topk, write_cloze
from eval.diagnostics.questions import Questions, load_questions
from eval.diagnostics.table import cloze_tables
from eval.pairs import same_scores
from train.config import TrainerConfig
from train.loop.device import set_up_cpu
from train.runs.folder import RunFolder

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from eval.scorers.base import NextWords, Scorer

# Parts of the policy that count: no end of a sentence is scored, and a word that is <unk> has no probability.
_POLICY = ("context", "context_tokens", "context_text", "precision", "pll", "pll_shift")


@dataclass(frozen=True)
class ClozeWork:
    """What is asked of one run, and whether it lacks.

    unrecorded: its scores are of a time when settings (eval.scores.files) were not kept with them.
    """

    run: RunFolder
    scorer: Scorer
    questions: Questions
    config: DiagnosticConfig
    policy: PolicyConfig
    trainer: TrainerConfig
    folder: Path
    metadata: dict[str, Any]
    lacking: bool
    unrecorded: bool

    @classmethod
    def of(cls, run: RunFolder, config: EvalConfig, scorer: Scorer) -> ClozeWork:
        """Raises what `load_questions` does, and RunError for damaged files of scores."""
        import torch

        asked = config.benchmark
        assert isinstance(asked, DiagnosticConfig)
        questions = load_questions(asked)
        described = run.read_model_config()
        policy = recorded_policy(config.policy, None, scorer.pll_shift(config.policy))
        metadata = {
            "parameters": {"top_words": asked.top_words},
            "policy": {name: policy[name] for name in _POLICY if policy.get(name) is not None},
            "benchmark": {"name": questions.name, "digest": questions.digest},
            "model": {"name": described.get("path", described["name"]), "digest": scorer.digest},
            "tokenizer_digest": scorer.tokenizer_digest,
            "step": None,
            "sample_words": scorer.sample_words,
            "torch": torch.__version__,
        }
        if scorer.settings:
            metadata["settings"] = scorer.settings
        folder = run.scores(score_label(asked, config.policy))
        there = cloze_metadata(folder)
        lacking = there is None or not same_scores(there, metadata)
        unrecorded = there is not None and not lacking and bool(scorer.settings) and "settings" not in there
        return cls(run, scorer, questions, asked, config.policy, config.trainer, folder, metadata, lacking, unrecorded)

    def described(self) -> str:
        """What would be scored."""
        questions = self.questions.rows
        contexts = f"{questions['context'].nunique():,} contexts of {questions['item'].nunique()} items"
        return f"would score {contexts}" if self.lacking else "scored already"

    def score(self) -> None:
        """One pass over all different contexts; both files."""
        set_up_cpu(self.trainer, self.run.read_manifest().get("parameters"))
        questions = self.questions.rows
        asked = questions.groupby("context", sort=False)["candidate"].unique()
        candidates = [list(words) for words in asked]
        found = self.scorer.next_words(asked.index.tolist(), candidates, self.config.top_words, self.policy)
        answers = dict(zip(asked.index, zip(candidates, found, strict=True), strict=True))
        write_cloze(self.folder, _cloze_rows(questions, answers), _topk_rows(questions, answers), self.metadata)

    def tables(self, width: int) -> Iterator[Table | Text]:
        """What to print of the files."""
        cloze, _ = read_cloze(self.folder)
        title = f"{self.run.path.name} · {self.folder.name}" + ("" if self.lacking else " (scored already)")
        return cloze_tables(title, self.questions.name, cloze, read_topk(self.folder), self.config.show, width)


def count_contexts(config: DiagnosticConfig, reference: str) -> list[int]:
    """Reference words of each different context of a diagnostic, for estimates of time."""
    return [count_words(context, reference) for context in load_questions(config).rows["context"].unique()]


def _cloze_rows(questions: pd.DataFrame, answers: dict[str, tuple[list[str], NextWords]]) -> pd.DataFrame:
    """Columns of eval.diagnostics.files.CLOZE."""
    at = [
        (answer, words.index(candidate))
        for context, candidate in zip(questions["context"], questions["candidate"], strict=True)
        for words, answer in [answers[context]]
    ]
    logprobs = np.asarray([answer.logprobs[place] for answer, place in at])
    ranks = pd.array([answer.ranks[place] for answer, place in at], dtype="Int32")
    known = ~np.isnan(logprobs)
    ranks[~known] = pd.NA
    return questions.assign(
        prob=np.exp(logprobs), rank=ranks, n_tokens=[answer.tokens[place] for answer, place in at], expressible=known
    )


def _topk_rows(questions: pd.DataFrame, answers: dict[str, tuple[list[str], NextWords]]) -> pd.DataFrame:
    """Columns of eval.diagnostics.files.TOPK, of the conditions that are not drawn at random."""
    fixed = questions[questions["trial"].isna()].drop_duplicates(["item", "condition", "context"])
    rows = [
        (item, condition, context, place, word, prob)
        for item, condition, context in fixed[["item", "condition", "context"]].itertuples(index=False)
        for answer in [answers[context][1]]
        for place, (word, prob) in enumerate(zip(answer.words, np.exp(answer.word_logprobs), strict=True), start=1)
    ]
    return pd.DataFrame(rows, columns=TOPK.names)
