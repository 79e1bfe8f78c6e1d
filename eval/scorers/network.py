"""Compute log-probabilities with models of transformers, and check that the models behave as we assume."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from eval.scorers.base import Execution
from eval.scorers.causal_models import CausalModel
from eval.scorers.trees import Forest, Ids, forests
from pairscale.errors import ConfigError, InputError, PairscaleError, error_line
from train.loop.device import without_gradients
from train.models.base import State, ancestors
from train.models.huggingface import (
    has_plain_head,
    inputs_of_head,
    logits_at,
    most_positions,
    reads_places,
    softmax_of,
)
from train.models.loss import all_logprobs, token_logprobs
from train.models.pretrained import check_finite, weights_digest

if TYPE_CHECKING:
    from transformers import PreTrainedModel

TREE_TOKENS = 256  # per tree; every token attends over its whole tree, so larger trees cost more than they save
LOGIT_BYTES = 1 << 30  # maximum size of the logits in memory, if the model computes them itself
CPU_TOKENS = 2048  # per batch; with more, the activations of a model like GPT-2 no longer fit into a CPU's cache
# Tolerated difference (nats) between two computations of the same log-probabilities. Real errors are far larger.
PROBE_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


class Network:
    """A causal or masked model of transformers."""

    def __init__(self, model: PreTrainedModel, name: str, execution: Execution, digest: str | None = None):
        """Move the model to its device. If there is no `digest` of its weights, check the weights and compute it.

        On a CPU, a batch has at most 2,048 tokens, for any `execution`. It has fewer if all logits have to be kept in
        memory. Raises RunError if weights are NaN or infinite.
        """
        self.name = name
        if digest is None:
            check_finite(model, name)
        self.digest = digest or weights_digest(model)
        self.device = torch.device(execution.device)
        self.model = model.to(self.device).eval()  # type: ignore[arg-type]
        self.vocabulary = vocabulary_size(self.model)
        self.positions = most_positions(self.model)
        self.head = self._plain_head()  # weight and bias of the softmax, or None if the logits aren't computed this way
        self.batch_tokens = execution.batch_tokens
        if self.device.type == "cpu":
            self.batch_tokens = min(self.batch_tokens, CPU_TOKENS)
        if self.head is None:  # all logits of a batch are in memory
            self.batch_tokens = min(self.batch_tokens, max(1, LOGIT_BYTES // (4 * self.vocabulary)))
        self.repeatable = 0  # length in tokens of the longest text for which two passes were compared

    @property
    def tolerance(self) -> float:
        """The largest difference (nats) between log-probabilities that are considered equal."""
        return PROBE_TOLERANCE.get(self.model.dtype, 0.1)

    def logprobs_at(self, tokens: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return ln p (R, V) of every token at R positions in texts (B, T) of equal length, in nats (float32)."""
        with forward_errors(self.name, tokens.shape[1]):
            if self.head is None and self._reads_places:
                return logits_at(self.model, rows, columns, **self._arguments(tokens, {})).float().log_softmax(-1)
            if self.head is None:
                return self.logits(tokens)[rows, columns].log_softmax(-1)
            return all_logprobs(self.hidden(tokens)[rows, columns], *self.head)

    def logits(self, tokens: Tensor, **order: Tensor) -> Tensor:
        """Return logits (B, T, V) in float32. `order` contains masks and positions that replace the usual ones."""
        logits: Tensor = self.model(**self._arguments(tokens, order)).logits
        return logits.float()

    def hidden(self, tokens: Tensor, **order: Tensor) -> Tensor:
        """Return the input (B, T, D) of a plain head, converted to the head's number format."""
        assert self.head is not None
        return inputs_of_head(self.model, **self._arguments(tokens, order)).to(self.head[0].dtype)

    def check_repeatable(self, tokens: int) -> None:
        """Raise ConfigError if two passes over the same text of `tokens` tokens differ."""
        if tokens <= self.repeatable:
            return
        text = torch.from_numpy(np.resize(np.random.default_rng(0).permutation(self.vocabulary), (1, tokens)))
        at = torch.tensor([0]), torch.tensor([tokens - 1])
        with without_gradients(self.device, False):
            one, other = (self.logprobs_at(text.to(self.device), *at) for _ in range(2))
        if not torch.allclose(one, other, rtol=0, atol=self.tolerance, equal_nan=True):
            far = float((one - other).nan_to_num().abs().max())
            raise ConfigError(
                f"{self.name}: two passes over the same text of {tokens} tokens differ by up to {far:.2g} nats, so the "
                "scores would be random. For a Reformer, set hash_seed in its config.json. For others, use another "
                "model."
            )
        self.repeatable = tokens

    def _arguments(self, tokens: Tensor, order: dict[str, Tensor]) -> dict[str, Any]:
        """Return the arguments for a pass over texts (B, T) of equal length, without padding.

        The mask is necessary, because some models mistake the begin symbol for padding if it is the same token.
        """
        arguments = {"attention_mask": torch.ones_like(tokens), "use_cache": False}
        taken = inspect.signature(self.model.forward).parameters
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
            arguments = {name: value for name, value in arguments.items() if name in taken}
        return {"input_ids": tokens, **arguments, **order}

    def _plain_head(self) -> tuple[Tensor, Tensor] | None:
        probe = torch.arange(2, 6, device=self.device)[None] % self.vocabulary
        try:
            with forward_errors(self.name, 4):
                return softmax_of(self.model) if has_plain_head(self.model, probe) else None
        except InputError:  # some models can't read such a short text; they can still compute their own logits
            return None

    @cached_property
    def _reads_places(self) -> bool:
        """Whether a head that isn't plain can compute logits at only the positions that are needed."""
        probe = torch.arange(2, 10, device=self.device).view(2, 4) % self.vocabulary
        try:
            with forward_errors(self.name, 4):
                return reads_places(self.model, **self._arguments(probe, {}))
        except InputError:  # the text is too short for the model, or it needs the logits of all positions
            return False


