"""Jobs: completions, failures, policies, time limits."""

from __future__ import annotations

from tests.differential.life.manifests import condition, job, pod, template
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


def fail(w: World, name: str, code: int = 1, **more: object) -> None:
    w.run(
        name,
        phase="Failed",
        containerStatuses=[
            {
                "name": "c",
                "image": "job:1",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": {"exitCode": code, "reason": "Error"}},
            }
        ],
        **more,
    )


def waiting(w: World, index: int | None = None) -> list[str]:
    """The job's pods that neither failed nor succeeded."""
    return [
        p["metadata"]["name"]
        for p in w.all("pods")
        if p["status"]["phase"] == "Pending"
        and "deletionTimestamp" not in p["metadata"]
        and (index is None or p["metadata"]["annotations"].get("batch.kubernetes.io/job-completion-index") == str(index))
    ]


def ended(w: World, name: str, type_: str) -> bool:
    return condition(w.read("jobs", name), type_) == "True"


@scenario
def completes(w: World) -> None:
    """A job runs `parallelism` pods until `completions` have succeeded."""
    w.make(job("j", completions=5, parallelism=2))
    w.until(lambda: ended(w, "j", "Complete"))
    w.settle()
    w.dump("jobs", "pods", managers=True)


@scenario
def one_of_a_queue(w: World) -> None:
    """Without completions, no more pods are made once one has succeeded, and the rest is waited for."""
    w.make(job("j", hand=True, parallelism=3))
    w.settle()
    w.dump("jobs", "pods", label="three")
    first, second, third = (*waiting(w), "-", "-", "-")[:3]
    w.run(first, phase="Succeeded")
    w.settle()
    w.dump("jobs", label="one done")
    w.run(second, phase="Succeeded")
    w.run(third, phase="Succeeded")
    w.settle()
    w.dump("jobs", label="all done")


@scenario
def indexed(w: World) -> None:
    """Indexed pods know their index from name, annotation, label, hostname and environment; completed indexes are listed as ranges."""
    w.make(job("j", completions=4, parallelism=4, completionMode="Indexed"))
    w.until(lambda: ended(w, "j", "Complete"))
    w.settle()
    w.dump("jobs", "pods")


@scenario
def indexed_by_hand(w: World) -> None:
    """Indexes are taken up from the lowest; completedIndexes shows gaps."""
    w.make(job("j", hand=True, completions=6, parallelism=3, completionMode="Indexed"))
    w.settle()
    w.fact("first", sorted(p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for p in w.all("pods")))
    for i in (0, 2):
        w.run([*waiting(w, i), "-"][0], phase="Succeeded")
    w.settle()
    w.fact("next", sorted(p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for p in w.all("pods")))
    w.dump("jobs", label="two done")
    for i in (3, 4):
        w.run([*waiting(w, i), "-"][0], phase="Succeeded")
    w.settle()
    w.dump("jobs", label="four done")


@scenario
def backoff_limit(w: World) -> None:
    """More failures than backoffLimit end the job: FailureTarget, then Failed, when the pods are gone."""
    w.make(job("j", hand=True, backoffLimit=0, completions=2, parallelism=2))
    w.settle()
    fail(w, waiting(w)[0])
    w.until(lambda: ended(w, "j", "Failed"))
    w.settle()
    w.dump("jobs", "pods")


@scenario
def tries_again(w: World) -> None:
    """A failed pod is replaced after a back-off of ten seconds."""
    w.make(job("j", hand=True, backoffLimit=1))
    w.settle()
    fail(w, waiting(w)[0])
    w.settle()
    w.dump("jobs", label="failed once")
    w.until(lambda: len(waiting(w)) == 1, 20)
    w.settle()
    w.dump("jobs", "pods", label="second try")
    w.run(waiting(w)[0], phase="Succeeded")
    w.until(lambda: ended(w, "j", "Complete"))
    w.settle()
    w.dump("jobs", label="done")


@scenario
def backoff_per_index(w: World) -> None:
    """backoffLimitPerIndex fails single indexes, and the job at the end; maxFailedIndexes ends it at once."""
    w.make(job("j", hand=True, completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=0))
    w.settle()
    fail(w, waiting(w, 1)[0])
    w.settle()
    w.dump("jobs", label="one index failed")
    for i in (0, 2):
        w.run(waiting(w, i)[0], phase="Succeeded")
    w.until(lambda: ended(w, "j", "Failed"))
    w.settle()
    w.dump("jobs", "pods", label="over")
    w.make(
        job("k", hand=True, completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=0, maxFailedIndexes=0)
    )
    w.settle()
    fail(w, waiting(w, 2)[0])
    w.until(lambda: ended(w, "k", "Failed"))
    w.settle()
    w.dump("jobs", names=["k"], label="at once")


