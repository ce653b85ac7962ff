"""Room for what nests deeply.

JSON may nest ten thousand levels deep, and whatever walks over it takes a few calls for each level; Python allows a
thousand calls at first, of which the caller has used some. What meets its bounds there is done again in a thread with
a large stack, while the allowance of the process is raised: so nothing that is usual pays for it, nothing need count
levels, and no stack is ever too small for what it is allowed to hold.

Invariants: the allowance is the largest that somebody needs at the time; the last one who is done takes it back. How
much memory deep walks take is bounded by the size of the stack and by how many of them there are at once. What is deeper
than even this room stays a RecursionError.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import Final, Generic, ParamSpec, TypeVar

__all__ = ["allowance", "deepening", "deeply"]

T = TypeVar("T")
P = ParamSpec("P")

#: Ten thousand levels, and fifteen calls for each.
_CALLS: Final = 150_000
#: Bytes of address space, of which only what is used becomes memory. A call through C takes less than 800 of them.
_STACK: Final = 256 * 1024 * 1024
_AT_ONCE: Final = 2


class allowance:
    """While the context lasts, so many calls may be under way in a thread (or as many as somebody else needs)."""

    _lock = threading.Lock()
    _needed: Final[list[int]] = []
    _usual = 0

    def __init__(self, calls: int) -> None:
        self._calls = calls

    def __enter__(self) -> None:
        with allowance._lock:
            if not allowance._needed:
                allowance._usual = sys.getrecursionlimit()
            allowance._needed.append(self._calls)
            self._set()

    def __exit__(self, *_: object) -> None:
        with allowance._lock:
            allowance._needed.remove(self._calls)
            self._set()

    def _set(self) -> None:
        sys.setrecursionlimit(max(allowance._usual, *allowance._needed, 0))


_inside = threading.local()
_places = threading.BoundedSemaphore(_AT_ONCE)
_starting = threading.Lock()


def deeply(function: Callable[[], T]) -> T:
    """Call `function` where there is room, and wait for it.

    Raises:
        RecursionError: even that is not enough, or there is no such room to be had.
        BaseException: whatever `function` raises.
    """
    if getattr(_inside, "room", False):
        return function()
    with _places:
        return _Call(function).result()


class _Call(Generic[T]):
    """One call in a thread of its own."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._results: list[T] = []
        self._error: BaseException | None = None

    def result(self) -> T:
        thread = threading.Thread(target=self._run, name="fakekube-depth", daemon=True)
        with _starting:
            usual = threading.stack_size(_STACK)
            try:
                thread.start()
            except RuntimeError:
                raise RecursionError("no stack is large enough") from None
            finally:
                threading.stack_size(usual)
        thread.join()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        _inside.room = True
        try:
            with allowance(_CALLS):
                self._results.append(self._function())
        except RecursionError:  # without its traceback, which is as long as the stack was deep
            self._error = RecursionError("nested too deep")
        except BaseException as error:
            self._error = error.with_traceback(None)


def deepening(function: Callable[P, T]) -> Callable[P, T]:
    """A function without lasting effects that is called again, where there is room, if it needs more than there is."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            return deeply(lambda: function(*args, **kwargs))

    return called
