"""Compute the scores that are missing from a run's files, loading each model only once."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from corpora.config import RootConfig
from eval.config import EvalConfig, SurprisalCommand, score_label
from eval.kinds.items import KINDS
from eval.kinds.work import Work
from eval.scores.table import EXPENDABLE, WIDTH
from eval.tracking import track_scores
from pairscale import COMMANDS
from pairscale.command.board import Board, Ended
from pairscale.command.line import current
from pairscale.console import print_text
from pairscale.errors import ConfigError, InputError, RunError, StoreError, WriteError
from pairscale.progress import report_result, result_so_far, shown, take_result
from pairscale.sizes import plural
from pairscale.tables import print_table
from train.models.config import PretrainedConfig
from train.run import record_pretrained
from train.runs.folder import DONE, RunFolder, study_runs
from train.sweeps import is_requested

if TYPE_CHECKING:
    from eval.scorers.base import Scorer

MOST_LINES = 50  # a run's tables are only printed without verbose=true if they have at most this many lines
# Errors that affect only one run, so the others can still be scored. WriteError isn't one: a full disk affects all.
_RUN_ERRORS = (ConfigError, InputError, RunError, StoreError)


def add_pretrained(config: EvalConfig) -> tuple[RunFolder, Scorer]:
    """Create the run folder of a pretrained model, and return it with the model's scorer.

    The folder contains the configuration and digests, but no weights. `config.model` must be a PretrainedConfig.
    Raises the same errors as `pretrained_scorer`.
    """
    assert isinstance(config.model, PretrainedConfig)
    from eval.scorers.base import Execution
    from eval.scorers.load import pretrained_scorer

    scorer = pretrained_scorer(config.model, Execution.of(config))
    digests = {"digest": scorer.digest, "tokenizer_digest": scorer.tokenizer_digest}
    trained = {"step": config.model.step, "tokens": config.model.tokens, "tokenizer_path": scorer.tokenizer_path}
    run = record_pretrained(config, **digests, **trained)
    if scorer.tokenizer_path:
        _say(f"{run.path.name}: the model's folder has no tokenizer. The one in {scorer.tokenizer_path} is used.")
    return run, scorer


def check_benchmark(config: EvalConfig) -> None:
    """Check the methods, and the benchmark if its items don't depend on the run. Raises ConfigError or InputError."""
    KINDS[type(config.benchmark)].check(config)


def score_run(
    run: RunFolder, configs: EvalConfig | Sequence[EvalConfig], scorer: Scorer | None = None, tables: bool = True
) -> None:
    """Compute a run's missing scores on one or more benchmarks, and print the tables of all requested scores.

    The model and its snapshots are loaded once for all benchmarks. If one of several benchmarks fails, its error is
    printed, the others are still scored, and RunError is raised at the end.

    Args:
        run: A finished run.
        configs: One configuration per benchmark.
        scorer: The run's model, if it is already loaded.
        tables: Whether to print the tables.

    Raises:
        RunError: If the run isn't finished or is in use, or if its model or a score file is damaged.
        InputError: If a file of the benchmark can't be used.
        ConfigError: If values of the configuration don't fit together.
    """
    configs = [configs] if isinstance(configs, EvalConfig) else configs
    run.check_done()
    works: dict[int, Work] = {}  # for the exported model, by index of the configuration
    failed: dict[int, str] = {}

    @contextmanager
    def attempt(number: int, action: str) -> Iterator[None]:
        name = configs[number].benchmark.name
        try:
            yield
        except _RUN_ERRORS as error:
            if len(configs) == 1:
                raise
            _say(f"{run.path.name} could not be {action} on {name}: {error}")
            failed[number] = f"{action} on {name}"

    with run.locked():
        for number, make in works_of(run, configs, scorer):
            if number not in failed:
                with attempt(number, "scored"):
                    work = _score_missing(run, configs[number], make, began=number in works)
                    works.setdefault(number, work)
        if works.keys() - failed:
            track_scores(run, configs[0])
    for number, work in works.items():
        if number not in failed:
            with attempt(number, "shown"):
                for note in filter(None, (run.read_manifest().get("stuck"), *work.notes)):
                    _say(f"{work.title}: {note}")
                report_result(words=work.scorer.sample_words, **work.headline())
                if tables:
                    _print_tables(work, configs[number].verbose)
    if failed:
        raise RunError(f"{run.path.name} could not be {' or '.join(failed.values())}. Fix the errors above.")


