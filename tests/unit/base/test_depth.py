"""Deep recursion runs on a larger stack, which is released afterwards."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest

from fakekube.base.depth import allowance, call_with_deep_stack, with_deep_stack


def descend(levels: int) -> int:
    return 1 + descend(levels - 1) if levels else 0


def through_c(levels: int) -> bool:
    return any(through_c(levels - 1) for _ in "a") if levels else True


def for_ever() -> int:
    return 1 + for_ever()


def for_ever_through_c() -> bool:
    return any(for_ever_through_c() for _ in "a")


@pytest.fixture(autouse=True)
def usual() -> object:
    before = sys.getrecursionlimit(), threading.stack_size()
    yield
    assert (sys.getrecursionlimit(), threading.stack_size()) == before
    assert "fakekube-depth" not in {thread.name for thread in threading.enumerate()}


def test_deep_stack_allows_50000_levels() -> None:
    with pytest.raises(RecursionError):
        descend(50_000)
    assert call_with_deep_stack(lambda: descend(50_000)) == 50_000


def test_nested_deep_stack_calls_share_one_thread() -> None:
    here: list[int] = []

    def inner() -> int:
        here.append(threading.get_ident())
        return descend(20_000)

    def outer() -> int:
        here.append(threading.get_ident())
        return call_with_deep_stack(inner)

    assert call_with_deep_stack(outer) == 20_000
    assert len(set(here)) == 1 and here[0] != threading.get_ident()


@pytest.mark.parametrize("function", [for_ever, for_ever_through_c])
def test_infinite_recursion_raises_recursion_error(function: Callable[[], object]) -> None:
    with pytest.raises(RecursionError):
        call_with_deep_stack(function)


def test_exceptions_propagate_from_the_deep_stack() -> None:
    def refuse() -> None:
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        call_with_deep_stack(refuse)


def test_with_deep_stack_retries_on_recursion_error() -> None:
    calls: list[int] = []

    @with_deep_stack
    def function(levels: int, *, more: int) -> int:
        calls.append(levels)
        return descend(levels) + more

    assert function(10, more=1) == 11
    assert calls == [10]
    assert function(20_000, more=1) == 20_001
    assert calls == [10, 20_000, 20_000]


def test_recursion_error_is_raised_if_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RecursionError):
        call_with_deep_stack(lambda: 1)


def test_largest_nested_recursion_allowance_applies() -> None:
    before = sys.getrecursionlimit()
    with allowance(before + 100):
        with allowance(before + 50):
            assert sys.getrecursionlimit() == before + 100
        assert sys.getrecursionlimit() == before + 100
    assert sys.getrecursionlimit() == before
    with allowance(10):
        assert sys.getrecursionlimit() == before


def test_recursion_limit_is_restored_by_the_last_user() -> None:
    before = sys.getrecursionlimit()
    entered, leave = threading.Event(), threading.Event()

    def walk() -> None:
        with allowance(5_000):
            entered.set()
            leave.wait(60)

    other = threading.Thread(target=walk)
    with allowance(3_000):
        other.start()
        assert entered.wait(60)
        assert sys.getrecursionlimit() == 5_000
    assert sys.getrecursionlimit() == 5_000
    leave.set()
    other.join()
    assert sys.getrecursionlimit() == before
