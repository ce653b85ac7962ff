"""Pods that write more than they may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def start(cluster: Cluster, path: str, *, limit: str = "", **volume: Any) -> None:
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    script = f"sleep 15; dd if=/dev/zero of={path} bs=1024 count=2048; sleep 1000"
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts}
    if limit:
        container["resources"] = {"limits": {"ephemeral-storage": limit}}
    volumes = [{"name": "scratch", "emptyDir": volume}]
    spec = {"containers": [container], "volumes": volumes}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    cluster.settle()


def after(cluster: Cluster, seconds: float) -> dict[str, Any]:
    """Returns the status of the pod after so many seconds."""
    cluster.clock.advance(seconds=seconds)
    cluster.settle()
    found: dict[str, Any] = cluster.get("pods", "p")["status"]
    return found


@pytest.mark.parametrize(
    ("path", "limits", "message"),
    [
        ("/scratch/a", {"sizeLimit": "1Mi"}, 'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". '),
        ("/tmp/a", {"limit": "1Mi"}, "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "),
        ("/scratch/a", {"limit": "1Mi"}, "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "),
    ],
)
def test_a_pod_that_writes_more_than_it_may_is_evicted(cluster: Cluster, path: str, limits: Any, message: str) -> None:
    start(cluster, path, **limits)
    assert after(cluster, 12)["phase"] == "Running"
    status = after(cluster, 40)  # while much time passes at once a kubelet looks less often
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "Evicted", message)
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    (event,) = [one for one in cluster.list("events") if one["reason"] == "Evicted"]
    assert (event["type"], event["message"], event["source"]["component"]) == ("Warning", message, "kubelet")


@pytest.mark.parametrize(
    ("path", "limits"),
    [
        ("/scratch/a", {"sizeLimit": "3Mi"}),
        ("/tmp/a", {"sizeLimit": "1Mi"}),
        ("/tmp/a", {"limit": "3Mi"}),
        ("/scratch/a", {"sizeLimit": "1Mi", "medium": "Memory"}),
    ],
)
def test_other_pods_run_on(cluster: Cluster, path: str, limits: Any) -> None:
    start(cluster, path, **limits)
    assert after(cluster, 60)["phase"] == "Running"


def test_a_container_that_writes_more_than_it_may_is_evicted_although_the_pod_may_write_more(cluster: Cluster) -> None:
    script = "sleep 15; dd if=/dev/zero of=/tmp/a bs=1024 count=2048; sleep 1000"
    limits = {"small": "1Mi", "large": "100Mi"}
    containers = [
        {
            "name": name,
            "image": "busybox",
            "command": ["sh", "-c", script if name == "small" else "sleep 1000"],
            "resources": {"limits": {"ephemeral-storage": limit}},
        }
        for name, limit in limits.items()
    ]
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}})
    cluster.settle()
    status = after(cluster, 60)
    message = 'Container small exceeded its local ephemeral storage limit "1Mi". '
    assert (status["reason"], status["message"]) == ("Evicted", message)
