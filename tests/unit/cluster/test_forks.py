"""The controllers of a fork go on where those of its origin have stopped: they miss no change, whatever it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.base.objects import Object

KINDS = (
    *("pods", "deployments", "replicasets", "statefulsets", "daemonsets", "endpointslices", "nodes", "namespaces"),
    *("persistentvolumeclaims", "persistentvolumes", "resourcequotas", "serviceaccounts", "controllerrevisions"),
)


def template(name: str, **spec: Any) -> Object:
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx"}], **spec}}


def workload(kind: str, name: str, **spec: Any) -> Object:
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template(name), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def claim(name: str, **metadata: Any) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, **metadata}, "spec": spec}


DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "foos", "kind": "Foo"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    },
}


def user_of(name: str) -> Object:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": template("user", volumes=volumes)["spec"]}


def create(*objects: Object) -> Callable[[Cluster], object]:
    return lambda cluster: [cluster.create(obj) for obj in objects]


def delete(resource: str, name: str) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.delete(resource, name)


def a_pod_of(cluster: Cluster, app: str) -> str:
    """Returns the name of a pod with this label."""
    name: str = cluster.list("pods", label_selector=f"app={app}")[0]["metadata"]["name"]
    return name


def delete_a_pod_of(app: str) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.delete("pods", a_pod_of(cluster, app))


STEPS: tuple[Callable[[Cluster], object], ...] = (
    create(DEFINITION),
    create(
        {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "foo"}},
        workload("Deployment", "web", replicas=3),
        workload("StatefulSet", "db", serviceName="db", replicas=2, volumeClaimTemplates=[claim("data")]),
        workload("DaemonSet", "agent"),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 1}]},
        },
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "40"}}},
        claim("c"),
        user_of("c"),
    ),
    delete_a_pod_of("web"),
    delete_a_pod_of("db"),
    lambda cluster: cluster.patch("pods", a_pod_of(cluster, "web"), {"metadata": {"labels": {"app": "x"}}}),
    lambda cluster: cluster.patch("deployments", "web", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}),
    delete_a_pod_of("x"),
    delete("persistentvolumeclaims", "c"),
    delete("pods", "user"),
    lambda cluster: cluster.patch("nodes", "node-2", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}),
    delete("nodes", "node-2"),
    lambda cluster: cluster.clock.advance(minutes=6),
    delete("serviceaccounts", "default"),
    delete("customresourcedefinitions", "foos.example.com"),
    delete("deployments", "web"),
    delete("statefulsets", "db"),
    lambda cluster: cluster.clock.advance(minutes=6),
)


def summary(cluster: Cluster) -> Counter[tuple[str, str]]:
    """Counts the objects of each kind, and what their status says of others."""
    found: Counter[tuple[str, str]] = Counter()
    for kind in KINDS:
        for obj in cluster.list(kind):
            status = obj.get("status") or {}
            said = [status.get("phase"), status.get("readyReplicas"), status.get("numberReady")]
            found[kind, str([*said, len(obj.get("endpoints") or ()), "deletionTimestamp" in obj["metadata"]])] += 1
    return found


@pytest.mark.parametrize("chained", [False, True], ids=["of the cluster", "of each other"])
@pytest.mark.parametrize("version", ["1.33", "1.37"])
def test_controllers_of_forks_do_what_those_of_one_cluster_do(version: str, chained: bool) -> None:
    with Cluster(nodes=2, version=version) as cluster:
        cluster.clock.hold()
        forks: list[Cluster] = []
        try:
            for number, step in enumerate(STEPS):
                origin = forks[-1] if chained and forks else cluster
                forks.append(origin.fork().start())
                for one in (cluster, forks[-1]):
                    step(one)
                    one.settle()
                assert summary(forks[-1]) == summary(cluster), number
        finally:
            for fork in forks:
                fork.stop()


def test_a_controller_goes_on_without_what_is_no_longer_served(caplog: pytest.LogCaptureFixture) -> None:
    with Cluster() as cluster:
        cluster.clock.hold()
        cluster.create(DEFINITION)
        cluster.create(workload("Deployment", "web"))
        cluster.settle()
        cluster.create({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "foo"}})
        cluster.settle()
        with cluster.fork() as fork:
            with fork._manager.pause():  # so that controllers start when the definition is gone
                fork.delete("customresourcedefinitions", "foos.example.com")
                fork.delete("deployments", "web")
            fork.settle()
            assert not fork.list("pods") and not caplog.records
