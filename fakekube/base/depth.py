"""Runs recursive functions on deeply nested data in a thread with a large stack.

JSON may nest ten thousand levels deep, and a recursive function makes a few calls for each level; Python's recursion
limit is a thousand calls by default, of which the caller has used some. A function that exceeds the limit is called
again in a thread with a large stack, while the recursion limit of the process is raised: so shallow data costs
nothing extra, functions need not count levels, and the stack is always large enough for the limit.

Invariants: the limit is the largest that a running call needs; the last call restores it. The memory of deep calls is
bounded by the size of the stack and the number of concurrent calls. Data that is too deep even for the large stack
raises RecursionError.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import Final, Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

#: The recursion limit: ten thousand levels with fifteen calls each.
_CALLS: Final = 150_000
#: Bytes of address space; only used pages become memory. A call through C takes less than 800 bytes.
_STACK: Final = 256 * 1024 * 1024
_AT_ONCE: Final = 2


class allowance:
    """A context manager that raises the recursion limit (to the maximum that any active context needs)."""

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


def call_with_deep_stack(function: Callable[[], T]) -> T:
    """Calls `function` in a thread with a large stack, and waits for it.

    Raises:
        RecursionError: even the large stack is not enough, or it cannot be allocated.
        BaseException: any exception of `function`.
    """
    if getattr(_inside, "room", False):
        return function()
    with _places:
        return _Call(function).result()


class _Call(Generic[T]):
    """One call in its own thread."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._context = contextvars.copy_context()
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
                self._results.append(self._context.run(self._function))
        except RecursionError:  # without its traceback, which is as long as the stack was deep
            self._error = RecursionError("nested too deep")
        except BaseException as error:
            self._error = error.with_traceback(None)


def with_deep_stack(function: Callable[P, T]) -> Callable[P, T]:
    """Decorates a function without side effects: after a RecursionError it is called again with a large stack."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            return call_with_deep_stack(lambda: function(*args, **kwargs))

    return called
