"""Convert published networks and their vocabularies to pairscale's formats.

It reads the LSTM of Gulordava et al. 2018 as saved by colorlessgreenRNNs, and the Transformer-XL of Dai et al. 2019 as
saved by its authors' PyTorch code. `lstm` and `transformer_xl` return a configuration and the weights with
our names. Unknown weights are returned, too, so that loading the weights fails for any other network.
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

UNUSED_SD = 0.02  # required by TxlConfig, but no weights are drawn
LAYER = {  # their names and ours for a Transformer-XL layer's parts
    "dec_attn.r_net": "attention.distance",
    "dec_attn.o_net": "attention.output",
    "dec_attn.layer_norm": "attention_norm",
    "pos_ff.CoreNet.0": "inner",
    "pos_ff.CoreNet.3": "outer",
    "pos_ff.layer_norm": "feed_forward_norm",
}
PACKED = "dec_attn.qkv_net.weight"  # queries, keys and values in one matrix


@dataclass(frozen=True)
class Vocabulary:
    """The vocabulary of a checkpoint, and how its ids map to ours."""

    path: Path
    words: list[str]  # by the checkpoint's ids
    order: list[int]  # the checkpoint's id for each of our ids; ours begin with <eos> (0) and <unk> (1)

    def order_of(self, rows: int, checkpoint: str) -> list[int]:
        """Return `order`. Raises InputError unless the checkpoint has exactly one row per word."""
        if rows != len(self.words):
            raise InputError(
                f"{self.path}: this is not the vocabulary of {checkpoint}. It has {len(self.words):,} words, but the "
                f"checkpoint has rows for {rows:,}. Name the right file with model.vocabulary=FILE."
            )
        return self.order

    def tokenizer(self, kind: Literal["whitespace", "word", "char", "jieba"]) -> ListTokenizer:
        """Return a tokenizer with these words."""
        schema = TokenizerConfig(
            name=kind, kind=kind, vocab_size=None, fit_on="train", fit_sentences=1, character_coverage=1.0
        )
        return ListTokenizer(schema, [self.words[index] for index in self.order[2:]])


def read_vocabulary(config: ImportedConfig, one_a_line: bool) -> Vocabulary:
    """Read a checkpoint's vocabulary from a text file or a pickled Vocab of the Transformer-XL code (cache.pt).

    In a text file, words are separated by white space (colorlessgreenRNNs) or, with `one_a_line`, come first on each
    line (Transformer-XL).

    Raises:
        InputError: if the file is missing or damaged, or lacks `config.eos` or `config.unk`.
    """
    beside = Path(config.checkpoint).expanduser().with_name("vocab.txt")
    path = Path(config.vocabulary).expanduser() if config.vocabulary else beside
    if not path.is_file():
        raise InputError(f"{path}: this file does not exist. Set model.vocabulary=FILE to the vocabulary.")
    with one_line_errors(path):
        words = _pickled_words(path) if is_pickled(path) else _text_words(path, one_a_line)
    ids = {word: index for index, word in enumerate(words)}  # the last of equal words is used, as in the authors' code
    for key, special in (("eos", config.eos), ("unk", config.unk)):
        if special not in ids:
            raise InputError(
                f"{path}: this vocabulary has no {special}. Set model.{key}=WORD to the word it uses instead."
            )
    first = [ids[config.eos], ids[config.unk]]
    if first[0] == first[1]:
        raise InputError(f"{path}: model.eos and model.unk are both {config.eos}. They must be different words.")
    return Vocabulary(path, words, [*first, *(index for index in range(len(words)) if index not in first)])


def _text_words(path: Path, one_a_line: bool) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: this file is not valid UTF-8 ({error}). Convert it to UTF-8.") from None
    if not one_a_line:
        return text.split()
    return list(dict.fromkeys(line.split()[0] for line in text.split("\n") if line.strip()))


def _pickled_words(path: Path) -> list[str]:
    """Return the words of a pickled Vocab, or of a pickled Corpus that contains one (cache.pt)."""
    root = read_torch_file(path)
    if isinstance(root, Record) and root.name == "data_utils.Corpus":
        root = root.state["vocab"]
    if not (isinstance(root, Record) and root.name.endswith("vocabulary.Vocab")):
        raise InputError(f"{path}: this file must contain a Vocab of the Transformer-XL code.")
    if root.state["lower_case"]:
        raise InputError(
            f"{path}: this vocabulary is lower-cased, but benchmarks are not, so its model can't be scored. "
            "Use a checkpoint with a cased vocabulary."
        )
    words = root.state["idx2sym"]
    if not all(isinstance(word, str) and word.split() == [word] for word in words):
        raise InputError(f"{path}: some entries of its Vocab are not text, empty, or contain white space.")
    return list(words)


def lstm(checkpoint: Checkpoint, config: ImportedConfig, vocabulary: Vocabulary) -> Network:
    """Convert an LSTM, which consists of torch's own layers.

    Raises InputError if the vocabulary belongs to another checkpoint, and ConfigError for values of a Transformer-XL.
    """
    for key in ("memory", "same_length", "clamp_len", "pre_norm", "cutoffs"):
        if getattr(config, key) is not None:
            raise ConfigError(
                f"model.{key}: {config.checkpoint} is an LSTM, but only a Transformer-XL has this value. Leave it out."
            )
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
    """Convert a Transformer-XL, with or without adaptive embeddings and softmax.

    Raises InputError if the vocabulary belongs to another checkpoint, and ConfigError if values are missing.
    """
    run = _run_values(checkpoint, config)
    tensors = checkpoint.tensors
    tensors.pop("pos_emb.inv_freq", None)
    u, v = tensors.pop("r_w_bias"), tensors.pop("r_r_bias")
    heads, d_head = u.shape
    d_inner, d_model = tensors["layers.0.pos_ff.CoreNet.0.weight"].shape
    words, weights = _words(checkpoint, config, vocabulary, d_model)
    weights |= {"u": u[:, None, None], "v": v[:, None, None]}  # (H, 1, 1, d), shared by all layers
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
    """Return the values that the weights don't show, from the configuration or else from the pickled modules."""
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
    if missing := [f"model.{key}" for key, value in values.items() if value is None]:
        raise ConfigError(
            f"{config.checkpoint}: this file does not contain all settings of the model. Set {', '.join(missing)}."
        )
    if values["clamp_len"] < 1:
        values["clamp_len"] = None  # their code writes -1 for no limit
    return values


