"""Resizes in place: of containers and of pods as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.nodes.runtime.resources import pod_cgroup


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def pod(name: str, container: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "image": "busybox", **(container or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [main], **spec}}


def status_of(cluster: Cluster, name: str = "p") -> Any:
    return cluster.get("pods", name)["status"]


def events(cluster: Cluster) -> dict[str, str]:
    return {event["reason"]: event["message"] for event in cluster.list("events")}


def patch(cluster: Cluster, spec: Mapping[str, Any], name: str = "p") -> None:
    strategic = {"Content-Type": "application/strategic-merge-patch+json"}
    answer = cluster.request("PATCH", f"/api/v1/namespaces/default/pods/{name}/resize", {"spec": spec}, headers=strategic)
    assert answer.status == 200, answer.text
    cluster.settle()


def resize(cluster: Cluster, cpu: str) -> None:
    patch(cluster, {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]})


def allocated(cluster: Cluster, name: str = "p") -> dict[str, str]:
    """Returns the allocated resources of the container of a pod."""
    (status,) = status_of(cluster, name)["containerStatuses"]
    found: dict[str, str] = status["allocatedResources"]
    return found


def condition(cluster: Cluster, type_: str) -> tuple[str, str] | None:
    found = next((one for one in status_of(cluster)["conditions"] if one["type"] == type_), None)
    return None if found is None else (found.get("reason", ""), found.get("message", ""))


@pytest.mark.parametrize("told", [False, True])
def test_a_resize_that_fits_is_actuated(cluster: Cluster, told: bool) -> None:
    if told:
        cluster.pods.on(name="p").forever()
    cluster.create(pod("p", {"resources": {"requests": {"cpu": "100m"}}}))
    cluster.settle()
    resize(cluster, "200m")
    found = status_of(cluster)
    (status,) = found["containerStatuses"]
    assert (status["allocatedResources"], status["resources"]) == ({"cpu": "200m"}, {"requests": {"cpu": "200m"}})
    assert not {"allocatedResources", "resources"} & found.keys()  # the pod has none as a whole
    assert status["restartCount"] == 0
    assert {"ResizeStarted", "ResizeCompleted"} <= set(events(cluster))


def test_a_resize_is_deferred_until_the_node_has_room(cluster: Cluster) -> None:
    cpu = int(cluster.nodes["node-1"]["status"]["allocatable"]["cpu"])
    for name in ("p", "other"):
        cluster.create(pod(name, {"resources": {"requests": {"cpu": "1"}}}))
    cluster.settle()
    resize(cluster, str(cpu))
    used, capacity = 1000, cpu * 1000
    text = f"Node didn't have enough resource: cpu, requested: {capacity}, used: {used}, capacity: {capacity}"
    assert condition(cluster, "PodResizePending") == ("Deferred", text)
    assert allocated(cluster) == {"cpu": "1"}
    cluster.delete("pods", "other")
    cluster.settle()
    assert condition(cluster, "PodResizePending") is None
    assert allocated(cluster) == {"cpu": str(cpu)}


def test_a_deferred_resize_is_tried_again_when_another_pod_becomes_smaller(cluster: Cluster) -> None:
    cpu = int(cluster.nodes["node-1"]["status"]["allocatable"]["cpu"])
    for name, amount in (("other", cpu - 2), ("low", 1), ("p", 1)):
        cluster.create(pod(name, {"resources": {"requests": {"cpu": str(amount)}}}))
    cluster.settle()
    for name in ("low", "p"):
        patch(cluster, {"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}, name)
    assert condition(cluster, "PodResizePending") is not None
    patch(cluster, {"containers": [{"name": "main", "resources": {"requests": {"cpu": str(cpu - 4)}}}]}, "other")
    assert allocated(cluster, "low") == {"cpu": "3"}  # it has waited longer
    assert condition(cluster, "PodResizePending") is not None
    cluster.delete("pods", "low")
    cluster.settle()
    assert allocated(cluster) == {"cpu": "3"}


def test_an_init_container_that_runs_is_resized(cluster: Cluster) -> None:
    init = {"name": "init", "image": "busybox", "command": ["sleep", "60"], "resources": {"requests": {"cpu": "100m"}}}
    cluster.create(pod("p", {"resources": {"requests": {"cpu": "100m"}}}, initContainers=[init]))
    cluster.settle()
    wanted = {"resources": {"requests": {"cpu": "300m"}}}
    patch(cluster, {"initContainers": [{"name": "init", **wanted}], "containers": [{"name": "main", **wanted}]})
    found = status_of(cluster)
    statuses = [*found["initContainerStatuses"], *found["containerStatuses"]]
    assert found["phase"] == "Pending"
    assert [one["allocatedResources"] for one in statuses] == [{"cpu": "300m"}] * 2
    cluster.clock.advance(seconds=61)
    cluster.settle()
    found = status_of(cluster)
    assert found["phase"] == "Running" and found["containerStatuses"][0]["resources"] == wanted["resources"]


def test_a_resize_beyond_the_node_is_infeasible_for_kubelets_up_to_1_35() -> None:
    with Cluster(version="1.35") as cluster:
        cluster.create(pod("p", {"resources": {"requests": {"cpu": "1"}}}))
        cluster.settle()
        resize(cluster, "1000")
        message = "Node didn't have enough capacity: cpu, requested: 1000000, capacity: 16000"
        assert condition(cluster, "PodResizePending") == ("Infeasible", message)
        assert events(cluster)["ResizeInfeasible"].startswith("Pod resize Infeasible: ")
        assert "ResizeStarted" not in events(cluster)


def test_a_resize_restarts_a_container_with_the_policy_restart_container(cluster: Cluster) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    container = {"resources": {"requests": {"cpu": "100m"}}, "resizePolicy": policy}
    sidecar = {"name": "sidecar", "image": "busybox", "restartPolicy": "Always", **container}
    cluster.create(pod("p", container, initContainers=[sidecar]))
    cluster.settle()
    resize(cluster, "200m")
    found = status_of(cluster)
    (status,), (other,) = found["containerStatuses"], found["initContainerStatuses"]
    assert status["restartCount"] == 1 and status["allocatedResources"] == {"cpu": "200m"}
    assert other["restartCount"] == 0 and condition(cluster, "PodResizeInProgress") is None
    assert {"ResizeStarted", "ResizeCompleted"} <= set(events(cluster))
    patch(cluster, {"initContainers": [{"name": "sidecar", "resources": {"requests": {"cpu": "300m"}}}]})
    found = status_of(cluster)
    (status,), (other,) = found["containerStatuses"], found["initContainerStatuses"]
    assert (status["restartCount"], other["restartCount"]) == (1, 1)
    assert (status["allocatedResources"], other["allocatedResources"]) == ({"cpu": "200m"}, {"cpu": "300m"})


def test_a_resize_is_in_progress_until_the_container_has_been_restarted(cluster: Cluster) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    cluster.create(pod("p", {"resources": {"requests": {"cpu": "100m"}}, "resizePolicy": policy}))
    cluster.settle()
    version = cluster.get("pods", "p")["metadata"]["resourceVersion"]
    resize(cluster, "200m")
    changes = cluster.watch("/api/v1/pods", {"resourceVersion": version})
    try:
        statuses = [json.loads(line)["object"]["status"] for line in changes.take()]
    finally:
        changes.close()
    seen = [
        (any(one["type"] == "PodResizeInProgress" for one in status["conditions"]), status["containerStatuses"][0])
        for status in statuses
    ]
    assert all(
        in_progress or main["restartCount"] == 1 for in_progress, main in seen if main["allocatedResources"]["cpu"] == "200m"
    )
    assert not seen[-1][0] and seen[-1][1]["restartCount"] == 1


def test_a_resize_restarts_a_sidecar_while_an_init_container_runs(cluster: Cluster) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    container = {"image": "busybox", "command": ["sleep", "1000"], "resources": {"requests": {"cpu": "100m"}}}
    sidecar = {"name": "sidecar", "restartPolicy": "Always", "resizePolicy": policy, **container}
    cluster.create(pod("p", initContainers=[sidecar, {"name": "init", **container}]))
    cluster.settle()
    patch(cluster, {"initContainers": [{"name": "sidecar", "resources": {"requests": {"cpu": "200m"}}}]})
    found = status_of(cluster)
    assert found["phase"] == "Pending"
    assert [one["restartCount"] for one in found["initContainerStatuses"]] == [1, 0]
    assert found["initContainerStatuses"][0]["allocatedResources"] == {"cpu": "200m"}


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


def test_nodes_declare_the_features_of_their_kubelets(cluster: Cluster) -> None:
    assert "InPlacePodLevelResourcesVerticalScaling" in cluster.nodes["node-1"]["status"]["declaredFeatures"]
    with Cluster(version="1.35") as older:
        assert "declaredFeatures" not in older.nodes["node-1"]["status"]


@pytest.mark.parametrize(("policy", "restarts"), [("NotRequired", 0), ("RestartContainer", 1)])
def test_the_resources_of_a_pod_as_a_whole_are_resized(cluster: Cluster, policy: str, restarts: int) -> None:
    whole = {"requests": {"cpu": "200m", "memory": "64Mi"}, "limits": {"cpu": "400m"}}
    policies = [{"resourceName": "cpu", "restartPolicy": policy}]
    cluster.create(pod("p", {"resizePolicy": policies, "command": ["sleep", "1000"]}, resources=whole))
    cluster.settle()
    found = status_of(cluster)
    assert (found["resources"], found["allocatedResources"]) == (whole, whole["requests"])
    patch(cluster, {"resources": {"limits": {"cpu": "600m"}}})
    cluster.settle()
    found = status_of(cluster)
    assert found["resources"] == {"requests": {"cpu": "200m", "memory": "64Mi"}, "limits": {"cpu": "600m"}}
    assert found["containerStatuses"][0]["restartCount"] == restarts  # the container has the limit of its pod
    assert cluster.pods.get("p").exec("cat /sys/fs/cgroup/cpu.max").stdout == "60000 100000\n"


def test_a_limit_of_memory_below_the_usage_is_not_actuated(cluster: Cluster) -> None:
    def limited(amount: str) -> dict[str, Any]:
        return {"resources": {"requests": {"memory": amount}, "limits": {"memory": amount}}}

    cluster.create(pod("p", {"command": ["sleep", "1000"]}, **limited("64Mi")))
    cluster.pods.on(name="p").uses(memory="20Mi")
    cluster.settle()
    patch(cluster, limited("10Mi"))
    error = "cannot decrease memory limits: {}attempting to set pod memory limit (10485760) below current usage (20971520){}"
    both = error.format("[", ', attempting to set container "main" memory limit (10485760) below current usage (20971520)]')
    assert condition(cluster, "PodResizeInProgress") == ("Error", both)
    found = status_of(cluster)
    assert found["allocatedResources"] == {"memory": "10Mi"} and found["resources"] == limited("64Mi")["resources"]
    assert pod_cgroup(cluster.get("pods", "p")) == limited("64Mi")["resources"]
    assert {"ResizeStarted", "ResizeError"} <= set(events(cluster)) and "ResizeCompleted" not in events(cluster)
    cluster.pods.on(name="p").uses(memory="5Mi")
    cluster.clock.advance(minutes=1)
    cluster.settle()
    assert condition(cluster, "PodResizeInProgress") is None
    assert status_of(cluster)["resources"] == limited("10Mi")["resources"] and "ResizeCompleted" in events(cluster)


@pytest.mark.parametrize(
    ("container", "spec", "score"),
    [
        ({}, {}, 1000),
        ({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}, {}, -997),
        ({"resources": {"requests": {"memory": "16Gi"}}}, {}, 750),
        ({"resources": {"requests": {"memory": "1Ki"}}}, {}, 999),
        ({}, {"resources": {"requests": {"memory": "32Gi"}}}, 500),
    ],
)
def test_the_oom_score_of_a_container_depends_on_its_memory(
    cluster: Cluster, container: Mapping[str, Any], spec: Mapping[str, Any], score: int
) -> None:
    cluster.create(pod("p", container, **spec))
    cluster.settle()
    assert cluster.pods.get("p").exec("cat /proc/1/oom_score_adj").stdout == f"{score}\n"
