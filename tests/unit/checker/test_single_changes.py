"""Changes that come one by one: what follows them, and what follows only when the client is started again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.alterations import with_value
from fakekube.checker.contents import AMOUNTS, TEXTS, OtherValue
from fakekube.checker.reaction import Copy, Effect, EffectKind, Reaction
from fakekube.checker.rules import single_changes
from fakekube.checker.rules.children import ChangedChild
from fakekube.checker.rules.single_changes import (
    ChangedAlone,
    SameAfterStart,
    UnseenPart,
    _changed_values,
    find_following,
    is_behind,
)
from fakekube.checker.verdict import NotExercised

CHILD = ("deployments.apps", "{}")
IMAGE = OtherValue(TEXTS, ("spec", "image"), "newb", "web:1", "web:1-newb", "web:1-newb-newb2")
REPLICAS = OtherValue(AMOUNTS, ("spec", "replicas"), "newc", 1, 2, 3)
PORT = OtherValue(AMOUNTS, ("spec", "port"), "newd", 1, 2, 3)
FIXED = OtherValue(TEXTS, ("spec", "host"), "newf", "a", "a-newf", "a")
FOLLOWS_IMAGE, FOLLOWS_REPLICAS = ("spec", "containers", 0, "image"), ("spec", "replicas")


def state(image: Any, replicas: Any, generation: int) -> Any:
    return {CHILD: {FOLLOWS_IMAGE: image, FOLLOWS_REPLICAS: replicas, ("status", "observedGeneration"): generation}}


@pytest.mark.parametrize(
    ("values", "following"),
    [
        ([IMAGE, REPLICAS], {("spec", "image"): FOLLOWS_IMAGE, ("spec", "replicas"): FOLLOWS_REPLICAS}),
        ([IMAGE, REPLICAS, PORT], {("spec", "image"): FOLLOWS_IMAGE}),  # which of the numbers it follows is not known
        ([FIXED], {}),
    ],
)
def test_what_follows_a_value_is_told_by_its_mark_or_its_number(values: Any, following: Any) -> None:
    found = find_following([(0, one) for one in values], state("web:1", 1, 1), state("web:1-newb", 2, 2))
    assert {value.path: path for _, value, ((_, path),) in found} == following


@pytest.mark.parametrize(
    ("value", "now", "behind"),
    [
        (IMAGE, "web:1-newb", True),
        (IMAGE, "web:1-newb-newb2", False),
        (IMAGE, None, False),
        (REPLICAS, 2, True),
        (REPLICAS, 3, False),
    ],
)
def test_what_is_as_it_was_after_the_first_change_is_behind(value: OtherValue, now: Any, behind: bool) -> None:
    assert is_behind(value, now) is behind


def test_an_item_of_the_past_is_not_behind() -> None:
    assert is_behind(IMAGE, "web:1-newb", ["web:1", "web:1-newb"])
    assert not is_behind(IMAGE, "web:1-newb", ["web:1", "web:1-newb", "web:1-newb-newb2"])


class Client:
    """A run with a client that writes a Deployment for its object; it looks at all values when one of `handles` has changed.

    Args:
        handles: the names of these values.
        seconds: what each change takes.
    """

    def __init__(self, *handles: str, seconds: float = 0.0) -> None:
        self._handles = handles
        self._seconds = seconds
        self.now = 0.0
        self.spec: Any = {"image": "web:1", "replicas": 1}
        self.child = dict(self.spec)
        self.copies = [self.stimulate()]
        self.reaction_timeout = 1.0
        effects = {Effect(EffectKind.REQUEST, "deployments.apps", "web-{}", ("create",)): 1}
        self.baseline: Any = SimpleNamespace(seconds_to_react=float, uncopied="", reaction=Reaction(effects), poll_seconds=float)
        self.trace = SimpleNamespace(mark=lambda: 0, since=list)
        self.baseline.trial = self

    @staticmethod
    def stimulate() -> Copy:
        return Copy("x7", [{"metadata": {"name": "web-x7"}}], ["shops"], -1, 0.0)

    @staticmethod
    def await_until(condition: Any, timeout: float) -> bool:
        return bool(condition())

    def change(self, trial: Any, copy: Copy, step: Any) -> None:
        """In place of `apply_step`."""
        self.now += self._seconds
        before, self.spec = self.spec, {**self.spec, **step[0]["spec"]}
        if any(before[one] != self.spec[one] for one in self._handles):
            self.child = dict(self.spec)

    def state(self, trial: Any, copy: Copy) -> Any:
        """In place of `state_of`."""
        return state(self.child["image"], self.child["replicas"], 1)


class Values:
    """In place of `OtherContents`."""

    def __init__(self, trial: Any, kinds: Any) -> None:
        assert kinds == (TEXTS, AMOUNTS)

    def values(self) -> list[tuple[int, OtherValue]]:
        return [(0, IMAGE), (0, REPLICAS)]

    def values_only(self) -> Any:
        return [{"spec": {"image": IMAGE.first, "replicas": REPLICAS.first}}]

    def alone(self, position: int, value: OtherValue) -> Any:
        return [with_value({"spec": {value.path[1]: value.first}}, value.path, value.second)]


def replace_by(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the rules change and read the objects of a double, which reacts at once."""
    doubles = {"apply_step": run.change, "apply_and_await_quiet": run.change, "state_of": run.state, "OtherContents": Values}
    for name in ("await_quiet", "await_reactions"):
        doubles[name] = lambda *arguments: None
    for name, double in doubles.items():
        monkeypatch.setattr(single_changes, name, double)


