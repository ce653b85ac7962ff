"""CronJobs by a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apis.batch.schedules import parse_schedule
from fakekube.controllers.cronjob import TooFrequent, most_recent_schedule_time, next_requeue_duration
from tests.unit.controllers.workloads import names, reasons, template


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        now = made.clock.now()
        made.clock.advance(seconds=3600 - (now.minute * 60 + now.second + now.microsecond / 1e6))  # a full hour
        yield made


def make(cluster: Cluster, hand: bool = False, **spec: Any) -> None:
    pod = template({}, "job:1", restartPolicy="Never", **({"schedulerName": "by-hand"} if hand else {}))
    cluster.create(
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {
                "schedule": "*/10 * * * *",
                "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"template": pod}},
                **spec,
            },
        }
    )
    cluster.settle()


def status(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("cronjobs", "c", namespace="default")["status"]
    return found


def test_jobs_start_on_time_and_leave_a_history(cluster: Cluster) -> None:
    make(cluster, successfulJobsHistoryLimit=2)
    start = cluster.clock.now()
    cluster.clock.advance(minutes=35)
    minutes = int(start.timestamp()) // 60
    assert names(cluster, "jobs") == [f"c-{minutes + 20}", f"c-{minutes + 30}"]
    (job, _) = cluster.list("jobs", namespace="default")
    assert job["metadata"]["labels"]["a"] == "b"
    assert set(job["metadata"]["annotations"]) == {"batch.kubernetes.io/cronjob-scheduled-timestamp"}
    assert not status(cluster).get("active") and status(cluster)["lastSuccessfulTime"]
    assert {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"} <= set(reasons(cluster, "c"))


@pytest.mark.parametrize(("policy", "jobs"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
def test_the_concurrency_policy_applies_to_active_jobs(cluster: Cluster, policy: str, jobs: int) -> None:
    make(cluster, hand=True, concurrencyPolicy=policy)
    cluster.clock.advance(minutes=35)
    assert len(names(cluster, "jobs")) == jobs == len(status(cluster)["active"])
    assert ("JobAlreadyActive" in reasons(cluster, "c")) == (policy == "Forbid")


def test_a_resumed_cron_job_starts_one_missed_job(cluster: Cluster) -> None:
    make(cluster, hand=True, suspend=True)
    cluster.clock.advance(minutes=45)
    assert not names(cluster, "jobs")
    cluster.patch("cronjobs", "c", {"spec": {"suspend": False}}, namespace="default")
    cluster.settle()
    assert len(names(cluster, "jobs")) == 1


def test_a_start_after_the_starting_deadline_is_skipped(cluster: Cluster) -> None:
    make(cluster, suspend=True, startingDeadlineSeconds=60)
    cluster.clock.advance(minutes=45)
    cluster.patch("cronjobs", "c", {"spec": {"suspend": False}}, namespace="default")
    cluster.settle()
    assert not names(cluster, "jobs")


def test_a_changed_schedule_applies_to_the_next_start(cluster: Cluster) -> None:
    make(cluster, hand=True)
    cluster.clock.advance(minutes=5)
    cluster.patch("cronjobs", "c", {"spec": {"schedule": "7 * * * *"}}, namespace="default")
    cluster.settle()
    assert not names(cluster, "jobs")
    cluster.clock.advance(minutes=3)
    assert len(names(cluster, "jobs")) == 1


def test_a_schedule_has_a_time_zone(cluster: Cluster) -> None:
    make(cluster, hand=True, schedule="30 * * * *", timeZone="Asia/Kolkata")  # half an hour beside the others
    cluster.clock.advance(minutes=61)
    (job,) = cluster.list("jobs", namespace="default")
    assert job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].endswith(":30:00+05:30")


HOURLY = parse_schedule("0 * * * *")


def cron_job(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": "2026-01-01T00:30:00Z"}, "spec": spec, "status": {}}


@pytest.mark.parametrize(
    ("now", "hour", "missed"), [((0, 59), None, 0), ((1, 0), 1, 0), ((1, 59), 1, 0), ((2, 30), 2, 2), ((9, 0), 9, 9)]
)
def test_most_recent_schedule_time(now: tuple[int, int], hour: int | None, missed: int) -> None:
    moment = datetime(2026, 1, 1, *now, tzinfo=UTC)
    found = most_recent_schedule_time(cron_job(), moment, HOURLY, include_deadline=True)
    assert (found.time.hour if found.time else None, found.missed) == (hour, missed)
    if hour is not None:
        limited = most_recent_schedule_time(cron_job(startingDeadlineSeconds=10), moment, HOURLY, include_deadline=True)
        assert (limited.time is not None) == (now[1] == 0)


def test_the_next_sync_is_shortly_after_the_next_start() -> None:
    assert next_requeue_duration(cron_job(), datetime(2026, 1, 1, 0, 59, 30, tzinfo=UTC), HOURLY) == pytest.approx(30.1)
    never = parse_schedule("0 0 30 2 *")
    with pytest.raises(TooFrequent):
        most_recent_schedule_time(cron_job(), datetime(2026, 1, 1, 1, tzinfo=UTC), never, include_deadline=True)
