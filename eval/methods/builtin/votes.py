"""Votes: the majority of predictions drawn from the templates of other methods (Ide et al. 2024, section 6).

A prediction is a vote for the sentence with the higher score. A template whose two scores are equal doesn't vote. If
both sentences get the same number of votes, the pair is a tie, and `ties` says how it counts, as for any method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta

from eval.methods.method import VOTES, method
from pairscale.command.schemas import Seed
from pairscale.errors import ConfigError, RunError
from pairscale.seeds import permutation

if TYPE_CHECKING:
    import pandas as pd

Draws = Annotated[int, Meta(ge=1, le=10**5)]
Drawn = dict[str, list[str]]  # method -> names of templates
_NAMES = ["paradigm", "pair_id"]


@dataclass
class Votes:
    """Parameters of votes."""

    voters: dict[str, Draws] = field(default_factory=dict)  # methods, and how many predictions to draw from each
    trials: Draws = 10  # number of votes, each with predictions drawn again
    seed: Seed = 1  # seed for drawing predictions


@method("vote_p", Votes({"yes_no": 5}), VOTES)
@method("vote_mix_p3", Votes({"yes_no": 3, "in_template_lp": 2}), VOTES)
@method("vote_mix_l3", Votes({"yes_no": 2, "in_template_lp": 3}), VOTES)
@method("vote_l", Votes({"in_template_lp": 5}), VOTES)
def vote(scores: Mapping[str, pd.DataFrame], parameters: Votes) -> tuple[pd.DataFrame, list[Drawn]]:
    """Vote with predictions that are drawn, for each trial, from the templates of other methods.

    Args:
        scores: The rows of each method that votes.
        parameters: The parameters of the vote.

    Returns:
        The rows of a score file, one per trial (from 1) and pair, in which good and bad are numbers of votes, and the
        templates that were drawn for each trial.
    """
    import pandas as pd

    drawn = draws({voter: list(scores[voter]["template"].unique()) for voter in parameters.voters}, parameters)
    first = scores[next(iter(parameters.voters))].drop_duplicates(_NAMES, ignore_index=True)
    pairs = first[[*_NAMES, *(name for name in first if str(name).endswith(("_words", "_chars", "_unk")))]]
    votes = {voter: _votes(voter, scores[voter], pairs) for voter in parameters.voters}
    nothing = dict.fromkeys(("good_lp", "bad_lp", "good_tokens", "bad_tokens"), np.nan)
    rows = []
    for trial, of in enumerate(drawn, start=1):
        cast = np.concatenate([votes[voter][some].to_numpy() for voter, some in of.items()], axis=1)
        sides = {"good": (cast > 0).sum(axis=1).astype(float), "bad": (cast < 0).sum(axis=1).astype(float)}
        rows.append(pairs.assign(template=None, trial=trial, order=None, rival=None, rivals=None, **sides, **nothing))
    return pd.concat(rows, ignore_index=True), drawn


def draws(templates: Mapping[str, list[str]], parameters: Votes) -> list[Drawn]:
    """Draw some of each method's templates for each trial, without replacement.

    A trial depends only on the seed and its number. Raises ConfigError if a method has too few templates.
    """
    for voter, count in parameters.voters.items():
        if count > len(templates[voter]):
            raise ConfigError(
                f"voters: can't draw {count} predictions of {voter}, because it has only {len(templates[voter])} "
                f"templates ({', '.join(templates[voter])}). Draw at most as many."
            )
    drawn: list[Drawn] = [{} for _ in range(parameters.trials)]
    for trial, names in enumerate(drawn):
        for number, voter in enumerate(sorted(parameters.voters)):
            order = permutation(len(templates[voter]), parameters.seed, trial, number)[: parameters.voters[voter]]
            names[voter] = [templates[voter][at] for at in sorted(order.tolist())]
    return drawn


def _votes(voter: str, scores: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return votes (P, templates): 1 for the good sentence, -1 for the bad one or if a score is NaN, 0 for a tie."""
    good, bad = scores["good"], scores["bad"]
    cast = scores.assign(vote=np.where(good > bad, 1, np.where(good == bad, 0, -1)))
    table = cast.pivot(index=_NAMES, columns="template", values="vote")
    votes = table.reindex(pairs.set_index(_NAMES).index)
    if len(table) != len(pairs) or votes.isna().any(axis=None):
        other = votes.columns[votes.isna().any()].tolist() or votes.columns.tolist()
        raise RunError(
            f"scores of {voter}: template {other[0]} was scored on other pairs than the rest. Remove the score file of "
            f"{voter} and score again."
        )
    return votes
