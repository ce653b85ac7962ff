"""Deployments, ReplicaSets and StatefulSets that are changed while they roll out.

Pods are run by hand, so that each step can be seen.
"""

from __future__ import annotations

from typing import Any

from tests.differential.life.manifests import image, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


def run_all(w: World, count: int = 99) -> None:
    """Play the kubelet of the pods that wait."""
    for pod in [one for one in w.all("pods") if one["status"]["phase"] == "Pending"][:count]:
        w.run(pod)


def waiting(w: World, index: int | None = None) -> list[str]:
    """The pods that wait, of one index if it is given."""
    return [
        pod["metadata"]["name"]
        for pod in w.all("pods")
        if pod["status"]["phase"] == "Pending"
        and "deletionTimestamp" not in pod["metadata"]
        and (index is None or pod["metadata"]["annotations"].get("batch.kubernetes.io/job-completion-index") == str(index))
    ]


def stateful(name: str, replicas: int, hand: bool = False, **spec: Any) -> dict[str, Any]:
    return workload("StatefulSet", name, replicas, hand=hand, **{"serviceName": name, **spec})


@scenario
def shares_are_of_the_replicas(w: World) -> None:
    """maxSurge is rounded up, maxUnavailable down; each pod that gets ready moves the rollout on."""
    w.make(workload("Deployment", "web", 7, hand=True, strategy={"rollingUpdate": {"maxSurge": "40%", "maxUnavailable": "30%"}}))
    w.settle()
    run_all(w)
    w.settle()
    w.edit("deployments", "web", image("app:2"))
    w.settle()
    w.dump("deployments", "replicasets", label="rolling")
    run_all(w, 1)
    w.settle()
    w.dump("deployments", "replicasets", label="one")


@scenario
def paused_in_the_middle(w: World) -> None:
    """Paused in the middle of a rollout, a Deployment is scaled in proportion, and takes no further template."""
    w.make(workload("Deployment", "web", 4, hand=True, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}))
    w.settle()
    run_all(w)
    w.settle()
    w.edit("deployments", "web", image("app:2"))
    w.settle()
    w.edit("deployments", "web", {"spec": {"paused": True}})
    w.settle()
    w.edit("deployments", "web", {"spec": {"replicas": 8}})
    w.settle()
    w.dump("deployments", "replicasets", label="scaled while paused")
    w.edit("deployments", "web", image("app:3"))
    w.settle()
    w.dump("deployments", "replicasets", label="third while paused")
    w.edit("deployments", "web", {"spec": {"paused": False}})
    w.settle()
    w.dump("deployments", "replicasets", label="resumed")


@scenario
def scaled_to_nothing_in_the_middle(w: World) -> None:
    """With no replicas left the rollout is over; scaled up again, only the newest template gets pods."""
    w.make(workload("Deployment", "web", 4, hand=True))
    w.settle()
    run_all(w)
    w.settle()
    w.edit("deployments", "web", image("app:2"))
    w.settle()
    w.edit("deployments", "web", {"spec": {"replicas": 0}})
    w.settle()
    w.dump("deployments", "replicasets", label="zero")
    w.edit("deployments", "web", {"spec": {"replicas": 5}})
    w.settle()
    w.dump("deployments", "replicasets", label="five")


@scenario
def orphans_are_taken_up(w: World) -> None:
    """A Deployment takes up the ReplicaSet and the pods that a former one has left."""
    w.make(workload("Deployment", "web", 2))
    w.settle()
    w.remove("deployments", "web", "Orphan")
    w.settle()
    w.dump("replicasets", "pods", label="orphans")
    w.make(workload("Deployment", "web", 3, annotations={"x": "y"}))
    w.settle()
    w.dump("deployments", "replicasets", "pods", label="adopted")


@scenario
def unhealthy_pods_go_first(w: World) -> None:
    """Of the old pods those that are not ready go first; a further template passes the one before by."""
    w.make(workload("Deployment", "web", 3, hand=True, strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}))
    w.settle()
    run_all(w, 2)
    w.settle()
    w.edit("deployments", "web", image("app:2"))
    w.settle()
    w.dump("deployments", "replicasets", label="unhealthy first")
    w.edit("deployments", "web", image("app:3"))
    w.settle()
    w.dump("deployments", "replicasets", label="third")


