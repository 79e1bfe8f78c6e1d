"""The types of the configuration group `model` (values: conf/model/)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from corpora.config import CorporaConfig, TokenizerConfig, check_chosen
from pairscale.command.schemas import (
    NOT_IN_DIGEST,
    AboveZero,
    Number,
    Probability,
    Seed,
    Share,
    nearest,
    register_types,
)
from pairscale.errors import ConfigError, check_name, first_few
from pairscale.hub import import_transformers
from pairscale.plugins import load_plugins
from train.recipes import COLUMNS, MAX_WIDTH, RecipeConfig, Width

if TYPE_CHECKING:
    import transformers

Layers = Annotated[int, Meta(ge=1, le=1_000)]
# causal: the next token. mlm: hidden tokens at their own positions (Devlin et al. 2019). mntp: at the position before
# (masked next-token prediction). hybrid: mntp in most blocks, causal in the others, by the same weights (GPT-BERT,
# Charpentier and Samuel 2024, section 2).
CAUSAL_SHARE = 1 / 16  # of the blocks: 1 to 15, as GPT-BERT was submitted to BabyLM
# Architectures that read some texts of a batch causally and the others as without a mask: tests compare them with the
# library's decoders. DeBERTa takes no mask of pairs of tokens, and ModernBERT would lose its windows.
HYBRID = ("bert", "electra", "roberta", "roformer")
# Fields that follow from the study's tokenizer and from how models are trained here.
SET_HERE = (
    "vocab_size", "bos_token_id", "eos_token_id", "pad_token_id", "mask_token_id", "sep_token_id", "cls_token_id",
    "use_cache", "is_decoder", "is_encoder_decoder", "architectures", "model_type", "transformers_version", "dtype",
)  # fmt: skip


@dataclass(kw_only=True)
class ModelConfig:
    """A language model; `seed` initialises its weights (null: derived from the run's seed)."""

    counted: ClassVar[bool] = False  # True if the model is counted in one pass, not trained by gradients
    comes_trained: ClassVar[bool] = False  # True if it was trained elsewhere; its recipe is then UntrainedConfig
    carries_state: ClassVar[bool] = True  # False: each block of text is read from its beginning

    name: str  # of the model, first part of the names of its runs
    seed: Seed | None = None  # initialises the weights; null: derived from the run's seed

    @property
    def masked(self) -> bool:
        """True if the model predicts hidden tokens from both sides."""
        return False

    @property
    def skips_weights(self) -> bool:
        """True if a training step may leave some weights without a gradient."""
        return False

    def __post_init__(self) -> None:
        check_name("model.name", self.name)

    def reads(self, tokenizer: TokenizerConfig) -> TokenizerConfig:
        """Return the tokenizer that a run with this one has. Raises ConfigError if they cannot go together."""
        return tokenizer

    def check_vocabulary(self, size: int) -> None:
        """Raise ConfigError if a model of this kind can't have a vocabulary of this size."""

    def identity(self, run: CorporaConfig) -> tuple[list[str], Any]:
        """Return the words of a run's name, and the configuration that can change its numbers, or raise ConfigError."""
        check_chosen(run.corpus)
        words = [self.name, run.corpus.name, run.tokenizer.name, run.sample.size, f"s{run.seed}"]
        if run.sample.shuffle is not None:
            words.append(f"shuffle_{run.sample.shuffle}")
        if run.filter is not None and run.ablate.acts:
            words += [run.filter.name, *run.ablate.words]
        return words, run.of_run()


@dataclass(kw_only=True)
class LstmConfig(ModelConfig):
    """An LSTM language model, as in Gulordava et al. 2018."""

    embedding: Width  # of the embeddings
    hidden: Width  # units per layer
    layers: Layers  # recurrent layers
    dropout: Probability  # on embeddings, between layers and before the softmax
    tied: bool  # output weights = input embeddings; needs embedding = hidden

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tied and self.embedding != self.hidden:
            raise ConfigError(
                f"model.tied=true needs model.embedding = model.hidden, got {self.embedding} and {self.hidden}"
            )


@dataclass(kw_only=True)
class GruConfig(LstmConfig):
    """A GRU language model (Cho et al. 2014); the values are those of an LSTM."""


@dataclass(kw_only=True)
class RnnConfig(LstmConfig):
    """A simple recurrent network (Elman 1990); the values are those of an LSTM."""


@dataclass(kw_only=True)
class TxlConfig(ModelConfig):
    """A Transformer-XL, as in Dai et al. 2019."""

    layers: Layers  # Transformer layers
    d_model: Width  # width of the model
    heads: Width  # attention heads per layer
    d_head: Width  # width of a head
    d_inner: Width  # width of the feed-forward layers
    dropout: Probability  # on embeddings, and on what attention and feed-forward layers add
    attention_dropout: Probability  # on attention weights
    memory: Annotated[int, Meta(ge=0, le=MAX_WIDTH)]  # tokens of the past that each layer keeps
    same_length: bool  # every position attends to the same number of positions
    clamp_len: Width | None = None  # longer distances are encoded as this one
    tied: bool  # output weights = input embeddings
    # Of weights, drawn from N(0, sd), and of gains of layer norms, drawn from N(1, sd); 0.02 as published.
    initial_sd: AboveZero
    pre_norm: bool = False  # normalise inputs of blocks instead of outputs
    # Width of embeddings, projected to d_model; null: d_model.
    embedding: Width | None = None
    # First ids of the clusters of rarer words (train/models/loss.py).
    cutoffs: list[Annotated[int, Meta(ge=1)]] = field(default_factory=list)
    div_val: Width = 1  # cluster i has embeddings of width embedding // div_val**i
    # Between the model and the rarer clusters, in both directions.
    tied_projections: bool = False

    @property
    def skips_weights(self) -> bool:
        """True for a softmax over clusters, which skips those without a word in a step."""
        return self.adaptive

    def check_vocabulary(self, size: int) -> None:
        if self.cutoffs and self.cutoffs[-1] >= size:
            raise ConfigError(f"model.cutoffs={self.cutoffs}: must be below {size}, the size of the vocabulary")

    @property
    def adaptive(self) -> bool:
        """True if embeddings and softmax are not a single table of the model's width."""
        return bool(self.cutoffs) or self.div_val > 1 or self.widths[0] != self.d_model

    @property
    def widths(self) -> list[int]:
        """Width of the embeddings of each cluster."""
        return [(self.embedding or self.d_model) // self.div_val**cluster for cluster in range(len(self.cutoffs) + 1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % 2:
            raise ConfigError(f"model.d_model={self.d_model}: must be even (half of the sinusoids are cosines)")
        if self.same_length and not self.memory:
            raise ConfigError("model.memory=0: must be at least 1 with model.same_length=true")
        if self.cutoffs != sorted(set(self.cutoffs)):
            raise ConfigError(f"model.cutoffs={self.cutoffs}: must be numbers of words, rising")
        if self.widths[-1] < 1:
            raise ConfigError(f"model.div_val={self.div_val}: leaves no width to the last cluster")


@dataclass(kw_only=True)
class NgramConfig(ModelConfig):
    """An n-gram model with modified, interpolated Kneser-Ney smoothing (Chen & Goodman 1999; Heafield et al. 2013)."""

    counted: ClassVar[bool] = True

    order: Annotated[int, Meta(ge=2, le=7)]  # the longest n-grams
    vocabulary: Literal["closed", "open"]  # closed: the tokenizer's; open: every word of the sample
    prune: list[int]  # by order: n-grams of this count or less are pruned; the last holds for all above
    discount_fallback: list[float] | None = None  # of n-grams seen once, twice, more, if they cannot be estimated
    lmplz: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # path; null: train.lmplz looks for it
    lmplz_memory: str = field(metadata=NOT_IN_DIGEST)  # "1G": for sorting

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.prune) <= self.order or self.prune != sorted(self.prune) or self.prune[0] != 0:
            raise ConfigError(
                f"model.prune={self.prune}: must be at most {self.order} thresholds that begin with 0 and never fall, "
                "such as [0,0,1]"
            )
        fallback = self.discount_fallback
        if fallback is not None and not (len(fallback) == 3 and all(0 <= d <= n + 1 for n, d in enumerate(fallback))):
            raise ConfigError(
                f"model.discount_fallback={fallback}: must be three discounts, from 0 to 1, 2 and 3, of n-grams seen "
                "once, twice and more often, such as [0.5,1,1.5]; or null"
            )
        if not re.fullmatch(r"[1-9]\d*[KMGT%]", self.lmplz_memory):
            raise ConfigError(f"model.lmplz_memory={self.lmplz_memory}: must be a number with K, M, G, T or %")

    def reads(self, tokenizer: TokenizerConfig) -> TokenizerConfig:
        """Return the run's tokenizer, with vocabulary=open fitted to know every word of the sample."""
        if self.vocabulary == "closed":
            return tokenizer
        if tokenizer.kind in ("unigram", "bpe"):
            raise ConfigError(
                f"model.vocabulary=open with tokenizer={tokenizer.name}: pieces leave no word unknown; leave it closed"
            )
        return dataclasses.replace(tokenizer, vocab_size=None, fit_on="sample")


@dataclass(kw_only=True)
class MaskingConfig:
    """The tokens that a masked model predicts, drawn anew in each step (Liu et al. 2019), and what stands for them."""

    share: Annotated[float, Meta(gt=0, le=1)] = 0.15  # of tokens to predict
    masked: Share = 0.8  # of them: replaced by the mask
    random: Share = 0.1  # of them: replaced by random tokens; the rest stay as they are
    whole_words: bool = False  # draw words, not tokens
    # Words of the validation split, at most, whose tokens a validation hides in turn: each needs a pass over its block.
    validation_words: Number = 2_000
    # Of blocks, which are read causally, of objective=hybrid; null: 1/16 there.
    causal_share: Annotated[float, Meta(gt=0, lt=1)] | None = None

    def __post_init__(self) -> None:
        if self.masked + self.random > 1:
            raise ConfigError(
                f"model.masking: masked={self.masked}, random={self.random}: must have a sum of at most 1"
            )


@dataclass(kw_only=True)
class HuggingFaceConfig(ModelConfig):
    """An architecture of Hugging Face's transformers, its weights drawn anew."""

    carries_state: ClassVar[bool] = False

    architecture: str  # a model_type of transformers.AutoConfig
    objective: Literal["causal", "mlm", "mntp", "hybrid"]
    config: dict[str, Any] = field(default_factory=dict)  # fields of the architecture's configuration class
    masking: MaskingConfig | None = None  # of a masked objective; null: as published

    def __post_init__(self) -> None:
        super().__post_init__()
        self.masking = (self.masking or MaskingConfig()) if self.masked else None
        if self.masking is not None and self.objective == "hybrid":
            self.masking.causal_share = self.masking.causal_share or CAUSAL_SHARE
        elif self.masking is not None and self.masking.causal_share is not None:
            raise ConfigError("model.masking.causal_share: belongs to model.objective=hybrid")
        self._check_architecture()

    @property
    def masked(self) -> bool:
        return self.objective != "causal"

    @property
    def shift(self) -> int:
        """Positions before a hidden token at which it is predicted."""
        return int(self.objective in ("mntp", "hybrid"))

    def _check_architecture(self) -> None:
        """Raise ConfigError for an architecture or field that transformers does not have, or not for the objective."""
        library = import_transformers()
        from transformers.models.auto import configuration_auto, modeling_auto

        if self.architecture not in configuration_auto.CONFIG_MAPPING:
            raise ConfigError(
                f"model.architecture={self.architecture}: no model_type of transformers {library.__version__}"
                f"; {shorten(nearest(self.architecture, configuration_auto.CONFIG_MAPPING), 200)}"
            )
        described = library.AutoConfig.for_model(self.architecture)
        known = {*described.to_dict(), *described.attribute_map}.difference(SET_HERE)
        for name in self.config:
            if name not in known:
                raise ConfigError(
                    f"model.config.{name}: no field of {type(described).__name__}, or set by pairscale"
                    f"; {nearest(name, known)}"
                )
        causal, masked = (getattr(modeling_auto, f"MODEL_FOR_{kind}_LM_MAPPING_NAMES") for kind in ("CAUSAL", "MASKED"))
        if self.architecture not in (masked if self.masked else causal) or described.is_encoder_decoder:
            raise ConfigError(
                f"model.architecture={self.architecture}: transformers has no plain language model of it for "
                f"model.objective={self.objective}; give another architecture or objective"
            )
        if self.objective == "hybrid" and self.architecture not in HYBRID:
            raise ConfigError(
                f"model.architecture={self.architecture} with model.objective=hybrid: reads no texts of a batch "
                f"causally by an attention mask; give {first_few(HYBRID, len(HYBRID))}, or model.objective=mntp"
            )

    def described(self, vocabulary: int) -> transformers.PretrainedConfig:
        """Return the configuration for transformers, over the `vocabulary` of the study's tokenizer; ConfigError."""
        from corpora.tokenizers import EOS, PAD, SPECIAL_TOKENS  # here, so that commands start without numpy

        library = import_transformers()
        offset = SPECIAL_TOKENS if self.masked else 0
        eos = offset + EOS
        special = {"bos_token_id": eos, "eos_token_id": eos, "pad_token_id": PAD if self.masked else None}
        fields = {**self.config, **special, "vocab_size": offset + vocabulary, "use_cache": False}
        with self.refusals():
            described: transformers.PretrainedConfig = library.AutoConfig.for_model(self.architecture, **fields)
        if hasattr(described, "is_decoder"):  # of those that are encoders unless it is set, such as BERT
            described.is_decoder = not self.masked
        return described

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Raise ConfigError, in one line, for whatever transformers raises for the values of `config`."""
        try:
            yield
        except (TypeError, ValueError, AttributeError, ZeroDivisionError, RuntimeError, AssertionError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ConfigError(f"model.config of {self.architecture}: {type(error).__name__}: {reason}") from error


@dataclass(kw_only=True)
class ImportedConfig(ModelConfig):
    """A published checkpoint of other code (train/import_checkpoint). It comes trained: only these fields count."""

    comes_trained: ClassVar[bool] = True

    checkpoint: str
    vocabulary: str | None = None  # a file; null: vocab.txt beside the checkpoint
    # Kind of tokenizer that splits text into the vocabulary's words.
    tokenizer: Literal["whitespace", "word", "char", "jieba"]
    eos: str  # the vocabulary's names of them
    unk: str
    # Of a Transformer-XL; null: as in the checkpoint, unless it is a bare state_dict.
    memory: int | None = None
    same_length: bool | None = None
    clamp_len: int | None = None  # -1: no limit
    pre_norm: bool | None = None
    cutoffs: list[int] | None = None

    def identity(self, run: CorporaConfig) -> tuple[list[str], Any]:
        """Return name and fields of the model alone, as no corpus, sample or recipe of ours was used."""
        return [re.sub(r"[^\w.-]+", "_", word) for word in (self.name, Path(self.checkpoint).name)], self


@dataclass(kw_only=True)
class PretrainedConfig(ModelConfig):
    """A Hugging Face model, by its name on the hub or a local folder. It comes trained: only these fields count."""

    comes_trained: ClassVar[bool] = True

    kind: Literal["causal", "masked"]  # predicts the next token, or hidden ones
    path: str  # name on the hub, or a local folder
    revision: str | None = None  # a branch, tag or commit of the hub, or a folder within the local one; null: none
    # Several, each a run of its own: names, or patterns such as step*.
    revisions: list[str] | None = field(default=None, metadata=NOT_IN_DIGEST)
    revision_pattern: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # regular expression of the step
    tokens_per_step: Annotated[int, Meta(ge=1, le=10**15)] | None = field(
        default=None, metadata=NOT_IN_DIGEST
    )  # of training, for the x of a curve
    dtype: Literal["fp32", "bf16", "fp16"]  # of the weights
    begin: str | None = None  # token that stands before a sentence, where the tokenizer names no BOS or EOS
    load_in_4bit: bool = False  # through bitsandbytes, on CUDA
    trust_remote_code: bool = False  # run the code that the model brings
    allow_pickle: bool = False  # read weights that are there only as a pickle, which can run code

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.revision is not None and self.revisions is not None:
            raise ConfigError("model.revision and model.revisions: give one of them")
        try:
            groups = re.compile(self.revision_pattern or "()").groups
        except re.error as error:
            raise ConfigError(f"model.revision_pattern={self.revision_pattern}: {error}") from None
        if groups != 1:
            raise ConfigError(f"model.revision_pattern={self.revision_pattern}: must have one group, (...), the step")

    @property
    def step(self) -> int | None:
        """The training step in the revision's name; None if it has none."""
        match = re.search(self.revision_pattern or "()", self.revision or "")
        return int(match[1]) if match and match[1].isdecimal() else None

    @property
    def masked(self) -> bool:
        return self.kind == "masked"

    @property
    def tokens(self) -> int | None:
        """Tokens of text that the model was trained on, with repeats; None if unknown."""
        return None if self.step is None or self.tokens_per_step is None else self.step * self.tokens_per_step

    def identity(self, run: CorporaConfig) -> tuple[list[str], Any]:
        """Return name and identity by the model alone, as none of our corpora, samples or recipes was used."""
        words = [self.name, Path(self.path).name, *([self.revision] if self.revision else [])]
        return [re.sub(r"[^\w.-]+", "_", word) for word in words], self


@dataclass(frozen=True)
class Architecture:
    """A configuration class, and the train.models.base.LanguageModel that it describes as "package.module:Class"."""

    config: type[ModelConfig]
    module: str


_ARCHITECTURES: dict[str, Architecture] = {}


def register_architecture(kind: str, config: type[ModelConfig], module: str) -> None:
    """Make an architecture known: the files in conf/model/ have `type: KIND`.

    `module` is imported when a model is built, and calls its class with (configuration, size of the vocabulary).
    """
    _ARCHITECTURES[kind] = Architecture(config, module)
    register_types(ModelConfig, **{kind: config})


def architectures() -> Mapping[str, Architecture]:
    """Return all architectures by kind, the name in model.json: our own, and those of plug-ins."""
    load_plugins()
    return _ARCHITECTURES


def kind_of(config: ModelConfig) -> str:
    """Return the kind of architecture of a configuration. Raises TypeError if none is registered."""
    for kind, architecture in architectures().items():
        if architecture.config is type(config):
            return kind
    raise TypeError(f"no architecture for {type(config).__name__}; registered: {', '.join(architectures())}")


def check_recipe(config: ModelConfig, recipe: RecipeConfig) -> None:
    """Raise ConfigError for a model without a memory from step to step whose recipe reads columns of a stream."""
    if not config.carries_state and recipe.packing == COLUMNS:
        raise ConfigError(
            f"recipe={recipe.name} with model={config.name}: reads columns of text with carried state, which this "
            "architecture does not have; give recipe=adamw or another recipe of another packing"
        )


register_architecture("lstm", LstmConfig, "train.models.recurrent:LstmLanguageModel")
register_architecture("gru", GruConfig, "train.models.recurrent:GruLanguageModel")
register_architecture("rnn", RnnConfig, "train.models.recurrent:RnnLanguageModel")
register_architecture("txl", TxlConfig, "train.models.txl:TransformerXL")
register_architecture("huggingface", HuggingFaceConfig, "train.models.huggingface:HuggingFaceModel")
register_types(ModelConfig, ngram=NgramConfig, imported=ImportedConfig, pretrained=PretrainedConfig)
