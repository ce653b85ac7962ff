"""Children that somebody else has touched (S3, C5)."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.reaction import Copy
from fakekube.checker.rules import children
from fakekube.checker.rules.children import ChangedChild, Unowned
from fakekube.checker.verdict import NotExercised

PLACE = ("configmaps", "{}-page")
DATA = ("data", "title")


class Keeper:
    """A run with a client that makes a ConfigMap of each object; what it does after a change by others is given.

    Args:
        watches: whether it watches the ConfigMap.
        sets_back: what wakes it so that it sets the ConfigMap back: "event", "touch", "change", or nothing.
        copies: whether the ConfigMap follows the object at all.
    """

    def __init__(self, *, watches: bool, sets_back: str, copies: bool = True) -> None:
        self._watches, self._sets_back, self._copies = watches, sets_back, copies
        self._text = "hello"
        self._written = 0
        self.child: Any = {"metadata": {"name": "web-x-page"}, "data": {"title": "hello"}}
        self.copies = [Copy("x", [{"metadata": {"name": "web-x"}}], ["sites"], -1, 0.0)]
        write = SimpleNamespace(is_write=True, succeeded=True, collection="configmaps")
        self.trace = SimpleNamespace(mark=lambda: self._written, since=lambda mark: [write] * (self._written - mark))
        self.baseline = SimpleNamespace(seconds_to_react=float, reaction=SimpleNamespace(children={"configmaps": 1}))
        self.random, self.cluster, self.excerpt = random.Random(0), self, list

    def patch(self, resource: str, name: str, change: Any, namespace: str | None) -> None:
        self.child = {**self.child, **change}
        if self._watches:
            self._wake("event")

    def touch(self, trial: Any, copy: Copy) -> None:
        self._wake("touch")

    def alter(self, copy: Copy, first: int = 0, ending: str = "more") -> int:
        if self._copies:
            self._written += 1
            if first == 0:
                self._text = f"hello-{ending}"
                self.child = {**self.child, "data": {"title": self._text}}
        self._wake("change")
        return first

    def _wake(self, by: str) -> None:
        if by == self._sets_back:
            self.child = {**self.child, "data": {"title": self._text}}

    @staticmethod
    def await_until(condition: Any, timeout: float) -> bool:
        return bool(condition())


@pytest.mark.parametrize(
    ("watches", "sets_back", "left"),
    [
        (True, "event", ""),
        (True, "touch", ""),  # what lists now and then may set it back later
        (True, "", "watches configmaps, and does not set back"),
        (False, "change", ""),
        (False, "", "writes what it has made again, and leaves"),
    ],
)
def test_what_others_have_changed_in_a_child_is_set_back(
    watches: bool, sets_back: str, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial: Any = Keeper(watches=watches, sets_back=sets_back)
    replace_by(trial, monkeypatch, watches=watches)
    rule = ChangedChild()
    rule.provoke(trial)
    assert rule.left == left
    assert rule.judge_trace(trial).outcome == ("warn" if left else "pass")


def test_a_child_that_does_not_follow_its_object_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    trial: Any = Keeper(watches=True, sets_back="event", copies=False)
    replace_by(trial, monkeypatch, watches=True)
    with pytest.raises(NotExercised, match="no text of what the client has made follows"):
        ChangedChild().provoke(trial)


def replace_by(trial: Keeper, monkeypatch: pytest.MonkeyPatch, *, watches: bool) -> None:
    """Lets the rule change and read the objects of a double."""
    monkeypatch.setattr(ChangedChild, "learn", lambda rule, run: None)
    monkeypatch.setattr(children, "await_quiet", lambda *arguments: None)
    monkeypatch.setattr(children, "children_of", lambda *arguments: [trial.child])
    monkeypatch.setattr(children, "has_own_watch", lambda *arguments: watches)
    monkeypatch.setattr(children, "touch_objects", trial.touch)


@pytest.mark.parametrize(
    ("is_owned", "left", "claimed", "outcome"),
    [
        (True, None, "sites", ""),
        (True, (PLACE, DATA), "", "fail"),
        (False, None, "", "warn"),
        (False, (PLACE, DATA), "", ""),  # it says that it cannot go on
        (False, (PLACE, DATA), "sites", "warn"),
    ],
)
def test_an_object_without_owner_is_taken_over_as_a_whole_or_not_at_all(
    is_owned: bool, left: Any, claimed: str, outcome: str
) -> None:
    trial: Any = SimpleNamespace(excerpt=list)
    verdict = Unowned._judge_taken(trial, "configmaps", is_owned, left, claimed)
    assert (verdict.outcome if verdict else "") == outcome
