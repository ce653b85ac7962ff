"""The scheduler: where pods go, and what is said when they go nowhere."""

from __future__ import annotations

from tests.differential.life.manifests import condition, pod, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


def places(w: World) -> dict[str, str | None]:
    return {p["metadata"]["name"]: p["spec"].get("nodeName") for p in w.all("pods")}


def message(w: World, name: str) -> list[str | None]:
    p = w.read("pods", name)
    return [condition(p, "PodScheduled"), condition(p, "PodScheduled", "reason"), condition(p, "PodScheduled", "message")]


def prefer(key: str, value: str, weight: int) -> dict[str, object]:
    return {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}}


@scenario(alone=True)
def resources(w: World) -> None:
    """A pod goes where what it asks for is free; else the message counts nodes by what they lack."""
    w.node("small", cpu="1", memory="1Gi")
    w.node("big", cpu="4", memory="2Gi")
    w.make(pod("large", requests={"cpu": "3"}))
    w.settle()
    for name, ask in (
        ("cpu", {"cpu": "2"}),
        ("both", {"cpu": "5", "memory": "3Gi"}),
        ("gpu", {"cpu": "1", "example.com/gpu": "1"}),
        ("fits", {"cpu": "1"}),
    ):
        p = pod(name, requests=ask)
        if name == "gpu":
            p["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "1"}
        w.make(p)
        w.settle()
    w.dump("pods")
    w.remove("pods", "large")
    w.until(lambda: (w.read("pods", "cpu") or {})["spec"].get("nodeName"), 20)
    w.settle()
    w.fact("freed", places(w))


@scenario(alone=True)
def selectors_and_affinity(w: World) -> None:
    """nodeSelector and required affinity exclude; preferred affinity chooses among the rest."""
    w.node("a", labels={"zone": "x", "disk": "ssd"})
    w.node("b", labels={"zone": "y", "disk": "hdd", "size": "3"})
    required = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["2"]}]},
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["nowhere"]}]},
                ]
            }
        }
    }
    w.make(pod("selected", nodeSelector={"disk": "ssd"}))
    w.make(pod("required", affinity=required))
    w.make(
        pod(
            "preferred",
            affinity={
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [prefer("zone", "y", 90), prefer("disk", "ssd", 10)]
                }
            },
        )
    )
    w.make(pod("nowhere", nodeSelector={"disk": "tape"}))
    w.settle()
    w.fact("places", places(w))
    w.fact("nowhere", message(w, "nowhere"))
    w.edit("nodes", w.name("b"), {"metadata": {"labels": {"disk": "tape"}}})
    w.until(lambda: (w.read("pods", "nowhere") or {})["spec"].get("nodeName"), 20)
    w.settle()
    w.fact("found", places(w))


@scenario(alone=True)
def pods_attract_and_repel(w: World) -> None:
    """podAffinity goes to, podAntiAffinity away from nodes (or zones) with certain pods; it holds in both directions."""
    for name, zone in (("a", "x"), ("b", "x"), ("c", "y")):
        w.node(name, labels={"zone": zone})

    def term(app: str, key: str) -> list[dict[str, object]]:
        return [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]

    w.make(pod("cache", {"app": "cache"}, nodeSelector={"kubernetes.io/hostname": w.name("c")}))
    w.settle()
    w.make(
        pod(
            "near",
            {"app": "near"},
            affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term("cache", "zone")}},
        )
    )
    w.make(
        pod(
            "shy",
            {"app": "shy"},
            affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term("cache", "zone")}},
            nodeSelector={"zone": "y"},
        )
    )
    w.make(
        pod(
            "lonely",
            {"app": "lonely"},
            affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term("absent", "zone")}},
        )
    )
    w.make(
        pod(
            "self",
            {"app": "self"},
            affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term("self", "zone")}},
            nodeSelector={"zone": "y"},
        )
    )
    w.settle()
    w.make(
        workload(
            "Deployment",
            "spread",
            4,
            pods={
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": term("spread", "kubernetes.io/hostname")
                    }
                }
            },
        )
    )
    w.settle()
    w.fact("near", places(w).get("near"))
    w.fact("self", places(w).get("self"))
    w.fact("shy", message(w, "shy"))
    w.fact("lonely", message(w, "lonely"))
    spread = w.all("pods", "app=spread")
    w.fact("spread", sorted(str(p["spec"].get("nodeName")) for p in spread))
    w.fact("one too many", [condition(p, "PodScheduled", "message") for p in spread if not p["spec"].get("nodeName")])