@scenario
def rolled_back_by_annotation(w: World) -> None:
    """deprecated.deployment.rollback.to names a revision, or 0 for the last one; events tell what came of it."""
    w.make(workload("Deployment", "web", 1, annotations={"kubernetes.io/change-cause": "one"}))
    w.settle()
    w.edit("deployments", "web", {"metadata": {"annotations": {"kubernetes.io/change-cause": "two"}}, **image("app:2")})
    w.settle()
    w.edit("deployments", "web", {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "1"}}})
    w.settle()
    w.dump("deployments", "replicasets", label="back to one")
    w.edit("deployments", "web", {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "0"}}})
    w.settle()
    w.dump("deployments", "replicasets", label="back to last")
    w.edit("deployments", "web", {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "77"}}})
    w.settle()
    w.dump("deployments", label="no such")
    w.edit("deployments", "web", {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "x"}}})
    w.settle()
    w.dump("deployments", label="nonsense")


@scenario
def two_with_one_selector(w: World) -> None:
    """Two Deployments with the same selector: each keeps what it has made."""
    for name in ("one", "two"):
        d = workload("Deployment", name, 1)
        d["spec"]["selector"]["matchLabels"] = d["spec"]["template"]["metadata"]["labels"] = {"app": "same"}
        w.make(d)
        w.settle()
    w.dump("deployments", "replicasets")


@scenario
def deleted_in_the_foreground(w: World) -> None:
    """Deployment and ReplicaSet wait for pods that do not go."""
    w.make(workload("Deployment", "web", 2))
    w.settle()
    for p in w.all("pods"):
        w.edit("pods", p["metadata"]["name"], {"metadata": {"finalizers": ["example.com/wait"]}})
    w.remove("deployments", "web", "Foreground")
    w.settle()
    w.dump("deployments", "replicasets", "pods", label="going", mask=("deletionTimestamp",))
    for p in w.all("pods"):
        w.edit("pods", p["metadata"]["name"], {"metadata": {"finalizers": None}})
    w.settle()
    w.dump("deployments", "replicasets", "pods", label="gone")


@scenario
def another_strategy_in_the_middle(w: World) -> None:
    """Recreate in the middle of a rolling update: all old pods go first."""
    w.make(workload("Deployment", "web", 3, hand=True))
    w.settle()
    run_all(w)
    w.settle()
    w.edit("deployments", "web", image("app:2"))
    w.settle()
    w.edit("deployments", "web", {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}})
    w.settle()
    w.dump("deployments", "replicasets", label="recreate")
    run_all(w)
    w.settle()
    w.dump("deployments", "replicasets", label="done")


@scenario
def relabelled_into_another(w: World) -> None:
    """A pod that gets the labels of another ReplicaSet is let go, taken up, and one too many there."""
    w.make(workload("ReplicaSet", "web", 2, hand=True))
    w.make(workload("ReplicaSet", "other", 1, hand=True))
    w.settle()
    name = next(p for p in w.all("pods", "app=web"))["metadata"]["name"]
    w.edit("pods", name, {"metadata": {"labels": {"app": "other"}}})
    w.settle()
    w.dump("replicasets", "pods", managers=True)


@scenario
def terminating_pods_are_replaced(w: World) -> None:
    """A pod that is being deleted counts as terminating only, and is replaced at once."""
    w.make(workload("ReplicaSet", "web", 3, hand=True))
    w.settle()
    first, second, *_ = waiting(w)
    w.run(first)
    w.edit("pods", second, {"metadata": {"finalizers": ["example.com/wait"]}})
    w.remove("pods", second)
    w.settle()
    w.dump("replicasets", label="one terminating")
    w.edit("replicasets", "web", {"spec": {"replicas": 0}})
    w.settle()
    w.dump("replicasets", "pods", label="zero", mask=("deletionTimestamp",))
    w.edit("pods", second, {"metadata": {"finalizers": None}})
    w.settle()
    w.dump("replicasets", label="end")


@scenario
def the_middle_one_comes_again(w: World) -> None:
    """A deleted pod in the middle is made again under its name."""
    w.make(stateful("db", 3))
    w.settle()
    w.remove("pods", "db-1")
    w.settle()
    w.dump("statefulsets", "pods")


