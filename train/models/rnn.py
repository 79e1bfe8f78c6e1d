"""A simple recurrent language model (Elman 1990; Mikolov et al. 2010): the LSTM's, with tanh units in its place."""

from torch import nn

from train.models.lstm import LstmLanguageModel


class RnnLanguageModel(LstmLanguageModel):
    """Embeddings, a stack of Elman layers, a softmax."""

    kind = "rnn"
    layer_class = nn.RNN
    states = 1