def works_of(
    run: RunFolder, configs: Sequence[EvalConfig], scorer: Scorer | None = None, step: int | None = None
) -> Iterator[tuple[int, Callable[[], Work]]]:
    """Yield each configuration's index, with a function that finds out which of its scores are missing.

    The exported model comes first, then the snapshots; or only the snapshot at `step`. Each model is loaded by the
    first function that needs it.
    """
    with_snapshots = [number for number, config in enumerate(configs) if config.scoring.snapshots]
    for at in (None, *(run.snapshots if with_snapshots else ())) if step is None else (step,):
        load = cache(partial(load_at, run, configs[0], at, scorer))
        for number in range(len(configs)) if at is None else with_snapshots:
            yield number, partial(_work, run, configs[number], load)


def _work(run: RunFolder, config: EvalConfig, load: Callable[[], tuple[Scorer, dict[str, Any]]]) -> Work:
    return KINDS[type(config.benchmark)](run, config, *load())


def load_at(
    run: RunFolder, config: EvalConfig | SurprisalCommand, step: int | None, scorer: Scorer | None = None
) -> tuple[Scorer, dict[str, Any]]:
    """Return the scorer of a run's exported model or snapshot, and information about the snapshot ({} for the model).

    `scorer` is the exported model, if it is already loaded.
    """
    from eval.scorers.base import Execution
    from eval.scorers.load import run_scorer, trained_scorer
    from train.loop.snapshots import load_snapshot

    execution = Execution.of(config)
    if step is None:
        return scorer or run_scorer(run, execution), {}
    loaded = load_snapshot(run, step)
    return trained_scorer(loaded, f"{run.path.name} after {loaded.info['words_seen']:,} words", execution), loaded.info


def _score_missing(run: RunFolder, config: EvalConfig, make: Callable[[], Work], began: bool) -> Work:
    """Compute the missing scores and return the work. If this fails, record the reason in the manifest.

    If scoring fails before it begins because of bad input, such as a missing benchmark, the reason is recorded only if
    a sweep requested these scores.
    """
    from train.loop.device import enough_memory, set_up_cpu

    try:
        with enough_memory(f"set scoring.batch_tokens below {config.scoring.batch_tokens}"):
            work = make()
            began = True
            set_up_cpu(config.trainer, run.read_manifest().get("parameters"))
            if work.missing:
                work.score()
                report_result(new=True)
    except Exception as error:
        bad_input = isinstance(error, (ConfigError, InputError)) and not began
        if not bad_input or is_requested(run, config.benchmark.name):
            with suppress(WriteError):  # if the disk is full, the reason can't be recorded; `error` is still raised
                _record(run, config, error)
        raise
    _record(run, config)
    return work


def _record(run: RunFolder, config: EvalConfig, error: Exception | None = None) -> None:
    """Record in the manifest the command that was run, and the reason if scoring failed. Remove it after a success.

    The command is needed to reproduce the study. If a sweep requested these scores, its grid already has the command.
    """
    label = score_label(config.benchmark, config.policy)
    manifest = run.read_manifest()
    before = {key: manifest.get(key, {}) for key in ("scoring_failed", "scoring_commands")}
    failed, commands = ({name: of for name, of in values.items() if name != label} for values in before.values())
    if error is not None:
        failed[label] = f"{type(error).__name__}: {error}"
    if current().command and (error is not None or not is_requested(run, config.benchmark.name)):
        commands[label] = f"python -m {COMMANDS[current().command].module} {current().written}"
    after = {"scoring_failed": failed, "scoring_commands": commands}
    if after != before:
        run.update_manifest(**after)


