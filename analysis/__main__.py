"""`python -m analysis study=NAME`: learning curves, tables, figures and a report of a study's score files."""

from __future__ import annotations

from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from rich.console import Console
from rich.markup import escape

import conf
from analysis.collect import collect
from analysis.config import AnalysisConfig
from analysis.curves import ALL_PAIRS, fit_curves
from analysis.judgements import judgements, score_labels
from analysis.papers import reproduce
from analysis.report import Section, write_report
from analysis.reproduction import FOLDER, print_reproduction, write_reproduction
from analysis.sentences import warnings
from analysis.tables import slope_table, terminal_table, with_published
from corpora.errors import ConfigError
from eval.published import read_published


def run(config: AnalysisConfig) -> None:
    """Analyse `config.study`: all benchmarks that it was scored on, or the one that the command line names."""
    if config.published:
        _published(config)
        return
    if config.study is None:
        folder = Path(config.paths.runs)
        known = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        raise ConfigError(f"study=null: give the name of a study; in {folder} there are: {', '.join(known) or 'none'}")
    experiment = (conf.FOLDER / "experiment" / f"{config.study}.yaml").exists()
    study = collect(config.paths.runs, config.study, conf.expected_runs(config.study) if experiment else None)
    chosen = any(override.partition("=")[0] == "benchmark" for override in HydraConfig.get().overrides.task)
    console, quiet = Console(), Console(stderr=True, highlight=False)
    sections = []
    for label in score_labels(study, config.benchmark.name if chosen else None):
        benchmark = label.partition("+")[0]
        with quiet.status(f"{label}: reading scores"):
            judged = judgements(study, label, config.analysis.method, config.ties)
        with quiet.status(f"{label}: fitting curves to {len(judged.runs)} runs on {len(judged.pairs):,} pairs"):
            curves = fit_curves(judged, config.analysis)
        curves.slopes = with_published(curves.slopes, judged.runs, benchmark)
        sections.append(Section(judged, curves, read_published(benchmark)))
        made_by = judged.method + (f", mean over {judged.over}" if judged.over else "")
        console.print(terminal_table(slope_table(curves, ALL_PAIRS), f"{config.study} · {label} · {made_by}"))
        notes = {f"{group}: {note}." for group, note in curves.slopes[["group", "note"]].to_numpy() if note}
        for text in [*warnings(judged), *sorted(notes)]:
            quiet.print("[yellow]note[/]", escape(text), soft_wrap=True)
    with quiet.status("writing the report"):
        path = write_report(
            Path(config.paths.reports) / config.study, config.study, sections, config.analysis, config.ties, experiment
        )
    console.print(f"report: {path}", markup=False, soft_wrap=True)


def _published(config: AnalysisConfig) -> None:
    """The papers' tables and figures from the published numbers: no study, no runs."""
    given = [override.lstrip("+~") for override in HydraConfig.get().overrides.task]
    useless = [override for override in given if not override.startswith(("published=", "paths."))]
    if useless:
        raise ConfigError(f"published=true: takes paths.reports alone; leave away {', '.join(useless)}")
    papers = reproduce()
    console = Console()
    print_reproduction(console, papers)
    with Console(stderr=True, highlight=False).status("writing the report"):
        path = write_reproduction(Path(config.paths.reports) / FOLDER, papers)
    console.print(f"report: {path}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    conf.main("analysis", run)
