"""What an author of an architecture may leave out: reading trees of texts."""

import numpy as np
import pytest
import torch

from eval.scorers.trees import forests
from train.models.base import LanguageModel


class Blurred(LanguageModel):
    """Each hidden state is half of the one before, and the embedding: nothing but tokens and a state."""

    def __init__(self):
        super().__init__(vocabulary=11, embedding=4, hidden=4, tied=True)

    def initial_state(self, batch):
        return (self.embedding.weight.new_zeros(batch, 4), self.embedding.weight.new_zeros(3))  # the second is constant

    def forward(self, tokens, state):
        hidden, constant = state
        rows = []
        for embedded in self.embed(tokens).unbind(1):
            hidden = hidden / 2 + embedded
            rows.append(hidden)
        return torch.stack(rows, dim=1), (hidden.detach(), constant)


TEXTS = [[1, 2, 3, 4, 5, 6], [1, 2, 3, 7], [1, 8, 3], [2, 2, 2, 2, 2], [2, 2, 9, 1], [2, 9, 9], [2], [5]]


@pytest.mark.parametrize("before", [[], [3, 4]])
def test_hidden_states_of_trees_follow_from_forward(before):
    torch.manual_seed(0)
    model = Blurred()
    with torch.no_grad():
        state = model.initial_state(1)
        if before:
            _, state = model(torch.tensor([before]), state)
        # The last token of a text is only a target, so one more is added.
        targets = [np.asarray([*text, 0]) for text in TEXTS]
        seen = 0
        for forest in forests(targets, np.ones(len(TEXTS), np.int64), 0, 24):
            tokens, parents, depths, _, _ = forest.tensors(torch.device("cpu"))
            hidden = model.read_trees(tokens, parents, depths, state).flatten(0, 1)
            for index, places in forest.results(np.arange(len(forest.rows), dtype=np.float64)):
                expected = torch.zeros(4)
                for token, row in zip([*before, *TEXTS[index]], [None] * len(before) + places.tolist(), strict=True):
                    expected = expected / 2 + model.embedding.weight[token]
                    if row is not None:
                        torch.testing.assert_close(hidden[forest.rows[int(row)]], expected)
                        seen += 1
    assert seen == sum(map(len, TEXTS))
