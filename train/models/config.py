"""Define the types of the configuration group `model`, whose values are in conf/model/."""

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
# causal predicts the next token. mlm predicts masked tokens at their own positions (Devlin et al. 2019). mntp (masked
# next-token prediction) predicts them at the position before. hybrid uses mntp in most blocks and causal in the others,
# with the same weights (GPT-BERT, Charpentier and Samuel 2024, section 2).
CAUSAL_SHARE = 1 / 16  # share of causal blocks (a ratio of 1 to 15), as in GPT-BERT's submission to BabyLM
# Architectures that can read some texts of a batch causally and the others in both directions. Tests compare them with
# the library's decoders. DeBERTa doesn't accept a mask of pairs of tokens, and ModernBERT would lose its windows.
HYBRID = ("bert", "electra", "roberta", "roformer")
# Fields that pairscale sets from the study's tokenizer and its way of training.
SET_HERE = (
    "vocab_size", "bos_token_id", "eos_token_id", "pad_token_id", "mask_token_id", "sep_token_id", "cls_token_id",
    "use_cache", "is_decoder", "is_encoder_decoder", "architectures", "model_type", "transformers_version", "dtype",
)  # fmt: skip


@dataclass(kw_only=True)
class ModelConfig:
    """The configuration of a language model. All architectures have these fields."""

    counted: ClassVar[bool] = False  # True if the model is counted in one pass, not trained by gradients
    comes_trained: ClassVar[bool] = False  # True if it was trained elsewhere; its recipe is then UntrainedConfig
    carries_state: ClassVar[bool] = True  # False: each block of text is read from its beginning

    name: str  # name of the model, the first part of the names of its runs
    seed: Seed | None = None  # seed for the initial weights; null: derived from the run's seed

    @property
    def masked(self) -> bool:
        """True if the model predicts masked tokens from the tokens on both sides."""
        return False

    @property
    def skips_weights(self) -> bool:
        """True if a training step may leave some weights without a gradient."""
        return False

    def __post_init__(self) -> None:
        check_name("model.name", self.name)

    def reads(self, tokenizer: TokenizerConfig) -> TokenizerConfig:
        """Return the tokenizer that the model reads. Raises ConfigError if the run's `tokenizer` does not fit."""
        return tokenizer

    def check_vocabulary(self, size: int) -> None:
        """Raise ConfigError if a model of this kind can't have a vocabulary of this size."""

    def identity(self, run: CorporaConfig) -> tuple[list[str], Any]:
        """Return the parts of a run's name, and the configuration that can change its results.

        Raises ConfigError if the run has no corpus.
        """
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

    embedding: Width  # width of the embeddings
    hidden: Width  # units per layer
    layers: Layers  # number of recurrent layers
    dropout: Probability  # on embeddings, between layers and before the softmax
    tied: bool  # use the input embeddings as output weights; needs embedding = hidden

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tied and self.embedding != self.hidden:
            raise ConfigError(
                f"model.tied=true: model.embedding ({self.embedding}) must equal model.hidden ({self.hidden}). Make "
                "them equal, or set model.tied=false."
            )


@dataclass(kw_only=True)
class GruConfig(LstmConfig):
    """A GRU language model (Cho et al. 2014), with the same fields as an LSTM."""


@dataclass(kw_only=True)
class RnnConfig(LstmConfig):
    """A simple recurrent network (Elman 1990), with the same fields as an LSTM."""


