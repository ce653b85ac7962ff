"""The rules of admission plugins: what a node may write, limits of namespaces, security of pods, references of owners.

The server is started with `--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement,PodTolerationRestriction`.
"""

from __future__ import annotations

import base64
from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.definitions import note
from tests.differential.registry import scenario
from tests.differential.steps import until
from tests.differential.transports import Reply

# fmt: off

DRY = {"dryRun": "All"}
CONTAINER = {"name": "c", "image": "i"}
MIRROR = {"kubernetes.io/config.mirror": "x"}
Object = dict[str, Any]


def kubelet(node: str, **more: str) -> dict[str, str]:
    """A node that may do all that the authorizer is asked; admission is what restricts it."""
    return {"Impersonate-User": f"system:node:{node}", "Impersonate-Group": "system:nodes", **more}


def node_user(c: Client) -> tuple[str, dict[str, str]]:
    """A node and its user, who may do anything by RBAC."""
    node = c.name("n")
    c.post("/api/v1/nodes", {"metadata": {"name": node}}, silent=True)
    subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"system:node:{name}"} for name in (node, c.name("ghost"), c.name("new"), "")]
    binding = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}, "subjects": subjects}
    c.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {"metadata": {"name": node}, **binding}, silent=True)
    who = kubelet(node)
    until(lambda: c.get("/api/v1/namespaces/kube-system", headers=who, silent=True).status == 200, 10)
    return node, who


def forget(c: Client, node: str) -> None:
    c.delete(f"/api/v1/nodes/{node}", silent=True)
    c.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{node}", silent=True)


def pod(name: str, node: str = "", uid: str = "", meta: Object | None = None, **spec: Any) -> Object:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    metadata = {"name": name, **({"annotations": MIRROR, "ownerReferences": [owner]} if uid else {}), **(meta or {})}
    return {"metadata": metadata, "spec": {"containers": [CONTAINER], **({"nodeName": node} if node else {}), **spec}}


