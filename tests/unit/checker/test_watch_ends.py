"""Watches that end normally: which pauses after them are those of a backoff that a success does not reset."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker import pauses
from fakekube.checker.rules import watch_ends
from fakekube.checker.rules.watch_ends import _OPEN, NormalEnd
from fakekube.checker.trace import Stream

KEY: Any = "configmaps"
ALWAYS = 0.0
NEVER = float("inf")


class Run:
    """A run with a client that doubles its pause after a watch, and begins anew after one that was open for long enough.

    Args:
        long_enough: the seconds for which a watch has to be open for that.
    """

    def __init__(self, long_enough: float) -> None:
        self._long_enough, self._pause, self.now = long_enough, 0.8, 0.0
        self._calls: list[Any] = []
        self.held: list[float] = []
        """For how many seconds watches were open in which nothing was done."""
        self.baseline = SimpleNamespace(is_shared=lambda key: False)
        self.trace = SimpleNamespace(streams=self.streams_since)
        self._watch()

    def _watch(self) -> None:
        call = {"number": len(self._calls), "stream": KEY, "at": self.now, "end": None, "ended": "the server ended it"}
        self._calls.append(SimpleNamespace(**call, resumes=True, newest_delivered=lambda bookmarks: 7))

    def streams_since(self) -> dict[Any, Stream]:
        return {KEY: Stream(KEY, self._calls)}

    def end_watches(self) -> list[Any]:
        ended = self._calls[-1]
        ended.end = self.now
        self._pause = 0.8 if self.now - ended.at >= self._long_enough else 2 * self._pause
        self.now += self._pause
        self._watch()
        return [ended]

    def stimulate(self) -> Any:
        self.now += 1.0

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if seconds >= 1.0:
            self.held.append(seconds)

    def nothing(self, *arguments: Any) -> Any:
        """In place of what does not concern the pauses."""
        return ()

    await_all = await_until = delete = nothing


@pytest.mark.parametrize(
    ("long_enough", "verdict", "held"), [(ALWAYS, "pass", []), (5.0, "pass", [_OPEN]), (NEVER, "fail", [_OPEN])]
)
def test_growing_pauses_are_blamed_only_if_they_grow_after_a_long_watch_too(
    long_enough: float, verdict: str, held: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Any = Run(long_enough)
    monkeypatch.setattr(pauses, "excerpt", list)
    for name in ("await_long_watches", "await_requests", "touch_objects", "own_objects"):
        monkeypatch.setattr(watch_ends, name, run.nothing)
    rule = NormalEnd()
    rule.provoke(run)
    assert (str(rule.judge_trace(run).outcome), run.held) == (verdict, held)
