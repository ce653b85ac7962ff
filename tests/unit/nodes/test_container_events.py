"""The events of kubelets about images and containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.nodes.container_events import print_milliseconds


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": list(containers), **spec}}


def events(cluster: Cluster, *names: str) -> list[tuple[Any, ...]]:
    """The members of the events of kubelets, in the order of their last change."""
    found = [
        one
        for one in cluster.list("events")
        if one["involvedObject"]["kind"] == "Pod" and one["source"].get("component") == "kubelet"
    ]
    found.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
    return [tuple((one["involvedObject"] | one).get(name, "") for name in names or ("reason", "message")) for one in found]


def test_pods_of_unknown_images_have_events_if_the_cluster_has_a_pace(cluster: Cluster) -> None:
    cluster.pace = 1.0
    server, init = {"name": "c", "image": "app:1"}, {"name": "i", "image": "setup:1"}
    cluster.create(pod(server, initContainers=[init]))
    cluster.settle()
    starts = ["Pulled", "Created", "Started"]
    assert events(cluster, "reason", "fieldPath") == [
        *((one, "spec.initContainers{i}") for one in starts),
        *((one, "spec.containers{c}") for one in starts),
    ]
    cluster.delete("pods", "p")
    cluster.settle()
    assert events(cluster)[6:] == [("Killing", "Stopping container c")]


def test_pods_of_unknown_images_have_no_events_without_a_pace(cluster: Cluster) -> None:
    cluster.create(pod({"name": "c", "image": "app:1"}))
    cluster.settle()
    cluster.delete("pods", "p")
    cluster.settle()
    assert not events(cluster)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.34", ['Container image "busybox:1" already present on machine', "Created container: c", "Started container c"]),
        (
            "1.35",
            [
                'Container image "busybox:1" already present on machine and can be accessed by the pod',
                "Container created",
                "Container started",
            ],
        ),
    ],
)
def test_the_messages_of_minors(version: str, expected: list[str]) -> None:
    with Cluster(version=version) as cluster:
        cluster.create(pod({"name": "c", "image": "busybox:1", "command": ["sleep", "100"]}))
        cluster.settle()
        assert [message for _, message in events(cluster)] == expected


def test_images_are_pulled_at_each_start_if_the_policy_is_always(cluster: Cluster) -> None:
    cluster.create(pod({"name": "c", "image": "busybox", "command": ["true"]}))
    cluster.settle()
    pulled = 'Successfully pulled image "busybox" in 0s (0s including waiting). Image size: 0 bytes.'
    start = [
        ("Pulling", 'Pulling image "busybox"'),
        ("Pulled", pulled),
        ("Created", "Container created"),
        ("Started", "Container started"),
    ]
    assert events(cluster)[:4] == start


def test_an_image_that_is_pulled_after_failures(cluster: Cluster) -> None:
    cluster.pods.on(name="p").image_pull_back_off("no", times=1)
    cluster.create(pod({"name": "c", "image": "app:1"}))
    cluster.settle()
    cluster.clock.advance(seconds=10)
    cluster.settle()
    reasons = [reason for reason, _ in events(cluster)]  # the second Pulling is counted in the first one
    assert reasons == ["Failed", "Failed", "BackOff", "Failed", "Pulling", "Pulled", "Created", "Started"]
    assert events(cluster, "count")[4] == (2,) and events(cluster)[5][1].startswith("Successfully pulled")


def test_an_ephemeral_container_that_starts(cluster: Cluster) -> None:
    cluster.create(pod({"name": "c", "image": "app:1"}))
    cluster.settle()
    body = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox:1"}]}}
    cluster.patch("pods", "p", body, subresource="ephemeralcontainers")
    cluster.settle()
    path = "spec.ephemeralContainers{debug}"
    assert events(cluster, "reason", "fieldPath") == [("Pulled", path), ("Created", path), ("Started", path)]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0, "0s"), (0.0004, "0s"), (0.25, "250ms"), (1.5, "1.5s"), (2.0, "2s"), (90.0, "1m30s"), (3600.5, "1h0m0.5s")],
)
def test_print_milliseconds(seconds: float, expected: str) -> None:
    assert print_milliseconds(seconds) == expected


@pytest.mark.parametrize(("version", "counted"), [("1.35", False), ("1.36", True)])
def test_kubelets_count_terminated_containers(version: str, counted: bool) -> None:
    shell = {"image": "busybox:1", "command": ["sh", "-c"]}
    failing = {"name": "c", **shell, "args": ["exit 3"]}
    with Cluster(version=version) as cluster:
        cluster.create(pod(failing, restartPolicy="Never", initContainers=[{"name": "i", **shell, "args": ["true"]}]))
        cluster.settle()
        metrics = cluster.request("GET", "/api/v1/nodes/node-1/proxy/metrics").body
        found = [line for line in metrics.decode().splitlines() if line.startswith("kubelet_terminated_containers_total{")]
        assert found == counted * [
            'kubelet_terminated_containers_total{container_type="init_container",exit_code="0",reason="Completed"} 1',
            'kubelet_terminated_containers_total{container_type="container",exit_code="3",reason="Error"} 1',
        ]


def counts(cluster: Cluster) -> dict[str, int]:
    """How often each event of kubelets has occurred, by its reason."""
    return dict(events(cluster, "reason", "count"))


def test_a_container_that_cannot_be_created_has_events_at_each_attempt(cluster: Cluster) -> None:
    cluster.create(
        pod({"name": "c", "image": "busybox:1", "command": ["sleep", "1d"], "envFrom": [{"configMapRef": {"name": "x"}}]})
    )
    cluster.settle()
    assert events(cluster)[1] == ("Failed", 'Error: configmap "x" not found')
    assert counts(cluster).keys() == {"Pulled", "Failed"}
    before = counts(cluster)
    cluster.clock.advance(seconds=5)
    cluster.settle()
    assert counts(cluster) == {reason: count + 1 for reason, count in before.items()}


def test_a_volume_that_cannot_be_mounted_has_events_at_each_attempt(cluster: Cluster) -> None:
    volumes = [{"name": "v", "secret": {"secretName": "x"}}]
    cluster.create(pod({"name": "c", "image": "busybox:1", "command": ["sleep", "1d"]}, volumes=volumes))
    cluster.settle()
    before = counts(cluster)
    assert before.keys() == {"FailedMount"}
    cluster.clock.advance(seconds=5)
    cluster.settle()
    assert counts(cluster) == {"FailedMount": before["FailedMount"] + 1}


def test_containers_of_a_pod_that_fails_as_a_whole_are_stopped(cluster: Cluster) -> None:
    cluster.create(pod({"name": "c", "image": "busybox:1", "command": ["sleep", "1d"]}, activeDeadlineSeconds=5))
    cluster.settle()
    cluster.clock.advance(seconds=6)
    cluster.settle()
    assert events(cluster)[3:] == [
        ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"),
        ("Killing", "Stopping container c"),
    ]
