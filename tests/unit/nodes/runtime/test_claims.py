"""Volumes of claims: what pods that use the same one share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


def bind(cluster: Cluster, source: dict[str, Any]) -> None:
    """Makes a volume with a source, and the claim c that is bound to it."""
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual"}
    volume = {**common, "capacity": {"storage": "1Gi"}, **source}
    claim = {**common, "resources": {"requests": {"storage": "1Gi"}}}
    cluster.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": volume})
    cluster.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": claim})
    cluster.settle()


def start(cluster: Cluster, name: str, **spec: Any) -> None:
    mounts = [{"name": "data", "mountPath": "/data"}]
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1000"], "volumeMounts": mounts}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
    spec = {"containers": [container], "volumes": volumes, **spec}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    cluster.settle()


@pytest.mark.parametrize("source", [{"hostPath": {"path": "/srv/a"}}, {"nfs": {"server": "nfs.example.com", "path": "/"}}])
def test_pods_with_the_same_claim_share_its_files(cluster: Cluster, source: dict[str, Any]) -> None:
    bind(cluster, source)
    start(cluster, "first")
    assert cluster.pods.get("first").exec("echo hello > /data/a").code == 0
    start(cluster, "second")
    assert cluster.pods.get("second").exec("cat /data/a").stdout == "hello\n"
    for name in ("first", "second"):
        cluster.delete("pods", name)
    cluster.settle()
    start(cluster, "third")
    assert cluster.pods.get("third").exec("cat /data/a").stdout == "hello\n", "the files outlive the pods"


def test_a_provisioned_volume_is_reached_from_all_nodes_until_it_is_deleted(cluster: Cluster) -> None:
    cluster.nodes.add("node-2")
    for content in ("one", "two"):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        cluster.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec})
        cluster.settle()
        start(cluster, "first", nodeName="node-1")
        assert cluster.pods.get("first").exec(f"ls /data; echo {content} > /data/a").stdout == ""
        start(cluster, "second", nodeName="node-2")
        assert cluster.pods.get("second").exec("cat /data/a").stdout == f"{content}\n"
        for resource, name in (("pods", "first"), ("pods", "second"), ("persistentvolumeclaims", "c")):
            cluster.delete(resource, name)
        cluster.settle()


def test_netstat_lists_the_ports_of_programs(cluster: Cluster) -> None:
    container = {"name": "main", "image": "agnhost", "args": ["netexec", "--http-port=80"]}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}})
    cluster.settle()
    found = cluster.pods.get("p").exec("netstat -na | grep LISTEN").stdout
    assert found.split() == ["tcp", "0", "0", ":::80", ":::*", "LISTEN"]


def test_a_user_belongs_to_the_groups_of_its_image(cluster: Cluster) -> None:
    security = {"runAsUser": 1000, "supplementalGroups": [60000]}
    container = {"name": "main", "image": "agnhost"}
    for name, policy in (("merge", "Merge"), ("strict", "Strict")):
        context = {**security, "supplementalGroupsPolicy": policy}
        spec = {"containers": [container], "securityContext": context}
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    cluster.settle()
    assert cluster.pods.get("merge").exec("id -G").stdout == "1000 50000 60000\n"
    assert cluster.pods.get("strict").exec("id -G").stdout == "1000 60000\n"


def test_a_local_volume_exists_on_its_node_and_belongs_to_the_group_of_the_pod_that_mounts_it(cluster: Cluster) -> None:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}]}]
    bind(cluster, {"local": {"path": "/srv/a"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}})
    start(cluster, "waiting")
    assert cluster.get("pods", "waiting")["status"]["phase"] == "Pending"
    (event,) = [one for one in cluster.list("events") if one["reason"] == "FailedMount"]
    assert event["message"] == 'MountVolume.NewMounter initialization failed for volume "v" : path "/srv/a" does not exist'
    start(cluster, "maker", volumes=[{"name": "data", "hostPath": {"path": "/srv/a"}}])
    start(cluster, "first", securityContext={"fsGroup": 1234})
    found = cluster.pods.get("first").exec("echo x > /data/f && stat -c '%g %a' /data /data/f").stdout
    assert found == "1234 2775\n1234 644\n"
    start(cluster, "second", securityContext={"fsGroup": 4321})
    assert cluster.pods.get("second").exec("stat -c '%g %a' /data /data/f").stdout == "4321 2775\n4321 664\n"
