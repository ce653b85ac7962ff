"""Jobs, CronJobs, budgets and autoscalers: policies and changes that meet each other."""

from __future__ import annotations

from typing import Any

from tests.differential.life.manifests import condition, config, job, owner, template, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


def waiting(w: World, index: int | None = None) -> list[str]:
    """The pods that wait, of one index if it is given."""
    return [
        pod["metadata"]["name"]
        for pod in w.all("pods")
        if pod["status"]["phase"] == "Pending"
        and "deletionTimestamp" not in pod["metadata"]
        and (index is None or pod["metadata"]["annotations"].get("batch.kubernetes.io/job-completion-index") == str(index))
    ]


def fail(w: World, name: str, code: int = 1, **more: object) -> None:
    """A pod's container ends with this exit code."""
    state = {"terminated": {"exitCode": code, "reason": "Error"}}
    container = {"name": "c", "image": "job:1", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    w.run(name, phase="Failed", containerStatuses=[container], **more)


def budget(name: str, selector: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": {"selector": {"matchLabels": selector}, **spec}}


@scenario
def restarts_count(w: World) -> None:
    """With restartPolicy OnFailure the restarts of containers count towards backoffLimit."""
    w.make(job("j", hand=True, pods={"restartPolicy": "OnFailure"}, backoffLimit=2))
    w.settle()
    p = waiting(w)[0]
    st = {"name": "c", "image": "job:1", "imageID": "", "ready": True, "state": {"running": {}}}
    w.run(p, phase="Running", containerStatuses=[{**st, "restartCount": 1}])
    w.settle()
    w.dump("jobs", label="one restart")
    w.run(p, phase="Running", containerStatuses=[{**st, "restartCount": 2}])
    w.until(lambda: condition(w.read("jobs", "j"), "Failed"))
    w.settle()
    w.dump("jobs", "pods", label="two")


@scenario
def failures_by_index(w: World) -> None:
    """FailIndex fails an index at once, Ignore does not count, other failures are tried again."""
    w.make(
        job(
            "j",
            hand=True,
            completions=3,
            parallelism=3,
            completionMode="Indexed",
            backoffLimitPerIndex=1,
            podFailurePolicy={
                "rules": [
                    {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [7]}},
                    {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [8]}},
                ]
            },
        )
    )
    w.settle()
    fail(w, waiting(w, 0)[0], 7)
    fail(w, waiting(w, 1)[0], 8)
    fail(w, waiting(w, 2)[0], 1)
    w.settle()
    w.until(lambda: len(waiting(w)) == 2, 30)
    w.settle()
    w.dump("jobs", "pods", label="tried again")
    for i in (1, 2):
        w.run(waiting(w, i)[0], phase="Succeeded")
    w.until(lambda: condition(w.read("jobs", "j"), "Failed"))
    w.settle()
    w.dump("jobs", "pods", label="over")


@scenario
def succeeded_count(w: World) -> None:
    """The first rule of a successPolicy that is met ends the job."""
    w.make(
        job(
            "j",
            hand=True,
            completions=4,
            parallelism=4,
            completionMode="Indexed",
            backoffLimitPerIndex=0,
            successPolicy={"rules": [{"succeededIndexes": "0-1", "succeededCount": 2}, {"succeededCount": 2}]},
        )
    )
    w.settle()
    fail(w, waiting(w, 0)[0])
    w.run(waiting(w, 3)[0], phase="Succeeded")
    w.settle()
    w.dump("jobs", label="one")
    w.run(waiting(w, 2)[0], phase="Succeeded")
    w.until(lambda: condition(w.read("jobs", "j"), "Complete"))
    w.settle()
    w.dump("jobs", "pods", label="over")


