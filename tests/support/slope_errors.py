"""The errors of a slope, or of a line at some place, by statsmodels and the formulas of the papers."""

import numpy as np
import statsmodels.api as sm


def own_spreads(words, accuracies, at=None):
    """Return estimate, standard error and degrees of freedom from each size's own spread.

    The error is HC2 of a regression on the sizes (statsmodels); degrees are Satterthwaite's (1946), at most those at
    equal spreads. Of the slope, or of the line at log2(words) `at`.
    """
    words, accuracies = np.asarray(words), np.asarray(accuracies, dtype=float)
    sizes, counts = np.unique(words, return_counts=True)
    x = np.log2(sizes)
    contrast = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    contrast = contrast if at is None else 1 / len(x) + (at - x.mean()) * contrast
    dummies = (words[:, None] == sizes).astype(float)
    test = sm.OLS(accuracies, dummies).fit(cov_type="HC2").t_test(contrast)
    spread = np.array([accuracies[words == size].var(ddof=1) for size in sizes])
    parts, equal = contrast**2 * spread / counts, contrast**2 / counts
    return test.effect[0], test.sd[0, 0], pooled_degrees([parts], equal, counts - 1)


def pooled_degrees(parts, equal, free):
    """Return degrees of freedom of all units of a study together; `parts`: for each the variances that sizes add.

    Parts count by the inverse of their unit's standard error. `equal`: parts at equal spreads; `free`: of each size.
    """
    together = sum(np.asarray(of) / np.sqrt(np.sum(of)) for of in parts)
    return min(of.sum() ** 2 / (of**2 / free).sum() for of in (together, np.asarray(equal)))


def hc3(words, accuracies, at=None):
    """Return the same by HC3 about the line (statsmodels), with the degrees of freedom of Bell and McCaffrey (2002)."""
    words, accuracies = np.asarray(words), np.asarray(accuracies, dtype=float)
    sizes, place, counts = np.unique(words, return_inverse=True, return_counts=True)
    weights, middle = 1 / counts[place], np.log2(sizes).mean()
    model = np.column_stack([np.ones(len(words)), np.log2(words) - middle])
    fit = sm.WLS(accuracies, model, weights=weights).fit(cov_type="HC3")
    wanted = np.array([0, 1]) if at is None else np.array([1, at - middle])
    solved = np.linalg.inv(model.T @ (weights[:, None] * model)) @ (model.T * weights)
    apart = np.eye(len(words)) - model @ solved
    form = apart.T @ np.diag((wanted @ solved / np.diag(apart)) ** 2) @ apart
    error = np.sqrt(wanted @ fit.cov_params() @ wanted)
    np.testing.assert_allclose(error**2, accuracies @ form @ accuracies)
    return wanted @ fit.params, error, np.trace(form) ** 2 / np.trace(form @ form)


def by_bend(words, units):
    """Return the function of a study's errors: HC3's, or where its curves bend those of sizes' own spreads.

    They bend where errors about the line, summed over units, are more than 1.2 times those of own spreads.
    """
    line, own = (sum(method(words, of)[1] for of in units) for method in (hc3, own_spreads))
    return hc3 if line <= 1.2 * own else own_spreads
