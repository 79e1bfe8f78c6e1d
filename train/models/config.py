"""The types of the configuration group `model` (values: conf/model/)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from omegaconf import MISSING

from corpora.config import CorporaConfig, check_chosen
from pairscale.command.schemas import ADDED_LATER, NOT_IN_DIGEST, store_schemas
from pairscale.errors import ConfigError, check_above, check_between, check_choice, check_name, check_seed, check_share
from pairscale.plugins import load_plugins

VOCABULARIES = ("closed", "open")
# Far beyond any model; above them sizes overflow, or a run would take years to begin.
MAX_LAYERS, MAX_WIDTH = 1_000, 100_000
IMPORTED_TOKENIZERS = ("whitespace", "word", "char", "jieba")


@dataclass
class ModelConfig:
    """A language model; `seed` initialises its weights (null: derived from the run's seed)."""

    counted: ClassVar[bool] = False  # True if the model is counted in one pass, not trained by gradients
    carries_state: ClassVar[bool] = True  # False: each block of text is read from its beginning

    name: str = MISSING  # of the model, first part of the names of its runs
    seed: int | None = None  # initialises the weights; null: derived from the run's seed

    @property
    def masked(self) -> bool:
        """True if the model predicts hidden tokens from both sides."""
        return False

    @property
    def skips_weights(self) -> bool:
        """True if a training step may leave some weights without a gradient."""
        return False

    @property
    def several_models(self) -> bool:
        """True if it names several models, each a run of its own."""
        return False

    @property
    def weight_bytes(self) -> int:
        """Bytes of local files with weights that come trained."""
        return 0

    def of_fixed_shape(self) -> ModelConfig:
        """Return a model of about the same size, whose tensors have shapes that do not depend on the tokens."""
        return self

    def __post_init__(self) -> None:
        check_name("model.name", self.name)
        check_seed("model.seed", self.seed)

    def check_vocabulary(self, size: int) -> None:
        """Raise ConfigError if a model of this kind can't have a vocabulary of this size."""

    def identity(self, run: CorporaConfig) -> tuple[list[str], Any]:
        """Return the words of a run's name, and the configuration that can change its numbers, or raise NoCorpus."""
        check_chosen(run.corpus)
        words = [self.name, run.corpus.name, run.tokenizer.name, run.sample.size, f"s{run.seed}"]
        if run.sample.shuffle is not None:
            words.append(f"shuffle_{run.sample.shuffle}")
        if run.filter is not None and run.ablate.acts:
            words += [run.filter.name, *run.ablate.words]
        return words, run.of_run()


@dataclass
class LstmConfig(ModelConfig):
    """An LSTM language model, as in Gulordava et al. 2018."""

    embedding: int = MISSING  # width of the embeddings
    hidden: int = MISSING  # units per layer
    layers: int = MISSING  # LSTM layers
    dropout: float = MISSING  # on embeddings, between layers and before the softmax
    tied: bool = MISSING  # output weights = input embeddings; needs embedding = hidden

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self, "embedding", "hidden")
        if self.tied and self.embedding != self.hidden:
            raise ConfigError(
                f"model.tied=true needs model.embedding = model.hidden, got {self.embedding} and {self.hidden}"
            )
        check_share("model.dropout", self.dropout)


@dataclass
class GruConfig(LstmConfig):
    """A GRU language model (Cho et al. 2014); the values are those of an LSTM."""


@dataclass
class RnnConfig(LstmConfig):
    """A simple recurrent network (Elman 1990); the values are those of an LSTM."""


