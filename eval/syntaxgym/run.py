"""One run on SyntaxGym's suites: the counterpart of eval/pairs.py for items of regions, which have no methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.config import EvalConfig, recorded_policy, score_label
from eval.diagnostics.run import answer_metadata, compared
from eval.scores.table import percent
from eval.syntaxgym.config import SyntaxGymConfig
from eval.syntaxgym.files import read_success, success_metadata, write_success
from eval.syntaxgym.measures import measures
from eval.syntaxgym.regions import answers
from eval.syntaxgym.suites import Suites, load_suites
from eval.syntaxgym.table import scores_table
from pairscale.errors import InputError
from train.loop.device import set_up_cpu
from train.runs.folder import RunFolder

if TYPE_CHECKING:
    from rich.table import Table

    from eval.scorers.base import Scorer


@dataclass(frozen=True)
class SuitesWork:
    """The scores of one run on suites; `missing` from its files, `unrecorded`: in files without settings."""

    run: RunFolder
    config: EvalConfig
    scorer: Scorer
    suites: Suites
    folder: Path
    metadata: dict[str, Any]
    missing: bool
    unrecorded: bool

    @staticmethod
    def check_methods(config: EvalConfig) -> None:
        """Accept any methods: suites have none."""

    @staticmethod
    def check_benchmark(config: EvalConfig) -> None:
        """Read the suites. Raises as `load_suites`."""
        _suites(config)

    @classmethod
    def of(cls, run: RunFolder, config: EvalConfig, scorer: Scorer) -> SuitesWork:
        """Compare what is requested with the files of a run.

        Raises as `load_suites`, InputError for a masked model, RunError for damaged files.
        """
        if scorer.masked:
            raise InputError(
                f"benchmark={config.benchmark.name}: {scorer.name} is a masked model, must be one that reads from left "
                f"to right, as formulas compare the surprisal of regions given the text before them"
            )
        suites, policy = _suites(config), config.policy
        about = {"name": config.benchmark.name, "digest": suites.digest}
        metadata = answer_metadata(run, scorer, about, recorded_policy(policy, scorer.scores_eos(policy), None), {})
        folder = run.scores(score_label(config.benchmark, policy))
        return cls(run, config, scorer, suites, folder, metadata, *compared(success_metadata(folder), metadata))

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Return {}: all suites are there."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return (): nothing is odd about the suites."""
        return ()

    def described(self) -> str:
        """Return what would be scored, for dry runs."""
        suites = self.suites.suites
        items = f"{sum(len(suite.items) for suite in suites):,} items of {len(suites)} suites"
        return f"would score {items}" if self.missing else "scored already"

    def headline(self) -> dict[str, float | str]:
        """Return what a line about the run says: the first of the overall scores."""
        first = measures(read_success(self.folder)[0]).iloc[0]
        return {"note": f"{first['name']} {percent(first['accuracy'])}%"}

    def score(self) -> None:
        """Score all different sentences in one pass, and write both files."""
        set_up_cpu(self.config.trainer, self.run.read_manifest().get("parameters"))
        texts = self.suites.texts
        scores = dict(zip(texts, self.scorer.score(texts, self.config.policy), strict=True))
        success, regions = answers(self.suites, scores, skip_unk=self.config.policy.unk == "skip")
        write_success(self.folder, success, regions, self.metadata)

    def tables(self, trajectory: list[dict[str, Any]], width: int) -> Iterator[Table]:
        """Yield what the terminal shows of the files; suites have no `trajectory`."""
        title = f"{self.run.path.name} · {self.folder.name}" + ("" if self.missing else " (scored already)")
        yield scores_table(title, measures(read_success(self.folder)[0]), width)


def _suites(config: EvalConfig) -> Suites:
    assert isinstance(config.benchmark, SyntaxGymConfig)
    return load_suites(config.benchmark.path, config.benchmark.suites)
