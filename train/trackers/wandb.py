"""Weights & Biases (logger=wandb). Imports wandb only when it is used.

    job        name in W&B    contents
    train      <run id>       configuration, curves over words seen, sizes and speeds
    eval       <run id>       accuracies and measures
    analysis   <study>        learning curves and slopes

The study is their group. Scoring has W&B runs of its own: a W&B run has one job type and is written by one process, and
models that come trained have no other. The id of a W&B run is that of its study, name and kind of job, so a job that is
resumed resumes its W&B run; offline, it gets another folder of the same id, which `wandb sync` joins.

W&B writes through a process of its own (wandb-core). SLURM's signals reach it, too, and it ends before we do.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pairscale.console import say
from pairscale.errors import RunError
from pairscale.files import sha256_json
from train.trackers.tracker import Job, LoggerConfig, Tracker, tracker

if TYPE_CHECKING:
    import pandas as pd

MAX_NAME = 128  # characters of an id, or of the name of an artifact
NETWORK_SECONDS = 5  # how long W&B may take to answer before tracking goes offline
SWEEP_VARIABLES = ("WANDB_SWEEP_ID", "WANDB_SWEEP_PARAM_PATH", "WANDB_RUN_ID")  # what `wandb agent` sets


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

            try:
                self.run = wandb.init(
                    project=logger.project,
                    entity=logger.entity,
                    id=_unique_name(job.study, job.name, job.kind),
                    name=job.name,
                    group=job.study,
                    job_type=job.kind,
                    tags=logger.tags,
                    mode=_mode(logger.mode),
                    resume="allow",
                    dir=str(job.folder),
                    config=dict(job.config),
                    # Its lines would appear within our progress display, and what we print needs no copy.
                    settings=wandb.Settings(silent=True, console="off"),
                )
            except Exception as error:
                _leave_dead_service()
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

    def add_point(self, values: dict[str, float]) -> None:
        self.run.log(values)

    def summarise(self, values: Mapping[str, Any]) -> None:
        self.run.summary.update(dict(values))

    def table(self, name: str, table: pd.DataFrame) -> None:
        import wandb

        rows: list[Any] = [[_plain(cell) for cell in row] for row in table.itertuples(index=False, name=None)]
        self.run.summary[name] = wandb.Table(columns=[str(column) for column in table], data=rows)

    def image(self, name: str, path: Path) -> None:
        import wandb

        self.run.log({name: wandb.Image(str(path))})

    def artifact(self, name: str, kind: str, paths: Iterable[Path]) -> None:
        """Keep files and folders as an artifact; offline they are copied until they are synced."""
        import wandb

        artifact = wandb.Artifact(_unique_name(self.job.study, name), kind)
        for path in paths:
            for file in sorted(filter(Path.is_file, path.rglob("*"))) if path.is_dir() else [path]:
                artifact.add_file(str(file), name=str(file.relative_to(path.parent)))
        self.run.log_artifact(artifact)

    def finish(self, failed: bool) -> None:
        with self._environment:
            try:
                self.run.finish(exit_code=int(failed))
            except Exception:
                _leave_dead_service()
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
            wandb.teardown()  # it keeps the variables that it has read


def _leave_dead_service() -> None:
    """Part from W&B's process, which may have died, so that the next job of this process starts another one."""
    import wandb

    with contextlib.suppress(Exception, SystemExit):  # the dead answer nothing, and their exit code is none of ours
        wandb.teardown()


_answers: dict[str, bool] = {}  # base URL -> True if W&B answered this process


def _mode(requested: str | None) -> Any:
    """Return logger.mode, else WANDB_MODE, else online if there is a key and W&B answers, else offline."""
    if mode := requested or os.environ.get("WANDB_MODE"):
        return mode
    if not has_key():
        return "offline"
    url = base_url()
    if url not in _answers:
        _answers[url] = answers(url)
        if not _answers[url]:
            say(f"{url} does not answer: tracking offline")
    return "online" if _answers[url] else "offline"


def has_key() -> bool:
    """Return True if there is a key for W&B, in WANDB_API_KEY or where `wandb login` puts it."""
    import netrc

    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    names = [os.environ["NETRC"]] if os.environ.get("NETRC") else ["~/.netrc", "~/_netrc"]
    for path in (Path(name).expanduser() for name in names):
        with contextlib.suppress(OSError, netrc.NetrcParseError):  # the file belongs to other programs
            logins = netrc.netrc(path)
            if any(logins.authenticators(host) for host in (urlsplit(base_url()).netloc, "api.wandb.ai")):
                return True
    return False


def base_url() -> str:
    """Return the address of the W&B server that is set up here."""
    import wandb

    return str(wandb.setup().settings.base_url)


def answers(url: str) -> bool:
    """Return True if a server answers within NETWORK_SECONDS, whatever the answer."""
    import http.client
    import urllib.error
    import urllib.request

    answered = threading.Event()

    def request() -> None:
        try:
            urllib.request.urlopen(url, timeout=NETWORK_SECONDS).close()
        except urllib.error.HTTPError:
            pass  # an answer
        except (OSError, http.client.HTTPException):
            return
        answered.set()

    # In a thread, as looking up a name without a network has no time limit.
    threading.Thread(target=request, daemon=True).start()
    return answered.wait(NETWORK_SECONDS)


def _unique_name(*parts: str | None) -> str:
    """Return parts as an id of W&B or the name of an artifact, with a digest, so that no other parts give the same."""
    digest = sha256_json(parts)[:8]
    text = re.sub(r"[^\w.-]+", "_", "-".join(dict.fromkeys(filter(None, parts))), flags=re.ASCII)
    return f"{text[: MAX_NAME - len(digest) - 1]}-{digest}"


def _plain(cell: Any) -> Any:
    """Return a cell of a table as W&B takes it."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    return cell if isinstance(cell, (bool, int, str)) else float(cell)
