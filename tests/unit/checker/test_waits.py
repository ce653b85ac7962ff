"""When a client is considered quiet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.waits import await_quiet


class Run:
    """A run whose time passes only while it waits, and whose client sends requests of 0.1 s at given times."""

    def __init__(self, *sent: float, slowness: float = 1.0) -> None:
        self.now = 0.0
        self.session = SimpleNamespace(quiet=0.8, seconds=10.0, slowness=lambda: slowness)
        self.trace = SimpleNamespace(since=lambda mark: self._calls(sent))

    def _calls(self, sent: Sequence[float]) -> list[Any]:
        kind = {"is_watch": False, "collection": "configmaps", "mentions": lambda token: token == "bcdfgh"}  # noqa: S105
        return [SimpleNamespace(at=at, end=at + 0.1, **kind) for at in sent if at <= self.now]

    def await_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        end = self.now + seconds
        while self.now < end:
            if condition():
                return True
            self.now += 0.05
        return False


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param((0.1, 0.5), id="at once"),
        pytest.param((1.5, 3.0, 3.1), id="works for a while before each write"),
        pytest.param((1.2, 2.6, 4.5, 6.9), id="becomes slower"),
        pytest.param((4.0,), id="waits before it acts"),
    ],
)
def test_a_client_is_quiet_after_its_last_request(sent: tuple[float, ...]) -> None:
    run: Any = Run(*sent, slowness=2.0)
    assert await_quiet(run, -1, ["bcdfgh"]) == pytest.approx(sent[-1] + 0.1)


def test_a_heartbeat_does_not_keep_a_client_busy() -> None:
    run: Any = Run(0.1, *(10.0 * number for number in range(1, 10)))
    assert await_quiet(run, -1, ["bcdfgh"]) < 1.0
    assert run.now < 3.0


def test_a_client_that_sends_nothing_is_quiet_after_some_time() -> None:
    run: Any = Run()
    assert await_quiet(run, -1, ["bcdfgh"]) == 0.0
    assert 3.0 < run.now < 10.0