def _words(
    checkpoint: Checkpoint, config: ImportedConfig, vocabulary: Vocabulary, d_model: int
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the fields of TxlConfig and the weights for embeddings and softmax.

    With div_val 1, all clusters share one table in the checkpoint.
    """

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
    if max(order[:2]) >= sizes[0]:  # only rows within the head can be reordered
        raise InputError(f"{vocabulary.path}: <eos> and <unk> must be in the first cluster of {sizes[0]:,} words.")
    for parts in (tables, outputs, biases):
        parts[0] = parts[0][order[: sizes[0]]]
    widths = [table.shape[1] for table in tables]
    if len(projections) == 1:
        projections = [projections[0].clone() for _ in tables]
    tied = all(map(torch.equal, tables, outputs))
    # Usually the projections of all clusters except the head are tied; otherwise they are separate.
    tied_back = len(back) > 1 and all(map(torch.equal, projections[1:], back[1:]))
    squares = projections and set(widths) == {d_model}  # projections are square only if div_val is above 1
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
    # Their code counts clusters from the end of the head's softmax: the last entry is the first cluster's.
    empty = {"weight": torch.empty(0, widths[0]), "bias": torch.empty(0)}
    for name, none in empty.items():
        weights[f"adaptive.cluster_{name}"] = checkpoint.tensors.pop(f"crit.cluster_{name}", none).flip(0)
    return values, weights


def _cutoffs(checkpoint: Checkpoint, config: ImportedConfig, rows: list[int]) -> list[int]:
    """Return the first id of each cluster after the head, from the tables, the pickled softmax or the configuration."""
    clusters = len(checkpoint.tensors.get("crit.cluster_weight", []))
    if len(rows) > 1 or not clusters:
        stored = list(accumulate(rows))[:-1]
    else:
        stored = checkpoint.attribute("crit", "cutoffs", [])[:-1]  # the last is the size of the vocabulary
    cutoffs = list(stored or config.cutoffs or [])
    if config.cutoffs not in (None, cutoffs):
        raise ConfigError(
            f"model.cutoffs={config.cutoffs}: {config.checkpoint} has {cutoffs}. Leave model.cutoffs out."
        )
    if len(cutoffs) != clusters:
        raise ConfigError(
            f"{config.checkpoint}: this checkpoint has {clusters} clusters after the head, but {len(cutoffs)} cutoffs. "
            "List the first id of each cluster with model.cutoffs=[...]."
        )
    return cutoffs
