"""Scorers of Hugging Face models: causal ones (GPT-2, Pythia, OLMo) and masked ones (BERT, RoBERTa).

Weights are read from safetensors and code from the transformers package only, unless the configuration allows more.
"""

from __future__ import annotations

import dataclasses
import fnmatch
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
from eval.scorers import Scorer, TokenScores, begun, length_batches, resolved_score_eos, tracked
from eval.trees import Forest, Ids, forests
from train.loss import token_logprobs
from train.models import ancestors

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# Nats between two ways to the same log-probabilities, by the precision of the weights; a wrong way is far off.
PROBE_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}
TREE_TOKENS = 256  # of a tree, whose attention is over all its tokens: more cost more than they save
LOGIT_BYTES = 1 << 30  # of the logits that are held at a time where the model makes them itself


class CausalScorer:
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
        self.reads_trees = _reads_trees(self.model, self.begin)

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
        """ln p of the tokens of each text, from its `first` one on, after `before` and the tokens before them."""
        texts = [np.concatenate([before, ids]).astype(np.int64) for ids in targets]
        batch_tokens = self.batch_tokens
        if self.head is None:  # then all logits of a batch are held
            batch_tokens = min(batch_tokens, max(1, LOGIT_BYTES // (4 * len(self.tokenizer))))
        capacity = min(TREE_TOKENS, batch_tokens) if self._trees_fit(texts) else 0
        batches = forests(texts, begun(first, len(texts), len(before)), capacity, batch_tokens)
        results = [np.empty(0)] * len(targets)
        bf16 = policy.precision == "bf16"
        with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            for forest in tracked(batches, len(texts), self.name, self.progress):
                for text, values in forest.results(self._read(forest, shared=capacity > 0)):
                    results[text] = values
        return results

    def _trees_fit(self, texts: list[Ids]) -> bool:
        """A mask of ancestors takes the place of a model's own, which may be a window narrower than a long text."""
        window = getattr(self.model.config, "sliding_window", None)
        longest = max((len(text) for text in texts), default=0)
        return self.reads_trees and (window is None or longest <= window)

    def _read(self, forest: Forest, shared: bool) -> npt.NDArray[np.float64]:
        """(C,) ln p of all tokens that are asked for."""
        tokens, parents, depths, rows, targets = forest.tensors(self.device)
        given = _as_trees(parents, depths, self.model.dtype) if shared else {}
        after, rows = torch.unique_consecutive(rows, return_inverse=True)
        if self.head is None:
            logits = self.model(input_ids=tokens, use_cache=False, **given).logits.flatten(0, 1)[after]
            values = logits.float().log_softmax(-1)[rows, targets]
        else:
            hidden = self.model.base_model(input_ids=tokens, use_cache=False, **given)[0].flatten(0, 1)
            values = token_logprobs(hidden[after], *self.head, targets, rows)
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
            for batch in tracked(batches, len(owner), self.name, self.progress, "masked copies"):
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
    return (head.weight, bias) if _same(asked, made, model) else None


def _as_trees(parents: Tensor, depths: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
    """What makes a model read each token (B, T) after its ancestors alone."""
    seen = ancestors(parents)[:, None]  # (B, 1, T, T)
    mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, torch.finfo(dtype).min)
    return {"attention_mask": mask, "position_ids": depths}


def _reads_trees(model: PreTrainedModel, token: int) -> bool:
    """Whether the model follows a mask and positions that are given: some take their own from the order of tokens."""
    others = [index for index in range(4) if index != token][:2]
    texts = [np.asarray([token, index, token, token]) for index in others]
    (forest,) = forests(texts, np.asarray([1, 1]), 16, 16)
    tokens, parents, depths, _, _ = forest.tensors(model.device)
    with torch.inference_mode():
        try:
            given = _as_trees(parents, depths, model.dtype)
            tree = model(input_ids=tokens, use_cache=False, **given).logits[0].float().log_softmax(-1)
        except (TypeError, ValueError, RuntimeError, IndexError):
            return False  # of its signature or of the mask's shape
        read = torch.from_numpy(np.stack(texts)[:, :-1]).to(model.device)
        plain = model(input_ids=read, use_cache=False).logits.float().log_softmax(-1)  # (2, 3, V)
    return _same(torch.cat([plain[0], plain[1, 1:]]), tree, model)


def _same(one: Tensor, other: Tensor, model: PreTrainedModel) -> bool:
    return torch.allclose(one, other, rtol=0, atol=PROBE_TOLERANCE.get(model.dtype, 0.1))


def load_pretrained(config: PretrainedConfig, batch_tokens: int, device: str = "cpu", progress: bool = False) -> Scorer:
    """The scorer of a Hugging Face model.

    Raises InputError for a model that is not there, cannot be had without a network, or has its weights only as a
    pickle; ConfigError for one of the other kind and for options that this machine cannot follow.
    """
    if config.load_in_4bit and not torch.cuda.is_available():
        raise ConfigError("model.load_in_4bit=true: needs an NVIDIA GPU with CUDA, and there is none here")
    transformers = import_transformers()
    path, revision = _local(config.path), config.revision
    if path and revision:
        path, revision = _local(str(Path(path) / revision)), None
    path = path or config.path
    options: dict[str, Any] = {"revision": revision or "main", "trust_remote_code": config.trust_remote_code}
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


def revisions(config: PretrainedConfig) -> list[PretrainedConfig]:
    """One configuration for each of `model.revisions`, by step, patterns filled in; the one given where there are none.

    Raises InputError where a pattern fits nothing or the hub cannot be asked.
    """
    if config.revisions is None:
        return [config]
    names: list[str] = []
    for asked in config.revisions:
        if not set(asked) & set("*?["):
            names.append(asked)
            continue
        there = _known_revisions(config)
        if not (fitting := fnmatch.filter(there, asked)):
            told = f"there are {', '.join(sorted(there)[:5])}" if there else "there are none"
            raise InputError(f"model.revisions={asked}: no such revision of {config.path}; {told}")
        names += fitting
    chosen = [dataclasses.replace(config, revision=name, revisions=None) for name in dict.fromkeys(names)]
    return sorted(chosen, key=lambda one: (one.step is None, one.step, one.revision))


def _known_revisions(config: PretrainedConfig) -> list[str]:
    """Names of the folders in a local model, or of the branches and tags of one on the hub."""
    if folder := _local(config.path):
        return [path.name for path in Path(folder).iterdir() if path.is_dir()]
    import_transformers()  # tells the hub's library whether there is a network
    import huggingface_hub

    try:
        found = huggingface_hub.list_repo_refs(config.path)
    except (OSError, ValueError) as error:
        raise InputError(_why_not(config, config.path, error)) from None
    return [reference.name for reference in [*found.branches, *found.tags]]


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
