"""Admission plugins that read `tests/differential/admission.yaml`."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.registry import scenario
from tests.differential.scenarios.rules_plugins import CONTAINER, DRY, Object, asking, pod

# fmt: off

HOST: Object = {"hostNetwork": True}
SELECTOR = {"metadata": {"annotations": {"scheduler.alpha.kubernetes.io/node-selector": "zone=b"}}}
POD_SECURITY = "pod-security.kubernetes.io/"


def named(c: Client, name: str, **labels: str) -> str:
    """The pods of a namespace with that name, which says something in the configuration."""
    c.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": {POD_SECURITY + key.replace("_", "-"): text for key, text in labels.items()}}}, silent=True)
    return f"/api/v1/namespaces/{name}/pods"


def forget(c: Client, name: str) -> None:
    """Deletes a namespace with its finalizer, for which the server has no controller."""
    c.delete(f"/api/v1/namespaces/{name}", silent=True)
    c.put(f"/api/v1/namespaces/{name}/finalize", {"metadata": {"name": name}, "spec": {"finalizers": []}}, silent=True)


@scenario
def selectors_of_the_cluster(c: Client) -> None:
    """PodNodeSelector knows a default for namespaces without the annotation, and the labels that a namespace may ask for."""
    own = f"/api/v1/namespaces/{c.ns}/pods"
    for asked in ({}, {"zone": "a"}, {"zone": "b"}, {"x": "y"}):
        c.post(own, pod(nodeSelector=asked), DRY)
    path = named(c, "selected")
    for asked in ({}, {"zone": "a"}, {"disk": "ssd"}, {"disk": "hdd"}, {"x": "y"}, {"zone": "a", "disk": "ssd"}):
        c.post(path, pod(nodeSelector=asked), DRY)
    c.patch("/api/v1/namespaces/selected", SELECTOR, MERGE, silent=True)
    for asked in ({}, {"disk": "ssd"}, {"zone": "a"}, {"zone": "b"}):
        c.post(path, pod(nodeSelector=asked), DRY)
    forget(c, "selected")


@scenario
def tolerations_of_the_cluster(c: Client) -> None:
    """PodTolerationRestriction has defaults and a whitelist for namespaces without annotations."""
    path = f"/api/v1/namespaces/{c.ns}/pods"
    for tolerations in ([], [{"key": "given", "operator": "Exists"}], [{"key": "allowed", "operator": "Equal", "value": "x"}], [{"key": "other", "operator": "Exists"}], [{"operator": "Exists"}]):
        c.post(path, pod(tolerations=tolerations), DRY)
        c.post(path, pod(tolerations=tolerations, containers=[asking(cpu="1")]), DRY)
    for key, text in (("defaultTolerations", "[]"), ("tolerationsWhitelist", "[]"), ("defaultTolerations", ""), ("tolerationsWhitelist", '[{"operator":"Exists"}]')):
        c.patch(f"/api/v1/namespaces/{c.ns}", {"metadata": {"annotations": {f"scheduler.alpha.kubernetes.io/{key}": text}}}, MERGE, silent=True)
        c.post(path, pod(), DRY)
        c.post(path, pod(tolerations=[{"key": "other", "operator": "Exists"}]), DRY)


@scenario
def security_of_the_cluster(c: Client) -> None:
    """PodSecurity has defaults, with their versions; users, namespaces and runtime classes are exempt."""
    own = f"/api/v1/namespaces/{c.ns}/pods"
    c.post("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "exempt-class"}, "handler": "h"}, silent=True)
    c.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {"metadata": {"name": c.name("b")}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
           "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "exempt-user"}]}, silent=True)
    exempt = {"Impersonate-User": "exempt-user", "Impersonate-Group": "system:masters"}
    probed = [{**CONTAINER, "livenessProbe": {"httpGet": {"port": 1, "host": "1.2.3.4"}}}]
    for spec in ({}, HOST, {"containers": probed}, {"runtimeClassName": "exempt-class", **HOST}, {"hostPID": True}, {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}}):
        c.post(own, pod(**spec), DRY)
        c.post(own, pod(**spec), DRY, headers=exempt)
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(**spec)["spec"]}
        c.post(f"/apis/apps/v1/namespaces/{c.ns}/deployments", {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}, DRY)
    for labels in ({"enforce": "privileged"}, {"warn": "privileged"}, {"enforce-version": "v1.35"}, {"enforce-version": "latest"}, {"enforce": "restricted"}, {"audit": "restricted"}):
        c.patch(f"/api/v1/namespaces/{c.ns}", {"metadata": {"labels": {f"{POD_SECURITY}{key}": labels.get(key) for key in ("enforce", "warn", "audit", "enforce-version")}}}, MERGE)
        for spec in ({}, HOST, {"containers": probed}):
            c.post(own, pod(**spec), DRY)
    path = named(c, "exempt")
    c.post(path, pod(**HOST), DRY)
    for labels in ({"enforce": "restricted"}, {"warn": "baseline", "enforce": None}, {"warn": None, "audit": "baseline"}, {"audit-version": "v1.30", "enforce": "privileged"}, {"enforce": "baseline"}, {"enforce": "baseline", "x": "y"},
                   {"enforce": "Nope"}, {"audit": "privileged", "warn": "privileged", "enforce": "privileged"}, {"enforce-version": "v1.30"}):
        c.patch("/api/v1/namespaces/exempt", {"metadata": {"labels": {f"{POD_SECURITY}{key}": value for key, value in labels.items()}}}, MERGE)
        c.post("/api/v1/namespaces", {"metadata": {"name": "exempt", "labels": {f"{POD_SECURITY}{key}": value for key, value in labels.items() if value}}}, DRY)
    forget(c, "exempt")
    c.delete("/apis/node.k8s.io/v1/runtimeclasses/exempt-class", silent=True)


@scenario
def limited_resources(c: Client) -> None:
    """ResourceQuota refuses what is limited by the configuration while no quota covers it."""
    core = f"/api/v1/namespaces/{c.ns}"
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    def ask() -> None:
        for name in ("", "system-cluster-critical", "system-node-critical"):
            c.post(f"{core}/pods", pod(**({"priorityClassName": name} if name else {})), DRY)
        for name in ("gold", "", "silver"):
            c.post(f"{core}/persistentvolumeclaims", {"metadata": {"name": "p"}, "spec": {**claim, "storageClassName": name}}, DRY)
        for kind in ("LoadBalancer", "NodePort", "ClusterIP"):
            c.post(f"{core}/services", {"metadata": {"name": "s"}, "spec": {"type": kind, "ports": [{"port": 80}]}}, DRY)

    ask()
    for name, hard, more in (
        ("pods", {"pods": "1"}, {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-cluster-critical"]}]}}),
        ("storage", {"gold.storageclass.storage.k8s.io/requests.storage": "10Gi"}, {}), ("services", {"services.loadbalancers": "1", "services.nodeports": "0"}, {}),
    ):
        c.post(f"{core}/resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard, **more}}, silent=True)
        c.patch(f"{core}/resourcequotas/{name}/status", {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}, MERGE, silent=True)
    ask()


@scenario
def limits_of_events(c: Client) -> None:
    """EventRateLimit has limits of the server, of a user, of a namespace, and of a source with its object; each keeps some keys."""
    def event(name: str, involved: str, **more: Any) -> Object:
        return {"metadata": {"name": name}, "involvedObject": {"kind": "Pod", "name": involved, "namespace": c.ns}, **more}

    path = f"/api/v1/namespaces/{c.ns}/events"
    for number in range(5):
        c.post(path, event(f"a{number}", "x", source={"component": "s", "host": "h"}))
    c.post(path, event("dry", "x", source={"component": "s", "host": "h"}), DRY)
    c.post(path, event("b", "y"))
    c.post(path, event("c", "z"))
    c.post(path, event("d", "x", source={"component": "s", "host": "h"}))
    c.post(f"/apis/events.k8s.io/v1/namespaces/{c.ns}/events", {"metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a.b/c", "reportingInstance": "i", "action": "a", "reason": "r", "type": "Normal",
           "regarding": {"kind": "Pod", "name": "w", "namespace": c.ns}})
    c.patch(f"{path}/b", {"message": "m"}, MERGE)
    c.delete(f"{path}/b", silent=True)
