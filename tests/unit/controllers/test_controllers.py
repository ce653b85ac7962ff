"""What controllers do in a cluster: namespaces get what each has, and are emptied before they end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import ApiError, Cluster
from fakekube.base.threads import WORKERS

ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ANY}}],
    },
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    cluster.settle()
    yield cluster
    cluster.stop()


def thing(kind: str, name: str, *finalizers: str, api_version: str = "v1") -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "team", "finalizers": list(finalizers)},
    }


def is_there(cluster: Cluster, resource: str, name: str, namespace: str | None = None) -> bool:
    try:
        cluster.get(resource, name, namespace=namespace)
    except ApiError as error:
        assert error.code == 404
        return False
    return True


@pytest.mark.parametrize("namespace", ["default", "kube-system", "team"])
def test_every_namespace_gets_a_service_account_and_the_root_ca(cluster: Cluster, namespace: str) -> None:
    assert is_there(cluster, "serviceaccounts", "default", namespace)
    assert cluster.get("configmaps", "kube-root-ca.crt", namespace=namespace)["data"].keys() == {"ca.crt"}


@pytest.mark.parametrize(("resource", "name"), [("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")])
def test_a_deleted_default_object_is_recreated(cluster: Cluster, resource: str, name: str) -> None:
    before = cluster.get(resource, name, namespace="team")["metadata"]["uid"]
    cluster.delete(resource, name, namespace="team")
    cluster.settle()
    assert cluster.get(resource, name, namespace="team")["metadata"]["uid"] != before


def test_a_changed_root_ca_config_map_is_corrected(cluster: Cluster) -> None:
    right = cluster.get("configmaps", "kube-root-ca.crt", namespace="team")["data"]
    cluster.patch("configmaps", "kube-root-ca.crt", {"data": {"ca.crt": "wrong"}}, namespace="team")
    cluster.settle()
    assert cluster.get("configmaps", "kube-root-ca.crt", namespace="team")["data"] == right


def test_a_namespace_is_deleted_with_its_content(cluster: Cluster) -> None:
    cluster.create(DEFINITION)
    cluster.create(thing("ConfigMap", "one"))
    cluster.create(thing("Widget", "one", api_version="example.com/v1"))
    cluster.delete("namespaces", "team")
    assert cluster.get("namespaces", "team")["status"]["phase"] == "Terminating"
    cluster.settle()
    assert not is_there(cluster, "namespaces", "team")
    assert cluster.list("widgets") == []
    assert not is_there(cluster, "configmaps", "one", "team")


@pytest.mark.parametrize(
    ("kind", "api_version", "resource", "counted"),
    [("ConfigMap", "v1", "configmaps", "configmaps."), ("Widget", "example.com/v1", "widgets", "widgets.example.com")],
)
def test_finalizers_of_content_keep_a_namespace(
    cluster: Cluster, kind: str, api_version: str, resource: str, counted: str
) -> None:
    cluster.create(DEFINITION)
    cluster.create(thing(kind, "held", "example.com/hold", api_version=api_version))
    cluster.delete("namespaces", "team")
    cluster.settle()
    conditions = {c["type"]: c for c in cluster.get("namespaces", "team")["status"]["conditions"]}
    remaining = conditions["NamespaceContentRemaining"]
    assert (remaining["status"], remaining["message"]) == (
        "True",
        f"Some resources are remaining: {counted} has 1 resource instances",
    )
    assert conditions["NamespaceFinalizersRemaining"]["message"] == (
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    )
    with pytest.raises(ApiError, match="because it is being terminated"):
        cluster.create(thing("ConfigMap", "late"))
    cluster.patch(resource, "held", {"metadata": {"finalizers": None}}, namespace="team")
    cluster.settle()
    assert not is_there(cluster, "namespaces", "team")


def test_a_deleted_namespace_can_be_created_again(cluster: Cluster) -> None:
    cluster.delete("namespaces", "team")
    cluster.settle()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    cluster.settle()
    assert is_there(cluster, "serviceaccounts", "default", "team")


def test_a_fork_has_controllers_of_its_own(cluster: Cluster) -> None:
    twin = cluster.fork()
    twin.delete("namespaces", "team")
    twin.settle()
    assert not is_there(twin, "namespaces", "team")
    assert is_there(cluster, "serviceaccounts", "default", "team")
    cluster.delete("serviceaccounts", "default", namespace="team")
    cluster.settle()
    assert is_there(cluster, "serviceaccounts", "default", "team")
    twin.stop()


def test_controllers_continue_after_a_restore(cluster: Cluster) -> None:
    snapshot = cluster.snapshot()
    cluster.delete("namespaces", "team")
    cluster.settle()
    cluster.restore(snapshot)
    cluster.delete("serviceaccounts", "default", namespace="team")
    cluster.settle()
    assert is_there(cluster, "serviceaccounts", "default", "team")


def test_no_thread_works_for_a_fresh_cluster_before_its_controllers_have_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster():  # builds the base state of the process, for which a thread may work
        pass
    lent: list[object] = []
    monkeypatch.setattr("fakekube.controllers.manager.WORKERS.run", lambda task, run=WORKERS.run: (lent.append(task), run(task)))
    with Cluster() as cluster:
        cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "nobody-watches", "namespace": "default"}})
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}})
        assert not lent
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        assert len(lent) == 1
        cluster.wait_for("serviceaccounts", "default", namespace="team")


def test_objects_written_before_the_start_are_reconciled() -> None:
    cluster = Cluster()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    with cluster:
        cluster.wait_for("serviceaccounts", "default", namespace="team")


def test_a_restore_starts_no_controllers_of_resources_without_objects(caplog: pytest.LogCaptureFixture) -> None:
    """Some, such as those of alpha resources, cannot start: their resource is not served."""
    with Cluster() as cluster:
        cluster.restore(cluster.snapshot())
        cluster.settle()
    assert caplog.messages == []


def test_a_restore_starts_controllers_that_had_no_work_yet() -> None:
    other = Cluster()
    other.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    snapshot = other.snapshot()
    with Cluster() as cluster:
        cluster.restore(snapshot)
        cluster.wait_for("serviceaccounts", "default", namespace="team")


def test_clusters_with_and_without_tls_publish_their_own_root_ca() -> None:
    plain, secure = Cluster(), Cluster(tls=True)
    published = [
        cluster.get("configmaps", "kube-root-ca.crt", namespace="default")["data"]["ca.crt"] for cluster in (plain, secure)
    ]
    assert published[0] == ""
    assert published[1].startswith("-----BEGIN CERTIFICATE-----")


def claim(name: str, **metadata: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": "team", **metadata}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def pod(*volumes: dict[str, Any], **spec: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "main"}], "volumes": list(volumes), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "team"}, "spec": spec}


NAMED = {"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}}
TEMPLATE = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim("web-data")["spec"]}}}


def test_an_unused_claim_is_deleted_at_once(cluster: Cluster) -> None:
    cluster.create(claim("web-data"))
    cluster.create(pod(NAMED))  # is on no node, so that none has the volume
    assert cluster.get("pvc", "web-data", namespace="team")["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    cluster.delete("pvc", "web-data", namespace="team")
    cluster.settle()
    assert not is_there(cluster, "pvc", "web-data", "team")


def test_a_claim_is_deleted_after_the_last_pod_that_uses_it(cluster: Cluster) -> None:
    cluster.create(claim("web-data"))
    cluster.create(pod(NAMED, nodeName="one"))
    cluster.delete("pvc", "web-data", namespace="team")
    cluster.settle()
    assert is_there(cluster, "pvc", "web-data", "team")
    cluster.delete("pods", "web", namespace="team", gracePeriodSeconds=0)
    cluster.settle()
    assert not is_there(cluster, "pvc", "web-data", "team")


@pytest.mark.parametrize("owned", [True, False])
def test_a_claim_of_an_ephemeral_volume_is_deleted_after_its_pod(owned: bool) -> None:
    cluster = Cluster(controllers="*,-ephemeral-volume-controller")
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    cluster.settle()
    uid = cluster.create(pod(TEMPLATE, nodeName="one"))["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": True}
    cluster.create(claim("web-data", ownerReferences=[owner] if owned else []))
    cluster.delete("pvc", "web-data", namespace="team")
    cluster.settle()
    assert is_there(cluster, "pvc", "web-data", "team") is owned
    cluster.stop()


@pytest.mark.parametrize("phase", ["Available", "Bound"])
def test_a_volume_is_deleted_unless_it_is_bound(phase: str) -> None:
    cluster = Cluster(controllers="persistentvolume-protection-controller")
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    cluster.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": spec})
    cluster.patch("pv", "disk", {"status": {"phase": phase}}, subresource="status")
    cluster.delete("pv", "disk")
    cluster.settle()
    assert is_there(cluster, "pv", "disk") is (phase == "Bound")
    cluster.stop()


def test_a_namespace_with_claims_is_deleted(cluster: Cluster) -> None:
    cluster.create(claim("web-data"))
    cluster.delete("namespaces", "team")
    cluster.settle()
    assert not is_there(cluster, "namespaces", "team")
