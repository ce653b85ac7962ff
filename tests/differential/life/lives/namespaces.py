"""Namespaces end: what they do with their contents, and how they say why they wait."""

from __future__ import annotations

from tests.differential.client import MERGE
from tests.differential.life.manifests import condition, config, pod, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


@scenario
def empties_itself(w: World) -> None:
    """A deleted namespace takes everything in it along, running pods and all."""
    other = w.space("other")
    w.make(workload("Deployment", "web", 2), ns=other)
    w.make(config("a"), ns=other)
    w.make({"kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}}, ns=other)
    w.settle()
    w.remove("namespaces", other)
    w.until(lambda: w.read("namespaces", other) is None, 60)
    w.fact("gone", w.read("namespaces", other) is None)


@scenario
def waits_for_finalizers(w: World) -> None:
    """While finalizers remain the namespace is Terminating, and its conditions count resources and finalizers."""
    other = w.space("other")
    w.make(config("a", finalizers=["example.com/one"]), ns=other)
    w.make(config("b", finalizers=["example.com/one", "example.com/two"]), ns=other)
    w.make({"kind": "Secret", "metadata": {"name": "s", "finalizers": ["example.com/two"]}}, ns=other)
    w.make(config("free"), ns=other)
    w.settle()
    w.remove("namespaces", other)
    w.until(lambda: condition(w.read("namespaces", other), "NamespaceFinalizersRemaining") == "True")
    w.settle()
    w.dump("namespaces", names=[other], label="waiting")
    w.dump("configmaps", "secrets", "serviceaccounts", ns=other, label="left")
    w.answer("create", w.post(w.at("configmaps", ns=other), config("new")))
    for kind, name in (("configmaps", "a"), ("configmaps", "b"), ("secrets", "s")):
        w.edit(kind, name, {"metadata": {"finalizers": None}}, ns=other)
    w.until(lambda: w.read("namespaces", other) is None, 60)
    w.fact("gone", w.read("namespaces", other) is None)


@scenario
def pods_go_first(w: World) -> None:
    """Nothing but pods is deleted while pods remain (and the conditions do not tell of them)."""
    other = w.space("other")
    w.until(lambda: w.read("serviceaccounts", "default", ns=other))
    held = pod("held", hand=True)
    held["metadata"]["finalizers"] = ["example.com/wait"]
    w.make(held, ns=other)
    w.make(config("a"), ns=other)
    w.settle()
    w.remove("namespaces", other)
    w.until(lambda: condition(w.read("namespaces", other), "NamespaceContentRemaining"))
    w.settle()
    w.dump("namespaces", names=[other], label="waiting")
    w.dump("configmaps", ns=other, label="left")
    w.patch(w.at("pods", "held", other), {"metadata": {"finalizers": None}}, MERGE)
    w.until(lambda: w.read("namespaces", other) is None, 60)
    w.fact("gone", w.read("namespaces", other) is None)


@scenario
def a_finalizer_of_ones_own(w: World) -> None:
    """spec.finalizers holds the empty namespace until /finalize takes the last one."""
    name = w.name("own")
    w.must(w.post("/api/v1/namespaces", {"metadata": {"name": name}, "spec": {"finalizers": ["kubernetes", "example.com/mine"]}}))
    w.spaces.append(name)
    w.settle()
    w.remove("namespaces", name)
    w.until(lambda: (w.read("namespaces", name) or {})["spec"].get("finalizers") == ["example.com/mine"])
    w.settle()
    w.dump("namespaces", names=[name])
    now = w.read("namespaces", name) or {"spec": {}}
    w.must(w.put(w.at("namespaces", name) + "/finalize", {**now, "spec": {"finalizers": []}}))
    w.until(lambda: w.read("namespaces", name) is None, 60)
    w.fact("gone", w.read("namespaces", name) is None)
