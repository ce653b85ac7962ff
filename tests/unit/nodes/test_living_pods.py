"""Pods on the nodes of a cluster: by default, and as they are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.client import ApiError


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    made.clock.hold()
    yield made
    made.stop()


def pod(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {
        "name": name,
        "labels": {"app": name},
        "annotations": {f"fakekube.dev/{k}": v for k, v in (annotations or {}).items()},
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }


def pass_time(cluster: Cluster, **time: float) -> None:
    cluster.clock.advance(**time)
    cluster.settle()


def run(cluster: Cluster, obj: dict[str, Any]) -> dict[str, Any]:
    cluster.create(obj)
    cluster.settle()
    return status(cluster, obj["metadata"]["name"])


def status(cluster: Cluster, name: str) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("pods", name)["status"]
    return found


def condition(of: dict[str, Any], type_: str) -> tuple[str, str | None]:
    return next((one["status"], one.get("reason")) for one in of["conditions"] if one["type"] == type_)


def reasons(cluster: Cluster, name: str) -> list[str]:
    return [event["reason"] for event in cluster.list("events") if event["involvedObject"]["name"] == name]


def test_a_cluster_has_a_node_and_pods_run_on_it(cluster: Cluster) -> None:
    (node,) = cluster.nodes
    assert node["metadata"]["name"] == "node-1" and not node["spec"].get("taints")
    found = run(cluster, pod("p"))
    assert (found["phase"], condition(found, "Ready")) == ("Running", ("True", None))
    assert found["containerStatuses"][0]["started"] and found["podIP"] != found["hostIP"]
    assert reasons(cluster, "p") == ["Scheduled"]
    cluster.delete("pods", "p")
    cluster.settle()
    assert not cluster.list("pods")


def test_two_pods_have_two_addresses_and_host_networks_one(cluster: Cluster) -> None:
    first, second = run(cluster, pod("a")), run(cluster, pod("b"))
    assert first["podIP"] != second["podIP"]
    assert run(cluster, pod("h", hostNetwork=True))["podIP"] == first["hostIP"]


def test_kubelets_sort_statuses_by_names_but_not_those_of_init_containers(cluster: Cluster) -> None:
    shell = {"image": "busybox:1", "command": ["sleep", "1000"]}
    inits = [{"name": name, "image": "busybox:1", "command": ["true"]} for name in ("d", "c")]
    found = run(cluster, pod("p", containers=[{"name": name, **shell} for name in ("b", "a")], initContainers=inits))
    assert [one["name"] for one in found["containerStatuses"]] == ["a", "b"]
    assert [one["name"] for one in found["initContainerStatuses"]] == ["d", "c"]


def test_rules_apply_to_new_and_existing_pods(cluster: Cluster) -> None:
    run(cluster, pod("a"))
    rule = cluster.pods.on(labels={"app": "a"}).never_ready()
    cluster.pods.on("app=b").run(seconds=3).exits(1, times=1).forever()
    cluster.settle()
    assert condition(status(cluster, "a"), "Ready") == ("False", "ContainersNotReady")
    run(cluster, pod("b"))
    pass_time(cluster, seconds=3)
    (of_container,) = status(cluster, "b")["containerStatuses"]
    assert (of_container["restartCount"], of_container["lastState"]["terminated"]["exitCode"]) == (1, 1)
    rule.remove()
    assert condition(run(cluster, pod("a2")), "Ready") == ("True", None)
    assert len(cluster.pods) == 1


def test_annotations_have_the_effect_of_rules(cluster: Cluster) -> None:
    found = run(cluster, pod("p", {"run": "5s", "exit-code": "3"}, restartPolicy="Never"))
    assert found["phase"] == "Running"
    pass_time(cluster, seconds=5)
    found = status(cluster, "p")
    assert (found["phase"], condition(found, "Ready"), condition(found, "Initialized")) == (
        "Failed",
        ("False", "PodFailed"),
        ("True", None),
    )
    assert found["containerStatuses"][0]["state"]["terminated"]["reason"] == "Error"


def test_an_invalid_annotation_causes_an_event(cluster: Cluster) -> None:
    assert run(cluster, pod("p", {"run": "soon"}))["phase"] == "Running"
    assert "InvalidAnnotation" in reasons(cluster, "p")


def test_images_that_cannot_be_pulled(cluster: Cluster) -> None:
    cluster.pods.on(name="p").image_pull_back_off(times=1)
    found = run(cluster, pod("p"))
    assert (found["phase"], found["containerStatuses"][0]["state"]["waiting"]["reason"]) == ("Pending", "ImagePullBackOff")
    assert "BackOff" in reasons(cluster, "p")
    pass_time(cluster, seconds=10)
    assert status(cluster, "p")["phase"] == "Running"


def test_a_slowly_terminating_pod_exists_until_it_has_ended(cluster: Cluster) -> None:
    cluster.pods.on(name="p").terminates(after=10)
    run(cluster, pod("p"))
    cluster.delete("pods", "p")
    pass_time(cluster, seconds=9)
    assert "deletionTimestamp" in cluster.get("pods", "p")["metadata"]
    assert "Killing" in reasons(cluster, "p")
    pass_time(cluster, seconds=1)
    with pytest.raises(ApiError):
        cluster.get("pods", "p")


def test_a_pod_is_evicted(cluster: Cluster) -> None:
    cluster.pods.on(name="p").evicted("low on memory", after=2)
    run(cluster, pod("p"))
    pass_time(cluster, seconds=2)
    found = status(cluster, "p")
    assert (found["phase"], found["reason"], found["message"]) == ("Failed", "Evicted", "low on memory")


def test_a_node_that_fails_loses_its_pods(cluster: Cluster) -> None:
    cluster.nodes.add("other", cpu=4)
    cluster.settle()
    run(cluster, pod("p", nodeSelector={"kubernetes.io/hostname": "other"}))
    cluster.nodes.fail("other")
    pass_time(cluster, seconds=60)
    ready = next(one for one in cluster.nodes["other"]["status"]["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert condition(status(cluster, "p"), "Ready")[0] == "False"
    assert {"NodeNotReady"} <= set(reasons(cluster, "other")) & set(reasons(cluster, "p"))
    pass_time(cluster, seconds=301)
    assert "deletionTimestamp" in cluster.get("pods", "p")["metadata"]
    cluster.nodes.recover("other")
    cluster.settle()
    assert not cluster.list("pods") and not cluster.nodes["other"]["spec"].get("taints")


def test_the_clock_may_be_moved_in_long_steps(cluster: Cluster) -> None:
    run(cluster, pod("p"))
    pass_time(cluster, days=3)
    assert condition(status(cluster, "p"), "Ready") == ("True", None)
    (ready,) = [one for one in cluster.nodes["node-1"]["status"]["conditions"] if one["type"] == "Ready"]
    assert ready["status"] == "True"


def test_nodes_are_cordoned_and_tainted(cluster: Cluster) -> None:
    cluster.nodes.cordon("node-1")
    cluster.settle()
    assert condition(run(cluster, pod("p")), "PodScheduled") == ("False", "Unschedulable")
    cluster.nodes.uncordon("node-1")
    cluster.settle()
    assert status(cluster, "p")["phase"] == "Running"
    cluster.nodes.taint("node-1", "fire", effect="NoExecute")
    cluster.settle()
    assert not cluster.list("pods")
    cluster.nodes.untaint("node-1", "fire")
    assert not cluster.nodes["node-1"]["spec"].get("taints")


def test_a_cluster_without_nodes_and_one_with_many() -> None:
    with Cluster(nodes=0) as empty, Cluster(nodes=3) as large:
        assert (len(empty.nodes), len(large.nodes), "node-3" in large.nodes) == (0, 3, True)


def test_pods_of_another_scheduler_are_ignored(cluster: Cluster) -> None:
    assert run(cluster, pod("p", schedulerName="mine"))["phase"] == "Pending"
    assert reasons(cluster, "p") == []


def test_active_deadline_seconds_fails_a_pod(cluster: Cluster) -> None:
    run(cluster, pod("p", activeDeadlineSeconds=30))
    pass_time(cluster, seconds=29)
    assert status(cluster, "p")["phase"] == "Running"
    pass_time(cluster, seconds=2)
    found = status(cluster, "p")
    assert (found["phase"], found["reason"], condition(found, "Ready")) == ("Failed", "DeadlineExceeded", ("False", "PodFailed"))
    assert "DeadlineExceeded" in reasons(cluster, "p")


def test_a_running_pod_is_resized(cluster: Cluster) -> None:
    obj = pod("p")
    obj["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    run(cluster, obj)
    containers = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    path = "/api/v1/namespaces/default/pods/p/resize"
    strategic = {"Content-Type": "application/strategic-merge-patch+json"}
    assert cluster.request("PATCH", path, {"spec": {"containers": containers}}, headers=strategic).status == 200
    cluster.settle()
    (told,) = status(cluster, "p")["containerStatuses"]
    assert (told["allocatedResources"], told["resources"]) == ({"cpu": "2"}, {"requests": {"cpu": "2"}})


def test_pods_run_in_new_namespaces_at_once() -> None:
    with Cluster() as cluster:
        for number in range(5):
            cluster.create({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": f"n{number}"}})
            cluster.create(pod("p"), namespace=f"n{number}")
        cluster.settle()
        assert [one["status"]["phase"] for one in cluster.list("pods")] == ["Running"] * 5


def test_a_fork_keeps_the_rules(cluster: Cluster) -> None:
    cluster.pods.on(name="p").never_ready()
    run(cluster, pod("p"))
    twin = cluster.fork()
    twin.delete("pods", "p")
    twin.settle()
    assert condition(run(twin, pod("p")), "Ready")[0] == "False"
    assert len(cluster.list("pods")) == 1
    twin.stop()


def change_image(cluster: Cluster, name: str, image: str) -> dict[str, Any]:
    """Sets the image of a pod's container. Returns its status."""
    containers = cluster.get("pods", name)["spec"]["containers"]
    cluster.patch("pods", name, {"spec": {"containers": [{**containers[0], "image": image}]}})
    cluster.settle()
    found: dict[str, Any] = status(cluster, name)["containerStatuses"][0]
    return found


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "c", "image": "app:1"}]},
        {"containers": [{"name": "c", "image": "busybox:1", "command": ["sleep", "1000"]}]},
        {"containers": [{"name": "c", "image": "busybox:1", "command": ["sleep", "1000"]}], "restartPolicy": "Never"},
    ],
)
def test_a_container_whose_image_changes_starts_again(cluster: Cluster, spec: Any) -> None:
    assert run(cluster, pod("p", **spec))["phase"] == "Running"
    changed = change_image(cluster, "p", "busybox:2")
    assert (changed["image"], changed["restartCount"], changed["ready"]) == ("busybox:2", 1, True)
    assert "terminated" in changed["lastState"]
    (event,) = [one for one in cluster.list("events") if one["reason"] == "Killing"]
    assert event["message"] == "Container c definition changed, will be restarted"
    cluster.patch("pods", "p", {"metadata": {"labels": {"other": "label"}}, "spec": {"activeDeadlineSeconds": 1000}})
    cluster.settle()
    assert status(cluster, "p")["containerStatuses"][0]["restartCount"] == 1


