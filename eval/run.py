"""Scoring of runs: the scores that their files do not have, in one pass over the model."""

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
from eval.config import EvalConfig, score_label
from eval.kinds.items import KINDS
from eval.kinds.work import Work
from eval.scores.table import EXPENDABLE, WIDTH
from eval.tracking import track_scores
from pairscale.command.board import Board, Ended
from pairscale.command.line import current
from pairscale.command.schemas import yaml_of
from pairscale.console import print_text
from pairscale.errors import ConfigError, InputError, RunError, StoreError, WriteError
from pairscale.files import write_text
from pairscale.progress import report_result, result_so_far, shown, take_result
from pairscale.sizes import plural
from pairscale.tables import print_table
from train.config import config_digest
from train.models.config import PretrainedConfig
from train.runs.folder import DONE, RunFolder, study_runs
from train.runs.provenance import versions
from train.sweeps import is_requested

if TYPE_CHECKING:
    from eval.scorers.base import Scorer

MOST_LINES = 50  # of the tables of one run, unless verbose=true
_OF_ONE = (ConfigError, InputError, RunError, StoreError)  # not WriteError: a full disk stops all


def add_pretrained(config: EvalConfig) -> tuple[RunFolder, Scorer]:
    """Create the run folder of a pretrained model; return it with the model's scorer.

    The folder holds the configuration and digests, no weights. config.model is a PretrainedConfig. Raises as
    `pretrained_scorer`.
    """
    assert isinstance(config.model, PretrainedConfig)
    from eval.scorers.base import Execution
    from eval.scorers.load import pretrained_scorer

    scorer = pretrained_scorer(config.model, Execution.of(config))
    run = RunFolder.of(config)
    with run.locked():
        write_text(run.config, yaml_of(config))
        digests = {"digest": scorer.digest, "tokenizer_digest": scorer.tokenizer_digest}
        trained = {"step": config.model.step, "tokens": config.model.tokens, "tokenizer_path": scorer.tokenizer_path}
        run.update_manifest(status=DONE, config_digest=config_digest(config), versions=versions(), **digests, **trained)
    if scorer.tokenizer_path:
        _say(f"{run.path.name}: its folder holds no tokenizer; that of {scorer.tokenizer_path} is used")
    return run, scorer


def check_benchmark(config: EvalConfig) -> None:
    """Check methods, and read the benchmark unless its pairs depend on the run. Raises what scoring would."""
    KINDS[type(config.benchmark)].check(config)


def score_run(
    run: RunFolder, configs: EvalConfig | Sequence[EvalConfig], scorer: Scorer | None = None, tables: bool = True
) -> None:
    """Compute a run's missing scores on the benchmark of each configuration; print the tables of all that they request.

    The run's model is loaded once for all of them, unless it is given as `scorer`, and so is each of its snapshots.
    An error in one of several benchmarks is printed, the others are scored and shown, and RunError is raised at the
    end. Raises RunError for a run that is not trained or in use, a damaged model or score file; InputError for the
    benchmark's files; ConfigError for values that do not fit.
    """
    configs = [configs] if isinstance(configs, EvalConfig) else configs
    run.check_done()
    works: dict[int, Work] = {}  # of the exported model, by number of the configuration
    failed: dict[int, str] = {}

    @contextmanager
    def attempt(number: int, action: str) -> Iterator[None]:
        name = configs[number].benchmark.name
        try:
            yield
        except _OF_ONE as error:
            if len(configs) == 1:
                raise
            _say(f"not {action}: {run.path.name} on {name}: {error}")
            failed[number] = f"not {action} on {name}"

    with run.locked():
        for number, make in _works(run, configs, scorer):
            if number not in failed:
                with attempt(number, "scored"):
                    work = _scored(run, configs[number], make, began=number in works)
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
        raise RunError(f"{run.path.name}: {', '.join(failed.values())} (see above)")


def _works(
    run: RunFolder, configs: Sequence[EvalConfig], scorer: Scorer | None = None
) -> Iterator[tuple[int, Callable[[], Work]]]:
    """Yield what to score: the number of a configuration, and a function that compares its request with the files.

    The exported model comes first, then each snapshot. Each is loaded when the first function needs it.
    """
    with_snapshots = [number for number, config in enumerate(configs) if config.scoring.snapshots]
    for step in (None, *(run.snapshots if with_snapshots else ())):
        load = cache(partial(_load, run, configs[0], step, scorer))
        for number in range(len(configs)) if step is None else with_snapshots:
            yield number, partial(_work, run, configs[number], load)


def _work(run: RunFolder, config: EvalConfig, load: Callable[[], tuple[Scorer, dict[str, Any]]]) -> Work:
    return KINDS[type(config.benchmark)](run, config, *load())


def _load(run: RunFolder, config: EvalConfig, step: int | None, scorer: Scorer | None) -> tuple[Scorer, dict[str, Any]]:
    """Return the exported model of a run (`scorer`, if it is loaded) and {}, or a snapshot and its moment."""
    from eval.scorers.base import Execution
    from eval.scorers.load import run_scorer, trained_scorer
    from train.loop.snapshots import load_snapshot

    execution = Execution.of(config)
    if step is None:
        return scorer or run_scorer(run, execution), {}
    loaded = load_snapshot(run, step)
    return trained_scorer(loaded, f"{run.path.name} after {loaded.info['words_seen']:,} words", execution), loaded.info


