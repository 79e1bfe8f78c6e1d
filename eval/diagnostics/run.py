"""One run on a diagnostic: the counterpart of eval/pairs.py for questions, which have no methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from eval.config import EvalConfig, recorded_policy, score_label
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.files import TOPK, cloze_metadata, read_cloze, read_topk, write_cloze
from eval.diagnostics.measures import measures
from eval.diagnostics.questions import Questions, load_questions
from eval.diagnostics.table import cloze_tables
from eval.pairs import same_scores
from eval.scores.table import percent
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
    """The answers of one run to a diagnostic; `missing` from its files, `unrecorded`: in files without settings."""

    run: RunFolder
    config: EvalConfig
    benchmark: DiagnosticConfig
    scorer: Scorer
    questions: Questions
    folder: Path
    metadata: dict[str, Any]
    missing: bool
    unrecorded: bool

    @staticmethod
    def check_methods(config: EvalConfig) -> None:
        """Accept any methods: a diagnostic has none."""

    @staticmethod
    def check_benchmark(config: EvalConfig) -> None:
        """Read the questions. Raises as `load_questions`."""
        assert isinstance(config.benchmark, DiagnosticConfig)
        load_questions(config.benchmark)

    @classmethod
    def of(cls, run: RunFolder, config: EvalConfig, scorer: Scorer) -> ClozeWork:
        """Compare what is requested with the files of a run. Raises as `load_questions`; RunError for damaged files."""
        benchmark = config.benchmark
        assert isinstance(benchmark, DiagnosticConfig)
        questions = load_questions(benchmark)
        policy = recorded_policy(config.policy, None, scorer.pll_shift(config.policy))
        counting = {name: policy[name] for name in _POLICY if policy.get(name) is not None}
        about = {"name": questions.name, "digest": questions.digest}
        metadata = answer_metadata(run, scorer, about, counting, {"top_words": benchmark.top_words})
        folder = run.scores(score_label(benchmark, config.policy))
        missing, unrecorded = compared(cloze_metadata(folder), metadata)
        return cls(run, config, benchmark, scorer, questions, folder, metadata, missing, unrecorded)

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Return {}: all questions are there."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what is odd about the questions."""
        return self.questions.notes

    def described(self) -> str:
        """Return what would be scored, for dry runs."""
        questions = self.questions.rows
        contexts = f"{questions['context'].nunique():,} contexts of {questions['item'].nunique()} items"
        return f"would score {contexts}" if self.missing else "scored already"

    def headline(self) -> dict[str, float | str]:
        """Return what a line about the run says: the first of the diagnostic's measures."""
        first = measures(self.questions.name, read_cloze(self.folder)[0]).iloc[0]
        return {"note": f"{first['level']} {str(first['name']).replace('_', ' ')} {percent(first['accuracy'])}%"}

    def score(self) -> None:
        """Ask all different contexts in one pass, and write both files."""
        set_up_cpu(self.config.trainer, self.run.read_manifest().get("parameters"))
        questions = self.questions.rows
        of_context = questions.groupby("context", sort=False)["candidate"].unique()
        candidates = [list(words) for words in of_context]
        contexts = of_context.index.tolist()
        answers = self.scorer.next_words(contexts, candidates, self.benchmark.top_words, self.config.policy)
        by_context = dict(zip(of_context.index, zip(candidates, answers, strict=True), strict=True))
        write_cloze(self.folder, _cloze_rows(questions, by_context), _topk_rows(questions, by_context), self.metadata)

    def tables(self, trajectory: list[dict[str, Any]], width: int) -> Iterator[Table | Text | str]:
        """Yield what the terminal shows of the files; a diagnostic has no `trajectory`."""
        cloze, _ = read_cloze(self.folder)
        title = f"{self.run.path.name} · {self.folder.name}" + ("" if self.missing else " (scored already)")
        return cloze_tables(title, self.questions.name, cloze, read_topk(self.folder), self.benchmark.show, width)


def answer_metadata(
    run: RunFolder,
    scorer: Scorer,
    benchmark: Mapping[str, str],
    policy: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the metadata (eval.diagnostics.files.METADATA) of a run's answers; `benchmark`: its name and digest."""
    import torch

    described = run.read_model_config()
    metadata = {
        "parameters": dict(parameters),
        "policy": dict(policy),
        "benchmark": dict(benchmark),
        "model": {"name": described.get("path", described["name"]), "digest": scorer.digest},
        "tokenizer_digest": scorer.tokenizer_digest,
        "step": None,
        "sample_words": scorer.sample_words,
        "torch": torch.__version__,
    }
    return metadata | ({"settings": scorer.settings} if scorer.settings else {})


def compared(recorded: dict[str, Any] | None, metadata: dict[str, Any]) -> tuple[bool, bool]:
    """Return whether answers are missing, or are there without the settings that `metadata` has."""
    if recorded is None or not same_scores(recorded, metadata):
        return True, False
    return False, "settings" in metadata and "settings" not in recorded


def _cloze_rows(questions: pd.DataFrame, answers: dict[str, tuple[list[str], NextWords]]) -> pd.DataFrame:
    """Return the columns of eval.diagnostics.files.CLOZE; `answers`: of each context its candidates and answer."""
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
    """Return the columns of eval.diagnostics.files.TOPK, of the conditions that are not drawn at random."""
    fixed = questions[questions["trial"].isna()].drop_duplicates(["item", "condition", "context"])
    rows = [
        (item, condition, context, place, word, prob)
        for item, condition, context in fixed[["item", "condition", "context"]].itertuples(index=False)
        for answer in [answers[context][1]]
        for place, (word, prob) in enumerate(zip(answer.words, np.exp(answer.word_logprobs), strict=True), start=1)
    ]
    return pd.DataFrame(rows, columns=TOPK.names)
