"""Scheduling cycles: where pods go, and what is said when they go nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.selectors import from_label_selector
from fakekube.controllers.scheduler.algorithm import NoNodesAvailable, run_pre_filter_plugins, schedule_pod
from fakekube.controllers.scheduler.framework import Cycle, FitError, PodInfo, Snapshot
from fakekube.controllers.scheduler.plugins.node import NodeDeclaredFeatures
from fakekube.controllers.scheduler.plugins.node_resources import BalancedAllocation
from fakekube.controllers.scheduler.preemption import Candidate, PodNotEligible, preempt

Object = dict[str, Any]


class Objects:
    """A lister of given objects."""

    def __init__(self, **objects: list[Object]) -> None:
        self._objects = {name.replace("_", "."): items for name, items in objects.items()}

    def list(self, resource: str, namespace: str = "") -> Iterable[Object]:
        items = self._objects.get(resource.partition(".")[0], [])
        return [one for one in items if namespace in ("", one["metadata"].get("namespace"))]

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        return next((one for one in self.list(resource, namespace) if one["metadata"]["name"] == name), None)


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    taints: list[Object] | None = None,
    **spec: Any,
) -> Object:
    room = {"cpu": cpu, "memory": memory, "pods": pods}
    found = {"kubernetes.io/hostname": name, **(labels or {})}
    return {
        "metadata": {"name": name, "labels": found},
        "spec": {"taints": taints or [], **spec},
        "status": {"allocatable": room},
    }


def pod(
    name: str,
    *,
    cpu: str = "",
    labels: Mapping[str, str] | None = None,
    priority: int = 0,
    ports: Iterable[int] = (),
    **spec: Any,
) -> Object:
    container = {
        "name": "c",
        "resources": {"requests": {"cpu": cpu}} if cpu else {},
        "ports": [{"containerPort": port, "hostPort": port} for port in ports],
    }
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": dict(labels or {}), "resourceVersion": "1"},
        "spec": {"containers": [container], "priority": priority, **spec},
        "status": {},
    }


def snapshot(nodes: Iterable[Object], placed: Mapping[str, list[Object]] | None = None) -> Snapshot:
    made = Snapshot()
    for one in nodes:
        made.set_node(one["metadata"]["name"], one)
    for name, pods in (placed or {}).items():
        for each in pods:
            made.set_pod(PodInfo(each), name)
    return made


def place(obj: Object, known: Snapshot, lister: Objects | None = None) -> str:
    return schedule_pod(Cycle(PodInfo(obj), known, lister or Objects()), lambda name: ())[0]


def refusal(obj: Object, known: Snapshot, lister: Objects | None = None) -> str:
    with pytest.raises(FitError) as caught:
        place(obj, known, lister)
    return str(caught.value)


def required(**affinity: Any) -> Object:
    return {key: {"requiredDuringSchedulingIgnoredDuringExecution": value} for key, value in affinity.items()}


def term(app: str, key: str = "zone") -> Object:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


ZONES = [node("a", labels={"zone": "x"}), node("b", labels={"zone": "x"}), node("c", labels={"zone": "y"})]


def test_no_nodes() -> None:
    with pytest.raises(NoNodesAvailable, match=r"^no nodes available to schedule pods$"):
        place(pod("p"), Snapshot())


@pytest.mark.parametrize(
    ("nodes", "wanted", "message"),
    [
        ([node("a", cpu="1"), node("b", memory="1Gi")], {"cpu": "8"}, "2 Insufficient cpu"),
        ([node("a", pods="0"), node("b", unschedulable=True)], {}, "1 Too many pods, 1 node(s) were unschedulable"),
        ([node("a", taints=[{"key": "k", "effect": "NoSchedule"}])], {}, "1 node(s) had untolerated taint(s)"),
        ([node("a")], {"nodeSelector": {"disk": "ssd"}}, "1 node(s) didn't match Pod's node affinity/selector"),
        (
            [node("a")],
            {"affinity": required(podAffinity=[term("absent", "kubernetes.io/hostname")])},
            "1 node(s) didn't match pod affinity rules",
        ),
        (
            [node("a"), node("b")],
            {
                "affinity": required(
                    nodeAffinity={
                        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["z"]}]}]
                    }
                )
            },
            "2 node(s) didn't satisfy plugin(s) [NodeAffinity]",
        ),
    ],
)
def test_the_fit_error_counts_nodes_by_reason(nodes: list[Object], wanted: Object, message: str) -> None:
    assert refusal(pod("p", **wanted), snapshot(nodes)) == f"0/{len(nodes)} nodes are available: {message}."


def test_a_pre_filter_rejection_is_of_the_whole_pod() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in "ab"]
    affinity = required(nodeAffinity={"nodeSelectorTerms": [{"matchFields": fields}]})
    assert refusal(pod("p", affinity=affinity), snapshot(ZONES)) == "0/3 nodes are available: pod affinity terms conflict."


def test_the_least_allocated_node_is_selected() -> None:
    known = snapshot([node("a", cpu="4"), node("b", cpu="8")])
    assert place(pod("p", cpu="1"), known) == "b"


@pytest.mark.parametrize(("minor", "score"), [(35, 62), (36, 68)])
def test_the_balance_of_a_node_is_compared_with_that_before_since_1_36(minor: int, score: int) -> None:
    known = snapshot([node("a")], {"a": [pod("p", cpu="2")]})
    cycle = Cycle(PodInfo(pod("q", cpu="1")), known, Objects(), minor=minor)
    plugin = BalancedAllocation.pre_score(cycle, list(known.nodes.values()))
    assert plugin is not None
    assert plugin.score(known.nodes["a"]) == score


def test_host_ports_conflict() -> None:
    known = snapshot([node("a")], {"a": [pod("q", ports=[80])]})
    assert place(pod("p", ports=[81]), known) == "a"
    assert "didn't have free ports" in refusal(pod("p", ports=[80]), known)


def test_tolerations_and_soft_taints() -> None:
    hard, soft = {"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "s", "effect": "PreferNoSchedule"}
    known = snapshot([node("a", taints=[hard]), node("b", taints=[soft], cpu="64"), node("c")])
    assert place(pod("p"), known) == "c"
    assert place(pod("p", nodeSelector={"kubernetes.io/hostname": "a"}, tolerations=[{"key": "k", "value": "v"}]), known) == "a"


def test_inter_pod_affinity() -> None:
    known = snapshot(ZONES, {"c": [pod("cache", labels={"app": "cache"})]})
    assert place(pod("near", affinity=required(podAffinity=[term("cache")])), known) == "c"
    assert place(pod("far", affinity=required(podAntiAffinity=[term("cache")])), known) in ("a", "b")
    alone = pod("self", labels={"app": "self"}, affinity=required(podAffinity=[term("self")]))
    assert place(alone, known) in ("a", "b", "c")


def test_anti_affinity_of_existing_pods() -> None:
    shy = pod("shy", affinity=required(podAntiAffinity=[term("loud", "kubernetes.io/hostname")]))
    known = snapshot([node("a")], {"a": [shy]})
    assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in refusal(pod("p", labels={"app": "loud"}), known)


def test_namespaces_of_terms() -> None:
    other = pod("q", labels={"app": "db"})
    other["metadata"]["namespace"] = "other"
    known = snapshot(ZONES, {"c": [other]})
    lister = Objects(namespaces=[{"metadata": {"name": "other", "labels": {"team": "t"}}}])
    by_label = {**term("db"), "namespaceSelector": {"matchLabels": {"team": "t"}}}
    assert place(pod("p", affinity=required(podAffinity=[by_label])), known, lister) == "c"
    assert "pod affinity rules" in refusal(pod("p", affinity=required(podAffinity=[term("db")])), known, lister)


def spread(max_skew: int = 1, **more: Any) -> list[Object]:
    return [
        {
            "maxSkew": max_skew,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "s"}},
            **more,
        }
    ]


def test_topology_spread_constraints() -> None:
    there = {"a": [pod("1", labels={"app": "s"})]}
    assert place(pod("p", labels={"app": "s"}, topologySpreadConstraints=spread()), snapshot(ZONES, there)) == "c"
    only = pod("p", labels={"app": "s"}, topologySpreadConstraints=spread(), nodeSelector={"kubernetes.io/hostname": "a"})
    assert place(only, snapshot(ZONES, there)) == "a"  # other zones are out of its reach, and do not count
    full = pod(
        "p",
        labels={"app": "s"},
        topologySpreadConstraints=spread(nodeAffinityPolicy="Ignore"),
        nodeSelector={"kubernetes.io/hostname": "a"},
    )
    assert "1 node(s) didn't match pod topology spread constraints" in refusal(full, snapshot(ZONES, there))
    few = pod("p", labels={"app": "s"}, topologySpreadConstraints=spread(minDomains=3))
    assert place(few, snapshot(ZONES, there)) == "c"


def test_a_node_without_the_topology_label_is_rejected() -> None:
    message = refusal(pod("p", topologySpreadConstraints=spread()), snapshot([node("bare")]))
    assert "pod topology spread constraints (missing required label)" in message


def test_default_spreading_of_services() -> None:
    there = {"a": [pod(str(number), labels={"app": "s"}) for number in range(3)]}
    service = {"metadata": {"name": "s", "namespace": "ns"}, "spec": {"selector": {"app": "s"}}}
    nodes = [node("a", cpu="64", memory="64Gi"), node("b")]
    assert place(pod("p", labels={"app": "s"}), snapshot(nodes, there), Objects(services=[service])) == "b"


def test_volume_claims() -> None:
    using = pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    claim: Object = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {}, "status": {"phase": "Pending"}}
    assert refusal(using, snapshot(ZONES)) == '0/3 nodes are available: persistentvolumeclaim "c" not found.'
    message = refusal(using, snapshot(ZONES), Objects(persistentvolumeclaims=[claim]))
    assert message == "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    bound = {
        "metadata": {**claim["metadata"], "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v"},
        "status": {"phase": "Bound"},
    }
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["y"]}]}]
    volume = {"metadata": {"name": "v"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}
    assert place(using, snapshot(ZONES), Objects(persistentvolumeclaims=[bound], persistentvolumes=[volume])) == "c"


# ---------------------------------------------------------------- preemption


def preempted(obj: Object, known: Snapshot, budgets: list[Object] | None = None) -> Candidate:
    cycle = Cycle(PodInfo(obj), known, Objects())
    with pytest.raises(FitError) as caught:
        schedule_pod(cycle, lambda name: ())
    return preempt(run_pre_filter_plugins(cycle), caught.value.diagnosis, budgets or [], lambda name: ())


def test_preemption_removes_the_least_important_pods() -> None:
    there = {"a": [pod("low", cpu="2", priority=1), pod("lower", cpu="2")], "b": [pod("high", cpu="4", priority=9)]}
    found = preempted(pod("p", cpu="1", priority=10), snapshot([node("a"), node("b")], there))
    assert (found.node, [one.name for one in found.victims]) == ("a", ["lower"])


def test_preemption_avoids_violating_disruption_budgets() -> None:
    there = {"a": [pod("guarded", cpu="4", labels={"app": "g"})], "b": [pod("free", cpu="4", priority=5)]}
    budget = {
        "metadata": {"namespace": "ns"},
        "spec": {"selector": {"matchLabels": {"app": "g"}}},
        "status": {"disruptionsAllowed": 0},
    }
    known = snapshot([node("a"), node("b")], there)
    assert preempted(pod("p", cpu="4", priority=10), known).node == "a"
    assert preempted(pod("p", cpu="4", priority=10), known, [budget]).node == "b"


def test_preemption_does_not_help() -> None:
    there = {"a": [pod("peer", cpu="4", priority=10)], "b": [pod("low", cpu="1")]}
    known = snapshot([node("a"), node("b", taints=[{"key": "k", "effect": "NoSchedule"}])], there)
    with pytest.raises(FitError) as caught:
        preempted(pod("p", cpu="4", priority=10), known)
    assert str(caught.value) == (
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    )
    with pytest.raises(PodNotEligible, match="preemptionPolicy=Never"):
        preempted(pod("p", cpu="4", priority=10, preemptionPolicy="Never"), known)


# ---------------------------------------------------------------- the snapshot

SELECTORS = [from_label_selector({"matchLabels": {"app": app}}) for app in "ab"]
CHANGES = st.lists(
    st.tuples(st.sampled_from("pqrs"), st.sampled_from(["", "n", "m"]), st.sampled_from("ab"), st.booleans()), max_size=30
)


@given(CHANGES)
def test_incremental_node_info_equals_a_new_one(changes: list[tuple[str, str, str, bool]]) -> None:
    known = Snapshot()
    for name in "nm":
        known.set_node(name, node(name))
    placed: dict[str, tuple[str, str, bool]] = {}
    for selector in SELECTORS:
        known.count_matching("ns", selector)
    for name, where, app, ends in changes:
        obj = pod(name, cpu="1", labels={"app": app})
        if ends:
            obj["metadata"]["deletionTimestamp"] = "now"
        if where:
            known.set_pod(PodInfo(obj), where)
            placed[name] = (where, app, ends)
        else:
            known.remove_pod(name)
            placed.pop(name, None)
    for selector, app in zip(SELECTORS, "ab", strict=True):
        wanted = {one: sum(found == (one, app, False) for found in placed.values()) for one in "nm"}
        assert known.count_matching("ns", selector) == {one: count for one, count in wanted.items() if count}
    for one in "nm":
        here = [name for name, found in placed.items() if found[0] == one]
        assert set(known.nodes[one].pods) == set(here)
        assert known.nodes[one].requested.get("cpu", 0) == 1000 * len(here)


@pytest.mark.parametrize(
    ("minor", "spec", "needs"),
    [
        (36, {"hostNetwork": True, "hostUsers": False}, True),
        (35, {"hostNetwork": True, "hostUsers": False}, False),
        (36, {"hostNetwork": True}, False),
        (37, {"initContainers": [{"volumeMounts": [{"name": "v", "bindMountOptions": ["noexec"]}]}]}, True),
        (37, {"initContainers": [{"volumeMounts": [{"name": "v"}]}]}, False),
    ],
)
def test_features_that_a_pod_needs(minor: int, spec: Object, needs: bool) -> None:
    cycle = Cycle(PodInfo(pod("p", **spec)), Snapshot(), Objects(), minor, node_declared_features=True)
    assert (NodeDeclaredFeatures.pre_filter(cycle) is not None) is needs
