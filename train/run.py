"""Train one run, from its configuration to a model for scoring. Skip it if it is done, and resume it if unfinished."""

import contextlib
import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TypedDict

from corpora.prepare import Corpus
from pairscale.command.schemas import yaml_of
from pairscale.console import say
from pairscale.errors import ConfigError, InputError, RunError, WriteError
from pairscale.files import write_bytes, write_text
from pairscale.progress import report_result, result_so_far
from pairscale.schema import read_json
from pairscale.sizes import clock, written
from train.config import RunConfig, config_digest
from train.runs.folder import DONE, FAILED, GRID, UNFINISHED, MetricsFile, RunFolder, exported_validation, numbers
from train.runs.labels import describe_nearest_run
from train.runs.provenance import git_state, job_of, versions
from train.trackers.tracker import Tracker, tracked


def corpus_of(config: RunConfig) -> Corpus:
    """Return the corpus that a run reads. This doesn't prepare it."""
    return Corpus(dataclasses.replace(config.of_run(), tokenizer=config.model.reads(config.tokenizer)))


def train_run(config: RunConfig, corpus: Corpus, check: Callable[[], object] | None = None) -> RunFolder:
    """Train a run unless it is done, or resume it if it was stopped. Return its folder.

    An error that stops the training is recorded in the manifest, then raised. If bad input stops a run before any work,
    its folder is left as it was, unless a sweep requested the run.

    Args:
        config: the configuration of the run.
        corpus: the corpus that it reads (`corpus_of`), which is prepared as training needs it.
        check: called before any work, to raise errors that would stop a later step, such as scoring.

    Raises:
        RunError: if another process is working on the run, or if its training diverges.
        WriteError: if a disk is full.
    """
    if note := config.unused_filter:
        say(note)
    config = config.of_run()
    folder = RunFolder.of(config)
    if folder.done:
        _skip(config, folder, corpus)
        _report(config, folder)
        return folder
    with folder.locked():
        if folder.done:
            _report(config, folder)
            return folder
        if difference := describe_nearest_run(config):
            say(f"New run {folder.path.name} {difference}.")
        with Attempt(config, folder):
            if check is not None:
                check()
            with tracked(config.logger, job_of("train", folder, dataclasses.asdict(config), config.study)) as tracker:
                track_points(tracker, folder)  # the latest points of a killed process were never sent
                _train(config, corpus, folder, tracker)
                report_result(new=True)
                _track_result(tracker, config, folder)
    _report(config, folder)
    return folder


def record_pretrained(config: RunConfig, **about: Any) -> RunFolder:
    """Write the run folder of a pretrained model, with `about` in its manifest. Raises RunInUse if it is in use."""
    run = RunFolder.of(config)
    with run.locked():
        write_text(run.config, yaml_of(config))
        run.update_manifest(status=DONE, config_digest=config_digest(config), versions=versions(), **about)
    return run


def _report(config: RunConfig, folder: RunFolder) -> None:
    validation = exported_validation(folder.metrics, config.recipe.export)
    report_result(words=folder.read_manifest().get("sample_words"), perplexity=validation["valid_ppl"])


def run_title(config: RunConfig) -> str:
    """Describe a run for the progress display."""
    size = f"{config.sample.size} {config.sample.count} of {config.corpus.name}"
    return f"{config.model.name}, {size}, seed {config.seed}" if config.recipe.trains else config.model.name


def say_summary(folder: RunFolder) -> None:
    """Print a one-line summary of the run that this process has just trained."""
    if not result_so_far().new:
        say(f"{folder.path} (nothing to do)", "Already trained:", "green")
        return
    manifest = folder.read_manifest()
    parts = [f"{manifest['words_per_s']:,} words/s"] if manifest.get("words_per_s") else []
    parts += [f"{sum(manifest['ngrams']):,} n-grams"] if manifest.get("ngrams") else []
    last = manifest["last"]
    for name, label in (("valid_ppl", "perplexity"), ("valid_pseudo_ppl", "pseudo-perplexity")):
        parts += [f"validation {label} {last[name]:,.1f} per word"] if name in last else []
    if substituted := manifest.get("fallback_discounts"):
        parts.append(f"model.discount_fallback used for orders {', '.join(map(str, substituted))}")
    say(f"Trained {folder.path.name} in {clock(manifest['wall_s'])}: {', '.join(parts)}.")


def track_points(tracker: Tracker, folder: RunFolder) -> None:
    """Send the points of metrics.csv that the tracker doesn't have yet."""
    for row in MetricsFile(folder.metrics).rows:
        if row.get("words_seen"):  # missing only if someone changed the file
            tracker.log(numbers(row))


