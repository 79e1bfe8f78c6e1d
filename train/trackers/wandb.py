"""Weights & Biases (logger=wandb). Imports wandb only when it is used.

    job        name in W&B        contents
    train      <run id> train     configuration, curves over words seen, sizes and speeds
    eval       <run id> eval      accuracies and measures
    analysis   <study> analysis   learning curves and slopes

The study is their group. Scoring has W&B runs of its own: a W&B run has one job type and is written by one process, and
models that come trained have no other. The id of a W&B run is that of its study, name and kind of job, so a job that is
resumed resumes its W&B run; offline, it gets another folder of the same id, which `wandb sync` joins.

W&B writes through a process of its own (wandb-core). SLURM's signals reach it, too, and it may end before we do. If it
hangs, it is killed, so that no run waits for it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from functools import cache, partial
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from pairscale.console import say
from pairscale.errors import RunError
from pairscale.files import sha256_json
from train.trackers.tracker import Job, LoggerConfig, Tracker, tracker

MAX_NAME = 128  # characters of an id, or of the name of an artifact
MAX_TAG = 64
NETWORK_SECONDS = 5  # how long W&B may take to answer before tracking goes offline
CALL_SECONDS = 60  # how long W&B may take for anything else,
UPLOAD_SECONDS = 600  # or to copy and send files, before a job goes on without it
SWEEP_VARIABLES = ("WANDB_SWEEP_ID", "WANDB_SWEEP_PARAM_PATH", "WANDB_RUN_ID")  # what `wandb agent` sets
T = TypeVar("T")


@tracker("wandb")
class WandbTracker(Tracker):
    """One open W&B run, which writes to `wandb` in the folder of its job."""

    def __init__(self, logger: LoggerConfig, job: Job):
        """Open the run.

        Raises RunError if W&B refuses a value or a key, or if it cannot be reached when a job with logger.mode=online
        begins.
        """
        super().__init__(logger, job)
        job.folder.mkdir(parents=True, exist_ok=True)
        begins = not (job.folder / "wandb").exists()  # a run that is resumed does not end for want of a network
        with contextlib.ExitStack() as stack:
            stack.enter_context(_environment(job))
            import wandb

            start = partial(
                wandb.init,
                project=logger.project,
                entity=logger.entity,
                id=_unique_name(job.study, job.name, job.kind),
                name=f"{job.name} {job.kind}",
                group=job.study,
                job_type=job.kind,
                tags=list(dict.fromkeys(tag[:MAX_TAG] for tag in (*logger.tags, *job.tags))),
                mode=_mode(logger.mode),
                resume="allow",
                dir=str(job.folder),
                config=dict(job.config),
                # Its lines would appear within our progress display, and what we print needs no copy.
                settings=wandb.Settings(silent=True, console="off"),
            )
            try:
                self.run = _answer(start, 2 * CALL_SECONDS)  # W&B's own limit is 90 seconds
            except Exception as error:
                _leave_service()
                refusals = (wandb.errors.UsageError, wandb.errors.AuthenticationError)
                refused = isinstance(error, refusals) or type(error) is ValueError  # subclasses are garbled answers
                unreachable = logger.mode == "online" and begins and isinstance(error, wandb.errors.CommError)
                if not refused and not unreachable:
                    raise  # W&B is lost, which stops no run
                reason = " ".join(str(error).split()) or type(error).__name__
                raise RunError(f"logger=wandb: {reason}; logger.mode=offline tracks without a network") from None
            if job.kind == "train":
                self.run.define_metric("words_seen")
                self.run.define_metric("*", step_metric="words_seen")
            # Online a resumed run brings its summary, and so the end of its curves.
            self.words_seen = float(self.run.summary.get("words_seen", -1))  # type: ignore[no-untyped-call]
            self._environment = stack.pop_all()

    def log(self, point: dict[str, float]) -> None:
        _answer(partial(self.run.log, point))

    def summarise(self, values: Mapping[str, Any]) -> None:
        import pandas as pd
        import wandb

        plain = {
            name: wandb.Table(dataframe=value.astype(object).where(value.notna(), None))
            if isinstance(value, pd.DataFrame)
            else value
            for name, value in values.items()
        }
        _answer(partial(self.run.summary.update, plain))

    def image(self, name: str, path: Path) -> None:
        import wandb

        _answer(partial(self.run.log, {name: wandb.Image(str(path))}))

    def artifact(self, name: str, kind: str, paths: Iterable[Path]) -> None:
        """Keep files and folders as an artifact; offline they are copied until they are synced."""
        import wandb

        artifact = wandb.Artifact(_unique_name(self.job.study, name), kind)
        for path in paths:
            for file in sorted(filter(Path.is_file, path.rglob("*"))) if path.is_dir() else [path]:
                artifact.add_file(str(file), name=str(file.relative_to(path.parent)))
        _answer(partial(self.run.log_artifact, artifact), UPLOAD_SECONDS)

    def finish(self, failed: bool) -> None:
        with self._environment:
            try:
                # A job that was stopped may have little time: SLURM kills it.
                _answer(partial(self.run.finish, exit_code=int(failed)), CALL_SECONDS if failed else UPLOAD_SECONDS)
            except Exception:
                _leave_service()
                raise
        if self.run.settings.mode == "offline" and not failed:
            say(f"tracked offline; to send it: wandb sync {Path(self.run.dir).parent}")


@contextlib.contextmanager
def _environment(job: Job) -> Iterator[None]:
    """Set W&B's variables: copies go beside its files; only scoring takes a sweep's id, as training resumes its own."""
    hidden = {name: os.environ.pop(name) for name in SWEEP_VARIABLES if job.kind != "eval" and name in os.environ}
    chosen = os.environ.get("WANDB_DATA_DIR")
    os.environ["WANDB_DATA_DIR"] = chosen or str((job.folder / "wandb" / "data").absolute())
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # reports of its own errors, over the network
    try:
        yield
    finally:
        if chosen is None:
            del os.environ["WANDB_DATA_DIR"]
        if hidden:
            import wandb

            os.environ.update(hidden)
            _answer(wandb.teardown)  # it keeps the variables that it has read


def _answer(call: Callable[[], T], seconds: float = CALL_SECONDS) -> T:
    """Return what a call of W&B returns. Raises its errors, and TimeoutError after `seconds`, having killed W&B."""
    try:
        return _within(seconds, call)
    except TimeoutError:
        from wandb.sdk import wandb_setup

        with contextlib.suppress(AttributeError):  # it has no process, or not yet
            wandb_setup.singleton()._connection._proc._process.kill()  # type: ignore[union-attr]
        raise TimeoutError(f"W&B has not answered for {seconds:g} seconds") from None


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Return what `call` returns. Raises its errors, and TimeoutError if it takes longer; a thread then waits on."""
    outcome: Future[T] = Future()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=work, daemon=True).start()
    return outcome.result(seconds)


