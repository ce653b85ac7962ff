"""What a command does to its process: the signals that end it, the limit of open files, its output, and its end.

Invariant: a process ends a few seconds after the signal, whatever its cluster still does.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, NoReturn

#: Those that end `serve`, `server`, `record` and a scenario, and that `run` passes on to its command.
_SIGNALS: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
#: The maximum time, in real seconds, between a signal and the end of `serve`.
_STOP_SECONDS: Final = 10.0


class StopChannel:
    """Is closed by a signal, for which the main thread waits.

    A handler runs at any point of the main thread. If that is within a method of `threading.Event`, `Event.set` waits for the
    lock of the event for ever; `SimpleQueue.put` may be called within any method of its queue.
    """

    def __init__(self) -> None:
        self._closings: SimpleQueue[None] = SimpleQueue()
        self.closed = False

    def close(self) -> None:
        """Lets `wait` return, now and later."""
        self.closed = True
        self._closings.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the channel is closed, at most `timeout` real seconds (None: without end). Returns whether it is closed."""
        if not self.closed:
            with suppress(Empty):
                self._closings.get(timeout=timeout)
        return self.closed


def setup_signal_handler(*, limited: bool = False) -> StopChannel:
    """Returns a channel that each signal of `_SIGNALS` closes (SetupSignalHandler of k8s.io/apiserver/pkg/server).

    Args:
        limited: whether the process ends `_STOP_SECONDS` after the first signal with the code 1, if it has not ended by then.
    """
    stop = StopChannel()

    def handle(_number: int) -> None:
        if limited and not stop.closed:  # a thread of Python could not be started at any point
            faulthandler.dump_traceback_later(_STOP_SECONDS, exit=True, file=os.open(os.devnull, os.O_WRONLY))
        stop.close()

    handle_signals(handle)
    return stop


def handle_signals(handle: Callable[[int], object]) -> None:
    """Calls `handle` for each signal of `_SIGNALS`, also in a job in the background, which a shell starts with some ignored.

    SIGHUP that is ignored (nohup) remains ignored.
    """
    for number in _SIGNALS:
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda received, _frame: handle(received))


def end_process() -> NoReturn:
    """Ends the process of a stopped cluster, which has closed its files.

    Python would free all objects one by one before, which takes seconds with many.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more, or it is closed
            stream.flush()
    os._exit(0)


def raise_file_limit() -> None:
    """Raises the soft limit of open files to the hard one, as Go's programs do."""
    with suppress(ImportError, OSError, ValueError):  # there is no such limit, or it cannot be changed
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def discard_output() -> None:
    """Lets what is still to be written to the standard output, at the end of the process too, be lost."""
    with suppress(OSError, ValueError):  # a stream of its own, as in tests
        output = sys.stdout.fileno()
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), output)
