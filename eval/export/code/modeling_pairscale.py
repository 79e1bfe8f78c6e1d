"""Language models trained by pairscale: recurrent networks and Transformer-XL, for AutoModelForCausalLM.

The recurrent networks are those of Gulordava et al. 2018, the Transformer-XL that of Dai et al. 2019, with adaptive
embeddings and softmax (Grave et al. 2017; Baevski and Auli 2019) if its vocabulary has clusters. A text begins with
`<eos>`, id 0, and is read from an empty state. Nothing after a token changes its prediction, so padding on the right
is harmless; padding on the left is not. There is no cache: each step of `generate` reads the text anew.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


class PairscaleConfig(PretrainedConfig):
    """A recurrent network (`kind`: lstm, gru, rnn) or a Transformer-XL (txl); `sizes` are pairscale's own names."""

    model_type = "pairscale"

    def __init__(self, kind: str = "lstm", sizes: dict[str, Any] | None = None, vocab_size: int = 2, **kwargs: Any):
        self.kind = kind
        self.sizes = sizes or {}
        self.vocab_size = vocab_size
        self.num_hidden_layers = self.sizes.get("layers")
        self.hidden_size = self.sizes.get("hidden", self.sizes.get("d_model"))
        kwargs.setdefault("bos_token_id", 0)
        kwargs.setdefault("eos_token_id", 0)
        kwargs["tie_word_embeddings"] = False  # tied weights are one parameter
        kwargs["use_cache"] = False
        super().__init__(**kwargs)


