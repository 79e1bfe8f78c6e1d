"""Derive independent random streams from one seed."""

import hashlib

import numpy as np
import numpy.typing as npt


def derived_seed(own: int | None, seed: int, purpose: str) -> int:
    """Return `own` if it is set, else a 63-bit seed that depends only on `seed` and `purpose`."""
    if own is not None:
        return own
    digest = hashlib.sha256(f"{seed}:{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def permutation(size: int, *seeds: int) -> npt.NDArray[np.int64]:
    """Return a random permutation of 0 to size - 1, sorted by the raw output of PCG64, which numpy keeps stable."""
    return np.argsort(np.random.PCG64(np.random.SeedSequence(seeds)).random_raw(size), kind="stable")
