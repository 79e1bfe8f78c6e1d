"""One interface over every kind of model: sentences in, a log-probability and a character span for each token out.

What stands before a sentence, whether its end is scored, and how precisely, is the policy's to say
(eval.config.PolicyConfig): a scorer applies `context`, `score_eos` and `precision`, and flags `<unk>`. Whether those
tokens count (`unk`) is decided where scores become judgements (eval/methods.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from corpora.errors import RunError
from corpora.progress import track
from corpora.schema import checked
from corpora.tokenizers import EOS, UNK, Tokenizer
from eval.config import PLAIN, PolicyConfig, PretrainedConfig
from eval.continuations import ModelAnswering
from eval.trees import Forest, Ids, forests
from train.device import without_gradients
from train.export import LoadedModel, load_model
from train.models import LanguageModel, State
from train.runs import AGAIN, RunFolder

Batch = TypeVar("Batch", bound=Sized)  # of as many units as it holds
CPU_TOKENS = 2048  # more leave a CPU's cache between one layer's passes and the next


@dataclass(frozen=True, slots=True)
class TokenScores:
    """What a model says of one sentence, token by token."""

    logprobs: npt.NDArray[np.float64]  # (n,) nats
    spans: npt.NDArray[np.int32]  # (n, 2) character offsets into the sentence; both its length for a scored <eos>
    unk: npt.NDArray[np.bool_]  # (n,)


class Scorer(Protocol):
    """A model that scores sentences, each alone."""

    name: str
    digest: str  # of the weights
    tokenizer_digest: str
    settings: dict[str, Any]  # what else scores depend on (eval.hf_tokenizers.score_settings); {} for our own models
    sample_words: int | None  # of the text that it was trained on, where known
    word_level: bool  # the default of policy.score_eos
    masked: bool  # scores are of tokens that are hidden, not of tokens after those before them

    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Scores in the order of `sentences`; one without a token that is scored gets empty arrays."""


def resolved_score_eos(policy: PolicyConfig, word_level: bool) -> bool:
    """Whether `<eos>` is scored: as the policy says, else for word-level models only, as published."""
    return word_level if policy.score_eos is None else policy.score_eos


def resolved_pll_shift(policy: PolicyConfig, scorer: Scorer) -> int | None:
    """How many positions before a hidden token it is read: as the policy says, else by the masked model's own probe."""
    return policy.pll_shift if policy.pll_shift is not None else getattr(scorer, "shift", None)


class ModelScorer(ModelAnswering):
    """Our own language models. A sentence begins after `<eos>`, as in training, where that ended the one before."""

    masked = False

    def __init__(self, loaded: LoadedModel, name: str, batch_tokens: int, device: str = "cpu", progress: bool = False):
        """`batch_tokens`: most tokens, padding included, that are read at a time; it changes no score."""
        self.name = name
        self.digest = loaded.digest
        self.tokenizer_digest = loaded.tokenizer_digest
        self.settings: dict[str, Any] = {}
        self.sample_words = loaded.info.get("sample_words")
        self.tokenizer: Tokenizer = loaded.tokenizer
        self.word_level = self.tokenizer.word_level
        self.model: LanguageModel = loaded.model.to(device).eval()
        self.batch_tokens = batch_tokens
        self.device = torch.device(device)
        self.progress = progress

    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Each different string of tokens is read once, with others of about its length.

        So two sentences that are the same to the model, as <unk> can make them, have equal scores: they tie.
        """
        eos = resolved_score_eos(policy, self.word_level)
        targets: dict[bytes, Ids] = {}
        spans: dict[str, tuple[bytes, npt.NDArray[np.int32]]] = {}
        for sentence in dict.fromkeys(sentences):
            ids, offsets = self.tokenizer.encode_raw(sentence)
            if eos:
                ids, offsets = [*ids, EOS], [*offsets, (len(sentence), len(sentence))]
            tokens = np.asarray(ids, dtype=np.int64)
            targets[tokens.tobytes()] = tokens
            spans[sentence] = tokens.tobytes(), np.asarray(offsets, dtype=np.int32).reshape(-1, 2)
        logprobs = dict(zip(targets, self._logprobs(list(targets.values()), policy), strict=True))
        found = {
            sentence: TokenScores(logprobs[key], offsets, targets[key] == UNK)
            for sentence, (key, offsets) in spans.items()
        }
        return [found[sentence] for sentence in sentences]

    def _logprobs(
        self, targets: list[Ids], policy: PolicyConfig, first: Sequence[int] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """ln p of the tokens of each text, from its `first` one on, after the begin symbol and those before it."""
        texts = [np.concatenate([[EOS], ids]) for ids in targets]
        capacity = min(self.model.tree_tokens or self.batch_tokens, self.batch_tokens)
        batches = forests(texts, begun(first, len(texts), 1), capacity, self.batch_tokens)
        results = [np.empty(0)] * len(texts)
        bf16 = policy.precision == "bf16"
        with without_gradients(self.device, bf16):
            context = self._context_state(policy)
            for forest in tracked(batches, len(texts), self.name, self.progress):
                for text, values in forest.results(self._read(forest, context)):
                    results[text] = values
        return results

    def _context_state(self, policy: PolicyConfig) -> State:
        """State of one text before a sentence's begin symbol: after the context, or before everything."""
        state = self.model.initial_state(1)
        match policy.context:
            case "eos":
                before = [EOS] * policy.context_tokens
            case "text":
                before = [EOS, *self.tokenizer.encode_raw(policy.context_text or "")[0]]
            case _:
                before = []
        if before:
            _, state = self.model(torch.tensor([before], device=self.device), state)
        return state

    def _read(self, forest: Forest, context: State) -> npt.NDArray[np.float64]:
        """(C,) ln p of all tokens that are asked for."""
        if not len(forest.targets):
            return np.empty(0)
        tokens, parents, depths, rows, targets = forest.tensors(self.device)
        hidden = self.model.read_trees(tokens, parents, depths, context).flatten(0, 1)  # (B*T, D)
        # The softmax is most of the work: it is computed once where several tokens follow, and nowhere else.
        after, rows = torch.unique_consecutive(rows, return_inverse=True)
        return self.model.logprobs(hidden[after], targets, rows).double().cpu().numpy()


