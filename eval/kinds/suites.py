"""SyntaxGym's suites (work.py has what all kinds share)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from eval.config import EvalConfig
from eval.kinds.work import ItemsWork
from eval.scores.table import percent
from eval.syntaxgym.config import SyntaxGymConfig
from eval.syntaxgym.measures import measures
from eval.syntaxgym.regions import answers
from eval.syntaxgym.suites import Suites, load_suites
from eval.syntaxgym.table import scores_table
from pairscale.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from eval.scorers.base import TokenScores


class SuitesWork(ItemsWork):
    """The scores of one run on suites."""

    files = ("regions", "success")
    items: Suites

    @classmethod
    def read(cls, config: EvalConfig, described: Mapping[str, Any]) -> Suites:
        """Return the suites. Raises as `load_suites`."""
        assert isinstance(config.benchmark, SyntaxGymConfig)
        return load_suites(config.benchmark.path, config.benchmark.suites)

    @classmethod
    def texts(cls, items: Suites) -> list[str]:
        return items.texts

    def requested(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Raises InputError for a masked model."""
        if self.scorer.masked:
            raise InputError(
                f"benchmark={self.config.benchmark.name}: {self.scorer.name} is a masked model, must be one that reads "
                "from left to right, as formulas compare the surprisal of regions given the text before them"
            )
        yield from super().requested()

    @property
    def contents(self) -> str:
        suites = self.items.suites
        return f"{sum(len(suite.items) for suite in suites):,} items of {len(suites)} suites"

    def rows(self, scores: Mapping[str, TokenScores]) -> dict[str, pd.DataFrame]:
        success, regions = answers(self.items, scores, skip_unk=self.config.policy.unk == "skip")
        return {"regions": regions, "success": success}

    @classmethod
    def measures(cls, rows: pd.DataFrame, benchmark: str) -> pd.DataFrame:
        return measures(rows)

    def headline(self) -> dict[str, float | str]:
        """Return the first of the overall scores."""
        first = self.measure().iloc[0]
        return {"note": f"{first['name']} {percent(first['accuracy'])}%"}

    def tables(self, trajectory: list[dict[str, Any]], width: int) -> Iterator[Table]:
        yield scores_table(self.title + self.scored_already, self.measure(), width)
