"""A living cluster is exported and loaded into another one: what the first has assigned, the second assigns anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.powers.export import as_yaml

Object = dict[str, Any]
REQUEST = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def pod(*command: str, **members: Any) -> Object:
    return {"containers": [{"name": "c", "image": "busybox", "command": list(command)}], **members}


def workloads(namespace: str) -> Iterator[Object]:
    def made(api_version: str, kind: str, name: str, **members: Any) -> Object:
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **members}

    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    yield made("batch/v1", "Job", "job", spec={"template": {"spec": pod("sleep", "3600", restartPolicy="Never")}})
    for kind, more in (("Deployment", {"replicas": 2}), ("StatefulSet", {"serviceName": "web"}), ("DaemonSet", {})):
        template = {"metadata": {"labels": {"of": kind}}, "spec": pod("sleep", "3600")}
        spec = {"selector": {"matchLabels": {"of": kind}}, "template": template, **more}
        yield made("apps/v1", kind, "web", spec=spec)
    yield made("v1", "PersistentVolumeClaim", "data", spec=REQUEST)
    yield made("v1", "Service", "web", spec={"selector": {"of": "Deployment"}, "ports": [{"port": 80}]})
    yield made("v1", "Service", "headless", spec={"clusterIP": "None", "ports": [{"port": 80}]})


@pytest.fixture(scope="module")
def exported() -> bytes:
    """The export of a cluster with equal workloads in two namespaces, whose Services have other addresses."""
    with Cluster(service_cluster_ip_range="10.96.0.0/12") as cluster:
        for namespace in ("a", "b"):
            for obj in workloads(namespace):
                cluster.create(obj)
        cluster.settle(60)
        token = {"name": "token", "namespace": "a", "annotations": {"kubernetes.io/service-account.name": "default"}}
        cluster.create({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": token})
        cluster.settle(60)
        return as_yaml(cluster.export())


def check_loaded(cluster: Cluster) -> None:
    cluster.settle(60)
    assert {claim["status"]["phase"] for claim in cluster.list("pvc")} == {"Bound"}
    assert {volume["status"]["phase"] for volume in cluster.list("pv")} == {"Bound"}
    pods = cluster.list("pods")
    assert len(pods) == 10, [one["metadata"]["name"] for one in pods]  # no controller has made another one
    assert {one["status"]["phase"] for one in pods} == {"Running"}
    for one in pods:
        (owner,) = one["metadata"]["ownerReferences"]
        resource = {"Job": "jobs.batch"}.get(owner["kind"], f"{owner['kind']}.apps")
        assert cluster.get(resource, owner["name"], namespace=one["metadata"]["namespace"])["metadata"]["uid"] == owner["uid"]
    assert {job["status"]["active"] for job in cluster.list("jobs")} == {1}
    services = {(one["metadata"]["namespace"], one["metadata"]["name"]): one["spec"]["clusterIP"] for one in cluster.list("svc")}
    assert services["a", "web"].startswith("10.0.") and services["a", "headless"] == "None"
    account = cluster.get("serviceaccounts", "default", namespace="a")
    secret = cluster.get("secrets", "token", namespace="a")
    assert secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == account["metadata"]["uid"]


def test_fresh_cluster_begins_with_an_export(exported: bytes) -> None:
    with Cluster(load=exported.decode()) as cluster:
        check_loaded(cluster)


def test_running_cluster_loads_an_export(exported: bytes) -> None:
    with Cluster() as cluster:
        cluster.load(exported)
        check_loaded(cluster)


def test_export_has_nothing_that_every_cluster_makes(exported: bytes) -> None:
    assert b"10.96." not in exported
    assert b"kind: ServiceCIDR" not in exported and b"kind: IPAddress" not in exported
    assert b"automanaged" not in exported and b"bind-completed" not in exported and b"controller-uid" in exported  # of pods
