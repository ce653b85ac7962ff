"""Switches that decide whether something exists: changed alone, and changed back (S3, C5)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from fakekube.apimachinery.patch.merge_patch import apply_merge_patch
from fakekube.checker import comparison
from fakekube.checker.contents import SWITCHES, TEXTS, ZEROS, OtherValue
from fakekube.checker.reaction import Copy, Effect, EffectKind
from fakekube.checker.rules import switches
from fakekube.checker.rules.switches import ReplacedBeforeSwitch, Switched, Unset, find_switches
from fakekube.checker.verdict import NotExercised

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE, SERVICE, WEB = ("configmaps", "{}-page"), ("services", "{}"), ("sites", "web-{}")
SECRET = ("secrets", "{}-key")
PUBLIC = OtherValue(SWITCHES, ("spec", "public"), "newb", True, False, True)
PAUSED = OtherValue(SWITCHES, ("spec", "paused"), "newc", False, True, False)
SIZE = OtherValue(ZEROS, ("spec", "size"), "newd", 3, 0, 3)


def wanted(spec: Any) -> Any:
    """Returns what a client makes of an object."""
    made = {PAGE: {("data", "public"): str(spec["public"]), ("data", "title"): "hello"}}
    return {**made, SERVICE: {("spec", "port"): 80}} if spec["public"] else made


def follow(was: Any, spec: Any) -> Any:
    return wanted(spec)


def keep_service(was: Any, spec: Any) -> Any:
    return {**was, **wanted(spec)}


def keep_data(was: Any, spec: Any) -> Any:
    return {place: was.get(place, values) for place, values in wanted(spec).items()}


def make_once(was: Any, spec: Any) -> Any:
    return {place: values for place, values in wanted(spec).items() if place in was}


def run_once(was: Any, spec: Any) -> Any:
    """A client whose child nobody may change, and that says so in the status of the object."""
    return was


class Run:
    """A run with a client that reacts at once: `again` returns what there is after a change, of what there was and the spec."""

    def __init__(self, again: Callable[[Any, Any], Any], *values: OtherValue) -> None:
        self._again, self.values = again, values
        self.provoked_at, self.reaction_timeout, self.excerpt = 0, 1.0, list
        reaction = SimpleNamespace(effects=(), children={"configmaps": 1, "services": 1, "secrets": 1})
        self.baseline = SimpleNamespace(reaction=reaction, streams={"children": "configmaps"}, delivering=())
        sent = SimpleNamespace(status=201, resource="configmaps", body={"spec": {"replicas": 1, "command": [""]}})
        self.trace = SimpleNamespace(mark=lambda: 0, since=lambda: [sent])
        self.states: dict[str, Any] = {}
        self.copies = [self.stimulate()]

    def stimulate(self, change: Any = None, *, token: str = "", only: Any = None) -> Copy:
        token = token or f"x{len(self.states)}"
        obj: Any = {"metadata": {"name": f"web-{token}"}, "spec": {"public": True, "size": 3, "host": "a"}}
        if change is not None:
            change(obj)
        self.states[token] = wanted(obj["spec"])
        return Copy(token, [obj], ["sites"], -1, 0.0)

    def missing_of(self, copy: Copy) -> list[Effect]:
        return [one for one in self.baseline.reaction.effects if (one.resource, one.name) not in self.states[copy.token]]

    @staticmethod
    def await_until(condition: Any, timeout: float) -> bool:
        return bool(condition())

    def change(self, trial: Any, copy: Copy, step: Any) -> None:
        """In place of `apply_step`."""
        spec = apply_merge_patch(copy.objects[0]["spec"], step[0]["spec"])
        self.states[copy.token] = self._again(self.states[copy.token], spec)


def replace_by(run: Run, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets the rules change and read the objects of a double."""
    contents = SimpleNamespace(values=lambda: [(0, one) for one in run.values])
    monkeypatch.setattr(switches, "OtherContents", lambda trial, kinds: contents)
    monkeypatch.setattr(switches, "apply_step", run.change)
    monkeypatch.setattr(comparison, "state_of", lambda trial, copy: run.states[copy.token])
    monkeypatch.setattr(comparison.Compared, "can_change", lambda *arguments: True)
    for name in ("await_quiet", "await_reactions"):
        monkeypatch.setattr(switches, name, lambda *arguments: None)
    return run


