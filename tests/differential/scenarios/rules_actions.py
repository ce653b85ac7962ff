"""Rules that no edit of an object shows: bindings, evictions, selectors of fields, grants of roles, deletions."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.registry import scenario
from tests.differential.steps import until

# fmt: off

DRY = {"dryRun": "All"}
POD: dict[str, Any] = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
BUDGET = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}


def eviction(name: str = "p", **options: Any) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **({"deleteOptions": options} if options else {})}


@scenario
def evictions(c: Client) -> None:
    """A budget refuses an eviction in the words of its status (checkAndDecrement)."""
    core, path = f"/api/v1/namespaces/{c.ns}", f"/apis/policy/v1/namespaces/{c.ns}/poddisruptionbudgets"
    c.post(f"{core}/pods", POD)
    c.post(f"{core}/pods/p/eviction", eviction("other"))
    c.post(f"{core}/pods/absent/eviction", eviction("absent"))
    c.post(f"{core}/pods/p/eviction", eviction(ignoreStoreReadErrorWithClusterBreakingPotential=True))
    c.post(f"{core}/pods/p/eviction", eviction(dryRun=["Nope"]))
    c.post(f"{core}/pods/p/eviction", eviction(gracePeriodSeconds=-1), DRY)
    c.post(f"{core}/pods/p/eviction", eviction(propagationPolicy="Nope"), DRY)
    c.put(f"{core}/pods/p/status", {**POD, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
    c.post(path, BUDGET)
    condition = {"type": "DisruptionAllowed", "status": "False", "reason": "X", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    healthy = {"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2, "disruptionsAllowed": 0}
    for state in (
        {"observedGeneration": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0},
        {**healthy, "currentHealthy": 1},
        healthy,
        {**healthy, "conditions": [condition]},
        {**healthy, "conditions": [{**condition, "reason": "SyncFailed"}]},
        {**healthy, "conditions": [{**condition, "status": "True"}]},
        {**healthy, "conditions": [{**condition, "message": ""}]},
        {**healthy, "disruptionsAllowed": 1, "disruptedPods": {f"p{n}": "2026-01-01T00:00:00Z" for n in range(2001)}},
        {**healthy, "disruptionsAllowed": 1, "disruptedPods": {f"p{n}": "2026-01-01T00:00:00Z" for n in range(2000)}},
        {**healthy, "disruptionsAllowed": -1},
    ):
        stored = c.get(f"{path}/b", silent=True).json
        c.put(f"{path}/b/status", {**stored, "status": state}, silent=True)
        c.post(f"{core}/pods/p/eviction", eviction(), DRY)
    c.post(path, {**BUDGET, "metadata": {"name": "b2"}})
    c.post(f"{core}/pods/p/eviction", eviction())


@scenario
def bindings(c: Client) -> None:
    """What cannot be bound: a pod that is deleted, gated, or bound (assignPod)."""
    pods = f"/api/v1/namespaces/{c.ns}/pods"
    target = {"target": {"kind": "Node", "name": "n"}}
    for name, spec in (("gated", {"schedulingGates": [{"name": "a"}]}), ("bound", {"nodeName": "n"}), ("free", {}), ("deleted", {})):
        c.post(pods, {"metadata": {"name": name, "finalizers": ["a.b/c"]}, "spec": {**POD["spec"], **spec}}, silent=True)
        if name == "deleted":
            c.delete(f"{pods}/{name}", {"gracePeriodSeconds": 0}, silent=True)
        c.post(f"{pods}/{name}/binding", {"metadata": {"name": name}, **target})
    for wrong in ({}, {"target": {}}, {"target": {"kind": "Pod", "name": "n"}}, {"target": {"kind": "Node", "name": "A_"}}, {"metadata": {"name": "other"}, **target}):
        c.post(f"{pods}/bound/binding", {"metadata": {"name": "bound"}, **wrong}, DRY)
    c.post(f"{pods}/absent/binding", {"metadata": {"name": "absent"}, **target})
    c.post(f"/api/v1/namespaces/{c.ns}/bindings", {"metadata": {"name": "gated"}, **target})
    for name in ("gated", "bound", "free", "deleted"):
        c.patch(f"{pods}/{name}", {"metadata": {"finalizers": None}}, MERGE, silent=True)


@scenario
def field_selectors(c: Client) -> None:
    """Each kind says in its own words which fields it cannot select by."""
    for path in ("api/v1/pods", "api/v1/nodes", "api/v1/events", "api/v1/secrets", "api/v1/replicationcontrollers", "api/v1/namespaces", "api/v1/configmaps", "apis/apps/v1/deployments", "apis/apps/v1/replicasets",
                 "apis/batch/v1/jobs", "apis/batch/v1/cronjobs", "apis/resource.k8s.io/v1/resourceslices", "apis/resource.k8s.io/v1/resourceclaims", "apis/certificates.k8s.io/v1/certificatesigningrequests", "apis/events.k8s.io/v1/events",
                 "apis/rbac.authorization.k8s.io/v1/roles", "apis/apiextensions.k8s.io/v1/customresourcedefinitions"):
        for selector in ("spec.nope=a", "metadata.name=absent", "status.phase=a", "spec.driver=a", "status.successful=1"):
            c.get(f"/{path}", {"fieldSelector": selector, "limit": "1", "labelSelector": f"never={c.ns}"})


@scenario
def system_objects(c: Client) -> None:
    """What the system needs cannot be deleted."""
    for path in ("apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical", "api/v1/namespaces/default", "api/v1/namespaces/kube-system"):
        c.delete(f"/{path}", None, DRY)


@scenario
def grants(c: Client) -> None:
    """Who may write bindings may not grant what he lacks, nor a role of an unknown kind (rbac's policy-based storage)."""
    rbac, wide = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{c.ns}", "/apis/rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["*"]}]
    rule = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings", "roles"], "verbs": ["create", "update", "get"]}
    c.post(f"{rbac}/roles", {"metadata": {"name": "granter"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "granter"}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": c.name("granter")}
    c.post(f"{rbac}/rolebindings", {"metadata": {"name": "granter"}, "roleRef": reference, "subjects": [subject]})
    who = {"Impersonate-User": c.name("granter")}

    def granted() -> bool:
        return c.get(f"{rbac}/roles/granter", headers=who, silent=True).status == 200

    until(granted, 10)
    for role in (reference, {**reference, "kind": "Nope"}, {**reference, "kind": "ClusterRole", "name": "edit"}, {**reference, "name": "absent"}, {**reference, "kind": ""}, {**reference, "apiGroup": "x"}):
        c.post(f"{rbac}/rolebindings", {"metadata": {"name": "new"}, "roleRef": role, "subjects": [subject]}, DRY, headers=who)
    for own in ([rule], rules, [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}], [{"nonResourceURLs": ["/a"], "verbs": ["get"]}]):
        c.post(f"{rbac}/roles", {"metadata": {"name": "new"}, "rules": own}, DRY, headers=who)
    c.post(f"{wide}/clusterrolebindings", {"metadata": {"name": c.name("new")}, "roleRef": {**reference, "kind": "ClusterRole"}}, DRY, headers=who)


@scenario
def object_metadata(c: Client) -> None:
    """The metadata that a client cannot set, or cannot change (ValidateObjectMeta, ValidateObjectMetaUpdate)."""
    path = f"/api/v1/namespaces/{c.ns}/configmaps"
    entry = {"manager": "a", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}}
    body: dict[str, Any] = {"metadata": {"name": "m", "generation": 5, "finalizers": ["a.b/c"]}, "data": {"a": "b"}}
    c.post(path, body)
    for change in ({"generation": 4}, {"generation": 6}, {"generation": -1}, {"uid": "x"}, {"creationTimestamp": "2026-01-01T00:00:00Z"}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, {"deletionGracePeriodSeconds": 5}, {"selfLink": "x"}, {"generateName": "x"},
                   *({"managedFields": [{**entry, **wrong}]} for wrong in ({}, {"operation": "Nope"}, {"fieldsType": "Nope"}, {"fieldsType": ""}, {"manager": "x" * 129}, {"manager": "a\u0007"}, {"subresource": "x" * 257}, {"apiVersion": "nope"}, {"fieldsV1": {"x": 1}})),
                   {"finalizers": ["a.b/c", "d"]}, {"finalizers": ["a.b/c", "orphan", "foregroundDeletion"]}, {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}] * 2}, {"labels": {"a": "b c"}}, {"annotations": {"a b": "c"}}):
        stored = c.get(f"{path}/m", silent=True).json
        c.put(f"{path}/m", {**stored, "metadata": {**stored["metadata"], **change}}, DRY)
    c.delete(f"{path}/m")
    stored = c.get(f"{path}/m", silent=True).json
    for finalizers in (["a.b/c", "d.e/f"], ["d.e/f", "a.b/c", "x.y/z"], []):
        c.put(f"{path}/m", {**stored, "metadata": {**stored["metadata"], "finalizers": finalizers}}, DRY)
    c.patch(f"{path}/m", {"metadata": {"finalizers": None}}, MERGE, silent=True)
    c.post(path, {"metadata": {"name": "r", "resourceVersion": "5"}})
    c.post(path, {"metadata": {"name": "m", "namespace": "other"}})
    c.post("/api/v1/namespaces", {"metadata": {"name": c.name("x"), "namespace": "other"}}, DRY)
    c.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": c.name("x"), "namespace": "other"}}, DRY)
