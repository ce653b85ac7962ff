"""The memory of processes that serve."""

from __future__ import annotations

import gc
import os
import platform
import weakref
from collections.abc import Iterator

import pytest

from fakekube.base.caches import BoundedCache
from fakekube.cli import memory
from fakekube.cli.memory import Housekeeping, use_one_arena


class Work:
    """The CPU seconds of a process, which a test sets."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, tuple[int, ...]]]]:
    """The calls of functions of the C library, which are not made."""
    made: list[tuple[str, tuple[int, ...]]] = []

    def function_of(name: str) -> object:
        return lambda *values: made.append((name, values)) or 1

    monkeypatch.setattr(memory, "_function_of_c_library", function_of)
    yield made


def test_memory_is_returned_once_after_much_work(calls: list[tuple[str, tuple[int, ...]]]) -> None:
    work, packed = Work(), []
    cache: BoundedCache[str, int] = BoundedCache(1)
    cache.add("a", 1)
    keeper = Housekeeping(lambda: packed.append(work.seconds), work)
    work.seconds += 60
    assert not keeper.return_memory_if_idle()  # it works
    assert (packed, cache) == ([], {"a": 1})
    garbage = weakref.ref(Node())
    gc.disable()
    try:
        assert keeper.return_memory_if_idle()
    finally:
        gc.enable()
    assert garbage() is None
    assert (packed, cache) == ([60.0], {})
    assert not keeper.return_memory_if_idle()
    assert calls == [("malloc_trim", (0,))]


def test_a_process_without_much_work_keeps_its_memory(calls: list[tuple[str, tuple[int, ...]]]) -> None:
    work = Work()
    keeper = Housekeeping(lambda: None, work)
    for _ in range(40):
        work.seconds += 0.01  # leases are renewed
        assert not keeper.return_memory_if_idle()
    assert not calls


def test_users_choose_their_arenas(monkeypatch: pytest.MonkeyPatch, calls: list[tuple[str, tuple[int, ...]]]) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert use_one_arena()
    monkeypatch.setenv("MALLOC_ARENA_MAX", "4")
    assert not use_one_arena()
    assert calls == [("mallopt", (-8, 1))]


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "confstr", lambda _name: None)
    assert not use_one_arena()
    work = Work()
    keeper = Housekeeping(lambda: None, work)
    work.seconds += 60
    keeper.return_memory_if_idle()
    assert keeper.return_memory_if_idle()


def test_the_functions_of_this_c_library_are_found_or_not_needed() -> None:
    is_gnu = platform.libc_ver()[0] == "glibc"
    assert (memory._function_of_c_library("malloc_trim") is not None) is is_gnu
