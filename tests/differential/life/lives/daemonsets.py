"""DaemonSets: a pod on every node that will have one."""

from __future__ import annotations

from tests.differential.life.manifests import image, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


def where(w: World) -> list[str]:
    """The nodes that the daemon's pods are bound for, by their affinity."""
    return sorted(
        p["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0][
            "matchFields"
        ][0]["values"][0]
        for p in w.all("pods")
    )


@scenario(alone=True)
def nodes_come_and_go(w: World) -> None:
    """Every node gets a pod: by an affinity to its name, with tolerations for what a node may suffer from; a node's end is not counted before its pod's."""
    w.node("a")
    w.node("b")
    w.make(workload("DaemonSet", "agent", None))
    w.settle()
    w.dump("daemonsets", "pods", "controllerrevisions", managers=True)
    w.node("c")
    w.settle()
    w.fact("with c", where(w))
    w.dump("daemonsets", label="with c")
    w.remove("nodes", w.name("a"))
    w.settle()
    w.dump("daemonsets", label="without a")


@scenario(alone=True)
def chooses_nodes(w: World) -> None:
    """nodeSelector and labels decide; a label taken away takes the pod away; a cordoned node counts, a tainted one does not."""
    w.node("a", labels={"role": "edge"})
    w.node("b")
    w.node("c", labels={"role": "edge"}, taints=[{"key": "own", "value": "x", "effect": "NoSchedule"}])
    w.node("d", labels={"role": "edge"}, unschedulable=True)
    w.make(workload("DaemonSet", "agent", None, pods={"nodeSelector": {"role": "edge"}}))
    w.settle()
    w.fact("chosen", where(w))
    w.dump("daemonsets", label="chosen")
    w.edit("nodes", w.name("b"), {"metadata": {"labels": {"role": "edge"}}})
    w.edit("nodes", w.name("a"), {"metadata": {"labels": {"role": None}}})
    w.settle()
    w.fact("relabelled", where(w))
    w.edit("nodes", w.name("d"), {"spec": {"taints": [{"key": "own", "value": "x", "effect": "NoExecute"}]}})
    w.settle()
    w.fact("tainted", where(w))
    w.dump("daemonsets", label="tainted")


@scenario(alone=True)
def rolls(w: World) -> None:
    """Pods are replaced node by node (maxUnavailable 1); with maxSurge the new one comes first; with OnDelete never."""
    for name in "abc":
        w.node(name)
    w.make(workload("DaemonSet", "agent", None))
    w.make(workload("DaemonSet", "surge", None, updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}))
    w.make(workload("DaemonSet", "manual", None, updateStrategy={"type": "OnDelete"}))
    w.settle()
    for name in ("agent", "surge", "manual"):
        w.edit("daemonsets", name, image("app:2"))
    w.settle()
    w.dump("daemonsets", "controllerrevisions")
    w.fact("images", sorted([p["metadata"]["labels"]["app"], p["spec"]["containers"][0]["image"]] for p in w.all("pods")))


@scenario(alone=True)
def failed_daemon(w: World) -> None:
    """A failed pod is deleted and made again, and an event says so."""
    w.node("a")
    w.make(workload("DaemonSet", "agent", None, hand=True))
    w.settle()
    w.dump("daemonsets", label="not ready")
    w.run(w.all("pods")[0], phase="Failed", reason="Evicted", message="gone")
    w.settle()
    w.dump("daemonsets", "pods", label="again")


@scenario(alone=True)
def does_not_fit(w: World) -> None:
    """A pod is made for a node on which it does not fit, and waits there."""
    w.node("a", cpu="1")
    w.node("b", cpu="4")
    w.make(workload("DaemonSet", "agent", None, pods={"requests": {"cpu": "2"}}))
    w.settle()
    w.dump("daemonsets", "pods")