def _scored(run: RunFolder, config: EvalConfig, make: Callable[[], Work], began: bool) -> Work:
    """Compute what is missing, and return the work; record in the manifest why it failed.

    Bad input that stops scoring before it begins, such as a missing benchmark, is recorded only if a sweep requested
    these scores.
    """
    from train.loop.device import enough_memory, set_up_cpu

    try:
        with enough_memory(f"give a smaller scoring.batch_tokens than {config.scoring.batch_tokens}"):
            work = make()
            began = True
            set_up_cpu(config.trainer, run.read_manifest().get("parameters"))
            if work.missing:
                work.score()
                report_result(new=True)
    except Exception as error:
        bad_input = isinstance(error, (ConfigError, InputError)) and not began
        if not bad_input or is_requested(run, config.benchmark.name):
            with suppress(WriteError):  # a full disk cannot take the reason either; `error` is raised in any case
                _record(run, config, error)
        raise
    _record(run, config)
    return work


def _record(run: RunFolder, config: EvalConfig, error: Exception | None = None) -> None:
    """Record in the manifest why scoring failed, until an attempt succeeds, and the command of the attempt.

    The command stays where no sweep requested these scores, for those who make the study again; a sweep has its own in
    the grid.
    """
    label = score_label(config.benchmark, config.policy)
    manifest = run.read_manifest()
    before = {key: manifest.get(key, {}) for key in ("scoring_failed", "scoring_commands")}
    failed, commands = ({name: of for name, of in values.items() if name != label} for values in before.values())
    if error is not None:
        failed[label] = f"{type(error).__name__}: {error}"
    if current().command and (error is not None or not is_requested(run, config.benchmark.name)):
        commands[label] = f"python -m eval {current().written}"
    after = {"scoring_failed": failed, "scoring_commands": commands}
    if after != before:
        run.update_manifest(**after)


def _print_tables(work: Work, verbose: bool) -> None:
    """Print the tables of a run; of long ones only the headline, unless `verbose`."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    with console.capture() as printed:
        for part in work.tables(console.width):
            if isinstance(part, Table):
                print_table(console, part, EXPENDABLE)
            else:
                print_text(console, str(part))
    lines = printed.get().splitlines()
    if len(lines) > MOST_LINES and not verbose:
        _say(f"{lines[0].strip()}: {result_so_far().text()} ({len(lines)} lines of tables: verbose=true)")
    else:
        print("\n".join(lines), flush=True)


def _say(text: str) -> None:
    print_text(Console(highlight=False), text)


def score_study(*configs: EvalConfig) -> None:
    """Score every run of a study that is done on the benchmark of each configuration, in this process; list the others.

    Raises RunError as `done_runs`, and at the end if some could not be scored.
    """
    config = configs[0]
    done, damaged = done_runs(config, "scored")
    for one in configs:
        check_benchmark(one)
    work = _say_plan if config.dry_run else score_run
    if config.dry_run or config.verbose or len(done) == 1 or not config.trainer.progress:
        failures = [attempted(partial(work, run, configs)) for run in done]
    else:
        failures = _score_each(done, configs)
    failed = damaged + len([failure for failure in failures if failure])
    check_failures(config, "scored", failed, len(done) + damaged)


def done_runs(config: RootConfig, action: str, run: str | None = None) -> tuple[list[RunFolder], int]:
    """Return the runs of a study that are done, or the one that `run` names, and how many are damaged.

    Print which runs are not `action` ("scored"), and why. Raises RunError if no run is done, and as `study_runs`.
    """
    done, damaged = [], 0
    for folder in study_runs(config.paths.runs, config.study or "", run):
        try:
            manifest = folder.read_manifest()
        except RunError as error:
            _say(f"not {action}: {error}")
            damaged += 1
            continue
        if manifest.get("status") == DONE:
            done.append(folder)
        else:
            status = ": ".join(filter(None, [manifest.get("status", "not started"), manifest.get("reason")]))
            _say(f"not {action}: {folder.path.name}: {status}")
    if not done:
        raise RunError(f"study={config.study}: none of its runs is done")
    return done, damaged


def check_failures(config: RootConfig, action: str, failed: int, total: int) -> None:
    """Raise RunError if some runs of a study could not be `action`: they were printed one by one."""
    if failed:
        raise RunError(f"study={config.study}: {failed} of {total} runs could not be {action} (see above)")


def _score_each(done: Sequence[RunFolder], configs: Sequence[EvalConfig]) -> list[tuple[str, int] | None]:
    """Score several runs, with a line for each and a table of all; return the errors."""
    board, failures = Board([run.path.name for run in done]), []
    for number, run in enumerate(done):
        take_result()
        began = time.monotonic()
        with shown(f"{number + 1} of {len(done)}: {run.path.name}"):
            error = attempted(partial(score_run, run, configs, tables=False))
        failures.append(error)
        code = error[1] if error else 0  # the reason is printed
        board.end(Ended(number, code, time.monotonic() - began, take_result()))
    board.print_table()
    return failures


def attempted(work: Callable[[], object], name: str = "") -> tuple[str, int] | None:
    """Do the work on one of several runs; print and return its error, as the others can be scored, None without."""
    try:
        work()
    except _OF_ONE as error:
        _say(f"not scored: {name}{error}")
        return str(error), error.exit_code
    return None


def _say_plan(run: RunFolder, configs: Sequence[EvalConfig]) -> None:
    plans: dict[str, list[str]] = {}
    for _, make in _works(run, configs):
        work = make()
        plan = f"would score {work.contents}" if work.missing else "scored already"
        plans.setdefault(work.title, []).append(plan)
    for title, (exported, *snapshots) in plans.items():
        _say(f"{title}: {exported}")
        for description, count in Counter(snapshots).items():
            _say(f"  {plural(count, 'snapshot')}: {description}")