@scenario
def nodes_write_pods(c: Client) -> None:
    """A node creates mirror pods of itself, deletes and evicts its own pods, and writes their status (NodeRestriction)."""
    node, who = node_user(c)
    uid = c.get(f"/api/v1/nodes/{node}", silent=True).uid
    pods = f"/api/v1/namespaces/{c.ns}/pods"
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    wrong_owners: list[list[Object]] = [[], [owner, {**owner, "uid": "x", "controller": False}], [{**owner, "kind": "Pod"}], [{**owner, "name": "other"}], [{**owner, "apiVersion": "v2"}], [{**owner, "controller": False}], [{**owner, "blockOwnerDeletion": True}], [{**owner, "uid": "other"}]]
    c.post(pods, pod("m", node, uid), DRY, headers=who)
    c.post(pods, pod("m"), DRY, headers=who)
    c.post(pods, pod("m", node), DRY, headers=who)
    c.post(pods, pod("m", "other", uid), DRY, headers=who)
    for owners in wrong_owners:
        c.post(pods, pod("m", node, uid, {"ownerReferences": owners}), DRY, headers=who)
    projected = [{"configMap": {"name": "a"}}, {"secret": {"name": "a"}}, {"serviceAccountToken": {"path": "a"}}, {"clusterTrustBundle": {"name": "a", "path": "p"}}, {"downwardAPI": {}}]
    sources: list[Object] = [
        {"configMap": {"name": "a"}}, {"secret": {"secretName": "a"}}, {"csi": {"driver": "a.b"}}, {"csi": {"driver": "a.b", "nodePublishSecretRef": {"name": "a"}}}, {"glusterfs": {"endpoints": "a", "path": "b"}}, {"persistentVolumeClaim": {"claimName": "a"}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}}}, {"azureFile": {"secretName": "a", "shareName": "b"}}, {"rbd": {"monitors": ["a"], "image": "b"}}, {"hostPath": {"path": "/a"}}, {"emptyDir": {}}, *({"projected": {"sources": [one]}} for one in projected),
    ]
    for source in sources:
        c.post(pods, pod("m", node, uid, volumes=[{"name": "v", **source}]), DRY, headers=who)
    c.post(pods, pod("m", node, uid, serviceAccountName="default"), DRY, headers=who)
    c.post(pods, pod("m", node, uid, imagePullSecrets=[{"name": "a"}]), DRY, headers=who)
    c.post(pods, pod("m", node, uid, resourceClaims=[{"name": "r", "resourceClaimName": "x"}]), DRY, headers=who)
    c.post(pods, pod("m", node, uid, containers=[{**CONTAINER, "envFrom": [{"configMapRef": {"name": "a"}}]}]), DRY, headers=who)
    ghost = kubelet(c.name("ghost"))
    c.post(pods, pod("m", c.name("ghost"), uid), DRY, headers=ghost)

    c.post(pods, pod("mine", node, meta={"labels": {"a": "b"}}), silent=True)
    c.post(pods, pod("foreign", "other"), silent=True)
    c.post(pods, pod("free"), silent=True)
    for name in ("mine", "foreign", "free", "absent"):
        c.delete(f"{pods}/{name}", None, DRY, headers=who)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        c.post(f"{pods}/{name}/eviction", eviction, DRY, headers=who)
        stored = c.get(f"{pods}/{name}", silent=True).json
        if name == "absent":
            continue
        c.put(f"{pods}/{name}/status", {**stored, "status": {**stored["status"], "phase": "Running"}}, DRY, headers=who)
        c.put(f"{pods}/{name}", stored, DRY, headers=who)
    c.post(f"{pods}/mine/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {}}, DRY, headers=who)
    mine = c.get(f"{pods}/mine", silent=True).json
    c.put(f"{pods}/mine/status", {**mine, "metadata": {**mine["metadata"], "labels": {"a": "c"}}}, DRY, headers=who)
    for more in ({"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "x"}]}, {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}}):
        c.put(f"{pods}/mine/status", {**mine, "status": {**mine["status"], **more}}, DRY, headers=who)
    c.post(f"{pods}/free/binding", {"metadata": {"name": "free"}, "target": {"kind": "Node", "name": node}}, DRY, headers=who)
    c.patch(f"{pods}/mine/resize", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}, "application/strategic-merge-patch+json", DRY, headers=who)
    c.post(pods, pod("m"), DRY, headers=kubelet(""))
    c.delete(f"{pods}?", None, DRY, headers=who)
    forget(c, node)


@scenario
def nodes_write_themselves(c: Client) -> None:
    """A node may create and change itself, but for taints, owners and labels of the system (NodeRestriction)."""
    node, who = node_user(c)
    path = f"/api/v1/nodes/{node}"
    for name, labels, spec in (
        (c.name("other"), {}, {}), (c.name("other"), {"a": "b"}, {"taints": [{"key": "a", "effect": "NoSchedule"}]}), ("", {}, {}),
    ):
        c.post("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "spec": spec}, DRY, headers=who)
    new = c.name("new")
    for labels, spec in (
        ({}, {}), ({"kubernetes.io/hostname": "x"}, {}), ({"node-restriction.kubernetes.io/a": "x", "b": "c", "x.kubernetes.io/z": "y"}, {}), ({"kubelet.kubernetes.io/a": "x"}, {}), ({"node.kubernetes.io/a": "x"}, {}), ({"a.k8s.io/b": "c"}, {}), ({}, {"configSource": {}}), ({}, {"taints": [{"key": "a", "effect": "NoSchedule"}]}),
    ):
        c.post("/api/v1/nodes", {"metadata": {"name": new, "labels": labels}, "spec": spec}, DRY, headers=kubelet(new, **{"Impersonate-Group": "system:nodes"}))
    c.post("/api/v1/nodes", {"metadata": {"name": node, "labels": {"node-restriction.kubernetes.io/a": "x", "k8s.io/b": "c"}}}, DRY, headers=who)
    c.post("/api/v1/nodes", {"metadata": {"name": node}, "spec": {"configSource": {"configMap": {"name": "a", "namespace": "b", "kubeletConfigKey": "c"}}}}, DRY, headers=who)
    stored = c.get(path, silent=True).json
    for meta, spec in (
        ({"labels": {"a": "b"}}, {}), ({"labels": {"node-restriction.kubernetes.io/a": "b"}}, {}), ({}, {"taints": [{"key": "a", "effect": "NoSchedule"}]}), ({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}]}, {}), ({}, {"unschedulable": True}), ({}, {"configSource": {"configMap": {"name": "a", "namespace": "b", "kubeletConfigKey": "c"}}}), ({"labels": {"kubernetes.io/arch": "x", "kubernetes.io/os": "y"}}, {}),
    ):
        c.put(path, {**stored, "metadata": {**stored["metadata"], **meta}, "spec": {**stored.get("spec", {}), **spec}}, DRY, headers=who)
    c.put(f"{path}/status", {**stored, "status": {"capacity": {"cpu": "1"}}}, DRY, headers=who)
    c.patch(f"/api/v1/nodes/{c.name('other')}", {"metadata": {"labels": {"a": "b"}}}, MERGE, DRY, headers=who)
    c.delete(path, None, DRY, headers=who)
    forget(c, node)


@scenario
def nodes_write_what_belongs_to_them(c: Client) -> None:
    """Leases, CSINodes, slices and certificates of a node bear its name; it writes only sizes of claims (NodeRestriction)."""
    node, who = node_user(c)
    core = f"/api/v1/namespaces/{c.ns}"
    lease, leases = {"metadata": {"name": node}, "spec": {}}, "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
    c.post(leases.format("kube-node-lease"), lease, DRY, headers=who)
    c.post(leases.format("kube-node-lease"), {**lease, "metadata": {"name": "other"}}, DRY, headers=who)
    c.post(leases.format(c.ns), lease, DRY, headers=who)
    c.delete(f"{leases.format('kube-node-lease')}/other", None, DRY, headers=who)
    csi = "/apis/storage.k8s.io/v1/csinodes"
    for name in (node, "other"):
        c.post(csi, {"metadata": {"name": name}, "spec": {"drivers": []}}, DRY, headers=who)
        c.delete(f"{csi}/{name}", None, DRY, headers=who)
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    spec = {"driver": "a.b", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}, "devices": []}
    for placed in ({"nodeName": node}, {"nodeName": "other"}, {"allNodes": True}):
        c.post(slices, {"metadata": {"name": c.name("s")}, "spec": {**spec, **placed}}, DRY, headers=who)
    c.post(slices, {"metadata": {"name": c.name("s")}, "spec": {**spec, "nodeName": "other"}}, silent=True)
    c.delete(f"{slices}/{c.name('s')}", None, DRY, headers=who)
    c.delete(f"{slices}/{c.name('s')}", silent=True)

    claim = {"metadata": {"name": "p"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    claims = f"{core}/persistentvolumeclaims"
    c.post(claims, claim, DRY, headers=who)
    c.post(claims, claim, silent=True)
    stored = c.get(f"{claims}/p", silent=True).json
    c.put(f"{claims}/p", stored, DRY, headers=who)
    c.delete(f"{claims}/p", None, DRY, headers=who)
    for state, meta in (({"capacity": {"storage": "1Gi"}}, {}), ({"phase": "Bound"}, {}), ({"accessModes": ["ReadWriteOnce"]}, {}), ({}, {"labels": {"a": "b"}}), ({"conditions": [{"type": "Resizing", "status": "True"}]}, {})):
        c.put(f"{claims}/p/status", {**stored, "metadata": {**stored["metadata"], **meta}, "status": {**stored["status"], **state}}, DRY, headers=who)

    requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    for text in ("eA==", "", base64.b64encode(f"-----BEGIN CERTIFICATE REQUEST-----\n{_REQUEST}\n-----END CERTIFICATE REQUEST-----\n".encode()).decode()):
        for signer in ("kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kube-apiserver-client", "kubernetes.io/kubelet-serving", "a.b/c"):
            body = {"metadata": {"name": c.name("r")}, "spec": {"request": text, "signerName": signer, "usages": ["client auth", "digital signature"]}}
            c.post(requests, body, DRY, headers=who)
    forget(c, node)


#: A request for CN=a by an Ed25519 key.
_REQUEST = "MIGLMD8CAQAwDDEKMAgGA1UEAwwBYTAqMAUGAytlcAMhAMFuvD/QuTBxgVXrfuL1TS/rcWoep5KeB0/wq4afMjfIoAAwBQYDK2VwA0EANKJpC4X9csnpL/sLkeEBip9fQxzwnJOfS5UKygnbeN+hxmLCl0KvUZRm93GXous4P1Vo3lyjLFe35HOKPk2dAQ=="


@scenario
def nodes_ask_for_tokens(c: Client) -> None:
    """A node gets tokens bound to its own pods, for audiences that their volumes name (NodeRestriction)."""
    node, who = node_user(c)
    core = f"/api/v1/namespaces/{c.ns}"
    c.post(f"{core}/serviceaccounts", {"metadata": {"name": "s"}}, silent=True)
    sources: list[Object] = [
        {"projected": {"sources": [{"serviceAccountToken": {"path": "p", "audience": "inside"}}]}}, {"csi": {"driver": f"{c.name('csi')}.absent"}}, {"persistentVolumeClaim": {"claimName": "absent"}},
    ]
    c.post(f"{core}/pods", pod("mine", node, serviceAccountName="s", volumes=[{"name": f"v{n}", **one} for n, one in enumerate(sources[:1])]), silent=True)
    c.post(f"{core}/pods", pod("broken", node, serviceAccountName="s", volumes=[{"name": f"v{n}", **one} for n, one in enumerate(sources)]), silent=True)
    c.post(f"{core}/pods", pod("foreign", "other", serviceAccountName="s"), silent=True)
    uids = {name: c.get(f"{core}/pods/{name}", silent=True).uid for name in ("mine", "broken", "foreign")}

    def bound(target: str, **more: Any) -> Object:
        return {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": target, "uid": uids.get(target, "x"), **more}}

    until(lambda: c.post(f"{core}/serviceaccounts/s/token", {"spec": {"audiences": ["inside"], **bound("mine")}}, DRY, headers=who, silent=True).status == 201, 10)
    for spec in (
        {}, bound("mine"), bound("mine", kind="Secret"), bound("mine", name=""), bound("mine", uid=""), bound("mine", uid="other"), bound("foreign"), bound("absent"), {**bound("mine"), "audiences": ["inside"]}, {**bound("mine"), "audiences": ["outside"]}, {**bound("mine"), "audiences": ["a", "b"]},
        {**bound("broken"), "audiences": ["outside"]}, {**bound("broken"), "audiences": ["inside"]},
    ):
        c.post(f"{core}/serviceaccounts/s/token", {"spec": {"audiences": ["api"], **spec}}, DRY, headers=who)
    forget(c, node)
    weak = c.name("weak")
    role = {"metadata": {"name": weak}, "rules": [{"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]}]}
    c.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role, silent=True)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": weak}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"system:node:{weak}"}
    c.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {"metadata": {"name": weak}, "roleRef": reference, "subjects": [subject]}, silent=True)
    until(lambda: "is forbidden: User" not in str(c.post(f"{core}/serviceaccounts/s/token", {"spec": {}}, DRY, headers=kubelet(weak), silent=True).get("message")), 10)
    for name, volumes in (("w", sources[:1]), ("x", sources[1:])):
        c.post(f"{core}/pods", pod(name, weak, serviceAccountName="s", volumes=[{"name": f"v{n}", **one} for n, one in enumerate(volumes)]), silent=True)
        uids[name] = c.get(f"{core}/pods/{name}", silent=True).uid
        until(lambda n=name: '"' + n + '" not found' not in str(c.post(f"{core}/serviceaccounts/s/token", {"spec": {"audiences": ["x"], **bound(n)}}, DRY, headers=kubelet(weak), silent=True).get("message")), 10)
        for audience in ("inside", "outside"):
            c.post(f"{core}/serviceaccounts/s/token", {"spec": {**bound(name), "audiences": [audience]}}, DRY, headers=kubelet(weak))
    c.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{weak}", silent=True)
    c.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{weak}", silent=True)


@scenario
def nodes_ask_for_tokens_of_drivers(c: Client) -> None:
    """Audiences that a node may ask for are also those of the CSI drivers of a pod's volumes: of its own, and of bound claims (NodeRestriction)."""
    node, driver = c.name("drives"), c.name("csi")
    core, who = f"/api/v1/namespaces/{c.ns}", kubelet(node)
    role = {"metadata": {"name": node}, "rules": [{"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]}]}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"system:node:{node}"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": node}
    c.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role, silent=True)
    c.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {"metadata": {"name": node}, "roleRef": reference, "subjects": [subject]}, silent=True)
    c.post("/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": driver}, "spec": {"tokenRequests": [{"audience": "first"}, {"audience": "second", "expirationSeconds": 3600}]}}, silent=True)
    c.post(f"{core}/serviceaccounts", {"metadata": {"name": "s"}}, silent=True)
    mode = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    for name, source in (("csi", {"csi": {"driver": driver, "volumeHandle": "h"}}), ("other", {"csi": {"driver": f"{driver}.absent", "volumeHandle": "h"}}), ("nfs", {"nfs": {"server": "a", "path": "/"}})):
        c.post("/api/v1/persistentvolumes", {"metadata": {"name": c.name(name)}, "spec": {"capacity": {"storage": "1"}, **mode, **source}}, silent=True)
    for name, volume in (("csi", c.name("csi")), ("other", c.name("other")), ("nfs", c.name("nfs")), ("unbound", ""), ("lost", c.name("lost")), ("own-v", c.name("csi"))):
        c.post(f"{core}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": {**mode, "resources": {"requests": {"storage": "1"}}, "volumeName": volume}}, silent=True)
    claimed = [{"persistentVolumeClaim": {"claimName": name}} for name in ("csi", "other", "nfs", "unbound", "lost")]
    token = {"projected": {"sources": [{"configMap": {"name": "m"}}, {"serviceAccountToken": {"path": "p"}}]}}
    volumes: list[list[Object]] = [[{"csi": {"driver": driver}}], [{"csi": {"driver": f"{driver}.absent"}}], *([one] for one in claimed), claimed[::-1], [{"ephemeral": {"volumeClaimTemplate": {"spec": {**mode, "resources": {"requests": {"storage": "1"}}}}}}], [{"emptyDir": {}}, token]]

    def ask(number: int, audience: str) -> Reply:
        name = f"pod-{number}"
        uid = c.get(f"{core}/pods/{name}", silent=True).uid
        spec = {"audiences": [audience], "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}}
        return c.post(f"{core}/serviceaccounts/s/token", {"spec": spec}, DRY, headers=who, silent=True)

    for number, given in enumerate(volumes):
        named = [{"name": f"v{index}", **one} for index, one in enumerate(given)]
        if "ephemeral" in given[0]:
            c.post(f"{core}/persistentvolumeclaims", {"metadata": {"name": f"pod-{number}-v0"}, "spec": {**mode, "resources": {"requests": {"storage": "1"}}, "volumeName": c.name("csi")}}, silent=True)
        c.post(f"{core}/pods", pod(f"pod-{number}", node, serviceAccountName="s", volumes=named), silent=True)
    until(lambda: ask(0, "second").status == 201, 10)
    until(lambda: "not found in pod spec volume" in str(ask(len(volumes) - 1, "first").get("message")), 10)
    for number in range(len(volumes)):
        for audience in ("first", "second", "third", ""):
            reply = ask(number, audience)
            note(c, f"pod {number} asks for {audience}", [reply.status, reply.get("message", default="")])
    for path in (*(f"/api/v1/persistentvolumes/{c.name(name)}" for name in ("csi", "other", "nfs")), f"/apis/storage.k8s.io/v1/csidrivers/{driver}", f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{node}", f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{node}"):
        c.delete(path, silent=True)


def sized(limits: Object | None = None, requests: Object | None = None) -> Object:
    return {**CONTAINER, "resources": {**({"limits": limits} if limits else {}), **({"requests": requests} if requests else {})}}


@scenario
def limits(c: Client) -> None:
    """What a limit range says of containers, pods and claims (LimitRanger)."""
    core = f"/api/v1/namespaces/{c.ns}"
    bounds: list[Object] = [
        {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}, "maxLimitRequestRatio": {"memory": "2"}}, {"type": "Pod", "max": {"cpu": "3", "memory": "4Gi"}, "min": {"memory": "1Gi"}, "maxLimitRequestRatio": {"memory": "2"}}, {"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}, "min": {"storage": "1Gi"}},
    ]
    given: list[list[Object]] = [
        [sized()], [sized({"cpu": "1"})], [sized({"cpu": "3"})], [sized({"cpu": "500m"})], [sized(None, {"cpu": "1"})], [sized({"cpu": "2"}, {"cpu": "500m"})], [sized({"memory": "2Gi"})], [sized(None, {"memory": "2Gi"})], [sized({"memory": "4Gi", "cpu": "1"}, {"memory": "1Gi", "cpu": "1"})], [sized({"memory": "2Gi", "cpu": "1"})] * 1, [sized({"memory": "9Gi", "cpu": "1"}, {"memory": "9Gi", "cpu": "1"})], [sized({"cpu": "2", "memory": "1Gi"}), {**sized({"cpu": "2", "memory": "1Gi"}), "name": "d"}],
    ]
    for number, bound in enumerate(bounds):
        c.post(f"{core}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [bound]}}, silent=True)
        until(lambda n=number: _limited(c, n), 10)
        for containers in given:
            c.post(f"{core}/pods", {"metadata": {"name": "p"}, "spec": {"containers": containers}}, DRY)
        for storage in ("500Mi", "1Gi", "3Gi"):
            claim = {"metadata": {"name": "p"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}}
            c.post(f"{core}/persistentvolumeclaims", claim, DRY)
        c.delete(f"{core}/limitranges/l", silent=True)
    c.post(f"{core}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}, {"type": "Pod", "max": {"ephemeral-storage": "1"}, "min": {"memory": "1"}}]}}, silent=True)
    for containers in given:
        c.post(f"{core}/pods", {"metadata": {"name": "p"}, "spec": {"containers": containers}}, DRY)


def _limited(c: Client, number: int) -> bool:
    """Whether the limits are in force: one of them is seen."""
    body: Object = {"metadata": {"name": "probe"}, "spec": {"containers": [sized({"cpu": "9", "memory": "99Gi"})]}}
    path = f"/api/v1/namespaces/{c.ns}/pods"
    if number == 2:
        path, body = f"/api/v1/namespaces/{c.ns}/persistentvolumeclaims", {"metadata": {"name": "probe"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "99Gi"}}}}
    return c.post(path, body, DRY, silent=True).status == 403


ALLOWED: Object = {"allowPrivilegeEscalation": False, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}


@scenario
def security_of_pods(c: Client) -> None:
    """What each level refuses, of pods and of containers, of one and of several (PodSecurity)."""
    path = f"/api/v1/namespaces/{c.ns}"
    contexts: list[Object] = [
        {"privileged": True}, {"capabilities": {"add": ["X", "NET_ADMIN"]}}, {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}, {"capabilities": {"drop": ["X"]}}, {"procMount": "Unmasked"}, {"seLinuxOptions": {"type": "x", "user": "y", "role": "z"}}, {"seccompProfile": {"type": "Unconfined"}}, {"seccompProfile": {"type": "Localhost", "localhostProfile": "a"}}, {"appArmorProfile": {"type": "Unconfined"}}, {"runAsNonRoot": False}, {"runAsUser": 0}, {"allowPrivilegeEscalation": True}, {"windowsOptions": {"hostProcess": True}},
    ]
    pods: list[Object] = [
        {}, {"hostNetwork": True}, {"hostPID": True, "hostIPC": True}, {"volumes": [{"name": "v", "hostPath": {"path": "/a"}}, {"name": "w", "nfs": {"server": "a", "path": "/b"}}]}, {"containers": [{**CONTAINER, "ports": [{"containerPort": 1, "hostPort": 2}, {"containerPort": 3, "hostPort": 4}]}]}, {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}, {"name": "net.a", "value": "1"}]}}, {"securityContext": {"seLinuxOptions": {"type": "x", "user": "y"}}}, {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}, {"securityContext": {"runAsNonRoot": False}}, {"securityContext": {"runAsUser": 0}}, {"securityContext": {"windowsOptions": {"hostProcess": True}}, "hostNetwork": True}, {"hostUsers": False, "containers": [{**CONTAINER, "securityContext": {**ALLOWED, "runAsNonRoot": None, "runAsUser": 0, "procMount": "Unmasked"}}]}, {"os": {"name": "windows"}}, {"containers": [{**CONTAINER, "livenessProbe": {"httpGet": {"port": 1, "host": "a"}}, "lifecycle": {"preStop": {"tcpSocket": {"port": 1, "host": "b"}}}}]},
        *({"containers": [{**CONTAINER, "securityContext": context}]} for context in contexts), *({"containers": [{**CONTAINER, "securityContext": context}, {"name": "d", "image": "i", "securityContext": context}]} for context in contexts), *({"containers": [{**CONTAINER, "securityContext": {**ALLOWED, **context}}], "securityContext": context if "run" in str(context) or "Profile" in str(context) or "seLinux" in str(context) else {}} for context in contexts),
    ]
    for level in ("baseline", "restricted"):
        c.patch(path, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level, "pod-security.kubernetes.io/enforce-version": "v1.36"}}}, MERGE)
        probe = {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], "hostPID": True}}
        until(lambda lv=level: f'"{lv}' in str(c.post(f"{path}/pods", probe, DRY, silent=True).get("message")), 10)
        for spec in pods:
            c.post(f"{path}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], **spec}}, DRY)
    annotations = {"container.apparmor.security.beta.kubernetes.io/c": "unconfined", "seccomp.security.alpha.kubernetes.io/pod": "unconfined"}
    c.post(f"{path}/pods", {"metadata": {"name": "p", "annotations": annotations}, "spec": {"containers": [CONTAINER]}}, DRY)
    c.patch(path, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": None, "pod-security.kubernetes.io/warn": "restricted"}}}, MERGE)
    for name in ("a", "b", "d"):
        c.post(f"{path}/pods", {"metadata": {"name": name}, "spec": {"containers": [CONTAINER]}}, silent=True)
    for labels in ({"enforce": "restricted"}, {"enforce": "baseline"}, {"enforce": "nope"}, {"enforce-version": "x"}, {"warn": "nope", "audit-version": "v1.x"}, {"enforce": "restricted", "enforce-version": "v1.5"}):
        c.patch(path, {"metadata": {"labels": {f"pod-security.kubernetes.io/{key}": value for key, value in labels.items()}}}, MERGE, DRY)
    for name in ("a", "b", "d"):
        c.delete(f"{path}/pods/{name}", {"gracePeriodSeconds": 0}, silent=True)


@scenario
def owners(c: Client) -> None:
    """Who sets an owner must be able to delete the object, and who blocks its deletion to write its finalizers."""
    rbac, core = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{c.ns}", f"/api/v1/namespaces/{c.ns}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update"]}
    c.post(f"{rbac}/roles", {"metadata": {"name": "writer"}, "rules": [rule]}, silent=True)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": c.name("writer")}
    c.post(f"{rbac}/rolebindings", {"metadata": {"name": "writer"}, "roleRef": reference, "subjects": [subject]}, silent=True)
    who = {"Impersonate-User": c.name("writer")}
    until(lambda: c.post(f"{core}/configmaps", {"metadata": {"name": "x"}}, DRY, headers=who, silent=True).status == 201, 10)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}
    variants: list[Object] = [owner, {**owner, "blockOwnerDeletion": True}, {**owner, "blockOwnerDeletion": True, "kind": "Nope"}, {**owner, "blockOwnerDeletion": True, "apiVersion": "no.such/v1"}, {**owner, "blockOwnerDeletion": True, "kind": "Node"}, {**owner, "blockOwnerDeletion": True, "apiVersion": "apps/v1", "kind": "Deployment"}]
    for one in variants:
        c.post(f"{core}/configmaps", {"metadata": {"name": "m", "ownerReferences": [one]}}, DRY, headers=who)
    c.post(f"{core}/configmaps", {"metadata": {"name": "m"}}, silent=True)
    for one in variants:
        stored = c.get(f"{core}/configmaps/m", silent=True).json
        c.put(f"{core}/configmaps/m", {**stored, "metadata": {**stored["metadata"], "ownerReferences": [one]}}, DRY, headers=who)


@scenario
def resizes(c: Client) -> None:
    """A pod may not outgrow its node, a claim not what its class allows (PodResizeValidator, PersistentVolumeClaimResize)."""
    core = f"/api/v1/namespaces/{c.ns}"
    for name, labels in (("linux", {"kubernetes.io/os": "linux"}), ("windows", {"kubernetes.io/os": "windows"})):
        node = c.name(name)
        c.post("/api/v1/nodes", {"metadata": {"name": node, "labels": labels}}, silent=True)
        stored = c.get(f"/api/v1/nodes/{node}", silent=True).json
        c.put(f"/api/v1/nodes/{node}/status", {**stored, "status": {"capacity": {"cpu": "2", "memory": "2Gi"}, "allocatable": {"cpu": "2", "memory": "2Gi"}}}, silent=True)
        c.post(f"{core}/pods", {"metadata": {"name": name}, "spec": {"containers": [sized(None, {"cpu": "1", "memory": "1Gi"})], "nodeName": node}}, silent=True)
        for requests in ({"cpu": "2"}, {"cpu": "3"}, {"memory": "3Gi"}, {"cpu": "3", "memory": "3Gi"}):
            patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
            c.patch(f"{core}/pods/{name}/resize", patch, "application/strategic-merge-patch+json", DRY)
        c.delete(f"{core}/pods/{name}", {"gracePeriodSeconds": 0}, silent=True)
        c.delete(f"/api/v1/nodes/{node}", silent=True)
    for name, phase, expands in (("pending", "Pending", True), ("fixed", "Bound", False), ("free", "Bound", True)):
        storage = c.name(name)
        c.post("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": storage}, "provisioner": "a", "allowVolumeExpansion": expands}, silent=True)
        claim = {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage, "volumeName": "v", "resources": {"requests": {"storage": "1Gi"}}}}
        c.post(f"{core}/persistentvolumeclaims", claim, silent=True)
        stored = c.get(f"{core}/persistentvolumeclaims/{name}", silent=True).json
        c.put(f"{core}/persistentvolumeclaims/{name}/status", {**stored, "status": {"phase": phase, "capacity": {"storage": "1Gi"}}}, silent=True)
        c.patch(f"{core}/persistentvolumeclaims/{name}", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}, MERGE, DRY)
        c.delete(f"/apis/storage.k8s.io/v1/storageclasses/{storage}", silent=True)


