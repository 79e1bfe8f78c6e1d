"""Score trained runs: what is scored already is left alone, what lacks is scored in one pass over the model."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf
from rich.console import Console

from eval.benchmarks.known_items import faulty_pairs
from eval.config import EvalConfig, PretrainedConfig, score_label
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.questions import load_questions
from eval.diagnostics.run import ClozeWork
from eval.pairs import PairsWork, benchmark_key, loaded_benchmark
from eval.scores.accuracy import accuracies
from eval.scores.files import read_scores, score_path
from eval.scores.table import WIDTH, accuracy_table, methods_table, trajectory_table
from eval.wandb import track_scores
from pairscale.command.line import search_path
from pairscale.errors import ConfigError, InputError, RunError, StoreError, WriteError
from pairscale.files import write_text
from train.runs.folder import DONE, RunFolder, config_digest, study_runs
from train.runs.grid import is_asked_by_a_sweep
from train.runs.provenance import versions

if TYPE_CHECKING:
    from eval.scorers.base import Scorer

console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)


def add_pretrained(config: EvalConfig) -> tuple[RunFolder, EvalConfig, Scorer]:
    """The run folder of a model that comes trained (config.model is a PretrainedConfig), `config`, and its scorer.

    The folder holds the configuration and digests, no weights. Raises what eval.scorers.pretrained.load_pretrained
    does.
    """
    assert isinstance(config.model, PretrainedConfig)
    from eval.scorers.base import Execution
    from eval.scorers.pretrained import load_pretrained

    scorer = load_pretrained(config.model, Execution.of(config))
    run = RunFolder.of(config)
    _check_other_revisions(config, run, scorer.digest)
    with run.locked():
        write_text(run.config, OmegaConf.to_yaml(OmegaConf.structured(config)))
        digests = {"digest": scorer.digest, "tokenizer_digest": scorer.tokenizer_digest}
        trained = {"step": config.model.step, "tokens": config.model.tokens, "tokenizer_path": scorer.tokenizer_path}
        run.update_manifest(status=DONE, config_digest=config_digest(config), versions=versions(), **digests, **trained)
    if scorer.tokenizer_path:
        told = f"{run.path.name}: its folder holds no tokenizer; that of {scorer.tokenizer_path} is used"
        console.print(told, markup=False, soft_wrap=True)
    return run, config, scorer


def _check_other_revisions(config: EvalConfig, run: RunFolder, digest: str) -> None:
    """Raise InputError where another revision of the model in this study has the very same weights.

    A folder that was copied, or two names of one commit, would stand as two points of a curve.
    """
    assert isinstance(config.model, PretrainedConfig)
    if config.study is None or not run.path.parent.is_dir():
        return
    for other in study_runs(config.paths.runs, config.study):
        try:
            if other.path == run.path or other.read_manifest().get("digest") != digest:
                continue
            model = other.read_model_config()
        except RunError as error:  # of that run's files: status and analysis name it too
            console.print(f"not compared with this model: {error}", markup=False, soft_wrap=True)
            continue
        if model.get("path") == config.model.path and model.get("revision") != config.model.revision:
            raise InputError(
                f"model.revision={config.model.revision}: the same weights as model.revision={model.get('revision')} "
                f"of {config.model.path} ({other.path.name}); leave one of them out, or remove that run's folder"
            )


def check_benchmark(config: EvalConfig) -> None:
    """Read the benchmark of a run that is to be trained, unless its pairs depend on the run. Raises as scoring does."""
    if isinstance(config.benchmark, DiagnosticConfig):
        load_questions(config.benchmark)
    elif config.benchmark.vocabulary not in ("run", "study"):
        loaded_benchmark(benchmark_key(config, {}))


def score_run(run: RunFolder, config: EvalConfig, scorer: Scorer | None = None) -> None:
    """Score a run by the methods that its score files lack; print the first one's table and the overall accuracies.

    A diagnostic has no methods: what it asks is scored where it lacks, and all of its tables are printed.
    `scorer` is that of the run, where it is loaded already. Raises RunError where the run is not trained, is in use, or
    has a damaged model or score file, InputError for the benchmark's files, ConfigError for values that do not fit.
    """
    if not config.method and not isinstance(config.benchmark, DiagnosticConfig):
        raise ConfigError("method=[]: must name at least one")
    if not run.done:
        status = run.read_manifest().get("status", "not started")
        raise RunError(f"{run.path}: {status}; only a run that is done can be scored")
    from train.loop.device import enough_memory

    trajectory: list[dict[str, Any]] = []
    fewer = f"give a smaller scoring.batch_tokens than {config.scoring.batch_tokens}"
    with run.locked(), _noted(run, config) as attempt, enough_memory(fewer):
        work = _work(run, config, scorer)
        if isinstance(work, PairsWork) and (none := work.benchmark.unavailable):
            told = f"{len(none)} paradigms have too few pairs of known words: {', '.join(none)}"
            console.print(f"{run.path.name} · {work.folder.name}: {told}", markup=False, soft_wrap=True)
        if work.unrecorded:
            told = "scored when no file kept the begin symbol, special tokens and config.json; taken as unchanged:"
            told += f" without {work.folder} all is scored again"
            console.print(f"{run.path.name} · {work.folder.name}: {told}", markup=False, soft_wrap=True)
        attempt.began = True
        if work.lacking:
            work.score()
        for of_snapshot in _of_snapshots(run, config):
            if of_snapshot.lacking:
                of_snapshot.score()
            trajectory.append(of_snapshot.overall())
        track_scores(run, config)
    notes = work.questions.notes if isinstance(work, ClozeWork) else work.benchmark.notes
    for note in filter(None, (run.read_manifest().get("stuck"), *notes)):
        console.print(f"{run.path.name} · {work.folder.name}: {note}", markup=False, soft_wrap=True)
    if isinstance(work, ClozeWork):
        for part in work.tables(console.width):
            console.print(part)
        return
    scores = {name: read_scores(score_path(work.folder, name))[0] for name in config.method}
    method = next(iter(scores))
    where = f"{run.path.name} · {work.folder.name}"
    title = f"{where} · {method}" + ("" if work.lacking else " (scored already)")
    pairs = work.benchmark.pairs
    console.print(accuracy_table(title, config.benchmark.name, scores[method], pairs, config.ties, console.width))
    if without := _without_faulty(config, scores[method], pairs):
        console.print(f"{where} · {method}: {without}", markup=False, soft_wrap=True)
    if len(scores) > 1:
        console.print(methods_table(f"{where} · overall by method", scores, pairs, config.ties))
    if trajectory:
        console.print(trajectory_table(f"{where} · overall over training", trajectory))
    elif config.scoring.snapshots and run.read_config()["recipe"].get("bptt"):  # trained here, step by step
        told = "trainer.snapshots=N keeps N of them while a run trains"
        console.print(f"{run.path.name}: has no snapshots to score; {told}", markup=False, soft_wrap=True)


def _without_faulty(config: EvalConfig, scores: pd.DataFrame, pairs: pd.DataFrame) -> str | None:
    """The overall accuracy without the pairs that are known to be faulty, where some of them are."""
    faulty = faulty_pairs(config.benchmark.name, scores)
    rows = scores.merge(pairs[["paradigm", "pair_id", "phenomenon"]], on=["paradigm", "pair_id"])
    names = pd.MultiIndex.from_frame(rows[["paradigm", "pair_id"]])
    rest = rows[~names.isin(pd.MultiIndex.from_frame(faulty[["paradigm", "pair_id"]]))]
    if faulty.empty or rest.empty:
        return None
    whole, without = (accuracies(part, config.ties).iloc[-1]["accuracy"] for part in (rows, rest))
    return f"{100 * without:.1f} overall without the {len(faulty)} faulty pairs, {100 * whole:.1f} with them"


@dataclass
class _Attempt:
    """Whether scoring began: its input can be used."""

    began: bool = False


@contextmanager
def _noted(run: RunFolder, config: EvalConfig) -> Iterator[_Attempt]:
    """Keep in the manifest why scoring failed, until it does not: of each benchmark its reason, and the command.

    What stopped it before it began, a benchmark that is not there say, is kept only where a sweep asked for these
    scores.
    """
    attempt, label = _Attempt(), score_label(config.benchmark, config.policy)
    manifest = run.read_manifest()
    failed, commands = (manifest.get(key, {}) for key in ("scoring_failed", "scoring_commands"))
    others = {name: reason for name, reason in failed.items() if name != label}
    other_commands = {name: command for name, command in commands.items() if name != label}
    try:
        yield attempt
    except Exception as error:
        of_input = isinstance(error, (ConfigError, InputError)) and not attempt.began
        if not of_input or is_asked_by_a_sweep(run, config.benchmark.name):
            reasons = others | {label: f"{type(error).__name__}: {error}"}
            with suppress(WriteError):  # where the disk is full, the manifest cannot say so either
                run.update_manifest(scoring_failed=reasons, scoring_commands=other_commands | _command(label))
        raise
    if label in failed:
        run.update_manifest(scoring_failed=others, scoring_commands=other_commands)


def _command(label: str) -> dict[str, str]:
    """Return {label: the command line of this process}, {} if Hydra did not start it."""
    if not HydraConfig.initialized():
        return {}
    overrides = HydraConfig.get().overrides
    return {label: f"python -m eval {shlex.join([*search_path(overrides.hydra), *overrides.task])}"}


def score_study(config: EvalConfig) -> None:
    """Score every run of `config.study` that is done, in this process; list those that are not.

    Raises RunError when there is no such study, none of its runs is done, or some could not be scored.
    """
    done, failed = [], 0
    for run in study_runs(config.paths.runs, config.study or ""):
        try:
            manifest = run.read_manifest()
        except RunError as error:
            console.print(f"not scored: {error}", markup=False)
            failed += 1
            continue
        if manifest.get("status") == DONE:
            done.append(run)
        else:
            told = ": ".join(filter(None, [manifest.get("status", "not started"), manifest.get("reason")]))
            console.print(f"not scored: {run.path.name}: {told}", markup=False)
    if not done:
        raise RunError(f"study={config.study}: none of its runs is done")
    check_benchmark(config)
    asked = len(done) + failed
    for run in done:
        try:
            if config.dry_run:
                work = _work(run, config)
                of_snapshots = [one.described() for one in _of_snapshots(run, config)]
                console.print(f"{run.path.name} · {work.folder.name}: {work.described()}", markup=False)
                for told, count in Counter(of_snapshots).items():
                    console.print(f"  {count} snapshot{'s' if count > 1 else ''}: {told}", markup=False)
            else:
                score_run(run, config)
        except (RunError, StoreError, InputError) as error:  # of this run's files: the others can be scored
            console.print(f"not scored: {error}", markup=False)
            failed += 1
    if failed:
        raise RunError(f"study={config.study}: {failed} of {asked} runs could not be scored (said above)")


def _work(run: RunFolder, config: EvalConfig, scorer: Scorer | None = None) -> PairsWork | ClozeWork:
    from eval.scorers.base import Execution
    from eval.scorers.load import run_scorer

    if scorer is None:
        scorer = run_scorer(run, Execution.of(config))
    if isinstance(config.benchmark, DiagnosticConfig):
        return ClozeWork.of(run, config, scorer)
    return PairsWork.of(run, config, scorer)


def _of_snapshots(run: RunFolder, config: EvalConfig) -> Iterator[PairsWork]:
    """What is asked of each snapshot of a run, by step, if scoring.snapshots asks for any."""
    if not config.scoring.snapshots:
        return
    from eval.scorers.base import Execution
    from eval.scorers.own import ModelScorer
    from train.loop.snapshots import load_snapshot

    for step in run.snapshots:
        loaded = load_snapshot(run, step)
        name = f"{run.path.name} after {loaded.info['words_seen']:,} words"
        yield PairsWork.of(run, config, ModelScorer(loaded, name, Execution.of(config)), loaded.info)