@scenario
def fewer_completions(w: World) -> None:
    """Lowered completions forget the higher indexes."""
    w.make(job("j", hand=True, completions=4, parallelism=4, completionMode="Indexed"))
    w.settle()
    w.run(waiting(w, 1)[0], phase="Succeeded")
    w.settle()
    w.edit("jobs", "j", {"spec": {"parallelism": 2, "completions": 2}})
    w.settle()
    w.dump("jobs", "pods", label="two")
    w.run(waiting(w, 0)[0], phase="Succeeded")
    w.until(lambda: condition(w.read("jobs", "j"), "Complete"))
    w.settle()
    w.dump("jobs", "pods", label="over")


@scenario
def too_many_failed_indexes(w: World) -> None:
    """maxFailedIndexes ends the job when one more index fails."""
    w.make(
        job("j", hand=True, completions=5, parallelism=5, completionMode="Indexed", backoffLimitPerIndex=0, maxFailedIndexes=1)
    )
    w.settle()
    fail(w, waiting(w, 0)[0])
    w.settle()
    fail(w, waiting(w, 4)[0])
    w.until(lambda: condition(w.read("jobs", "j"), "Failed"))
    w.settle()
    w.dump("jobs", "pods")


@scenario
def suspended_while_it_runs(w: World) -> None:
    """A suspended job loses its start time with its pods, and begins anew."""
    w.make(job("j", parallelism=1, completions=1, hand=True, activeDeadlineSeconds=1000))
    w.settle()
    w.run(waiting(w)[0])
    w.settle()
    w.dump("jobs", label="runs")
    w.edit("jobs", "j", {"spec": {"suspend": True}})
    w.settle()
    w.dump("jobs", "pods", label="suspended")
    w.edit("jobs", "j", {"spec": {"suspend": False}})
    w.settle()
    w.dump("jobs", "pods", label="resumed")


@scenario
def pods_fail_together(w: World) -> None:
    """Failures that come together lengthen the wait by as many steps."""
    w.make(job("j", hand=True, completions=4, parallelism=4, backoffLimit=3))
    w.settle()
    for p in waiting(w)[:3]:
        fail(w, p)
    w.settle()
    w.dump("jobs", label="three failed")
    w.until(lambda: len(waiting(w)) == 4, 60)
    w.settle()
    w.dump("jobs", "pods", label="again")
    fail(w, waiting(w)[0])
    w.until(lambda: condition(w.read("jobs", "j"), "Failed"))
    w.settle()
    w.dump("jobs", "pods", label="over")


@scenario
def an_index_waits_for_its_pod(w: World) -> None:
    """podReplacementPolicy Failed: an index is not tried again before its pod has failed."""
    w.make(job("j", hand=True, completions=2, parallelism=2, completionMode="Indexed", podReplacementPolicy="Failed"))
    w.settle()
    p = waiting(w, 0)[0]
    w.edit("pods", p, {"metadata": {"finalizers": ["batch.kubernetes.io/job-tracking", "example.com/wait"]}})
    w.remove("pods", p)
    w.settle()
    w.dump("jobs", label="terminating")
    w.run(p, phase="Failed")
    w.until(lambda: len(waiting(w)) == 2, 30)
    w.settle()
    w.dump("jobs", label="replaced")


@scenario
def a_job_made_by_hand(w: World) -> None:
    """A job that names a CronJob as its controller is unexpected, and cleaned up as the others."""
    w.make(
        {
            "kind": "CronJob",
            "metadata": {"name": "c"},
            "spec": {
                "schedule": "0 0 1 1 *",
                "failedJobsHistoryLimit": 0,
                "jobTemplate": {"spec": {"template": template({}, "job:1", True, restartPolicy="Never"), "backoffLimit": 0}},
            },
        }
    )
    w.settle()
    c = w.read("cronjobs", "c")
    j = job("manual", hand=True, backoffLimit=0)
    j["metadata"] |= {
        "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
        "ownerReferences": [owner(c, controller=True)],
    }
    w.make(j)
    w.settle()
    w.dump("cronjobs", "jobs", label="manual")
    fail(w, waiting(w)[0])
    w.until(lambda: not w.all("jobs"), 30)
    w.settle()
    w.dump("cronjobs", "jobs", label="failed")