def _leave_service() -> None:
    """Part from W&B's process, which may have died, so that the next job of this process starts another one."""
    import wandb

    with contextlib.suppress(Exception, SystemExit):  # the dead answer nothing, and their exit code is none of ours
        _answer(wandb.teardown)


def _mode(requested: str | None) -> Any:
    """Return logger.mode, else WANDB_MODE, else online if there is a key and W&B answers, else offline."""
    if mode := requested or os.environ.get("WANDB_MODE"):
        return mode
    from wandb.sdk import wandb_setup

    # wandb.setup() would start W&B's process, and never return if that dies.
    url = str(wandb_setup.singleton().settings.base_url)
    return "online" if has_key(url) and answers(url) else "offline"


def has_key(url: str) -> bool:
    """Return True if there is a key for the W&B server at `url`, in the environment or where `wandb login` puts it."""
    from requests.utils import get_netrc_auth

    in_environment = os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE")
    return bool(in_environment or get_netrc_auth(url) or get_netrc_auth("https://api.wandb.ai"))


@cache
def answers(url: str) -> bool:
    """Return True if a server answers within NETWORK_SECONDS, whatever the answer; report it, once, if it does not."""
    import requests

    try:  # in a thread, as looking up a name without a network has no time limit
        _within(NETWORK_SECONDS, partial(requests.head, url, timeout=NETWORK_SECONDS))
    except OSError:  # of requests, too; and for too long a time
        say(f"{url} does not answer: tracking offline")
        return False
    return True


def _unique_name(*parts: str | None) -> str:
    """Return parts as an id of W&B or the name of an artifact, with a digest, so that no other parts give the same."""
    digest = sha256_json(parts)[:8]
    text = re.sub(r"[^\w.-]+", "_", "-".join(dict.fromkeys(filter(None, parts))), flags=re.ASCII)
    return f"{text[: MAX_NAME - len(digest) - 1]}-{digest}"
