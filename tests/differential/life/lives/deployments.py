"""Deployments: what they make, how they roll, what they say meanwhile."""

from __future__ import annotations

from tests.differential.life.manifests import condition, image, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World

ALL = ("deployments", "replicasets", "pods")


def made(w: World, revision: str) -> str:
    """The name of the ReplicaSet of a revision."""
    return next(
        r["metadata"]["name"]
        for r in w.all("replicasets")
        if r["metadata"].get("annotations", {}).get("deployment.kubernetes.io/revision") == revision
    )


def run_all(w: World, selector: str = "") -> None:
    """Play the kubelet of every pod that waits."""
    for p in w.all("pods", selector):
        if p["status"]["phase"] == "Pending":
            w.run(p)


@scenario
def made_and_scaled(w: World) -> None:
    """A Deployment makes a ReplicaSet named by the template's hash; scaling leaves revision and template alone."""
    w.make(workload("Deployment", "web", 2, labels={"team": "a"}, annotations={"note": "copied"}))
    w.settle()
    w.dump(*ALL, label="made")
    w.edit("deployments", "web", {"spec": {"replicas": 4}}, "scale")
    w.settle()
    w.dump("deployments", "replicasets", label="more")
    w.edit("deployments", "web", {"spec": {"replicas": 0}})
    w.settle()
    w.dump(*ALL, label="none")


@scenario
def managers(w: World) -> None:
    """Whose the fields of a Deployment, its ReplicaSet and its pods are."""
    w.make(workload("Deployment", "web", 1))
    w.settle()
    w.dump(*ALL, managers=True)


@scenario
def templates_hash(w: World) -> None:
    """pod-template-hash is of the whole template as stored: defaults, labels, annotations and volumes count."""
    w.make(workload("Deployment", "bare", 0))
    w.make(
        workload(
            "Deployment",
            "rich",
            0,
            image="registry.example/app:1",
            pods={
                "annotations": {"a": "b"},
                "requests": {"cpu": "100m", "memory": "64Mi"},
                "terminationGracePeriodSeconds": 5,
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "x"}}],
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "k", "operator": "Exists"}],
                "priorityClassName": "system-node-critical",
            },
        )
    )
    many = workload("Deployment", "many", 0)
    many["spec"]["template"]["spec"] |= {
        "initContainers": [{"name": "i", "image": "init", "command": ["sh", "-c", "true"], "env": [{"name": "A", "value": "1"}]}],
        "containers": [
            {
                "name": "c",
                "image": "x",
                "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
                "env": [{"name": "P", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "securityContext": {"runAsUser": 1},
            },
            {"name": "d", "image": "y", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}},
        ],
    }
    w.make(many)
    w.settle()
    w.fact("names", sorted(r["metadata"]["name"] for r in w.all("replicasets")))


@scenario
def rolls(w: World) -> None:
    """A new template makes a new ReplicaSet with the next revision; the old one is kept with no replicas."""
    w.make(workload("Deployment", "web", 3))
    w.settle()
    w.edit("deployments", "web", image("app:2"))
    w.settle()
    w.dump("deployments", "pods")
    w.fact(
        "replicasets",
        {r["metadata"]["name"]: [r["spec"]["replicas"], r["metadata"]["annotations"]] for r in w.all("replicasets")},
    )


@scenario
def rolls_by_hand(w: World) -> None:
    """With maxSurge 1 and maxUnavailable 0 each new pod must be available before an old one goes."""
    w.make(workload("Deployment", "web", 3, hand=True, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}))
    w.settle()
    w.dump(*ALL, label="none ready")
    run_all(w)
    w.settle()
    w.dump("deployments", label="ready")
    w.edit("deployments", "web", image("app:2"))
    w.settle()
    w.dump("deployments", "replicasets", label="first new one")
    run_all(w)
    w.settle()
    w.dump("deployments", "replicasets", label="second new one")
    run_all(w)
    w.settle()
    run_all(w)
    w.settle()
    w.dump(*ALL, label="done")


@scenario
def may_be_unavailable(w: World) -> None:
    """With maxUnavailable 50% and no surge half of the old pods go at once."""
    w.make(workload("Deployment", "web", 4, hand=True, strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}}))
    w.settle()
    run_all(w)
    w.settle()
    w.edit("deployments", "web", image("app:2"))
    w.settle()
    w.dump("deployments", "replicasets", label="half")
    run_all(w)
    w.settle()
    w.dump("deployments", "replicasets", label="the other half")


