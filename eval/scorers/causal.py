"""The scorer of causal Hugging Face models (GPT-2, Pythia, OLMo)."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from eval.config import PolicyConfig
from eval.scorers.base import Execution, FloatArray, TextTooLong
from eval.scorers.chat import ChatTemplate
from eval.scorers.forward import forward_errors, tolerance
from eval.scorers.hf_tokenizers import begin_symbol, encoded, score_settings
from eval.scorers.hub import HubModel, HubScorer
from eval.scorers.left_to_right import PromptedScorer
from eval.scorers.next_words.answers import NextTokens, Read, indices
from eval.scorers.next_words.predictions import boundaries
from eval.scorers.next_words.readings import Encoded, Question, Readings, left_to_right
from eval.scorers.next_words.whole_words import hub_beginnings
from eval.scorers.trees import Forest, Ids, forests
from pairscale.errors import ConfigError, InputError
from train.loop.device import without_gradients
from train.models.base import ancestors
from train.models.loss import token_logprobs

TREE_TOKENS = 256  # of a tree, whose attention is over all its tokens: more cost more than they save


class CausalScorer(PromptedScorer, HubScorer):
    """A causal model. Sentences begin after its BOS, else its EOS, else `model.begin`, so the first word counts."""

    def __init__(self, loaded: HubModel, execution: Execution, begin: str | None = None):
        """`begin` is the token that stands before a sentence where the tokenizer names none.

        Raises what HubScorer does, ConfigError for a tokenizer without a begin symbol and for a model that sees the
        tokens after the one that it predicts.
        """
        super().__init__(loaded, execution)
        self.begin = begin_symbol(self.tokenizer, begin, self.name)
        self.check_embedded("the begin symbol", [self.begin])
        self.settings = score_settings(self.model, self.tokenizer, self.begin)
        template = self.tokenizer.chat_template
        self.chat_template = None if template is None else ChatTemplate(self.tokenizer, self.name)
        self.window = getattr(self.model.config.get_text_config(), "sliding_window", None) or None  # 0 means none, too
        with forward_errors(self.name, 4):
            self._check_causal()
        longest = min(filter(None, (TREE_TOKENS, self.positions, self.window)))
        with forward_errors(self.name, longest):
            self.reads_trees = self._follows_trees(longest)

    @property
    def _eos(self) -> int | None:
        eos: int | None = self.tokenizer.eos_token_id
        return eos

    @property
    def _unknown(self) -> int | None:
        unk: int | None = self.tokenizer.unk_token_id
        return unk

    def _token(self, index: int) -> str:
        return str(self.tokenizer.convert_ids_to_tokens(index))

    def _encoded(self, texts: Sequence[str]) -> Iterator[Encoded]:
        for text, (ids, offsets) in zip(texts, encoded(self.tokenizer, texts), strict=True):
            self.check_embedded(text, ids)
            yield ids, offsets

    def _before(self, policy: PolicyConfig) -> list[int]:
        """Return the tokens before a sentence: the context, then the begin symbol."""
        match policy.context:
            case "eos":
                return [self.begin] * (policy.context_tokens + 1)
            case "text":
                [(ids, _)] = encoded(self.tokenizer, [policy.context_text or ""])
                return [self.begin, *ids, self.begin]
            case _:
                return [self.begin]

    def _logprobs(
        self, texts: list[Ids], first: list[int], policy: PolicyConfig, chat: bool = False
    ) -> list[FloatArray]:
        """A text begins after the begin symbol, one of a chat template as the template says."""
        if not chat:
            before = self._before(policy)
            self._check_lengths(before, texts)
            return self._after(before, texts, first, policy)
        if policy.context != "none":
            raise ConfigError(f"policy.context={policy.context}: a chat template says itself what a prompt begins with")
        # The first token, BOS or the mark of a message, is read and not scored; it is one for all prompts.
        self._check_lengths([0], [ids[1:] for ids in texts])
        results = [np.empty(0)] * len(texts)
        for begin in dict.fromkeys(int(ids[0]) for ids in texts):
            of = [i for i, ids in enumerate(texts) if ids[0] == begin]
            values = self._after([begin], [texts[i][1:] for i in of], [first[i] - 1 for i in of], policy)
            for i, value in zip(of, values, strict=True):
                results[i] = value
        return results

    def _check_lengths(self, before: list[int], texts: Sequence[Ids]) -> None:
        """Raise TextTooLong for the first text that does not fit behind the tokens before it."""
        for index, ids in enumerate(texts):
            if self.positions is not None and (tokens := len(before) + len(ids) - 1) > self.positions:
                raise TextTooLong(self.name, self.positions, str(self.tokenizer.decode(ids)), tokens, index)

    def _after(self, before: list[int], texts: list[Ids], first: list[int], policy: PolicyConfig) -> list[FloatArray]:
        """Return ln p of the tokens of each text from its `first` on, after `before` and the tokens before them."""
        whole = [np.concatenate([before, ids]).astype(np.int64) for ids in texts]
        longest = max(map(len, whole), default=0)
        self.check_repeatable(longest - 1)
        # A mask of ancestors takes the place of a model's own, which may be a window narrower than a long text.
        in_trees = self.reads_trees and longest <= min(TREE_TOKENS, self.window or TREE_TOKENS)
        capacity = min(TREE_TOKENS, self.batch_tokens) if in_trees else 0
        batches = forests(whole, np.asarray(first, dtype=np.int64) + len(before), capacity, self.batch_tokens)
        title = "scoring" if in_trees else "scoring, each text alone"
        results = [np.empty(0)] * len(texts)
        with without_gradients(self.device, policy.precision == "bf16"):
            for forest in self.with_progress(batches, len(whole), title=title):
                for text, values in forest.results(self._read(forest, in_trees)):
                    results[text] = values
        return results

    def _read(self, forest: Forest, in_trees: bool) -> FloatArray:
        """Return ln p (C,) of the forest's targets."""
        if not len(forest.targets):
            return np.empty(0)
        tokens, parents, depths, rows, targets = forest.tensors(self.device)
        order = self._tree_order(parents, depths) if in_trees else {}
        after, rows = torch.unique_consecutive(rows, return_inverse=True)
        with forward_errors(self.name, tokens.shape[1]):
            if self.head is None:
                logits = self._logits(tokens, **order).flatten(0, 1)[after]
                values = logits.log_softmax(-1)[rows, targets]
            else:
                hidden = self._hidden(tokens, **order).flatten(0, 1)
                values = token_logprobs(hidden[after], *self.head, targets, rows)
        nats: FloatArray = values.double().cpu().numpy()
        return nats

    def _boundaries(self) -> Tensor | None:
        if self.word_level:
            return None
        known = min(len(self.tokenizer), self.vocabulary)
        special = [index for index in self.tokenizer.all_special_ids if index < known]
        masks = torch.zeros(self.vocabulary, 2)
        masks[:known] = boundaries([*hub_beginnings(self.tokenizer, known)], special, known)
        return masks

    def _reader(self, policy: PolicyConfig) -> Read:
        def read(texts: list[Ids], positions: list[list[int]]) -> Tensor:
            tokens = torch.from_numpy(np.stack(texts)).to(self.device)
            self.check_repeatable(tokens.shape[1])
            return self.logprobs_at(tokens, *indices(positions))

        return read

    def _next_tokens(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[NextTokens, Readings]:
        texts = encoded(self.tokenizer, [f"{context} {word}" for context, word in questions])
        return self._hub_tokens(
            self._reader(policy), left_to_right(questions, texts, self._before(policy), self._unknown)
        )

    def _pass(self, tokens: int) -> Tensor:
        text = torch.from_numpy(self._random_tokens(1, tokens)).to(self.device)
        return self.logprobs_at(text, torch.tensor([0]), torch.tensor([tokens - 1]))

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
                return self._logits(tokens, **order).log_softmax(-1)
            # In float32: logits of -100, as GPT-2's are, have steps of half a nat in bfloat16.
            weight, bias = (part.float() for part in self.head)
            return (self._hidden(tokens, **order).float() @ weight.T + bias).log_softmax(-1)

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
            logits = self._logits(torch.from_numpy(ids).to(self.device)).log_softmax(-1)
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
        atol = min(tolerance(self.model.dtype), max(1e-5, part * effect))
        return torch.allclose(one, other, rtol=1e-6, atol=atol)


def _distance(one: Tensor, other: Tensor) -> float:
    """Return the largest difference of finite log-probabilities, in nats."""
    return float((one - other).nan_to_num(0, 0, 0).abs().max())
