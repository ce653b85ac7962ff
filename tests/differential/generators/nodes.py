"""Random stories of kubelets: what the node authorizer lets them read and write, and what NodeRestriction keeps from them.

The server needs `--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction`.
"""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, STRATEGIC, Client
from tests.differential.definitions import DRY
from tests.differential.pacing import until
from tests.differential.random_stories import Steady
from tests.differential.steps import AUTHZ

# fmt: off

Object = dict[str, Any]
_CONTAINER = {"name": "c", "image": "i"}


def _volume(rng: Steady) -> Object:
    return {"name": "v", **rng.choice([
        {"secret": {"secretName": "s"}}, {"configMap": {"name": "m"}}, {"persistentVolumeClaim": {"claimName": "claim"}}, {"projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "m"}}]}},
        {"csi": {"driver": "a.b", "nodePublishSecretRef": {"name": "s"}}}, {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}}}, {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}, {"emptyDir": {}},
    ])}


def _pod(rng: Steady, name: str, node: str) -> Object:
    spec: Object = {"containers": [{**_CONTAINER, **rng.choice([{}, {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}}]}, {"envFrom": [{"configMapRef": {"name": "m2"}}]}])}]}
    if rng.random() < 0.8:
        spec["nodeName"] = node
    if rng.random() < 0.6:
        spec["volumes"] = [_volume(rng)]
    if rng.random() < 0.4:
        spec["serviceAccountName"] = "sa"
    if rng.random() < 0.3:
        spec["imagePullSecrets"] = [{"name": "s3"}]
    if rng.random() < 0.2:
        spec["resourceClaims"] = [{"name": "r", "resourceClaimName": "rc"}]
    return {"metadata": {"name": name}, "spec": spec}


