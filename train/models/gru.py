"""A GRU language model (Cho et al. 2014): the LSTM's, with gated recurrent units in its place."""

from torch import nn

from train.models.lstm import LstmLanguageModel


class GruLanguageModel(LstmLanguageModel):
    """Embeddings, a stack of GRU layers, a softmax."""

    kind = "gru"
    layer_class = nn.GRU
    states = 1
