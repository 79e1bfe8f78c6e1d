"""Make long tables of accuracies with given or random values, for tests of the functions that use them."""

import numpy as np
import pandas as pd


def curve_table(accuracies, words, seeds, curve="lstm", **columns):
    """Return a long table with the given `accuracies` (runs, paradigms), and the runs' `words` and `seeds` (runs,).

    Paradigm k belongs to phenomenon k // 2. `columns` replaces or adds columns.
    """
    rows = []
    for accuracy, size, seed in zip(np.atleast_2d(accuracies), words, seeds, strict=True):
        run = {
            "study": "s", "run": f"{curve}-{size}-{seed}", "curve": curve, "model": curve, "size": str(size),
            "sample_words": size, "seed": seed, "sample": f"{size}-{seed}", "nested": False, "unit": "words",
            "baseline": "", "benchmark": "b", "method": "lp", "pairs": 50,
        }  # fmt: skip
        for k, value in enumerate(accuracy):
            rows.append({**run, "phenomenon": f"p{k // 2}", "paradigm": f"p{k // 2}_{k}", "accuracy": value, **columns})
    return pd.DataFrame(rows).astype({"sample_words": "Int64", "seed": "Int64", "pairs": "Int64"})


def grid(sizes=4, seeds=3):
    """Return the words and seeds of runs whose sizes double."""
    return np.repeat(1000 * 2 ** np.arange(sizes), seeds), np.tile(np.arange(1, seeds + 1), sizes)


def random_curve(sizes=4, seeds=3, paradigms=4, rng=0, gain=0.03, noise=0.03, **columns):
    """Return the long table of a curve whose accuracies are on a rising line, with noise."""
    generator = np.random.default_rng(rng)
    words, of_seeds = grid(sizes, seeds)
    level = 0.55 + gain * np.log2(words / words.min())[:, None]
    return curve_table(level + generator.normal(0, noise, (len(words), paradigms)), words, of_seeds, **columns)


def row(table, **values):
    """Return the only row of a table with these values."""
    found = table[np.logical_and.reduce([table[name] == value for name, value in values.items()])]
    assert len(found) == 1
    return found.iloc[0]
