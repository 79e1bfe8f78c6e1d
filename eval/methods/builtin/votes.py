"""Votes: a majority of predictions drawn from the templates of other methods (Ide et al. 2024, section 6).

A prediction is a vote for the sentence with the higher score; a template whose two scores are equal has no vote. Where
the votes for both sentences are equally many the pair is a tie, and `ties` says what that counts, as for any method.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from eval.methods.method import VOTES, method
from pairscale.errors import ConfigError, RunError
from pairscale.seeds import permutation

Drawn = dict[str, list[str]]  # method -> names of templates
_NEEDS = ("voters", "trials", "seed")
_NAMES = ["paradigm", "pair_id"]


@method("vote_p", VOTES, _NEEDS)
@method("vote_mix_p3", VOTES, _NEEDS)
@method("vote_mix_l3", VOTES, _NEEDS)
@method("vote_l", VOTES, _NEEDS)
def vote(
    scores: Mapping[str, pd.DataFrame], voters: Mapping[str, int], trials: int, seed: int
) -> tuple[pd.DataFrame, list[Drawn]]:
    """Return rows of a score file, one per trial and pair, and the templates drawn for each trial.

    `scores`: rows of the methods that vote. good, bad: votes for the sentence; trials count from 1; no log-probability.
    """
    names = {voter: list(dict.fromkeys(scores[voter]["template"])) for voter in voters}
    drawn = draws(names, voters, trials, seed)
    counts = [f"{side}_{of}" for of in ("words", "chars", "unk") for side in ("good", "bad")]
    first = scores[next(iter(voters))]
    pairs = first.loc[first["template"] == first["template"].iloc[0], ["pair_id", "paradigm", *counts, "crit_unk"]]
    pairs = pairs.reset_index(drop=True)
    votes = {voter: _votes(voter, scores[voter], pairs) for voter in voters}
    columns = dict.fromkeys(("good_lp", "bad_lp", "good_tokens", "bad_tokens"), np.nan)
    rows = []
    for number, of in enumerate(drawn, start=1):
        cast = np.concatenate([votes[voter][some].to_numpy() for voter, some in of.items()], axis=1)
        counted = {"good": (cast > 0).sum(axis=1).astype(float), "bad": (cast < 0).sum(axis=1).astype(float)}
        rows.append(pairs.assign(template=None, trial=number, order=None, **counted, **columns))
    return pd.concat(rows, ignore_index=True), drawn


def draws(templates: Mapping[str, list[str]], voters: Mapping[str, int], trials: int, seed: int) -> list[Drawn]:
    """Draw for each trial `voters[method]` of the method's templates, without replacement.

    A trial depends on the seed and its number alone. Raises ConfigError where a method has too few templates.
    """
    for voter, count in voters.items():
        if not 0 < count <= len(templates[voter]):
            raise ConfigError(
                f"voters: {count} of {voter}, must be 1 to {len(templates[voter])}: it has the templates "
                f"{', '.join(templates[voter])}"
            )
    drawn: list[Drawn] = [{} for _ in range(trials)]
    for trial, names in enumerate(drawn):
        for number, voter in enumerate(sorted(voters)):
            order = permutation(len(templates[voter]), seed, trial, number)[: voters[voter]]
            names[voter] = [templates[voter][at] for at in sorted(order.tolist())]
    return drawn


def _votes(voter: str, scores: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return 1 for the good sentence, -1 for the bad one (and where a score is NaN), 0 for neither (P, templates)."""
    good, bad = scores["good"], scores["bad"]
    cast = scores.assign(vote=np.where(good > bad, 1, np.where(good == bad, 0, -1)))
    table = cast.pivot(index=_NAMES, columns="template", values="vote")
    votes = table.reindex(pd.MultiIndex.from_frame(pairs[_NAMES]))
    if len(table) != len(pairs) or votes.isna().any(axis=None):
        other = votes.columns[votes.isna().any()].tolist() or votes.columns.tolist()
        raise RunError(f"scores of {voter}: template {other[0]} has other pairs than the rest; score it again")
    return votes
