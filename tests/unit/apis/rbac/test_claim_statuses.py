"""Rights to change the status of ResourceClaims: the answers of kube-apiserver 1.36 (DRAResourceClaimGranularStatusAuthorization)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import ApiError, Cluster

Object = dict[str, Any]

ACCOUNT = "system:serviceaccount:default:drv"
NODE_NAME = "authentication.kubernetes.io/node-name"
OF_DEVICES = 'changing status.devices requires resource="resourceclaims/driver", verb="['
IN_DEFAULT = 'resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "default"'
TO_BIND = (
    "status.allocation: Forbidden: "
    'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="update" permission: '
    'resourceclaims.resource.k8s.io is forbidden: User "{}" cannot update resource "resourceclaims/binding" '
    'in API group "resource.k8s.io" at the cluster scope'
)
DEVICE = {"driver": "drv.example.com", "pool": "p", "device": "d"}
OTHER = {**DEVICE, "driver": "a.example.com"}
ALLOCATION: Object = {
    "devices": {"results": [{"request": "r", **DEVICE}, {"request": "r", **OTHER}]},
    "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]},
}
USERS = [{"resource": "pods", "name": "p", "uid": "1"}]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(version="1.36", profile="envtest", authorization_mode="RBAC") as made:
        grant(made, "base", ["resourceclaims", "resourceclaims/status"], ["get", "update", "patch"])
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "k"}, "spec": spec}
        made.create(claim)
        made.update({**made.get("resourceclaims", "k"), "status": {"allocation": ALLOCATION}}, subresource="status")
        yield made


def grant(cluster: Cluster, name: str, resources: list[str], verbs: list[str], names: list[str] | None = None) -> None:
    """Lets alice and the account do something with claims."""
    group, kind = "rbac.authorization.k8s.io", "ClusterRole"
    rule: Object = {"apiGroups": ["resource.k8s.io"], "resources": resources, "verbs": verbs, "resourceNames": names or []}
    cluster.create({"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": name}, "rules": [rule]})
    subjects = [
        {"kind": "User", "name": "alice", "apiGroup": group},
        {"kind": "ServiceAccount", "name": "drv", "namespace": "default"},
    ]
    reference = {"apiGroup": group, "kind": kind, "name": name}
    binding = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}}
    cluster.create({**binding, "roleRef": reference, "subjects": subjects})


def change(cluster: Cluster, user: str, status: Object, node: str = "") -> str:
    """Changes the status; returns the errors, "" for none."""
    client = cluster.as_user(user, extra={NODE_NAME: [node]} if node else {})
    try:
        client.update({**cluster.get("resourceclaims", "k"), "status": status}, subresource="status")
    except ApiError as error:
        return str(error).removeprefix('ResourceClaim.resource.k8s.io "k" is invalid: ')
    return ""


def of_driver(user: str, driver: str, *verbs: str) -> str:
    denied = f'resourceclaims.resource.k8s.io "{driver}" is forbidden: User "{user}" cannot {verbs[0]} {IN_DEFAULT}'
    return f'status.devices: Forbidden: {OF_DEVICES}{" ".join(verbs)}]" permission: {denied}'


@pytest.mark.parametrize("user", ["alice", ACCOUNT])
def test_allocation_and_users_need_the_right_to_bind(cluster: Cluster, user: str) -> None:
    status = {"allocation": ALLOCATION, "reservedFor": USERS}
    assert change(cluster, user, {}) == TO_BIND.format(user)
    assert change(cluster, user, status) == TO_BIND.format(user)
    grant(cluster, "more", ["resourceclaims/binding"], ["update"])
    assert change(cluster, user, status) == ""


@pytest.mark.parametrize(
    ("user", "node", "verbs"),
    [
        ("alice", "", ["arbitrary-node:update"]),
        (ACCOUNT, "", ["arbitrary-node:update"]),
        (ACCOUNT, "n2", ["arbitrary-node:update"]),
        (ACCOUNT, "n1", ["associated-node:update", "arbitrary-node:update"]),
    ],
)
def test_devices_need_the_right_of_their_driver(cluster: Cluster, user: str, node: str, verbs: list[str]) -> None:
    status = {"allocation": ALLOCATION, "devices": [{**DEVICE, "conditions": []}, OTHER]}
    errors = [of_driver(user, driver, *verbs) for driver in ("a.example.com", "drv.example.com")]
    assert change(cluster, user, status, node) == f"[{', '.join(errors)}]"
    grant(cluster, "more", ["resourceclaims/driver"], [verbs[0]], ["drv.example.com"])
    assert change(cluster, user, status, node) == errors[0]
    grant(cluster, "most", ["resourceclaims/driver"], [verbs[-1]])
    assert change(cluster, user, status, node) == ""