@scenario
def fail_policy_ends_the_job(w: World) -> None:
    """podFailurePolicy FailJob: one exit code ends it; the message names container, code and rule."""
    w.make(
        job(
            "j",
            hand=True,
            parallelism=2,
            completions=2,
            podFailurePolicy={
                "rules": [{"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [40, 42]}}]
            },
        )
    )
    w.settle()
    fail(w, waiting(w)[0], 42)
    w.until(lambda: ended(w, "j", "Failed"))
    w.settle()
    w.dump("jobs")


@scenario
def fail_policy_ignores(w: World) -> None:
    """podFailurePolicy Ignore: a failure with the condition DisruptionTarget is not counted."""
    w.make(
        job(
            "j",
            hand=True,
            backoffLimit=0,
            podFailurePolicy={
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
        )
    )
    w.settle()
    fail(w, waiting(w)[0], 137, conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}])
    w.until(lambda: len(waiting(w)) == 1, 20)
    w.settle()
    w.dump("jobs")
    fail(w, waiting(w)[0], 1)
    w.until(lambda: ended(w, "j", "Failed"))
    w.settle()
    w.dump("jobs", label="over")


@scenario
def success_policy(w: World) -> None:
    """successPolicy ends the job when the named indexes are done; the pods left are deleted."""
    w.make(
        job(
            "j",
            hand=True,
            completions=3,
            parallelism=3,
            completionMode="Indexed",
            successPolicy={"rules": [{"succeededIndexes": "0"}]},
        )
    )
    w.settle()
    w.run(waiting(w, 0)[0], phase="Succeeded")
    w.until(lambda: ended(w, "j", "Complete"))
    w.settle()
    w.dump("jobs", "pods")


@scenario
def suspended(w: World) -> None:
    """A suspended job has no pods and no start time; suspended while running it loses its pods; each turn is a condition."""
    w.make(job("j", hand=True, suspend=True, parallelism=2, completions=2))
    w.settle()
    w.dump("jobs", "pods", label="suspended")
    w.edit("jobs", "j", {"spec": {"suspend": False}})
    w.settle()
    w.dump("jobs", label="resumed")
    w.edit("jobs", "j", {"spec": {"suspend": True}})
    w.settle()
    w.dump("jobs", "pods", label="suspended again")


@scenario
def deadline(w: World) -> None:
    """After activeDeadlineSeconds the job has failed with DeadlineExceeded and its pods are gone."""
    w.make(job("j", hand=True, activeDeadlineSeconds=4))
    w.until(lambda: ended(w, "j", "Failed"), 20)
    w.settle()
    w.dump("jobs", "pods")


@scenario
def time_to_live(w: World) -> None:
    """A finished job goes ttlSecondsAfterFinished later, pods and all; without the field it stays."""
    w.make(job("short", ttlSecondsAfterFinished=6))
    w.make(job("stays"))
    w.until(lambda: ended(w, "short", "Complete"))
    w.dump("jobs", names=["short"])
    w.until(lambda: w.read("jobs", "short") is None, 30)
    w.settle()
    w.fact("left", sorted(j["metadata"]["name"] for j in w.all("jobs")))
    w.fact("pods", sorted(p["metadata"]["labels"]["job-name"] for p in w.all("pods")))


@scenario
def replaces_failed_only(w: World) -> None:
    """podReplacementPolicy Failed: a terminating pod is replaced when it has failed: unbound, the pod garbage collector marks it so (every 20 seconds)."""
    for name, policy in (("j", "Failed"), ("k", "TerminatingOrFailed")):
        w.make(job(name, hand=True, podReplacementPolicy=policy))
    w.settle()
    for p in w.all("pods"):
        w.edit(
            "pods",
            p["metadata"]["name"],
            {"metadata": {"finalizers": [*p["metadata"].get("finalizers", []), "example.com/wait"]}},
        )
        w.remove("pods", p["metadata"]["name"])
    w.settle()
    w.until(lambda: all((w.read("jobs", name) or {})["status"].get("active") == 1 for name in "jk"), 60)
    w.settle()
    w.dump("jobs")
    w.fact(
        "pods",
        sorted(
            [p["metadata"]["labels"]["job-name"], "deletionTimestamp" in p["metadata"], p["status"]["phase"]]
            for p in w.all("pods")
        ),
    )


@scenario
def managed_by_another(w: World) -> None:
    """A job with another managedBy is left alone."""
    w.make(job("j", managedBy="example.com/queue"))
    w.settle()
    w.dump("jobs", "pods")


@scenario
def less_parallel(w: World) -> None:
    """Lowered parallelism deletes pods, which do not count as failed; raised completions of an Indexed job make more."""
    w.make(job("j", hand=True, completions=4, parallelism=3))
    w.settle()
    w.edit("jobs", "j", {"spec": {"parallelism": 1}})
    w.settle()
    w.dump("jobs", "pods", label="one")
    w.make(job("i", hand=True, completions=2, parallelism=2, completionMode="Indexed"))
    w.settle()
    w.edit("jobs", "i", {"spec": {"parallelism": 3, "completions": 3}})
    w.settle()
    w.dump("jobs", names=["i"], label="elastic")


@scenario
def deleted(w: World) -> None:
    """A deleted job's pods lose the tracking finalizer, with or without their lives."""
    w.make(job("j", hand=True, parallelism=2))
    w.make(job("k", hand=True))
    w.settle()
    w.remove("jobs", "j", "Background")
    w.remove("jobs", "k", "Orphan")
    w.settle()
    w.dump("jobs", "pods")


@scenario
def own_selector(w: World) -> None:
    """With manualSelector a job adopts the pods that its selector matches."""
    p = pod("old", {"run": "x"}, hand=True, restartPolicy="Never")
    w.make(p)
    w.make(
        {
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {
                "manualSelector": True,
                "selector": {"matchLabels": {"run": "x"}},
                "parallelism": 2,
                "completions": 2,
                "template": template({"run": "x"}, "job:1", hand=True, restartPolicy="Never"),
            },
        }
    )
    w.settle()
    w.dump("jobs", "pods")
