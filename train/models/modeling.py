"""Make our own models loadable with transformers' AutoModelForCausalLM. This file travels with the weights."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from train.models.base import LanguageModel as Body  # in a model's folder: its own class


class PairscaleConfig(PretrainedConfig):
    """A model's values, named as in conf/model, and the size of its vocabulary."""

    model_type = "pairscale"

    def __init__(self, vocab_size: int = 2, **values: Any):
        values = {"bos_token_id": 0, "eos_token_id": 0, **values}
        # Tied weights are a single parameter. There is no cache: each step of `generate` reads the text again.
        values |= {"tie_word_embeddings": False, "use_cache": False}
        self.vocab_size = vocab_size
        self.num_hidden_layers = values.get("layers")
        self.hidden_size = values.get("hidden", values.get("d_model"))
        super().__init__(**values)


class PairscaleForCausalLM(PreTrainedModel, GenerationMixin):
    """A language model that maps tokens (B, T) to logits (B, T, V) for the next tokens.

    Begin each text with `<eos>` (id 0). It is read from an empty state. Later tokens don't change a prediction, so
    padding on the right is harmless, but padding on the left is not.
    """

    config_class = PairscaleConfig
    base_model_prefix = "model"

    def __init__(self, config: PairscaleConfig):
        super().__init__(config)
        self.model = Body(config, config.vocab_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module | None:
        """Return the table of embeddings, or None for an adaptive vocabulary, which has several tables."""
        return None if self.model.adaptive is not None else self.model.embedding

    def get_output_embeddings(self) -> None:
        """Return None, because the softmax weights do not form a separate module."""

    def _init_weights(self, module: nn.Module) -> None:
        """Do nothing, because the model draws its own weights."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
        **others: Any,
    ) -> CausalLMOutput:
        """Return the logits of the last `logits_to_keep` places (0: all) and, with `labels`, their mean loss in nats.

        Pass the inputs themselves as `labels`: each is predicted from those before it. Labels of -100 are ignored.
        Raises ValueError for padding on the left. Padding on the right doesn't change anything.
        """
        if attention_mask is not None and attention_mask.dim() == 2 and bool((attention_mask.diff(dim=1) > 0).any()):
            raise ValueError("Padding on the left would be read as text. Set tokenizer.padding_side = 'right'.")
        hidden, _ = self.model(input_ids, self.model.initial_state(len(input_ids)))
        if labels is None:
            return CausalLMOutput(logits=self._logits(hidden[:, -logits_to_keep:]))
        predicted = labels[:, 1:] != -100
        loss = self.model.loss(hidden[:, :-1][predicted], labels[:, 1:][predicted]) / predicted.sum()
        return CausalLMOutput(loss=loss, logits=self._logits(hidden))

    def _logits(self, hidden: Tensor) -> Tensor:
        """Return logits or, for an adaptive vocabulary, log-probabilities (B, T, V) for hidden states (B, T, D)."""
        if self.model.adaptive is not None:
            return self.model.adaptive.log_softmax(hidden)
        return F.linear(hidden, *self.model.softmax)
