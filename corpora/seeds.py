"""Independent random streams from one seed."""

from __future__ import annotations

import hashlib


def derived_seed(own: int | None, seed: int, purpose: str) -> int:
    """`own` where it is set, else a 63-bit seed that depends on `seed` and on what it is for alone."""
    if own is not None:
        return own
    digest = hashlib.sha256(f"{seed}:{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
