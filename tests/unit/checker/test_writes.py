"""Which children a client handles for their own sake, and when the names of a deleted copy are free."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker import writes
from fakekube.checker.reaction import Copy, Effect, EffectKind, Reaction
from fakekube.checker.rules.deletions import _is_for_another
from fakekube.checker.trace import LEASES
from fakekube.checker.trial import Trial
from fakekube.checker.verdict import NotExercised
from fakekube.checker.writes import (
    delete_children,
    delete_with_children,
    handled_children,
    is_taken_over,
    refuse_apart,
    require_kinds_of_writes,
    require_no_leftovers,
)
from fakekube.controllers.client import ApiError

TOKEN = "x7"


class Objects:
    """A cluster with the children of one copy."""

    revision = 1

    def __init__(self, **children: Any) -> None:
        self._children = children

    def list(self, resource: str) -> list[Any]:
        return self._children.get(resource, [])

    def get(self, resource: str, name: str, namespace: str | None) -> Any:
        found = next((obj for obj in self.list(resource) if obj["metadata"]["name"] == name), None)
        if found is None:
            raise ApiError({"code": 404, "message": f"{resource} {name} not found in {namespace}"})
        return found


def child(name: str, uid: str, owner: str) -> Any:
    return {"metadata": {"name": f"{name}-{TOKEN}", "uid": uid, "ownerReferences": [{"uid": owner, "controller": True}]}}


def baseline_of(*requests: tuple[str, str], **children: Any) -> Any:
    """A baseline run in which the client made children, and sent other requests: pairs of a verb and a resource."""
    effects = {Effect(EffectKind.CHILD, resource, "*"): len(some) for resource, some in children.items()}
    effects |= {Effect(EffectKind.REQUEST, resource, "*", (verb,)): 1 for verb, resource in requests}
    trial = SimpleNamespace(cluster=Objects(**children), trace=SimpleNamespace(since=list))
    return SimpleNamespace(reaction=Reaction(effects), control=Copy(TOKEN, [], [], -1, 0.0), trial=trial)


@pytest.mark.parametrize(
    ("requests", "handled"),
    [((), {"packages"}), ((("patch", "configmaps"),), {"packages"}), ((("patch", "secrets/status"),), {"packages", "secrets"})],
)
def test_a_child_with_children_or_a_status_is_handled_for_its_own_sake(requests: Any, handled: set[str]) -> None:
    children = {
        "packages": [child("package", "2", "1")],
        "configmaps": [child("label", "3", "2")],
        "secrets": [child("key", "4", "1")],
    }
    assert handled_children(baseline_of(*requests, **children)) == handled


@pytest.mark.parametrize(("owner", "another"), [("1", False), ("2", True), (None, False)])
def test_an_object_for_a_child_is_not_one_for_its_owner(owner: str | None, another: bool) -> None:
    call: Any = SimpleNamespace(body=child("label", "", owner) if owner else {"metadata": {"name": "label"}})
    assert _is_for_another(call, {"1"}) is another


def test_children_of_some_owners_are_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    children = [child("web", "1", "owner"), child("mail", "2", "other"), {"metadata": {"name": "free", "namespace": "n"}}]
    monkeypatch.setattr(writes, "children_of", lambda *_: children)
    deleted: list[str] = []
    trial: Any = SimpleNamespace(cluster=SimpleNamespace(delete=lambda resource, name, **options: deleted.append(name)))
    copy: Any = None
    assert delete_children(trial, copy, "secrets", {"other"}) == len(deleted) == 2
    assert deleted == [f"web-{TOKEN}", "free"]


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        (("spec", "replicas"), True),
        (("metadata", "ownerReferences"), True),
        (("status", "phase"), False),
        (("metadata", "labels", "a"), False),
    ],
)
def test_the_owner_writes_what_an_object_is(path: tuple[str, ...], taken: bool) -> None:
    assert is_taken_over(path) is taken


@pytest.mark.parametrize(
    ("left", "reason"), [("copy", "does not let go of a deleted object"), ("child", "the children of a deleted object stay")]
)
def test_a_copy_is_not_made_again_under_its_name_while_something_of_it_is_left(left: str, reason: str) -> None:
    of_copy = [{"metadata": {"name": f"wheel-{TOKEN}", "uid": "1"}}] if left == "copy" else []
    cluster = Objects(widgets=of_copy, configmaps=[child("config", "2", "1")])
    baseline = SimpleNamespace(reaction=SimpleNamespace(children={"configmaps": 1}), seconds_to_react=lambda least: least)
    trial: Any = SimpleNamespace(
        cluster=cluster,
        baseline=baseline,
        delete=lambda copy: None,
        await_until=lambda condition, seconds: condition(),
        reaction_timeout=lambda since: 1.0,
    )
    made: Any = {"metadata": {"name": f"wheel-{TOKEN}", "uid": "1"}}
    with pytest.raises(NotExercised, match=reason):
        delete_with_children(trial, Copy(TOKEN, [made], ["widgets"], -1, 0.0))


@pytest.mark.parametrize(("deleted", "left", "possible"), [(True, True, False), (True, False, True), (False, True, True)])
def test_names_are_not_free_again_if_the_baseline_run_has_left_children(deleted: bool, left: bool, possible: bool) -> None:
    baseline = baseline_of(configmaps=[child("config", "2", "1")])
    baseline.trial.copies = [Copy(TOKEN if left else "z9", [], [], -1, 0.0, deleted=deleted)]
    with nullcontext() if possible else pytest.raises(NotExercised, match="the children of a deleted object stay"):
        require_no_leftovers(baseline)


def test_a_reaction_that_is_missing_before_the_provocation_is_no_failure() -> None:
    trial: Any = SimpleNamespace(await_reaction=lambda copy: False)
    with pytest.raises(NotExercised, match="did not react to another copy, before anything was provoked"):
        Trial.require_reaction(trial, Copy(TOKEN, [], [], -1, 0.0), "another copy")


def sends(verb: str, resource: str, name: str = "web-{}") -> Effect:
    return Effect(EffectKind.REQUEST, resource, name, (verb,))


def test_kinds_of_writes_are_those_for_one_copy_alone() -> None:
    kinds = [sends("create", "configmaps"), sends("create", "configmaps", "web-{}-more"), sends("patch", "sites/status")]
    others = [
        sends("get", "configmaps"),
        sends("create", "events", "*"),
        sends("update", LEASES),
        sends("patch", "configmaps", "summary"),
    ]
    assert require_kinds_of_writes(Reaction(dict.fromkeys([*kinds, *others], 1))) == kinds
    with pytest.raises(NotExercised, match="two kinds of writes"):
        require_kinds_of_writes(Reaction(dict.fromkeys([*kinds[:1], *others], 1)))


class Faults:
    """The faults of a run, which are asked for each write."""

    def __init__(self) -> None:
        self._armed: dict[tuple[str, str, str | None], Callable[[Any], Any]] = {}

    def on(self, verb: str, resource: str, *, name: str | None) -> Any:
        return SimpleNamespace(intercept=lambda refuse, label: self._arm((verb, resource, name), refuse))

    @contextmanager
    def _arm(self, key: tuple[str, str, str | None], refuse: Callable[[Any], Any]) -> Iterator[None]:
        self._armed[key] = refuse
        yield
        del self._armed[key]

    def is_refused(self, verb: str, resource: str, name: str, body: str = "") -> bool:
        exchange = SimpleNamespace(path=f"/{resource}/{name}", raw_body=body.encode())
        fitting = [refuse for key, refuse in self._armed.items() if key[:2] == (verb, resource) and key[2] in (None, name)]
        return any(refuse(exchange) is not None for refuse in fitting)


def test_one_kind_of_write_for_each_copy_is_refused_and_no_other() -> None:
    faults = Faults()
    run: Any = SimpleNamespace(faults=faults)
    with refuse_apart(run, {"x1": sends("create", "configmaps"), "x2": sends("create", "secrets", "*")}) as met:
        assert not faults.is_refused("patch", "configmaps", "web-x1")
        assert not faults.is_refused("create", "configmaps", "web-x2")
        assert not faults.is_refused("create", "configmaps", "web-x1", "about x2, too")
        assert not met
        assert faults.is_refused("create", "configmaps", "web-x1")
        assert faults.is_refused("create", "secrets", "", "for x2")
        assert met == {"x1", "x2"}
    assert not faults.is_refused("create", "configmaps", "web-x1")
