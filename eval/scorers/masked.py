"""Score masked models (BERT, RoBERTa) and masked next-token models (GPT-BERT)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import Scorer, TokenScores, first_after
from eval.scorers.network import Network
from eval.scorers.next_words import Question, Questions, Read, hidden_words
from eval.scorers.predictions import TokenPredictions, Window, boundaries, window_size
from eval.scorers.tokens import PLAIN_SENTENCES, Tokens
from eval.scorers.trees import Ids, length_batches
from eval.scorers.words import words_of_tokens
from pairscale.errors import ConfigError
from train.loop.device import without_gradients

MASKS = 3  # masks that follow the text before a predicted token, as in BabyLM's pipeline for reading times


class MaskedScorer(Scorer):
    """A masked model. Its score is the pseudo-log-likelihood (PLL), the log-probability of each token if it is masked.

    With `policy.pll=original`, one token at a time is masked (Salazar et al. 2020). With `within_word_l2r`, the
    default, later tokens of the same word are masked too. Otherwise, they would give away rare words that have many
    tokens (Kauf and Ivanova 2023).

    A masked next-token model predicts a masked token at the position before it (GPT-BERT: Charpentier and Samuel 2024,
    section 2). `policy.pll_shift` is 1 for such a model and 0 for others. If it is null, it is detected (`shift`).
    """

    masked = True

    def __init__(self, network: Network, tokens: Tokens, progress: bool = False):
        """Set up the scorer. Raises ConfigError if the tokenizer has no mask token."""
        super().__init__(network.name, network.digest, tokens, progress)
        if tokens.mask is None:
            raise ConfigError(
                f"{self.name}: the tokenizer has no mask token. If this is a causal model, use model=hf_causal."
            )
        tokens.check("its mask", [tokens.mask])
        self.network, self.mask, self.positions = network, tokens.mask, network.positions
        self.device, self.batch_tokens, self.vocabulary = network.device, network.batch_tokens, network.vocabulary

    def score(
        self, sentences: Sequence[str], policy: PolicyConfig = PLAIN, starts: Sequence[int] | None = None
    ) -> list[TokenScores]:
        """Score every token of sentences (see `Scorer.score`). Equal masked copies are read once.

        After a context, these are the conditional scores of minicons, and of BabyLM's pipeline with `pll=original`.
        """
        _check_alone(policy)
        if policy.score_eos:
            raise ConfigError(
                "policy.score_eos=true: a masked model doesn't predict <eos>. Use policy.score_eos=false or null."
            )
        if not sentences:
            return []
        asked = list(zip(sentences, starts or [0] * len(sentences), strict=True))
        different = list(dict.fromkeys(asked))
        shift, pll = self.pll_shift(policy), policy.pll or "within_word_l2r"
        texts = dict(zip(different, self._hidden(different, pll, shift), strict=True))
        for (sentence, _), text in texts.items():
            self._check(sentence, text.ids.tolist())
        scores = dict(zip(different, self._scores(list(texts.values()), policy), strict=True))
        return [scores[one] for one in asked]

    def predictions(
        self, texts: Sequence[str], policy: PolicyConfig = PLAIN, window: int | None = None, step: int | None = None
    ) -> list[TokenPredictions]:
        """Predict each token of texts (see `Scorer.predictions`).

        As in BabyLM's pipeline, the model reads the tokens before it, MASKS masks and the symbols at the end of a text.
        With `policy.pll`, the model reads the whole text, in which the token is masked as in `score`.
        """
        _check_alone(policy)
        hidden = list(self._hidden([(text, 0) for text in texts], policy.pll or "original", self.pll_shift(policy)))
        around = MASKS + max((len(one.ids) - len(one.scored) for one in hidden), default=0)
        size, _ = window_size(window, step, None if self.positions is None else self.positions - around)
        of_texts = []
        for text, one in zip(texts, hidden, strict=True):
            own = one.ids[one.scored].tolist()
            (self._check if policy.pll else self.tokens.check)(text, one.ids.tolist())
            copy = one.copy if policy.pll else partial(one.before, size=size)
            copies = [*(copy(at, self.mask) for at in range(len(own))), one.before(len(own), self.mask, size)]
            targets = zip(copies, [*own, 0], strict=True)  # the last one shows whether a word can end there
            windows = [Window(tuple(ids.tolist()), at, [target]) for (ids, at), target in targets]
            of_texts.append((windows, own, one.spans.tolist()))
        masks = None if self.word_level or policy.pll else boundaries(self.tokens, self.vocabulary).to(self.device)
        with without_gradients(self.device, policy.precision == "bf16"):
            self.network.check_repeatable(
                max((len(one.ids) for of_text, _, _ in of_texts for one in of_text), default=0)
            )
            return self.read_windows(of_texts, self.network.logprobs_at, masks)

    def encode(self, texts: Sequence[str], policy: PolicyConfig = PLAIN) -> Iterator[Ids]:
        """Yield, for each text, the ids of its own tokens, which are the tokens that `score` masks."""
        for ids, _ in self.tokens.encode(texts):
            yield np.asarray(ids, dtype=np.int64)

    def pll_shift(self, policy: PolicyConfig) -> int:
        """Return how many positions before a masked token its prediction is read, by `policy` or a probe."""
        return self.shift if policy.pll_shift is None else policy.pll_shift

    @cached_property
    def shift(self) -> int:
        """The number of positions before a masked token at which the model predicts it (0 or 1).

        It is 1 for masked next-token models, and is detected on PLAIN_SENTENCES. Each token is masked alone, and its
        ln p is computed at its own position and at the previous one. The shift is 1 if ln p at the previous position
        is higher on average by more than half a nat and by more than four standard errors.
        """
        copies, tokens = [], []
        for hidden in self._hidden([(sentence, 0) for sentence in PLAIN_SENTENCES], "original", shift=0):
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
        owner = np.repeat(np.arange(len(texts)), counts)  # the text of each scored token
        place = np.concatenate([np.arange(count) for count in counts])
        targets = np.concatenate([text.ids[text.scored] for text in texts])
        logprobs = np.empty(len(owner))
        # The two sentences of a pair have the same copy if the word that differs is masked. Copies are compared by
        # digest and built only when they are read, because all copies of long texts would fill the memory.
        digests = [_digest(*texts[i].copy(at, self.mask)) for i, at in zip(owner, place, strict=True)]
        numbers = {digest: number for number, digest in enumerate(dict.fromkeys(digests))}
        copy = np.asarray([numbers[digest] for digest in digests], dtype=np.int64)
        by_copy, sizes = np.argsort(copy, kind="stable"), np.bincount(copy)  # (scored tokens,), (different copies,)
        ends = np.cumsum(sizes)
        first = by_copy[ends - sizes]  # one scored token of each copy
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
        """Return ln p (B, V) of every token at one position of each text. All texts must have the same length."""
        tokens = torch.from_numpy(np.stack(texts)).to(self.device)
        return self.network.logprobs_at(tokens, torch.arange(len(texts)), torch.tensor(positions))

    def _check(self, text: str, ids: Sequence[int]) -> None:
        """Raise TextTooLong or InputError if the model can't read a text."""
        self.check_length(text, len(ids))
        self.tokens.check(text, ids)

    def readings(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[Questions, Read]:
        _check_alone(policy)
        shift = self.pll_shift(policy)
        # A masked next-token model predicts the first token from a special symbol, which its tokenizer may not add.
        (plain,) = self.tokens.marked(["a"])
        before = [self.tokens.first_symbol] if shift and not plain.special[0] else []

        def read(tokens: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
            tokens = torch.cat([tokens.new_tensor([before] * len(tokens)), tokens], 1) if before else tokens
            self.network.check_repeatable(tokens.shape[1])
            return self.network.logprobs_at(tokens, rows, columns + len(before) - shift)

        return hidden_words(questions, self.tokens, policy.pll or "within_word_l2r", self._check), read

    def _hidden(self, asked: Sequence[tuple[str, int]], pll: str, shift: int) -> Iterator[_Hidden]:
        """Yield each sentence with the tokens to mask for each score, from the given character on.

        Raises ConfigError if the first token must be predicted from a symbol that the tokenizer doesn't have. Also
        raises it if later tokens of a word must be masked, but the ends of words can't be determined.
        """
        marked = self.tokens.marked([sentence for sentence, _ in asked])
        for (sentence, start), text in zip(asked, marked, strict=True):
            ids = np.asarray(text.ids, dtype=np.int64)
            scored = np.flatnonzero(np.asarray(text.special) == 0)
            until = scored + 1
            if pll == "within_word_l2r":
                first, last = words_of_tokens(sentence, text.words, text.spans)[:, scored]
                until = until[np.searchsorted(first, last, side="right") - 1]
            skipped = first_after([text.spans[at] for at in scored.tolist()], start)
            scored, until = scored[skipped:], until[skipped:]
            spans = np.asarray(text.spans, dtype=np.int32).reshape(-1, 2)[scored]
            if shift and len(scored) and scored[0] < shift:
                ids, scored, until = np.concatenate([[self.tokens.first_symbol], ids]), scored + 1, until + 1
            yield _Hidden(ids, scored, spans, until, shift)


def _check_alone(policy: PolicyConfig) -> None:
    """Raise ConfigError if the scoring settings include a context."""
    if policy.context != "none":
        raise ConfigError(
            f"policy.context={policy.context}: masked models score sentences without context. Set policy.context=none."
        )


@dataclass(frozen=True)
class _Hidden:
    """The n tokens of a sentence, including special symbols, and the tokens to mask for each of m scores."""

    ids: Ids  # (n,)
    scored: Ids  # (m,) positions of the sentence's own tokens
    spans: npt.NDArray[np.int32]  # (m, 2) character offsets of these tokens
    until: Ids  # (m,) end of the masked positions, which begin at the scored one
    shift: int  # how many positions before a masked token the model predicts it

    def copy(self, place: int, mask: int) -> tuple[Ids, int]:
        """Return the tokens after masking, and the position at which the model predicts the scored token.

        `place` is the index (0 to m - 1) of the scored token.
        """
        position = int(self.scored[place])
        ids = self.ids.copy()
        ids[position : self.until[place]] = mask
        return ids, position - self.shift

    def before(self, place: int, mask: int, size: int) -> tuple[Ids, int]:
        """Return the same as `copy` for at most `size` tokens before the scored one (m: the end), and MASKS masks."""
        first, end = (int(self.scored[0]), int(self.scored[-1]) + 1) if len(self.scored) else (len(self.ids),) * 2
        position = int([*self.scored, end][place])
        seen = np.concatenate([self.ids[:first], self.ids[max(first, position - size) : position]])
        return np.concatenate([seen, [mask] * MASKS, self.ids[end:]]), len(seen) - self.shift


def _digest(ids: Ids, position: int) -> bytes:
    return hashlib.blake2b(ids.tobytes(), digest_size=16, salt=position.to_bytes(16)).digest()
