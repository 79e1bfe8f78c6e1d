"""Handwritten tables of slopes and accuracies in the format of the analysis."""

import numpy as np
import pandas as pd

NAN = np.nan
WORDS = {"16k": 16_000, "32k": 32_000, "64k": 64_000, "128k": 128_000}


def curve(
    slopes, *, group="lstm", sizes=("16k", "32k", "64k", "128k"), runs=8, bent=(), ranks=(), note="", ends=(0.5, 0.56)
):
    """Return rows of Curves.slopes and Curves.accuracies.

    `slopes`: name -> slope, low, high; `bent`: p of lack of fit; `ranks`: upper limits of ranks (default: last).
    """
    rows = [
        {"group": group, "pairs": "all", "level": "overall" if name == "overall" else "phenomenon", "name": name,
         "slope": slope, "low": low, "high": high, "low_new_pairs": low, "high_new_pairs": high, "runs": runs,
         "sizes": len(sizes), "from_size": sizes[0], "to_size": sizes[-1], "r2": 0.9,
         "rank": 1.0, "rank_low": 1.0, "rank_high": dict(ranks).get(name, 99),
         "lack_of_fit": dict(bent).get(name, NAN), "note": note,
         "paradigms": 1, "n_pairs": 10, "onset": NAN, "intercept": 0.0, "method": "t"}
        for name, (slope, low, high) in slopes.items()
    ]  # fmt: skip
    means = np.linspace(*ends, len(sizes))
    at = [
        {"group": group, "pairs": "all", "level": "overall", "name": "overall", "size": size, "words": WORDS[size],
         "runs": 2, "accuracy": mean}
        for size, mean in zip(sizes, means, strict=True)
    ]  # fmt: skip
    return pd.DataFrame(rows), pd.DataFrame(at)
