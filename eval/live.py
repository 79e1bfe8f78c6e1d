"""Score a run's snapshots while it is trained (scoring.snapshots=live), in a process beside its training.

`beside_training` runs `python -m eval.live`, which looks for new snapshots in the run folder. Training doesn't know of
it, so its weights, its signals and the other devices don't depend on it. Whatever it doesn't score is scored after
training, as with scoring.snapshots=true.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from eval.config import EvalConfig
from pairscale import environment, started_by
from pairscale.command.errors import outcome
from pairscale.console import say
from train.runs.folder import ModelFolder, RunFolder

LOOK_SECONDS = 1  # time between looks for a new snapshot
NICENESS = 10  # on a CPU without idle cores, training gets nine tenths of the time
_AFTERWARDS = "Training isn't affected, and the missing snapshots are scored after it."


@contextmanager
def beside_training(configs: Sequence[EvalConfig]) -> Iterator[None]:
    """Score the snapshots of the run that the block trains, on each configuration's benchmark, as they appear.

    At the end of the block, the current snapshot is finished. If the block raises an error, scoring ends at once.
    """
    process = subprocess.Popen(
        started_by("eval.live"), stdin=subprocess.PIPE, env=environment(),
        start_new_session=True,  # so that Ctrl-C reaches only training, which ends this process
    )  # fmt: skip
    assert process.stdin is not None
    try:
        with suppress(BrokenPipeError):  # if the process dies, its exit code is reported below
            pickle.dump(list(configs), process.stdin)
            process.stdin.flush()
        yield
        with suppress(BrokenPipeError):
            process.stdin.write(b"\n")
            process.stdin.flush()
        if code := process.wait():
            say(f"Scoring during training ended with exit code {code}. {_AFTERWARDS}")
    finally:
        process.kill()
        process.wait()
        with suppress(BrokenPipeError):
            process.stdin.close()


def _main() -> None:
    configs = pickle.load(sys.stdin.buffer)  # written by the process that started this one
    ended = threading.Event()

    def listen() -> None:
        if not sys.stdin.buffer.read(1):
            os._exit(0)  # training was stopped or killed
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    os.nice(NICENESS)
    run = RunFolder.of(configs[0].of_run())
    try:
        _score(run, configs, ended)
    except Exception as error:
        say(f"{run.path.name}: scoring during training failed: {outcome(error)[0]} {_AFTERWARDS}")
    sys.stdout.flush()
    os._exit(0)  # the thread above may still be reading


def _score(run: RunFolder, configs: Sequence[EvalConfig], ended: threading.Event) -> None:
    """Score the snapshots in the run's folder, and each new one, until `ended`. Send their accuracies to the tracker.

    This doesn't write the manifest, which belongs to training. Raises the same errors as scoring.
    """
    scored: set[Path] = set()

    def next_snapshot() -> tuple[int, Path] | None:
        return next(((step, path) for step, path in run.snapshots.items() if path not in scored), None)

    while next_snapshot() is None:
        if ended.wait(LOOK_SECONDS):
            return
    # Imported here, so that the start of training isn't delayed.
    from eval.run import works_of
    from eval.tracking import snapshot_point
    from train.loop.device import set_up_cpu
    from train.runs.provenance import job_of
    from train.trackers.tracker import tracked

    config = configs[0]
    configs = [replace(one, trainer=replace(one.trainer, progress=False)) for one in configs]
    set_up_cpu(config.trainer, run.read_manifest().get("parameters"))
    job = job_of("eval", run, run.read_config(), config.study)
    with TemporaryDirectory() as temporary, tracked(config.logger, job) as tracker:
        description = _describe(config, ModelFolder(Path(temporary)))
        while not ended.is_set():
            if (new := next_snapshot()) is None:
                ended.wait(LOOK_SECONDS)
                continue
            step, path = new
            try:
                for _, make in works_of(run, configs, [step], description=description):
                    if (work := make()).missing:
                        work.score()
            except Exception:
                if path.exists():
                    raise
                continue  # the resumed run has removed this snapshot, and will write it again
            scored.add(path)
            if point := snapshot_point(run, step, config.ties):
                tracker.log(point)


def _describe(config: EvalConfig, folder: ModelFolder) -> ModelFolder:
    """Write a model's folder without weights, because a run exports its model only later. Return the folder."""
    from train.run import corpus_of
    from train.runs.model_folder import write_description

    tokenizer = corpus_of(config).tokenizer
    tokenizer.save(folder.tokenizer)
    write_description(folder, config.model, len(tokenizer), {}, "0" * 64)
    return folder


if __name__ == "__main__":
    _main()
