"""Disruption budgets and evictions."""

from __future__ import annotations

from tests.differential.life.manifests import pod, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World
from tests.differential.transports import Reply


def budget(name: str, selector: dict[str, str] | None, **spec: object) -> dict[str, object]:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": selector} if selector is not None else None, **spec},
    }


def evict(w: World, name: str, **options: object) -> Reply:
    return w.post(
        w.at("pods", name) + "/eviction",
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": w.ns},
            **({"deleteOptions": options} if options else {}),
        },
    )


@scenario
def counts(w: World) -> None:
    """minAvailable and maxUnavailable, as numbers and shares, of the pods that the controllers want."""
    rules = {
        "least": {"minAvailable": 3},
        "share": {"minAvailable": "50%"},
        "most": {"maxUnavailable": "30%"},
        "all": {"minAvailable": "100%"},
    }
    for name in rules:
        w.make(workload("Deployment", name, 5))
    w.settle()
    for name, rule in rules.items():
        w.make(budget(name, {"app": name}, **rule))
    w.make(budget("nobody", {"app": "absent"}, maxUnavailable=1))
    w.settle()
    w.dump("poddisruptionbudgets", managers=True)
    for name in rules:
        w.edit("deployments", name, {"spec": {"replicas": 2}})
    w.settle()
    w.dump("poddisruptionbudgets", label="fewer")


@scenario
def evictions_are_counted(w: World) -> None:
    """An eviction takes from disruptionsAllowed at once; with none left it is 429; the pod goes with a condition."""
    for name in ("a", "b", "c"):
        p = pod(name, {"app": "x"}, hand=True)
        w.make(p)
        w.run(name)
    w.make(budget("b", {"app": "x"}, minAvailable=2))
    w.settle()
    w.dump("poddisruptionbudgets")
    w.answer("first", evict(w, "a"))
    w.settle()
    w.answer("second", evict(w, "b"))
    w.dump("poddisruptionbudgets", "pods", label="none allowed")


@scenario
def evictions_of_pods_that_run(w: World) -> None:
    """An evicted pod on a node is marked DisruptionTarget, ends and is replaced; a dry run is only asked."""
    w.make(workload("ReplicaSet", "web", 1))
    w.settle()
    name = w.all("pods")[0]["metadata"]["name"]
    w.edit("pods", name, {"metadata": {"finalizers": ["example.com/wait"]}})
    w.answer("dry", evict(w, name, dryRun=["All"]))
    w.answer("real", evict(w, name))
    w.settle()
    w.dump("pods", mask=("deletionTimestamp",))
    w.edit("pods", name, {"metadata": {"finalizers": None}})


@scenario
def two_budgets(w: World) -> None:
    """A pod with two budgets cannot be evicted: 500."""
    w.make(pod("p", {"app": "x"}, hand=True))
    w.run("p")
    w.make(budget("one", {"app": "x"}, minAvailable=0))
    w.make(budget("two", {"app": "x"}, minAvailable=0))
    w.settle()
    w.answer("two", evict(w, "p"))
    w.answer("absent", evict(w, "q"))
    w.dump("poddisruptionbudgets")


@scenario
def sick_pods(w: World) -> None:
    """A pod that is not ready may be evicted if the budget is healthy, or always if unhealthyPodEvictionPolicy says so; one that is over, always."""
    for name in ("well", "sick", "done"):
        w.make(pod(name, {"app": "x"}, hand=True))
    w.run("well")
    w.run("sick", phase="Running", conditions=[{"type": "Ready", "status": "False"}])
    w.run("done", phase="Failed")
    w.make(budget("b", {"app": "x"}, minAvailable=2))
    w.settle()
    w.dump("poddisruptionbudgets")
    w.answer("sick", evict(w, "sick"))
    w.answer("done", evict(w, "done"))
    w.edit("poddisruptionbudgets", "b", {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}})
    w.settle()
    w.answer("sick again", evict(w, "sick"))


@scenario
def no_controller(w: World) -> None:
    """Shares need controllers with a scale: pods of nobody make the budget fail; numbers of at least do not."""
    w.make(pod("p", {"app": "x"}, hand=True))
    w.run("p")
    w.make(budget("share", {"app": "x"}, maxUnavailable="50%"))
    w.make(budget("number", {"app": "x"}, minAvailable=1))
    w.make(budget("everything", {}, minAvailable=1))
    w.settle()
    w.dump("poddisruptionbudgets")
