"""The report of a simulated study and its section on one benchmark, as `python -m analysis` makes them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.exhibits.sentences.findings import findings
from analysis.exhibits.tables.slopes import with_published
from analysis.sections.benchmark import study_exhibits
from analysis.sections.perplexity import perplexity_exhibits
from analysis.sections.section import Report, Section
from analysis.sections.unknown_words import vocabulary_exhibits
from analysis.study.collect import Study, collect
from analysis.study.judgements import judgements
from eval.published import read_published
from pairscale.command.compose import compose
from tests.support.simulated_study import SimulatedStudy

EVIL = "</script><script>alert(1)</script>"
CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)


def section_of(runs: Path, benchmark: str = "blimp", **simulated: Any) -> Section:
    """Write a study to a folder of runs and return its section; `simulated` are fields of SimulatedStudy."""
    study = SimulatedStudy(pairs=20, benchmark=benchmark, **simulated)
    study.write(runs)
    judged = judgements(collect(runs, study.name), benchmark, "lp", "wrong")
    curves = fit_curves(judged, CONFIG)
    curves.slopes = with_published(curves.slopes, judged.runs, benchmark)
    published = read_published(benchmark)
    section = Section(judged, curves, published, findings=findings(curves, judged.unit, CONFIG.confidence))
    section.exhibits = [
        *study_exhibits(judged, curves, published),
        *vocabulary_exhibits(judged, curves, CONFIG.confidence),
    ]
    section.exhibits += perplexity_exhibits(section, CONFIG.confidence)
    return section


def report_of(
    *sections: Section, name: str = "simulated", config: CurvesConfig = CONFIG, commands: Sequence[str] = ()
) -> Report:
    """Return the report of a study that has these sections."""
    settings = replace(compose("analysis", []), analysis=config, ties="wrong")
    study = Study(name, pd.DataFrame(), pd.DataFrame())
    return Report(study, settings, {section.label: section for section in sections}, commands=commands)