def tell_nodes(client: Client, rng: Steady) -> None:
    """Two nodes with pods that name secrets, config maps, claims and accounts; one of the kubelets reads and writes."""
    node, other = client.name("n"), client.name("other")
    for name in (node, other):
        client.post("/api/v1/nodes", {"metadata": {"name": name}}, silent=True)
    core = f"/api/v1/namespaces/{client.ns}"
    for plural, names in (("secrets", ("s", "s2", "s3", "s4")), ("configmaps", ("m", "m2", "m3"))):
        for name in names:
            client.post(f"{core}/{plural}", {"metadata": {"name": name}}, silent=True)
    client.post(f"{core}/serviceaccounts", {"metadata": {"name": "sa"}}, silent=True)
    client.post(f"{core}/persistentvolumeclaims", {"metadata": {"name": "claim"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}, "volumeName": client.name("pv")}}, silent=True)
    client.post("/api/v1/persistentvolumes", {"metadata": {"name": client.name("pv")}, "spec": {"capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "a.b", "volumeHandle": "h", "nodePublishSecretRef": {"name": "s4", "namespace": client.ns}}, "claimRef": {"name": "claim", "namespace": client.ns}}}, silent=True)
    for number in range(3):
        client.post(f"{core}/pods", _pod(rng, f"p{number}", rng.choice([node, node, other])), silent=True)
    client.post(f"{core}/pods", {"metadata": {"name": "last"}, "spec": {"nodeName": node, "containers": [_CONTAINER], "volumes": [{"name": "v", "configMap": {"name": client.name("mark")}}]}}, silent=True)
    who = {"Impersonate-User": f"system:node:{node}", "Impersonate-Group": "system:nodes"}
    marked = {"spec": {"user": f"system:node:{node}", "groups": ["system:nodes"], "resourceAttributes": {"namespace": client.ns, "verb": "get", "resource": "configmaps", "name": client.name("mark")}}}
    until(lambda: client.post(f"{AUTHZ}/subjectaccessreviews", marked, silent=True).get("status", "allowed"), 10)
    try:
        for _ in range(22):
            _act(client, rng, who, node, other)
    finally:
        for path in (f"/api/v1/nodes/{node}", f"/api/v1/nodes/{other}", f"/api/v1/persistentvolumes/{client.name('pv')}"):
            client.delete(path, silent=True)


def _act(client: Client, rng: Steady, who: dict[str, str], node: str, other: str) -> None:
    core = f"/api/v1/namespaces/{client.ns}"
    roll = rng.random()
    if roll < 0.4:
        plural = rng.choice(["secrets", "configmaps", "persistentvolumeclaims", "serviceaccounts", "pods", "services", "endpoints"])
        name = rng.choice({"secrets": ["s", "s2", "s3", "s4", "absent"], "configmaps": ["m", "m2", "m3"], "persistentvolumeclaims": ["claim", "p0-v"], "serviceaccounts": ["sa", "default"]}.get(plural, ["p0", "p1", "p2", ""]))
        query = rng.choice([None, None, {"fieldSelector": f"metadata.name={name}"}, {"fieldSelector": f"spec.nodeName={node}"}, {"fieldSelector": f"spec.nodeName={other}"}])
        path = f"{core}/{plural}" + (f"/{name}" if name and (query is None or rng.random() < 0.3) else "")
        if query and rng.random() < 0.3:
            client.watch(path, {**query, "timeoutSeconds": "1"}, headers=who)
        else:
            client.get(path, query, headers=who)
    elif roll < 0.55:
        for path in rng.choice([[f"/api/v1/nodes/{node}", f"/api/v1/nodes/{other}"], ["/api/v1/nodes"], [f"/api/v1/persistentvolumes/{client.name('pv')}"], ["/api/v1/pods"], [f"/apis/storage.k8s.io/v1/csinodes/{node}", f"/apis/storage.k8s.io/v1/csinodes/{other}"], [f"/apis/resource.k8s.io/v1/namespaces/{client.ns}/resourceclaims/rc"], ["/apis/storage.k8s.io/v1/volumeattachments/x"], [f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}", f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{other}"], [f"{core}/secrets/s/nope"], ["/apis/certificates.k8s.io/v1/certificatesigningrequests/x"]]):
            client.get(path, rng.choice([None, {"fieldSelector": f"metadata.name={node}"}]) if path.endswith(("nodes", "pods")) else None, headers=who)
    elif roll < 0.7:
        name = rng.choice(["p0", "p1", "p2", "last", "absent"])
        rng.choice([
            lambda: client.patch(f"{core}/pods/{name}/status", {"status": {"phase": "Running"}}, STRATEGIC, DRY, headers=who), lambda: client.delete(f"{core}/pods/{name}", None, DRY, headers=who), lambda: client.patch(f"{core}/pods/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE, DRY, headers=who),
            lambda: client.post(f"{core}/pods/{name}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}, DRY, headers=who), lambda: client.patch(f"{core}/pods/{name}/status", {"metadata": {"labels": {"a": "b"}}}, MERGE, DRY, headers=who), lambda: client.delete(f"{core}/pods", None, DRY, headers=who),
        ])()
    elif roll < 0.85:
        target = rng.choice([node, node, other])
        change = rng.choice([{"metadata": {"labels": {"a": "b"}}}, {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}}, {"metadata": {"labels": {"kubernetes.io/x": "y"}}}, {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, {"spec": {"unschedulable": True}}, {"status": {"capacity": {"cpu": "1"}}}, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]}}, {"metadata": {"annotations": {"a": "b"}}}])
        client.patch(f"/api/v1/nodes/{target}{rng.choice(['', '/status'])}", change, rng.choice([MERGE, STRATEGIC]), DRY, headers=who)
        if rng.random() < 0.3:
            client.delete(f"/api/v1/nodes/{target}", None, DRY, headers=who)
    else:
        uid = client.get(f"{core}/pods/p0", silent=True).uid
        rng.choice([
            lambda: client.post(f"{core}/serviceaccounts/sa/token", {"spec": {"audiences": ["a"], "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p0", "uid": uid}}}, DRY, headers=who, silent=True),
            lambda: client.post(f"{core}/serviceaccounts/default/token", {"spec": {}}, DRY, headers=who),
            lambda: client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "x", "nonResourceAttributes": {"path": "/x", "verb": "get"}}}, headers=who),
            lambda: client.post(f"{core}/events", {"metadata": {"name": "e"}, "involvedObject": {"namespace": client.ns}}, DRY, headers=who),
            lambda: client.post(f"{core}/secrets", {"metadata": {"name": "x"}}, DRY, headers=who),
            lambda: client.post("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", {"metadata": {"name": rng.choice([node, other])}}, DRY, headers=who),
            lambda: client.post("/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": client.name("s")}, "spec": {"driver": "a.b", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}, "nodeName": rng.choice([node, other])}}, DRY, headers=who),
            lambda: client.post("/apis/storage.k8s.io/v1/csinodes", {"metadata": {"name": rng.choice([node, other])}, "spec": {"drivers": []}}, DRY, headers=who),
            lambda: client.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": client.ns}}, headers=who),
        ])()
