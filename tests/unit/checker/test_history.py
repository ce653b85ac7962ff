"""What must not depend on the history of an object, and failures that are forgotten when work has succeeded."""

from __future__ import annotations

import copy
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.apimachinery.patch.merge_patch import apply_merge_patch
from fakekube.checker import comparison
from fakekube.checker.comparison import Compared, _normal, _put
from fakekube.checker.contents import metadata_change, undo_of
from fakekube.checker.reaction import Copy, Effect, EffectKind, leaves_of
from fakekube.checker.rules import history
from fakekube.checker.rules.history import ChangedBack
from fakekube.checker.rules.outages import ForgottenFailures
from fakekube.checker.verdict import NotExercised
from fakekube.controllers.client import ApiError

CHILD = ("secrets", "{}-copy")
OTHER = ("services", "{}-copy")
#: The values of a child by the name of what changes, before and after.
BEFORE = {("data", "text"): "hello", ("metadata", "labels", "team"): "green"}
AFTER = {("data", "text"): "hello-x", ("metadata", "labels", "team"): "green-x"}
#: In place of the run, and of copies: the client writes no field of an object.
NOTHING_WRITTEN = SimpleNamespace(baseline=SimpleNamespace(reaction=SimpleNamespace(effects=(), children={})))
STATUS = Effect(EffectKind.FIELD, *CHILD, ("status", "phase"))
#: The same, of a client that writes a status.
STATUS_WRITTEN = SimpleNamespace(baseline=SimpleNamespace(reaction=SimpleNamespace(effects=(STATUS,), children={})))


def compared(monkeypatch: pytest.MonkeyPatch, now: Any, *, wanted: Any = None, other: Any = None) -> Compared:
    """The effects of a changed object, where they are those of `BEFORE` and should be those of `AFTER`."""
    wanted = {CHILD: AFTER} if wanted is None else wanted
    before = dict.fromkeys(wanted, BEFORE)
    states = iter([before, now, wanted, wanted if other is None else other])
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    known: Any = NOTHING_WRITTEN
    return Compared(known, known, [known, known], known)


def test_a_value_that_is_still_that_of_before_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(monkeypatch, {CHILD: {**AFTER, ("metadata", "labels", "team"): "green"}})
    assert found.stale() == [(CHILD, ("metadata", "labels", "team"))]
    assert found.find_followers() == {CHILD}


def test_an_object_without_what_is_new_in_others_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    label = ("metadata", "labels", "added")
    found = compared(monkeypatch, {CHILD: AFTER}, wanted={CHILD: {**AFTER, label: "x"}})
    assert found.stale() == [(CHILD, label)]


