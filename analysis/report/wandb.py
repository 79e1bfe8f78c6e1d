"""What W&B is told of an analysis: the figures of learning curves and the tables of slopes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.config import AnalysisConfig
from analysis.curves.fit import ALL_PAIRS
from analysis.exhibits.tables.slopes import slope_table
from analysis.report.report import file_label
from analysis.sections.section import Section
from train.runs.wandb import tracked


def track_analysis(study: str, folder: Path, sections: Sequence[Section], config: AnalysisConfig) -> None:
    """Track the analysis whose report is in `folder`, where config.logger asks for it; what it was before is replaced.

    Raises what `tracked` does.
    """
    chosen = {"study": study, "method": config.analysis.method, "ties": config.ties, "source": config.source}
    with tracked(config.logger, "analysis", study, study, folder, chosen) as tracker:
        if tracker is None:
            return
        for section in sections:
            label = file_label(section, config.analysis)
            tracker.image(f"curves/{label}", folder / f"{label}-curves.png")
            slopes = slope_table(section.curves, ALL_PAIRS)
            tracker.table(f"slopes/{label}", slopes)
            whole = slopes[(slopes["level"] == "overall") & slopes["slope"].notna()]
            tracker.summarise({f"slope/{label}/{row.group}": row.slope for row in whole.itertuples()})
