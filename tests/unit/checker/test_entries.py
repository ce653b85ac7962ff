"""Entries that are added to the maps and lists of an object, and removed again."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import fakekube
from fakekube.checker.alterations import at_path, changes_between, containers_of
from fakekube.checker.contents import _other_entries
from fakekube.checker.rules.entries import RemovedEntries
from tests.unit.checker.reflector import reflector
from tests.unit.checker.test_check import FAST, Patience

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakekube.checker import Report


@dataclass(frozen=True)
class Check:
    """Checks a client, which reacts at once, by this provocation, of which a failure is not confirmed.

    What the bad client does not do is awaited for 3 s and not for 17, which `test_waits` tests.
    """

    defect: str

    def __call__(self) -> Report:
        timeout = Patience.until("running it again to confirm")
        with pytest.MonkeyPatch.context() as patch:
            if self.defect == "S3":
                patch.setattr(RemovedEntries, "provoke", _provoke_in_short)
            return fakekube.check(reflector(self.defect), again="S3/removed", timeout=timeout, progress=timeout.hear, **FAST)


def _provoke_in_short(rule: RemovedEntries, trial: Any, provoke: Callable[..., None] = RemovedEntries.provoke) -> None:
    trial.reaction_timeout = lambda _since: 3.0 * trial.session.slowness()
    provoke(rule, trial)


@pytest.mark.parametrize(
    ("awaited", "verdict", "evidence"),
    [
        (Check(""), "pass", ""),
        (Check("S3"), "fail", "metadata.annotations.seen of configmaps for sample-"),
        (Check("same"), "not exercised", "nothing that the client writes follows another entry"),
    ],
    indirect=["awaited"],
    ids=["good", "bad", "same"],
)
def test_what_an_entry_has_brought_goes_with_it(awaited: Report, verdict: str, evidence: str) -> None:
    assert awaited["S3"].verdict == verdict
    assert evidence in "".join(awaited["S3"].evidence[:1])


@pytest.mark.parametrize(
    ("kind", "content", "path", "entries"),
    [
        ("ConfigMap", {"data": {"a": "x", "b": "y"}}, ("data",), [("b2", "y-new")]),
        ("Secret", {"data": {"a": "eA=="}}, ("data",), [("a2", "bmV3")]),
        ("Tier", {"spec": {"ports": [80, 90]}}, ("spec", "ports"), [(None, 91), (None, 89)]),
        (
            "Tier",
            {"spec": {"parts": [{"name": "a", "size": 1}]}},
            ("spec", "parts"),
            [(None, {"name": "a-new", "size": 2}), (None, {"name": "a", "size": 1})],
        ),
        ("Tier", {"spec": {"on": {"a": True}}}, ("spec", "on"), [("a2", False)]),
        ("Tier", {"spec": {"gone": {"a": None}}}, ("spec", "gone"), []),
    ],
)
def test_another_entry_is_like_the_last_one(kind: str, content: Any, path: Any, entries: list[Any]) -> None:
    obj = {"kind": kind, **content}
    found = _other_entries(obj, path, "new")
    assert [(one.key, one.value) for one in found] == entries
    for one in found:
        assert len(at_path(one.add_to(obj), path)) == len(at_path(obj, path)) + 1


def test_the_spec_itself_gets_no_other_field() -> None:
    obj = {"kind": "Tier", "spec": {"env": {"a": "x"}, "ports": [{"names": ["b"]}], "none": {}}, "status": {"c": {"d": 1}}}
    assert list(containers_of(obj)) == [("spec", "env"), ("spec", "ports"), ("spec", "ports", 0), ("spec", "ports", 0, "names")]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ({"data": {"a": "x"}}, {"data": {"a": "x", "b": "y"}}, {"data": {"b": "y"}}),
        ({"data": {"a": "x", "b": "y"}}, {"data": {"a": "x"}}, {"data": {"b": None}}),
        ({"spec": {"list": [1], "same": {"c": 1}}}, {"spec": {"list": [1, 2], "same": {"c": 1}}}, {"spec": {"list": [1, 2]}}),
        ({"data": {}}, {"data": {}}, {}),
    ],
)
def test_the_changes_between_two_objects_are_a_merge_patch(old: Any, new: Any, change: Any) -> None:
    assert changes_between(old, new) == change


@pytest.mark.parametrize(
    ("left", "verdict"),
    [
        (None, "pass"),
        ((("configmaps", "{}-copy"), ("data", "b2")), "fail"),
        ((("configmaps", "{}-b2"), ()), "warn"),  # a client may keep whole objects on purpose
        ((("configmaps", "*"), ("kind",)), "warn"),  # one of several with generated names
    ],
)
def test_a_whole_object_that_stays_is_only_suspicious(left: Any, verdict: str) -> None:
    rule = RemovedEntries()
    rule.left = left
    run: Any = SimpleNamespace(excerpt=list)
    assert rule.judge_trace(run).outcome == verdict
