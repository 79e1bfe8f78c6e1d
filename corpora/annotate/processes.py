"""Work on the parts of a corpus in several processes, which end when this process ends for any reason."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from typing import Any, TypeVar

from pairscale.errors import RunError

T = TypeVar("T")
R = TypeVar("R")

_function: Callable[[], Callable[[Any], Any]]  # set in each process of the pool


def in_processes(
    start: Callable[..., Callable[[T], R]], arguments: tuple[Any, ...], items: Sequence[T], processes: int
) -> Iterator[R]:
    """Yield `start(*arguments)(item)` for each item, in order.

    Each process calls `start` once, before its first item, so `start` may load a model. Raises the same errors as
    `start` and the function that it returns, and RunError if a process was killed.
    """
    processes = min(processes, len(items))
    if processes < 2:
        if items:
            yield from map(start(*arguments), items)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads, but not the threads
    with ProcessPoolExecutor(processes, context, _begin, (start, arguments)) as pool:
        try:
            yield from pool.map(_call, items)
        except BrokenProcessPool:
            raise RunError(
                f"One of {processes} processes was killed, probably because memory ran out. Run the command again to "
                "continue. If the command has the setting processes=N, use a smaller number."
            ) from None
        except BaseException:
            for child in multiprocessing.active_children():
                child.terminate()
            raise


def _begin(start: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]) -> None:
    global _function
    _function = cache(partial(start, *arguments))  # called with the first item, so that its errors reach the parent
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C and ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _call(item: Any) -> Any:
    return _function()(item)
