"""Conditions in the status of objects."""

from __future__ import annotations

from fakekube.apis.validation.objectmeta import set_status_condition

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def condition(type_: str, status: str, reason: str, since: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "lastTransitionTime": since}


def test_set_status_condition_appends_a_new_type() -> None:
    ready, able = condition("Ready", "True", "A", EARLY), condition("Able", "True", "A", LATE)
    assert set_status_condition(None, ready) == [ready]
    assert set_status_condition([ready], able) == [ready, able]


def test_set_status_condition_changes_the_transition_time_with_the_status() -> None:
    old = [condition("Ready", "True", "A", EARLY), condition("Able", "True", "A", EARLY)]
    same = set_status_condition(old, condition("Ready", "True", "B", LATE))
    assert same == [condition("Ready", "True", "B", EARLY), old[1]]
    changed = set_status_condition(old, condition("Ready", "False", "B", LATE))
    assert changed == [condition("Ready", "False", "B", LATE), old[1]]
    assert old[0] == condition("Ready", "True", "A", EARLY)