def _print_tables(work: Work, verbose: bool) -> None:
    """Print the tables of a run. If they are long and `verbose` is False, print only the main result."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    with console.capture() as printed:
        for part in work.tables(console.width):
            if isinstance(part, Table):
                print_table(console, part, EXPENDABLE)
            else:
                print_text(console, str(part))
    lines = printed.get().splitlines()
    if len(lines) > MOST_LINES and not verbose:
        _say(f"{lines[0].strip()}: {result_so_far().text()} (add verbose=true to print {len(lines)} lines of tables)")
    else:
        print("\n".join(lines), flush=True)


def _say(text: str) -> None:
    print_text(Console(highlight=False), text)


def score_study(*configs: EvalConfig, tables: bool = True) -> None:
    """Score the finished runs of a study, one after the other, on the benchmark of each configuration.

    Runs that aren't finished are listed. `tables` is False if no tables of accuracies should be printed. Raises the
    same errors as `done_runs`. Raises RunError at the end if any run could not be scored.
    """
    config = configs[0]
    done, damaged = done_runs(config, "scored")
    for one in configs:
        check_benchmark(one)
    work = _say_plan if config.dry_run else partial(score_run, tables=tables)
    if config.dry_run or config.verbose or len(done) == 1 or not config.trainer.progress:
        failures = [score_or_report(partial(work, run, configs)) for run in done]
    else:
        failures = _score_each(done, configs)
    failed = damaged + len([failure for failure in failures if failure])
    check_failures(config, "scored", failed, len(done) + damaged)


def done_runs(config: RootConfig, action: str, run: str | None = None) -> tuple[list[RunFolder], int]:
    """Return the finished runs of a study, or only the one named `run`, and the number of damaged runs.

    For each other run, a message says that it was not `action` ("scored"), and why. Raises RunError if no run is
    finished, and the same errors as `study_runs`.
    """
    done, damaged = [], 0
    for folder in study_runs(config.paths.runs, config.study or "", run):
        try:
            manifest = folder.read_manifest()
        except RunError as error:
            _say(f"Not {action}: {error}")
            damaged += 1
            continue
        if manifest.get("status") == DONE:
            done.append(folder)
        else:
            status = ": ".join(filter(None, [manifest.get("status", "not started"), manifest.get("reason")]))
            _say(f"{folder.path.name} was not {action}. Its status: {status}")
    if not done:
        raise RunError(
            f"study={config.study}: no run is finished, so none can be {action}. Run the training command again."
        )
    return done, damaged


def check_failures(config: RootConfig, action: str, failed: int, total: int) -> None:
    """Raise RunError if some runs of a study could not be `action` ("scored"). Their errors have been printed."""
    if failed:
        raise RunError(f"study={config.study}: {failed} of {total} runs could not be {action}. Fix the errors above.")


def _score_each(done: Sequence[RunFolder], configs: Sequence[EvalConfig]) -> list[tuple[str, int] | None]:
    """Score several runs with one line per run and a summary table, and return the errors."""
    board, failures = Board([run.path.name for run in done]), []
    for number, run in enumerate(done):
        take_result()
        began = time.monotonic()
        with shown(f"{number + 1} of {len(done)}: {run.path.name}"):
            error = score_or_report(partial(score_run, run, configs, tables=False))
        failures.append(error)
        code = error[1] if error else 0
        board.end(Ended(number, code, time.monotonic() - began, take_result()))
    board.print_table()
    return failures


def score_or_report(work: Callable[[], object], name: str = "") -> tuple[str, int] | None:
    """Score a run by calling `work`. If that fails, print the error, and return it with its exit code."""
    try:
        work()
    except _RUN_ERRORS as error:
        _say(f"Not scored: {name}{error}")
        return str(error), error.exit_code
    return None


def _say_plan(run: RunFolder, configs: Sequence[EvalConfig]) -> None:
    plans: dict[str, list[str]] = {}
    for _, make in works_of(run, configs):
        work = make()
        plan = f"would score {work.contents}" if work.missing else "already scored"
        plans.setdefault(work.title, []).append(plan)
    for title, (exported, *snapshots) in plans.items():
        _say(f"{title}: {exported}")
        for description, count in Counter(snapshots).items():
            _say(f"  {plural(count, 'snapshot')}: {description}")
