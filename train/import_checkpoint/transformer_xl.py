"""The Transformer-XL of Dai et al. 2019, as its authors' PyTorch code saves it (`model.pt`)."""

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from pairscale.errors import ConfigError, InputError
from train.import_checkpoint.contents import Contents, Imported
from train.import_checkpoint.vocabulary import Vocabulary
from train.models.config import ImportedConfig, TxlConfig

UNUSED_SD = 0.02  # of weights that are never drawn


def read_txl(contents: Contents, config: ImportedConfig, vocabulary: Vocabulary) -> Imported:
    """A model with their own attention (attn_type 0), with adaptive embeddings and softmax or without.

    Raises InputError for other attention, a sampled softmax or a vocabulary's size, ConfigError if values are missing.
    """
    if contents.attribute("", "attn_type", int, 0) != 0 or "r_emb" in contents.tensors:
        raise InputError(f"{contents.path}: of attn_type 1, 2 or 3; only 0, the Transformer-XL's own, can be imported")
    if "out_layer.weight" in contents.tensors:
        raise InputError(f"{contents.path}: trained with a sampled softmax (sample_softmax), which cannot be imported")
    run = _run_values(contents, config)
    u, v = (contents.take(name, None, None) for name in ("r_w_bias", "r_r_bias"))
    weights = {"u": u[:, None, None], "v": v[:, None, None]}  # (H, 1, 1, d), of all layers
    heads, d_head = u.shape
    d_model = contents.size("layers.0.dec_attn.layer_norm.weight")
    d_inner = contents.size("layers.0.pos_ff.CoreNet.0.bias")
    layers = contents.count(r"layers\.\d+\.dec_attn\.qkv_net\.weight")
    for layer in range(layers):
        weights |= _layer(contents, layer, d_model, d_inner, heads * d_head)
    words, word_weights = _words(contents, config, vocabulary, d_model)
    contents.drop("pos_emb.inv_freq")
    contents.check_empty()
    schema = TxlConfig(
        name=config.name,
        layers=layers,
        d_model=d_model,
        heads=heads,
        d_head=d_head,
        d_inner=d_inner,
        dropout=float(contents.attribute("drop", "p", float, 0.0)),
        attention_dropout=float(contents.attribute("layers.0.dec_attn.dropatt", "p", float, 0.0)),
        initial_sd=UNUSED_SD,
        **run,
        **words,
    )
    return Imported(schema, weights | word_weights)


def _run_values(contents: Contents, config: ImportedConfig) -> dict[str, Any]:
    """Return values that are in no weight, from the configuration, else (memory may differ) the pickled modules."""
    places: dict[str, tuple[str, str, type]] = {
        "memory": ("", "mem_len", int),
        "same_length": ("", "same_length", bool),
        "clamp_len": ("", "clamp_len", int),
        "pre_norm": ("layers.0.dec_attn", "pre_lnorm", bool),
    }
    values = {}
    for key, (module, name, kind) in places.items():
        configured = getattr(config, key)
        values[key] = contents.attribute(module, name, kind) if configured is None else configured
    missing = [f"model.{key}=" for key, value in values.items() if value is None]
    if missing:
        raise ConfigError(f"{contents.path}: does not say how the model was run; give {', '.join(missing)}")
    if values["clamp_len"] < 1:
        values["clamp_len"] = None  # theirs is -1 for no limit
    return values


def _layer(contents: Contents, layer: int, d_model: int, d_inner: int, width: int) -> dict[str, Tensor]:
    ours = f"layers.{layer}"
    attention, feed_forward = f"{ours}.dec_attn", f"{ours}.pos_ff"  # the names of layers are the same
    packed = contents.take(f"{attention}.qkv_net.weight", 3 * width, d_model)  # queries, keys, values
    return {
        f"{ours}.attention.query.weight": packed[:width],
        f"{ours}.attention.key_value.weight": packed[width:],
        f"{ours}.attention.distance.weight": contents.take(f"{attention}.r_net.weight", width, d_model),
        f"{ours}.attention.output.weight": contents.take(f"{attention}.o_net.weight", d_model, width),
        f"{ours}.attention_norm.weight": contents.take(f"{attention}.layer_norm.weight", d_model),
        f"{ours}.attention_norm.bias": contents.take(f"{attention}.layer_norm.bias", d_model),
        f"{ours}.inner.weight": contents.take(f"{feed_forward}.CoreNet.0.weight", d_inner, d_model),
        f"{ours}.inner.bias": contents.take(f"{feed_forward}.CoreNet.0.bias", d_inner),
        f"{ours}.outer.weight": contents.take(f"{feed_forward}.CoreNet.3.weight", d_model, d_inner),
        f"{ours}.outer.bias": contents.take(f"{feed_forward}.CoreNet.3.bias", d_model),
        f"{ours}.feed_forward_norm.weight": contents.take(f"{feed_forward}.layer_norm.weight", d_model),
        f"{ours}.feed_forward_norm.bias": contents.take(f"{feed_forward}.layer_norm.bias", d_model),
    }