@scenario
def a_schedule_that_never_comes(w: World) -> None:
    """A schedule without a time is told in an event."""
    w.make(
        {
            "kind": "CronJob",
            "metadata": {"name": "never"},
            "spec": {
                "schedule": "0 0 30 2 *",
                "jobTemplate": {"spec": {"template": template({}, "job:1", True, restartPolicy="Never")}},
            },
        }
    )
    w.settle()
    w.dump("cronjobs")


@scenario
def pods_of_many_controllers(w: World) -> None:
    """Shares are of what all controllers together want."""
    for kind, name in (("Deployment", "a"), ("StatefulSet", "b"), ("ReplicaSet", "c")):
        made = workload(kind, name, 2, **{"serviceName": name} if kind == "StatefulSet" else {})
        made["spec"]["template"]["metadata"]["labels"]["all"] = "x"
        w.make(made)
    w.settle()
    w.make(budget("all", {"all": "x"}, maxUnavailable="34%"))
    w.settle()
    w.dump("poddisruptionbudgets", label="six")
    w.edit("poddisruptionbudgets", "all", {"spec": {"maxUnavailable": None, "minAvailable": "90%"}})
    w.settle()
    w.dump("poddisruptionbudgets", label="changed")


@scenario
def metrics_of_every_kind(w: World) -> None:
    """Each kind of metric says in its own words that nobody serves it."""
    w.make(workload("Deployment", "web", 2, pods={"requests": {"cpu": "10m"}}))
    w.make(workload("Deployment", "web2", 2, pods={"requests": {"cpu": "10m"}}))
    w.make(workload("Deployment", "web3", 2))
    w.make(workload("Deployment", "web4", 2))
    w.make(config("conf"))
    w.settle()
    metrics = {
        "web": [{"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "10"}}}],
        "web2": [
            {
                "type": "Object",
                "object": {
                    "metric": {"name": "qps", "selector": {"matchLabels": {"a": "b"}}},
                    "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
                    "target": {"type": "Value", "value": "10"},
                },
            }
        ],
        "web3": [
            {
                "type": "External",
                "external": {
                    "metric": {"name": "queue", "selector": {"matchLabels": {"a": "b"}}},
                    "target": {"type": "AverageValue", "averageValue": "10"},
                },
            }
        ],
        "web4": [
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "memory",
                    "container": "c",
                    "target": {"type": "AverageValue", "averageValue": "10Mi"},
                },
            },
            {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "10"}}},
        ],
    }
    for name, m in metrics.items():
        w.make(
            {
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": name},
                "spec": {
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                    "minReplicas": 1,
                    "maxReplicas": 4,
                    "metrics": m,
                },
            }
        )
    w.make(
        {
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "conf"},
            "spec": {"scaleTargetRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "conf"}, "maxReplicas": 4},
        }
    )
    w.until(lambda: all(h["status"].get("conditions") for h in w.all("horizontalpodautoscalers")), 30)
    w.settle()
    w.dump("horizontalpodautoscalers")


@scenario
def bounds_pass_by_behavior(w: World) -> None:
    """Rules of behavior do not hold up what minReplicas asks for."""
    w.make(workload("Deployment", "web", 2))
    w.make(workload("StatefulSet", "db", 1, serviceName="db"))
    w.settle()
    for kind, name in (("Deployment", "web"), ("StatefulSet", "db")):
        w.make(
            {
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": name},
                "spec": {
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
                    "minReplicas": 3,
                    "maxReplicas": 4,
                    "behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}},
                },
            }
        )
    w.until(
        lambda: w.read("deployments", "web")["spec"]["replicas"] == 3 and w.read("statefulsets", "db")["spec"]["replicas"] == 3,
        20,
    )
    w.until(lambda: all(condition(h, "ScalingActive") for h in w.all("horizontalpodautoscalers")), 30)
    w.settle()
    w.dump("horizontalpodautoscalers", mask=("lastScaleTime",))
