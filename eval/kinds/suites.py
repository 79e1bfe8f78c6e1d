"""SyntaxGym's suites (work.py has what all kinds share)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from eval.config import EvalConfig
from eval.kinds.work import ItemsWork
from eval.published import read_published
from eval.scores.table import WIDTH, measures_table, percent
from eval.syntaxgym.config import NAME, SyntaxGymConfig
from eval.syntaxgym.measures import CIRCUIT, OVERALL, SUITE, measures
from eval.syntaxgym.regions import answers
from eval.syntaxgym.suites import Suites, load_suites
from pairscale.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from eval.scorers.base import TokenScores

CAPTION = "per cent; 95% intervals: for new items; a tie is no success; known: items without <unk> in their regions"
# Published models of Hu et al. 2020, for terminals that have room, and their headings.
BESIDE = {"GRNN": "GRNN", "JRNN": "JRNN", "Transformer-XL": "TXL", "GPT-2": "GPT-2"}


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
                f"benchmark={NAME}: {self.scorer.name} is a masked model, which has no surprisal given the text "
                "before; score one that reads from left to right"
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
        """Yield a row for each overall score, circuit and suite."""
        measures, beside, caption = self.measure(), {}, CAPTION
        if width >= WIDTH:
            beside, caption = BESIDE, f"{CAPTION}\n{', '.join(BESIDE.values())}: Hu et al. 2020"
        shown = measures[measures["level"].isin([OVERALL, CIRCUIT, SUITE])]
        title, names = self.title + self.scored_already, {"name": "suites"}
        yield measures_table(title, caption, shown, read_published(NAME), names, beside, bold=(OVERALL, CIRCUIT))