def load_scorer(
    model: str | Path | RunFolder, batch_tokens: int = 8192, device: str = "cpu", progress: bool = False
) -> Scorer:
    """The scorer of a run folder, or of a Hugging Face causal model by hub name or local folder.

    `batch_tokens`: most tokens that are read at a time. Raises RunError for a run without a model or with a damaged
    one, and what eval.pretrained.load_pretrained raises.
    """
    from eval.pretrained import load_pretrained  # here, because it builds on what is above

    run = model if isinstance(model, RunFolder) else RunFolder(Path(model))
    if not isinstance(model, RunFolder) and not run.config.is_file():
        config = PretrainedConfig(name="hf_causal", kind="causal", path=str(model), dtype="fp32")
        return load_pretrained(config, batch_tokens, device, progress)
    described = run.read_model_config()
    if "path" in described:
        _check_harmless(run, described)
        pretrained = checked(described, PretrainedConfig, run.config, RunError, AGAIN, root="$.model")
        return load_pretrained(pretrained, batch_tokens, device, progress)
    if "order" in described:
        from eval.ngram import NgramScorer
        from train.ngram import load_ngram

        return NgramScorer(load_ngram(run), run.path.name, progress)
    return ModelScorer(load_model(run), run.path.name, batch_tokens, device, progress)


def _check_harmless(run: RunFolder, described: dict[str, Any]) -> None:
    """Raise RunError where a run folder, which may be someone else's, asks for code of theirs to be run."""
    asked = [f"model.{key}=true" for key in ("trust_remote_code", "allow_pickle") if described.get(key)]
    if asked:
        model = [f"model={described['name']}", f"model.path={described['path']}", *asked]
        raise RunError(
            f"{run.config}: {' and '.join(asked)} would run code that comes with the model, which only a command may "
            f"ask for: python -m eval study={run.path.parent.name} {' '.join(model)}"
        )


def length_batches(lengths: Ids, batch_tokens: int, before: int = 0) -> Iterator[list[int]]:
    """Indices of sentences that have a token, by falling length: padding is small, the largest batch comes first.

    `before`: tokens that are read before each sentence.
    """
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    start = 0
    while start < len(order):
        count = max(1, batch_tokens // (before + int(lengths[order[start]])))
        yield order[start : start + count].tolist()
        start += count


def tokens_at_once(batch_tokens: int, device: torch.device) -> int:
    """`batch_tokens`, or on a CPU what one batch of a model as large as GPT-2 may have so that its cache holds it."""
    return min(batch_tokens, CPU_TOKENS) if device.type == "cpu" else batch_tokens


def begun(first: Sequence[int] | None, texts: int, before: int) -> Ids:
    """(N,) place of the first token that is asked for, where `before` tokens stand before each text."""
    return np.full(texts, before) if first is None else np.asarray(first, dtype=np.int64) + before


def tracked(
    batches: Iterable[Batch], total: int, name: str, progress: bool, unit: str = "sentences"
) -> Iterable[Batch]:
    """The batches, with progress in what they hold of the `total` where it is asked for."""
    if not progress:
        return batches
    counted = ((len(batch), batch) for batch in batches)
    return track(counted, f"scoring {name}", total, unit)


def weights_digest(model: nn.Module) -> str:
    """SHA-256 over names, types and values of all weights, whatever files they came from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def check_finite(model: nn.Module, name: str) -> None:
    """Raise RunError for weights that are infinite or no numbers: no score of theirs means anything."""
    for parameter, weight in model.named_parameters():
        if weight.is_floating_point() and not bool(weight.isfinite().all()):
            raise RunError(f"{name}: its weights hold infinity or NaN (in {parameter}); they are damaged")
