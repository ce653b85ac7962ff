"""The times of a graceful deletion."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fakekube import Cluster
from fakekube.base.clock import Clock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "due"),
    [
        (1, "2026-01-01T00:00:01Z"),
        (3600, "2026-01-01T01:00:00Z"),
        (2**33, "2298-03-16T12:56:32Z"),
        (2**34, "1985-11-09T02:18:30Z"),  # a Go Duration has 64 bits of nanoseconds
    ],
)
def test_what_is_deleted_later_tells_when(seconds: int, due: str) -> None:
    with Cluster(profile="apiserver", clock=Clock.standing_at(NOW)) as cluster:
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
        cluster.delete("pods", "p", gracePeriodSeconds=seconds)
        metadata = cluster.get("pods", "p")["metadata"]
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == (due, seconds)
