"""Scorers of Hugging Face models: causal ones (GPT-2, Pythia, OLMo) and masked ones (BERT, RoBERTa).

Weights are read from safetensors and code from the transformers package only, unless the configuration allows more.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from corpora.errors import ConfigError, InputError
from corpora.hub import import_transformers
from eval.config import PolicyConfig, PretrainedConfig
from eval.continuations import CausalAnswering
from eval.scorers import Ids, Scorer, TokenScores, length_batches, resolved_score_eos, tracked
from train.loss import token_logprobs

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
PROBE_TOLERANCE = 1e-4  # nats: between a model's own log-probabilities and those made of its hidden states


class CausalScorer(CausalAnswering):
    """A causal model. Sentences begin after its BOS, else its EOS, else `model.begin`, so the first word counts."""

    masked = False
    word_level = False

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

        Raises ConfigError for a tokenizer without a begin symbol or without character offsets.
        """
        _check_fast(tokenizer, name)
        self.name = name
        self.digest = weights_digest(model)
        self.tokenizer_digest = _tokenizer_digest(tokenizer)
        self.sample_words: int | None = None
        self.model = model.to(device).eval()  # type: ignore[arg-type]
        self.tokenizer = tokenizer
        self.begin = _begin_symbol(tokenizer, begin, name)
        self.batch_tokens = batch_tokens
        self.device = torch.device(device)
        self.progress = progress
        self.positions = getattr(model.config, "max_position_embeddings", None)
        self.head = _plain_head(self.model, self.begin)

    def score(self, sentences: Sequence[str], policy: PolicyConfig) -> list[TokenScores]:
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
            tokens = np.asarray([*ids, *end], dtype=np.int64)
            spans = [*offsets, *([(len(sentence), len(sentence))] if end else [])]
            targets[tokens.tobytes()] = tokens
            found[sentence] = tokens.tobytes(), np.asarray(spans, dtype=np.int32).reshape(-1, 2)
        before = self._before(policy)
        self._check_lengths(before, targets.values())
        logprobs = dict(zip(targets, self._logprobs(before, list(targets.values()), policy), strict=True))
        unk = self.tokenizer.unk_token_id
        return [
            TokenScores(logprobs[key], spans, targets[key] == (-1 if unk is None else unk))
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

    def _check_lengths(self, before: list[int], targets: Any) -> None:
        longest = len(before) + max((len(ids) for ids in targets), default=0) - 1
        if self.positions is not None and longest > self.positions:
            raise InputError(f"{self.name} reads {self.positions} tokens at most; the longest text has {longest}")

    def _logprobs(
        self, before: list[int], targets: list[Ids], policy: PolicyConfig, first: Sequence[int] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """ln p of each token of each sentence after `before` and the tokens before it; from `first` on."""
        results = [np.empty(0)] * len(targets)
        lengths = np.asarray([len(ids) for ids in targets])
        batches = list(length_batches(lengths, self.batch_tokens, len(before)))
        bf16 = policy.precision == "bf16"
        with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            for batch in tracked(batches, self.name, self.progress):
                values = self._read(before, [targets[i] for i in batch])
                for i, part in zip(batch, np.split(values, np.cumsum(lengths[batch])[:-1]), strict=True):
                    results[i] = part if first is None else part[first[i] :]
        return results

    def _read(self, before: list[int], targets: list[Ids]) -> npt.NDArray[np.float64]:
        """ln p of all tokens of a batch, end to end. Padding stands after a sentence, where a causal model is blind."""
        lengths = torch.tensor([len(ids) for ids in targets])
        width = int(lengths.max())
        padded = np.full((len(targets), width), self.begin)
        for row, ids in enumerate(targets):
            padded[row, : len(ids)] = ids
        tokens = torch.from_numpy(padded).to(self.device)  # (B, T)
        start = torch.tensor(before, device=self.device).expand(len(targets), -1)
        read = torch.cat([start, tokens[:, :-1]], dim=1)
        real = (torch.arange(width) < lengths[:, None]).to(self.device)
        if self.head is None:
            logits = self.model(input_ids=read, use_cache=False).logits[:, len(before) - 1 :][real]
            logprobs = logits.float().log_softmax(-1)
            values = logprobs.gather(1, tokens[real][:, None]).squeeze(1)
        else:
            hidden = self.model.base_model(input_ids=read, use_cache=False)[0][:, len(before) - 1 :]
            values = token_logprobs(hidden[real], *self.head, tokens[real])
        nats: npt.NDArray[np.float64] = values.double().cpu().numpy()
        return nats


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
        """Raises ConfigError for a tokenizer without a mask or without character offsets."""
        _check_fast(tokenizer, name)
        if tokenizer.mask_token_id is None:
            raise ConfigError(f"{name}: its tokenizer has no mask token; a causal model is model=hf_causal")
        self.name = name
        self.digest = weights_digest(model)
        self.tokenizer_digest = _tokenizer_digest(tokenizer)
        self.sample_words: int | None = None
        self.model = model.to(device).eval()  # type: ignore[arg-type]
        self.tokenizer = tokenizer
        self.batch_tokens = batch_tokens
        self.device = torch.device(device)
        self.progress = progress
        self._at = torch.empty(0, dtype=torch.int64)  # (B,) the position of each text that is asked for
        # Logits are needed at one position of each text: the others are left out just before the softmax weights.
        model.get_output_embeddings().register_forward_pre_hook(self._select)  # type: ignore[no-untyped-call]

    def score(self, sentences: Sequence[str], policy: PolicyConfig) -> list[TokenScores]:
        """Scores in the order of `sentences`; each different sentence is read once, in a copy for each token."""
        if policy.context != "none":
            raise ConfigError(f"policy.context={policy.context}: a masked model is scored on the sentence alone")
        if policy.score_eos:
            raise ConfigError("policy.score_eos=true: a masked model predicts no end of a sentence")
        different = list(dict.fromkeys(sentences))
        texts = [_Hidden.of(self.tokenizer, sentence, policy.pll or "within_word_l2r") for sentence in different]
        limit = getattr(self.model.config, "max_position_embeddings", None)
        longest = max((len(text.ids) for text in texts), default=0)
        if limit is not None and longest > limit:
            raise InputError(f"{self.name} reads {limit} tokens at most; the longest text has {longest}")
        found = dict(zip(different, self._logprobs(texts, policy), strict=True))
        return [found[sentence] for sentence in sentences]

    def _logprobs(self, texts: list[_Hidden], policy: PolicyConfig) -> list[TokenScores]:
        owner = np.repeat(np.arange(len(texts)), [len(text.scored) for text in texts])  # of each copy
        place = np.concatenate([np.empty(0, np.int64), *(np.arange(len(text.scored)) for text in texts)])
        logprobs = np.empty(len(owner))
        batches = list(length_batches(np.asarray([len(texts[i].ids) for i in owner]), self.batch_tokens))
        bf16 = policy.precision == "bf16"
        with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            for batch in tracked(batches, self.name, self.progress, "masked copies"):
                logprobs[batch] = self._read([texts[owner[i]].copy(place[i], self.tokenizer) for i in batch])
        unk = self.tokenizer.unk_token_id
        parts = np.split(logprobs, np.cumsum([len(text.scored) for text in texts])[:-1])
        return [
            TokenScores(part, text.spans, text.ids[text.scored] == (-1 if unk is None else unk))
            for part, text in zip(parts, texts, strict=True)
        ]

    def _read(self, copies: list[tuple[Ids, int, int]]) -> npt.NDArray[np.float64]:
        """ln p of the hidden token of each copy (tokens, its position, what it is)."""
        lengths = torch.tensor([len(ids) for ids, _, _ in copies])
        pad = self.tokenizer.pad_token_id
        padded = np.full((len(copies), int(lengths.max())), 0 if pad is None else pad)
        for row, (ids, _, _) in enumerate(copies):
            padded[row, : len(ids)] = ids
        real = torch.arange(padded.shape[1]) < lengths[:, None]
        self._at = torch.tensor([position for _, position, _ in copies], device=self.device)
        logits = self.model(
            input_ids=torch.from_numpy(padded).to(self.device), attention_mask=real.long().to(self.device)
        ).logits[:, 0]
        targets = torch.tensor([target for _, _, target in copies], device=self.device)
        values = logits.float().log_softmax(-1).gather(1, targets[:, None]).squeeze(1)
        nats: npt.NDArray[np.float64] = values.double().cpu().numpy()
        return nats

    def _select(self, head: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """(B, T, D) to (B, 1, D)."""
        hidden, *others = arguments
        return hidden[torch.arange(len(hidden), device=hidden.device), self._at][:, None], *others


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
            ends = {word: position + 1 for position, word in enumerate(words)}  # the last one of a word stays
            until = np.asarray([ends[words[position]] for position in scored], dtype=np.int64)
        spans = np.asarray(found["offset_mapping"], dtype=np.int32).reshape(-1, 2)[scored]
        return cls(np.asarray(found["input_ids"], dtype=np.int64), scored, spans, until)

    def copy(self, place: int, tokenizer: PreTrainedTokenizerFast) -> tuple[Ids, int, int]:
        """The tokens with the `place`-th scored one hidden, its position, and what it is."""
        position = int(self.scored[place])
        ids = self.ids.copy()
        ids[position : self.until[place]] = tokenizer.mask_token_id
        return ids, position, int(self.ids[position])


def encoded(
    tokenizer: PreTrainedTokenizerFast, sentences: list[str]
) -> Iterator[tuple[str, tuple[list[int], list[tuple[int, int]]]]]:
    """Ids and character offsets of each sentence, without any symbol that the tokenizer would add."""
    if not sentences:
        return
    found = tokenizer(sentences, add_special_tokens=False, return_offsets_mapping=True, return_attention_mask=False)
    yield from zip(sentences, zip(found["input_ids"], found["offset_mapping"], strict=True), strict=True)


def _check_fast(tokenizer: PreTrainedTokenizerFast, name: str) -> None:
    if not tokenizer.is_fast:
        raise ConfigError(f"{name}: its tokenizer gives no character offsets (it has no tokenizer.json)")


def _tokenizer_digest(tokenizer: PreTrainedTokenizerFast) -> str:
    return hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()


def _begin_symbol(tokenizer: PreTrainedTokenizerFast, begin: str | None, name: str) -> int:
    if begin is not None:
        if begin not in (vocabulary := tokenizer.get_vocab()):
            raise ConfigError(f"model.begin={begin}: no token of {name}")
        return int(vocabulary[begin])
    for index in (tokenizer.bos_token_id, tokenizer.eos_token_id):
        if index is not None:
            return int(index)
    raise ConfigError(f"{name}: its tokenizer names neither BOS nor EOS; give model.begin=TOKEN to stand for one")


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
        asked = model(input_ids=probe, use_cache=False).logits.float().log_softmax(-1)
        hidden = model.base_model(input_ids=probe, use_cache=False)[0]
        made = (hidden @ head.weight.T + bias).float().log_softmax(-1)
    return (head.weight, bias) if torch.allclose(asked, made, rtol=0, atol=PROBE_TOLERANCE) else None


def load_pretrained(config: PretrainedConfig, batch_tokens: int, device: str = "cpu", progress: bool = False) -> Scorer:
    """The scorer of a Hugging Face model.

    Raises InputError for a model that is not there, cannot be had without a network, or has its weights only as a
    pickle; ConfigError for one of the other kind and for options that this machine cannot follow.
    """
    if config.load_in_4bit and not torch.cuda.is_available():
        raise ConfigError("model.load_in_4bit=true: needs an NVIDIA GPU with CUDA, and there is none here")
    transformers = import_transformers()
    path = _local(config.path) or config.path
    options: dict[str, Any] = {"revision": config.revision or "main", "trust_remote_code": config.trust_remote_code}
    try:
        described = transformers.AutoConfig.from_pretrained(path, **options)
        _check_kind(config, described)
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, **options)
        if config.load_in_4bit:
            options["quantization_config"] = transformers.BitsAndBytesConfig(load_in_4bit=True)
        auto = transformers.AutoModelForCausalLM if config.kind == "causal" else transformers.AutoModelForMaskedLM
        model, loading = auto.from_pretrained(
            path,
            output_loading_info=True,
            dtype=DTYPES[config.dtype],
            use_safetensors=None if config.allow_pickle else True,
            **options,
        )
    except (OSError, ValueError, ImportError) as error:
        raise InputError(_why_not(config, path, error)) from None
    lacking = sorted(loading["missing_keys"])
    if lacking:  # they would be drawn at random, and the scores mean nothing
        raise InputError(
            f"model.path={config.path}: its weights lack {', '.join(lacking[:3])}"
            f"{f' and {len(lacking) - 3} more' if len(lacking) > 3 else ''}, which a {config.kind} model needs"
        )
    name = Path(config.path).name
    if config.kind == "masked":
        return MaskedScorer(model, tokenizer, name, batch_tokens, device, progress)
    return CausalScorer(model, tokenizer, name, batch_tokens, config.begin, device, progress)


def _local(path: str) -> str | None:
    """The folder that `path` names, or None where it is a name on the hub. Raises InputError for a missing folder."""
    folder = Path(path).expanduser()
    if folder.is_dir():
        return str(folder)
    if folder.is_absolute() or path.startswith((".", "~")) or path.count("/") > 1:  # the hub has owner/name
        raise InputError(f"model.path={path}: no such folder")
    return None


def _check_kind(config: PretrainedConfig, described: Any) -> None:
    """A masked model can be loaded as a causal one, and then says nonsense without a word."""
    architectures = described.architectures or []
    masked = any("ForMaskedLM" in name or "ForPreTraining" in name for name in architectures)
    if config.kind == "causal" and masked and not getattr(described, "is_decoder", False):
        raise ConfigError(f"model.path={config.path}: a masked model ({architectures[0]}); give model=hf_masked")
    if config.kind == "masked" and any("ForCausalLM" in name or "LMHeadModel" in name for name in architectures):
        raise ConfigError(f"model.path={config.path}: a causal model ({architectures[0]}); give model=hf_causal")


def _why_not(config: PretrainedConfig, path: str, error: Exception) -> str:
    """One line on why a model could not be loaded."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    folder = Path(path)
    if folder.is_dir():
        pickles = [file.name for pattern in ("*.bin", "*.pt", "*.pth") for file in folder.glob(pattern)]
        if pickles and not list(folder.glob("*.safetensors")):
            return (
                f"model.path={config.path}: its weights are only there as a pickle ({pickles[0]}), which can run code; "
                "model.allow_pickle=true reads it all the same"
            )
        return f"model.path={config.path}: cannot be loaded ({said})"
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        return (
            f"model.path={config.path}: not in the cache of the Hugging Face hub, and there is no network; "
            "for a local copy give model.path=FOLDER"
        )
    return f"model.path={config.path}: cannot be had from the Hugging Face hub ({said})"


def weights_digest(model: nn.Module) -> str:
    """SHA-256 over names, types and values of all weights, whatever files they came from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
