"""Read the results of simulated studies like `python -m analysis` does."""

from pathlib import Path
from typing import Any

from analysis.config import ReportConfig
from analysis.report.benchmark import BenchmarkResults
from analysis.run import read_benchmarks, read_study
from pairscale.command.compose import compose
from tests.support.simulated_study import SimulatedStudy

EVIL = "</script><script>alert(1)</script>"


def results_of(folder: Path, options: dict[str, Any] | None = None, **simulated: Any) -> BenchmarkResults:
    """Write a simulated study below `folder` and return its results. `simulated` contains fields of SimulatedStudy."""
    study = SimulatedStudy(**simulated)
    study.write(folder / "runs")
    config = compose("analysis", [f"study={study.name}", f"paths.runs={folder}/runs"])
    config.analysis = ReportConfig(**{"method": "lp", "confidence": 0.95, **(options or {})})
    return read_benchmarks(config, read_study(config))[0]
