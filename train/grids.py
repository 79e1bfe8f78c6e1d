"""Sweeps (-m) of the commands `train` and `eval`: their runs are recorded with the study, then run side by side."""

from pairscale.command.line import Line, set_current
from pairscale.command.main import Session
from train.sweeps import points, record_points


def run_grid(command: str, line: Line, session: Session) -> None:
    """Run the points of a sweep; with dry_run=true, plan each here."""
    refused: list[Exception] = []
    found = list(points(command, line, refused))
    if found and found[0].config.dry_run:
        for error in refused:
            session.report(error, once=True)
        for point in found:
            set_current(point.line)
            session.attempt(lambda point=point: point.config, once=True)  # type: ignore[misc]
        return
    if refused and not found:
        session.report_all(refused)
        return
    for error in refused:
        session.report(error)
    record_points(found, command, f"python -m {command} -m {line.written}")
    for point in found:  # until the pool is merged
        set_current(point.line)
        session.attempt(lambda point=point: point.config)  # type: ignore[misc]
