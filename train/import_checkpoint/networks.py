"""The networks of published checkpoints and their vocabularies as ours.

They are the LSTM of Gulordava et al. 2018, as colorlessgreenRNNs saves it, and the Transformer-XL of Dai et al. 2019,
as its authors' PyTorch code does. `lstm` and `transformer_xl` return a configuration and the weights by our names. They
rename what they do not know, too, so that loading the weights tells other networks apart.
"""

from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from corpora.config import TokenizerConfig
from corpora.tokenizers import ListTokenizer
from pairscale.command.schemas import build
from pairscale.errors import ConfigError, InputError
from train.import_checkpoint.pickles import Checkpoint, Record, is_pickled, one_line_errors, read_torch_file
from train.models.config import ImportedConfig, LstmConfig, ModelConfig, TxlConfig

Network = tuple[ModelConfig, dict[str, Tensor]]

UNUSED_SD = 0.02  # of weights that are never drawn
LAYER = {  # parts of a layer of the Transformer-XL
    "dec_attn.r_net": "attention.distance",
    "dec_attn.o_net": "attention.output",
    "dec_attn.layer_norm": "attention_norm",
    "pos_ff.CoreNet.0": "inner",
    "pos_ff.CoreNet.3": "outer",
    "pos_ff.layer_norm": "feed_forward_norm",
}
PACKED = "dec_attn.qkv_net.weight"  # queries, keys, values


@dataclass(frozen=True)
class Vocabulary:
    """`words` by the checkpoint's ids; our id i is the checkpoint's id order[i], and `<eos>` is 0, `<unk>` is 1."""

    path: Path
    words: list[str]
    order: list[int]

    def order_of(self, rows: int, checkpoint: str) -> list[int]:
        """Return `order`. Raises InputError unless the checkpoint has a row for each word."""
        if rows != len(self.words):
            raise InputError(
                f"{self.path}: {len(self.words):,} words, but {checkpoint} has rows for {rows:,}: not its vocabulary"
            )
        return self.order

    def tokenizer(self, kind: Literal["whitespace", "word", "char", "jieba"]) -> ListTokenizer:
        """Return a tokenizer of these words."""
        schema = TokenizerConfig(
            name=kind, kind=kind, vocab_size=None, fit_on="train", fit_sentences=1, character_coverage=1.0
        )
        return ListTokenizer(schema, [self.words[index] for index in self.order[2:]])


def read_vocabulary(config: ImportedConfig, one_a_line: bool) -> Vocabulary:
    """Read the vocabulary of `config`: a text, or the pickled Vocab of the Transformer-XL code (cache.pt).

    A text has words between white space (colorlessgreenRNNs), or with `one_a_line` (Transformer-XL) at the beginnings
    of lines. Raises InputError for a file that is missing, damaged or without `config.eos` or `config.unk`.
    """
    beside = Path(config.checkpoint).expanduser().with_name("vocab.txt")
    path = Path(config.vocabulary).expanduser() if config.vocabulary else beside
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the checkpoint's vocabulary by model.vocabulary=FILE")
    with one_line_errors(path):
        words = _pickled_words(path) if is_pickled(path) else _text_words(path, one_a_line)
    ids = {word: index for index, word in enumerate(words)}  # the last of equal ones, as the authors do
    for key, special in (("eos", config.eos), ("unk", config.unk)):
        if special not in ids:
            raise InputError(f"{path}: has no {special}; give its word for it by model.{key}=WORD")
    first = [ids[config.eos], ids[config.unk]]
    if first[0] == first[1]:
        raise InputError(f"{path}: {config.eos} cannot be both model.eos and model.unk")
    return Vocabulary(path, words, [*first, *(index for index in range(len(words)) if index not in first)])


def _text_words(path: Path, one_a_line: bool) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 ({error})") from None
    if not one_a_line:
        return text.split()
    return list(dict.fromkeys(line.split()[0] for line in text.split("\n") if line.strip()))


