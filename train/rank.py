"""Run a further process of a run on several devices (`python -m train.rank`). train/loop/device.py starts it."""

import os
import pickle
import sys
import threading

from pairscale.command.errors import outcome
from pairscale.errors import PairscaleError
from train.loop.device import Ranks
from train.runs.folder import RunFolder


def _main() -> None:
    config, checkpoint = pickle.load(sys.stdin.buffer)  # written by the process that started this one
    ended = threading.Event()

    def leave_with_the_first() -> None:
        sys.stdin.buffer.read()
        if not ended.is_set():
            os._exit(1)

    threading.Thread(target=leave_with_the_first, daemon=True).start()
    code = 0
    try:
        from train.loop.training import train
        from train.run import corpus_of

        ranks = Ranks(int(os.environ["LOCAL_RANK"]), config.trainer.devices)
        train(config, corpus_of(config), RunFolder.of(config), None, ranks, checkpoint)
    except PairscaleError as error:  # rank 0 raises it too, and reports it
        code = error.exit_code
    except Exception as error:
        line, code = outcome(error)
        print(f"pairscale train: rank {os.environ['LOCAL_RANK']}: {line}", file=sys.stderr, flush=True)
    ended.set()
    os._exit(code)  # the thread above is still reading


if __name__ == "__main__":
    _main()
