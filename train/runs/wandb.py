"""Tracking in Weights & Biases (logger=wandb), for all commands. Imports no torch, and wandb only when it is used.

    job type   id in W&B             what it holds
    train      <run id>              configuration, curves over words seen, sizes and speeds
    eval       <run id>-eval         accuracies, and the record that `python -m analysis source=wandb` reads
    analysis   <study>-analysis      learning curves and slopes

Their group is the study. Scoring has W&B runs of its own, as one of them is of one job type and written by one
process: models that come trained have nothing else, and scoring again leaves the curves of training alone. An id is the
same each time, so what goes on resumes its W&B run; offline, that is another folder of the same id, which `wandb sync`
joins.
"""

from __future__ import annotations

import contextlib
import http.client
import math
import netrc
import os
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pairscale.errors import RunError
from train.config import LoggerConfig, RunConfig
from train.runs.folder import RunFolder
from train.runs.metrics import MetricsFile, exported_validation, numbers

if TYPE_CHECKING:
    import pandas as pd
    import wandb

JOBS = ("train", "eval", "analysis")
# Parts of a configuration that say what a run is; the rest is of this machine, or of one command.
DESCRIBED = ("study", "seed", "precision", "corpus", "sample", "tokenizer", "model", "recipe")
RECORD = "record"  # name of the summary value that holds a scored run's record (eval/scores/record.py)
NETWORK_SECONDS = 5  # that W&B may take to answer, before tracking goes offline
SWEEP_VARIABLES = ("WANDB_SWEEP_ID", "WANDB_SWEEP_PARAM_PATH", "WANDB_RUN_ID")  # what `wandb agent` sets


class Tracker:
    """One W&B run that is open."""

    def __init__(self, run: wandb.Run):
        self.run = run
        # Where the curves end that W&B has of a run that goes on; offline it cannot tell.
        self.words_seen = float(run.summary.get("words_seen", -1))  # type: ignore[no-untyped-call]

    def log(self, values: Mapping[str, float]) -> None:
        """One point of all curves in `values`, which holds their x, words_seen; none twice."""
        if values["words_seen"] > self.words_seen:
            self.run.log(dict(values))
            self.words_seen = values["words_seen"]

    def catch_up(self, metrics: Path) -> None:
        """Log the points of metrics.csv that W&B lacks: a process that is killed takes the latest ones with it."""
        for row in MetricsFile(metrics).rows:
            self.log(numbers(row))

    def summarise(self, values: Mapping[str, Any]) -> None:
        """Values of the run as a whole; what was there under these names is replaced."""
        self.run.summary.update(dict(values))

    def table(self, name: str, table: pd.DataFrame) -> None:
        """A table of the run as a whole; one of this name is replaced."""
        import wandb

        rows: list[Any] = [[_plain(cell) for cell in row] for row in table.itertuples(index=False, name=None)]
        self.run.summary[name] = wandb.Table(columns=[str(column) for column in table], data=rows)

    def image(self, name: str, path: Path) -> None:
        """A figure from a PNG file."""
        import wandb

        self.run.log({name: wandb.Image(str(path))})

    def artifact(self, name: str, kind: str, paths: Iterable[Path]) -> None:
        """Keep files and folders as an artifact; offline they are copied until they are synced."""
        import wandb

        artifact = wandb.Artifact(_name(name), kind)
        for path in paths:
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                artifact.add_file(str(file), name=str(file.relative_to(path.parent)))
        self.run.log_artifact(artifact)


