"""The conditions of a definition, from accepted names to termination."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apiextensions.definition import conditions

NOW, LATER = "2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z"
NAMES = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}


def definition(names: dict[str, Any] = NAMES, *, group: str = "example.com", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{names['plural']}.{group}", "uid": names["plural"], **metadata},
        "spec": {"group": group, "names": names},
    }


def settled(obj: dict[str, Any], *others: dict[str, Any], now: str = NOW) -> dict[str, Any]:
    """The definition after all condition changes."""
    for _ in range(5):
        change = conditions.next_state(obj, [obj, *others], now)
        if change is None:
            return obj
        obj = change(obj)
    raise AssertionError("does not come to rest")


def condition_states(obj: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in obj["status"]["conditions"]}


def test_definition_is_established_after_names_are_accepted() -> None:
    first = conditions.next_state(definition(), [], NOW)
    assert first is not None
    named = first(definition())
    assert condition_states(named) == {"NamesAccepted": ("True", "NoConflicts"), "Established": ("False", "Installing")}
    assert conditions.is_served(named)
    done = settled(named)
    assert condition_states(done) == {"NamesAccepted": ("True", "NoConflicts"), "Established": ("True", "InitialNamesAccepted")}
    assert done["status"]["acceptedNames"] == NAMES


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"plural": "widgets"}, "PluralConflict"),
        ({"singular": "widget"}, "SingularConflict"),
        ({"kind": "Widget"}, "KindConflict"),
        ({"listKind": "WidgetList"}, "ListKindConflict"),
        ({"shortNames": ["widget"]}, "ShortNamesConflict"),
    ],
)
def test_conflicting_names_are_not_accepted(changed: dict[str, Any], reason: str) -> None:
    taken = settled(definition())
    other = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    refused = settled(definition({**other, **changed}), taken)
    assert condition_states(refused) == {"NamesAccepted": ("False", reason), "Established": ("False", "NotAccepted")}
    assert not conditions.is_served(refused)
    assert condition_states(settled(refused, now=LATER))["Established"] == ("True", "InitialNamesAccepted")  # once they are free


def test_names_of_another_group_do_not_conflict() -> None:
    assert conditions.is_served(settled(definition(group="other.com"), settled(definition())))


def test_last_transition_time_changes_only_with_the_status() -> None:
    obj = settled(definition())
    same = conditions.with_condition(obj, type_="Established", status="True", reason="Other", message="", now=LATER)
    other = conditions.with_condition(obj, type_="Established", status="False", reason="Other", message="", now=LATER)
    assert conditions.condition(same, "Established")["lastTransitionTime"] == NOW
    assert conditions.condition(other, "Established")["lastTransitionTime"] == LATER
    assert len(other["status"]["conditions"]) == 2


def test_terminating_definition_is_released() -> None:
    alive = settled(definition())
    dying = settled(
        {**alive, "metadata": {**alive["metadata"], "deletionTimestamp": NOW, "finalizers": ["other", conditions.FINALIZER]}}
    )
    assert conditions.is_ending(dying)
    assert not conditions.is_released(dying)
    ended = conditions.finalize(dying, LATER)
    assert condition_states(ended)["Terminating"] == ("False", "InstanceDeletionCompleted")
    assert ended["metadata"]["finalizers"] == ["other"]
    assert not conditions.is_ending(ended)
    alone = conditions.finalize({**dying, "metadata": {**dying["metadata"], "finalizers": [conditions.FINALIZER]}}, LATER)
    assert conditions.is_released(alone)


def test_never_established_definition_terminates() -> None:
    assert condition_states(conditions.finalize(definition(), NOW))["Terminating"] == ("False", "NeverEstablished")


def test_is_same_serving_ignores_metadata_changes() -> None:
    obj = settled(definition())
    assert conditions.is_same_serving(obj, {**obj, "metadata": {**obj["metadata"], "labels": {"a": "b"}}})
    assert not conditions.is_same_serving(obj, {**obj, "spec": {**obj["spec"], "scope": "Cluster"}})
    assert not conditions.is_same_serving(obj, {**obj, "metadata": {**obj["metadata"], "uid": "another"}})


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        ("https://example.com/pull/1", ("True", "ApprovedAnnotation")),
        ("unapproved, a trial", ("False", "UnapprovedAnnotation")),
        ("", ("False", "MissingAnnotation")),
        ("nobody", ("False", "InvalidAnnotation")),
        ("https://example.com/pull/1#note", ("True", "ApprovedAnnotation")),
        ("https://example.com#note", ("False", "InvalidAnnotation")),  # in a request URI, `#` starts no fragment
    ],
)
def test_protected_groups_get_an_approval_condition(approval: str, expected: tuple[str, str]) -> None:
    done = settled(definition(group="things.k8s.io", annotations={"api-approved.kubernetes.io": approval}))
    assert condition_states(done)["KubernetesAPIApprovalPolicyConformant"] == expected
    assert condition_states(done)["Established"] == ("True", "InitialNamesAccepted")
