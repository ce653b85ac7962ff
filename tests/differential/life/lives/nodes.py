"""Nodes: what they are given, how they fail, what becomes of their pods."""

from __future__ import annotations

import time

from tests.differential.life.manifests import pod, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


def taint_keys(w: World, name: str) -> list[str]:
    return sorted(f"{t['key']}:{t['effect']}" for t in (w.read("nodes", name) or {"spec": {}})["spec"].get("taints", []))


def heartbeat(w: World, name: str, ready: str) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    w.edit(
        "nodes",
        name,
        {
            "status": {
                "conditions": [
                    {
                        "type": "Ready",
                        "status": ready,
                        "reason": "ByHand",
                        "message": "by hand",
                        "lastHeartbeatTime": now,
                        "lastTransitionTime": now,
                    }
                ]
            }
        },
        "status",
    )


@scenario(alone=True)
def comes_up(w: World) -> None:
    """A node gets its labels and the annotation of the TTL controller; once ready it has no taint left."""
    w.node("a")
    w.settle()
    w.dump("nodes", managers=False)
    w.fact("taints", taint_keys(w, w.name("a")))


@scenario(alone=True)
def silent_and_not_ready(w: World) -> None:
    """A node that has not spoken loses its first taint again; Ready False taints NoSchedule and NoExecute (if not all nodes are so), and leaves the pods' conditions."""
    w.node("well")
    w.node("s", silent=True)
    w.settle()
    w.fact("new", taint_keys(w, w.name("s")))
    heartbeat(w, w.name("s"), "True")
    w.until(lambda: taint_keys(w, w.name("s")) == [])
    w.make(pod("p", nodeName=w.name("s")))
    w.make(
        pod(
            "brief",
            nodeName=w.name("s"),
            tolerations=[
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
            ],
        )
    )
    w.settle()
    for name in ("p", "brief"):
        w.run(name)
    w.settle()
    heartbeat(w, w.name("s"), "False")
    w.until(lambda: "node.kubernetes.io/not-ready:NoExecute" in taint_keys(w, w.name("s")))
    w.settle()
    w.fact("not ready", taint_keys(w, w.name("s")))
    w.dump("pods", mask=("deletionTimestamp",))


@scenario(alone=True)
def drives_pods_out(w: World) -> None:
    """NoExecute deletes pods that do not tolerate it, at once or after tolerationSeconds; for ever tolerated they stay."""
    w.node("a")
    for name, more in (
        ("none", []),
        ("short", [{"key": "fire", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 6}]),
        ("ever", [{"key": "fire", "operator": "Exists"}]),
    ):
        w.make(pod(name, tolerations=more))
    w.settle()
    w.edit("nodes", w.name("a"), {"spec": {"taints": [{"key": "fire", "effect": "NoExecute"}]}})
    w.until(lambda: w.read("pods", "none") is None)
    w.fact("at once", sorted(p["metadata"]["name"] for p in w.all("pods")))
    w.until(lambda: w.read("pods", "short") is None, 20)
    w.settle()
    w.fact("later", sorted(p["metadata"]["name"] for p in w.all("pods")))


@scenario(alone=True)
def deleted_with_its_pods(w: World) -> None:
    """Pods of a node that is gone are deleted by the pod garbage collector (after 40 seconds, looked at every 20), with a condition on the way."""
    w.node("a", labels={"pick": "me"})
    w.node("b")
    w.make(workload("Deployment", "web", 2, pods={"nodeSelector": {"pick": "me"}}))
    w.settle()
    w.remove("nodes", w.name("a"))
    w.settle()
    w.fact("still there", len(w.all("pods")))
    w.until(lambda: all(not p["spec"].get("nodeName") for p in w.all("pods")), 90)
    w.settle()
    w.dump("deployments", "pods")
