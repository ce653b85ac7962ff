"""Children that somebody else has touched (S3, C5)."""

from __future__ import annotations

import random
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.contents import AMOUNTS, TEXTS, OtherValue
from fakekube.checker.reaction import Copy, Effect, EffectKind, Reaction
from fakekube.checker.rules import children
from fakekube.checker.rules.children import ChangedChild, TakenMeanwhile, Unowned, _ChangedValue
from fakekube.checker.verdict import NotExercised

PLACE = ("configmaps", "{}-page")
DATA = ("data", "title")
TITLE = OtherValue(TEXTS, ("spec", "title"), "newb", "hello", "hello-newb", "hello-newb-newb2")
SIZE = OtherValue(AMOUNTS, ("spec", "size"), "newc", 1, 2, 3)


class Keeper:
    """A run with a client that makes a ConfigMap and a Secret of each object; what it does after a change of the Secret by others
    is given. The ConfigMap it always sets back.

    Args:
        watches: whether it watches the Secret.
        sets_back: what wakes it so that it sets the Secret back: "event", "touch", "change", or nothing.
    """

    def __init__(self, *, watches: bool, sets_back: str) -> None:
        self._watches, self._sets_back = watches, sets_back
        self._written = 0
        metadata = {"name": "web-x-page"}
        self.config: Any = {"metadata": {**metadata, "uid": "u1"}, "data": {"title": "hello"}}
        self.secret: Any = {"kind": "Secret", "metadata": {**metadata, "uid": "u2"}, "data": {"title": "aGVsbG8="}}
        self._right = self.secret
        self.copies = [Copy("x", [{"metadata": {"name": "web-x"}}], ["sites"], -1, 0.0)]
        write = SimpleNamespace(is_write=True, succeeded=True, collection="secrets")
        self.trace = SimpleNamespace(mark=lambda: self._written, since=lambda mark: [write] * (self._written - mark))
        reaction = SimpleNamespace(children={"configmaps": 1, "secrets": 1})
        self.baseline = SimpleNamespace(seconds_to_react=float, reaction=reaction)
        self.random, self.cluster, self.excerpt = random.Random(0), self, list
        self.changed: list[Any] = []

    def patch(self, resource: str, name: str, change: Any, namespace: str | None) -> None:
        self.changed.append((resource, change))
        if resource == "secrets":
            self.secret = {**self.secret, **change}
            if self._watches:
                self._wake("event")

    def touch(self, trial: Any, copy: Copy) -> None:
        self._wake("touch")

    def change(self, trial: Any, copy: Copy, step: Any) -> None:
        """In place of `apply_and_await_quiet`."""
        self._written += 1
        self._wake("change")

    def _wake(self, by: str) -> None:
        if by == self._sets_back:
            self.secret = self._right

    def children(self, cluster: Any, copy: Copy, resource: str) -> Any:
        """In place of `children_of`."""
        return [self.secret if resource == "secrets" else self.config]

    @staticmethod
    def await_until(condition: Any, timeout: float) -> bool:
        return bool(condition())


@pytest.mark.parametrize(
    ("watches", "sets_back", "left"),
    [
        (True, "event", ""),
        (True, "touch", ""),  # what lists now and then may set it back later
        (True, "", "watches secrets, and does not set back"),
        (False, "change", ""),
        (False, "", "writes secrets again, and leaves"),
    ],
)
def test_what_others_have_changed_in_any_child_is_set_back(
    watches: bool, sets_back: str, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial: Any = Keeper(watches=watches, sets_back=sets_back)
    replace_by(trial, monkeypatch, [("configmaps", DATA), ("secrets", DATA)], watches=watches)
    rule = ChangedChild()
    rule.provoke(trial)
    assert rule.left == left
    assert rule.judge_trace(trial).outcome == ("warn" if left else "pass")
    assert [resource for resource, _ in trial.changed] == ["configmaps", "secrets"]


@pytest.mark.parametrize(
    "place", [("pods", DATA), ("configmaps", ("spec", "replicas")), ("configmaps", ("spec", "ports", 0, "port"))]
)
def test_a_child_that_does_not_follow_its_object_is_not_judged(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trial: Any = Keeper(watches=True, sets_back="event")
    trial.config["spec"] = {"replicas": 1, "ports": [{"port": 80}]}  # what autoscalers change, and what is the key of an item
    replace_by(trial, monkeypatch, [place], watches=True)
    with pytest.raises(NotExercised, match="no value of what the client has made follows"):
        ChangedChild().provoke(trial)


@pytest.mark.parametrize(("items", "left"), [(["b"], True), (["a"], False), (["b", "a"], False)])
def test_an_item_that_stands_beside_that_of_others_is_set_back(
    items: list[str], left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = {"metadata": {"uid": "u1"}, "spec": {"mounts": [{"path": one} for one in items]}}
    monkeypatch.setattr(children, "children_of", lambda *arguments: [child])
    run: Any = SimpleNamespace(cluster=None)
    changed = _ChangedValue("pods", "u1", ("spec", "mounts", 0, "path"), "a", "b")
    assert changed.is_left(run, Copy("x", [], [], -1, 0.0)) is left


def replace_by(trial: Keeper, monkeypatch: pytest.MonkeyPatch, places: Any, *, watches: bool) -> None:
    """Lets the rule change and read the objects of a double, where some values follow the title of the object."""
    following = [(0, TITLE, [((resource, "{}-page"), path) for resource, path in places]), (0, SIZE, [])]
    monkeypatch.setattr(ChangedChild, "change_all", lambda rule, run, changes: (run.copies[0], following))
    monkeypatch.setattr(children, "OtherContents", lambda run, kinds: SimpleNamespace(alone=lambda position, value: value))
    monkeypatch.setattr(children, "apply_and_await_quiet", trial.change)
    monkeypatch.setattr(children, "children_of", trial.children)
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


@pytest.mark.parametrize(("verb", "possible"), [("create", True), ("patch", False)])
def test_no_name_is_taken_just_before_an_apply(verb: str, possible: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "creating_writes", lambda baseline: [(verb, "configmaps")])
    reaction = Reaction({Effect(EffectKind.CHILD, "configmaps", "{}-page"): 1})
    baseline: Any = SimpleNamespace(reaction=reaction, controls_children=True)
    with nullcontext() if possible else pytest.raises(NotExercised, match="makes its children by apply"):
        TakenMeanwhile().require(baseline)
