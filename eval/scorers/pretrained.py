"""Load Hugging Face models for scoring (train/models/pretrained.py reads their files)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from eval.scorers.base import Execution
from eval.scorers.causal import CausalScorer
from eval.scorers.masked import MaskedScorer
from eval.scorers.network import CausalNetwork, Network, vocabulary_size
from eval.scorers.tokens import HubTokens, score_settings
from train.models.config import PretrainedConfig
from train.models.pretrained import OtherKind, source_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


def load_pretrained(config: PretrainedConfig, execution: Execution) -> CausalScorer | MaskedScorer:
    """Load a Hugging Face model for scoring.

    The tokenizer of a local model may be in the parent folder, where a transformers Trainer writes it. The scorer's
    `tokenizer_path` is then the parent folder.

    Raises:
        InputError: If the model is missing or must be downloaded without a network, if it has only pickled weights or
            no tokenizer, or if reading it or running its own code fails.
        ConfigError: If the model is causal instead of masked or the other way round, or if this machine doesn't
            support an option.
        RunError: If its weights are NaN or infinite.
    """
    source = source_of(config)
    with source.one_line_errors():
        model, tokenizer, tokenizer_path = source.load()
        masked, name = config.kind == "masked", Path(config.path).name
        scorer = scorer_of(model, tokenizer, name, execution, masked, config.begin)
        scorer.tokenizer_path = tokenizer_path
        return scorer


def scorer_of(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    name: str,
    execution: Execution,
    masked: bool = False,
    begin: str | None = None,
) -> CausalScorer | MaskedScorer:
    """Return the scorer of a model of transformers. Raises the same errors as HubTokens, Network and the scorers.

    `begin` is the token to put before each sentence instead of the tokenizer's BOS or EOS.
    """
    tokens = HubTokens(tokenizer, name, vocabulary_size(model), None if masked else begin)
    scorer: CausalScorer | MaskedScorer
    if masked:
        scorer = MaskedScorer(Network(model, name, execution), tokens, execution.progress)
    else:
        network = CausalNetwork(model, name, execution, begin=tokens.checked_begin(name))
        scorer = CausalScorer(network, tokens, name, execution.progress)
    scorer.settings = score_settings(model, tokens, masked)
    return scorer


def load_of_any_kind(path: str, execution: Execution) -> CausalScorer | MaskedScorer:
    """Return the scorer of a model in float32. The model is causal unless its config.json only names a masked class.

    Raises the same errors as `load_pretrained`.
    """
    config = PretrainedConfig(name="hf_causal", kind="causal", path=path, dtype="fp32")
    try:
        return load_pretrained(config, execution)
    except OtherKind:
        return load_pretrained(dataclasses.replace(config, name="hf_masked", kind="masked"), execution)
