"""The scorer of masked Hugging Face models (BERT, RoBERTa)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from corpora.errors import ConfigError, InputError
from eval.config import PLAIN, PolicyConfig
from eval.hf_tokenizers import check_fast, tokenizer_digest
from eval.scorers import TokenScores, length_batches, tokens_at_once, tracked, weights_digest
from eval.trees import Ids
from train.device import without_gradients

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


class MaskedScorer:
    """A masked model. The score of a token is its log-probability with it hidden: pseudo-log-likelihood (PLL).

    `original` hides one token at a time (Salazar et al. 2020); `within_word_l2r`, the default, hides the later tokens
    of the same word too, which else give a rare word of many tokens away (Kauf and Ivanova 2023).
    """

    masked = True
    word_level = False

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        name: str,
        batch_tokens: int,
        device: str = "cpu",
        progress: bool = False,
    ):
        """Raises ConfigError for a tokenizer without a mask or without character offsets.

        On a CPU a batch has 2,048 tokens at most, whatever `batch_tokens` is.
        """
        check_fast(tokenizer, name)
        if tokenizer.mask_token_id is None:
            raise ConfigError(f"{name}: its tokenizer has no mask token; a causal model is model=hf_causal")
        self.name = name
        self.digest = weights_digest(model)
        self.tokenizer_digest = tokenizer_digest(tokenizer)
        self.sample_words: int | None = None
        self.model = model.to(device).eval()  # type: ignore[arg-type]
        self.tokenizer = tokenizer
        self.device = torch.device(device)
        self.batch_tokens = tokens_at_once(batch_tokens, self.device)
        self.progress = progress
        self.positions = _positions(self.model)
        self._at = torch.empty(0, dtype=torch.int64)  # (B,) the position of each text that is asked for
        self.pads = True  # whether texts of several lengths may be read together
        self.pads = self._ignores_padding()

    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Scores in the order of `sentences`; each different copy of them is read once."""
        if policy.context != "none":
            raise ConfigError(f"policy.context={policy.context}: a masked model is scored on the sentence alone")
        if policy.score_eos:
            raise ConfigError("policy.score_eos=true: a masked model predicts no end of a sentence")
        if not sentences:
            return []
        different = list(dict.fromkeys(sentences))
        texts = [_Hidden.of(self.tokenizer, sentence, policy.pll or "within_word_l2r") for sentence in different]
        longest = max(len(text.ids) for text in texts)
        if self.positions is not None and longest > self.positions:
            raise InputError(f"{self.name} reads {self.positions} tokens at most; the longest text has {longest}")
        found = dict(zip(different, self._logprobs(texts, policy), strict=True))
        return [found[sentence] for sentence in sentences]

    def _logprobs(self, texts: list[_Hidden], policy: PolicyConfig) -> list[TokenScores]:
        mask = int(self.tokenizer.mask_token_id)
        counts = [len(text.scored) for text in texts]
        owner = np.repeat(np.arange(len(texts)), counts)  # of each scored token
        place = np.concatenate([np.arange(count) for count in counts])
        targets = np.concatenate([text.ids[text.scored] for text in texts])
        logprobs = np.empty(len(owner))
        # Both sentences of a pair need the same copy where the word is hidden in which they differ. Copies are told
        # apart by digests and made when they are read: those of long texts would fill the memory.
        digests = [texts[i].copy(at, mask).digest() for i, at in zip(owner, place, strict=True)]
        numbers = {digest: number for number, digest in enumerate(dict.fromkeys(digests))}
        copy = np.asarray([numbers[digest] for digest in digests], dtype=np.int64)
        asking, asked = np.argsort(copy, kind="stable"), np.bincount(copy)  # (scored tokens,), (different copies,)
        ends = np.cumsum(asked)
        first = asking[ends - asked]  # of those that ask for each copy
        batches = list(length_batches(np.asarray([len(texts[i].ids) for i in owner[first]]), self.batch_tokens))
        bf16 = policy.precision == "bf16"
        with without_gradients(self.device, bf16):
            for batch in tracked(batches, len(first), self.name, self.progress, "masked copies"):
                copies = [texts[owner[i]].copy(place[i], mask) for i in first[batch]]
                lines = self.logprobs_at([one.ids for one in copies], [one.position for one in copies])
                tokens = np.concatenate([asking[ends[number] - asked[number] : ends[number]] for number in batch])
                rows = np.repeat(np.arange(len(batch)), asked[batch])
                index = (torch.from_numpy(part).to(self.device) for part in (rows, targets[tokens]))
                logprobs[tokens] = lines[tuple(index)].double().cpu().numpy()
        unk = self.tokenizer.unk_token_id
        parts = np.split(logprobs, np.cumsum(counts)[:-1])
        return [
            TokenScores(part, text.spans, text.ids[text.scored] == (-1 if unk is None else unk))
            for part, text in zip(parts, texts, strict=True)
        ]

    def logprobs_at(self, texts: list[Ids], positions: list[int]) -> Tensor:
        """ln p in nats of every token at one position of each text, symbols around it included: (B, V), float32."""
        if self.pads or len({len(ids) for ids in texts}) == 1:
            return self._together(texts, positions)
        lengths = np.asarray([len(ids) for ids in texts])
        groups = [np.flatnonzero(lengths == length).tolist() for length in np.unique(lengths)]
        parts = [self._together([texts[i] for i in group], [positions[i] for i in group]) for group in groups]
        order = torch.tensor([index for group in groups for index in group], device=self.device)
        return torch.cat(parts)[order.argsort()]

    def _together(self, texts: list[Ids], positions: list[int]) -> Tensor:
        lengths = torch.tensor([len(ids) for ids in texts])
        pad = self.tokenizer.pad_token_id
        padded = np.full((len(texts), int(lengths.max())), 0 if pad is None else pad)
        for row, ids in enumerate(texts):
            padded[row, : len(ids)] = ids
        real = torch.arange(padded.shape[1]) < lengths[:, None]
        self._at = torch.tensor(positions, device=self.device)
        tokens, attended = torch.from_numpy(padded).to(self.device), real.long().to(self.device)
        # Logits are needed at one position of each text: the others are left out just before the softmax weights.
        head: nn.Module = self.model.get_output_embeddings()
        with head.register_forward_pre_hook(self._select):
            logits = self.model(input_ids=tokens, attention_mask=attended).logits
        if logits.shape[1] > 1:  # of a head that does not call its softmax weights, so nothing was left out
            logits = logits[torch.arange(len(logits), device=self.device), self._at][:, None]
        logprobs: Tensor = logits[:, 0].float().log_softmax(-1)
        return logprobs

    def _ignores_padding(self) -> bool:
        """Whether a text has the same scores beside a longer one: some models mix in what they are told to ignore."""
        mask = int(self.tokenizer.mask_token_id)
        short, long = (np.full(length, mask) for length in (4, 9))
        with torch.inference_mode():
            alone = self.logprobs_at([short], [1])[0, mask].item()
            beside = self.logprobs_at([short, long], [1, 1])[0, mask].item()
        return bool(np.isclose(alone, beside, rtol=0, atol=1e-3 if self.model.dtype == torch.float32 else 0.1))

    def _select(self, head: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """(B, T, D) to (B, 1, D)."""
        hidden, *others = arguments
        return hidden[torch.arange(len(hidden), device=hidden.device), self._at][:, None], *others


def _positions(model: nn.Module) -> int | None:
    """How many tokens the model reads at most. RoBERTa's first position is the one after that of padding."""
    limit: int | None = getattr(model.config, "max_position_embeddings", None)
    for name, module in model.named_modules():
        if limit is not None and name.endswith("position_embeddings"):
            padding = getattr(module, "padding_idx", None)
            return limit if padding is None else limit - padding - 1
    return limit


@dataclass(frozen=True)
class _Hidden:
    """A sentence with the symbols that a masked model puts around it, and what is hidden to score each token."""

    ids: Ids  # (n,)
    scored: Ids  # (m,) positions of the sentence's own tokens
    spans: npt.NDArray[np.int32]  # (m, 2)
    until: Ids  # (m,) end of the positions that are hidden, from the scored one on

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast, sentence: str, pll: str) -> _Hidden:
        found = tokenizer(sentence, return_offsets_mapping=True, return_special_tokens_mask=True)
        scored = np.flatnonzero(np.asarray(found["special_tokens_mask"]) == 0)
        words = found.word_ids()
        until = scored + 1
        if pll == "within_word_l2r":
            # Some tokenizers know words by spaces, which Chinese lacks: there each character is a word.
            starts = [start for start, _ in found["offset_mapping"]]
            keys = [
                (word, start if "\u3400" <= sentence[start : start + 1] <= "\u9fff" else -1)
                for word, start in zip(words, starts, strict=True)
            ]
            ends = np.arange(1, len(keys) + 1)
            for position in range(len(keys) - 2, -1, -1):
                if keys[position] == keys[position + 1]:
                    ends[position] = ends[position + 1]
            until = ends[scored]
        spans = np.asarray(found["offset_mapping"], dtype=np.int32).reshape(-1, 2)[scored]
        return cls(np.asarray(found["input_ids"], dtype=np.int64), scored, spans, until)

    def copy(self, place: int, mask: int) -> _Copy:
        """The tokens with the `place`-th scored one hidden, by token `mask`."""
        position = int(self.scored[place])
        ids = self.ids.copy()
        ids[position : self.until[place]] = mask
        return _Copy(ids, position)


@dataclass(frozen=True)
class _Copy:
    """A text in which tokens are hidden, and the position of the one that is asked for."""

    ids: Ids  # (n,)
    position: int

    def digest(self) -> bytes:
        return hashlib.blake2b(self.ids.tobytes(), digest_size=16, salt=self.position.to_bytes(16)).digest()
