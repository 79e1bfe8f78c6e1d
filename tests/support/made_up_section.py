"""One benchmark's part of the report of a made-up study, made as `python -m analysis` makes it."""

from pathlib import Path
from typing import Any

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.exhibits.sentences.findings import findings
from analysis.exhibits.tables.slopes import with_published
from analysis.sections.benchmark import study_exhibits
from analysis.sections.section import Section
from analysis.sections.unknown_words import vocabulary_exhibits
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from eval.published import read_published
from tests.support.made_up_study import MadeUpStudy

EVIL = "</script><script>alert(1)</script>"
CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)


def section_of(runs: Path, benchmark: str = "blimp", **made_up: Any) -> Section:
    """The section of a study (`made_up`: fields of MadeUpStudy) that is written to a folder of runs."""
    study = MadeUpStudy(pairs=20, benchmark=benchmark, **made_up)
    study.write(runs)
    judged = judgements(collect(runs, study.name), benchmark, "lp", "wrong")
    curves = fit_curves(judged, CONFIG)
    curves.slopes = with_published(curves.slopes, judged.runs, benchmark)
    found = findings(curves, judged.unit, CONFIG.confidence)
    published = read_published(benchmark)
    exhibits = [*study_exhibits(judged, curves, published), *vocabulary_exhibits(judged, curves)]
    return Section(judged, curves, published, found=found, exhibits=exhibits)