@scenario
def quotas(c: Client) -> None:
    """A quota refuses what it does not know the usage of, and what would go beyond it (ResourceQuota)."""
    core = f"/api/v1/namespaces/{c.ns}"
    c.post(f"{core}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1", "requests.cpu": "1", "configmaps": "0", "requests.storage": "1Gi", "count/secrets": "0"}}}, silent=True)
    until(lambda: c.post(f"{core}/configmaps", {"metadata": {"name": "probe"}}, DRY, silent=True).status == 403, 10)
    c.post(f"{core}/configmaps", {"metadata": {"name": "a"}}, DRY)
    stored = c.get(f"{core}/resourcequotas/q", silent=True).json
    c.put(f"{core}/resourcequotas/q/status", {**stored, "status": {"hard": stored["spec"]["hard"], "used": {"pods": "0", "requests.cpu": "0", "configmaps": "0", "requests.storage": "0", "count/secrets": "0"}}}, silent=True)
    until(lambda: "exceeded" in str(c.post(f"{core}/configmaps", {"metadata": {"name": "probe"}}, DRY, silent=True).get("message")), 10)
    c.post(f"{core}/configmaps", {"metadata": {"name": "a"}}, DRY)
    c.post(f"{core}/secrets", {"metadata": {"name": "a"}}, DRY)
    for requests in (None, {"cpu": "500m"}, {"cpu": "2"}, {"memory": "1"}):
        c.post(f"{core}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [sized(None, requests)]}}, DRY)
    for storage in ("1Gi", "2Gi"):
        c.post(f"{core}/persistentvolumeclaims", {"metadata": {"name": "p"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}}, DRY)


@scenario
def tolerations(c: Client) -> None:
    """The annotations of a namespace give tolerations to its pods, and restrict them (PodTolerationRestriction)."""
    path = f"/api/v1/namespaces/{c.ns}"
    prefix = "scheduler.alpha.kubernetes.io/"
    key = [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]
    given: list[list[Object]] = [[], key, [{"key": "b", "operator": "Exists"}], [{"operator": "Exists"}]]
    for given_by_namespace in ({"defaultTolerations": '[{"key":"a","operator":"Exists"}]'}, {"defaultTolerations": '{"a":1}'}, {"defaultTolerations": "[1]"}, {"defaultTolerations": "["}, {"defaultTolerations": ""}, {"tolerationsWhitelist": '[{"key":"a","operator":"Exists"}]'}, {"tolerationsWhitelist": '"x"'}, {"tolerationsWhitelist": "[]"}):
        changes = {f"{prefix}{name}": given_by_namespace.get(name) for name in ("defaultTolerations", "tolerationsWhitelist")}
        c.patch(path, {"metadata": {"annotations": changes}}, MERGE, silent=True)
        stored = c.get(path, silent=True).rv
        c.patch(path, {"metadata": {"annotations": {"seen": stored}}}, MERGE, silent=True)
        until(lambda: c.post(f"{path}/configmaps", {"metadata": {"name": "x"}}, DRY, silent=True).status == 201, 10)
        c.transport.pace.sleep(0.3)
        for one in given:
            c.post(f"{path}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], "tolerations": one}}, DRY)