def test_another_image_ends_the_back_off(cluster: Cluster) -> None:
    spec = {"containers": [{"name": "c", "image": "busybox:1", "command": ["sh", "-c", "sleep 1; exit 3"]}]}
    run(cluster, pod("crashing", **spec))
    pass_time(cluster, seconds=120)
    before = status(cluster, "crashing")["containerStatuses"][0]
    assert before["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    after = change_image(cluster, "crashing", "busybox:2")
    assert (after["restartCount"], "running" in after["state"]) == (before["restartCount"] + 1, True)
    pass_time(cluster, seconds=14)
    assert status(cluster, "crashing")["containerStatuses"][0]["restartCount"] == before["restartCount"] + 2


def test_another_image_is_pulled(cluster: Cluster) -> None:
    cluster.images.missing.append("missing*")
    run(cluster, pod("p", containers=[{"name": "c", "image": "missing:1"}]))
    assert change_image(cluster, "p", "app:1")["state"].keys() == {"running"}
    broken = change_image(cluster, "p", "missing:2")
    assert broken["state"]["waiting"]["reason"] == "ImagePullBackOff"
    assert "terminated" in broken["lastState"]
    assert "running" in change_image(cluster, "p", "app:2")["state"]


def test_an_exit_restarts_all_containers(cluster: Cluster) -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}]
    mounts = [{"name": "data", "mountPath": "/data"}]
    script = "if [ -f /data/done ]; then sleep 1000; else touch /data/done; sleep 5; exit 42; fi"
    busybox = {"image": "busybox", "command": ["sleep", "1000"]}
    spec = {
        "restartPolicy": "Never",
        "initContainers": [
            {**busybox, "name": "init", "command": ["true"]},
            {**busybox, "name": "sidecar", "restartPolicy": "Always"},
        ],
        "containers": [
            {**busybox, "name": "source", "command": ["sh", "-c", script], "volumeMounts": mounts,
             "restartPolicy": "Never", "restartPolicyRules": rules},
            {**busybox, "name": "other"},
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }  # fmt: skip
    run(cluster, pod("p", **spec))
    pass_time(cluster, seconds=6)
    found = status(cluster, "p")
    statuses = {one["name"]: one for field in ("initContainerStatuses", "containerStatuses") for one in found[field]}
    assert {name: one["restartCount"] for name, one in statuses.items()} == dict.fromkeys(statuses, 1)
    codes = {name: one["lastState"]["terminated"]["exitCode"] for name, one in statuses.items()}
    assert codes == {"init": 0, "sidecar": 137, "source": 42, "other": 137}
    assert found["phase"] == "Running"
    assert all(one["ready"] for one in statuses.values())


def test_extended_resources_in_the_capacity_of_a_node_are_allocatable(cluster: Cluster) -> None:
    cluster.settle()
    cluster.patch("nodes", "node-1", {"status": {"capacity": {"example.com/dongle": "4"}}}, subresource="status")
    requests = {"requests": {"example.com/dongle": "3"}, "limits": {"example.com/dongle": "3"}}
    first = pod("first", containers=[{"name": "c", "image": "x", "resources": requests}])
    assert run(cluster, first)["phase"] == "Running"
    second = pod("second", containers=[{"name": "c", "image": "x", "resources": requests}])
    assert run(cluster, second)["phase"] == "Pending"
    cluster.patch("nodes", "node-1", {"status": {"capacity": {"example.com/dongle": None}}}, subresource="status")
    cluster.settle()
    assert cluster.get("nodes", "node-1")["status"]["allocatable"].keys() == {"cpu", "ephemeral-storage", "memory", "pods"}


@pytest.mark.parametrize(("host_users", "count"), [(False, "65536"), (True, "4294967295")])
def test_a_pod_has_its_own_users(cluster: Cluster, host_users: bool, count: str) -> None:
    container = {"name": "c", "image": "busybox", "command": ["cat", "/proc/self/uid_map"]}
    run(cluster, pod("p", containers=[container], hostUsers=host_users))
    inside, outside, found = cluster.pods.get("p").logs().split()
    assert (inside, outside == "0", found) == ("0", host_users, count)


def test_hooks_write_to_the_output_of_the_main_program(cluster: Cluster) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo stopping > /proc/1/fd/1; sleep 5"]}}}
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", "echo started; sleep 1000"], "lifecycle": hook}
    run(cluster, pod("p", containers=[container]))
    cluster.delete("pods", "p")
    cluster.settle()
    assert cluster.pods.get("p").logs() == "started\nstopping\n"