@pytest.mark.parametrize(
    ("again", "outcome", "evidence"),
    [
        (follow, "pass", ""),
        (keep_service, "warn", "services x4 for web-x4 stays when spec.public was changed"),
        (keep_data, "warn", "data.public of configmaps for web-x4 is as before when spec.public was changed"),
        (make_once, "fail", "services x4 for web-x4 is not made when spec.public was changed, and changed back"),
    ],
)
def test_what_a_switch_decides_follows_it_both_ways(
    again: Any, outcome: str, evidence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule, trial = Switched(), replace_by(Run(again, PUBLIC), monkeypatch)
    rule.provoke(trial)
    verdict = rule.judge_trace(trial)
    assert verdict.outcome == outcome
    assert "".join(verdict.evidence[:1]).startswith(evidence)


def test_a_child_that_nobody_watches_may_be_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rule, trial = Switched(), replace_by(Run(keep_data, PUBLIC), monkeypatch)
    trial.baseline.streams = {"objects": "sites"}
    rule.provoke(trial)
    assert rule.judge_trace(trial).outcome == "pass"


def test_data_that_nobody_can_make_again_may_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter("abcdefgh")

    def make(spec: Any) -> Any:
        secret = {SECRET: {("data", "password"): next(made)}} if spec["public"] else {}
        return {PAGE: {("data", "public"): str(spec["public"])}, **secret}

    monkeypatch.setitem(globals(), "wanted", make)
    rule, trial = Switched(), replace_by(Run(keep_service, PUBLIC), monkeypatch)
    rule.provoke(trial)
    assert rule.judge_trace(trial).outcome == "pass"


def made_with(spec: Any) -> Any:
    """What a client makes of an object, with its host as far as it has one."""
    return {PAGE: {("data", "title"): "hello", **({("data", "host"): spec["host"]} if "host" in spec else {})}}


@pytest.mark.parametrize(
    ("again", "outcome", "evidence"),
    [
        (lambda was, spec: made_with(spec), "pass", ""),
        (
            lambda was, spec: {PAGE: {**was[PAGE], **made_with(spec)[PAGE]}},
            "warn",
            "data.host of configmaps for web-x4 is as before when spec.host was removed",
        ),
        (
            lambda was, spec: {PAGE: {path: value for path, value in made_with(spec)[PAGE].items() if path in was[PAGE]}},
            "warn",
            "data.host of configmaps for web-x4 is as before when spec.host was removed, and set again",
        ),
    ],
)
def test_what_an_optional_field_has_brought_goes_with_it(
    again: Any, outcome: str, evidence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "wanted", made_with)
    monkeypatch.setattr(switches, "find_optional", lambda trial: iter([(0, ("spec", "host"), "a"), (0, ("spec", "paused"), 1)]))
    rule, trial = Unset(), replace_by(Run(again), monkeypatch)
    trial.baseline.reaction.effects = [Effect(EffectKind.CHILD, *PAGE)]
    rule.provoke(trial)
    verdict = rule.judge_trace(trial)
    assert verdict.outcome == outcome
    assert "".join(verdict.evidence[:1]).startswith(evidence)


def needs_host(spec: Any) -> Any:
    """What a client makes of an object that has to have a host."""
    return made_with(spec) if "host" in spec else {}


def replicas_with(spec: Any) -> Any:
    """What a client makes of an object, with a number of replicas that is 1 where it says none."""
    size = 3 if "host" in spec else 1
    return {PAGE: {("spec", "replicas"): size}, WEB: {("status", "replicas"): size}}


@pytest.mark.parametrize("made", [needs_host, replicas_with])
def test_a_client_may_leave_what_it_lacks_a_field_for(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "wanted", made)
    monkeypatch.setattr(switches, "find_optional", lambda trial: iter([(0, ("spec", "host"), "a")]))
    trial = replace_by(Run(run_once), monkeypatch)
    effects = [Effect(EffectKind.CHILD, *PAGE), Effect(EffectKind.FIELD, *WEB, ("status", "replicas"))]
    trial.baseline.reaction.effects = effects
    with pytest.raises(NotExercised, match="follows a switch"):
        Unset().provoke(trial)


def test_a_sample_without_optional_fields_has_none_to_remove(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switches, "find_optional", lambda trial: iter(()))
    with pytest.raises(NotExercised, match="lets anybody leave out"):
        Unset().provoke(replace_by(Run(follow), monkeypatch))


def test_a_status_may_say_what_nobody_can_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(spec: Any) -> Any:
        return {PAGE: {("spec", "command", 0): str(spec["public"])}, WEB: {("status", "phase"): str(spec["public"])}}

    monkeypatch.setitem(globals(), "wanted", make)
    trial = replace_by(Run(run_once, PUBLIC), monkeypatch)
    trial.baseline.reaction.effects = [Effect(EffectKind.FIELD, *WEB, ("status", "phase"))]
    monkeypatch.setattr(comparison.Compared, "can_change", lambda self, trial, place, path: place != PAGE)
    with pytest.raises(NotExercised, match="follows a switch"):
        Switched().provoke(trial)


def test_a_switch_that_decides_nothing_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotExercised, match="follows a switch"):
        Switched().provoke(replace_by(Run(follow, SIZE), monkeypatch))


def test_what_pauses_a_client_is_no_switch_and_booleans_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = replace_by(Run(follow, SIZE, PAUSED, PUBLIC), monkeypatch)
    assert [one.value for one in find_switches(trial)] == [PUBLIC, SIZE]
    with pytest.raises(NotExercised, match="no boolean, choice or number"):
        find_switches(replace_by(Run(follow, PAUSED), monkeypatch))


def test_a_child_may_be_replaced_when_any_value_of_its_owner_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    text = OtherValue(TEXTS, ("spec", "size"), "newe", "3", "3-newe", "3")
    trial = replace_by(Run(follow, text, SIZE, PUBLIC), monkeypatch)
    trial.baseline.reaction.children = {"secrets": 1}
    changed: list[Any] = []
    monkeypatch.setattr(switches, "apply_step", lambda trial, copy, step: changed.append(step))
    monkeypatch.setattr(switches, "replace_before_deletes", lambda trial, resources: [])
    ReplacedBeforeSwitch().provoke(trial)
    assert [change["spec"] for (change,) in changed] == [{"public": False}, {"size": 0}, {"size": "3-newe"}]
    with pytest.raises(NotExercised, match="anybody change"):
        ReplacedBeforeSwitch().provoke(replace_by(Run(follow), monkeypatch))
