"""The memory of processes that serve: garbage is collected seldom, and free memory is returned to the system.

Python and the C library keep the memory of objects that are gone for later ones. After much work, a process that has nothing to
do packs the past, empties its caches, collects cyclic garbage and returns what is free; so a server whose objects were deleted
becomes small again.

Invariant: no request waits for it but one that arrives while it is done, after a time without work.

Specified by: mallopt(3), malloc_trim(3) of the GNU C library; other libraries do not have them.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from typing import Final

#: M_ARENA_MAX in malloc.h.
_ARENA_MAX: Final = -8
#: Seconds between two looks at the work of the process.
PERIOD: Final = 5.0
#: The most CPU seconds of a period in which the process has nothing to do: controllers renew leases.
_IDLE_SECONDS: Final = 0.1
#: The CPU seconds of work after which memory is returned.
_WORK_SECONDS: Final = 5.0


def collect_seldom() -> None:
    """Makes Python's garbage collector run less often in a process that only serves.

    Objects of the API are trees without cycles. With Python's defaults, collections take a tenth of the time, and up to 100 ms
    each with 5,000 pods. Each object is looked at twice before it counts as old; the second time soon, so that the collection is
    short.
    """
    gc.freeze()
    gc.set_threshold(10_000, 2, 1_000)


def use_one_arena() -> bool:
    """Makes the threads that start from now on share one arena; returns False if the user or the C library has it otherwise.

    The GNU C library gives threads arenas of their own, up to eight for each processor; what is free in one of them is of no
    use to the threads of others. The threads of a Python process take turns, so that one arena is as fast.
    """
    if "MALLOC_ARENA_MAX" in os.environ:
        return False
    set_option = _function_of_c_library("mallopt")
    return set_option is not None and bool(set_option(_ARENA_MAX, 1))


class Housekeeping:
    """Returns memory when a process that has worked much has nothing to do.

    Args:
        pack_past: packs what only shows the past.
        work: returns the CPU seconds of the process so far.
    """

    def __init__(self, pack_past: Callable[[], None], work: Callable[[], float] = time.process_time) -> None:
        self._pack_past, self._work = pack_past, work
        self._seen = self._cleaned = work()

    def return_memory_if_idle(self) -> bool:
        """Called every `PERIOD`. Returns whether memory was returned to the system."""
        now, before = self._work(), self._seen
        self._seen = now
        if now - before > _IDLE_SECONDS or now - self._cleaned < _WORK_SECONDS:
            return False
        from fakekube.apimachinery.codecs.document import pack_recent
        from fakekube.base.caches import forget_all

        pack_recent()
        self._pack_past()
        forget_all()
        gc.collect()
        trim = _function_of_c_library("malloc_trim")
        if trim is not None:
            trim(0)
        self._seen = self._cleaned = self._work()
        return True


def _function_of_c_library(name: str) -> Callable[..., int] | None:
    """Returns a function of the GNU C library; None if the process has another one."""
    try:
        if not (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc"):
            return None
        import ctypes

        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
        return found
    except (ImportError, OSError, ValueError, AttributeError):
        return None