@scenario(alone=True)
def taints(w: World) -> None:
    """NoSchedule repels what does not tolerate it, PreferNoSchedule only if there is another place; a cordon is a taint."""
    w.node("a", taints=[{"key": "own", "value": "x", "effect": "NoSchedule"}])
    w.node("b", taints=[{"key": "soft", "effect": "PreferNoSchedule"}])
    w.node("c", unschedulable=True)
    w.settle()
    w.dump("nodes")
    w.make(pod("plain"))
    w.make(
        pod(
            "tolerant",
            nodeSelector={"kubernetes.io/hostname": w.name("a")},
            tolerations=[{"key": "own", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
        )
    )
    w.make(pod("wrong", nodeSelector={"kubernetes.io/hostname": w.name("a")}, tolerations=[{"key": "own", "value": "y"}]))
    w.make(pod("cordoned", nodeSelector={"kubernetes.io/hostname": w.name("c")}))
    w.settle()
    w.fact("places", places(w))
    w.fact("wrong", message(w, "wrong"))
    w.fact("cordoned", message(w, "cordoned"))
    w.edit("nodes", w.name("c"), {"spec": {"unschedulable": False}})
    w.until(lambda: (w.read("pods", "cordoned") or {})["spec"].get("nodeName"), 20)
    w.settle()
    w.fact("free again", places(w))


@scenario(alone=True)
def spread_over_zones(w: World) -> None:
    """maxSkew 1 with DoNotSchedule: zones fill evenly, and a full zone stops the others."""
    w.node("a", labels={"zone": "x"}, pods="2")
    w.node("b", labels={"zone": "y"})
    w.make(
        workload(
            "Deployment",
            "even",
            6,
            pods={
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"app": "even"}},
                    }
                ]
            },
        )
    )
    w.settle()
    w.fact("places", sorted(str(p["spec"].get("nodeName")) for p in w.all("pods")))
    w.fact("why", sorted({str(condition(p, "PodScheduled", "message")) for p in w.all("pods") if not p["spec"].get("nodeName")}))


@scenario(alone=True)
def no_nodes(w: World) -> None:
    """Without any node the message says so; the first node takes the pod; a preset nodeName asks no scheduler."""
    w.make(pod("early"))
    w.settle()  # the scheduler has tried it before the other pod lets it try again
    w.make(pod("preset", nodeName=w.name("later")))
    w.settle()
    w.dump("pods", label="no nodes")
    w.node("later")
    w.until(lambda: (w.read("pods", "early") or {})["status"]["phase"] == "Running", 20)
    w.settle()
    w.dump("pods", label="a node")


@scenario
def gates(w: World) -> None:
    """A gated pod is not looked at: PodScheduled False, SchedulingGated; gates come off one by one, or with another scheduler never matter."""
    w.make(pod("gated", schedulingGates=[{"name": "example.com/a"}, {"name": "example.com/b"}]))
    w.make(pod("stranger", schedulerName="nobody"))
    w.settle()
    w.dump("pods", label="gated")
    w.must(
        w.patch(w.at("pods", "gated"), {"spec": {"schedulingGates": [{"name": "example.com/b"}]}}, "application/merge-patch+json")
    )
    w.settle()
    w.dump("pods", label="one left", names=["gated"])
    w.edit("pods", "gated", {"spec": {"schedulingGates": []}})
    w.settle()
    w.dump("pods", label="free", names=["gated"])


@scenario(alone=True)
def preemption(w: World) -> None:
    """A pod of higher priority takes the place of the lowest that makes room; the victim says why; a nominated node is noted."""
    for name, value, policy in (("low", 10, None), ("high", 1000, None), ("meek", 1000, "Never")):
        w.make(
            {
                "kind": "PriorityClass",
                "metadata": {"name": w.name(name)},
                "value": value,
                **({"preemptionPolicy": policy} if policy else {}),
            }
        )
    w.node("a", cpu="2")
    w.make(pod("plain", requests={"cpu": "1"}))
    w.make(pod("low", requests={"cpu": "1"}, priorityClassName=w.name("low")))
    w.settle()
    w.make(pod("meek", requests={"cpu": "1"}, priorityClassName=w.name("meek")))
    w.settle()
    w.fact("meek", message(w, "meek"))
    w.remove("pods", "meek")
    w.make(pod("high", requests={"cpu": "1"}, priorityClassName=w.name("high")))
    w.until(lambda: (w.read("pods", "high") or {})["status"]["phase"] == "Running", 20)
    w.settle()
    w.dump("pods")
    w.order("order")


@scenario(alone=True)
def ports_and_names(w: World) -> None:
    """A host port is free once per node; matchFields choose a node by name."""
    w.node("a")
    for i in (1, 2):
        p = pod(f"port{i}")
        p["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        w.make(p)
        w.settle()
    w.make(
        pod(
            "named",
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [w.name("b")]}]}
                        ]
                    }
                }
            },
        )
    )
    w.settle()
    w.fact("second", message(w, "port2"))
    w.fact("named", message(w, "named"))


@scenario(alone=True)
def most_free_first(w: World) -> None:
    """Of nodes that fit, the one with more left is taken."""
    w.node("a", cpu="4", memory="8Gi")
    w.node("b", cpu="8", memory="16Gi")
    for i in range(3):
        w.make(pod(f"p{i}", requests={"cpu": "1", "memory": "2Gi"}))
        w.settle()
    w.fact("places", places(w))
