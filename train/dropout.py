"""Dropout (Srivastava et al. 2014) whose masks are drawn fast on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn

LOWEST = -(2**63)  # from here up, random_ draws all 64 bits


class Dropout(nn.Dropout):
    """torch's, but that on a CPU an element takes 32 random bits, two to a draw, where torch draws a double for each.

    That alone is a tenth of a Transformer-XL's training there. The probability is exact to 2^-33.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Zeros with probability p, else input / (1 - p), while training; the input otherwise. Any shape."""
        if not self.training or self.p in (0.0, 1.0) or input.device.type != "cpu":
            return super().forward(input)
        count = input.numel()
        bits = torch.empty((count + 1) // 2, dtype=torch.int64).random_(LOWEST, None).view(torch.int32)[:count]
        kept = bits.view(input.shape) >= round(self.p * 2**32) - 2**31
        return input * kept.to(input.dtype).div_(1 - self.p)
