"""The LSTM of Gulordava et al. 2018, as colorlessgreenRNNs saves it."""

import torch

from pairscale.errors import ConfigError, InputError
from train.import_checkpoint.contents import Contents, Imported
from train.import_checkpoint.vocabulary import Vocabulary
from train.models.config import ImportedConfig, LstmConfig


def read_lstm(contents: Contents, config: ImportedConfig, vocabulary: Vocabulary) -> Imported:
    """Return the model, whose layers are torch's under other names.

    Raises InputError for other networks or sizes of the vocabulary, ConfigError for values of a Transformer-XL.
    """
    for key in ("memory", "same_length", "clamp_len", "pre_norm", "cutoffs"):
        if getattr(config, key) is not None:
            raise ConfigError(f"model.{key}: {contents.path} is an LSTM; only a Transformer-XL has it")
    embedding = contents.take("encoder.weight", None, None)
    vocabulary.check(contents.path, len(embedding))
    output = contents.take("decoder.weight", len(embedding), None)
    width, hidden = embedding.shape[1], output.shape[1]
    layers = contents.count(r"rnn\.weight_ih_l\d+")
    gates = contents.tensors.get("rnn.weight_ih_l0")
    if gates is None or len(gates) != 4 * hidden:
        raise InputError(f"{contents.path}: its recurrent layers do not have the four gates of an LSTM")
    weights = {}
    for layer in range(layers):
        shapes = {
            "weight_ih": (4 * hidden, hidden if layer else width),
            "weight_hh": (4 * hidden, hidden),
            "bias_ih": (4 * hidden,),
            "bias_hh": (4 * hidden,),
        }
        for name, shape in shapes.items():
            weights[f"lstm.{name}_l{layer}"] = contents.take(f"rnn.{name}_l{layer}", *shape)
    order = torch.tensor(vocabulary.order)
    tied = torch.equal(embedding, output)
    weights["embedding.weight"] = embedding[order]
    if not tied:
        weights["untied"] = output[order]
    weights["output_bias"] = contents.take("decoder.bias", len(embedding))[order]
    contents.check_empty()
    dropout = float(contents.attribute("drop", "p", float, 0.0))
    return Imported(LstmConfig(config.name, None, width, hidden, layers, dropout, tied), weights)
