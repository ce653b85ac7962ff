"""Kubelets: what the Node authorizer lets them read, and what NodeRestriction keeps them from writing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.cluster.testing.object_client import ObjectClient
from fakekube.controllers.client import ApiError

POD = {
    "serviceAccountName": "bot",
    "nodeName": "n1",
    "imagePullSecrets": [{"name": "pull"}],
    "containers": [
        {"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "env"}}, {"configMapRef": {"name": "settings"}}]}
    ],
    "volumes": [
        {"name": "a", "secret": {"secretName": "mounted"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "c", "projected": {"sources": [{"serviceAccountToken": {"audience": "vault", "path": "t"}}]}},
    ],
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster(profile="apiserver", authorization_mode="Node,RBAC", enable_admission_plugins="NodeRestriction")
    for name in ("n1", "n2"):
        made.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    for name in ("pull", "env", "mounted", "other", "volume"):
        made.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
    made.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}})
    made.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bot"}})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv"}
    made.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"}, "spec": claim})
    made.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "claimRef": {"namespace": "default", "name": "claim"},
                "csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"name": "volume", "namespace": "default"}},
            },
        }
    )
    made.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mine"}, "spec": POD})
    made.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "theirs"},
            "spec": {"nodeName": "n2", "containers": POD["containers"]},
        }
    )
    yield made
    made.stop()


@pytest.fixture
def kubelet(cluster: Cluster) -> ObjectClient:
    return cluster.as_user("system:node:n1", groups=["system:nodes"])


def refusal(call: Any) -> str:
    with pytest.raises(ApiError) as caught:
        call()
    assert caught.value.code == 403
    return str(caught.value)


@pytest.mark.parametrize(
    ("plural", "name"),
    [
        ("secrets", "pull"),
        ("secrets", "env"),
        ("secrets", "mounted"),
        ("secrets", "volume"),
        ("configmaps", "settings"),
        ("persistentvolumeclaims", "claim"),
        ("persistentvolumes", "pv"),
        ("serviceaccounts", "bot"),
        ("pods", "mine"),
        ("nodes", "n1"),
    ],
)
def test_kubelet_can_read_objects_related_to_its_node(kubelet: ObjectClient, plural: str, name: str) -> None:
    assert kubelet.get(plural, name)["metadata"]["name"] == name


@pytest.mark.parametrize(
    ("plural", "name", "reason"),
    [
        ("secrets", "other", "no relationship found between node 'n1' and this object"),
        ("pods", "theirs", "no relationship found between node 'n1' and this object"),
        ("nodes", "n2", "node 'n1' cannot read 'n2', only its own Node object"),
        ("leases", "n1", 'can only access leases in the "kube-node-lease" system namespace'),
    ],
)
def test_kubelet_cannot_read_objects_of_other_nodes(kubelet: ObjectClient, plural: str, name: str, reason: str) -> None:
    assert refusal(lambda: kubelet.get(plural, name)).endswith(reason)


def test_kubelet_pod_lists_require_a_node_name_field_selector(kubelet: ObjectClient) -> None:
    assert [pod["metadata"]["name"] for pod in kubelet.list("pods", field_selector="spec.nodeName=n1")] == ["mine"]
    assert "can only list/watch pods with spec.nodeName field selector" in refusal(lambda: kubelet.list("pods"))
    assert refusal(lambda: kubelet.list("pods", field_selector="spec.nodeName=n2"))


def test_kubelet_loses_access_to_a_secret_when_its_pod_is_deleted(cluster: Cluster, kubelet: ObjectClient) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late"}})
    assert refusal(lambda: kubelet.get("secrets", "late"))
    volume = {"name": "v", "secret": {"secretName": "late"}}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late"}, "spec": {**POD, "volumes": [volume]}})
    assert kubelet.get("secrets", "late")
    cluster.delete("pods", "late", gracePeriodSeconds=0)
    assert refusal(lambda: kubelet.get("secrets", "late"))


def test_kubelet_can_modify_only_its_own_node(kubelet: ObjectClient) -> None:
    kubelet.patch("nodes", "n1", {"metadata": {"labels": {"a": "b", "node.kubernetes.io/x": "y"}}})
    kubelet.patch("nodes", "n1", {"status": {"phase": "Running"}}, subresource="status")
    labels = {"metadata": {"labels": {"k8s.io/b": "1", "node-restriction.kubernetes.io/a": "1"}}}
    assert refusal(lambda: kubelet.patch("nodes", "n1", labels)).endswith(
        "is not allowed to modify labels: k8s.io/b, node-restriction.kubernetes.io/a"
    )
    assert 'is not allowed to modify node "n2"' in refusal(lambda: kubelet.patch("nodes", "n2", {"metadata": {}}))
    taints = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    assert "is not allowed to modify taints" in refusal(lambda: kubelet.patch("nodes", "n1", taints))


def test_kubelet_can_create_only_mirror_pods(kubelet: ObjectClient) -> None:
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": "n1",
        "uid": kubelet.get("nodes", "n1")["metadata"]["uid"],
        "controller": True,
    }
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mirror", "annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [owner]},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    }
    kubelet.create(pod)
    kubelet.delete("pods", "mirror", gracePeriodSeconds=0)
    for change, reason in (
        ({"metadata": {"name": "m", "ownerReferences": [owner]}}, "can only create mirror pods"),
        ({"metadata": {**pod["metadata"], "ownerReferences": []}}, "with an owner reference set to itself"),
        ({"metadata": {**pod["metadata"], "ownerReferences": [{**owner, "uid": "x"}]}}, "UID mismatch"),
        ({"spec": {**pod["spec"], "nodeName": "n2"}}, "with spec.nodeName set to itself"),
        ({"spec": {**pod["spec"], "volumes": POD["volumes"][:1]}}, "can not create pods that reference secrets"),
    ):
        assert reason in refusal(lambda changed={**pod, **change}: kubelet.create(changed))
    assert "can only delete pods" in refusal(lambda: kubelet.delete("pods", "theirs"))


@pytest.mark.parametrize(
    ("audiences", "pod", "reason"),
    [
        (["vault"], "mine", ""),
        (["other"], "mine", 'csidriver.storage.k8s.io "d" not found'),
        (["a", "b"], "mine", "node may only request 0 or 1 audiences"),
        ([], "theirs", "node requested token bound to a pod scheduled on a different node"),
    ],
)
def test_kubelet_token_requests_are_bound_to_its_pods(
    cluster: Cluster, kubelet: ObjectClient, audiences: list[str], pod: str, reason: str
) -> None:
    uid = cluster.get("pods", pod)["metadata"]["uid"]
    spec = {"audiences": audiences, "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = "/api/v1/namespaces/default/serviceaccounts/bot/token"
    if not reason:
        assert kubelet._client.call("POST", path, body)["status"]["token"]
    else:
        assert reason in refusal(lambda: kubelet._client.call("POST", path, body))


def test_rules_review_of_a_node_is_incomplete(kubelet: ObjectClient) -> None:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}}
    status = kubelet.create(review)["status"]
    assert (status["incomplete"], status["evaluationError"]) == (True, "node authorizer does not support user rule resolution")


@pytest.mark.parametrize(
    ("mode", "allowed", "reason"),
    [
        ("AlwaysAllow", True, ""),
        ("AlwaysDeny", False, "alwaysdeny: Everything is forbidden."),
        ("Node", False, ""),
        ("RBAC", False, ""),
    ],
)
def test_authorization_modes(mode: str, allowed: bool, reason: str) -> None:
    cluster = Cluster(profile="apiserver", authorization_mode=mode)
    if allowed:
        assert cluster.as_user("bob").list("nodes") == []
    else:
        text = refusal(lambda: cluster.as_user("bob").list("nodes"))
        assert text.endswith(f"at the cluster scope: {reason}" if reason else "at the cluster scope")
    assert cluster.list("nodes") == []