@pytest.mark.parametrize(
    ("now", "other"),
    [
        (AFTER, None),
        ({**AFTER, ("data", "text"): "something else"}, None),
        ({**AFTER, ("data", "text"): "hello"}, {CHILD: {**AFTER, ("data", "text"): "at random"}}),  # equal objects differ
    ],
)
def test_what_follows_and_what_differs_between_equal_objects_is_not_stale(
    now: Any, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compared(monkeypatch, {CHILD: now}, other=other).stale() == []


def test_times_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    at = ("status", "since")
    assert compared(monkeypatch, {CHILD: BEFORE}, wanted={CHILD: {**BEFORE, at: "2026-11-27T00:00:01Z"}}).stale() == []


@pytest.mark.parametrize(
    ("place", "now", "stale"),
    [
        ("data", "big red small", True),  # the old word stays beside the new one
        ("data", "big,red,small", True),
        ("data", "big red", False),
        ("data", "big", False),
        ("status", "big red small", False),  # which may tell what was before
    ],
)
def test_words_that_stay_beside_the_new_ones_are_stale(
    place: str, now: str, stale: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = (place, "sizes")
    states = iter([{CHILD: {path: "big small"}}, {CHILD: {path: now}}, {CHILD: {path: "big red"}}, {CHILD: {path: "big red"}}])
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    known: Any = NOTHING_WRITTEN
    assert Compared(known, known, [known, known], known).stale() == ([(CHILD, path)] if stale else [])


def test_what_others_do_not_have_any_more_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ("data", "colour")
    before = {**BEFORE, gone: "yes", ("spec", "nodeName"): "node-0"}
    states = iter([{CHILD: before}, {CHILD: {**AFTER, gone: "yes"}}, {CHILD: AFTER}, {CHILD: AFTER}])
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    known: Any = NOTHING_WRITTEN
    assert Compared(known, known, [known, known], known).stale() == [(CHILD, gone)]


@pytest.mark.parametrize(("counted", "stale"), [(2, []), (0, [(CHILD, ("data", "done"))])])
def test_what_repeats_the_status_of_the_changed_object_is_in_step(
    counted: int, stale: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, done = ("jobs.batch", "{}"), ("data", "done")
    run = {CHILD: {done: "2"}, job: {("status", "succeeded"): 2}}
    changed = {CHILD: {done: "2"}, job: {("status", "succeeded"): counted}}
    new = {CHILD: {done: "0"}, job: {}}
    states = iter([run, changed, new, new])
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    known: Any = NOTHING_WRITTEN
    assert Compared(known, known, [known, known], known).stale() == stale


def test_an_object_that_only_others_have_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    third = ("configmaps", "{}-2")
    more = {CHILD: AFTER, third: BEFORE}
    states = iter([{CHILD: BEFORE}, {CHILD: AFTER}, more, more])
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    known: Any = NOTHING_WRITTEN
    found = Compared(known, known, [known, known], known)
    assert found.stale() == [(third, ())]
    assert found.can_change(known, third, ())


def test_objects_that_nobody_else_has_are_left_over_but_volumes(monkeypatch: pytest.MonkeyPatch) -> None:
    third, volume = ("configmaps", "{}-2"), ("persistentvolumeclaims", "{}-2")
    more = {CHILD: BEFORE, third: BEFORE, volume: BEFORE}
    states = iter([more, more, {CHILD: BEFORE}, {CHILD: BEFORE}])
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    known: Any = NOTHING_WRITTEN
    assert Compared(known, known, [known, known], known).find_leftovers() == {third}


@pytest.mark.parametrize(
    ("path", "now", "differs"),
    [
        (("data", "text"), "hello", False),
        (("data", "text"), "hello-x", True),
        (("status", "count"), 7, False),  # it may count
    ],
)
def test_a_number_in_a_status_may_only_grow(path: Any, now: Any, differs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {CHILD: {**BEFORE, ("status", "count"): 3}}
    states = iter([{CHILD: AFTER}, {CHILD: {path: now}}, plain, plain])
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    known: Any = NOTHING_WRITTEN
    assert Compared(known, known, [known, known], known).differs(CHILD, path) is differs


class Writer:
    """A run with a client that writes when the object is changed.

    Args:
        refused: a change that the API refuses.
    """

    def __init__(self, refused: str = "") -> None:
        self._refused = refused
        self.accepted: list[str] = []
        """The changes in their order, and when the client has written."""
        self.client = threading.Thread(target=self._write)
        self.faults = SimpleNamespace(on=lambda verb, resource: self)
        self.cluster = self
        effect = Effect(EffectKind.REQUEST, "configmaps", "motd-{}", ("update",))
        self.baseline = SimpleNamespace(
            reaction=SimpleNamespace(effects=[effect]),
            trial=SimpleNamespace(trace=SimpleNamespace(since=list)),
            seconds_to_react=lambda least: least,
        )

    def intercept(self, function: Any, label: str) -> Any:
        self._function = function
        return nullcontext()

    def patch(self, resource: str, name: str, change: Any, namespace: str | None) -> None:
        if change == self._refused:
            raise ApiError({"code": 422, "message": "it may only grow"})
        self.accepted.append(change)
        if change == "further":
            self.client.start()

    @staticmethod
    def get(resource: str, name: str, namespace: str | None) -> Any:
        return {"metadata": {"name": name}}

    def _write(self) -> None:
        self._function(SimpleNamespace(path="/configmaps/motd-x7", raw_body=b""))
        self.accepted.append("written")

    @staticmethod
    def await_until(condition: Any, seconds: float) -> None:
        while not condition():
            time.sleep(0.001)

    def change_back(self) -> None:
        made: Any = {"metadata": {"name": "motd-x7"}}
        changes: Any = SimpleNamespace(further=lambda: ["further"], back=lambda: ["back"])
        run: Any = self
        try:
            ChangedBack()._change_back(run, Copy("x7", [made], ["configmaps"], -1, 0.0), changes)
        finally:
            self.client.join()


def with_conditions(**conditions: str) -> Any:
    """The values of an object whose status has conditions."""
    listed = [{"type": kind, "status": value} for kind, value in conditions.items()]
    return {CHILD: dict(leaves_of({"status": {"conditions": listed}}))}


@pytest.mark.parametrize(
    ("now", "stale"),
    [
        ({"Public": "False", "Ready": "True"}, False),
        ({"Ready": "True", "Public": "False"}, False),
        ({"Public": "False", "Ready": "False"}, True),
    ],
)
def test_conditions_are_compared_by_their_types(now: Any, stale: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = with_conditions(Ready="True")
    states = iter([with_conditions(Public="True", Ready="False"), with_conditions(**now), fresh, fresh])
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    known: Any = STATUS_WRITTEN
    found = Compared(known, known, [known, known], known)
    assert bool(found.stale()) is stale
    assert not found.differs(CHILD, ("status", "conditions", "Public", "status"))


@pytest.mark.parametrize(
    ("now", "stale"),
    [
        ({"main": "web:2", "side": "proxy:1"}, []),
        ({"side": "proxy:1", "main": "web:2"}, []),
        ({"side": "proxy:1", "main": "web:1"}, [(CHILD, ("spec", "containers", "main", "image"))]),
    ],
)
def test_items_with_names_may_have_any_order(now: Any, stale: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def child(images: Any) -> Any:
        containers = [{"name": name, "image": image} for name, image in images.items()]
        return {CHILD: dict(leaves_of({"spec": {"containers": containers}}))}

    before, wanted = {"main": "web:1", "side": "proxy:1"}, {"main": "web:2", "side": "proxy:1"}
    states = iter(map(child, (before, now, wanted, wanted)))
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    known: Any = NOTHING_WRITTEN
    assert Compared(known, known, [known, known], known).stale() == stale


@pytest.mark.parametrize(("images", "stale"), [(["one", "two"], False), (["two", "one"], False), (["one", "three"], True)])
def test_a_list_in_a_status_may_contain_the_past(images: list[str], stale: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    past = [
        {CHILD: dict(leaves_of({"status": {"history": [{"image": image} for image in one]}}))}
        for one in (["one"], images, ["two"], ["two"])
    ]
    states = iter(past)
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    known: Any = STATUS_WRITTEN
    assert bool(Compared(known, known, [known, known], known).stale()) is stale


@pytest.mark.parametrize("sent", [["image"], ["image", "imagePullPolicy"]])
def test_what_the_api_sets_by_default_is_not_compared(sent: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def child(image: str, policy: str) -> Any:
        return {"spec": {"containers": [{"name": "main", "image": image, "imagePullPolicy": policy}]}}

    created = {"spec": {"containers": [dict.fromkeys(sent, "x")]}}
    old, new = child("web", "Always"), child("web:1", "IfNotPresent")
    states = iter([{CHILD: dict(leaves_of(one))} for one in (old, child("web:1", "Always"), new, new)])
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    baseline = SimpleNamespace(reaction=SimpleNamespace(effects=(), children={CHILD[0]: 1}))
    calls = [
        SimpleNamespace(status=201, resource=CHILD[0], body=created),
        SimpleNamespace(status=200, resource=CHILD[0], body=new),
    ]
    known: Any = SimpleNamespace(baseline=baseline, trace=SimpleNamespace(since=lambda: calls))
    stale = [path[-1] for _, path in Compared(known, known, [known, known], known).stale()]
    assert stale == ["imagePullPolicy"] * (len(sent) - 1)


def test_a_status_of_others_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter(with_conditions(Progressing=why) for why in ("new", "new", "updated", "updated"))
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: next(states))
    known: Any = NOTHING_WRITTEN
    found = Compared(known, known, [known, known], known)
    assert not found.stale()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write is held up until the object has changed back, however long that takes, and no longer."""
    monkeypatch.setattr(ChangedBack, "HELD", 60.0)
    monkeypatch.setattr(history, "time", SimpleNamespace(sleep=lambda seconds: None))


@pytest.mark.usefixtures("patient")
def test_an_object_changes_back_while_a_write_of_the_client_is_under_way() -> None:
    run = Writer()
    run.change_back()
    assert run.accepted == ["further", "back", "written"]


@pytest.mark.usefixtures("patient")
def test_a_change_back_that_the_api_refuses_is_not_judged() -> None:
    with pytest.raises(NotExercised, match="it may only grow"):
        Writer(refused="back").change_back()


def test_labels_and_annotations_are_changed_back() -> None:
    obj = {"metadata": {"labels": {"team": "green"}}}
    change = metadata_change(obj, "x7", "")
    assert apply_merge_patch(apply_merge_patch(obj, change), undo_of(obj, change)) == {
        "metadata": {"labels": {"team": "green"}, "annotations": {}}
    }


def test_what_only_other_objects_follow_is_seen_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(monkeypatch, {CHILD: AFTER, OTHER: BEFORE}, wanted={CHILD: AFTER, OTHER: AFTER})
    assert {place for place, _ in found.stale()} == {OTHER}
    assert found.find_followers() == {CHILD}


def test_labels_that_are_selected_keep_their_values() -> None:
    obj = {"metadata": {"labels": {"mirror": "yes", "team": "green"}, "annotations": {"note": "first"}}}
    change = metadata_change(obj, "x7", "mirror=yes,!old")["metadata"]
    assert change["labels"] == {"team": "green-x7", "check.fakekube.dev/added": "x7"}
    assert change["annotations"] == {"note": "first-x7", "check.fakekube.dev/added": "x7"}


def test_the_token_of_a_copy_is_no_difference() -> None:
    assert _normal("motd-k2x9", "k2x9") == _normal("motd-b7c8", "b7c8") == "motd-{}"
    assert _normal("bW90ZC1rMng5", "k2x9") == "motd-{}"
    assert _normal(7, "k2x9") == 7


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("spec", "items", 0, "text"), {"spec": {"items": [{"name": "item-x7", "text": "new"}]}}),
        (("spec", "items", 1, "text"), None),  # the list is shorter
        (("spec", "other", "text"), None),
        (("spec", "items", "item-{}", "text"), {"spec": {"items": [{"name": "item-x7", "text": "new"}]}}),
        (("spec", "items", "other", "text"), None),
        (("spec", "items", 0), None),  # a list of strings, there
        (("spec", "words", 0), {"spec": {"words": ["new"]}}),
        (("spec", "words", 1), {"spec": {"words": ["old", "new"]}}),
        (("spec", "words", 2), None),
    ],
)
def test_a_value_is_put_where_its_place_exists(path: Any, expected: Any) -> None:
    obj: Any = {"spec": {"words": ["old"]}} if path[1] == "words" else {"spec": {"items": [{"name": "item-x7", "text": "old"}]}}
    before = copy.deepcopy(obj)
    assert _put(obj, path, "new", "x7") is (expected is not None)
    assert obj == (expected or before)


def test_the_status_of_a_child_is_of_other_controllers(monkeypatch: pytest.MonkeyPatch) -> None:
    job = {"metadata": {"name": "run-x"}, "spec": {"parallelism": 2}, "status": {"failed": 1}}
    monkeypatch.setattr(comparison, "children_of", lambda *arguments: [job])
    monkeypatch.setattr(comparison, "own_objects", lambda *arguments: [])
    trial: Any = SimpleNamespace(cluster=None, baseline=SimpleNamespace(reaction=SimpleNamespace(children=["jobs"])))
    found = comparison.state_of(trial, Copy("x", [], [], -1, 0.0))
    assert found == {("jobs", "run-{}"): {("spec", "parallelism"): 2}}


class Immutable:
    """A cluster with a Job, whose template the API does not let anybody change."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def call(self, verb: str, path: str, body: Any, query: Any) -> None:
        self.asked.append(body["spec"])
        raise ApiError({"code": 422, "message": "field is immutable"})


@pytest.mark.parametrize(
    ("path", "wanted", "asked"),
    [
        (("spec", "command", 1), ["sh", "new"], {"command": ["sh", "new"], "env": [{"name": "a"}]}),
        (("spec", "env", 0, "name"), ["sh", "old"], {"command": ["sh", "old"], "env": []}),  # the whole item goes
    ],
)
def test_what_the_api_lets_nobody_change_is_not_judged(
    path: Any, wanted: list[str], asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {"metadata": {"name": "run-x"}, "spec": {"command": ["sh", "old"], "env": [{"name": "a"}]}}
    fresh = {("jobs", "run-{}"): {**dict(leaves_of({"spec": {"command": wanted}})), ("spec", "env", "kept"): ""}}
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: fresh)
    monkeypatch.setattr(comparison, "children_of", lambda *arguments: [job])
    monkeypatch.setattr(comparison, "collection_of", lambda *arguments: "/jobs")
    changed, cluster = Copy("x", [], [], -1, 0.0), Immutable()
    trial: Any = SimpleNamespace(cluster=cluster, baseline=NOTHING_WRITTEN.baseline)
    assert not Compared(trial, changed, [changed, changed], changed).can_change(trial, ("jobs", "run-{}"), path)
    assert cluster.asked == [asked]


@pytest.mark.parametrize(
    ("rounds", "broken"),
    [
        ([(0.2, 0.4), (0.8, 1.6), (3.2, 6.4)], True),
        ([(0.01, 0.01), (0.02, 0.04), (0.08, 0.16), (0.3, 0.6), (1.2, 2.4)], True),
        ([(0.25, 0.5), (1.1, 2.0), (2.1, 1.9)], True),  # at most two seconds
        ([(0.2, 0.4), (0.2, 0.4), (0.25, 0.4)], False),
        ([(0.01, 0.01), (0.02, 0.02), (0.04, 0.03), (0.06, 0.05), (0.07, 0.09)], False),  # on a busy machine
        ([(0.5, 1.4), (0.9, 0.3), (0.8, 1.9)], False),  # at random up to a growing length
        ([(0.2, 0.4), (1.0, 2.0)], False),
    ],
)
def test_failures_are_not_forgotten_if_the_first_pause_of_each_round_grows(rounds: Any, broken: bool) -> None:
    rule = ForgottenFailures()
    rule.rounds = rounds
    rule.subjects = lambda trial: ()  # type: ignore[method-assign]
    run: Any = SimpleNamespace(copies=[SimpleNamespace(names=lambda: ["motd"])], excerpt=list)
    assert (str(rule.judge_trace(run).outcome) == "fail") is broken
