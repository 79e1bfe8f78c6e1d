"""One interface over every kind of model: sentences in, a log-probability and a character span for each token out.

What stands before a sentence, whether its end is scored, and how precisely, is the policy's to say
(eval.config.PolicyConfig): a scorer applies `context`, `score_eos` and `precision`, and flags `<unk>`. Whether those
tokens count (`unk`) is decided where scores become judgements (eval/methods.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
import yaml
from torch import Tensor

from corpora.progress import track
from corpora.tokenizers import EOS, UNK, Tokenizer
from eval.config import PolicyConfig, PretrainedConfig
from train.export import LoadedModel, load_model
from train.models import LanguageModel, State
from train.runs import RunFolder

Ids = npt.NDArray[np.int64]


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
    sample_words: int | None  # of the text that it was trained on, where known
    word_level: bool  # the default of policy.score_eos
    masked: bool  # scores are of tokens that are hidden, not of tokens after those before them

    def score(self, sentences: Sequence[str], policy: PolicyConfig) -> list[TokenScores]:
        """Scores in the order of `sentences`; one without a token that is scored gets empty arrays."""


def resolved_score_eos(policy: PolicyConfig, word_level: bool) -> bool:
    """Whether `<eos>` is scored: as the policy says, else for word-level models only, as published."""
    return word_level if policy.score_eos is None else policy.score_eos


class ModelScorer:
    """Our own language models. A sentence begins after `<eos>`, as in training, where that ended the one before."""

    masked = False

    def __init__(self, loaded: LoadedModel, name: str, batch_tokens: int, device: str = "cpu", progress: bool = False):
        """`batch_tokens`: most tokens, padding included, that are read at a time; it changes no score."""
        self.name = name
        self.digest = loaded.digest
        self.tokenizer_digest = loaded.tokenizer_digest
        self.sample_words = loaded.info.get("sample_words")
        self.tokenizer: Tokenizer = loaded.tokenizer
        self.word_level = self.tokenizer.word_level
        self.model: LanguageModel = loaded.model.to(device).eval()
        self.batch_tokens = batch_tokens
        self.device = torch.device(device)
        self.progress = progress

    def score(self, sentences: Sequence[str], policy: PolicyConfig) -> list[TokenScores]:
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

    def _logprobs(self, targets: list[Ids], policy: PolicyConfig) -> list[npt.NDArray[np.float64]]:
        """ln p of each token of each sentence after the begin symbol and the tokens before it."""
        results = [np.empty(0)] * len(targets)
        batches = list(length_batches(np.asarray([len(ids) for ids in targets]), self.batch_tokens))
        bf16 = policy.precision == "bf16"
        with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            context = self._context_state(policy)
            for batch in tracked(batches, self.name, self.progress):
                values = self._read([targets[i] for i in batch], context)
                ends = np.cumsum([len(targets[i]) for i in batch])[:-1]
                for i, part in zip(batch, np.split(values, ends), strict=True):
                    results[i] = part
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

    def _read(self, targets: list[Ids], context: State) -> npt.NDArray[np.float64]:
        """ln p of all tokens of a batch, end to end."""
        lengths = [len(ids) for ids in targets]
        padded = np.full((len(targets), max(lengths)), EOS)  # (B, T); what stands after a sentence does not touch it
        for row, ids in enumerate(targets):
            padded[row, : len(ids)] = ids
        tokens = torch.from_numpy(padded).to(self.device)
        begin = tokens.new_full((len(targets), 1), EOS)
        state = _expanded(context, self.model, len(targets))
        hidden, _ = self.model(torch.cat([begin, tokens[:, :-1]], dim=1), state)  # (B, T, D)
        real = torch.arange(max(lengths), device=self.device) < torch.tensor(lengths, device=self.device)[:, None]
        # The softmax is most of the work: padding stays out of it.
        values = self.model.logprobs(hidden[real], tokens[real])
        return values.double().cpu().numpy()


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
    described = yaml.safe_load(run.config.read_text(encoding="utf-8"))["model"]
    if "path" in described:
        return load_pretrained(PretrainedConfig(**described), batch_tokens, device, progress)
    if "order" in described:
        from eval.ngram import NgramScorer
        from train.ngram import load_ngram

        return NgramScorer(load_ngram(run), run.path.name, progress)
    return ModelScorer(load_model(run), run.path.name, batch_tokens, device, progress)


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


def tracked(batches: list[list[int]], name: str, progress: bool, unit: str = "sentences") -> Iterable[list[int]]:
    """The batches, with progress in what they count where it is asked for."""
    if not progress:
        return batches
    counted = ((len(batch), batch) for batch in batches)
    return track(counted, f"scoring {name}", sum(map(len, batches)), unit)


def _expanded(state: State, model: LanguageModel, batch: int) -> State:
    """The state of one text for `batch` texts; which dimension is the batch's is read off the model's own states."""

    def repeated(tensor: Tensor, one: Tensor, two: Tensor) -> Tensor:
        wider = [dim for dim in range(one.dim()) if one.shape[dim] != two.shape[dim]]
        return tensor.repeat_interleave(batch, dim=wider[0]) if wider else tensor

    return tuple(map(repeated, state, model.initial_state(1), model.initial_state(2)))
