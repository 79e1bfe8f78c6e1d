"""Networks of transformers as functions from tokens to log-probabilities, with checks of their heads and passes."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from eval.scorers.base import Execution
from eval.scorers.causal_models import CausalModel
from eval.scorers.trees import Forest, Ids, forests
from pairscale.errors import ConfigError, InputError, PairscaleError, RunError, error_line
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

if TYPE_CHECKING:
    from transformers import PreTrainedModel

TREE_TOKENS = 256  # of a tree, whose attention is over all its tokens: more cost more than they save
LOGIT_BYTES = 1 << 30  # of the logits that are held at a time where the model makes them itself
CPU_TOKENS = 2048  # more leave a CPU's cache between one layer's passes and the next, for a model as large as GPT-2
# Nats between two computations of the same log-probabilities, by the precision of the weights; a wrong one is far off.
PROBE_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


class Network:
    """A causal or masked model of transformers."""

    def __init__(self, model: PreTrainedModel, name: str, execution: Execution, digest: str | None = None):
        """`digest`: of the weights, which are checked and digested here without it.

        On a CPU a batch has 2,048 tokens at most, whatever `execution` says, and fewer where all logits are held.
        Raises RunError for weights that are not numbers.
        """
        self.name = name
        if digest is None:
            check_finite(model, name)
        self.digest = digest or weights_digest(model)
        self.device = torch.device(execution.device)
        self.model = model.to(self.device).eval()  # type: ignore[arg-type]
        self.vocabulary = vocabulary_size(self.model)
        self.positions = most_positions(self.model)
        self.head = self._plain_head()  # weight and bias of the softmax; None: the model changes its logits afterwards
        self.batch_tokens = execution.batch_tokens
        if self.device.type == "cpu":
            self.batch_tokens = min(self.batch_tokens, CPU_TOKENS)
        if self.head is None:  # then all logits of a batch are held
            self.batch_tokens = min(self.batch_tokens, max(1, LOGIT_BYTES // (4 * self.vocabulary)))
        self.repeatable = 0  # tokens of the longest text on which two passes were compared

    @property
    def tolerance(self) -> float:
        """The nats by which equal log-probabilities of the model may differ."""
        return PROBE_TOLERANCE.get(self.model.dtype, 0.1)

    def logprobs_at(self, tokens: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return ln p (R, V) in nats, float32, of every token at R places in texts (B, T) of equal length."""
        with forward_errors(self.name, tokens.shape[1]):
            if self.head is None and self._reads_places:
                return logits_at(self.model, rows, columns, **self._arguments(tokens, {})).float().log_softmax(-1)
            if self.head is None:
                return self.logits(tokens)[rows, columns].log_softmax(-1)
            return all_logprobs(self.hidden(tokens)[rows, columns], *self.head)

    def logits(self, tokens: Tensor, **order: Tensor) -> Tensor:
        """Return logits (B, T, V), float32; `order`: masks and positions in place of the usual ones."""
        logits: Tensor = self.model(**self._arguments(tokens, order)).logits
        return logits.float()

    def hidden(self, tokens: Tensor, **order: Tensor) -> Tensor:
        """Return the input (B, T, D) of a plain head, in its type: some models turn logits into float32 themselves."""
        assert self.head is not None
        return inputs_of_head(self.model, **self._arguments(tokens, order)).to(self.head[0].dtype)

    def check_repeatable(self, tokens: int) -> None:
        """Raise ConfigError if two passes over a text of so many tokens differ."""
        if tokens <= self.repeatable:
            return
        text = torch.from_numpy(np.resize(np.random.default_rng(0).permutation(self.vocabulary), (1, tokens)))
        at = torch.tensor([0]), torch.tensor([tokens - 1])
        with without_gradients(self.device, False):
            one, other = (self.logprobs_at(text.to(self.device), *at) for _ in range(2))
        if not torch.allclose(one, other, rtol=0, atol=self.tolerance, equal_nan=True):
            far = float((one - other).nan_to_num().abs().max())
            raise ConfigError(
                f"{self.name}: two passes over one text of {tokens} tokens differ by up to {far:.2g} nats, so its "
                "scores would be random (a Reformer's hashing is, unless its config.json sets hash_seed)"
            )
        self.repeatable = tokens

    def _arguments(self, tokens: Tensor, order: dict[str, Tensor]) -> dict[str, Any]:
        """Return the arguments of a pass over texts (B, T) of equal length, all of whose tokens are seen.

        Without a mask some models take the begin symbol for padding, where the two are one.
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
        except InputError:  # some read no text that is so short; their own logits are right in any case
            return None

    @cached_property
    def _reads_places(self) -> bool:
        """Whether a head that is not plain can be given the places alone whose logits are needed."""
        probe = torch.arange(2, 10, device=self.device).view(2, 4) % self.vocabulary
        try:
            with forward_errors(self.name, 4):
                return reads_places(self.model, **self._arguments(probe, {}))
        except InputError:  # of a short text, or of a model that needs the logits of all places
            return False


class CausalNetwork(Network, CausalModel):
    """A causal model of transformers, which reads what stands before a text with it."""

    def __init__(self, *arguments: Any, begin: int, **options: Any):
        """Arguments of Network; `begin`: the begin symbol. Raises what Network does.

        Also ConfigError for a model that sees the tokens after the one that it predicts.
        """
        super().__init__(*arguments, **options)
        self.begin = begin
        self.window = getattr(self.model.config.get_text_config(), "sliding_window", None) or None  # 0 means none, too
        with forward_errors(self.name, 4):
            self._check_causal()
        longest = min(filter(None, (TREE_TOKENS, self.positions, self.window)))
        with forward_errors(self.name, longest):
            self.reads_trees = self._follows_trees(longest)

    def start(self, before: list[int]) -> tuple[list[int], State]:
        return before, ()

    def tree_tokens(self, longest: int) -> int | None:
        # A mask of ancestors takes the place of a model's own, which may be a window narrower than a long text.
        return TREE_TOKENS if self.reads_trees and longest <= min(TREE_TOKENS, self.window or TREE_TOKENS) else 0

    def logprobs(self, forest: Forest, state: State) -> Tensor:
        tokens, parents, depths, rows, targets = forest.tensors(self.device)
        self.check_repeatable(tokens.shape[1])
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
        """Return the arguments that make a model read each token (B, T) after its ancestors alone."""
        seen = ancestors(parents)[:, None]  # (B, 1, T, T)
        mask = torch.zeros(seen.shape, dtype=self.model.dtype, device=self.device)
        mask.masked_fill_(~seen, torch.finfo(self.model.dtype).min)
        return {"attention_mask": mask, "position_ids": depths}

    def _follows_trees(self, longest: int) -> bool:
        """Return True if the model follows given masks and positions: some take their own from the order of tokens.

        The probe is a tree as large as any, of two texts of up to `longest` tokens: what it sees may be narrower.
        """

        def logprobs(tokens: Tensor, **order: Tensor) -> Tensor:
            if self.head is None:
                return self.logits(tokens, **order).log_softmax(-1)
            # In float32: logits of -100, as GPT-2's are, have steps of half a nat in bfloat16.
            weight, bias = (part.float() for part in self.head)
            return (self.hidden(tokens, **order).float() @ weight.T + bias).log_softmax(-1)

        length = max(2, min(longest, TREE_TOKENS // 2)) - 1
        texts = [np.concatenate([[self.begin], ids]) for ids in self._random_tokens(2, length + 1)]
        (forest,) = forests(texts, np.asarray([1, 1]), 2 * TREE_TOKENS, 2 * TREE_TOKENS)
        tokens, parents, depths, _, _ = forest.tensors(self.device)
        after = torch.from_numpy(forest.rows[forest.by_text]).to(self.device)  # of the first text, then of the second
        with torch.inference_mode():
            try:
                tree = logprobs(tokens, **self._tree_order(parents, depths))[0, after]
            except torch.OutOfMemoryError:
                raise
            except (TypeError, ValueError, RuntimeError, IndexError, AssertionError):
                return False  # of its signature or of the mask's shape: its texts are read alone, as progress says
            read = torch.from_numpy(np.stack([texts[text] for text in forest.texts])[:, :-1]).to(self.device)
            half = read.shape[1] // 2
            alone, others_before = logprobs(read), logprobs(torch.cat([read.flip(0)[:, :half], read[:, half:]], 1))
        return self._same(alone.flatten(0, 1), tree, effect=_distance(alone[:, half:], others_before[:, half:]))

    def _check_causal(self) -> None:
        """Raise ConfigError for a model whose logits change with what stands after them."""
        ids = np.concatenate([np.full((2, 1), self.begin), self._random_tokens(2, 3)], axis=1)
        ids[1, :3] = ids[0, :3]
        with torch.inference_mode():
            logits = self.logits(torch.from_numpy(ids).to(self.device)).log_softmax(-1)
        if bool(logits.isnan().any()):
            raise InputError(
                f"{self.name}: its logits are NaN, so no score would be a number (model.dtype={self.model.dtype})"
            )
        if not self._same(logits[0, :3], logits[1, :3], effect=_distance(*logits[:, 3])):
            raise ConfigError(
                f"{self.name}: no causal model: its prediction of a token changes with the tokens after it; for a "
                "masked model give model=hf_masked"
            )

    def _random_tokens(self, texts: int, tokens: int) -> Ids:
        """Return ids (texts, tokens) of the vocabulary, always the same ones."""
        return np.random.default_rng(0).integers(self.vocabulary, size=(texts, tokens))

    def _same(self, one: Tensor, other: Tensor, effect: float) -> bool:
        """Return True if log-probabilities are equal up to rounding, which is small beside an `effect` of context.

        A model with new weights hardly depends on its context, so that an error would be small, too. A rounding of some
        of float32's steps, which are larger for larger numbers, is allowed to any model.
        """
        part = 1e-3 if self.model.dtype == torch.float32 else 0.25  # coarser numbers round more
        return torch.allclose(one, other, rtol=1e-6, atol=min(self.tolerance, max(1e-5, part * effect)))


def _distance(one: Tensor, other: Tensor) -> float:
    """Return the largest difference of finite log-probabilities, in nats."""
    return float((one - other).nan_to_num(0, 0, 0).abs().max())


@contextmanager
def forward_errors(name: str, tokens: int) -> Iterator[None]:
    """Raise InputError, in one line, for whatever the code of a model raises on texts of `tokens` tokens.

    Some architectures read no text that is shorter than their pooling, or only texts of one length.
    """
    try:
        yield
    except (PairscaleError, torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{name}: its code fails on a text of {tokens} tokens ({error_line(error)})") from error


def vocabulary_size(model: PreTrainedModel) -> int:
    """Return the number of tokens that the model can read and predict."""
    size = int(model.config.get_text_config().vocab_size)
    try:
        embeddings = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):  # of code that comes with a model
        return size
    return min(size, int(getattr(embeddings, "num_embeddings", size)))


def weights_digest(model: nn.Module) -> str:
    """Return the SHA-256 over names, types and values of all weights, whatever files they came from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def check_finite(model: nn.Module, name: str) -> None:
    """Raise RunError for weights that are infinite or not numbers: no score of theirs means anything."""
    for parameter, weight in model.named_parameters():
        if weight.is_floating_point() and not bool(weight.isfinite().all()):
            raise RunError(f"{name}: its weights hold infinity or NaN (in {parameter}); they are damaged")