class AdaptiveVocabulary(nn.Module):
    """Words in clusters of falling frequency: ids from `starts[i]` to `starts[i + 1]`, the rarer ones narrower."""

    def __init__(self, vocabulary: int, sizes: dict[str, Any]):
        super().__init__()
        model, div_val = sizes["d_model"], sizes["div_val"]
        self.starts = [0, *sizes["cutoffs"], vocabulary]
        self.width = model
        counts = [end - start for start, end in zip(self.starts, self.starts[1:], strict=False)]
        widths = [(sizes["embedding"] or model) // div_val**cluster for cluster in range(len(counts))]
        tables = [(count, width) for count, width in zip(counts, widths, strict=True)]
        self.tables = _parameters(tables)
        self.untied = None if sizes["tied"] else _parameters(tables)
        self.biases = _parameters([(count,) for count in counts])
        self.cluster_weight = nn.Parameter(torch.zeros(len(counts) - 1, widths[0]))
        self.cluster_bias = nn.Parameter(torch.zeros(len(counts) - 1))
        shapes = [(model, width) for width in widths] if div_val > 1 or widths[0] != model else []
        self.projections = _parameters(shapes)
        self.output_projections = _parameters(shapes[:1] if sizes["tied_projections"] else shapes)

    def embed(self, tokens: Tensor) -> Tensor:
        """Return embeddings (B, T, D) of tokens (B, T)."""
        embedded = self.tables[0].new_zeros(*tokens.shape, self.width)
        for cluster, table in enumerate(self.tables):
            inside = (tokens >= self.starts[cluster]) & (tokens < self.starts[cluster + 1])
            own = table[tokens[inside] - self.starts[cluster]]
            embedded[inside] = own @ self.projections[cluster].T if len(self.projections) else own
        return embedded

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities (B, T, V) after hidden states (B, T, D), which are logits, too."""
        tables = self.tables if self.untied is None else self.untied
        head = F.linear(
            self._projected(hidden, 0),
            torch.cat([tables[0], self.cluster_weight]),
            torch.cat([self.biases[0], self.cluster_bias]),
        ).log_softmax(-1)
        frequent = self.starts[1]
        parts = [head[..., :frequent]]
        for cluster in range(1, len(tables)):
            within = F.linear(self._projected(hidden, cluster), tables[cluster], self.biases[cluster]).log_softmax(-1)
            parts.append(head[..., frequent + cluster - 1, None] + within)
        return torch.cat(parts, dim=-1)

    def _projected(self, hidden: Tensor, cluster: int) -> Tensor:
        if not len(self.projections):
            return hidden
        own = cluster < len(self.output_projections)
        return hidden @ (self.output_projections if own else self.projections)[cluster]


def _parameters(shapes: list[tuple[int, ...]]) -> nn.ParameterList:
    return nn.ParameterList(nn.Parameter(torch.zeros(shape)) for shape in shapes)


class Body(nn.Module):
    """Embeddings and softmax as one table each, one for both (`tied`), or adaptive; subclasses have what is between."""

    def __init__(
        self, vocabulary: int, embedding: int, hidden: int, tied: bool, adaptive: AdaptiveVocabulary | None = None
    ):
        super().__init__()
        self.adaptive = adaptive
        if adaptive is None:
            self.embedding = nn.Embedding(vocabulary, embedding)
            self.untied = None if tied else nn.Parameter(torch.zeros(vocabulary, hidden))
            self.output_bias = nn.Parameter(torch.zeros(vocabulary))

    def embed(self, tokens: Tensor) -> Tensor:
        """Return embeddings (B, T, E) of tokens (B, T)."""
        embedded: Tensor = self.embedding(tokens) if self.adaptive is None else self.adaptive.embed(tokens)
        return embedded

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits (B, T, V) of hidden states (B, T, D)."""
        if self.adaptive is not None:
            return self.adaptive.logits(hidden)
        return F.linear(hidden, self.embedding.weight if self.untied is None else self.untied, self.output_bias)


class Recurrent(Body):
    """Embeddings and a stack of recurrent layers."""

    def __init__(self, kind: str, vocabulary: int, sizes: dict[str, Any]):
        super().__init__(vocabulary, sizes["embedding"], sizes["hidden"], sizes["tied"])
        self.kind = kind
        between = sizes["dropout"] if sizes["layers"] > 1 else 0.0
        layers = LAYERS[kind](sizes["embedding"], sizes["hidden"], sizes["layers"], batch_first=True, dropout=between)
        self.add_module(kind, layers)
        self.dropout = nn.Dropout(sizes["dropout"])

    def forward(self, tokens: Tensor) -> Tensor:
        hidden, _ = self.get_submodule(self.kind)(self.dropout(self.embed(tokens)))
        dropped: Tensor = self.dropout(hidden)
        return dropped


class Attention(nn.Module):
    """Multi-head attention over content and relative distance (Dai et al. 2019, section 3.3)."""

    def __init__(self, sizes: dict[str, Any]):
        super().__init__()
        self.heads = sizes["heads"]
        width = self.heads * sizes["d_head"]
        self.query = nn.Linear(sizes["d_model"], width, bias=False)
        self.key_value = nn.Linear(sizes["d_model"], 2 * width, bias=False)
        self.distance = nn.Linear(sizes["d_model"], width, bias=False)
        self.output = nn.Linear(width, sizes["d_model"], bias=False)
        self.dropout = nn.Dropout(sizes["attention_dropout"])

    def forward(self, x: Tensor, encodings: Tensor, index: Tensor, seen: Tensor, u: Tensor, v: Tensor) -> Tensor:
        query = self._by_head(self.query(x))  # (B, H, T, d)
        key, value = (self._by_head(part) for part in self.key_value(x).chunk(2, dim=-1))
        distance = self._by_head(self.distance(encodings))  # (H, R, d)
        u, v = (bias.transpose(0, 1) for bias in (u, v))  # (1, H, 1, d)
        by_content = (query + u) @ key.transpose(-1, -2)  # (B, H, T, T)
        by_distance = (query + v) @ distance.transpose(-1, -2)  # (B, H, T, R)
        by_distance = by_distance.gather(-1, index.expand(*by_distance.shape[:2], -1, -1))
        scores = (by_content + by_distance) / math.sqrt(query.shape[-1])
        weights = self.dropout(scores.masked_fill(~seen, -math.inf).softmax(-1))
        attended: Tensor = self.output((weights @ value).transpose(1, 2).flatten(2))
        return attended

    def _by_head(self, x: Tensor) -> Tensor:
        """Return x (..., T, H * d) as (..., H, T, d)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(-2, -3)


class Layer(nn.Module):
    """Attention and a feed-forward block, normalised before (`pre_norm`) or after each."""

    def __init__(self, sizes: dict[str, Any]):
        super().__init__()
        self.attention = Attention(sizes)
        self.attention_norm = nn.LayerNorm(sizes["d_model"])
        self.inner = nn.Linear(sizes["d_model"], sizes["d_inner"])
        self.outer = nn.Linear(sizes["d_inner"], sizes["d_model"])
        self.feed_forward_norm = nn.LayerNorm(sizes["d_model"])
        self.dropout = nn.Dropout(sizes["dropout"])
        self.pre_norm = sizes["pre_norm"]

    def forward(self, x: Tensor, *distances: Tensor) -> Tensor:
        if self.pre_norm:
            x = x + self.dropout(self.attention(self.attention_norm(x), *distances))
            return x + self._feed_forward(self.feed_forward_norm(x))
        x = self.attention_norm(x + self.dropout(self.attention(x, *distances)))
        normed: Tensor = self.feed_forward_norm(x + self._feed_forward(x))
        return normed

    def _feed_forward(self, x: Tensor) -> Tensor:
        dropped: Tensor = self.dropout(self.outer(self.dropout(F.relu(self.inner(x)))))
        return dropped


class TransformerXL(Body):
    """Layers of relative attention over one text, without a memory of an earlier one."""

    def __init__(self, vocabulary: int, sizes: dict[str, Any]):
        model = sizes["d_model"]
        is_adaptive = sizes["cutoffs"] or sizes["div_val"] > 1 or (sizes["embedding"] or model) != model
        adaptive = AdaptiveVocabulary(vocabulary, sizes) if is_adaptive else None
        super().__init__(vocabulary, model, model, sizes["tied"], adaptive)
        self.sizes = sizes
        self.u = nn.Parameter(torch.zeros(sizes["heads"], 1, 1, sizes["d_head"]))
        self.v = nn.Parameter(torch.zeros(sizes["heads"], 1, 1, sizes["d_head"]))
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes["layers"]))
        self.dropout = nn.Dropout(sizes["dropout"])

    def forward(self, tokens: Tensor) -> Tensor:
        length, model = tokens.shape[1], self.sizes["d_model"]
        x = self.dropout(self.embed(tokens) * math.sqrt(model))
        places = torch.arange(length, device=tokens.device)
        index = places[:, None] - places  # (T, T): distance of query and key
        seen = index >= 0
        if self.sizes["same_length"]:
            seen = seen & (index < self.sizes["memory"])
        encodings = self.dropout(_sinusoids(places.clamp(0, self.sizes["clamp_len"]), model, x.dtype))
        for layer in self.layers:
            x = layer(x, encodings, index.clamp(min=0), seen, self.u, self.v)
        dropped: Tensor = self.dropout(x)
        return dropped


def _sinusoids(distances: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Return encodings (R, D) of distances (R,): sines, then cosines."""
    frequencies = 10000 ** (-torch.arange(0, width, 2, device=distances.device, dtype=dtype) / width)
    angles = distances[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class PairscaleForCausalLM(PreTrainedModel, GenerationMixin):
    """A language model: tokens (B, T) to logits (B, T, V) of the tokens after them."""

    config_class = PairscaleConfig
    base_model_prefix = "model"

    def __init__(self, config: PairscaleConfig):
        super().__init__(config)
        if config.kind == "txl":
            self.model: Body = TransformerXL(config.vocab_size, config.sizes)
        else:
            self.model = Recurrent(config.kind, config.vocab_size, config.sizes)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module | None:
        """Return the table of embeddings; None of an adaptive vocabulary, which has several."""
        return None if self.model.adaptive is not None else self.model.embedding

    def get_output_embeddings(self) -> None:
        """Return None: the softmax weights belong to no module of their own."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
        **_: Any,
    ) -> CausalLMOutput:
        """Return `logits`, of the last `logits_to_keep` places (0: all), and the mean `loss` of `labels` (-100: none).

        `labels` are the inputs themselves; each is predicted from those before it. Raises ValueError for padding on the
        left; on the right it changes nothing.
        """
        if attention_mask is not None and attention_mask.dim() == 2 and bool((attention_mask.diff(dim=1) > 0).any()):
            raise ValueError("padding on the left would be read as text: set tokenizer.padding_side = 'right'")
        hidden = self.model(input_ids)
        logits = self.model.logits(hidden[:, -logits_to_keep:] if labels is None else hidden)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten())
        return CausalLMOutput(loss=loss, logits=logits)
