"""Single pods: how they come up, run, end and go."""

from __future__ import annotations

from tests.differential.client import STRATEGIC
from tests.differential.life.manifests import job, pod
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


@scenario
def runs(w: World) -> None:
    """A pod is bound and runs; quality of service, priority and tolerations are told; a static list of fields is whose."""
    w.make(pod("best"))
    w.make(pod("burst", requests={"cpu": "10m"}))
    sure = pod("sure", requests={"cpu": "10m", "memory": "16Mi"})
    sure["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "10m", "memory": "16Mi"}
    w.make(sure)
    many = pod("many", restartPolicy="OnFailure", priorityClassName="system-cluster-critical")
    many["spec"]["containers"].append({"name": "d", "image": "other"})
    many["spec"]["initContainers"] = [
        {"name": "i", "image": "init"},
        {"name": "side", "image": "side", "restartPolicy": "Always"},
    ]
    w.make(many)
    w.settle()
    w.dump("pods", managers=True)


@scenario
def goes(w: World) -> None:
    """A running pod is deleted when its node has ended it; an unbound or finished one at once; a finalizer holds it."""
    for name in ("runs", "held"):
        w.make(pod(name, terminationGracePeriodSeconds=10))
    w.make(pod("waits", hand=True))
    w.make(pod("over", hand=True))
    w.run("over", phase="Failed", reason="Evicted")
    w.settle()
    w.edit("pods", "held", {"metadata": {"finalizers": ["example.com/wait"]}})
    for name, grace in (("runs", None), ("waits", None), ("over", None), ("held", 5)):
        w.remove("pods", name, grace=grace)
    w.settle()
    w.dump("pods", mask=("deletionTimestamp",))
    w.edit("pods", "held", {"metadata": {"finalizers": None}})
    w.settle()
    w.fact("left", [p["metadata"]["name"] for p in w.all("pods")])


@scenario
def fails(w: World) -> None:
    """A pod that the scenario's status makes fail stays as it is, whatever its restartPolicy, and holds no place."""
    w.make(pod("p", restartPolicy="Always"))
    w.settle()
    w.run(
        "p",
        phase="Failed",
        reason="OOMKilled",
        message="too much",
        containerStatuses=[
            {
                "name": "c",
                "image": "app:1",
                "imageID": "",
                "ready": False,
                "restartCount": 2,
                "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
            }
        ],
    )
    w.settle()
    w.dump("pods")


@scenario
def jobs_pods_end(w: World) -> None:
    """A pod of a Job runs and succeeds, init containers and all; the same pod without the Job runs on."""
    w.make(job("j", pods={"initContainers": [{"name": "i", "image": "init"}]}))
    w.make(pod("alone", restartPolicy="Never"))
    w.settle()
    w.dump("pods")


@scenario
def ephemeral_and_resized(w: World) -> None:
    """An ephemeral container and a new image come to a running pod, and generation counts them.

    A kubelet starts the container again, kwok, which was the kubelet of the recording, does not: here the score is not full.
    """
    w.make(pod("p"))
    w.settle()
    w.edit("pods", "p", {"spec": {"ephemeralContainers": [{"name": "debug", "image": "tools"}]}}, "ephemeralcontainers")
    w.must(w.patch(w.at("pods", "p"), {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}, STRATEGIC))
    w.settle()
    w.dump("pods")
