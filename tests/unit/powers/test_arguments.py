"""Arguments of faults are validated when a fault is armed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.powers.faults import FaultSelector

WRONG: list[Callable[[FaultSelector], Any]] = [
    lambda on: on.status("503"),  # type: ignore[arg-type]
    lambda on: on.status(99),
    lambda on: on.status(503, retry_after=-1),
    lambda on: on.delay("x"),  # type: ignore[arg-type]
    lambda on: on.delay(-1),
    lambda on: on.delay(float("inf")),
    lambda on: on.cut(after_bytes=-1),
    lambda on: on.cut(after_events="x"),  # type: ignore[arg-type]
    lambda on: on.stale(by=-1),
    lambda on: on.end(True),
    lambda on: on.slice(0),
    lambda on: on.error_event(1000),
    lambda on: on.bookmarks("sometimes"),
    lambda on: on.conflict(5),  # type: ignore[arg-type]
    lambda on: on.intercept(None),  # type: ignore[arg-type]
    lambda on: on.refuse(times=0),
    lambda on: on.refuse(times=1.5),
    lambda on: on.refuse(every=0),
    lambda on: on.refuse(after=-1),
    lambda on: on.refuse(probability=float("nan")),
    lambda on: on.refuse(lasts=-1),
    lambda on: on.refuse(label=5),
]


@pytest.mark.parametrize("arm", WRONG)
def test_invalid_fault_arguments_are_rejected_when_the_fault_is_armed(arm: Callable[[FaultSelector], Any]) -> None:
    cluster = Cluster(profile="apiserver")
    with pytest.raises(ValueError, match="must be"):
        arm(cluster.faults.on("get"))
    assert not len(cluster.faults)
    cluster.stop()


def test_fault_criteria_of_wrong_types_are_rejected() -> None:
    cluster = Cluster(profile="apiserver")
    for wrong in ({"namespace": 5}, {"name": []}, {"own": "yes"}, {"path": 1}, {"resource": None}):
        with pytest.raises((ValueError, AttributeError)):
            cluster.faults.on("get", **wrong)
    cluster.stop()


@pytest.mark.parametrize("revision", [-1, 2**128 + 1])
def test_first_revision_out_of_bounds_is_rejected(revision: int) -> None:
    with pytest.raises(ValueError, match="first_revision"):
        Cluster(profile="apiserver", first_revision=revision)


def test_a_list_of_resources_is_rejected_because_it_would_match_nothing() -> None:
    cluster = Cluster(profile="apiserver")
    with pytest.raises(ValueError, match="more than one resource"):
        cluster.faults.on("get", "configmaps,secrets")
    with pytest.raises(ValueError, match="more than one resource"):
        cluster.requests.where(resource="configmaps,secrets")
    cluster.stop()