@scenario
def recreates(w: World) -> None:
    """Recreate makes no new pod before the last old one is gone."""
    w.make(workload("Deployment", "web", 2, hand=True, strategy={"type": "Recreate"}))
    w.settle()
    for p in w.all("pods"):
        w.edit("pods", p["metadata"]["name"], {"metadata": {"finalizers": ["example.com/wait"]}})
    run_all(w)
    w.settle()
    w.edit("deployments", "web", image("app:2"))
    w.settle()
    w.dump("deployments", "replicasets", label="old ones go")
    for p in w.all("pods"):
        w.edit("pods", p["metadata"]["name"], {"metadata": {"finalizers": None}})
    w.settle()
    w.dump(*ALL, label="new ones come")


@scenario
def paused(w: World) -> None:
    """A paused Deployment scales and does not roll; resumed, it rolls to the latest template only."""
    w.make(workload("Deployment", "web", 2))
    w.settle()
    w.edit("deployments", "web", {"spec": {"paused": True}})
    w.settle()
    w.dump("deployments", label="paused")
    w.edit("deployments", "web", image("app:2"))
    w.edit("deployments", "web", image("app:3"))
    w.edit("deployments", "web", {"spec": {"replicas": 3}})
    w.settle()
    w.dump("deployments", "replicasets", label="scaled")
    w.edit("deployments", "web", {"spec": {"paused": False}})
    w.settle()
    w.dump("deployments", label="resumed")
    w.fact(
        "revisions",
        {
            r["metadata"]["name"]: [r["spec"]["replicas"], r["metadata"]["annotations"]["deployment.kubernetes.io/revision"]]
            for r in w.all("replicasets")
        },
    )


@scenario
def makes_no_progress(w: World) -> None:
    """After progressDeadlineSeconds without progress Progressing is False, and True again when pods get ready."""
    w.make(workload("Deployment", "web", 2, hand=True, progressDeadlineSeconds=4))
    w.until(lambda: condition(w.read("deployments", "web"), "Progressing") == "False", 20)
    w.settle()
    w.dump("deployments", label="late")
    run_all(w)
    w.settle()
    w.dump("deployments", label="late and done")


@scenario
def rolls_back(w: World) -> None:
    """Going back to a former template takes the old ReplicaSet up again, with a new revision and the old ones in an annotation."""
    w.make(workload("Deployment", "web", 1))
    for tag in ("app:2", "app:3", "app:1", "app:2"):
        w.settle()
        w.edit("deployments", "web", image(tag))
    w.settle()
    w.fact(
        "replicasets",
        {r["metadata"]["name"]: [r["spec"]["replicas"], r["metadata"]["annotations"]] for r in w.all("replicasets")},
    )
    w.dump("deployments")


@scenario
def forgets_old_revisions(w: World) -> None:
    """No more than revisionHistoryLimit empty ReplicaSets are kept: the oldest revisions go."""
    w.make(workload("Deployment", "web", 1, revisionHistoryLimit=1))
    for i in (2, 3, 4):
        w.settle()
        w.edit("deployments", "web", image(f"app:{i}"))
    w.settle()
    w.fact(
        "replicasets",
        sorted(
            [r["metadata"]["annotations"]["deployment.kubernetes.io/revision"], r["metadata"]["name"], r["spec"]["replicas"]]
            for r in w.all("replicasets")
        ),
    )
    w.edit("deployments", "web", {"spec": {"revisionHistoryLimit": 0}})
    w.settle()
    w.fact("no history", sorted(r["metadata"]["name"] for r in w.all("replicasets")))


@scenario
def name_is_taken(w: World) -> None:
    """If a ReplicaSet of that name is somebody else's, status.collisionCount goes up and the hash changes."""
    w.make(workload("Deployment", "web", 1, paused=True))
    w.settle()
    w.make(workload("Deployment", "twin", 0))
    w.settle()
    hash_ = w.all("replicasets")[0]["metadata"]["labels"]["pod-template-hash"] if w.all("replicasets") else "none"
    w.make(workload("ReplicaSet", f"other-{hash_}", 0))
    probe = workload("Deployment", "other", 1)
    probe["spec"]["selector"]["matchLabels"] = probe["spec"]["template"]["metadata"]["labels"] = {"app": "twin"}
    w.make(probe)
    w.settle()
    w.dump("deployments", names=["other"])
    w.fact("replicasets", sorted(r["metadata"]["name"] for r in w.all("replicasets")))


