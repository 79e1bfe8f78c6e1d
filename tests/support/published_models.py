"""Define modules with the names, attributes and shapes of published checkpoints, and their predictions as plain loops.

The modules only contain weights. The loops follow the papers (Hochreiter and Schmidhuber 1997; Dai et al. 2019, section
3.3; Grave et al. 2017), and compute one number or one pair of positions at a time.
"""

import math
import sys
import types
import warnings
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn


class RNNModel(nn.Module):
    def __init__(self, words, embedding, hidden, layers, tied=False, kind="LSTM"):
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.encoder = nn.Embedding(words, embedding)
        self.rnn = getattr(nn, kind)(embedding, hidden, layers)
        self.decoder = nn.Linear(hidden, words)
        if tied:
            self.decoder.weight = self.encoder.weight
        self.rnn_type, self.nhid, self.nlayers = kind, hidden, layers


class PositionalEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("inv_freq", torch.ones(width // 2))


class PositionwiseFF(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        parts = [nn.Linear(width, inner), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(inner, width)]
        self.CoreNet = nn.Sequential(*parts, nn.Dropout(0.1))
        self.layer_norm = nn.LayerNorm(width)


class RelPartialLearnableMultiHeadAttn(nn.Module):
    def __init__(self, width, heads, size, pre_norm):
        super().__init__()
        self.pre_lnorm = pre_norm
        self.dropatt = nn.Dropout(0.2)
        self.qkv_net = nn.Linear(width, 3 * heads * size, bias=False)
        self.o_net = nn.Linear(heads * size, width, bias=False)
        self.layer_norm = nn.LayerNorm(width)
        self.r_net = nn.Linear(width, heads * size, bias=False)


class RelPartialLearnableDecoderLayer(nn.Module):
    def __init__(self, width, heads, size, inner, pre_norm):
        super().__init__()
        self.dec_attn = RelPartialLearnableMultiHeadAttn(width, heads, size, pre_norm)
        self.pos_ff = PositionwiseFF(width, inner)


class AdaptiveEmbedding(nn.Module):
    def __init__(self, sizes, widths, width):
        super().__init__()
        self.emb_layers = nn.ModuleList(nn.Embedding(n, w) for n, w in zip(sizes, widths, strict=True))
        self.emb_projs = nn.ParameterList()
        if len(widths) > 1 or widths[0] != width:
            self.emb_projs = nn.ParameterList(torch.zeros(width, w) for w in widths)


class ProjectedAdaptiveLogSoftmax(nn.Module):
    def __init__(self, words, cutoffs, sizes, widths, width):
        super().__init__()
        self.cutoffs = [*cutoffs, words]
        if cutoffs:
            self.cluster_weight = nn.Parameter(torch.zeros(len(cutoffs), widths[0]))
            self.cluster_bias = nn.Parameter(torch.zeros(len(cutoffs)))
        self.out_layers = nn.ModuleList(nn.Linear(w, n) for n, w in zip(sizes, widths, strict=True))
        self.out_projs = nn.ParameterList()
        if len(widths) > 1 or widths[0] != width:
            out = widths if len(widths) > 1 else widths * (len(cutoffs) + 1)
            self.out_projs = nn.ParameterList(torch.zeros(width, w) for w in out)


class MemTransformerLM(nn.Module):
    def __init__(
        self, words, cutoffs=(), embedding=8, div=1, pre_norm=False, same=False, clamp=-1, memory=5, tied=True
    ):
        super().__init__()
        self.attn_type, self.n_head = 0, 2
        self.mem_len, self.same_length, self.clamp_len = memory, same, clamp
        bounds = [0, *cutoffs, words] if div > 1 else [0, words]
        sizes = [b - a for a, b in pairwise(bounds)]
        widths = [embedding // div**i for i in range(len(sizes))]
        self.word_emb = AdaptiveEmbedding(sizes, widths, 8)
        self.drop = nn.Dropout(0.1)
        self.layers = nn.ModuleList(RelPartialLearnableDecoderLayer(8, 2, 3, 10, pre_norm) for _ in range(2))
        self.crit = ProjectedAdaptiveLogSoftmax(words, list(cutoffs), sizes, widths, 8)
        if tied:
            for table, out in zip(self.word_emb.emb_layers, self.crit.out_layers, strict=True):
                out.weight = table.weight
            for i in range(1, len(self.crit.out_projs)):
                self.crit.out_projs[i] = self.word_emb.emb_projs[i if div > 1 else 0]
        self.pos_emb = PositionalEmbedding(8)
        self.r_w_bias = nn.Parameter(torch.zeros(2, 3))
        self.r_r_bias = nn.Parameter(torch.zeros(2, 3))


class Vocab:
    def __init__(self, words, lower_case=False):
        self.counter, self.special, self.lower_case = Counter(words), ["<eos>"], lower_case
        self.idx2sym, self.sym2idx = words, OrderedDict((word, index) for index, word in enumerate(words))


class Corpus:
    def __init__(self, vocab):
        self.dataset, self.vocab, self.train = "wt103", vocab, torch.arange(9)


PUBLISHED = {
    "model": [RNNModel],
    "proj_adaptive_softmax": [ProjectedAdaptiveLogSoftmax],
    "data_utils": [Corpus],
    "utils.vocabulary": [Vocab],
    "mem_transformer": [
        PositionalEmbedding,
        PositionwiseFF,
        RelPartialLearnableMultiHeadAttn,
        RelPartialLearnableDecoderLayer,
        AdaptiveEmbedding,
        MemTransformerLM,
    ],
}
for _name, _classes in PUBLISHED.items():
    for _class in _classes:
        _class.__module__ = _name


@contextmanager
def importable() -> Iterator[None]:
    """Let pickles import the modules that they name, but only within this context."""
    modules = {name: types.ModuleType(name) for name in ("utils", *PUBLISHED)}
    for name, classes in PUBLISHED.items():
        vars(modules[name]).update({cls.__name__: cls for cls in classes})
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def save(value, path: Path, old: bool = False, **options) -> Path:
    """Save a value with torch, in the current or the `old` format. Return the path."""
    with importable(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the older format looks for the source of each class
        torch.save(value, path, _use_new_zipfile_serialization=not old, **options)
    return path


def randomised(model, seed=0):
    """Draw random weights for a model, including biases and norms, and return it."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(1.0 if "layer_norm.weight" in name else 0.0, 0.5, generator=generator)
    return model.eval()


def lstm_logprobs(model, tokens):
    """Return ln p of the next token (T, V), computed gate by gate (input, forget, cell, output)."""
    weights = {name: weight.double() for name, weight in model.state_dict().items()}
    layers = range(model.nlayers)
    h = [torch.zeros(model.nhid, dtype=torch.float64) for _ in layers]
    c = [torch.zeros(model.nhid, dtype=torch.float64) for _ in layers]
    rows = []
    for token in tokens:
        x = weights["encoder.weight"][token]
        for k in layers:
            summed = weights[f"rnn.weight_ih_l{k}"] @ x + weights[f"rnn.bias_ih_l{k}"]
            summed = summed + weights[f"rnn.weight_hh_l{k}"] @ h[k] + weights[f"rnn.bias_hh_l{k}"]
            i, f, g, o = summed.chunk(4)
            c[k] = f.sigmoid() * c[k] + i.sigmoid() * g.tanh()
            x = h[k] = o.sigmoid() * c[k].tanh()
        rows.append((weights["decoder.weight"] @ x + weights["decoder.bias"]).log_softmax(0))
    return torch.stack(rows)


def txl_logprobs(model, segments):
    """Return ln p of the next token (T, V) in all segments. Each is read with a memory of earlier segments."""
    weights = {name: weight.double() for name, weight in model.state_dict().items()}
    memories = [[] for _ in model.layers]
    rows = []
    for tokens in segments:
        x = [_embedded(model, weights, token) * math.sqrt(8) for token in tokens]
        for number, layer in enumerate(model.layers):
            past = memories[number] + x
            memories[number] = past[len(past) - model.mem_len :] if model.mem_len < len(past) else past
            x = _layer(model, layer.double(), weights, past, len(x))
        rows += [_softmax(model, weights, hidden) for hidden in x]
    model.float()
    return torch.stack(rows)


def _embedded(model, weights, token):
    tables = len(model.word_emb.emb_layers)
    cluster, start = 0, 0
    while tables > 1 and token - start >= len(weights[f"word_emb.emb_layers.{cluster}.weight"]):
        start += len(weights[f"word_emb.emb_layers.{cluster}.weight"])
        cluster += 1
    embedded = weights[f"word_emb.emb_layers.{cluster}.weight"][token - start]
    projection = weights.get(f"word_emb.emb_projs.{cluster}")
    return embedded if projection is None else projection @ embedded


def _layer(model, layer, weights, past, length):
    """Apply section 3.3: compute q·k + q·r + u·k + v·r for each query and each key that it sees."""
    attention, pre = layer.dec_attn, layer.dec_attn.pre_lnorm
    inputs = [attention.layer_norm(p) for p in past] if pre else past
    projections = [attention.qkv_net.weight @ p for p in inputs]  # queries, keys and values of 2 heads of width 3
    outputs = []
    for i in range(length):
        at, heads = len(past) - length + i, []
        for head in range(2):
            part = slice(3 * head, 3 * head + 3)
            scores, values = [], []
            for j in range(at + 1):
                if model.same_length and at - j >= model.mem_len:
                    continue
                distance = min(at - j, model.clamp_len) if model.clamp_len > 0 else at - j
                angles = [distance / 10000 ** (2 * k / 8) for k in range(4)]
                sinusoid = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)], dtype=torch.float64)
                q, k, r = (
                    projections[at][:6][part],
                    projections[j][6:12][part],
                    (attention.r_net.weight @ sinusoid)[part],
                )
                u, v = weights["r_w_bias"][head], weights["r_r_bias"][head]
                scores.append((q @ k + q @ r + u @ k + v @ r) / math.sqrt(3))
                values.append(projections[j][12:][part])
            heads.append(torch.stack(scores).softmax(0) @ torch.stack(values))
        summed = past[at] + attention.o_net.weight @ torch.cat(heads)
        x = summed if pre else attention.layer_norm(summed)
        feed_forward = layer.pos_ff
        inner = torch.relu(feed_forward.CoreNet[0](feed_forward.layer_norm(x) if pre else x))
        summed = x + feed_forward.CoreNet[3](inner)
        outputs.append((summed if pre else feed_forward.layer_norm(summed)).detach())
    return outputs


def _softmax(model, weights, hidden):
    """Return ln p of each word. The head's last entry belongs to cluster 1, the one before it to cluster 2."""
    bounds = [0, *model.crit.cutoffs]
    clusters = len(bounds) - 2
    single = len(model.crit.out_layers) == 1
    parts = []
    for cluster, (start, end) in enumerate(pairwise(bounds)):
        projection = weights.get(f"crit.out_projs.{cluster}")
        state = hidden if projection is None else projection.T @ hidden
        weight, bias = (weights[f"crit.out_layers.{0 if single else cluster}.{kind}"] for kind in ("weight", "bias"))
        logits = (weight[start:end] @ state + bias[start:end]) if single else weight @ state + bias
        if cluster == 0 and clusters:
            entries = weights["crit.cluster_weight"] @ state + weights["crit.cluster_bias"]
            head = torch.cat([logits, entries]).log_softmax(0)
            parts.append(head[: len(logits)])
        else:
            parts.append(logits.log_softmax(0) + (head[-cluster] if cluster else 0))
    return torch.cat(parts)
