"""Dropout (Srivastava et al. 2014) whose masks are drawn fast on a CPU."""

import numpy as np
import torch
from numpy.random import SFC64
from torch import Tensor, nn

INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes of an element


def _random_words(count: int) -> Tensor:
    """Return random bits (count,) int64 of numpy's SFC64, seeded by torch's generator, which is slower."""
    seed = int(torch.empty((), dtype=torch.int64).random_())
    return torch.from_numpy(SFC64(seed).random_raw(count).view(np.int64))


def make_fast(model: nn.Module) -> None:
    """Let all layers of dropout of a model draw their masks as `Dropout` does."""
    for module in model.modules():
        if type(module) is nn.Dropout:
            module.__class__ = Dropout


class Dropout(nn.Dropout):
    """torch's dropout, which draws doubles (a tenth of training a Transformer-XL on a CPU), with fewer random bits.

    The probability is exact to 2^-33 in float32 and 2^-17 in bfloat16; the scale fits the actual probability.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return zeros with probability p, else input / (1 - p); outside training the input. Any shape."""
        plain = torch.compiler.is_compiling()  # compiled kernels draw their own masks
        if plain or not self.training or self.p in (0.0, 1.0) or input.device.type != "cpu" or not input.numel():
            return super().forward(input)
        integer, bits = INTEGERS[input.itemsize], 8 * input.itemsize
        dropped = min(round(self.p * 2**bits), 2**bits - 1)  # of 2^bits draws
        bits_drawn = _random_words(-(-input.nbytes // 8)).view(integer)[: input.numel()].view(input.shape)
        # Bits of the number 1 times 0 or 1 are those of 0 or 1: torch is slow to convert truth values to floats.
        one = torch.ones((), dtype=input.dtype).view(integer)
        mask = bits_drawn.ge_(dropped - 2 ** (bits - 1)).mul_(one).view(input.dtype)
        return input.mul(mask).mul_(1 / (1 - dropped / 2**bits))