@pytest.mark.parametrize(
    ("handles", "ignored"),
    [
        (("image", "replicas"), ""),
        (("image",), "spec.replicas of deployments.apps for web-x7 does not follow spec.replicas when only that is changed"),
        (("replicas",), "spec.containers.0.image of deployments.apps for web-x7 does not follow spec.image"),
    ],
)
def test_a_client_that_looks_at_one_value_ignores_the_others(
    handles: tuple[str, ...], ignored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Any = Client(*handles)
    replace_by(run, monkeypatch)
    rule = ChangedAlone()
    rule.provoke(run)
    assert rule.ignored.startswith(ignored)
    assert bool(rule.ignored) is bool(ignored)


@pytest.mark.parametrize(("seconds", "changes"), [(1.0, 3), (ChangedAlone.SECONDS, 2)])
def test_a_client_that_never_rests_sees_fewer_changes(seconds: float, changes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run: Any = Client("image", "replicas", seconds=seconds)
    replace_by(run, monkeypatch)
    ChangedAlone().provoke(run)
    assert run.now == changes * seconds  # the first one of all values, and then one value after the other


def test_a_client_that_copies_nothing_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    run: Any = Client()
    replace_by(run, monkeypatch)
    ChangedAlone().require(run.baseline)
    with pytest.raises(NotExercised, match="copies no value"):
        ChangedAlone().provoke(run)
    run.baseline.reaction = Reaction({Effect(EffectKind.CHILD, "deployments.apps", "web-{}"): 1, **run.baseline.reaction.effects})
    for rule in (ChangedAlone(), ChangedChild()):  # what one run has shown starts no other client
        with pytest.raises(NotExercised, match="copies no value"):
            rule.require(run.baseline)


class Counter:
    """A run with a client that counts the people of each town, those of an old town only at its start, unless it is `good`."""

    def __init__(self, *, good: bool, writes: frozenset[int] = frozenset({0})) -> None:
        self._good = good
        self._made: Iterator[str] = iter("abcdefghijklmnopq")
        self.counts: dict[str, int] = {}
        effect = Effect(EffectKind.FIELD, "towns", "town-{}", ("status", "count"))
        sample = SimpleNamespace(stimuli=("town", "person"))
        self.baseline = SimpleNamespace(reaction=SimpleNamespace(effects=[effect]), written=writes, sample=sample, trial=self)
        self.reaction_timeout, self.cluster, self.starts = 1.0, self, 0
        self._late: list[str] = []
        """The towns that a person has left, and that the client has not counted again."""
        self.trace, self.excerpt = SimpleNamespace(mark=lambda: 0, since=list), list
        self.copies = [self.stimulate()]

    def stimulate(self) -> Copy:
        token = next(self._made)
        self.counts[token] = 1
        town = {"metadata": {"name": f"town-{token}"}}
        person = {"metadata": {"name": f"person-{token}", "annotations": {"town": f"town-{token}"}}}
        return Copy(token, [town, person], ["towns", "people"], -1, 0.0)

    def delete(self, resource: str, name: str, namespace: str | None) -> None:
        self._leave(name[-1])

    def change(self, trial: Any, copy: Copy, step: Any) -> None:
        """In place of `apply_step`."""
        assert step[0] == {}
        self.counts[step[1]["metadata"]["annotations"]["town"][-1]] += 1
        self._leave(copy.token)

    def _leave(self, token: str) -> None:
        if self._good:
            self.counts[token] -= 1
        else:
            self._late.append(token)

    def disconnect(self) -> Any:
        return nullcontext()

    def compact(self) -> None:
        """In place of that of a run."""

    converge = compact

    def restart_client(self) -> None:
        self.starts += 1
        for token in self._late:
            self.counts[token] -= 1
        self._late = []

    @staticmethod
    def await_until(condition: Any, timeout: float) -> bool:
        return bool(condition())

    @staticmethod
    def await_reaction(copy: Copy, timeout: Any = None) -> bool:
        return True

    def state(self, trial: Any, copy: Copy) -> Any:
        """In place of `state_of`."""
        return {("towns", "town-{}"): {("status", "count"): self.counts[copy.token]}}


@pytest.mark.parametrize("made", [SameAfterStart, UnseenPart])
@pytest.mark.parametrize(("good", "verdict", "starts"), [(True, "pass", 1), (False, "fail", 2)])
def test_what_a_start_mends_was_missed(
    made: type[SameAfterStart], good: bool, verdict: str, starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Any = Counter(good=good)
    replace_by(run, monkeypatch)
    rule = made()
    rule.provoke(run)
    assert (rule.judge_trace(run).outcome, run.starts) == (verdict, starts)


@pytest.mark.parametrize(
    ("was", "now", "found"),
    [(1, 2, False), (2, 1, True), (False, True, True), ("Pending", "Ready", True), ("2026-11-27T14:00:00Z", None, False)],
)
def test_only_numbers_in_a_status_may_grow_at_a_start(was: Any, now: Any, found: bool) -> None:
    run: Any = Counter(good=True)
    path = ("status", "count")
    states: list[Any] = [{("towns", "town-{}"): {path: value}} for value in (was, now)]
    assert list(_changed_values(run.baseline, *states)) == ([(("towns", "town-{}"), path)] if found else [])
