"""What a command does to its process: the signals that end it, the limit of open files, its output, and its end.

Invariant: a process ends a few seconds after the signal, whatever its cluster still does.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

#: Those that end `serve`, `server`, `record` and a scenario, and that `run` passes on to its command.
_SIGNALS: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
#: The maximum time, in real seconds, between a signal and the end of `serve`.
_STOP_SECONDS: Final = 10.0


def handle_signals(handle: Callable[[int], object]) -> None:
    """Calls `handle` for each signal of `_SIGNALS`, also in a job in the background, which a shell starts with some ignored.

    SIGHUP that is ignored (nohup) remains ignored.
    """
    for number in _SIGNALS:
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda received, _frame: handle(received))


def stop_serving(ended: threading.Event) -> None:
    """Sets the event. The process ends after `_STOP_SECONDS`, even if something prevents the cluster from stopping."""
    if not ended.is_set():
        ended.set()
        timer = threading.Timer(_STOP_SECONDS, os._exit, (1,))
        timer.daemon = True
        timer.start()


def end_process() -> NoReturn:
    """Ends the process of a stopped cluster, which has closed its files.

    Python would free all objects one by one before, which takes seconds with many, and the timer of `stop_serving` does not
    run then.
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
