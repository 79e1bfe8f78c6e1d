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
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
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

    At the end of the block, the current snapshot is finished. If the block raises an error, or if no snapshot has been
    begun, scoring ends at once.
    """
    silent = [replace(one, trainer=replace(one.trainer, progress=False)) for one in configs]
    with TemporaryDirectory() as folder, subprocess.Popen(
        started_by("eval.live"), stdin=subprocess.PIPE, env=environment(), bufsize=0,
        start_new_session=True,  # so that Ctrl-C reaches only training, which ends this process
    ) as process:  # fmt: skip
        assert process.stdin is not None
        try:
            with suppress(BrokenPipeError):  # if the process dies, its exit code is reported below
                process.stdin.write(pickle.dumps((silent, folder)))
            yield
            with suppress(BrokenPipeError):
                process.stdin.write(b"\n")
            if code := process.wait():
                say(f"Scoring during training ended with exit code {code}. {_AFTERWARDS}")
        except BaseException:
            process.kill()
            raise


def _main() -> None:
    configs, folder = pickle.load(sys.stdin.buffer)  # written by the process that started this one
    begun, ended = threading.Event(), threading.Event()

    def listen() -> None:
        is_done = sys.stdin.buffer.read(1)  # empty if training was stopped or killed
        ended.set()
        if not (is_done and begun.is_set()):
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    os.nice(NICENESS)
    run = RunFolder.of(configs[0].of_run())
    run.model = ModelFolder(Path(folder))  # for snapshots, because the run exports its model only later
    while not run.snapshots:
        time.sleep(LOOK_SECONDS)
    try:
        _score(run, configs, begun, ended)
    except Exception as error:
        say(f"{run.path.name}: scoring during training failed. {_AFTERWARDS} The reason: {outcome(error)[0]}")
    os._exit(0)  # the thread above may still be reading


def _score(run: RunFolder, configs: Sequence[EvalConfig], begun: threading.Event, ended: threading.Event) -> None:
    """Score snapshots until `ended`, and send their accuracies to the tracker. Raises the same errors as scoring.

    `begun` is set before the first one. This doesn't write the manifest, which belongs to training.
    """
    # Imported here, because training should start first.
    from eval.run import works_of
    from eval.scores.accuracy import snapshot_point
    from train.loop.device import set_up_cpu
    from train.run import corpus_of
    from train.runs.model_folder import write_description
    from train.runs.provenance import job_of
    from train.trackers.tracker import tracked

    config, tokenizer, seen = configs[0], corpus_of(configs[0]).tokenizer, set[Path]()
    set_up_cpu(config.trainer, run.read_manifest().get("parameters"))
    job = job_of("eval", run, run.read_config(), config.study)
    tokenizer.save(run.model.tokenizer)
    write_description(run.model, config.model, len(tokenizer), {}, "0" * 64)
    begun.set()
    tracker = None  # until there is a point, so that no empty job is tracked
    with ExitStack() as opened:
        while not ended.wait(LOOK_SECONDS):
            for step, path in run.snapshots.items():
                if path in seen or ended.is_set():
                    continue
                seen.add(path)
                try:
                    for _, make in works_of(run, configs, step=step):
                        if (work := make()).missing:
                            work.score()
                except Exception:
                    if path.exists():  # otherwise, a resumed run has removed it, and will write it again
                        raise
                if point := snapshot_point(run, step, config.ties):
                    tracker = tracker or opened.enter_context(tracked(config.logger, job))
                    tracker.log(point)


if __name__ == "__main__":
    _main()
