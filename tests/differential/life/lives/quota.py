"""Quotas and limits: what is counted, what is refused."""

from __future__ import annotations

from tests.differential.life.manifests import config, pod, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


def quota(name: str, hard: dict[str, str], **spec: object) -> dict[str, object]:
    return {"kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard, **spec}}


def tried(w: World, obj: dict[str, object]) -> None:
    kind = {
        "Pod": "pods",
        "ConfigMap": "configmaps",
        "Service": "services",
        "PersistentVolumeClaim": "persistentvolumeclaims",
        "Deployment": "deployments",
    }[obj["kind"]]
    w.answer(
        f"create {kind} {obj['metadata']['name']}",
        w.post(w.at(kind), {"apiVersion": "apps/v1" if kind == "deployments" else "v1", **obj}),
    )


@scenario
def counts_objects(w: World) -> None:
    """Used is counted for what is there, refused beyond hard, freed by deletion."""
    w.make(config("a"))
    w.settle()
    w.make(
        quota(
            "q",
            {
                "configmaps": "3",
                "count/deployments.apps": "1",
                "services": "2",
                "services.nodeports": "1",
                "services.loadbalancers": "0",
            },
        )
    )
    w.settle()
    w.dump("resourcequotas", managers=True)
    tried(w, config("b"))
    tried(w, config("c"))
    for name, type_ in (("n", "NodePort"), ("m", "NodePort"), ("l", "LoadBalancer")):
        tried(w, {"kind": "Service", "metadata": {"name": name}, "spec": {"type": type_, "ports": [{"port": 1}]}})
    tried(w, workload("Deployment", "one", 0))
    tried(w, workload("Deployment", "two", 0))
    w.settle()
    w.dump("resourcequotas", label="full")
    w.remove("configmaps", "a")
    w.remove("deployments", "one")
    w.settle()
    w.dump("resourcequotas", label="freed")
    w.edit("resourcequotas", "q", {"spec": {"hard": {"configmaps": "1", "services": None}}})
    w.settle()
    w.dump("resourcequotas", label="changed")


@scenario
def counts_resources(w: World) -> None:
    """Requests and limits of pods are added up; pods that state none are refused, unless a LimitRange gives them some."""
    w.make(quota("q", {"requests.cpu": "1", "limits.memory": "1Gi", "pods": "5"}))
    w.settle()
    tried(w, pod("bare", hand=True))
    w.make(
        {
            "kind": "LimitRange",
            "metadata": {"name": "l"},
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "default": {"cpu": "400m", "memory": "256Mi"},
                        "defaultRequest": {"cpu": "300m"},
                        "max": {"cpu": "2"},
                        "min": {"memory": "10Mi"},
                    }
                ]
            },
        }
    )
    w.settle()
    for i in range(4):
        tried(w, pod(f"p{i}", hand=True))
    w.settle()
    w.dump("resourcequotas", "pods")
    w.run("p0", phase="Succeeded")
    w.settle()
    w.dump("resourcequotas", label="one is over")
    tried(w, pod("p9", hand=True))
    tried(w, pod("huge", hand=True, requests={"cpu": "3"}))


@scenario
def scopes(w: World) -> None:
    """Scopes choose pods: by quality, by deadline, by priority class."""
    w.make(quota("best-effort", {"pods": "1"}, scopes=["BestEffort"]))
    w.make(quota("terminating", {"pods": "1"}, scopes=["Terminating"]))
    w.make(quota("not-terminating", {"pods": "10", "requests.cpu": "1"}, scopes=["NotTerminating", "NotBestEffort"]))
    w.make(
        quota(
            "critical",
            {"pods": "0"},
            scopeSelector={
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]
            },
        )
    )
    w.settle()
    tried(w, pod("a", hand=True))
    tried(w, pod("b", hand=True))
    tried(w, pod("c", hand=True, requests={"cpu": "100m"}))
    tried(w, pod("d", hand=True, requests={"cpu": "100m"}, activeDeadlineSeconds=100))
    tried(w, pod("e", hand=True, requests={"cpu": "100m"}, priorityClassName="system-node-critical"))
    w.settle()
    w.dump("resourcequotas")


@scenario
def storage(w: World) -> None:
    """Claims count by number and size, in all and by class."""
    w.make(
        quota(
            "q",
            {
                "requests.storage": "10Gi",
                "persistentvolumeclaims": "3",
                "gold.storageclass.storage.k8s.io/requests.storage": "5Gi",
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            },
        )
    )
    w.settle()
    for name, cls, size in (("a", "gold", "4Gi"), ("b", "gold", "1Gi"), ("c", "tin", "7Gi"), ("d", "tin", "2Gi")):
        tried(
            w,
            {
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": cls, "resources": {"requests": {"storage": size}}},
            },
        )
    w.settle()
    w.dump("resourcequotas")


@scenario
def a_deployment_hits_it(w: World) -> None:
    """A Deployment over quota makes what it may, and says ReplicaFailure; given room it goes on."""
    w.make(quota("q", {"pods": "2"}))
    w.settle()
    w.make(workload("Deployment", "web", 3))
    w.settle()
    w.dump("deployments", "replicasets", "resourcequotas", label="full")
    w.edit("resourcequotas", "q", {"spec": {"hard": {"pods": "4"}}})
    w.until(lambda: (w.read("deployments", "web") or {})["status"].get("readyReplicas") == 3, 60)
    w.settle()
    w.dump("deployments", "resourcequotas", label="room")
