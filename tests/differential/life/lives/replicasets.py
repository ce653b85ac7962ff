"""ReplicaSets and ReplicationControllers: which pods are theirs, which go first, what their status says."""

from __future__ import annotations

from tests.differential.life.manifests import config, owner, pod, template, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


def controller(name: str, replicas: int, hand: bool = False) -> dict[str, object]:
    return {
        "kind": "ReplicationController",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"app": name}, "template": template({"app": name}, hand=hand)},
    }


@scenario
def adopts_matching_pods(w: World) -> None:
    """Pods without a controller that match are adopted and counted; those of another controller, failed or of other labels are not."""
    w.make(pod("mine", {"app": "web"}))
    w.make(pod("stranger", {"app": "other"}))
    boss = w.make(config("boss"))
    taken = pod("taken", {"app": "web"})
    taken["metadata"]["ownerReferences"] = [owner(boss, controller=True)]
    w.make(taken)
    kept = pod("kept", {"app": "web"})
    kept["metadata"]["ownerReferences"] = [owner(boss)]
    w.make(kept)
    w.settle()
    w.make(workload("ReplicaSet", "web", 3))
    w.settle()
    w.dump("replicasets", "pods")


@scenario
def too_many_pods(w: World) -> None:
    """Adopted pods beyond `replicas` are deleted: unscheduled and unready ones first."""
    for name in ("a", "b", "c", "d"):
        w.make(pod(name, {"app": "web"}, hand=True))
    for name in ("b", "d"):
        w.run(name)
    w.settle()
    w.make(workload("ReplicaSet", "web", 2, hand=True))
    w.settle()
    w.dump("replicasets", label="two left")
    w.fact("left", sorted(p["metadata"]["name"] for p in w.all("pods")))


@scenario
def deletion_cost(w: World) -> None:
    """Of pods alike in readiness the one with the lowest controller.kubernetes.io/pod-deletion-cost goes first."""
    for name, cost in (("a", "5"), ("b", "-3"), ("c", "0"), ("d", "100")):
        p = pod(name, {"app": "web"}, hand=True, annotations={"controller.kubernetes.io/pod-deletion-cost": cost})
        w.make(p)
        w.run(name)
    w.settle()
    w.make(workload("ReplicaSet", "web", 4, hand=True))
    w.settle()
    w.edit("replicasets", "web", {"spec": {"replicas": 2}})
    w.settle()
    w.fact("left", sorted(p["metadata"]["name"] for p in w.all("pods")))
    w.dump("replicasets", "pods")


@scenario
def status_counts(w: World) -> None:
    """replicas, fullyLabeled, ready, available and terminating replicas are counted apart."""
    rs = workload("ReplicaSet", "web", 3, hand=True)
    rs["spec"]["template"]["metadata"]["labels"]["extra"] = "1"
    w.make(pod("plain", {"app": "web"}, hand=True))
    w.make(rs)
    w.settle()
    w.run("plain")
    w.settle()
    w.dump("replicasets", label="one ready")
    w.edit("pods", "plain", {"metadata": {"finalizers": ["example.com/wait"]}})
    w.remove("pods", "plain")
    w.settle()
    w.dump("replicasets", label="one terminating")
    w.edit("pods", "plain", {"metadata": {"finalizers": None}})
    w.settle()
    w.dump("replicasets", label="gone")


@scenario
def failed_pods(w: World) -> None:
    """A pod that failed or succeeded counts no more, is replaced and stays."""
    w.make(workload("ReplicaSet", "web", 2, hand=True))
    w.settle()
    first, second = (p["metadata"]["name"] for p in w.all("pods"))
    w.run(first, phase="Failed", reason="Evicted", message="The node was low on resource: memory.")
    w.run(second, phase="Succeeded")
    w.settle()
    w.dump("replicasets", "pods")


@scenario
def controller_runs(w: World) -> None:
    """A ReplicationController does as a ReplicaSet does, with a map for a selector and the labels for a default."""
    w.make(controller("old", 2))
    w.settle()
    w.dump("replicationcontrollers", "pods", managers=True, label="made")
    w.edit("replicationcontrollers", "old", {"spec": {"replicas": 1}})
    w.settle()
    w.dump("replicationcontrollers", label="fewer")
    w.remove("replicationcontrollers", "old", "Orphan")
    w.settle()
    w.dump("replicationcontrollers", "pods", label="orphans")
    w.make(controller("old", 1))
    w.settle()
    w.dump("replicationcontrollers", "pods", label="adopted")


@scenario
def template_is_for_new_pods(w: World) -> None:
    """A changed template touches no pod that is there."""
    w.make(workload("ReplicaSet", "web", 1))
    w.settle()
    w.edit("replicasets", "web", {"spec": {"replicas": 2, "template": {"metadata": {"labels": {"v": "2"}}}}})
    w.settle()
    w.dump("replicasets", "pods")


@scenario
def cannot_make_pods(w: World) -> None:
    """A ReplicaSet whose pods are refused says so in the condition ReplicaFailure, and in events."""
    w.make({"kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
    w.settle()
    w.make(workload("ReplicaSet", "web", 3))
    w.settle()
    w.dump("replicasets", "pods", "resourcequotas")
