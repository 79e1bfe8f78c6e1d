"""Define methods that vote with predictions from the templates of other methods (Ide et al. 2024, section 6).

A prediction is a vote for the sentence with the higher score. If the two scores of a template are equal, it doesn't
vote. If both sentences get the same number of votes, the pair is tied, and `ties` applies as for any method.
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
Drawn = dict[str, list[str]]  # names of templates, by method
_NAMES = ["paradigm", "pair_id"]


@dataclass
class Votes:
    """The parameters of votes."""

    voters: dict[str, Draws] = field(default_factory=dict)  # methods, and the number of predictions to draw from each
    trials: Draws = 10  # number of votes; the predictions are drawn again for each
    seed: Seed = 1  # seed for drawing predictions


@method("vote_p", Votes({"yes_no": 5}), VOTES)
@method("vote_mix_p3", Votes({"yes_no": 3, "in_template_lp": 2}), VOTES)
@method("vote_mix_l3", Votes({"yes_no": 2, "in_template_lp": 3}), VOTES)
@method("vote_l", Votes({"in_template_lp": 5}), VOTES)
def vote(scores: Mapping[str, pd.DataFrame], parameters: Votes) -> tuple[pd.DataFrame, list[Drawn]]:
    """Vote with predictions from other methods' templates, which are drawn again for each trial.

    Args:
        scores: The rows of each method that votes.
        parameters: The parameters of the vote.

    Returns:
        The rows of a score file, and the templates that were drawn for each trial. There is one row per trial (from 1)
        and pair, in which good and bad are numbers of votes.
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
                f"voters.{voter}={count}: the method {voter} has only {len(templates[voter])} templates "
                f"({', '.join(templates[voter])}). Set this to at most {len(templates[voter])}."
            )
    drawn: list[Drawn] = [{} for _ in range(parameters.trials)]
    for trial, names in enumerate(drawn):
        for number, voter in enumerate(sorted(parameters.voters)):
            order = permutation(len(templates[voter]), parameters.seed, trial, number)[: parameters.voters[voter]]
            names[voter] = [templates[voter][at] for at in sorted(order.tolist())]
    return drawn


def _votes(voter: str, scores: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return votes (P, templates). 1 is a vote for the good sentence, 0 a tie, and -1 any other case, as with NaN."""
    good, bad = scores["good"], scores["bad"]
    cast = scores.assign(vote=np.where(good > bad, 1, np.where(good == bad, 0, -1)))
    table = cast.pivot(index=_NAMES, columns="template", values="vote")
    votes = table.reindex(pairs.set_index(_NAMES).index)
    if len(table) != len(pairs) or votes.isna().any(axis=None):
        other = votes.columns[votes.isna().any()].tolist() or votes.columns.tolist()
        raise RunError(
            f"scores of {voter}: template {other[0]} was scored on other pairs than the other templates. Remove the "
            f"score file of {voter}, and score again."
        )
    return votes
