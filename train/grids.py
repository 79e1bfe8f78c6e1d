"""Sweeps (-m) of the commands `train` and `eval`: their runs are recorded with the study, then run side by side."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from pairscale.command.board import run_names
from pairscale.command.line import Line
from pairscale.command.main import Session
from pairscale.command.pool import Job, check_codes, run_jobs
from pairscale.errors import PairscaleError
from train.config import RunConfig
from train.loop.device import takes_gpu
from train.runs.folder import NO_STUDY, RunFolder
from train.sweeps import Point, names_a_run, points, record_points


def run_grid(command: str, line: Line, session: Session) -> None:
    """Run the points of a sweep; with dry_run=true, plan each here. Raises RunError and RunInUse as `check_codes`."""
    refused: list[Exception] = []
    found = list(points(command, line, refused))
    session.report_refused(refused, len(refused) + len(found))
    if not found:
        return
    if found[0].config.dry_run:
        for point in found:
            session.attempt(point.line, lambda point=point: point.config)  # type: ignore[misc]
        return
    record_points(found, command, f"python -m {command} -m {line.written}")
    jobs, config = jobs_of(found), found[0].config
    logs = Path(config.paths.runs, config.study or NO_STUDY, "logs")
    progress = config.trainer.progress and not config.verbose
    check_codes(run_jobs(command, jobs, config.pool, logs, lambda: memory_of(jobs), progress))


def jobs_of(points: Iterable[Point]) -> list[Job]:
    """Return the jobs of a sweep; a run that it names more than once, on one benchmark, is one job."""
    made: list[Job] = []
    kept: list[Point] = []
    known: dict[Path, list[RunConfig]] = {}
    for point in points:
        config = point.config.of_run()
        is_run = point.line.command == "train" or config.study is None or names_a_run(point.line)
        folder = RunFolder.of(config).path if is_run else Path(config.paths.runs) / config.study
        if config not in known.setdefault(folder, []):
            known[folder].append(config)
            kept.append(point)
            words, devices = _words_to_train_on(config), config.trainer.devices
            made.append(Job(point.line.words, "", folder, takes_gpu(config), devices, words, config))
    names = run_names([point.varied for point in kept], [job.config.sample.count for job in made])
    return [replace(job, name=name) for job, name in zip(made, names, strict=True)]


def _words_to_train_on(config: RunConfig) -> float:
    """Return the words that a run trains on, with repeats; 0 if it is trained already."""
    with suppress(PairscaleError):  # a study to be scored, or a damaged folder, which the run itself reports
        if not RunFolder.of(config).done:
            words, budget = config.sample.number, config.recipe.budget
            return words if budget is None else budget.words_seen(words)
    return 0.0


def memory_of(jobs: Sequence[Job]) -> int:
    """Return the bytes that the largest of `jobs` takes; 0 if unknown, as for models that are not downloaded yet."""
    configs = [job.config for job in jobs if job.config]
    trained = [config for config in configs if config.recipe.trains]
    largest = max((config.model.weight_bytes for config in configs), default=0)  # loading takes no less
    if trained:  # in a process of its own: torch's hundreds of MiB would stay here as long as the sweep takes
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            largest = max(largest, pool.submit(_peak_memory, trained).result())
    return largest


def _peak_memory(configs: Sequence[RunConfig]) -> int:
    from train.estimate import peak_memory

    return peak_memory(configs)
