"""Pods that run: ephemeral containers, processes, changes of the spec."""

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


def test_an_ephemeral_container_without_its_program_ends(cluster: Cluster) -> None:
    cluster.create(pod("p"))
    cluster.settle()
    debugger = {"name": "debugger", "image": "busybox", "command": ["bash"]}
    cluster.patch("pods", "p", {"spec": {"ephemeralContainers": [debugger]}}, subresource="ephemeralcontainers")
    cluster.settle()
    (status,) = status_of(cluster, "p")["ephemeralContainerStatuses"]
    ended = status["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert ended["message"].endswith('exec: "bash": executable file not found in $PATH: unknown')


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


def test_pods_with_a_rule_are_scheduled_by_their_node_name(cluster: Cluster) -> None:
    cluster.pods.on(name="p").forever()
    cluster.create(pod("p", nodeName="node-1"))
    cluster.settle()
    found = next(one for one in status_of(cluster, "p")["conditions"] if one["type"] == "PodScheduled")
    assert (found["status"], found["observedGeneration"]) == ("True", 1)
