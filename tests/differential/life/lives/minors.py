"""What controllers and the scheduler of one minor do otherwise than those of another."""

from __future__ import annotations

from typing import Any

from tests.differential.life.lives.autoscaling import scaler
from tests.differential.life.lives.statefulsets import stateful
from tests.differential.life.lives.volumes import BOTH, claim, phase, user, volume
from tests.differential.life.manifests import condition, image, job, pod, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World

_HOLDS = {"metadata": {"finalizers": ["example.com/hold"]}}


def _widgets(w: World, storage: str) -> dict[str, Any]:
    plural = w.name("widgets")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Widget" + w.id, "singular": plural[:-1]},
            "versions": [
                {"name": version, "served": True, "storage": version == storage, "schema": schema} for version in ("v1", "v2")
            ],
        },
    }


def _migration(w: World, name: str, resource: str, group: str = "") -> dict[str, Any]:
    spec = {"resource": {"resource": resource, **({"group": group} if group else {})}}
    return {"kind": "StorageVersionMigration", "metadata": {"name": w.name(name)}, "spec": spec}


def _finished(w: World, name: str) -> bool:
    migration = w.read("storageversionmigrations", w.name(name))
    return condition(migration, "Running") == "False"


# ---------------------------------------------------------------- Deployments, ReplicaSets, StatefulSets


@scenario
def long_names(w: World) -> None:
    """The name of a ReplicaSet is cut so that it is a name, with its hash."""
    made = workload("Deployment", "web", 0)
    w.make({**made, "metadata": {"name": "l" * 250}})
    w.settle()
    w.dump("deployments", "replicasets")


@scenario
def terminating_pods(w: World) -> None:
    """Pods that terminate are counted in the status of ReplicaSets and Deployments, not of ReplicationControllers."""
    w.make(workload("Deployment", "web", 2))
    core = workload("ReplicationController", "old", 2)
    core["spec"]["selector"] = {"app": "old"}
    w.make(core)
    w.settle()
    for one in w.all("pods"):
        w.edit("pods", one["metadata"]["name"], _HOLDS)
    w.edit("deployments", "web", {"spec": {"replicas": 1}})
    w.edit("replicationcontrollers", "old", {"spec": {"replicas": 1}})
    w.settle()
    w.dump("deployments", "replicasets", "replicationcontrollers", label="held")


@scenario
def stateful_pods(w: World) -> None:
    """The events of StatefulSets, and what happens to the events when pods cannot be created."""
    w.make(stateful("db", 2))
    w.settle()
    w.edit("statefulsets", "db", {"spec": {"replicas": 1}})
    w.settle()
    w.edit("statefulsets", "db", image("app:2"))
    w.settle()
    w.dump("statefulsets", "pods")


@scenario
def parallel_update(w: World) -> None:
    """Of a parallel StatefulSet the pods that are not available are replaced first, whatever maxUnavailable says."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    w.make(stateful("db", 4, hand=True, podManagementPolicy="Parallel", updateStrategy=strategy))
    w.settle()
    for index in (0, 2, 3):
        w.run(f"db-{index}")
    w.settle()
    w.edit("statefulsets", "db", image("app:2"))
    w.settle()
    w.dump("statefulsets", "pods", label="first")
    w.order("order", types=("DELETED",))
    for one in w.all("pods"):
        w.run(one["metadata"]["name"])
    w.settle()
    w.order("second order", types=("DELETED",))


@scenario
def ordered_update(w: World) -> None:
    """maxUnavailable of an ordered StatefulSet."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    w.make(stateful("db", 3, updateStrategy=strategy))
    w.settle()
    w.edit("statefulsets", "db", image("app:2"))
    w.settle()
    w.dump("statefulsets")
    w.order("order")


# ---------------------------------------------------------------- Jobs


@scenario
def suspended_job(w: World) -> None:
    """What is left of startTime when a job that runs is suspended."""
    w.make(job("one", hand=True))
    w.settle()
    w.edit("jobs", "one", {"spec": {"suspend": True}})
    w.settle()
    w.dump("jobs", label="suspended")
    w.edit("jobs", "one", {"spec": {"suspend": False}})
    w.settle()
    w.dump("jobs", label="resumed")


# ---------------------------------------------------------------- HorizontalPodAutoscalers


@scenario
def rescaled(w: World) -> None:
    """The conditions and generations of an autoscaler that scales."""
    w.make(workload("Deployment", "few", 1))
    w.settle()
    w.make(scaler("few", "few", 3, 4))
    w.until(lambda: (w.read("deployments", "few") or {})["spec"]["replicas"] == 3)
    w.settle()
    w.edit("horizontalpodautoscalers", "few", {"spec": {"maxReplicas": 5}})
    w.settle()
    w.dump("horizontalpodautoscalers")


@scenario
def two_autoscalers(w: World) -> None:
    """Two autoscalers of the same pods: the condition and the event."""
    w.make(workload("Deployment", "web", 1))
    w.settle()
    w.make(scaler("one", "web", 1, 4))
    w.until(lambda: condition(w.read("horizontalpodautoscalers", "one"), "ScalingActive") == "False")
    w.make(scaler("two", "web", 1, 4))
    w.until(lambda: condition(w.read("horizontalpodautoscalers", "two"), "ScalingActive", "reason") == "AmbiguousSelector")
    w.until(lambda: condition(w.read("horizontalpodautoscalers", "one"), "ScalingActive", "reason") == "AmbiguousSelector")
    w.settle()
    for name in ("one", "two"):
        text = condition(w.read("horizontalpodautoscalers", name), "ScalingActive", "message") or ""
        first, _, rest = text.partition("[")
        names = " ".join(sorted(rest.rstrip("])").split()))
        w.fact(f"{name}'s condition", f"{first}[{names}{rest[len(rest.rstrip('])')) :]}".replace(w.ns, "NS"))