@scenario
def revisions_are_taken_up(w: World) -> None:
    """A StatefulSet takes up pods and revisions that a former one of its name has left."""
    w.make(stateful("db", 2))
    w.settle()
    w.remove("statefulsets", "db", "Orphan")
    w.settle()
    w.dump("pods", "controllerrevisions", label="orphans")
    w.make(stateful("db", 3))
    w.settle()
    w.dump("statefulsets", "pods", "controllerrevisions", label="adopted")


@scenario
def updated_while_one_is_not_ready(w: World) -> None:
    """An outdated pod that is not ready is replaced when its turn comes."""
    w.make(stateful("db", 3, hand=True, podManagementPolicy="Parallel"))
    w.settle()
    w.run("db-0")
    w.run("db-1")
    w.settle()
    w.edit("statefulsets", "db", image("app:2"))
    w.settle()
    w.dump("statefulsets", "pods", label="update with one unready")
    w.run("db-2")
    w.settle()
    w.dump("statefulsets", label="next")
    w.edit("statefulsets", "db", {"spec": {"replicas": 1}})
    w.settle()
    w.dump("statefulsets", "pods", label="down")


@scenario
def from_on_delete_to_rolling(w: World) -> None:
    """What OnDelete has left is caught up by RollingUpdate."""
    w.make(stateful("db", 2, updateStrategy={"type": "OnDelete"}))
    w.settle()
    w.edit("statefulsets", "db", image("app:2"))
    w.settle()
    w.edit("statefulsets", "db", image("app:3"))
    w.settle()
    w.remove("pods", "db-0")
    w.settle()
    w.dump("statefulsets", "controllerrevisions", label="ondelete")
    w.edit("statefulsets", "db", {"spec": {"updateStrategy": {"type": "RollingUpdate"}}})
    w.settle()
    w.dump("statefulsets", "pods", "controllerrevisions", label="rolling")


@scenario
def a_partition_moves(w: World) -> None:
    """The partition moves over several revisions, and the first template comes back."""
    w.make(stateful("db", 4, podManagementPolicy="Parallel", updateStrategy={"rollingUpdate": {"partition": 3}}))
    w.settle()
    w.edit("statefulsets", "db", image("app:2"))
    w.settle()
    w.edit("statefulsets", "db", image("app:3"))
    w.settle()
    w.dump("statefulsets", "controllerrevisions", label="two changes")
    w.edit("statefulsets", "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}})
    w.settle()
    w.dump("statefulsets", "controllerrevisions", label="lower")
    w.edit("statefulsets", "db", image("app:1"))
    w.settle()
    w.dump("statefulsets", "controllerrevisions", label="undone")


@scenario
def scaled_and_updated_at_once(w: World) -> None:
    """Fewer replicas and another template in one write."""
    w.make(stateful("db", 4, podManagementPolicy="Parallel"))
    w.settle()
    w.edit("statefulsets", "db", {"spec": {"replicas": 2, **image("app:2")["spec"]}})
    w.settle()
    w.dump("statefulsets", "pods", "controllerrevisions")


@scenario
def updated_while_one_terminates(w: World) -> None:
    """A pod that does not go holds the update up."""
    w.make(stateful("db", 2))
    w.settle()
    w.edit("pods", "db-0", {"metadata": {"finalizers": ["example.com/wait"]}})
    w.remove("pods", "db-0")
    w.settle()
    w.dump("statefulsets", label="terminating")
    w.edit("statefulsets", "db", image("app:2"))
    w.settle()
    w.dump("statefulsets", "pods", label="update meanwhile", mask=("deletionTimestamp",))
    w.edit("pods", "db-0", {"metadata": {"finalizers": None}})
    w.settle()
    w.dump("statefulsets", label="done")


@scenario
def the_name_of_a_revision_is_taken(w: World) -> None:
    """A ControllerRevision of that name with other data raises collisionCount."""
    w.make(stateful("db", 1))
    w.settle()
    rev = w.all("controllerrevisions")[0]
    w.remove("statefulsets", "db", "Background")
    w.until(lambda: not w.all("controllerrevisions"))
    w.settle()
    w.make({"kind": "ControllerRevision", "metadata": {"name": rev["metadata"]["name"]}, "data": {"x": 1}, "revision": 1})
    w.make(stateful("db", 1))
    w.settle()
    w.dump("statefulsets", "controllerrevisions", "pods")