def _words(
    contents: Contents, config: ImportedConfig, vocabulary: Vocabulary, d_model: int
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return fields of TxlConfig, and weights, of embeddings and softmax; with div_val 1 clusters share a table."""
    count = contents.count(r"word_emb\.emb_layers\.\d+\.weight")
    tables = [contents.take(f"word_emb.emb_layers.{i}.weight", None, None) for i in range(count)]
    outputs = [contents.take(f"crit.out_layers.{i}.weight", *table.shape) for i, table in enumerate(tables)]
    biases = [contents.take(f"crit.out_layers.{i}.bias", len(table)) for i, table in enumerate(tables)]
    vocabulary.check(contents.path, sum(map(len, tables)))
    cutoffs = _cutoffs(contents, config, [len(table) for table in tables])
    if count == 1:
        sizes = [end - start for start, end in zip([0, *cutoffs], [*cutoffs, len(vocabulary)], strict=True)]
        tables, outputs, biases = (list(torch.split(parts[0], sizes)) for parts in (tables, outputs, biases))
    widths = [table.shape[1] for table in tables]
    projections = [
        contents.take(f"word_emb.emb_projs.{i}", d_model, widths[i]) for i in range(contents.count(_PROJECTION))
    ]
    if len(projections) == 1:
        projections = [projections[0].clone() for _ in tables]
    back = [contents.take(f"crit.out_projs.{i}", d_model, widths[i]) for i in range(len(projections))]
    order = torch.tensor(_head_order(contents, vocabulary, len(tables[0])))
    for parts in (tables, outputs, biases):
        parts[0] = parts[0][order]
    tied = all(map(torch.equal, tables, outputs))
    # Usually the projections of all clusters but the head are tied; if not, they are separate.
    tied_back = len(back) > 1 and all(map(torch.equal, projections[1:], back[1:]))
    values = {
        "embedding": widths[0],
        "cutoffs": cutoffs,
        "div_val": _div_val(contents, widths, bool(projections), d_model),
        "tied": tied,
        "tied_projections": tied_back,
    }
    if not cutoffs and not projections:
        weights = {"embedding.weight": tables[0], "output_bias": biases[0]}
        return values, weights if tied else {**weights, "untied": outputs[0]}
    clusters = len(cutoffs)
    if clusters:
        # Their code takes the entry of cluster i from the end of the head's softmax: the last is of the first cluster.
        head_weight = contents.take("crit.cluster_weight", clusters, widths[0]).flip(0)
        head_bias = contents.take("crit.cluster_bias", clusters).flip(0)
    else:
        head_weight, head_bias = torch.empty(0, widths[0]), torch.empty(0)
    groups = {
        "tables": tables,
        "biases": biases,
        "untied": [] if tied else outputs,
        "projections": projections,
        "output_projections": back[:1] if tied_back else back,
    }
    weights = {f"adaptive.{name}.{i}": part for name, parts in groups.items() for i, part in enumerate(parts)}
    return values, weights | {"adaptive.cluster_weight": head_weight, "adaptive.cluster_bias": head_bias}


_PROJECTION = r"word_emb\.emb_projs\.\d+"


def _cutoffs(contents: Contents, config: ImportedConfig, rows: list[int]) -> list[int]:
    """Return the first ids of the clusters after the head, by tables, pickled softmax or configuration."""
    clusters = len(contents.tensors.get("crit.cluster_weight", []))
    stored: list[int] | None = None
    if len(rows) > 1 or not clusters:
        stored = list(accumulate(rows))[:-1]
    elif contents.attributes is not None:
        stored = contents.attribute("crit", "cutoffs", list, [])[:-1]  # the last is the size of the vocabulary
    if stored is None and config.cutoffs is None:
        raise ConfigError(
            f"{contents.path}: does not say where its {clusters} clusters begin; give model.cutoffs=[...]"
        )
    if None not in (stored, config.cutoffs) and stored != config.cutoffs:
        raise ConfigError(f"model.cutoffs={config.cutoffs}: those of {contents.path} are {stored}")
    cutoffs = list(config.cutoffs or [] if stored is None else stored)
    rising = all(isinstance(cutoff, int) for cutoff in cutoffs) and cutoffs == sorted({*cutoffs} - {0, sum(rows)})
    if len(cutoffs) != clusters or not rising or not all(0 < cutoff < sum(rows) for cutoff in cutoffs):
        raise ConfigError(
            f"{contents.path}: cutoffs {cutoffs}, must be {clusters} rising numbers of words below {sum(rows):,}"
        )
    return cutoffs


def _head_order(contents: Contents, vocabulary: Vocabulary, head: int) -> list[int]:
    """Return their id of each of our first `head` ids: only rows of the head can change places."""
    if max(vocabulary.order[:2]) >= head:
        raise InputError(
            f"{vocabulary.path}: <eos> or <unk> is not among the {head:,} words of the first cluster of "
            f"{contents.path}; such a model cannot be imported"
        )
    return vocabulary.order[:head]


def _div_val(contents: Contents, widths: list[int], projected: bool, d_model: int) -> int:
    """Return the divisor of the widths of the clusters."""
    if len(set(widths)) == 1 and not (projected and widths[0] == d_model):
        return 1
    for div_val in range(2, widths[0] + 1):
        if [widths[0] // div_val**i for i in range(len(widths))] == widths:
            return div_val
    raise InputError(f"{contents.path}: clusters of widths {widths}, must be divided by one number")
