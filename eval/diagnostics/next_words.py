"""What a model expects next: the probability and rank of words after a context, and the most probable words.

Causal models and our own read `context.rstrip()` and each candidate with its space; masked ones that with " ." after
it, and the candidate hidden. Which tokens are the candidate's is told by character offsets. The probability of one of
several tokens is that of all of them, left to right; a masked model then has as many masks as the candidate has tokens,
which are filled in from the left (policy.pll=within_word_l2r, the default; original: each is hidden alone).

Ranks and top words are over whole words: tokens that begin a word and are words to look at (letters and digits, no
marks alone). That a token is also the beginning of longer words no tokenizer tells, so a causal model's " wait" counts
as a word though its probability holds that of " waiter". Where that longer word is the candidate, its first token
competes with what is left of its probability. A masked model sees the full stop that ends the word.

Each context is read once for all of its candidates, with a longer reading only where one has several tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from corpora.tokenizers import EOS, UNK
from eval.config import PolicyConfig
from eval.diagnostics.readings import Plan, Reading, hidden_words, left_to_right, reading_batches
from eval.diagnostics.whole_words import hub_words, own_words
from eval.scorers.base import Scorer, tracked
from eval.scorers.causal import CausalScorer
from eval.scorers.forward import without_cache
from eval.scorers.hf_tokenizers import check_embedded, encoded, first_symbol
from eval.scorers.masked import MaskedScorer
from eval.scorers.ngram import NgramScorer
from eval.scorers.own import ModelScorer
from eval.scorers.too_long import TextTooLong
from eval.scorers.trees import Ids
from pairscale.errors import ConfigError
from train.loop.device import without_gradients
from train.models.base import LanguageModel, State
from train.models.loss import CHUNK_BYTES, all_logprobs

STATES = 256  # of an n-gram model whose distributions are kept: 50 MB with 50,000 words
Asked = list[tuple[str, str]]  # context, candidate
Read = Callable[[list[Ids], list[list[int]]], Tensor]  # texts, positions of each -> ln p of all tokens there (R, V)


@dataclass(frozen=True, slots=True)
class NextWords:
    """What a model says of how one context goes on, for C candidates."""

    logprobs: npt.NDArray[np.float64]  # (C,) nats; NaN where the model cannot express the candidate
    ranks: npt.NDArray[np.int64]  # (C,) 1 + number of whole words that are more probable; 0 where not expressible
    tokens: npt.NDArray[np.int64]  # (C,)
    words: list[str]  # the most probable whole words, the first one first
    word_logprobs: npt.NDArray[np.float64]  # (k,) nats


@dataclass(frozen=True)
class _Model:
    """What is needed of a scorer."""

    read: Read
    vocabulary: int
    words: dict[int, str]  # tokens that are whole words


def next_words(
    scorer: Scorer, contexts: Sequence[str], candidates: Sequence[Sequence[str]], k: int, policy: PolicyConfig
) -> list[NextWords]:
    """What the model expects after each context: its `candidates`, one or more words each, and the `k` top words.

    The order is that of `contexts`; equal contexts are read once. Raises ConfigError for a model without next words or
    whose tokens are no words, and for a policy that it cannot follow; InputError for contexts that are too long.
    """
    if not isinstance(scorer, ModelScorer | CausalScorer | MaskedScorer | NgramScorer):
        raise ConfigError(f"{scorer.name}: a model of its kind tells no next words, which diagnostics ask for")
    stripped = [context.rstrip() for context in contexts]
    asked = list(dict.fromkeys((c, word) for c, words in zip(stripped, candidates, strict=True) for word in words))
    bf16 = policy.precision == "bf16"
    with without_gradients(scorer.device, bf16):
        match scorer:
            case ModelScorer():
                model, plan = _of_ours(scorer, asked, policy)
            case CausalScorer():
                model, plan = _of_causal(scorer, asked, policy)
            case MaskedScorer():
                model, plan = _of_masked(scorer, asked, policy)
            case NgramScorer():
                model, plan = _of_ngram(scorer, asked)
        if not model.words:
            raise ConfigError(f"{scorer.name}: none of its tokens is a whole word, so it has no next word to ask for")
        answers = _Answers(model, plan, k, scorer.device)
        most = max(1, CHUNK_BYTES // (4 * model.vocabulary))
        for stage in plan.stages:
            batches = list(reading_batches(stage, scorer.batch_tokens, most))
            for batch in tracked(batches, len(stage), scorer.name, scorer.progress, "contexts"):
                answers.add([stage[index] for index in batch])
    number = {pair: index for index, pair in enumerate(asked)}
    return [
        answers.of(context, [number[context, word] for word in words])
        for context, words in zip(stripped, candidates, strict=True)
    ]


class _Answers:
    """Adds up what the batches of a plan say."""

    def __init__(self, model: _Model, plan: Plan, k: int, device: torch.device):
        self.model, self.plan = model, plan
        self.k = min(k, len(model.words))
        self.logprobs = np.where(plan.known, 0.0, np.nan)
        self.ranks = np.zeros(len(plan.known), dtype=np.int64)
        self.top: dict[str, tuple[list[str], npt.NDArray[np.float64]]] = {}
        no_word = torch.ones(model.vocabulary, dtype=torch.bool)
        no_word[list(model.words)] = False
        self.no_word = no_word.to(device)

    def add(self, batch: list[Reading]) -> None:
        positions = [reading.positions for reading in batch]
        texts = [np.asarray(reading.ids, dtype=np.int64) for reading in batch]
        lines = self.model.read(texts, positions)  # (R, V)
        keys = ((index, at) for index, asked in enumerate(positions) for at in asked)
        row = {key: number for number, key in enumerate(keys)}
        terms = [
            (row[index, at], token, candidate)
            for index, reading in enumerate(batch)
            for at, token, candidate in reading.terms
        ]
        if terms:
            rows, tokens, candidates = (list(column) for column in zip(*terms, strict=True))
            np.add.at(self.logprobs, candidates, lines[rows, tokens].double().cpu().numpy())
        lines.masked_fill_(self.no_word, -math.inf)
        for index, reading in enumerate(batch):
            if reading.words_at is not None:
                self._rank(lines[row[index, reading.words_at]], reading)

    def _rank(self, line: Tensor, reading: Reading) -> None:
        """line (V,): ln p of the next word, -inf for what is none."""
        ranked = [number for number in reading.candidates if self.plan.known[number]]
        logprobs = torch.tensor(self.logprobs[ranked], dtype=line.dtype, device=line.device)
        better = (line > logprobs[:, None]).sum(1).tolist()
        for number, count, logprob in zip(ranked, better, logprobs.tolist(), strict=True):
            first = self.plan.first.get(number)
            # p(first) - p(candidate), all that other words have of the first token, is no more than p(candidate).
            held = first is not None and logprob < float(line[first]) <= logprob + math.log(2)
            self.ranks[number] = 1 + count - held
        if reading.contexts:
            values, tokens = line.topk(self.k)
            words = [self.model.words[token] for token in tokens.tolist()]
            self.top |= dict.fromkeys(reading.contexts, (words, values.double().cpu().numpy()))

    def of(self, context: str, numbers: list[int]) -> NextWords:
        return NextWords(self.logprobs[numbers], self.ranks[numbers], self.plan.tokens[numbers], *self.top[context])


def _of_ours(scorer: ModelScorer, asked: Asked, policy: PolicyConfig) -> tuple[_Model, Plan]:
    before = scorer._context_state(policy)

    def read(texts: list[Ids], positions: list[list[int]]) -> Tensor:
        state = _expanded(before, scorer.model, len(texts))
        hidden, _ = scorer.model(_padded(texts, EOS, scorer.device), state)  # (B, T, D)
        return scorer.model.all_logprobs(hidden[_where(positions)])

    texts = (scorer.tokenizer.encode_raw(f"{context} {word}") for context, word in asked)
    plan = left_to_right(asked, texts, [EOS], UNK)
    return _Model(read, len(scorer.tokenizer), own_words(scorer.tokenizer)), plan


def _of_ngram(scorer: NgramScorer, asked: Asked) -> tuple[_Model, Plan]:
    # Many contexts leave a model of few words in one state, as all orders of a sentence before another do.
    after = lru_cache(STATES)(scorer.ngram.next_logprobs)

    def read(texts: list[Ids], positions: list[list[int]]) -> Tensor:
        states = (
            scorer.ngram.state(ids[1 : at + 1]) for ids, where in zip(texts, positions, strict=True) for at in where
        )
        return torch.from_numpy(np.stack([after(state) for state in states]))

    texts = (scorer.tokenizer.encode_raw(f"{context} {word}") for context, word in asked)
    plan = left_to_right(asked, texts, [EOS], UNK)
    return _Model(read, len(scorer.tokenizer), own_words(scorer.tokenizer)), plan


def _expanded(state: State, model: LanguageModel, batch: int) -> State:
    """The state of one text for `batch` texts; which dimension is the batch's is read off the model's own states."""

    def repeated(tensor: Tensor, one: Tensor, two: Tensor) -> Tensor:
        wider = [dim for dim in range(one.dim()) if one.shape[dim] != two.shape[dim]]
        return tensor.repeat_interleave(batch, dim=wider[0]) if wider else tensor

    return tuple(map(repeated, state, model.initial_state(1), model.initial_state(2)))


def _of_causal(scorer: CausalScorer, asked: Asked, policy: PolicyConfig) -> tuple[_Model, Plan]:
    def read(texts: list[Ids], positions: list[list[int]]) -> Tensor:
        tokens, where = _padded(texts, scorer.begin, scorer.device), _where(positions)
        if scorer.head is not None:
            hidden = scorer.model.base_model(input_ids=tokens, **without_cache(scorer.model.base_model))[0]  # (B, T, D)
            return all_logprobs(hidden[where], *scorer.head)
        head = scorer.model.get_output_embeddings()
        options = without_cache(scorer.model)
        if not isinstance(head, nn.Module):  # of some models' own code
            return scorer.model(input_ids=tokens, **options).logits[where].float().log_softmax(-1)  # type: ignore[no-any-return]

        def chosen(_: object, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return arguments[0][where][None], *arguments[1:]

        # Such a model changes its logits afterwards: it is given the asked positions alone to make them of.
        with head.register_forward_pre_hook(chosen):
            logits: Tensor = scorer.model(input_ids=tokens, **options).logits[0]
        return logits.float().log_softmax(-1)

    texts = ((ids, spans) for _, (ids, spans) in encoded(scorer.tokenizer, [f"{one} {two}" for one, two in asked]))
    plan = left_to_right(asked, texts, scorer._before(policy), scorer.tokenizer.unk_token_id)
    return _of_hub(scorer, read, plan)


def _of_masked(scorer: MaskedScorer, asked: Asked, policy: PolicyConfig) -> tuple[_Model, Plan]:
    if policy.context != "none":
        raise ConfigError(f"policy.context={policy.context}: a masked model is scored on the sentence alone")

    shift = scorer.shift if policy.pll_shift is None else policy.pll_shift
    # A masked next-token model predicts the first token from a symbol that its tokenizer may not put there.
    before = [first_symbol(scorer.tokenizer)] if shift and not _adds_symbol(scorer) else []

    def read(texts: list[Ids], positions: list[list[int]]) -> Tensor:
        texts = [np.concatenate([before, ids]).astype(np.int64) for ids in texts]
        at = [position + len(before) - shift for (position,) in positions]  # each text is asked at one
        return scorer.logprobs_at(texts, at)

    return _of_hub(scorer, read, hidden_words(asked, scorer.tokenizer, policy.pll or "within_word_l2r"))


def _adds_symbol(scorer: MaskedScorer) -> bool:
    """Whether the tokenizer puts a symbol before a text."""
    return bool(scorer.tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"][0])


def _of_hub(scorer: CausalScorer | MaskedScorer, read: Read, plan: Plan) -> tuple[_Model, Plan]:
    """Raises TextTooLong and InputError for what the model cannot read."""
    readings = [reading for stage in plan.stages for reading in stage]
    for index, reading in enumerate(readings):
        if scorer.positions is not None and len(reading.ids) > scorer.positions:
            text = str(scorer.tokenizer.decode(list(reading.ids)))
            raise TextTooLong(scorer.name, scorer.positions, text, len(reading.ids), index)
        check_embedded(scorer.tokenizer, "a context", reading.ids, scorer.vocabulary, scorer.name)
    scorer.check_repeatable(max((len(reading.ids) for reading in readings), default=0))
    vocabulary = int(scorer.model.config.get_text_config().vocab_size)
    return _Model(read, vocabulary, hub_words(scorer.tokenizer, vocabulary)), plan


def _padded(texts: list[Ids], pad: int, device: torch.device) -> Tensor:
    """(B, T); what stands after a text is nothing that a causal model sees."""
    padded = np.full((len(texts), max(map(len, texts))), pad)
    for row, ids in enumerate(texts):
        padded[row, : len(ids)] = ids
    return torch.from_numpy(padded).to(device)


def _where(positions: list[list[int]]) -> tuple[Tensor, Tensor]:
    """(R,) texts and (R,) positions, to index (B, T, ...) by."""
    rows = [row for row, asked in enumerate(positions) for _ in asked]
    return torch.tensor(rows), torch.tensor([at for asked in positions for at in asked])
