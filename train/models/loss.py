"""Compute the softmax and its cross-entropy without keeping all logits of a batch in memory.

The logits of a batch (tokens x vocabulary) are by far the largest array in training. For 4,480 tokens and 50,000 words,
it takes 900 MB, and autograd keeps several such arrays. Here a buffer contains the logits of one chunk of tokens at a
time. In training, the gradient of the loss replaces them at once, so that the backward pass only scales three small
results. Apart from the three matrix products, a CPU processes a few rows at a time, which fit in its cache.

Under autocast, matrix products use the lower precision, including their inputs, results and gradients. Softmax and sums
are float32, or float64 if the hidden states are. This file travels with the weights (train/models/travel.py).
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Size of the products per chunk. Smaller chunks read the weights too often, and larger ones gain nothing. With
# gradients, each chunk also reads and writes the gradient of all weights.
CHUNK_BYTES = 64 * 2**20
GRADIENT_CHUNK_BYTES = 256 * 2**20
GPU_CHUNK_LOGITS = 2**28  # with gradients on a GPU, where a few large products are faster (docs/benchmarks.md)
BLOCK_BYTES = 4 * 2**20  # size of a block of logits that fits in a CPU's cache


def cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Return the sum over tokens of -ln p(target), in nats, as a scalar in float32 or better.

    The logits are hidden @ weight.T + bias. Unless gradients are off, the forward pass also computes the gradients of
    hidden, weight and bias.

    Args:
        hidden: hidden states (N, D).
        weight: output weights (V, D).
        bias: output bias (V,).
        targets: ids of the target tokens (N,), int64.
    """
    if not torch.is_grad_enabled():
        return -token_logprobs(hidden, weight, bias, targets).sum()
    loss: Tensor = _CrossEntropy.apply(hidden, weight, bias, targets)  # type: ignore[no-untyped-call]
    return loss


@torch.no_grad()
def token_logprobs(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, rows: Tensor | None = None) -> Tensor:
    """Return ln p(target) (N,) in nats for each target, in float32 or better, without gradient.

    Shapes are as in `cross_entropy`. With increasing `rows` (N,) int64, hidden is (M, D) and target i follows
    hidden[rows[i]]. The softmax of a hidden state is computed once, however many targets follow it.
    """
    result = torch.empty(len(targets), dtype=_exact(hidden), device=hidden.device)
    rows = torch.arange(len(hidden)) if rows is None else rows
    places, rows = rows.cpu(), rows.to(hidden.device)  # copied once, so that no block waits for a GPU
    for start, logprobs in _logprob_blocks(hidden, weight, bias):
        first, last = torch.searchsorted(places, torch.tensor([start, start + len(logprobs)])).tolist()
        result[first:last] = logprobs[rows[first:last] - start, targets[first:last]]
    return result