def _pickled_words(path: Path) -> list[str]:
    """Return the words of a pickled Vocab, or of the Corpus that holds one (cache.pt)."""
    root = read_torch_file(path)
    if isinstance(root, Record) and root.name == "data_utils.Corpus":
        root = root.state["vocab"]
    if not (isinstance(root, Record) and root.name.endswith("vocabulary.Vocab")):
        raise InputError(f"{path}: holds no Vocab of the Transformer-XL code with its words")
    if root.state["lower_case"]:
        raise InputError(f"{path}: of text in lower case, which benchmarks are not in; it cannot be scored here")
    words = root.state["idx2sym"]
    if not all(isinstance(word, str) and word.split() == [word] for word in words):
        raise InputError(f"{path}: its Vocab has words that are none, or contain white space")
    return list(words)


def lstm(checkpoint: Checkpoint, config: ImportedConfig, vocabulary: Vocabulary) -> Network:
    """Return the LSTM, whose layers are torch's. Raises InputError for another vocabulary, ConfigError for values."""
    for key in ("memory", "same_length", "clamp_len", "pre_norm", "cutoffs"):
        if getattr(config, key) is not None:
            raise ConfigError(f"model.{key}: {config.checkpoint} is an LSTM; only a Transformer-XL has it")
    tensors = checkpoint.tensors
    embedding, output, bias = (tensors.pop(name) for name in ("encoder.weight", "decoder.weight", "decoder.bias"))
    order = vocabulary.order_of(len(embedding), config.checkpoint)
    tied = torch.equal(embedding, output)
    layers = sum(name.startswith("rnn.weight_ih_l") for name in tensors)
    dropout = float(checkpoint.attribute("drop", "p", 0.0))
    weights = {name.replace("rnn.", "lstm.", 1): tensor for name, tensor in tensors.items()}
    weights |= {"embedding.weight": embedding[order], "output_bias": bias[order]}
    weights |= {} if tied else {"untied": output[order]}
    return LstmConfig(
        name=config.name,
        embedding=embedding.shape[1],
        hidden=output.shape[1],
        layers=layers,
        dropout=dropout,
        tied=tied,
    ), weights


