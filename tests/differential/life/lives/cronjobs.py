"""CronJobs, in no more than a minute or two."""

from __future__ import annotations

from tests.differential.life.manifests import condition, template
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


def cron(name: str, hand: bool = False, **spec: object) -> dict[str, object]:
    return {
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {
                "metadata": {"labels": {"from": name}, "annotations": {"a": "b"}},
                "spec": {"template": template({}, "job:1", hand, restartPolicy="Never")},
            },
            **spec,
        },
    }


@scenario
def every_minute(w: World) -> None:
    """On the minute a job named NAME-MINUTES is made; done, it is off the active list."""
    w.make(cron("c"))
    w.make(cron("asleep", suspend=True))
    w.settle()
    w.dump("cronjobs", label="waiting")
    w.until(lambda: w.all("jobs") and (w.read("cronjobs", "c") or {})["status"]["lastScheduleTime"], 75)
    w.edit("cronjobs", "c", {"spec": {"suspend": True}})
    w.until(lambda: condition(w.all("jobs")[0], "Complete") == "True")
    w.settle()
    w.dump("cronjobs", "jobs", "pods", managers=True, label="done")


@scenario
def keeps_no_history(w: World) -> None:
    """With successfulJobsHistoryLimit 0 the finished job goes, with 1 it stays; a job that runs is on the active list."""
    w.make(cron("none", successfulJobsHistoryLimit=0, timeZone="Etc/UTC"))
    w.make(cron("held", hand=True, concurrencyPolicy="Forbid"))
    w.until(
        lambda: (
            (w.read("cronjobs", "none") or {})["status"].get("lastSuccessfulTime")
            and (w.read("cronjobs", "held") or {})["status"].get("active")
        ),
        75,
    )
    w.edit("cronjobs", "none", {"spec": {"suspend": True}})
    w.edit("cronjobs", "held", {"spec": {"suspend": True}})
    w.settle()
    w.dump("cronjobs", "jobs")


@scenario
def forbidden_and_replaced(w: World) -> None:
    """A minute later: Forbid makes no second job, Replace deletes the first, Allow lets both run."""
    for name, policy in (("forbid", "Forbid"), ("replace", "Replace"), ("allow", "Allow")):
        w.make(cron(name, hand=True, concurrencyPolicy=policy))
    w.until(lambda: len(w.all("jobs")) == 3, 75)
    first = {j["metadata"]["labels"]["from"]: j["metadata"]["uid"] for j in w.all("jobs")}
    w.until(lambda: len(w.all("jobs", "from=allow")) == 2, 75)
    for name in ("forbid", "replace", "allow"):
        w.edit("cronjobs", name, {"spec": {"suspend": True}})
    w.settle()
    w.fact("jobs", {name: len(w.all("jobs", f"from={name}")) for name in ("forbid", "replace", "allow")})
    w.fact("replaced", first.get("replace") not in [j["metadata"]["uid"] for j in w.all("jobs")])
    w.fact(
        "active",
        {
            c["metadata"]["name"]: len(c["status"].get("active", []))
            for c in w.all("cronjobs")
            if c["metadata"]["name"] != "replace"
        },
    )