def _track_result(tracker: Tracker, config: RunConfig, folder: RunFolder) -> None:
    """Send the results of a finished training run and, with logger.artifacts=[model], its model."""
    manifest = folder.read_manifest()
    names = ("sample_words", "words_seen", "tokens", "vocabulary", "parameters", "words_per_s", "wall_s", "attempts")
    exported = exported_validation(folder.metrics, config.recipe.export)
    track_points(tracker, folder)
    tracker.summarise({name: manifest[name] for name in names if manifest.get(name) is not None})
    tracker.summarise({f"exported/{name}": value for name, value in exported.items() if value is not None})
    if "model" in config.logger.artifacts:
        tracker.artifact(f"{folder.path.name}-model", "model", [folder.model.path])


def _train(config: RunConfig, corpus: Corpus, folder: RunFolder, tracker: Tracker) -> None:
    # Imported here, so that commands that don't train start faster.
    if config.model.counted:
        from train.ngram import train_ngram

        train_ngram(config, corpus, folder)
        return
    from train.loop.device import bf16_warning, other_ranks
    from train.loop.state import newest_checkpoint
    from train.loop.training import train

    if warning := bf16_warning(config):
        say(warning)
    checkpoint = newest_checkpoint(folder)
    with other_ranks(config, checkpoint) as ranks:
        train(config, corpus, folder, tracker, ranks, checkpoint)


def _skip(config: RunConfig, folder: RunFolder, corpus: Corpus) -> None:
    """Remove checkpoints of a run that was killed at its very end. Raises the same errors as `_check_text`."""
    _check_text(folder, corpus)
    if folder.checkpoint_folder.exists():
        with folder.locked():
            folder.remove_checkpoints()
    if config.trainer.snapshots is not None and not folder.snapshots and not config.model.counted:
        say(
            f"{folder.path.name} was trained without snapshots, which are written during training. To get them with "
            f"trainer.snapshots={written(config.trainer.snapshots)}, remove the run's folder or choose another study."
        )


def _check_text(folder: RunFolder, corpus: Corpus) -> None:
    """Raise RunError if a finished run was trained on a different text than the prepared one."""
    text, digest = corpus.prepared_text
    trained = folder.read_manifest()["corpus"]["text"]
    if digest not in (None, trained):
        raise RunError(
            f"{folder.path}: this run is done, but its training text (digest {trained[:8]}) is not the one in {text} "
            f"({digest[:8]}). Choose another corpus.name or study, or remove the run's folder."
        )


class _Sweep(TypedDict):
    """The schema of the part of a sweep's record (runs/STUDY/grid) that is read here, the runs by id."""

    runs: dict[str, Any]


class Attempt:
    """The context of one attempt to train a run in its locked folder. It keeps the manifest's status up to date.

    The status is "unfinished" from the start, and "failed" if the block raises an error. If bad input stops the attempt
    before any work, the folder is restored, unless a sweep requested the run.
    """

    def __init__(self, config: RunConfig, folder: RunFolder):
        self.config = config
        self.folder = folder
        self._fresh = all(path == folder.lock for path in folder.path.iterdir())
        self._files = {path: path.read_bytes() if path.exists() else None for path in (folder.config, folder.manifest)}

    def __enter__(self) -> None:
        """Write config.yaml, and record the time, the code and the number of this attempt in the manifest."""
        folder, git = self.folder, git_state()
        before = folder.read_manifest()
        earlier = before.get("git")
        write_text(folder.config, yaml_of(self.config))
        self._begun = folder.update_manifest(
            status=UNFINISHED,
            config_digest=config_digest(self.config),
            started=before.get("started", _now()),
            attempts=before.get("attempts", 0) + 1,
            git=git,
            # The code of earlier attempts, if it differs.
            earlier_git=[*before.get("earlier_git", []), *([] if earlier in (None, git) else [earlier])],
            versions=versions(),
            reason=None,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception):
            return
        folder = self.folder
        with contextlib.suppress(WriteError):  # the disk may be full; `error` is raised in any case
            bad_input = isinstance(error, (ConfigError, InputError)) and folder.read_manifest() == self._begun
            if not bad_input or _is_requested(folder):
                folder.update_manifest(status=FAILED, reason=f"{type(error).__name__}: {error}", ended=_now())
            else:  # nothing was done, for example because of a typo or a missing text
                self._undo()

    def _undo(self) -> None:
        """Restore the folder, or remove it if this attempt created it."""
        if self._fresh:
            self.folder.discard()
            with contextlib.suppress(OSError):  # the study has other runs
                self.folder.path.parent.rmdir()
            return
        for path, data in self._files.items():
            if data is None:
                path.unlink(missing_ok=True)
            else:
                write_bytes(path, data)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _is_requested(run: RunFolder) -> bool:
    """Return True if a sweep requested the run, or if the records of its study's sweeps can't be read."""
    try:
        sweeps = [read_json(path, _Sweep, RunError, "") for path in run.path.parent.glob(f"{GRID}/*.json")]
    except RunError:
        return True
    return any(run.path.name in sweep["runs"] for sweep in sweeps)