def transformer_xl(checkpoint: Checkpoint, config: ImportedConfig, vocabulary: Vocabulary) -> Network:
    """Return the Transformer-XL, with adaptive embeddings and softmax or without.

    Raises InputError for another vocabulary, ConfigError if the checkpoint lacks values.
    """
    run = _run_values(checkpoint, config)
    tensors = checkpoint.tensors
    tensors.pop("pos_emb.inv_freq", None)
    u, v = tensors.pop("r_w_bias"), tensors.pop("r_r_bias")
    heads, d_head = u.shape
    d_inner, d_model = tensors["layers.0.pos_ff.CoreNet.0.weight"].shape
    words, weights = _words(checkpoint, config, vocabulary, d_model)
    weights |= {"u": u[:, None, None], "v": v[:, None, None]}  # (H, 1, 1, d), of all layers
    for name, tensor in tensors.items():
        if name.endswith(PACKED):
            place = name.removesuffix(PACKED) + "attention"
            query, key_value = torch.split(tensor, [len(tensor) // 3, 2 * (len(tensor) // 3)])
            weights |= {f"{place}.query.weight": query, f"{place}.key_value.weight": key_value}
        else:
            for theirs, ours in LAYER.items():
                name = name.replace(theirs, ours)
            weights[name] = tensor
    values = dict(
        name=config.name,
        layers=sum(name.endswith(PACKED) for name in tensors),
        d_model=d_model,
        heads=heads,
        d_head=d_head,
        d_inner=d_inner,
        dropout=float(checkpoint.attribute("drop", "p", 0.0)),
        attention_dropout=float(checkpoint.attribute("layers.0.dec_attn.dropatt", "p", 0.0)),
        initial_sd=UNUSED_SD,
        **run,
        **words,
    )
    return build(TxlConfig, values, "model."), weights


def _run_values(checkpoint: Checkpoint, config: ImportedConfig) -> dict[str, Any]:
    """Return values that are in no weight, from the configuration, else from the pickled modules."""
    places = {
        "memory": ("", "mem_len"),
        "same_length": ("", "same_length"),
        "clamp_len": ("", "clamp_len"),
        "pre_norm": ("layers.0.dec_attn", "pre_lnorm"),
    }
    values = {}
    for key, place in places.items():
        configured = getattr(config, key)
        values[key] = checkpoint.attribute(*place) if configured is None else configured
    if missing := [f"model.{key}=" for key, value in values.items() if value is None]:
        raise ConfigError(f"{config.checkpoint}: does not say how the model was run; give {', '.join(missing)}")
    if values["clamp_len"] < 1:
        values["clamp_len"] = None  # theirs is -1 for no limit
    return values


def _words(
    checkpoint: Checkpoint, config: ImportedConfig, vocabulary: Vocabulary, d_model: int
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return fields of TxlConfig, and weights, of embeddings and softmax; with div_val 1 clusters share a table."""

    def take(name: str) -> list[Tensor]:
        found: list[Tensor] = []
        while (tensor := checkpoint.tensors.pop(name.format(len(found)), None)) is not None:
            found.append(tensor)
        return found

    tables, outputs = take("word_emb.emb_layers.{}.weight"), take("crit.out_layers.{}.weight")
    biases = take("crit.out_layers.{}.bias")
    projections, back = take("word_emb.emb_projs.{}"), take("crit.out_projs.{}")
    sizes = [len(table) for table in tables]
    order = vocabulary.order_of(sum(sizes), config.checkpoint)
    cutoffs = _cutoffs(checkpoint, config, sizes)
    if len(tables) == 1:
        sizes = [end - start for start, end in zip([0, *cutoffs], [*cutoffs, len(order)], strict=True)]
        tables, outputs, biases = (list(torch.split(parts[0], sizes)) for parts in (tables, outputs, biases))
    if max(order[:2]) >= sizes[0]:  # only rows of the head can change places
        raise InputError(f"{vocabulary.path}: <eos> or <unk> is not among the {sizes[0]:,} words of the first cluster")
    for parts in (tables, outputs, biases):
        parts[0] = parts[0][order[: sizes[0]]]
    widths = [table.shape[1] for table in tables]
    if len(projections) == 1:
        projections = [projections[0].clone() for _ in tables]
    tied = all(map(torch.equal, tables, outputs))
    # Usually the projections of all clusters but the head are tied; if not, they are separate.
    tied_back = len(back) > 1 and all(map(torch.equal, projections[1:], back[1:]))
    squares = projections and set(widths) == {d_model}  # square projections, which only div_val above 1 makes
    div_val = 2 if squares else widths[0] // widths[-1 if len(widths) < 2 else 1]
    values = {
        "embedding": widths[0],
        "cutoffs": cutoffs,
        "div_val": div_val,
        "tied": tied,
        "tied_projections": tied_back,
    }
    if not cutoffs and not projections:
        untied = {} if tied else {"untied": outputs[0]}
        return values, {"embedding.weight": tables[0], "output_bias": biases[0], **untied}
    groups = {
        "tables": tables,
        "biases": biases,
        "untied": [] if tied else outputs,
        "projections": projections,
        "output_projections": back[:1] if tied_back else back,
    }
    weights = {f"adaptive.{name}.{i}": part for name, parts in groups.items() for i, part in enumerate(parts)}
    # Their code takes the entry of cluster i from the end of the head's softmax: the last is of the first cluster.
    empty = {"weight": torch.empty(0, widths[0]), "bias": torch.empty(0)}
    for name, none in empty.items():
        weights[f"adaptive.cluster_{name}"] = checkpoint.tensors.pop(f"crit.cluster_{name}", none).flip(0)
    return values, weights


def _cutoffs(checkpoint: Checkpoint, config: ImportedConfig, rows: list[int]) -> list[int]:
    """Return the first ids of the clusters after the head, by tables, pickled softmax or configuration."""
    clusters = len(checkpoint.tensors.get("crit.cluster_weight", []))
    if len(rows) > 1 or not clusters:
        stored = list(accumulate(rows))[:-1]
    else:
        stored = checkpoint.attribute("crit", "cutoffs", [])[:-1]  # the last is the size of the vocabulary
    cutoffs = list(stored or config.cutoffs or [])
    if config.cutoffs not in (None, cutoffs):
        raise ConfigError(f"model.cutoffs={config.cutoffs}: those of {config.checkpoint} are {cutoffs}")
    if len(cutoffs) != clusters:
        raise ConfigError(f"{config.checkpoint}: has {clusters} clusters; give model.cutoffs=[...], their first ids")
    return cutoffs
