"""The type of models whose architecture is one of Hugging Face's transformers, trained from scratch."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from pairscale.command.schemas import Number, Share
from pairscale.errors import ConfigError, first_few
from pairscale.hub import import_transformers
from train.models.config import ModelConfig, register_architecture
from train.recipes import COLUMNS, RecipeConfig

if TYPE_CHECKING:
    from transformers import PretrainedConfig

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
        transformers = import_transformers()
        from transformers.models.auto import configuration_auto, modeling_auto

        if self.architecture not in configuration_auto.CONFIG_MAPPING:
            raise ConfigError(
                f"model.architecture={self.architecture}: no model_type of transformers {transformers.__version__}"
                + _near(self.architecture, configuration_auto.CONFIG_MAPPING)
            )
        described = transformers.AutoConfig.for_model(self.architecture)
        known = {*described.to_dict(), *described.attribute_map}.difference(SET_HERE)
        for name in self.config:
            if name not in known:
                raise ConfigError(
                    f"model.config.{name}: no field of {type(described).__name__}, or set by pairscale"
                    + _near(name, known)
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

    def described(self, vocabulary: int) -> PretrainedConfig:
        """Return the configuration for transformers, over the `vocabulary` of the study's tokenizer; ConfigError."""
        from corpora.tokenizers import EOS, PAD, SPECIAL_TOKENS  # here, so that commands start without numpy

        transformers = import_transformers()
        offset = SPECIAL_TOKENS if self.masked else 0
        eos = offset + EOS
        special = {"bos_token_id": eos, "eos_token_id": eos, "pad_token_id": PAD if self.masked else None}
        fields = {**self.config, **special, "vocab_size": offset + vocabulary, "use_cache": False}
        with self.refusals():
            described: PretrainedConfig = transformers.AutoConfig.for_model(self.architecture, **fields)
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


def check_recipe(config: ModelConfig, recipe: RecipeConfig) -> None:
    """Raise ConfigError for a model without a memory from step to step whose recipe reads columns of a stream."""
    if not config.carries_state and recipe.packing == COLUMNS:
        raise ConfigError(
            f"recipe={recipe.name} with model={config.name}: reads columns of text with carried state, which this "
            "architecture does not have; give recipe=adamw or another recipe of another packing"
        )


def _near(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=3)
    return f"; did you mean {first_few(near)}?" if near else ""


register_architecture("huggingface", HuggingFaceConfig, "train.models.huggingface:HuggingFaceModel")
