"""The scorer of masked Hugging Face models (BERT, RoBERTa) and of masked next-token models (GPT-BERT)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import Execution, TextTooLong, TokenScores, length_batches
from eval.scorers.forward import forward_errors, tolerance
from eval.scorers.hf_tokenizers import PLAIN_SENTENCES, encoded, first_symbol, score_settings
from eval.scorers.hub import HubModel, HubScorer
from eval.scorers.next_words.answers import NextTokens
from eval.scorers.next_words.readings import Question, Readings, hidden_words
from eval.scorers.trees import Ids, padded
from pairscale.errors import ConfigError, InputError
from train.loop.device import without_gradients

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class MaskedScorer(HubScorer):
    """A masked model. The score of a token is its log-probability with it hidden: pseudo-log-likelihood (PLL).

    `original` hides one token at a time (Salazar et al. 2020); `within_word_l2r`, the default, hides the later tokens
    of the same word too, which else give a rare word of many tokens away (Kauf and Ivanova 2023).

    A masked next-token model predicts a hidden token at the position before it (GPT-BERT: Charpentier and Samuel 2024,
    section 2): `policy.pll_shift` is 1 for it, 0 for others, null to detect it by `shift`.
    """

    masked = True

    def __init__(self, loaded: HubModel, execution: Execution):
        """Raises what HubScorer does, and ConfigError for a tokenizer without a mask."""
        if loaded.tokenizer.mask_token_id is None:
            raise ConfigError(f"{loaded.name}: its tokenizer has no mask token; a causal model is model=hf_causal")
        super().__init__(loaded, execution)
        self.settings = score_settings(self.model, self.tokenizer)
        self.mask = int(loaded.tokenizer.mask_token_id)
        self.check_embedded("its mask", [self.mask])
        self.positions = _positions(self.model)
        self._at = torch.empty(0, dtype=torch.int64)  # (B,) the position of each text whose logits are needed
        self.pads = self._ignores_padding()  # texts of several lengths may be read together

    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Return scores in the order of `sentences`; each different copy of them is read once."""
        _check_alone(policy)
        if policy.score_eos:
            raise ConfigError("policy.score_eos=true: a masked model predicts no end of a sentence")
        if not sentences:
            return []
        different = list(dict.fromkeys(sentences))
        shift, pll = self.pll_shift(policy), policy.pll or "within_word_l2r"
        texts = {sentence: _Hidden.of(self.tokenizer, sentence, pll, shift) for sentence in different}
        for index, sentence in enumerate(sentences):
            ids = texts[sentence].ids
            if self.positions is not None and len(ids) > self.positions:
                raise TextTooLong(self.name, self.positions, sentence, len(ids), index)
            self.check_embedded(sentence, ids)
        self.check_repeatable(max(len(text.ids) for text in texts.values()))
        scores = dict(zip(different, self._scores(list(texts.values()), policy), strict=True))
        return [scores[sentence] for sentence in sentences]

    def encode(self, texts: Sequence[str], policy: PolicyConfig = PLAIN) -> Iterator[Ids]:
        """Yield the ids of each text's own tokens, those that `score` hides."""
        for ids, _ in encoded(self.tokenizer, texts):
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
        for sentence in PLAIN_SENTENCES:
            hidden = _Hidden.of(self.tokenizer, sentence, "original", shift=0)
            if self.positions is not None and len(hidden.ids) > self.positions:
                continue
            for place, position in enumerate(hidden.scored.tolist()):
                token = int(hidden.ids[position])
                if position and token != self.tokenizer.unk_token_id and token < self.vocabulary:
                    copies.append(hidden.copy(place, self.mask))
                    tokens.append(token)
        higher = []
        with without_gradients(self.device, False):
            for start in range(0, len(copies), 16):
                ids, positions = zip(*copies[start : start + 16], strict=True)
                own, before = (self.logprobs_at(ids, [at - shift for at in positions]) for shift in (0, 1))
                index = torch.arange(len(ids)), torch.tensor(tokens[start : start + 16])
                higher.append((before[index] - own[index]).double().cpu().numpy())
        gain = np.concatenate(higher)
        return int(gain.mean() > max(0.5, 4 * gain.std(ddof=1) / np.sqrt(len(gain)))) if len(gain) > 1 else 0

    def _scores(self, texts: list[_Hidden], policy: PolicyConfig) -> list[TokenScores]:
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
        batches = list(length_batches(np.asarray([len(texts[i].ids) for i in owner[first]]), self.batch_tokens))
        with without_gradients(self.device, policy.precision == "bf16"):
            for batch in self.with_progress(batches, len(first), "masked copies"):
                ids, positions = zip(*(texts[owner[i]].copy(place[i], self.mask) for i in first[batch]), strict=True)
                lines = self.logprobs_at(ids, positions)
                tokens = np.concatenate([by_copy[ends[number] - sizes[number] : ends[number]] for number in batch])
                rows = np.repeat(np.arange(len(batch)), sizes[batch])
                index = (torch.from_numpy(part).to(self.device) for part in (rows, targets[tokens]))
                logprobs[tokens] = lines[tuple(index)].double().cpu().numpy()
        unk = self.tokenizer.unk_token_id
        parts = np.split(logprobs, np.cumsum(counts)[:-1])
        return [
            TokenScores(part, text.spans, tokens == (-1 if unk is None else unk), tokens)
            for part, text in zip(parts, texts, strict=True)
            for tokens in [text.ids[text.scored]]
        ]

    def logprobs_at(self, texts: Sequence[Ids], positions: Sequence[int]) -> Tensor:
        """Return ln p (B, V) in nats, float32, of every token at one position of each text, its symbols included."""
        if self.pads or len({len(ids) for ids in texts}) == 1:
            return self._together(texts, positions)
        lengths = np.asarray([len(ids) for ids in texts])
        groups = [np.flatnonzero(lengths == length).tolist() for length in np.unique(lengths)]
        parts = [self._together([texts[i] for i in group], [positions[i] for i in group]) for group in groups]
        order = torch.tensor([index for group in groups for index in group], device=self.device)
        return torch.cat(parts)[order.argsort()]

    def _together(self, texts: Sequence[Ids], positions: Sequence[int]) -> Tensor:
        lengths = torch.tensor([len(ids) for ids in texts])
        pad = self.tokenizer.pad_token_id
        tokens = torch.from_numpy(padded(texts, 0 if pad is None else pad)).to(self.device)
        attended = (torch.arange(tokens.shape[1]) < lengths[:, None]).long().to(self.device)
        self._at = torch.tensor(positions, device=self.device)
        # Logits are needed at one position of each text: the others are left out just before the softmax weights.
        head = self.model.get_output_embeddings()  # of some models' own code a weight, or none
        hooked = head.register_forward_pre_hook(self._select) if isinstance(head, nn.Module) else nullcontext()
        with hooked, forward_errors(self.name, tokens.shape[1]):
            logits = self.model(input_ids=tokens, attention_mask=attended).logits
        if logits.shape[1] > 1:  # of a head that does not call its softmax weights, or has none: nothing was left out
            logits = logits[torch.arange(len(logits), device=self.device), self._at][:, None]
        logprobs: Tensor = logits[:, 0].float().log_softmax(-1)
        return logprobs

    def _pass(self, tokens: int) -> Tensor:
        return self._together([self._random_tokens(tokens)], [tokens // 2])

    def _next_tokens(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[NextTokens, Readings]:
        _check_alone(policy)
        shift = self.pll_shift(policy)
        # A masked next-token model predicts the first token from a symbol that its tokenizer may not put there.
        adds_symbol = self.tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"][0]
        before = [first_symbol(self.tokenizer)] if shift and not adds_symbol else []

        def read(texts: list[Ids], positions: list[list[int]]) -> Tensor:
            texts = [np.concatenate([before, ids]).astype(np.int64) for ids in texts]
            return self.logprobs_at(texts, [position + len(before) - shift for (position,) in positions])

        return self._hub_tokens(read, hidden_words(questions, self.tokenizer, policy.pll or "within_word_l2r"))

    def _ignores_padding(self) -> bool:
        """Return True if a text has the same scores beside a longer one: some models mix in padding all the same.

        The probe has real tokens, all different: texts of one token are alike to a model that pools over its tokens.
        """
        longest = min(40, self.positions or 40)
        long = self._random_tokens(longest)
        compared = False
        with torch.inference_mode():
            for tokens in (longest // 7, longest // 4, longest // 2):
                short = self._random_tokens(tokens)
                short[tokens // 2] = self.mask
                try:
                    alone = self._together([short], [tokens // 2])[0]
                except InputError:
                    continue  # some read no text that is so short
                try:
                    beside = self._together([short, long], [tokens // 2, 1])[0]
                except InputError:
                    return False
                if not torch.allclose(alone, beside, rtol=0, atol=max(1e-3, tolerance(self.model.dtype))):
                    return False
                compared = True
        return compared

    def _random_tokens(self, tokens: int) -> Ids:
        """Return ids (tokens,) that are no special tokens, always the same ones, all different if there are enough."""
        real = np.setdiff1d(np.arange(self.vocabulary), self.tokenizer.all_special_ids)
        return np.resize(np.random.default_rng(0).permutation(real), tokens).astype(np.int64)

    def _select(self, head: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Reduce the head's input (B, T, D) to (B, 1, D)."""
        hidden, *others = arguments
        return hidden[torch.arange(len(hidden), device=hidden.device), self._at][:, None], *others


def _check_alone(policy: PolicyConfig) -> None:
    """Raise ConfigError for a policy with a context."""
    if policy.context != "none":
        raise ConfigError(f"policy.context={policy.context}: a masked model is scored on the sentence alone")


def _positions(model: nn.Module) -> int | None:
    """Return the most tokens that the model reads. RoBERTa's first position is the one after that of padding."""
    limit: int | None = getattr(model.config, "max_position_embeddings", None)
    for name, module in model.named_modules():
        if limit is not None and name.endswith("position_embeddings"):
            padding = getattr(module, "padding_idx", None)
            return limit if padding is None else limit - padding - 1
    return limit


@dataclass(frozen=True)
class _Hidden:
    """A sentence with the symbols that a masked model puts around it, and the tokens to hide for each score."""

    ids: Ids  # (n,)
    scored: Ids  # (m,) positions of the sentence's own tokens
    spans: npt.NDArray[np.int32]  # (m, 2)
    until: Ids  # (m,) end of the positions that are hidden, from the scored one on
    shift: int  # how many positions before a hidden token the model predicts it

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast, sentence: str, pll: str, shift: int) -> _Hidden:
        """Raises ConfigError where nothing stands before the sentence and its first token is predicted there."""
        batch = tokenizer(sentence, return_offsets_mapping=True, return_special_tokens_mask=True)
        scored = np.flatnonzero(np.asarray(batch["special_tokens_mask"]) == 0)
        until = scored + 1
        if pll == "within_word_l2r":
            # Some tokenizers know words by spaces, which Chinese does not have: there each character is a word.
            starts = [start for start, _ in batch["offset_mapping"]]
            keys = [
                (word, start if "\u3400" <= sentence[start : start + 1] <= "\u9fff" else -1)
                for word, start in zip(batch.word_ids(), starts, strict=True)
            ]
            ends = np.arange(1, len(keys) + 1)
            for position in range(len(keys) - 2, -1, -1):
                if keys[position] == keys[position + 1]:
                    ends[position] = ends[position + 1]
            until = ends[scored]
        spans = np.asarray(batch["offset_mapping"], dtype=np.int32).reshape(-1, 2)[scored]
        ids = np.asarray(batch["input_ids"], dtype=np.int64)
        if shift and len(scored) and scored[0] < shift:
            ids, scored, until = np.concatenate([[first_symbol(tokenizer)], ids]), scored + 1, until + 1
        return cls(ids, scored, spans, until, shift)

    def copy(self, place: int, mask: int) -> tuple[Ids, int]:
        """Return the tokens with the `place`-th scored one hidden, by token `mask`, and where the model predicts it."""
        position = int(self.scored[place])
        ids = self.ids.copy()
        ids[position : self.until[place]] = mask
        return ids, position - self.shift


def _digest(ids: Ids, position: int) -> bytes:
    return hashlib.blake2b(ids.tobytes(), digest_size=16, salt=position.to_bytes(16)).digest()
