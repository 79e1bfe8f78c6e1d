"""Track runs with Weights & Biases (logger=wandb). This module imports wandb only when needed.

    job        name in W&B        contents
    train      <run id> train     configuration, curves over words seen, sizes and speeds
    finetune   <run id> <task> ...  loss and measures after each epoch, over steps
    eval       <run id> eval      accuracies and measures, and those of snapshots over words seen
    analysis   <study> analysis   learning curves and slopes

All runs of a study form a group. Scoring is a separate W&B run, because a W&B run has only one job type and one writing
process. Also, pretrained models have no training run. The id of a W&B run is made of study, name and kind of job,
so a resumed job continues its W&B run. Offline, it gets another folder with the same id, and `wandb sync` joins them.

W&B writes through a separate process (wandb-core). SLURM's signals reach it, too, so it may end before we do. If it
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
from typing import Any, TypeVar, cast

from pairscale.console import say
from pairscale.errors import RunError
from pairscale.files import sha256_json
from train.trackers.tracker import Job, LoggerConfig, Tracker, tracker

MAX_NAME = 128  # characters in an id or an artifact's name
MAX_TAG = 64
NETWORK_SECONDS = 5  # how long W&B may take to answer before tracking goes offline
CALL_SECONDS = 60  # how long W&B may take for any other call before a job continues without it
UPLOAD_SECONDS = 600  # how long it may take to copy and send files
SWEEP_VARIABLES = ("WANDB_SWEEP_ID", "WANDB_SWEEP_PARAM_PATH", "WANDB_RUN_ID")  # variables that `wandb agent` sets
T = TypeVar("T")


@tracker("wandb")
class WandbTracker(Tracker):
    """One open W&B run, which writes to the folder `wandb` in its job's folder."""

    def __init__(self, logger: LoggerConfig, job: Job):
        """Open the run.

        Raises RunError if W&B rejects a value or a key, or if it can't be reached when a new job begins with
        logger.mode=online.
        """
        super().__init__(logger, job)
        job.folder.mkdir(parents=True, exist_ok=True)
        begins = not (job.folder / "wandb").exists()  # a missing network does not stop a resumed run
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
                # Its lines would disturb our progress display. It copies our output only if the user asks for that.
                settings=wandb.Settings(silent=True, console=cast(Any, os.environ.get("WANDB_CONSOLE", "off"))),
            )
            try:
                self.run = _answer(start, 2 * CALL_SECONDS)  # W&B's own limit is 90 seconds
            except Exception as error:
                _leave_service()
                refusals = (wandb.errors.UsageError, wandb.errors.AuthenticationError)
                refused = isinstance(error, refusals) or type(error) is ValueError  # subclasses mean garbled answers
                unreachable = logger.mode == "online" and begins and isinstance(error, wandb.errors.CommError)
                if not refused and not unreachable:
                    raise  # the run continues without W&B
                reason = " ".join(str(error).split()) or type(error).__name__
                raise RunError(
                    f"logger=wandb: {reason.rstrip('.')}. To track without a network, use logger.mode=offline."
                ) from None
            if job.kind != "analysis":
                self.run.define_metric(job.x)
                self.run.define_metric("*", step_metric=job.x)
            # Online, the summary of a resumed run contains the last point of its curves.
            self.reached = float(self.run.summary.get(job.x, -1))  # type: ignore[no-untyped-call]
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

    def chart(self, name: str, content: Any) -> None:
        import wandb

        if isinstance(content, Path):
            chart: Any = wandb.Image(str(content))
        else:
            fields = dict(zip(("step", "lineKey", "lineVal"), content, strict=True))
            titles = {"title": name, "xname": content.columns[0]}
            chart = wandb.plot_table(
                "wandb/lineseries/v0", wandb.Table(dataframe=content), fields, titles
            )  # W&B's preset
        _answer(partial(self.run.log, {name: chart}))

    def artifact(self, name: str, kind: str, paths: Iterable[Path]) -> None:
        """Store files and folders as an artifact. Offline, they are copied and wait for `wandb sync`."""
        import wandb

        artifact = wandb.Artifact(_unique_name(self.job.study, name), kind)
        for path in paths:
            for file in sorted(filter(Path.is_file, path.rglob("*"))) if path.is_dir() else [path]:
                artifact.add_file(str(file), name=str(file.relative_to(path.parent)))
        _answer(partial(self.run.log_artifact, artifact), UPLOAD_SECONDS)

    def finish(self, failed: bool) -> None:
        with self._environment:
            try:
                # A stopped job may have little time before SLURM kills it.
                _answer(partial(self.run.finish, exit_code=int(failed)), CALL_SECONDS if failed else UPLOAD_SECONDS)
            except Exception:
                _leave_service()
                raise
        if self.run.settings.mode == "offline" and not failed:
            say(f"Tracked offline. To upload it, run: wandb sync {Path(self.run.dir).parent}")