@scenario
def takes_and_lets_go(w: World) -> None:
    """A ReplicaSet without owner that the selector matches is adopted; one that no longer matches is let go."""
    spare = workload("ReplicaSet", "spare", 1)
    spare["spec"]["selector"]["matchLabels"] = spare["spec"]["template"]["metadata"]["labels"] = spare["metadata"]["labels"] = {
        "app": "web",
        "x": "y",
    }
    w.make(spare)
    w.settle()
    w.make(workload("Deployment", "web", 1))
    w.settle()
    w.dump("deployments", "replicasets", label="adopted")
    w.edit("replicasets", "spare", {"metadata": {"labels": {"app": "mine"}}})
    w.settle()
    w.dump("deployments", "replicasets", label="let go")


@scenario
def replaces_what_is_lost(w: World) -> None:
    """A deleted ReplicaSet is made again under its name; a deleted or failed pod is replaced; a pod relabelled is let go."""
    w.make(workload("Deployment", "web", 2))
    w.settle()
    w.remove("replicasets", made(w, "1"))
    w.settle()
    w.dump("deployments", "replicasets", "pods", label="replicaset deleted")
    w.remove("pods", w.all("pods")[0]["metadata"]["name"])
    w.settle()
    w.edit("pods", w.all("pods")[0]["metadata"]["name"], {"metadata": {"labels": {"app": "debug"}}})
    w.settle()
    w.dump("replicasets", "pods", label="pod let go")


@scenario
def counts_after_min_ready(w: World) -> None:
    """A pod is available minReadySeconds after it was ready."""
    w.make(workload("Deployment", "web", 1, minReadySeconds=8))
    w.settle()
    w.dump("deployments", label="ready")
    w.until(lambda: (w.read("deployments", "web") or {})["status"].get("availableReplicas") == 1, 20)
    w.settle()
    w.dump("deployments", "replicasets", label="available")


@scenario
def scales_in_proportion(w: World) -> None:
    """Scaled in the middle of a rollout, new replicas are shared among the ReplicaSets by size."""
    w.make(workload("Deployment", "web", 6, hand=True, strategy={"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}))
    w.settle()
    run_all(w)
    w.settle()
    w.edit("deployments", "web", image("app:2"))
    w.settle()
    w.edit("deployments", "web", {"spec": {"replicas": 12}})
    w.settle()
    w.dump("deployments", "replicasets", label="more")
    w.edit("deployments", "web", {"spec": {"replicas": 3}})
    w.settle()
    w.dump("deployments", "replicasets", label="fewer")


@scenario
def annotations_travel(w: World) -> None:
    """Annotations of the Deployment come to its newest ReplicaSet, but for the last applied one and its own bookkeeping."""
    notes = {
        "kubernetes.io/change-cause": "first",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "mine": "1",
        "deployment.kubernetes.io/desired-replicas": "99",
    }
    w.make(workload("Deployment", "web", 1, annotations=notes))
    w.settle()
    w.edit(
        "deployments",
        "web",
        {"metadata": {"annotations": {"kubernetes.io/change-cause": "second", "mine": None, "more": "2"}}, **image("app:2")},
    )
    w.settle()
    w.fact(
        "replicasets",
        {r["metadata"]["name"]: [r["spec"]["replicas"], r["metadata"]["annotations"]] for r in w.all("replicasets")},
    )
    w.dump("deployments")


@scenario
def broken_rollout(w: World) -> None:
    """A rollout whose pods never come stops at maxSurge and maxUnavailable, and a correction passes it by."""
    w.make(workload("Deployment", "web", 4))
    w.settle()
    w.edit("deployments", "web", {"spec": {"template": {"spec": {"nodeSelector": {"no": "where"}}}}})
    w.settle()
    w.dump("deployments", "replicasets", "pods", label="stuck")
    w.edit("deployments", "web", {"spec": {"template": {"spec": {"nodeSelector": None}}, "replicas": 4}})
    w.settle()
    w.dump("deployments", label="mended")
    w.fact(
        "replicasets",
        {r["metadata"]["name"]: [r["spec"]["replicas"], r["metadata"]["annotations"]] for r in w.all("replicasets")},
    )