@dataclass(kw_only=True)
class TxlConfig(ModelConfig):
    """A Transformer-XL, as in Dai et al. 2019."""

    layers: Layers  # number of Transformer layers
    d_model: Width  # width of the model
    heads: Width  # attention heads per layer
    d_head: Width  # width of a head
    d_inner: Width  # width of the feed-forward layers
    dropout: Probability  # on embeddings, and on the outputs of attention and feed-forward layers
    attention_dropout: Probability  # on attention weights
    memory: Annotated[int, Meta(ge=0, le=MAX_WIDTH)]  # earlier tokens that each layer remembers
    same_length: bool  # every position attends to the same number of positions
    clamp_len: Width | None = None  # distances longer than this are encoded as if they were this long
    tied: bool  # use the input embeddings as output weights
    # Standard deviation of the initial weights, N(0, sd), and of the gains of layer norms, N(1, sd). Published: 0.02.
    initial_sd: AboveZero
    pre_norm: bool = False  # normalise the inputs of blocks instead of their outputs
    # Width of the embeddings, which are projected to d_model; null: d_model.
    embedding: Width | None = None
    # First ids of the clusters of rarer words (train/models/loss.py).
    cutoffs: list[Annotated[int, Meta(ge=1)]] = field(default_factory=list)
    div_val: Width = 1  # the embeddings of cluster i have width embedding // div_val**i
    # Use one projection in both directions between the model and each rarer cluster.
    tied_projections: bool = False

    @property
    def skips_weights(self) -> bool:
        """True for a softmax over clusters, because a step skips clusters without any of its words."""
        return self.adaptive

    def check_vocabulary(self, size: int) -> None:
        if self.cutoffs and self.cutoffs[-1] >= size:
            raise ConfigError(f"model.cutoffs={self.cutoffs}: these must be below {size}, the size of the vocabulary.")

    @property
    def adaptive(self) -> bool:
        """True if embeddings and softmax are not a single table of the model's width."""
        return bool(self.cutoffs) or self.div_val > 1 or self.widths[0] != self.d_model

    @property
    def widths(self) -> list[int]:
        """The width of each cluster's embeddings."""
        return [(self.embedding or self.d_model) // self.div_val**cluster for cluster in range(len(self.cutoffs) + 1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % 2:
            raise ConfigError(
                f"model.d_model={self.d_model}: this must be even, because half of the sinusoids are cosines."
            )
        if self.same_length and not self.memory:
            raise ConfigError("model.memory=0: this must be at least 1 with model.same_length=true.")
        if self.cutoffs != sorted(set(self.cutoffs)):
            raise ConfigError(f"model.cutoffs={self.cutoffs}: this must be an increasing list of numbers of words.")
        if self.widths[-1] < 1:
            raise ConfigError(f"model.div_val={self.div_val}: the last cluster would have width 0. Choose a lower one.")


@dataclass(kw_only=True)
class NgramConfig(ModelConfig):
    """An n-gram model with modified, interpolated Kneser-Ney smoothing (Chen & Goodman 1999; Heafield et al. 2013)."""

    counted: ClassVar[bool] = True

    order: Annotated[int, Meta(ge=2, le=7)]  # length of the longest n-grams
    vocabulary: Literal["closed", "open"]  # closed: the tokenizer's words; open: every word of the sample
    prune: list[int]  # per order: prune n-grams with at most this count; the last value applies to all higher orders
    # Discounts for n-grams seen once, twice and more often, for samples from which they cannot be estimated.
    discount_fallback: list[float] | None = None
    lmplz: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # path of lmplz; null: search for it
    lmplz_memory: str = field(metadata=NOT_IN_DIGEST)  # memory for sorting, such as "1G" or "50%"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.prune) <= self.order or self.prune != sorted(self.prune) or self.prune[0] != 0:
            raise ConfigError(
                f"model.prune={self.prune}: this must be a list of 1 to {self.order} thresholds that starts with 0 and "
                "never falls, such as [0,0,1]."
            )
        fallback = self.discount_fallback
        if fallback is not None and not (len(fallback) == 3 and all(0 <= d <= n + 1 for n, d in enumerate(fallback))):
            raise ConfigError(
                f"model.discount_fallback={fallback}: use null, or three discounts such as [0.5,1,1.5]. They can be at "
                "most 1 for n-grams seen once, 2 for those seen twice and 3 for all others."
            )
        if not re.fullmatch(r"[1-9]\d*[KMGT%]", self.lmplz_memory):
            raise ConfigError(
                f"model.lmplz_memory={self.lmplz_memory}: use a number with a unit (K, M, G, T or %), such as 1G."
            )

    def reads(self, tokenizer: TokenizerConfig) -> TokenizerConfig:
        """Return the run's tokenizer or, with vocabulary=open, one that knows every word of the sample."""
        if self.vocabulary == "closed":
            return tokenizer
        if tokenizer.kind in ("unigram", "bpe"):
            raise ConfigError(
                f"model.vocabulary=open with tokenizer={tokenizer.name}: subword tokenizers know every word already. "
                "Use model.vocabulary=closed."
            )
        return dataclasses.replace(tokenizer, vocab_size=None, fit_on="sample")


@dataclass(kw_only=True)
class MaskingConfig:
    """The choice of masked tokens, drawn again in each step (Liu et al. 2019), and of what replaces them."""

    share: Annotated[float, Meta(gt=0, le=1)] = 0.15  # share of the tokens that are predicted
    masked: Share = 0.8  # share of these that the mask replaces
    random: Share = 0.1  # share of these that random tokens replace; the rest stay as they are
    whole_words: bool = False  # draw whole words instead of tokens
    # Most words that a validation reads. It masks their tokens one by one, and each needs a pass over its block.
    validation_words: Number = 2_000
    # Share of the blocks that objective=hybrid reads causally; null: 1/16.
    causal_share: Annotated[float, Meta(gt=0, lt=1)] | None = None

    def __post_init__(self) -> None:
        if self.masked + self.random > 1:
            raise ConfigError(
                f"model.masking.masked={self.masked}, model.masking.random={self.random}: their sum must be at most 1. "
                "Lower one of them."
            )


@dataclass(kw_only=True)
class HuggingFaceConfig(ModelConfig):
    """An architecture of Hugging Face's transformers, trained from random weights."""

    carries_state: ClassVar[bool] = False

    architecture: str  # a model_type of transformers.AutoConfig
    objective: Literal["causal", "mlm", "mntp", "hybrid"]
    config: dict[str, Any] = field(default_factory=dict)  # fields of the architecture's configuration class
    masking: MaskingConfig | None = None  # settings of a masked objective; null: as published

    def __post_init__(self) -> None:
        super().__post_init__()
        self.masking = (self.masking or MaskingConfig()) if self.masked else None
        if self.masking is not None and self.objective == "hybrid":
            self.masking.causal_share = self.masking.causal_share or CAUSAL_SHARE
        elif self.masking is not None and self.masking.causal_share is not None:
            raise ConfigError("model.masking.causal_share: this works only with model.objective=hybrid. Leave it out.")
        self._check_architecture()

    @property
    def masked(self) -> bool:
        return self.objective != "causal"

    @property
    def shift(self) -> int:
        """The number of positions (0 or 1) before its own at which a masked token is predicted."""
        return int(self.objective in ("mntp", "hybrid"))

    def _check_architecture(self) -> None:
        """Raise ConfigError if transformers lacks the architecture, a field of it, or its model for the objective."""
        library = import_transformers()
        from transformers.models.auto import configuration_auto, modeling_auto

        if self.architecture not in configuration_auto.CONFIG_MAPPING:
            raise ConfigError(
                f"model.architecture={self.architecture}: transformers {library.__version__} has no such model_type. "
                f"{shorten(nearest(self.architecture, configuration_auto.CONFIG_MAPPING), 200)}"
            )
        described = library.AutoConfig.for_model(self.architecture)
        known = {*described.to_dict(), *described.attribute_map}.difference(SET_HERE)
        for name in self.config:
            if name not in known:
                raise ConfigError(
                    f"model.config.{name}: this is not a field of {type(described).__name__}, or pairscale sets it. "
                    f"{nearest(name, known)}"
                )
        causal, masked = (getattr(modeling_auto, f"MODEL_FOR_{kind}_LM_MAPPING_NAMES") for kind in ("CAUSAL", "MASKED"))
        if self.architecture not in (masked if self.masked else causal) or described.is_encoder_decoder:
            raise ConfigError(
                f"model.architecture={self.architecture}: transformers has no language model of this architecture for "
                f"model.objective={self.objective}. Choose another architecture or objective."
            )
        if self.objective == "hybrid" and self.architecture not in HYBRID:
            raise ConfigError(
                f"model.architecture={self.architecture}: this does not support model.objective=hybrid. Choose one of "
                f"{first_few(HYBRID, len(HYBRID))}, or use model.objective=mntp."
            )

    def described(self, vocabulary: int) -> transformers.PretrainedConfig:
        """Return the configuration for transformers, with `vocabulary` entries of the study's tokenizer.

        Raises ConfigError for values that transformers rejects.
        """
        from corpora.tokenizers import EOS, PAD, SPECIAL_TOKENS  # imported here, so that commands start without numpy

        library = import_transformers()
        offset = SPECIAL_TOKENS if self.masked else 0
        eos = offset + EOS
        special = {"bos_token_id": eos, "eos_token_id": eos, "pad_token_id": PAD if self.masked else None}
        fields = {**self.config, **special, "vocab_size": offset + vocabulary, "use_cache": False}
        with self.refusals():
            described: transformers.PretrainedConfig = library.AutoConfig.for_model(self.architecture, **fields)
        if hasattr(described, "is_decoder"):  # architectures such as BERT are encoders unless this is set
            described.is_decoder = not self.masked
        return described

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Turn any error that transformers raises about the values of `config` into a one-line ConfigError."""
        try:
            yield
        except (TypeError, ValueError, AttributeError, ZeroDivisionError, RuntimeError, AssertionError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ConfigError(
                f"model.config: transformers can't build {self.architecture} with these values "
                f"({type(error).__name__}: {reason}). Change them."
            ) from error


@dataclass(kw_only=True)
class ImportedConfig(ModelConfig):
    """A published checkpoint from other code (train/import_checkpoint). It is trained, so only these fields matter."""

    comes_trained: ClassVar[bool] = True

    checkpoint: str
    vocabulary: str | None = None  # file of the vocabulary; null: vocab.txt in the checkpoint's folder
    # Kind of tokenizer that splits text into the vocabulary's words.
    tokenizer: Literal["whitespace", "word", "char", "jieba"]
    eos: str  # how the vocabulary spells <eos>
    unk: str  # how the vocabulary spells <unk>
    # Values of a Transformer-XL; null: read from the checkpoint, which a bare state_dict does not allow.
    memory: int | None = None
    same_length: bool | None = None
    clamp_len: int | None = None  # -1: no limit
    pre_norm: bool | None = None
    cutoffs: list[int] | None = None

    def identity(self, run: CorporaConfig) -> tuple[list[str], Any]:
        """Return only the model's name and fields, because none of our corpora, samples or recipes was used."""
        return [re.sub(r"[^\w.-]+", "_", word) for word in (self.name, Path(self.checkpoint).name)], self


@dataclass(kw_only=True)
class PretrainedConfig(ModelConfig):
    """A Hugging Face model from the hub or a local folder. It is already trained, so only these fields matter."""

    comes_trained: ClassVar[bool] = True

    kind: Literal["causal", "masked"]  # causal predicts the next token, masked predicts masked tokens
    path: str  # name on the hub, or a local folder
    revision: str | None = None  # branch, tag or commit on the hub, or a folder within the local one; null: the default
    # Several revisions, each of which becomes a run: names, or patterns such as step*.
    revisions: list[str] | None = field(default=None, metadata=NOT_IN_DIGEST)
    revision_pattern: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # regular expression for the step
    tokens_per_step: Annotated[int, Meta(ge=1, le=10**15)] | None = field(
        default=None, metadata=NOT_IN_DIGEST
    )  # training tokens per step, for the x-axis of a curve
    dtype: Literal["fp32", "bf16", "fp16"]  # precision of the weights
    begin: str | None = None  # token to put before a sentence if the tokenizer has no BOS or EOS
    load_in_4bit: bool = False  # load with bitsandbytes, on CUDA
    trust_remote_code: bool = False  # run the code that comes with the model
    allow_pickle: bool = False  # read weights that exist only as a pickle, which can run code

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.revision is not None and self.revisions is not None:
            raise ConfigError("model.revision and model.revisions: set only one of them.")
        try:
            groups = re.compile(self.revision_pattern or "()").groups
        except re.error as error:
            raise ConfigError(
                f"model.revision_pattern={self.revision_pattern}: this isn't a valid regular expression ({error}). "
                "Correct it."
            ) from None
        if groups != 1:
            raise ConfigError(
                f"model.revision_pattern={self.revision_pattern}: it must have exactly one group, (...), for the step."
            )

    @property
    def step(self) -> int | None:
        """The training step named in the revision, or None."""
        match = re.search(self.revision_pattern or "()", self.revision or "")
        return int(match[1]) if match and match[1].isdecimal() else None

    @property
    def masked(self) -> bool:
        return self.kind == "masked"

    @property
    def tokens(self) -> int | None:
        """The number of tokens that the model was trained on, counting repeats, or None if unknown."""
        return None if self.step is None or self.tokens_per_step is None else self.step * self.tokens_per_step

    def identity(self, run: CorporaConfig) -> tuple[list[str], Any]:
        """Return only the model's name and fields, because none of our corpora, samples or recipes was used."""
        words = [self.name, Path(self.path).name, *([self.revision] if self.revision else [])]
        return [re.sub(r"[^\w.-]+", "_", word) for word in words], self


@dataclass(frozen=True)
class Architecture:
    """A configuration class, and the place ("package.module:Class") of the LanguageModel that it describes."""

    config: type[ModelConfig]
    module: str


_ARCHITECTURES: dict[str, Architecture] = {}


def register_architecture(kind: str, config: type[ModelConfig], module: str) -> None:
    """Register an architecture, so that a file in conf/model/ can select it with `type: KIND`.

    Args:
        kind: the name of the architecture.
        config: the configuration class, which checks the values of the file.
        module: the model's class as "package.module:Class". It is imported when a model is built, and is called with
            the configuration and the size of the vocabulary.
    """
    _ARCHITECTURES[kind] = Architecture(config, module)
    register_types(ModelConfig, **{kind: config})


def architectures() -> Mapping[str, Architecture]:
    """Return all architectures by kind, including those from plug-ins."""
    load_plugins()
    return _ARCHITECTURES


def kind_of(config: ModelConfig) -> str:
    """Return the registered name of a configuration's architecture. Raises TypeError if there is none."""
    for kind, architecture in architectures().items():
        if architecture.config is type(config):
            return kind
    raise TypeError(f"There is no architecture for {type(config).__name__}. Registered: {', '.join(architectures())}")


def check_recipe(config: ModelConfig, recipe: RecipeConfig) -> None:
    """Raise ConfigError if the recipe carries a state from step to step and the model does not."""
    if not config.carries_state and recipe.packing == COLUMNS:
        raise ConfigError(
            f"recipe={recipe.name}: this recipe carries a state from step to step (recipe.packing=columns), but model="
            f"{config.name} has no state to carry. Use a recipe with another packing, such as recipe=adamw."
        )


register_architecture("lstm", LstmConfig, "train.models.recurrent:LstmLanguageModel")
register_architecture("gru", GruConfig, "train.models.recurrent:GruLanguageModel")
register_architecture("rnn", RnnConfig, "train.models.recurrent:RnnLanguageModel")
register_architecture("txl", TxlConfig, "train.models.txl:TransformerXL")
register_architecture("huggingface", HuggingFaceConfig, "train.models.huggingface:HuggingFaceModel")
register_types(ModelConfig, ngram=NgramConfig, imported=ImportedConfig, pretrained=PretrainedConfig)
