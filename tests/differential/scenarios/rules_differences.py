"""Changes of pods, claims and volumes that 1.33 refuses with the difference of two Go values (go-cmp)."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, STRATEGIC, Client
from tests.differential.registry import scenario

DRY = {"dryRun": "All"}
CONTAINER: dict[str, Any] = {
    "name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "command": ["a", "b"],
    "resources": {"limits": {"memory": "128Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}},
    "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
}  # fmt: skip
POD: dict[str, Any] = {
    "containers": [CONTAINER], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "configMap": {"name": "m"}}],
    "nodeSelector": {"a": "b", "c": "d"}, "tolerations": [{"key": "k", "operator": "Exists"}],
}  # fmt: skip
CHANGES_OF_PODS: tuple[dict[str, Any], ...] = (
    {"hostNetwork": True}, {"restartPolicy": "Never"}, {"nodeName": "n"}, {"hostname": "h", "subdomain": "s"}, {"tolerations": []},
    {"priority": 1}, {"nodeSelector": {"a": "x", "e": "f"}}, {"nodeSelector": None}, {"securityContext": {"runAsUser": 0, "fsGroup": 5}},
    {"containers": [{**CONTAINER, "command": ["b", "c", "d"]}]}, {"containers": [{**CONTAINER, "args": ["x" * 100]}]},
    {"containers": [{**CONTAINER, "env": [{"name": "B", "value": "3"}, {"name": "C"}]}]}, {"containers": [CONTAINER, {"name": "d", "image": "j"}]},
    {"containers": [{**CONTAINER, "livenessProbe": {"tcpSocket": {"port": "p"}}}]},
    {"containers": [{**CONTAINER, "resources": {"limits": {"memory": "128Mi", "a.b/c": "1"}, "requests": {"cpu": "200m", "a.b/c": "1"}}}]},
    {"containers": [{**CONTAINER, "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "n", "protocol": "UDP"}]}]},
    {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "2Gi", "medium": "Memory"}}]}, {"volumes": [*POD["volumes"], {"name": "x", "hostPath": {"path": "/"}}]},
    {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchFields": []}}]}}},
    {"readinessGates": [{"conditionType": "a"}], "overhead": {"cpu": "1"}}, {"schedulerName": "y" * 40, "terminationGracePeriodSeconds": 5},
)  # fmt: skip


@scenario
def pods(client: Client) -> None:
    """Changes of a pod's spec."""
    path = f"/api/v1/namespaces/{client.ns}/pods"
    client.post(path, {"metadata": {"name": "p"}, "spec": POD})
    for change in CHANGES_OF_PODS:
        client.patch(f"{path}/p", {"spec": change}, MERGE, DRY)
    client.patch(f"{path}/p", {"spec": {"containers": [{"name": "c", "image": "j", "tty": True}]}}, STRATEGIC, DRY)


@scenario
def volumes_and_claims(client: Client) -> None:
    """Changes of a claim's spec, and of the source of a volume."""
    claims, volumes, name = (
        f"/api/v1/namespaces/{client.ns}/persistentvolumeclaims",
        "/api/v1/persistentvolumes",
        client.name("v"),
    )
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    client.post(claims, {"metadata": {"name": "c"}, "spec": spec})
    for change in (
        {"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}, {"volumeName": "v"}, {"storageClassName": "s"}, {"volumeMode": "Block"},
        {"selector": {"matchLabels": {"a": "b"}}}, {"resources": {"requests": {"storage": "2Gi"}}}, {"dataSource": {"kind": "K", "name": "n"}},
    ):  # fmt: skip
        client.patch(f"{claims}/c", {"spec": change}, MERGE, DRY)
    for source, changes in (
        ({"hostPath": {"path": "/a"}}, ({"hostPath": {"path": "/b", "type": "Directory"}}, {"hostPath": None, "nfs": {"server": "s", "path": "/"}})),
        ({"cephfs": {"monitors": ["a"]}}, ({"cephfs": {"monitors": ["a", "b"], "secretRef": {"name": "s"}}},)),
    ):  # fmt: skip
        body = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
        client.post(volumes, {"metadata": {"name": name}, "spec": body})
        for change in changes:
            client.patch(f"{volumes}/{name}", {"spec": change}, MERGE, DRY)
        client.delete(f"{volumes}/{name}")
        name += "x"
