"""The scorer of masked models (BERT, RoBERTa) and of masked next-token models (GPT-BERT)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import Scorer, TokenScores
from eval.scorers.network import Network
from eval.scorers.next_words import Question, Questions, Read, hidden_words
from eval.scorers.tokens import PLAIN_SENTENCES, Tokens
from eval.scorers.trees import Ids, length_batches
from eval.scorers.words import words_of_tokens
from pairscale.errors import ConfigError
from train.loop.device import without_gradients


class MaskedScorer(Scorer):
    """A masked model. The score of a token is its log-probability with it hidden: pseudo-log-likelihood (PLL).

    `original` hides one token at a time (Salazar et al. 2020); `within_word_l2r`, the default, hides the later tokens
    of the same word too, which else give a rare word of many tokens away (Kauf and Ivanova 2023).

    A masked next-token model predicts a hidden token at the position before it (GPT-BERT: Charpentier and Samuel 2024,
    section 2): `policy.pll_shift` is 1 for it, 0 for others, null to detect it by `shift`.
    """

    masked = True

    def __init__(self, network: Network, tokens: Tokens, progress: bool = False):
        """Raises ConfigError for a tokenizer without a mask."""
        super().__init__(network.name, network.digest, tokens, progress)
        if tokens.mask is None:
            raise ConfigError(f"{self.name}: its tokenizer has no mask token; a causal model is model=hf_causal")
        tokens.check("its mask", [tokens.mask])
        self.network, self.mask, self.positions = network, tokens.mask, network.positions
        self.device, self.batch_tokens, self.vocabulary = network.device, network.batch_tokens, network.vocabulary

    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Return scores in the order of `sentences`; each different copy of them is read once."""
        _check_alone(policy)
        if policy.score_eos:
            raise ConfigError("policy.score_eos=true: a masked model predicts no end of a sentence")
        if not sentences:
            return []
        different = list(dict.fromkeys(sentences))
        shift, pll = self.pll_shift(policy), policy.pll or "within_word_l2r"
        texts = dict(zip(different, self._hidden(different, pll, shift), strict=True))
        for sentence, text in texts.items():
            self._check(sentence, text.ids.tolist())
        scores = dict(zip(different, self._scores(list(texts.values()), policy), strict=True))
        return [scores[sentence] for sentence in sentences]

    def encode(self, texts: Sequence[str], policy: PolicyConfig = PLAIN) -> Iterator[Ids]:
        """Yield the ids of each text's own tokens, those that `score` hides."""
        for ids, _ in self.tokens.encode(texts):
            yield np.asarray(ids, dtype=np.int64)

    def pll_shift(self, policy: PolicyConfig) -> int:
        """Return how many positions before a hidden token it is predicted, by the policy or else by `shift`."""
        return self.shift if policy.pll_shift is None else policy.pll_shift

    @cached_property
    def shift(self) -> int:
        """How many positions before a hidden token the model predicts it: 1 for a masked next-token model, else 0.

        Found on PLAIN_SENTENCES: each token is hidden alone, and ln p of it is read at its own position and at the one
        before. It is 1 where the latter is higher by more than half a nat on average and by four standard errors.
        """
        copies, tokens = [], []
        for hidden in self._hidden(PLAIN_SENTENCES, "original", shift=0):
            if self.positions is not None and len(hidden.ids) > self.positions:
                continue
            for place, position in enumerate(hidden.scored.tolist()):
                token = int(hidden.ids[position])
                if position and token != self.tokens.unknown and token < self.vocabulary:
                    copies.append(hidden.copy(place, self.mask))
                    tokens.append(token)
        higher = []
        with without_gradients(self.device, False):
            for batch in length_batches([len(ids) for ids, _ in copies], self.batch_tokens):
                ids, positions = zip(*(copies[number] for number in batch), strict=True)
                own, before = (self._copies(ids, [at - shift for at in positions]) for shift in (0, 1))
                index = torch.arange(len(batch)), torch.tensor([tokens[number] for number in batch])
                higher.append((before[index] - own[index]).double().cpu().numpy())
        gain = np.concatenate(higher) if higher else np.empty(0)
        return int(gain.mean() > max(0.5, 4 * gain.std(ddof=1) / np.sqrt(len(gain)))) if len(gain) > 1 else 0

    def _scores(self, texts: list[_Hidden], policy: PolicyConfig) -> list[TokenScores]:
        self.network.check_repeatable(max(len(text.ids) for text in texts))
        counts = [len(text.scored) for text in texts]
        owner = np.repeat(np.arange(len(texts)), counts)  # of each scored token
        place = np.concatenate([np.arange(count) for count in counts])
        targets = np.concatenate([text.ids[text.scored] for text in texts])
        logprobs = np.empty(len(owner))
        # Both sentences of a pair need the same copy where the word is hidden in which they differ. Copies are compared
        # by digests and built when they are read: those of long texts would fill the memory.
        digests = [_digest(*texts[i].copy(at, self.mask)) for i, at in zip(owner, place, strict=True)]
        numbers = {digest: number for number, digest in enumerate(dict.fromkeys(digests))}
        copy = np.asarray([numbers[digest] for digest in digests], dtype=np.int64)
        by_copy, sizes = np.argsort(copy, kind="stable"), np.bincount(copy)  # (scored tokens,), (different copies,)
        ends = np.cumsum(sizes)
        first = by_copy[ends - sizes]  # scored token of each copy
        batches = list(length_batches([len(texts[i].ids) for i in owner[first]], self.batch_tokens))
        with without_gradients(self.device, policy.precision == "bf16"):
            for batch in self.with_progress(batches, len(first), "masked copies"):
                ids, positions = zip(*(texts[owner[i]].copy(place[i], self.mask) for i in first[batch]), strict=True)
                lines = self._copies(ids, positions)
                tokens = np.concatenate([by_copy[ends[number] - sizes[number] : ends[number]] for number in batch])
                rows = np.repeat(np.arange(len(batch)), sizes[batch])
                index = (torch.from_numpy(part).to(self.device) for part in (rows, targets[tokens]))
                logprobs[tokens] = lines[tuple(index)].double().cpu().numpy()
        unk = self.tokens.unknown
        parts = np.split(logprobs, np.cumsum(counts)[:-1])
        return [
            TokenScores(part, text.spans, tokens == (-1 if unk is None else unk), tokens)
            for part, text in zip(parts, texts, strict=True)
            for tokens in [text.ids[text.scored]]
        ]

    def _copies(self, texts: Sequence[Ids], positions: Sequence[int]) -> Tensor:
        """Return ln p (B, V) of every token at one position of each text; texts have one length."""
        tokens = torch.from_numpy(np.stack(texts)).to(self.device)
        return self.network.logprobs_at(tokens, torch.arange(len(texts)), torch.tensor(positions))

    def _check(self, text: str, ids: Sequence[int]) -> None:
        """Raise TextTooLong or InputError for a text that the model does not read."""
        self.check_length(text, len(ids))
        self.tokens.check(text, ids)

    def readings(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[Questions, Read]:
        _check_alone(policy)
        shift = self.pll_shift(policy)
        # A masked next-token model predicts the first token from a symbol that its tokenizer may not put there.
        (plain,) = self.tokens.marked(["a"])
        before = [self.tokens.first_symbol] if shift and not plain.special[0] else []

        def read(tokens: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
            tokens = torch.cat([tokens.new_tensor([before] * len(tokens)), tokens], 1) if before else tokens
            self.network.check_repeatable(tokens.shape[1])
            return self.network.logprobs_at(tokens, rows, columns + len(before) - shift)

        return hidden_words(questions, self.tokens, policy.pll or "within_word_l2r", self._check), read

    def _hidden(self, sentences: Sequence[str], pll: str, shift: int) -> Iterator[_Hidden]:
        """Yield each sentence with its tokens to hide.

        Raises ConfigError where nothing stands before a sentence and its first token is predicted there. Also for a
        sentence in whose words nothing shows where they end, if later tokens of a word are to be hidden.
        """
        for sentence, text in zip(sentences, self.tokens.marked(sentences), strict=True):
            ids = np.asarray(text.ids, dtype=np.int64)
            scored = np.flatnonzero(np.asarray(text.special) == 0)
            until = scored + 1
            if pll == "within_word_l2r":
                first, last = words_of_tokens(sentence, text.words, text.spans)[:, scored]
                until = until[np.searchsorted(first, last, side="right") - 1]
            spans = np.asarray(text.spans, dtype=np.int32).reshape(-1, 2)[scored]
            if shift and len(scored) and scored[0] < shift:
                ids, scored, until = np.concatenate([[self.tokens.first_symbol], ids]), scored + 1, until + 1
            yield _Hidden(ids, scored, spans, until, shift)


def _check_alone(policy: PolicyConfig) -> None:
    """Raise ConfigError for a policy with a context."""
    if policy.context != "none":
        raise ConfigError(f"policy.context={policy.context}: a masked model is scored on the sentence alone")


@dataclass(frozen=True)
class _Hidden:
    """A sentence with the symbols that a masked model puts around it, and the tokens to hide for each score."""

    ids: Ids  # (n,)
    scored: Ids  # (m,) positions of the sentence's own tokens
    spans: npt.NDArray[np.int32]  # (m, 2)
    until: Ids  # (m,) end of the positions that are hidden, from the scored one on
    shift: int  # how many positions before a hidden token the model predicts it

    def copy(self, place: int, mask: int) -> tuple[Ids, int]:
        """Return the tokens with the `place`-th scored one hidden, by token `mask`, and where the model predicts it."""
        position = int(self.scored[place])
        ids = self.ids.copy()
        ids[position : self.until[place]] = mask
        return ids, position - self.shift


def _digest(ids: Ids, position: int) -> bytes:
    return hashlib.blake2b(ids.tobytes(), digest_size=16, salt=position.to_bytes(16)).digest()
