"""Independent random streams from one seed."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt


def derived_seed(own: int | None, seed: int, purpose: str) -> int:
    """`own` where it is set, else a 63-bit seed that depends on `seed` and on what it is for alone."""
    if own is not None:
        return own
    digest = hashlib.sha256(f"{seed}:{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def permutation(size: int, *seeds: int) -> npt.NDArray[np.int64]:
    """The numbers 0 to size - 1 in an order drawn from `seeds`.

    Sorted by the raw output of PCG64, which numpy promises to keep; what its generators make of it may change.
    """
    return np.argsort(np.random.PCG64(np.random.SeedSequence(seeds)).random_raw(size), kind="stable")
