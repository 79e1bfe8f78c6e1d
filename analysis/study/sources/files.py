"""Studies from run folders, several of them joined by + in `study`."""

from pathlib import Path

from analysis.config import AnalysisConfig
from analysis.study.collect import Study, collect
from analysis.study.combine import names_of
from analysis.study.judgements import judgements
from analysis.study.sources.source import FILES, source
from eval.sweeps import requested_runs
from pairscale.errors import ConfigError


@source(FILES, judge=judgements)
def from_files(config: AnalysisConfig) -> list[Study]:
    """Collect the studies of `config.study`. Raises ConfigError without one, RunError as `collect` does."""
    if config.study is None:
        folder = Path(config.paths.runs)
        names = sorted(path.name for path in folder.glob("*") if path.is_dir())
        raise ConfigError(f"study=null: name a study; available in {folder}: {', '.join(names) or 'none'}")
    names = names_of(config.study, config.paths.runs)
    return [collect(config.paths.runs, name, expected_runs(config, name)) for name in names]


def expected_runs(config: AnalysisConfig, study: str) -> dict[str, str]:
    """Return the points of the grid that a study's sweeps requested, by run id."""
    return {run: request.point for run, request in requested_runs(config.paths.runs, study).items()}
