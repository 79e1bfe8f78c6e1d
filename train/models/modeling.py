"""Make our own models loadable with transformers (AutoModelForCausalLM, AutoModel). The file travels with weights."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput

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


class PairscaleModel(PreTrainedModel):
    """A language model without its softmax, which maps tokens (B, T) to hidden states (B, T, D).

    Begin each text with `<eos>` (id 0). It is read from an empty state. Padding on either side doesn't change the
    hidden states of the text.
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

    def hidden(self, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return the hidden states (B, T, D). Raises ValueError if padding is within a text."""
        state = self.model.initial_state(len(input_ids))
        mask = attention_mask.long() if attention_mask is not None and attention_mask.dim() == 2 else None
        if mask is None or not bool((mask.diff(dim=1) > 0).any()):
            return self.model(input_ids, state)[0]
        # Padding on the left moves to the right, where no later token reads it, and back.
        left = mask.argmax(1, keepdim=True)
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        moved, back = (places + left) % len(places), (places - left) % len(places)
        if bool((mask.gather(1, moved).diff(dim=1) > 0).any()):
            raise ValueError("attention_mask: padding must be before or after a text, not within it.")
        found: Tensor = self.model(input_ids.gather(1, moved), state)[0]
        return found.gather(1, back[..., None].expand_as(found))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **others: Any) -> BaseModelOutput:
        """Return the hidden states (B, T, D) as `last_hidden_state`. Raises ValueError if padding is within a text."""
        return BaseModelOutput(last_hidden_state=self.hidden(input_ids, attention_mask))


class PairscaleForCausalLM(PairscaleModel, GenerationMixin):
    """A language model that maps tokens (B, T) to logits (B, T, V) for the next tokens."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
        **others: Any,
    ) -> CausalLMOutput:
        """Return the logits of the last `logits_to_keep` places (0: all) and, with `labels`, their mean loss in nats.

        Pass the inputs themselves as `labels`: each is predicted from those before it. Labels of -100 and the first one
        after padding are ignored. Raises ValueError if padding is within a text.
        """
        hidden = self.hidden(input_ids, attention_mask)
        if labels is None:
            return CausalLMOutput(logits=self._logits(hidden[:, -logits_to_keep:]))
        predicted = labels[:, 1:] != -100
        if attention_mask is not None and attention_mask.dim() == 2:
            predicted &= attention_mask[:, :-1] > 0
        loss = self.model.loss(hidden[:, :-1][predicted], labels[:, 1:][predicted]) / predicted.sum()
        return CausalLMOutput(loss=loss, logits=self._logits(hidden))

    def _logits(self, hidden: Tensor) -> Tensor:
        """Return logits or, for an adaptive vocabulary, log-probabilities (B, T, V) for hidden states (B, T, D)."""
        if self.model.adaptive is not None:
            return self.model.adaptive.log_softmax(hidden)
        return F.linear(hidden, *self.model.softmax)
