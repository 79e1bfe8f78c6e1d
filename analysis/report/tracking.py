"""Tracking of an analysis: figures of learning curves and tables of slopes."""

from pathlib import Path

from analysis.curves.fit import ALL_PAIRS
from analysis.exhibits.tables.slopes import slope_table
from analysis.sections.section import Report
from train.trackers.tracker import Job, tracked


def track_analysis(folder: Path, report: Report) -> None:
    """Track the analysis whose report is in `folder`, in place of an earlier one. Raises the errors of `tracked`."""
    study, config = report.study.name, report.config
    chosen = {"study": study, "method": config.analysis.method, "ties": config.ties, "source": config.source}
    with tracked(config.logger, Job("analysis", study, study, folder, chosen)) as tracker:
        for section in report.sections.values():
            label = report.file_label(section)
            tracker.image(f"curves/{label}", folder / f"{label}-curves.png")
            slopes = slope_table(section.curves, ALL_PAIRS)
            tracker.table(f"slopes/{label}", slopes)
            whole = slopes[(slopes["level"] == "overall") & slopes["slope"].notna()]
            tracker.summarise({f"slope/{label}/{row.group}": row.slope for row in whole.itertuples()})
