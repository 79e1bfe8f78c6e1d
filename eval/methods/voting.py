"""Votes: a majority of predictions drawn from the templates of other methods (Ide et al. 2024, section 6).

A prediction is a vote for the sentence with the higher score; a template whose two scores are equal has no vote. Where
the votes for both sentences are equally many the pair is a tie, and `ties` says what that counts, as for any method.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from pairscale.errors import ConfigError, RunError
from pairscale.seeds import permutation

Drawn = dict[str, list[str]]  # method -> names of templates


def draws(templates: Mapping[str, list[str]], voters: Mapping[str, int], trials: int, seed: int) -> list[Drawn]:
    """Draw for each trial `voters[method]` of the method's templates, without replacement.

    A trial depends on the seed and its number alone. Raises ConfigError where a method has too few templates.
    """
    for method, count in voters.items():
        if not 0 < count <= len(templates[method]):
            raise ConfigError(
                f"voters: {count} of {method}, must be 1 to {len(templates[method])}: it has the templates "
                f"{', '.join(templates[method])}"
            )
    drawn: list[Drawn] = [{} for _ in range(trials)]
    for trial, names in enumerate(drawn):
        for number, method in enumerate(sorted(voters)):
            order = permutation(len(templates[method]), seed, trial, number)[: voters[method]]
            names[method] = [templates[method][at] for at in sorted(order.tolist())]
    return drawn


def vote(
    scores: Mapping[str, pd.DataFrame], voters: Mapping[str, int], trials: int, seed: int
) -> tuple[pd.DataFrame, list[Drawn]]:
    """Return rows of a score file, one per trial and pair, and the templates drawn for each trial.

    `scores`: rows of the methods that vote. good, bad: votes for the sentence; trials count from 1; no log-probability.
    """
    names = {method: list(dict.fromkeys(scores[method]["template"])) for method in voters}
    drawn = draws(names, voters, trials, seed)
    counts = [f"{side}_{of}" for of in ("words", "chars", "unk") for side in ("good", "bad")]
    shared = ["pair_id", "paradigm", *counts]
    first = scores[next(iter(voters))]
    pairs = first.loc[first["template"] == first["template"].iloc[0], [*shared, "crit_unk"]].reset_index(drop=True)
    votes = {method: _votes(method, scores[method], names[method], pairs) for method in voters}
    columns = dict.fromkeys(("good_lp", "bad_lp", "good_tokens", "bad_tokens"), np.nan)
    rows = []
    for number, of in enumerate(drawn, start=1):
        cast = np.stack([votes[method][template] for method, some in of.items() for template in some])
        counted = {"good": (cast > 0).sum(axis=0).astype(float), "bad": (cast < 0).sum(axis=0).astype(float)}
        rows.append(pairs.assign(template=None, trial=number, order=None, **counted, **columns))
    return pd.concat(rows, ignore_index=True), drawn


def _votes(
    method: str, scores: pd.DataFrame, templates: list[str], pairs: pd.DataFrame
) -> dict[str, npt.NDArray[np.int8]]:
    """Return by template (P,) 1 for the good sentence, -1 for the bad one (and where a score is NaN), 0 for neither."""
    keys = pd.MultiIndex.from_frame(pairs[["paradigm", "pair_id"]])
    votes = {}
    for template in templates:
        part = scores[scores["template"] == template].set_index(["paradigm", "pair_id"])
        if len(part) != len(keys) or not keys.isin(part.index).all():
            raise RunError(f"scores of {method}: template {template} has other pairs than the rest; score it again")
        part = part.loc[keys]
        good, bad = part["good"].to_numpy(), part["bad"].to_numpy()
        votes[template] = np.where(good > bad, 1, np.where(good == bad, 0, -1)).astype(np.int8)
    return votes
