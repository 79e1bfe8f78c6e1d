"""The paradigms of generated pairs that a vocabulary leaves without pairs, and why: told, never scored on fewer."""

from __future__ import annotations

import pandas as pd

from analysis.exhibits.exhibit import Exhibit, as_it_is, count
from analysis.sections.section import Report, Section, contributes
from analysis.study.collect import Study
from analysis.study.judgements import Judgements
from eval.scores.files import read_unavailable


def unavailable_exhibits(study: Study, judged: Judgements) -> list[Exhibit]:
    """A table of paradigms, how many runs lack them, and the reason; nothing where all have all, or scores are away."""
    lacking: dict[str, list[str]] = {}
    for run in judged.runs.index:
        if run in study.folders:
            for paradigm, reason in read_unavailable(study.folders[run].scores(judged.label)).items():
                lacking.setdefault(paradigm, []).append(reason)
    if not lacking:
        return []
    table = pd.DataFrame(
        [(paradigm, len(reasons), reasons[0]) for paradigm, reasons in sorted(lacking.items())],
        columns=["paradigm", "runs", "reason"],
    )
    about = (
        f"Of {judged.label}: fewer than 200 different pairs of these paradigms can be made of the words that samples "
        f"hold often enough, so none is scored, in so many of the {len(judged.runs)} runs."
    )
    return [Exhibit("unavailable", "Paradigms without pairs", about, table, cells={"runs": count, "reason": as_it_is})]


@contributes(90)
def unavailable(section: Section, report: Report) -> list[Exhibit]:
    return unavailable_exhibits(report.study, section.judged) if report.from_files else []
