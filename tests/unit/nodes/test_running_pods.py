"""Pods that run: ephemeral containers, resize in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.net.pipes import Pipe
from fakekube.net.streaming.kubelet_api import Streams


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def pod(name: str, container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "image": "busybox", **(container or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [main], **spec}}


def status_of(cluster: Cluster, name: str) -> Any:
    return cluster.get("pods", name)["status"]


def reasons(cluster: Cluster) -> list[str]:
    return [event["reason"] for event in cluster.list("events")]


@pytest.mark.parametrize("told", [False, True])
def test_an_ephemeral_container_runs_until_its_program_ends(cluster: Cluster, told: bool) -> None:
    if told:
        cluster.pods.on(name="p").forever()
    cluster.create(pod("p"))
    cluster.settle()
    debugger = {"name": "debugger", "image": "busybox", "stdin": True, "targetContainerName": "main"}
    cluster.patch("pods", "p", {"spec": {"ephemeralContainers": [debugger]}}, subresource="ephemeralcontainers")
    cluster.settle()
    (status,) = status_of(cluster, "p")["ephemeralContainerStatuses"]
    assert "running" in status["state"]
    streams = Streams(stdin=Pipe(), stdout=Pipe())
    stored = cluster._machinery.backend.services.get("", "pods", "default", "p")
    assert stored is not None and streams.stdin is not None and streams.stdout is not None
    cluster._components.runtime.attach(stored, "debugger", streams)
    streams.stdin.write_all(b"echo here\nexit 3\n")
    assert streams.stdout.readline(timeout=60) == b"here\n"
    cluster.wait_for("pods", "p", until=lambda found: "terminated" in found["status"]["ephemeralContainerStatuses"][0]["state"])
    (status,) = status_of(cluster, "p")["ephemeralContainerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 3
    assert status_of(cluster, "p")["phase"] == "Running"


def processes(cluster: Cluster, container: str) -> list[str]:
    """The ids and names of the processes that a command in a container sees, without those of the command."""
    lines = cluster.pods.get("p").exec("ps", container=container).stdout.splitlines()[1:]
    return [f"{words[0]} {' '.join(words[3:])}" for line in lines if (words := line.split())[-1] != "ps"]


def test_an_ephemeral_container_sees_the_processes_of_its_target(cluster: Cluster) -> None:
    term = "trap 'exit 7' TERM; while true; do sleep 1; done"
    cluster.create(pod("p", {"command": ["sh", "-c", term]}, restartPolicy="Never"))
    cluster.settle()
    other = {"name": "other", "image": "busybox", "command": ["sleep", "60"]}
    debuggers = [{**other, "name": "debugger", "targetContainerName": "main"}, other]
    cluster.patch("pods", "p", {"spec": {"ephemeralContainers": debuggers}}, subresource="ephemeralcontainers")
    cluster.settle()
    assert processes(cluster, "debugger") == [f"1 sh -c {term}", "2 sleep 60"]
    assert processes(cluster, "main") == [f"1 sh -c {term}", "2 sleep 60"]
    assert processes(cluster, "other") == ["1 sleep 60"]
    cluster.pods.get("p").exec("kill 1", container="debugger")
    cluster.wait_for("pods", "p", until=lambda found: "terminated" in found["status"]["containerStatuses"][0]["state"])
    (status,) = status_of(cluster, "p")["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 7


def test_containers_share_a_process_namespace_if_the_pod_says_so(cluster: Cluster) -> None:
    two = {"name": "second", "image": "busybox", "command": ["sh", "-c", "sleep 5; exit 1"]}
    made = pod("p", {"command": ["sleep", "60"]}, shareProcessNamespace=True, restartPolicy="Never")
    made["spec"]["containers"].append(two)
    cluster.create(made)
    cluster.settle()
    shared = ["1 /pause", "2 sleep 60", "3 sh -c sleep 5; exit 1"]
    assert processes(cluster, "main") == processes(cluster, "second") == shared
    cluster.clock.advance(seconds=6)
    cluster.settle()
    assert processes(cluster, "main") == shared[:2]


@pytest.mark.parametrize("told", [False, True])
def test_a_resize_that_fits_is_actuated(cluster: Cluster, told: bool) -> None:
    if told:
        cluster.pods.on(name="p").forever()
    cluster.create(pod("p", {"resources": {"requests": {"cpu": "100m"}}}))
    cluster.settle()
    resize(cluster, "200m")
    (status,) = status_of(cluster, "p")["containerStatuses"]
    assert status["allocatedResources"] == {"cpu": "200m"}
    assert status["resources"] == {"requests": {"cpu": "200m"}}
    assert status["restartCount"] == 0
    assert {"ResizeStarted", "ResizeCompleted"} <= set(reasons(cluster))


def resize(cluster: Cluster, cpu: str, name: str = "p") -> None:
    wanted = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
    strategic = {"Content-Type": "application/strategic-merge-patch+json"}
    answer = cluster.request("PATCH", f"/api/v1/namespaces/default/pods/{name}/resize", wanted, headers=strategic)
    assert answer.status == 200, answer.text
    cluster.settle()


def pending(cluster: Cluster) -> Any:
    return next((one for one in status_of(cluster, "p")["conditions"] if one["type"] == "PodResizePending"), None)


def test_a_resize_is_deferred_until_the_node_has_room(cluster: Cluster) -> None:
    cpu = int(cluster.nodes["node-1"]["status"]["allocatable"]["cpu"])
    for name in ("p", "other"):
        cluster.create(pod(name, {"resources": {"requests": {"cpu": "1"}}}))
    cluster.settle()
    resize(cluster, str(cpu))
    found = pending(cluster)
    used, capacity = 1000, cpu * 1000
    text = f"Node didn't have enough resource: cpu, requested: {capacity}, used: {used}, capacity: {capacity}"
    assert (found["reason"], found["message"]) == ("Deferred", text)
    assert status_of(cluster, "p")["containerStatuses"][0]["allocatedResources"] == {"cpu": "1"}
    cluster.delete("pods", "other")
    cluster.settle()
    assert pending(cluster) is None
    assert status_of(cluster, "p")["containerStatuses"][0]["allocatedResources"] == {"cpu": str(cpu)}


def test_a_resize_restarts_a_container_with_the_policy_restart_container(cluster: Cluster) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    cluster.create(pod("p", {"resources": {"requests": {"cpu": "100m"}}, "resizePolicy": policy}))
    cluster.settle()
    resize(cluster, "200m")
    (status,) = status_of(cluster, "p")["containerStatuses"]
    assert status["restartCount"] == 1 and status["allocatedResources"] == {"cpu": "200m"}


@pytest.mark.parametrize("told", [False, True])
def test_a_change_of_the_spec_is_observed(cluster: Cluster, told: bool) -> None:
    if told:
        cluster.pods.on(name="p").forever()
    cluster.create(pod("p"))
    cluster.settle()
    assert status_of(cluster, "p")["observedGeneration"] == 1
    cluster.patch("pods", "p", {"spec": {"activeDeadlineSeconds": 5000}})
    cluster.settle()
    found = status_of(cluster, "p")
    assert found["observedGeneration"] == 2
    assert {one["observedGeneration"] for one in found["conditions"]} == {2}


def test_the_cgroup_of_a_container_has_its_resources(cluster: Cluster) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "1500m", "memory": "64Mi"}}
    cluster.create(pod("p", {"resources": resources, "resizePolicy": policy}))
    cluster.create(pod("q"))
    cluster.settle()
    read = "mount -t cgroup2; cd /sys/fs/cgroup; cat cpu.max cpu.weight memory.max"
    mounted = "cgroup on /sys/fs/cgroup type cgroup2 (ro,relatime)\n"
    assert cluster.pods.get("p").exec(read).stdout == f"{mounted}150000 100000\n100\n67108864\n"
    assert cluster.pods.get("q").exec(read).stdout == f"{mounted}max 100000\n1\nmax\n"
    resize(cluster, "500m")
    assert cluster.pods.get("p").exec("cat /sys/fs/cgroup/cpu.weight").stdout == "59\n"


def test_pods_with_a_rule_are_scheduled_by_their_node_name(cluster: Cluster) -> None:
    cluster.pods.on(name="p").forever()
    cluster.create(pod("p", nodeName="node-1"))
    cluster.settle()
    found = next(one for one in status_of(cluster, "p")["conditions"] if one["type"] == "PodScheduled")
    assert (found["status"], found["observedGeneration"]) == ("True", 1)