class CausalNetwork(Network, CausalModel):
    """A causal model of transformers. It reads the context before a text again with each text."""

    def __init__(self, *arguments: Any, begin: int, **options: Any):
        """Set up the model. The arguments are the same as for Network, and `begin` is the id of the begin symbol.

        Raises the same errors as Network, and ConfigError if the model sees tokens after the one that it predicts.
        """
        super().__init__(*arguments, **options)
        self.begin = begin
        self.window = getattr(self.model.config.get_text_config(), "sliding_window", None) or None  # 0 means none
        with forward_errors(self.name, 4):
            self._check_causal()
        longest = min(filter(None, (TREE_TOKENS, self.positions, self.window)))
        with forward_errors(self.name, longest):
            self.reads_trees = self._follows_trees(longest)

    def start(self, before: list[int]) -> tuple[list[int], State]:
        return before, ()

    def tree_tokens(self, longest: int) -> int | None:
        # The ancestor mask replaces the model's own mask, which may be a window that is narrower than a long text.
        return TREE_TOKENS if self.reads_trees and longest <= min(TREE_TOKENS, self.window or TREE_TOKENS) else 0

    def logprobs(self, forest: Forest, state: State) -> Tensor:
        self.check_repeatable(int(forest.depths.max()) + 1)
        tokens, parents, depths, rows, targets = forest.tensors(self.device)
        order = {} if forest.alone else self._tree_order(parents, depths)
        after, rows = torch.unique_consecutive(rows, return_inverse=True)
        with forward_errors(self.name, tokens.shape[1]):
            if self.head is None:
                return self.logits(tokens, **order).flatten(0, 1)[after].log_softmax(-1)[rows, targets]
            hidden = self.hidden(tokens, **order).flatten(0, 1)
            return token_logprobs(hidden[after], *self.head, targets, rows)

    def all_logprobs(self, tokens: Tensor, rows: Tensor, columns: Tensor, state: State) -> Tensor:
        self.check_repeatable(tokens.shape[1])
        return self.logprobs_at(tokens, rows, columns)

    def _tree_order(self, parents: Tensor, depths: Tensor) -> dict[str, Tensor]:
        """Return arguments with which a model reads each token (B, T) after only its ancestors."""
        seen = ancestors(parents)[:, None]  # (B, 1, T, T)
        mask = torch.zeros(seen.shape, dtype=self.model.dtype, device=self.device)
        mask.masked_fill_(~seen, torch.finfo(self.model.dtype).min)
        return {"attention_mask": mask, "position_ids": depths}

    def _follows_trees(self, longest: int) -> bool:
        """Return True if the model uses the given masks and positions instead of the order of the tokens.

        This is tested on the largest possible tree, with two texts of up to `longest` tokens. A smaller tree would not
        show whether the model sees fewer tokens than that.
        """

        def logprobs(tokens: Tensor, **order: Tensor) -> Tensor:
            if self.head is None:
                return self.logits(tokens, **order).log_softmax(-1)
            # This is computed in float32, because logits near -100, such as GPT-2's, have steps of half a nat in bf16.
            weight, bias = (part.float() for part in self.head)
            return (self.hidden(tokens, **order).float() @ weight.T + bias).log_softmax(-1)

        length = max(2, min(longest, TREE_TOKENS // 2)) - 1
        texts = [np.concatenate([[self.begin], ids]) for ids in self._random_tokens(2, length + 1)]
        (forest,) = forests(texts, np.asarray([1, 1]), 2 * TREE_TOKENS, 2 * TREE_TOKENS)
        tokens, parents, depths, _, _ = forest.tensors(self.device)
        after = torch.from_numpy(forest.rows[forest.by_text]).to(self.device)  # the first text, then the second
        with torch.inference_mode():
            try:
                tree = logprobs(tokens, **self._tree_order(parents, depths))[0, after]
            except torch.OutOfMemoryError:
                raise
            except (TypeError, ValueError, RuntimeError, IndexError, AssertionError):
                return False  # the model doesn't accept such arguments or masks, so its texts are read one by one
            read = torch.from_numpy(np.stack([texts[text] for text in forest.texts])[:, :-1]).to(self.device)
            half = read.shape[1] // 2
            alone, others_before = logprobs(read), logprobs(torch.cat([read.flip(0)[:, :half], read[:, half:]], 1))
        return self._same(alone.flatten(0, 1), tree, effect=_distance(alone[:, half:], others_before[:, half:]))

    def _check_causal(self) -> None:
        """Raise ConfigError if the logits of the model depend on later tokens, and InputError if they are NaN."""
        ids = np.concatenate([np.full((2, 1), self.begin), self._random_tokens(2, 3)], axis=1)
        ids[1, :3] = ids[0, :3]
        with torch.inference_mode():
            logits = self.logits(torch.from_numpy(ids).to(self.device)).log_softmax(-1)
        if bool(logits.isnan().any()):
            raise InputError(
                f"{self.name}: its logits are NaN in {self.model.dtype}, so there are no scores. Set model.dtype=fp32."
            )
        if not self._same(logits[0, :3], logits[1, :3], effect=_distance(*logits[:, 3])):
            raise ConfigError(
                f"{self.name}: this isn't a causal model, because its prediction of a token depends on later tokens. "
                "If it is a masked model, use model=hf_masked."
            )

    def _random_tokens(self, texts: int, tokens: int) -> Ids:
        """Return random token ids (texts, tokens), the same in every call."""
        return np.random.default_rng(0).integers(self.vocabulary, size=(texts, tokens))

    def _same(self, one: Tensor, other: Tensor, effect: float) -> bool:
        """Return True if log-probabilities are equal up to rounding, which is small compared with `effect`.

        `effect` is how much the context changes the log-probabilities, in nats. It is small for an untrained model, and
        so are the model's errors. Differences of a few float32 steps are always allowed.
        """
        part = 1e-3 if self.model.dtype == torch.float32 else 0.25  # 16-bit formats round more coarsely
        return torch.allclose(one, other, rtol=1e-6, atol=min(self.tolerance, max(1e-5, part * effect)))


def _distance(one: Tensor, other: Tensor) -> float:
    """Return the largest difference between log-probabilities, in nats. Values that aren't finite count as 0."""
    return float((one - other).nan_to_num(0, 0, 0).abs().max())


@contextmanager
def forward_errors(name: str, tokens: int) -> Iterator[None]:
    """Turn any error in a model's code into a one-line InputError with the length of the text, in tokens.

    Some architectures can't read texts that are shorter than their pooling window. Others only accept one length.
    """
    try:
        yield
    except (PairscaleError, torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"{name}: the model's own code failed on a text of {tokens} tokens ({error_line(error)}). Check that its "
            "architecture supports texts of this length."
        ) from error


def vocabulary_size(model: PreTrainedModel) -> int:
    """Return the number of tokens that the model can read and predict."""
    size = int(model.config.get_text_config().vocab_size)
    try:
        embeddings = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):  # some models don't implement this method
        return size
    return min(size, int(getattr(embeddings, "num_embeddings", size)))
