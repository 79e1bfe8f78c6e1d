"""Scoring of runs: the scores that their files do not have, in one pass over the model."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf
from rich.console import Console
from rich.table import Table

from eval.config import EvalConfig, PretrainedConfig, score_label
from eval.grid import is_requested
from eval.kinds.pairs import PairsWork
from eval.kinds.registry import KINDS
from eval.kinds.work import Work
from eval.scores.table import EXPENDABLE, WIDTH
from eval.tracking import track_scores
from pairscale.command.launchers.board import Board
from pairscale.command.launchers.jobs import Work as Job
from pairscale.command.line import search_path
from pairscale.console import print_text
from pairscale.errors import ConfigError, InputError, RunError, StoreError, WriteError
from pairscale.files import write_text
from pairscale.progress import report_result, result_so_far
from pairscale.tables import print_table
from train.runs.folder import DONE, RunFolder, study_runs
from train.runs.identity import config_digest
from train.runs.provenance import versions

if TYPE_CHECKING:
    from eval.scorers.base import Scorer

MOST_LINES = 50  # of the tables of one run, unless verbose=true


def add_pretrained(config: EvalConfig) -> tuple[RunFolder, Scorer]:
    """Create the run folder of a pretrained model; return it with the model's scorer.

    The folder holds the configuration and digests, no weights. config.model is a PretrainedConfig. Raises InputError if
    a run of the study has the same weights, and as `pretrained_scorer`.
    """
    assert isinstance(config.model, PretrainedConfig)
    from eval.scorers.base import Execution
    from eval.scorers.load import pretrained_scorer

    scorer = pretrained_scorer(config.model, Execution.of(config))
    run = RunFolder.of(config)
    _check_other_revisions(config, run, scorer.digest)
    with run.locked():
        write_text(run.config, OmegaConf.to_yaml(OmegaConf.structured(config)))
        digests = {"digest": scorer.digest, "tokenizer_digest": scorer.tokenizer_digest}
        trained = {"step": config.model.step, "tokens": config.model.tokens, "tokenizer_path": scorer.tokenizer_path}
        run.update_manifest(status=DONE, config_digest=config_digest(config), versions=versions(), **digests, **trained)
    if scorer.tokenizer_path:
        _say(f"{run.path.name}: its folder holds no tokenizer; that of {scorer.tokenizer_path} is used")
    return run, scorer


def _check_other_revisions(config: EvalConfig, run: RunFolder, digest: str) -> None:
    """Raise InputError if another revision in the study has the same weights, as it would be the same point twice."""
    assert isinstance(config.model, PretrainedConfig)
    if config.study is None or not run.path.parent.is_dir():
        return
    for other in study_runs(config.paths.runs, config.study):
        try:
            if other.path == run.path or other.read_manifest().get("digest") != digest:
                continue
            model = other.read_model_config()
        except RunError as error:  # in the other run's files; status and analysis report it too
            _say(f"not compared with this model: {error}")
            continue
        if model.get("path") == config.model.path and model.get("revision") != config.model.revision:
            raise InputError(
                f"model.revision={config.model.revision}: the same weights as model.revision={model.get('revision')} "
                f"of {config.model.path} ({other.path.name}); leave one of them out, or remove that run's folder"
            )


def check_methods(config: EvalConfig) -> None:
    """Raise ConfigError for methods that do not fit the benchmark; no model is loaded."""
    KINDS[type(config.benchmark)].check_methods(config)


def check_benchmark(config: EvalConfig) -> None:
    """Read the benchmark before a run is trained, unless its pairs depend on the run. Raises as scoring does."""
    KINDS[type(config.benchmark)].check_benchmark(config)


def score_on_all(
    run: RunFolder, configs: Sequence[EvalConfig], scorer: Scorer | None = None, tables: bool = True
) -> None:
    """Score a run on the benchmark of each configuration, with one load of its model; arguments as of `score_run`.

    Where it cannot be scored on one of several, it is scored on the others, and RunError is raised after all.
    """
    failed = []
    for config in configs:
        try:
            scorer = score_run(run, config, scorer, tables)
        except (ConfigError, InputError, RunError, StoreError) as error:
            if len(configs) == 1:
                raise
            _say(f"not scored: {run.path.name} on {config.benchmark.name}: {error}")
            failed.append(config.benchmark.name)
    if failed:
        raise RunError(f"{run.path.name}: not scored on {', '.join(failed)} (see above)")


def score_run(run: RunFolder, config: EvalConfig, scorer: Scorer | None = None, tables: bool = True) -> Scorer:
    """Compute the missing scores of a run, and print tables of all that `config` requests, unless `tables` is False.

    scorer: the run's model, if it is loaded already. Returns it, for another benchmark. Raises RunError if the
    run is not trained, is in use, or has a damaged model or score file, InputError for the benchmark's files,
    ConfigError for values that do not fit.
    """
    check_methods(config)
    run.check_done()
    from train.loop.device import enough_memory, set_up_cpu

    trajectory: list[dict[str, Any]] = []
    remedy = f"give a smaller scoring.batch_tokens than {config.scoring.batch_tokens}"
    with run.locked():
        with _failures_recorded(run, config) as attempt, enough_memory(remedy):
            work = _work(run, config, scorer)
            attempt.began = True
            set_up_cpu(config.trainer, run.read_manifest().get("parameters"))
            _score(work)
            for snapshot in _snapshot_work(run, config):
                _score(snapshot)
                trajectory.append(snapshot.overall())
        track_scores(run, config)
    for note in filter(None, (run.read_manifest().get("stuck"), *work.notes)):
        _say(f"{work.title}: {note}")
    report_result(words=work.scorer.sample_words, **work.headline())
    if tables:
        _print_tables(work, trajectory, config.verbose)
    return work.scorer


def _score(work: Work) -> None:
    if work.missing:
        work.score()
        report_result(new=True)


def _print_tables(work: Work, trajectory: list[dict[str, Any]], verbose: bool) -> None:
    """Print the tables of a run; of long ones only the headline, unless `verbose`."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    with console.capture() as printed:
        for part in work.tables(trajectory, console.width):
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


