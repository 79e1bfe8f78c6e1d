"""The variance of a slope from each size's own spread, by statsmodels and the formulas of Welch and Satterthwaite."""

import numpy as np
import statsmodels.api as sm


def own_spreads(words, accuracies, of="slope"):
    """Return estimate, standard error and degrees of freedom of a contrast of the means of sizes.

    The error is HC2 of a regression on the sizes (statsmodels). Degrees are Satterthwaite's (1946), at most those at
    equal spreads; where a size has two runs with 1 added to those of each size and subtracted from the sum (half of the
    2 of Welch 1947). `of`: slope, or log2(words) at which the line is wanted.
    """
    words, accuracies = np.asarray(words), np.asarray(accuracies, dtype=float)
    sizes, counts = np.unique(words, return_counts=True)
    x = np.log2(sizes)
    contrast = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    if of != "slope":
        contrast = 1 / len(x) + (of - x.mean()) * contrast
    dummies = (words[:, None] == sizes).astype(float)
    test = sm.OLS(accuracies, dummies).fit(cov_type="HC2").t_test(contrast)
    spread = np.array([accuracies[words == size].var(ddof=1) for size in sizes])
    more = 1 if counts.min() == 2 else 0
    parts = contrast**2 * spread / counts
    degrees = parts.sum() ** 2 / (parts**2 / (counts - 1 + more)).sum() - more
    equal = contrast**2 / counts
    return test.effect[0], test.sd[0, 0], min(degrees, equal.sum() ** 2 / (equal**2 / (counts - 1)).sum())