def described(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a run's resolved configuration that says what the run is."""
    return {key: config[key] for key in DESCRIBED if key in config}


@contextlib.contextmanager
def tracked(
    logger: LoggerConfig, job: str, run: str, study: str | None, folder: Path, config: Mapping[str, Any]
) -> Iterator[Tracker | None]:
    """Track what the block does in the W&B run of `job` (one of JOBS) for `run` (for analysis: the study's name).

    None where logger is not wandb, and in all processes of a run but the first. W&B writes to `folder`/wandb. A block
    that raises leaves a failed W&B run. Raises RunError in one line where W&B cannot be reached though
    logger.mode=online asks for it.
    """
    if logger.name != "wandb" or os.environ.get("LOCAL_RANK", "0") != "0":
        yield None
        return
    folder.mkdir(parents=True, exist_ok=True)
    with _environment(job, folder):
        import wandb

        try:
            open_run = wandb.init(
                project=logger.project,
                entity=logger.entity,
                id=_name(run if job == "train" else f"{run}-{job}"),
                name=run,
                group=study,
                job_type=job,
                tags=logger.tags,
                mode=_mode(logger.mode),
                resume="allow",
                dir=str(folder),
                config=dict(config),
                # Its lines would stand in our progress display, and what we print is in no need of a copy.
                settings=wandb.Settings(silent=True, console="off"),
            )
        except Exception as error:  # its own kinds, and some that it does not name: none is a fault of this program
            told = " ".join(str(error).split()) or type(error).__name__
            raise RunError(f"logger=wandb: {told}; logger.mode=offline tracks without a network") from None
        if job == "train":
            open_run.define_metric("words_seen")
            open_run.define_metric("*", step_metric="words_seen")
        try:
            yield Tracker(open_run)
        except BaseException:  # Ctrl-C and a signal, too: W&B is told, and they go on up
            open_run.finish(exit_code=1)
            raise
        open_run.finish()
        if open_run.settings.mode == "offline":
            place = Path(open_run.dir).parent
            _say(f"tracked offline; to send it: wandb sync {place}")


@contextlib.contextmanager
def _environment(job: str, folder: Path) -> Iterator[None]:
    """The environment variables that W&B reads.

    Its copies of tables and artifacts go beside the rest. In a sweep W&B gives one id to all that a process tracks:
    that is left to the accuracies, which sweeps compare, so that training keeps its own id and can be resumed.
    """
    hidden = {name: os.environ.pop(name) for name in SWEEP_VARIABLES if job != "eval" and name in os.environ}
    chosen = os.environ.get("WANDB_DATA_DIR")
    os.environ["WANDB_DATA_DIR"] = chosen or str((folder / "wandb" / "data").absolute())
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # its reports of its own errors, over the network
    try:
        yield
    finally:
        if chosen is None:
            del os.environ["WANDB_DATA_DIR"]
        if hidden:
            import wandb

            wandb.teardown()  # what it once read it keeps
            os.environ.update(hidden)


def track_trained(tracker: Tracker, config: RunConfig, folder: RunFolder) -> None:
    """What a training run that is done came to and, if asked for, its model."""
    manifest = folder.read_manifest()
    names = ("sample_words", "words_seen", "tokens", "vocabulary", "parameters", "words_per_s", "wall_s", "attempts")
    exported = exported_validation(folder.metrics, config.recipe.export)
    tracker.catch_up(folder.metrics)
    tracker.summarise({name: manifest[name] for name in names if manifest.get(name) is not None})
    tracker.summarise({f"exported/{name}": value for name, value in exported.items() if value is not None})
    if "model" in config.logger.artifacts:
        parts = (folder.weights, folder.ngrams, folder.model, folder.tokenizer)
        tracker.artifact(f"{folder.path.name}-model", "model", [part for part in parts if part.exists()])


_answers: dict[str, bool] = {}  # base URL -> whether W&B answered this process


def _mode(asked: str | None) -> Any:
    """logger.mode, else WANDB_MODE, else online where there is a key and W&B answers, else offline."""
    if mode := asked or os.environ.get("WANDB_MODE"):
        return mode
    if not has_key():
        return "offline"
    url = base_url()
    if url not in _answers:
        _answers[url] = answers(url)
        if not _answers[url]:
            _say(f"{url} does not answer: tracking offline")
    return "online" if _answers[url] else "offline"


def has_key() -> bool:
    """Whether there is a key for W&B, in WANDB_API_KEY or where `wandb login` puts it."""
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    names = [os.environ["NETRC"]] if os.environ.get("NETRC") else ["~/.netrc", "~/_netrc"]
    for path in (Path(name).expanduser() for name in names):
        with contextlib.suppress(OSError, netrc.NetrcParseError):  # of other programs, and theirs to complain of
            known = netrc.netrc(path)
            if any(known.authenticators(host) for host in (urlsplit(base_url()).netloc, "api.wandb.ai")):
                return True
    return False


def base_url() -> str:
    """Address of the W&B server that is set up here."""
    import wandb

    return str(wandb.setup().settings.base_url)


def answers(url: str) -> bool:
    """Whether a server answers within NETWORK_SECONDS, whatever it says."""
    answered = threading.Event()

    def ask() -> None:
        try:
            urllib.request.urlopen(url, timeout=NETWORK_SECONDS).close()
        except urllib.error.HTTPError:
            pass  # an answer
        except (OSError, http.client.HTTPException):
            return
        answered.set()

    # In a thread, as looking up a name without a network has no limit of time.
    threading.Thread(target=ask, daemon=True).start()
    return answered.wait(NETWORK_SECONDS)


def _name(text: str) -> str:
    """Text as an id of W&B or the name of an artifact."""
    return re.sub(r"[^\w.-]+", "_", text, flags=re.ASCII)


def _plain(cell: Any) -> Any:
    """A cell of a table as W&B takes it."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    return cell if isinstance(cell, (bool, int, str)) else float(cell)


def _say(text: str) -> None:
    from rich.console import Console  # here, as commands that track nothing read this module too

    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)
