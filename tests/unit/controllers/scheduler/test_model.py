"""A cluster's scheduler against a naive model: no node gives more than it has, and no pod waits that would fit."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fakekube import Cluster

Object = dict[str, Any]

NODES = {"a": ("2", "x"), "b": ("3", "y"), "c": ("1", "y")}
TAINT = {"key": "k", "effect": "NoSchedule"}

POD = st.fixed_dictionaries(
    {
        "cpu": st.integers(1, 3),
        "zone": st.sampled_from([None, "x", "y"]),
        "tolerates": st.booleans(),
        "port": st.sampled_from([None, 80]),
    }
)
STEP = st.one_of(
    st.tuples(st.just("pod"), POD),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.sampled_from(["cordon", "uncordon", "taint", "untaint"]), st.sampled_from(sorted(NODES))),
)


def pod(name: str, wanted: Object) -> Object:
    container: Object = {"name": "c", "image": "x", "resources": {"requests": {"cpu": str(wanted["cpu"])}}}
    if wanted["port"]:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    spec: Object = {"containers": [container]}
    if wanted["zone"]:
        spec["nodeSelector"] = {"zone": wanted["zone"]}
    if wanted["tolerates"]:
        spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}


def do(cluster: Cluster, step: tuple[str, Any], wanted: dict[str, Object]) -> None:
    what, about = step
    if what == "pod":
        name = f"p{len(wanted)}"
        wanted[name] = about
        cluster.create(pod(name, about))
    elif what == "delete":
        names = [one["metadata"]["name"] for one in cluster.list("pods")]
        if about < len(names):
            cluster.delete("pods", names[about])
    elif what in ("cordon", "uncordon"):
        getattr(cluster.nodes, what)(about)
    elif what == "taint":
        cluster.nodes.taint(about, "k", effect="NoSchedule")
    else:
        cluster.nodes.untaint(about, "k")


def fits(wanted: Object, node: Object, used: Counter[str], ports: Counter[str]) -> bool:
    name, spec = node["metadata"]["name"], node["spec"]
    cpu, zone = NODES[name]
    taints = [one for one in spec.get("taints", ()) if one["key"] == "k"]
    return (
        wanted["zone"] in (None, zone)
        and used[name] + wanted["cpu"] <= int(cpu)
        and not spec.get("unschedulable")
        and (wanted["tolerates"] or not taints)
        and not (wanted["port"] and ports[name])
    )


@settings(max_examples=8)
@given(st.lists(STEP, max_size=14))
def test_the_scheduler_matches_a_naive_model(steps: list[tuple[str, Any]]) -> None:
    cluster = Cluster(nodes=0)
    for name, (cpu, zone) in NODES.items():
        cluster.nodes.add(name, cpu=cpu, labels={"zone": zone})
    cluster.settle()
    wanted: dict[str, Object] = {}
    for step in steps:
        do(cluster, step, wanted)
        cluster.settle()
        placed = {one["metadata"]["name"]: one["spec"].get("nodeName") for one in cluster.list("pods")}
        used, ports = Counter[str](), Counter[str]()
        for name, node in placed.items():
            if node:
                used[node] += wanted[name]["cpu"]
                ports[node] += wanted[name]["port"] is not None
        assert all(used[name] <= int(cpu) and ports[name] <= 1 for name, (cpu, _) in NODES.items())
        waiting = [wanted[name] for name, node in placed.items() if not node]
        assert not any(fits(one, node, used, ports) for one in waiting for node in cluster.nodes)
    cluster.stop()
