"""The scorer of causal Hugging Face models (GPT-2, Pythia, OLMo)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import FloatArray, TokenScores, batch_progress, begun, resolved_score_eos
from eval.scorers.chat import ChatTemplate
from eval.scorers.continuations import PromptedScorer
from eval.scorers.forward import check_repeatable, forward_errors, tolerance, without_cache
from eval.scorers.hf_tokenizers import begin_symbol, check_embedded, encoded, score_settings, vocabulary_size
from eval.scorers.hub import HubScorer
from eval.scorers.next_words.answers import NextTokens, indices, padded
from eval.scorers.next_words.readings import Question, Readings, left_to_right
from eval.scorers.too_long import TextTooLong
from eval.scorers.trees import Forest, Ids, forests
from pairscale.errors import ConfigError, InputError
from train.loop.device import without_gradients
from train.models.base import ancestors
from train.models.loss import all_logprobs, token_logprobs

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

TREE_TOKENS = 256  # of a tree, whose attention is over all its tokens: more cost more than they save
LOGIT_BYTES = 1 << 30  # of the logits that are held at a time where the model makes them itself


class CausalScorer(PromptedScorer, HubScorer):
    """A causal model. Sentences begin after its BOS, else its EOS, else `model.begin`, so the first word counts."""

    masked = False

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        name: str,
        batch_tokens: int,
        begin: str | None = None,
        device: str = "cpu",
        progress: bool = False,
    ):
        """`begin` is the token that stands before a sentence where the tokenizer names none.

        Raises what HubScorer does, ConfigError for a tokenizer without a begin symbol and for a model that sees the
        tokens after the one that it predicts.
        """
        super().__init__(model, tokenizer, name, batch_tokens, device, progress)
        self.begin = begin_symbol(tokenizer, begin, name)
        check_embedded(tokenizer, "the begin symbol", [self.begin], self.vocabulary, name)
        self.settings = score_settings(model, tokenizer, self.begin)
        self.chat_template = None if tokenizer.chat_template is None else ChatTemplate(tokenizer, name)
        described = model.config.get_text_config()
        self.positions = getattr(described, "max_position_embeddings", None)
        self.window = getattr(described, "sliding_window", None) or None  # 0 says that there is none, too
        with forward_errors(name, 4):
            _check_causal(self.model, self.begin, name)
            self.head = _plain_head(self.model, self.begin)
        longest = min(filter(None, (TREE_TOKENS, self.positions, self.window)))
        with forward_errors(name, longest):
            self.reads_trees = _reads_trees(self.model, self.head, self.begin, longest)

    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Scores in the order of `sentences`; each different string of tokens is read once."""
        eos = self.tokenizer.eos_token_id
        if resolved_score_eos(policy, self.word_level):
            if eos is None:
                raise ConfigError(f"policy.score_eos=true: the tokenizer of {self.name} has no end symbol")
            end = [eos]
        else:
            end = []
        targets: dict[bytes, Ids] = {}
        found: dict[str, tuple[bytes, npt.NDArray[np.int32]]] = {}
        for sentence, (ids, offsets) in encoded(self.tokenizer, list(dict.fromkeys(sentences))):
            check_embedded(self.tokenizer, sentence, ids, self.vocabulary, self.name)
            tokens = np.asarray([*ids, *end], dtype=np.int64)
            spans = [*offsets, *([(len(sentence), len(sentence))] if end else [])]
            targets[tokens.tobytes()] = tokens
            found[sentence] = tokens.tobytes(), np.asarray(spans, dtype=np.int32).reshape(-1, 2)
        before = self._before(policy)
        self._check_lengths(before, [targets[found[sentence][0]] for sentence in sentences])
        logprobs = dict(zip(targets, self._logprobs(before, list(targets.values()), policy), strict=True))
        unk = self.tokenizer.unk_token_id
        unknown = {key: tokens == (-1 if unk is None else unk) for key, tokens in targets.items()}
        if end:  # it is no unknown word, though in some vocabularies one symbol stands for both
            for flags in unknown.values():
                flags[-1] = False
        return [
            TokenScores(logprobs[key], spans, unknown[key])
            for key, spans in (found[sentence] for sentence in sentences)
        ]

    def _before(self, policy: PolicyConfig) -> list[int]:
        """Tokens before a sentence: the context, then the begin symbol."""
        match policy.context:
            case "eos":
                return [self.begin] * (policy.context_tokens + 1)
            case "text":
                ((_, (ids, _)),) = encoded(self.tokenizer, [policy.context_text or ""])
                return [self.begin, *ids, self.begin]
            case _:
                return [self.begin]

    def _check_lengths(self, before: list[int], targets: Sequence[Ids]) -> None:
        """Raise TextTooLong for the first text that does not fit behind the tokens before it."""
        positions = self.positions
        for index, ids in enumerate(targets):
            if positions is not None and (tokens := len(before) + len(ids) - 1) > positions:
                raise TextTooLong(self.name, positions, str(self.tokenizer.decode(ids)), tokens, index)

    def check_repeatable(self, tokens: int) -> None:
        """Raise ConfigError where two passes over a text of so many tokens differ."""
        if tokens <= self.repeatable:
            return
        text = torch.from_numpy(_drawn(self.model, 1, tokens)).to(self.device)

        def last() -> Tensor:
            if self.head is None:
                return _logits(self.model, text)[0, -1].log_softmax(-1)
            weight, bias = self.head
            return (_hidden(self.model, text)[0, -1] @ weight.T + bias).float().log_softmax(-1)

        with without_gradients(self.device, False), forward_errors(self.name, tokens):
            check_repeatable(last, self.model.dtype, self.name, tokens)
        self.repeatable = tokens

    def _logprobs(
        self, before: list[int], targets: list[Ids], policy: PolicyConfig, first: Sequence[int] | None = None
    ) -> list[FloatArray]:
        """ln p of the tokens of each text, from its `first` one on, after `before` and the tokens before them."""
        texts = [np.concatenate([before, ids]).astype(np.int64) for ids in targets]
        self.check_repeatable(max((len(text) - 1 for text in texts), default=0))
        batch_tokens = self.batch_tokens
        if self.head is None:  # then all logits of a batch are held
            batch_tokens = min(batch_tokens, max(1, LOGIT_BYTES // (4 * len(self.tokenizer))))
        capacity = min(TREE_TOKENS, batch_tokens) if self._trees_fit(texts) else 0
        batches = forests(texts, begun(first, len(texts), len(before)), capacity, batch_tokens)
        results = [np.empty(0)] * len(targets)
        bf16 = policy.precision == "bf16"
        with without_gradients(self.device, bf16):
            told = self.name if capacity else f"{self.name}, each text alone"
            for forest in batch_progress(batches, len(texts), told, self.progress):
                for text, values in forest.results(self._read(forest, shared=capacity > 0)):
                    results[text] = values
        return results

    def _trees_fit(self, texts: list[Ids]) -> bool:
        """A mask of ancestors takes the place of a model's own, which may be a window narrower than a long text."""
        longest = max((len(text) for text in texts), default=0)
        return self.reads_trees and longest <= min(TREE_TOKENS, self.window or TREE_TOKENS)

    def _read(self, forest: Forest, shared: bool) -> FloatArray:
        """(C,) ln p of all tokens that are asked for."""
        if not len(forest.targets):
            return np.empty(0)
        tokens, parents, depths, rows, targets = forest.tensors(self.device)
        given = _as_trees(parents, depths, self.model.dtype) if shared else {}
        after, rows = torch.unique_consecutive(rows, return_inverse=True)
        with forward_errors(self.name, tokens.shape[1]):
            if self.head is None:
                logits = _logits(self.model, tokens, **given).flatten(0, 1)[after]
                values = logits.log_softmax(-1)[rows, targets]
            else:
                hidden = _hidden(self.model, tokens, **given).flatten(0, 1)
                values = token_logprobs(hidden[after], *self.head, targets, rows)
        nats: FloatArray = values.double().cpu().numpy()
        return nats

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        every = self.tokenizer(list(texts), add_special_tokens=False, return_attention_mask=False)["input_ids"]
        for text, ids in zip(texts, every, strict=True):
            check_embedded(self.tokenizer, text, ids, self.vocabulary, self.name)
        return [np.asarray(ids, dtype=np.int64) for ids in every]

    def _token(self, index: int) -> str:
        return str(self.tokenizer.convert_ids_to_tokens(index))

    @property
    def _unknown(self) -> int | None:
        unk: int | None = self.tokenizer.unk_token_id
        return unk

    def _continued(self, texts: list[Ids], first: list[int], policy: PolicyConfig, chat: bool) -> list[FloatArray]:
        """A prompt begins after the begin symbol, one of a chat template as the template says."""
        before = self._before(policy)
        if not chat:
            self._check_lengths(before, texts)
            return self._logprobs(before, texts, policy, first)
        if policy.context != "none":
            raise ConfigError(f"policy.context={policy.context}: a chat template says itself what a prompt begins with")
        # The first token, BOS or the mark of a message, is read and not scored; it is one for all prompts.
        self._check_lengths([0], [ids[1:] for ids in texts])
        results = [np.empty(0)] * len(texts)
        for begin in dict.fromkeys(int(ids[0]) for ids in texts):
            of = [i for i, ids in enumerate(texts) if ids[0] == begin]
            values = self._logprobs([begin], [texts[i][1:] for i in of], policy, [first[i] - 1 for i in of])
            for i, value in zip(of, values, strict=True):
                results[i] = value
        return results

    def _next_tokens(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[NextTokens, Readings]:
        def read(texts: list[Ids], positions: list[list[int]]) -> Tensor:
            tokens, where = padded(texts, self.begin, self.device), indices(positions)
            if self.head is not None:
                return all_logprobs(_hidden(self.model, tokens)[where], *self.head)
            head = self.model.get_output_embeddings()
            if not isinstance(head, nn.Module):  # of some models' own code
                return _logits(self.model, tokens)[where].log_softmax(-1)

            def chosen(_: object, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
                return arguments[0][where][None], *arguments[1:]

            # Such a model changes its logits afterwards: it gets the used positions alone to make them of.
            with head.register_forward_pre_hook(chosen):
                return _logits(self.model, tokens)[0].log_softmax(-1)

        texts = (text for _, text in encoded(self.tokenizer, [f"{context} {word}" for context, word in questions]))
        readings = left_to_right(questions, texts, self._before(policy), self._unknown)
        return self._hub_tokens(read, readings)


def _logits(model: PreTrainedModel, tokens: Tensor, **given: Tensor) -> Tensor:
    """(B, T, V) float32."""
    logits: Tensor = model(input_ids=tokens, **without_cache(model), **given).logits
    return logits.float()


def _hidden(model: PreTrainedModel, tokens: Tensor, **given: Tensor) -> Tensor:
    """(B, T, D) what the softmax weights are applied to."""
    hidden: Tensor = model.base_model(input_ids=tokens, **without_cache(model.base_model), **given)[0]
    return hidden


def _plain_head(model: PreTrainedModel, token: int) -> tuple[Tensor, Tensor] | None:
    """Weight (V, D) and bias (V,) of the softmax, where logits are nothing but hidden states times these, else None.

    Some models scale or cap their logits: the model itself is asked on a probe, not its configuration.
    """
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    if not isinstance(head, nn.Linear) or model.base_model is model:
        return None
    bias = head.bias if head.bias is not None else head.weight.new_zeros(len(head.weight))
    probe = torch.tensor([[token, token, token]], device=head.weight.device)
    with torch.inference_mode():
        asked = _logits(model, probe).log_softmax(-1)
        hidden = _hidden(model, probe)
        made = (hidden @ head.weight.T + bias).float().log_softmax(-1)
    return (head.weight, bias) if _same(asked, made, model) else None


def _as_trees(parents: Tensor, depths: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
    """What makes a model read each token (B, T) after its ancestors alone."""
    seen = ancestors(parents)[:, None]  # (B, 1, T, T)
    mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, torch.finfo(dtype).min)
    return {"attention_mask": mask, "position_ids": depths}


def _reads_trees(model: PreTrainedModel, head: tuple[Tensor, Tensor] | None, token: int, longest: int) -> bool:
    """Whether the model follows a mask and positions that are given: some take their own from the order of tokens.

    It is asked on a tree as large as any, of two texts of up to `longest` tokens: what it sees may be narrower.
    """

    def logprobs(tokens: Tensor, **given: Tensor) -> Tensor:
        if head is None:
            return _logits(model, tokens, **given).log_softmax(-1)
        # In float32: logits of -100, as GPT-2's are, have steps of half a nat in bfloat16.
        weight, bias = (part.float() for part in head)
        return (_hidden(model, tokens, **given).float() @ weight.T + bias).log_softmax(-1)

    length = max(2, min(longest, TREE_TOKENS // 2)) - 1
    texts = [np.concatenate([[token], ids]) for ids in _drawn(model, 2, length + 1)]
    (forest,) = forests(texts, np.asarray([1, 1]), 2 * TREE_TOKENS, 2 * TREE_TOKENS)
    tokens, parents, depths, _, _ = forest.tensors(model.device)
    after = forest.rows[forest.asked]  # the places of the first text, then of the second
    with torch.inference_mode():
        try:
            tree = logprobs(tokens, **_as_trees(parents, depths, model.dtype))[0]
        except torch.OutOfMemoryError:
            raise
        except (TypeError, ValueError, RuntimeError, IndexError):
            return False  # of its signature or of the mask's shape: its texts are read alone, and it is said so
        read = torch.from_numpy(np.stack([texts[text] for text in forest.texts])[:, :-1]).to(model.device)
        plain = logprobs(read)  # (2, T, V)
    return _same(plain.flatten(0, 1), tree[torch.from_numpy(after).to(tree.device)], model)


def _check_causal(model: PreTrainedModel, token: int, name: str) -> None:
    """Raise ConfigError for a model whose logits change with what stands after them."""
    ids = np.concatenate([np.full((2, 1), token), _drawn(model, 2, 3)], axis=1)
    ids[1, :3] = ids[0, :3]
    with torch.inference_mode():
        logits = _logits(model, torch.from_numpy(ids).to(model.device)).log_softmax(-1)
    if bool(logits.isnan().any()):
        raise InputError(f"{name}: says NaN, so no score of it would be a number (model.dtype={model.dtype})")
    if not _same(logits[0, :3], logits[1, :3], model):
        raise ConfigError(
            f"{name}: no causal model: what it says of a token changes with the tokens after it; for a masked one "
            "give model=hf_masked"
        )


def _drawn(model: PreTrainedModel, texts: int, tokens: int) -> Ids:
    """(texts, tokens) different ids of the vocabulary, always the same ones."""
    return np.random.default_rng(0).integers(vocabulary_size(model), size=(texts, tokens))


def _same(one: Tensor, other: Tensor, model: PreTrainedModel) -> bool:
    return torch.allclose(one, other, rtol=0, atol=tolerance(model.dtype))
