"""Which leases are those of an election."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules.leases import Election
from fakekube.checker.trace import LEASES
from fakekube.checker.verdict import NotExercised


def baseline_of(**spec: Any) -> Any:
    """A baseline run in which the client wrote a lease."""
    answer = {"metadata": {"name": "one"}, "spec": {"holderIdentity": "one", "leaseDurationSeconds": 40, **spec}}
    write = SimpleNamespace(collection=LEASES, is_write=True, succeeded=True, answer=answer)
    return SimpleNamespace(trial=SimpleNamespace(trace=SimpleNamespace(since=lambda: [write])))


@pytest.mark.parametrize("spec", [{"acquireTime": "2026-11-27T13:00:00.000000Z"}, {"leaseTransitions": 0}])
def test_a_lease_that_says_who_had_it_before_is_of_an_election(spec: dict[str, Any]) -> None:
    assert Election.lease_of(baseline_of(**spec))["metadata"]["name"] == "one"


def test_a_lease_that_only_tells_that_its_holder_lives_is_not() -> None:
    with pytest.raises(NotExercised):
        Election.lease_of(baseline_of(renewTime="2026-11-27T13:00:00.000000Z"))