@scenario
def metrics_of_objects(w: World) -> None:
    """What is said of metrics of other objects without their API."""
    w.make(workload("Deployment", "web", 1))
    w.settle()
    service = {"apiVersion": "v1", "kind": "Service", "name": "web"}
    for name, target in (("value", {"type": "Value", "value": "5"}), ("average", {"type": "AverageValue", "averageValue": "5"})):
        metric = {"type": "Object", "object": {"metric": {"name": "hits"}, "describedObject": service, "target": target}}
        w.make(workload("Deployment", name, 1))
        w.make(scaler(name, name, 1, 4, metrics=[metric]))
    for name in ("value", "average"):
        w.until(lambda name=name: condition(w.read("horizontalpodautoscalers", name), "ScalingActive") == "False")
    w.settle()
    w.dump("horizontalpodautoscalers")


# ---------------------------------------------------------------- volumes


@scenario
def unused_claims(w: World) -> None:
    """A bound claim that no pod uses says so."""
    w.make(volume(w, "v", "1Gi"))
    w.settle()
    w.make(claim(w, "a", "1Gi"))
    w.until(lambda: phase(w, "a") == "Bound")
    w.settle()
    w.dump(*BOTH, label="unused", managers=True)
    w.make(user("a", hand=True))
    w.settle()
    w.dump("persistentvolumeclaims", label="used")
    w.run("uses-a", phase="Succeeded")
    w.settle()
    w.dump("persistentvolumeclaims", label="done")
    w.remove("pods", "uses-a", grace=0)
    w.settle()
    w.dump("persistentvolumeclaims", label="unused again")


# ---------------------------------------------------------------- the scheduler


@scenario(alone=True)
def unschedulable(w: World) -> None:
    """The condition and the event of a pod that fits nowhere."""
    w.node("tainted", taints=[{"key": "example.com/t", "value": "v", "effect": "NoSchedule"}])
    w.make(pod("large", requests={"cpu": "1000"}))
    w.make(pod("tainted", nodeSelector={"kubernetes.io/hostname": w.name("tainted")}))
    w.make(pod("claimless", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}]))
    w.settle()
    w.dump("pods")


# ---------------------------------------------------------------- StorageVersionMigrations


@scenario(since="1.37")
def migrates(w: World) -> None:
    """All objects of a custom resource are written anew in its present storage version."""
    definition = _widgets(w, "v1")
    name, plural = definition["metadata"]["name"], definition["spec"]["names"]["plural"]
    w.make(definition)
    w.until(lambda: condition(w.read("customresourcedefinitions", name), "Established") == "True")
    path = f"/apis/example.com/v1/namespaces/{w.ns}/{plural}"
    w.until(lambda: w.get(path).status == 200)
    for one in ("a", "b"):
        kind = definition["spec"]["names"]["kind"]
        w.must(w.post(path, {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": one}, "x": 1}))
    versions = _widgets(w, "v2")["spec"]["versions"]
    w.edit("customresourcedefinitions", name, {"spec": {"versions": versions}})
    w.until(lambda: w.read("customresourcedefinitions", name)["status"]["storedVersions"] == ["v1", "v2"])
    w.until(lambda: len(w.get(path).get("items", default=[])) == 2)
    w.settle()
    before = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in w.get(path).json["items"]}
    w.make(_migration(w, "m", plural, "example.com"))
    w.until(lambda: _finished(w, "m"), 120)
    w.settle()
    w.dump("storageversionmigrations", "customresourcedefinitions", managers=True)
    after = w.get(path).json["items"]
    w.fact(
        "written anew",
        {one["metadata"]["name"]: one["metadata"]["resourceVersion"] != before[one["metadata"]["name"]] for one in after},
    )
    w.fact("managers", [[m["manager"] for m in one["metadata"]["managedFields"]] for one in after])
    w.make(_migration(w, "again", plural, "example.com"))
    w.until(lambda: _finished(w, "again"), 120)
    w.settle()
    w.dump("storageversionmigrations", "customresourcedefinitions", label="again")


@scenario(since="1.37")
def migrates_nothing(w: World) -> None:
    """Migrations of a resource without objects, of one that cannot be migrated, and of one that is not served."""
    w.make(_migration(w, "none", "runtimeclasses", "node.k8s.io"))
    w.make(_migration(w, "fixed", "componentstatuses"))
    w.make(_migration(w, "events", "events", "events.k8s.io"))
    w.make(_migration(w, "absent", "nothings", "example.com"))
    w.until(lambda: _finished(w, "none") and _finished(w, "fixed"), 120)
    w.settle()
    w.dump("storageversionmigrations")


@scenario(since="1.37")
def migrations_queue(w: World) -> None:
    """Of two migrations of one resource the second waits; a failure of the first does not stop it."""
    for name in ("b", "a"):
        w.make(_migration(w, name, "componentstatuses"))
    w.until(lambda: _finished(w, "a") and _finished(w, "b"), 120)
    w.settle()
    w.dump("storageversionmigrations")