@contextlib.contextmanager
def _environment(job: Job) -> Iterator[None]:
    """Set W&B's variables: copies stay in the job's folder, and a sweep's id is used for scoring only.

    Training ignores the sweep's id because it resumes the W&B run with its own id.
    """
    hidden = {name: os.environ.pop(name) for name in SWEEP_VARIABLES if job.kind != "eval" and name in os.environ}
    chosen = os.environ.get("WANDB_DATA_DIR")
    os.environ["WANDB_DATA_DIR"] = chosen or str((job.folder / "wandb" / "data").absolute())
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # it would report its own errors over the network
    try:
        yield
    finally:
        if chosen is None:
            del os.environ["WANDB_DATA_DIR"]
        if hidden:
            import wandb

            os.environ.update(hidden)
            _answer(wandb.teardown)  # otherwise it keeps the variables that it has read


def _answer(call: Callable[[], T], seconds: float = CALL_SECONDS) -> T:
    """Return the result of a W&B call. If it takes longer than `seconds`, kill W&B and raise TimeoutError."""
    try:
        return _within(seconds, call)
    except TimeoutError:
        from wandb.sdk import wandb_setup

        with contextlib.suppress(AttributeError):  # there is no process (yet)
            wandb_setup.singleton()._connection._proc._process.kill()  # type: ignore[union-attr]
        raise TimeoutError(f"W&B did not answer within {seconds:g} seconds") from None


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of `call`, or raise TimeoutError after `seconds`. Its thread then continues to wait."""
    outcome: Future[T] = Future()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=work, daemon=True).start()
    return outcome.result(seconds)


def _leave_service() -> None:
    """Disconnect from W&B's process, which may have died, so that the next job starts a new one."""
    import wandb

    with contextlib.suppress(Exception, SystemExit):  # a dead process can't answer, and its exit code is irrelevant
        _answer(wandb.teardown)


def _mode(requested: str | None) -> Any:
    """Return logger.mode or WANDB_MODE if set. Otherwise, "online" needs a key and an answer from W&B."""
    if mode := requested or os.environ.get("WANDB_MODE"):
        return mode
    from wandb.sdk import wandb_setup

    # wandb.setup() would start W&B's process, and would never return if that process died.
    url = str(wandb_setup.singleton().settings.base_url)
    return "online" if has_key(url) and answers(url) else "offline"


def has_key(url: str) -> bool:
    """Return True if the environment or `wandb login` provides a key for the W&B server at `url`."""
    from requests.utils import get_netrc_auth

    in_environment = os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE")
    return bool(in_environment or get_netrc_auth(url) or get_netrc_auth("https://api.wandb.ai"))


@cache
def answers(url: str) -> bool:
    """Return True if a server gives any answer within NETWORK_SECONDS. Report once if it does not."""
    import requests

    try:  # in a thread, because a name lookup without a network has no time limit
        _within(NETWORK_SECONDS, partial(requests.head, url, timeout=NETWORK_SECONDS))
    except OSError:  # includes the errors of requests, and timeouts
        say(f"{url} does not answer, so this job is tracked offline.")
        return False
    return True


def _unique_name(*parts: str | None) -> str:
    """Return a W&B id or artifact name made of `parts` and their digest, which makes it unique."""
    digest = sha256_json(parts)[:8]
    text = re.sub(r"[^\w.-]+", "_", "-".join(dict.fromkeys(filter(None, parts))), flags=re.ASCII)
    return f"{text[: MAX_NAME - len(digest) - 1]}-{digest}"