@dataclass
class TxlConfig(ModelConfig):
    """A Transformer-XL, as in Dai et al. 2019."""

    layers: int = MISSING  # Transformer layers
    d_model: int = MISSING  # width of the model
    heads: int = MISSING  # attention heads per layer
    d_head: int = MISSING  # width of a head
    d_inner: int = MISSING  # width of the feed-forward layers
    dropout: float = MISSING  # on embeddings, and on what attention and feed-forward layers add
    attention_dropout: float = MISSING  # on attention weights
    memory: int = MISSING  # tokens of the past that each layer keeps
    same_length: bool = MISSING  # every position attends to the same number of positions
    clamp_len: int | None = None  # longer distances are encoded as this one
    tied: bool = MISSING  # output weights = input embeddings
    # Of weights, drawn from N(0, sd), and of gains of layer norms, drawn from N(1, sd); 0.02 as published.
    initial_sd: float = MISSING
    pre_norm: bool = field(default=False, metadata=ADDED_LATER)  # normalise inputs of blocks instead of outputs
    # Width of embeddings, projected to d_model; null: d_model.
    embedding: int | None = field(default=None, metadata=ADDED_LATER)
    # First ids of the clusters of rarer words (train/models/adaptive.py).
    cutoffs: list[int] = field(default_factory=list, metadata=ADDED_LATER)
    div_val: int = field(default=1, metadata=ADDED_LATER)  # cluster i has embeddings of width embedding // div_val**i
    # Between the model and the rarer clusters, in both directions.
    tied_projections: bool = field(default=False, metadata=ADDED_LATER)

    @property
    def skips_weights(self) -> bool:
        """True for a softmax over clusters, which skips those without a word in a step."""
        return self.adaptive

    def of_fixed_shape(self) -> TxlConfig:
        return dataclasses.replace(self, embedding=None, cutoffs=[], div_val=1, tied_projections=False)

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
        _check_sizes(self, "d_model", "heads", "d_head", "d_inner", "embedding", "div_val", "clamp_len")
        check_above("model.initial_sd", self.initial_sd, 0)
        check_between("model.memory", self.memory, int(self.same_length), MAX_WIDTH)
        for name in ("dropout", "attention_dropout"):
            check_share(f"model.{name}", getattr(self, name))
        if list(self.cutoffs) != sorted({cutoff for cutoff in self.cutoffs if cutoff > 0}):
            raise ConfigError(f"model.cutoffs={self.cutoffs}: must be numbers of words above 0, rising")
        if self.widths[-1] < 1:
            raise ConfigError(f"model.div_val={self.div_val}: leaves no width to the last cluster")


def _check_sizes(config: LstmConfig | TxlConfig, *widths: str) -> None:
    """Raise ConfigError unless the number of layers and these widths are possible."""
    check_between("model.layers", config.layers, 1, MAX_LAYERS)
    for name in widths:
        check_between(f"model.{name}", getattr(config, name), 1, MAX_WIDTH)


@dataclass
class NgramConfig(ModelConfig):
    """An n-gram model with modified, interpolated Kneser-Ney smoothing (Chen & Goodman 1999; Heafield et al. 2013)."""

    counted: ClassVar[bool] = True

    order: int = MISSING  # the longest n-grams: 2 to 7
    vocabulary: str = MISSING  # closed: the tokenizer's; open: every word of the sample
    prune: list[int] = MISSING  # by order: n-grams of this count or less are pruned; the last holds for all above
    discount_fallback: list[float] | None = None  # of n-grams seen once, twice, more, if they cannot be estimated
    lmplz: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # path; null: train.lmplz looks for it
    lmplz_memory: str = field(default=MISSING, metadata=NOT_IN_DIGEST)  # "1G": for sorting

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("model.order", self.order, 2, 7)
        check_choice("model.vocabulary", self.vocabulary, VOCABULARIES)
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


@dataclass
class ImportedConfig(ModelConfig):
    """A published checkpoint of other code (train/import_checkpoint). It comes trained: only these fields count."""

    checkpoint: str = MISSING
    vocabulary: str | None = None  # a file; null: vocab.txt beside the checkpoint
    tokenizer: str = MISSING  # kind of tokenizer that splits text into the vocabulary's words
    eos: str = MISSING  # the vocabulary's names of them
    unk: str = MISSING
    # Of a Transformer-XL; null: as in the checkpoint, unless it is a bare state_dict.
    memory: int | None = None
    same_length: bool | None = None
    clamp_len: int | None = None  # -1: no limit
    pre_norm: bool | None = None
    cutoffs: list[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("model.tokenizer", self.tokenizer, IMPORTED_TOKENIZERS)

    def identity(self, run: CorporaConfig) -> tuple[list[str], Any]:
        """Return name and fields of the model alone, as no corpus, sample or recipe of ours was used."""
        return [re.sub(r"[^\w.-]+", "_", word) for word in (self.name, Path(self.checkpoint).name)], self


@dataclass(frozen=True)
class Architecture:
    """A configuration class, and the train.models.base.LanguageModel that it describes as "package.module:Class"."""

    config: type[ModelConfig]
    module: str


_ARCHITECTURES: dict[str, Architecture] = {}


def register_architecture(kind: str, config: type[ModelConfig], module: str) -> None:
    """Make an architecture known: its values refer to its schema as `KIND_schema`.

    `module` is imported when a model is built, and calls its class with (configuration, size of the vocabulary).
    """
    _ARCHITECTURES[kind] = Architecture(config, module)
    store_schemas("model", **{f"{kind}_schema": config})


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


register_architecture("lstm", LstmConfig, "train.models.recurrent:LstmLanguageModel")
register_architecture("gru", GruConfig, "train.models.recurrent:GruLanguageModel")
register_architecture("rnn", RnnConfig, "train.models.recurrent:RnnLanguageModel")
register_architecture("txl", TxlConfig, "train.models.txl:TransformerXL")
store_schemas("model", ngram_schema=NgramConfig, imported_schema=ImportedConfig)