@dataclass
class _Attempt:
    """An attempt to score a run; `began` is True once its input is read."""

    began: bool = False


@contextmanager
def _failures_recorded(run: RunFolder, config: EvalConfig) -> Iterator[_Attempt]:
    """Record in the manifest why scoring on a benchmark failed, until an attempt succeeds, and its command.

    The command stays where no sweep requested these scores, for those who make the study again.

    Bad input that stops scoring before it begins, such as a missing benchmark, is recorded only if a sweep requested
    these scores.
    """
    attempt, label = _Attempt(), score_label(config.benchmark, config.policy)
    manifest = run.read_manifest()
    failed, commands = (manifest.get(key, {}) for key in ("scoring_failed", "scoring_commands"))
    others = {name: reason for name, reason in failed.items() if name != label}
    other_commands = {name: command for name, command in commands.items() if name != label}
    try:
        yield attempt
    except Exception as error:
        bad_input = isinstance(error, (ConfigError, InputError)) and not attempt.began
        if not bad_input or is_requested(run, config.benchmark.name):
            reasons = others | {label: f"{type(error).__name__}: {error}"}
            with suppress(WriteError):  # a full disk cannot take the reason either; `error` is raised in any case
                run.update_manifest(scoring_failed=reasons, scoring_commands=other_commands | _command(label))
        raise
    # A sweep has its command in the grid of the study; that of scores which none requested is kept here.
    kept = other_commands if is_requested(run, config.benchmark.name) else other_commands | _command(label)
    if label in failed or kept != commands:
        run.update_manifest(scoring_failed=others, scoring_commands=kept)


def _command(label: str) -> dict[str, str]:
    """Return {label: the command line of this process}, {} if Hydra did not start it."""
    if not HydraConfig.initialized():
        return {}
    overrides = HydraConfig.get().overrides
    return {label: f"python -m eval {shlex.join([*search_path(overrides.hydra), *overrides.task])}"}


def score_study(*configs: EvalConfig) -> None:
    """Score every run of a study that is done on the benchmark of each configuration, in this process; list the others.

    Raises RunError if there is no such study, if none of its runs is done, and after all if some could not be scored.
    """
    config = configs[0]
    done: list[RunFolder] = []
    failed = 0
    for run in study_runs(config.paths.runs, config.study or ""):
        try:
            manifest = run.read_manifest()
        except RunError as error:
            _say(f"not scored: {error}")
            failed += 1
            continue
        if manifest.get("status") == DONE:
            done.append(run)
        else:
            status = ": ".join(filter(None, [manifest.get("status", "not started"), manifest.get("reason")]))
            _say(f"not scored: {run.path.name}: {status}")
    if not done:
        raise RunError(f"study={config.study}: none of its runs is done")
    for one in configs:
        check_benchmark(one)
    work = _say_plans if config.dry_run else score_on_all
    attempts = [partial(_attempted, partial(work, run, configs)) for run in done]
    if config.dry_run or config.verbose or len(done) == 1 or not config.trainer.progress:
        failures = [attempt() for attempt in attempts]
    else:
        board = Board([run.path.name for run in done], [Job()] * len(done), 1)
        with board.shown():
            failures = [board.run_here(n, partial(one, tables=False)) for n, one in enumerate(attempts)]
    if count := failed + len([failure for failure in failures if failure]):
        raise RunError(f"study={config.study}: {count} of {len(done) + failed} runs could not be scored (see above)")


def _attempted(work: Callable[..., None], **options: bool) -> tuple[str, int] | None:
    """Print and return the error in a run's files, as the others can be scored; None if there is none."""
    try:
        work(**options)
    except (ConfigError, InputError, RunError, StoreError) as error:
        _say(f"not scored: {error}")
        return str(error), error.exit_code
    return None


def _say_plans(run: RunFolder, configs: Sequence[EvalConfig]) -> None:
    scorer = None
    for config in configs:
        work = _work(run, config, scorer)
        scorer = work.scorer
        _say(f"{work.title}: {work.explain()}")
        snapshots = Counter(snapshot.explain() for snapshot in _snapshot_work(run, config))
        for description, count in snapshots.items():
            _say(f"  {count} snapshot{'s' if count > 1 else ''}: {description}")


def _work(run: RunFolder, config: EvalConfig, scorer: Scorer | None = None) -> Work:
    from eval.scorers.base import Execution
    from eval.scorers.load import run_scorer

    if scorer is None:
        scorer = run_scorer(run, Execution.of(config))
    return KINDS[type(config.benchmark)](run, config, scorer)


def _snapshot_work(run: RunFolder, config: EvalConfig) -> Iterator[PairsWork]:
    if not config.scoring.snapshots:
        return
    from eval.scorers.base import Execution
    from eval.scorers.load import trained_scorer
    from train.loop.snapshots import load_snapshot

    for step in run.snapshots:
        loaded = load_snapshot(run, step)
        name = f"{run.path.name} after {loaded.info['words_seen']:,} words"
        yield PairsWork(run, config, trained_scorer(loaded, name, Execution.of(config)), loaded.info)