@torch.no_grad()
def all_logprobs(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ln p (N, V) in nats of all tokens, in float32 or better, without gradient. Use it only for small N.

    Shapes are as in `cross_entropy`.
    """
    result = torch.empty(len(hidden), len(weight), dtype=_exact(hidden), device=hidden.device)
    for start, logprobs in _logprob_blocks(hidden, weight, bias):
        result[start : start + len(logprobs)] = logprobs
    return result


def _logprob_blocks(hidden: Tensor, weight: Tensor, bias: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yield the first row of each block and its ln p of all tokens (n, V), in nats. The caller may overwrite them."""
    for part, products in _product_chunks(hidden.to(_fast(hidden)), weight.to(_fast(weight)), CHUNK_BYTES):
        for block, logits in _logit_blocks(products, bias, _exact(hidden)):
            yield part.start + block.start, torch.log_softmax(logits, dim=-1, out=logits)


class _CrossEntropy(torch.autograd.Function):
    """A loss with its gradients: the derivative of -ln softmax(z)[t] with respect to z is softmax(z) - onehot(t)."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        exact = _exact(hidden)
        low, low_weight = hidden.to(_fast(hidden)), weight.to(_fast(weight))
        loss = torch.zeros((), dtype=exact, device=hidden.device)
        hidden_grad = torch.empty_like(low)
        weight_grad: Tensor | None = None
        bias_grad = torch.zeros_like(bias, dtype=exact)
        with torch.autocast(hidden.device.type, enabled=False):
            most = GRADIENT_CHUNK_BYTES if hidden.device.type == "cpu" else GPU_CHUNK_LOGITS * low.itemsize
            for part, products in _product_chunks(low, low_weight, most):
                for rows, logits in _logit_blocks(products, bias, exact):
                    index = targets[part][rows, None]
                    # p(target) may underflow, so ln p(target) is ln p of the largest logit plus the logits' difference.
                    above = logits.gather(1, index) - logits.amax(1, keepdim=True)
                    gradient = torch.softmax(logits, dim=-1, out=logits)
                    loss -= (above + gradient.amax(1, keepdim=True).log()).sum()
                    gradient.scatter_add_(1, index, gradient.new_full(index.shape, -1.0))
                    bias_grad += gradient.sum(0)
                    if low.dtype != exact:
                        products[rows].copy_(gradient)
                torch.mm(products, low_weight, out=hidden_grad[part])
                if weight_grad is None:
                    weight_grad = (products.T @ low[part]).to(exact)
                elif low.dtype == exact:
                    weight_grad.addmm_(products.T, low[part])
                else:
                    weight_grad += products.T @ low[part]
        if weight_grad is None:
            weight_grad = torch.zeros_like(weight)
        ctx.save_for_backward(hidden_grad.to(hidden.dtype), weight_grad.to(weight.dtype), bias_grad.to(bias.dtype))
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients = [
            (saved * upstream).to(saved.dtype) if needed else None
            for saved, needed in zip(ctx.saved_tensors, ctx.needs_input_grad, strict=False)
        ]
        return (*gradients, None)


def _exact(tensor: Tensor) -> torch.dtype:
    """Return the type for sums and softmax: float32, or float64 if the input is float64."""
    return torch.promote_types(tensor.dtype, torch.float32)


def _fast(tensor: Tensor) -> torch.dtype:
    """Return the type for matrix products: autocast's type if autocast is on, else the input's."""
    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else tensor.dtype


def _product_chunks(hidden: Tensor, weight: Tensor, most_bytes: int) -> Iterator[tuple[slice, Tensor]]:
    """Yield the slice of each chunk and its products (n, V), at most `most_bytes`. The caller may overwrite them."""
    count, vocabulary = len(hidden), len(weight)
    chunks = -(-count * vocabulary * hidden.dtype.itemsize // most_bytes)
    size = max(1, -(-count // max(1, chunks)))  # chunks of equal size, without a small remainder
    whole = torch.empty(min(size, count), vocabulary, dtype=hidden.dtype, device=hidden.device)
    for start in range(0, count, size):
        part = slice(start, min(start + size, count))
        with torch.autocast(hidden.device.type, enabled=False):
            products = torch.mm(hidden[part], weight.T, out=whole[: part.stop - start])
        yield part, products  # outside the block above, so that the caller keeps its own autocast


def _logit_blocks(products: Tensor, bias: Tensor, exact: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
    """Yield the slice of each block of `products` (n, V), and its logits in type `exact`, for the caller to overwrite.

    If the products have that type, they become the logits in place. A block fits in a CPU's cache. On a GPU, there is
    one block.
    """
    count, vocabulary = products.shape
    size = max(1, BLOCK_BYTES // (vocabulary * exact.itemsize)) if products.device.type == "cpu" else count
    bias = bias.to(exact)
    own = None
    if products.dtype != exact:
        own = torch.empty(min(size, count), vocabulary, dtype=exact, device=products.device)
    for start in range(0, count, size):
        rows = slice(start, min(start + size, count))
        logits = products[rows] if own is None else own[: rows.stop - start].copy_(products[rows])
        yield rows, logits.add_(bias)


class AdaptiveVocabulary(nn.Module):
    """Embeddings and softmax that divide the vocabulary into clusters. Cluster i starts with the id `starts[i]`.

    The softmax has two levels (Grave et al. 2017, section 4). The first contains the frequent words and one entry for
    each cluster of rarer words. The second contains the words of a cluster. The embeddings of cluster i have width
    w_i = `embedding // div_val**i` and are projected to the model's width (Baevski and Auli 2019, section 3).
    Probabilities over the whole vocabulary are exact for any order of the ids, and fast to compute if the most frequent
    words come first.

    Cluster 0 is the head. Its softmax has C-1 further entries, one for each other cluster. There are projections
    (D, w_i) from and to the model's width D unless all clusters have that width.
    """

    def __init__(self, config: Any, vocabulary: int):
        """Create the weights without initial values, which the model draws."""
        super().__init__()
        self.starts = [0, *config.cutoffs, vocabulary]
        self.width = config.d_model
        sizes = [end - start for start, end in zip(self.starts, self.starts[1:], strict=False)]
        widths = config.widths
        projected = config.div_val > 1 or widths[0] != config.d_model
        self.tables = nn.ParameterList(torch.empty(size, width) for size, width in zip(sizes, widths, strict=True))
        self.untied = None if config.tied else nn.ParameterList(torch.empty_like(table) for table in self.tables)
        self.biases = nn.ParameterList(torch.zeros(size) for size in sizes)
        self.cluster_weight = nn.Parameter(torch.empty(len(sizes) - 1, widths[0]))
        self.cluster_bias = nn.Parameter(torch.zeros(len(sizes) - 1))
        shapes = [(config.d_model, width) for width in widths] if projected else []
        own = shapes[:1] if config.tied_projections else shapes  # as published, the head's is never tied
        self.projections = nn.ParameterList(torch.empty(shape) for shape in shapes)
        self.output_projections = nn.ParameterList(torch.empty(shape) for shape in own)

    def draw_projections(self) -> None:
        """Draw the projections from N(0, 1/w_i), so that embeddings and logits are as large as without them."""
        for projection in (*self.projections, *self.output_projections):
            nn.init.normal_(projection, 0.0, projection.shape[1] ** -0.5)

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the embeddings (..., D) of tokens (...) int64."""
        flat = tokens.reshape(-1)
        embedded = self.tables[0].new_zeros(len(flat), self.width)
        for cluster, table in enumerate(self.tables):
            rows = self._rows(flat, cluster)
            own = F.embedding(flat[rows] - self.starts[cluster], table)
            if self.projections:
                own = F.linear(own, self.projections[cluster])
            embedded.index_copy_(0, rows, own.to(embedded.dtype))  # autocast may have lowered their precision
        shaped: Tensor = embedded.view(*tokens.shape, self.width)
        return shaped

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the scalar sum of -ln p(target), in nats, for targets (N,) after hidden states (N, D)."""
        first, *others = (
            cross_entropy(self._projected(hidden[rows], cluster), *self._softmax(cluster), entries)
            for cluster, rows, entries in self._parts(targets)
        )
        return sum(others, first)

    @torch.no_grad()
    def logprobs(self, hidden: Tensor, targets: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return ln p(target) (N,) in nats for targets (N,) after hidden states (M, D), like `token_logprobs`."""
        rows = torch.arange(len(hidden), device=hidden.device) if rows is None else rows
        result = torch.zeros(len(targets), dtype=_exact(hidden), device=hidden.device)
        for cluster, chosen, entries in self._parts(targets):
            followed, place = torch.unique_consecutive(rows[chosen], return_inverse=True)
            states = self._projected(hidden[followed], cluster)
            result[chosen] += token_logprobs(states, *self._softmax(cluster), entries, place)
        return result

    def log_softmax(self, hidden: Tensor) -> Tensor:
        """Return ln p (..., V) in nats for every token after hidden states (..., D), in float32 or better."""
        head, *others = (
            F.linear(self._projected(hidden, cluster), *self._softmax(cluster)).log_softmax(-1, dtype=_exact(hidden))
            for cluster in range(len(self.tables))
        )
        words = self.starts[1]
        return torch.cat([head[..., :words], *(head[..., words + i, None] + part for i, part in enumerate(others))], -1)

    def _rows(self, ids: Tensor, cluster: int) -> Tensor:
        """Return the places in ids (N,) that belong to a cluster."""
        inside: Tensor = (ids >= self.starts[cluster]) & (ids < self.starts[cluster + 1])
        return inside.nonzero().squeeze(1)

    def _parts(self, targets: Tensor) -> Iterator[tuple[int, slice | Tensor, Tensor]]:
        """Yield each cluster, the places in targets (N,) for which its softmax has an entry, and these entries.

        The head has an entry for every target: the word itself, or the cluster of a rarer word.
        """
        bounds = torch.tensor(self.starts[1:-1], device=targets.device, dtype=targets.dtype)
        clusters = torch.bucketize(targets, bounds, right=True)
        yield 0, slice(None), torch.where(clusters == 0, targets, self.starts[1] + clusters - 1)
        for cluster in range(1, len(self.tables)):
            rows = self._rows(targets, cluster)
            yield cluster, rows, targets[rows] - self.starts[cluster]

    def _softmax(self, cluster: int) -> tuple[Tensor, Tensor]:
        """Return the weights (n, w) and biases (n,) of a cluster. The head has a row for each other cluster, too."""
        weight, bias = (self.tables if self.untied is None else self.untied)[cluster], self.biases[cluster]
        if cluster > 0:
            return weight, bias
        return torch.cat([weight, self.cluster_weight]), torch.cat([bias, self.cluster_bias])

    def _projected(self, hidden: Tensor, cluster: int) -> Tensor:
        """Project hidden states (N, D) to (N, w), the width w of a cluster."""
        if not self.projections:
            return hidden
        own = cluster < len(self.output_projections)
        projection: Tensor = (self.output_projections if own else self.projections)[cluster]
        return hidden @ projection
