"""Jobs: what is counted, when they are over, and what they say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.controller_utils import parse_time
from fakekube.controllers.job.backoff_utils import BackoffRecord, get_finished_time, get_remaining_time
from fakekube.controllers.job.indexed_job_utils import COMPLETION_INDEX, OrderedIntervals, match_success_policy
from fakekube.controllers.job.pod_failure_policy import FailurePolicyMatch, match_pod_failure_policy
from tests.unit.controllers.workloads import condition, job, make_ready, names, reasons, write_status

FINALIZER = "batch.kubernetes.io/job-tracking"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def make(cluster: Cluster, name: str = "j", **spec: Any) -> None:
    cluster.create(job(name, **spec))
    cluster.settle()


def status(cluster: Cluster, name: str = "j") -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("jobs", name, namespace="default")["status"]
    return found


def waiting(cluster: Cluster) -> list[str]:
    """Pods that have not ended, by index if they have one."""
    found = [pod for pod in cluster.list("pods", namespace="default") if pod["status"]["phase"] == "Pending"]
    found.sort(key=lambda pod: int(pod["metadata"].get("annotations", {}).get(COMPLETION_INDEX, 0)))
    return [pod["metadata"]["name"] for pod in found]


def end(cluster: Cluster, pod: str, code: int = 0, **more: Any) -> None:
    container = {
        "name": "c",
        "image": "x",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": {"exitCode": code}},
    }
    write_status(cluster, pod, phase="Failed" if code else "Succeeded", containerStatuses=[container], **more)
    cluster.settle()


def test_succeeded_pods_complete_a_job(cluster: Cluster) -> None:
    make(cluster, hand=False, completions=3, parallelism=2)
    found = cluster.get("jobs", "j", namespace="default")
    assert condition(found, "Complete") == ("True", "CompletionsReached")
    assert (found["status"]["succeeded"], found["status"]["uncountedTerminatedPods"]) == (3, {})
    assert not any(FINALIZER in pod["metadata"].get("finalizers", ()) for pod in cluster.list("pods", namespace="default"))
    assert reasons(cluster, "j")[-1] == "Completed"


def test_failed_pods_are_retried_with_backoff(cluster: Cluster) -> None:
    make(cluster, backoffLimit=2)
    for wait in (10, 20):
        end(cluster, waiting(cluster)[0], code=1)
        cluster.clock.advance(seconds=wait - 2)
        assert not waiting(cluster)
        cluster.clock.advance(seconds=3)
        assert len(waiting(cluster)) == 1
    end(cluster, waiting(cluster)[0], code=1)
    found = cluster.get("jobs", "j", namespace="default")
    assert condition(found, "Failed") == condition(found, "FailureTarget") == ("True", "BackoffLimitExceeded")
    assert found["status"]["failed"] == 3


def test_indexes_are_used_in_ascending_order(cluster: Cluster) -> None:
    make(cluster, completions=5, parallelism=2, completionMode="Indexed")
    pod = cluster.get("pods", waiting(cluster)[1], namespace="default")
    assert pod["spec"]["hostname"] == "j-1" and pod["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    assert pod["metadata"]["generateName"] == "j-1-" and pod["metadata"]["labels"][COMPLETION_INDEX] == "1"
    for _ in range(3):
        end(cluster, waiting(cluster)[-1])
    assert status(cluster)["completedIndexes"] == "1-3"
    end(cluster, waiting(cluster)[-1])
    end(cluster, waiting(cluster)[0])
    assert (status(cluster)["completedIndexes"], status(cluster)["succeeded"]) == ("0-4", 5)


def test_backoff_limit_per_index(cluster: Cluster) -> None:
    make(cluster, completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1)
    end(cluster, waiting(cluster)[0], code=1)
    cluster.clock.advance(seconds=12)
    again = cluster.get("pods", waiting(cluster)[0], namespace="default")
    assert again["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "1"
    end(cluster, waiting(cluster)[0], code=1)
    assert status(cluster)["failedIndexes"] == "0"
    end(cluster, waiting(cluster)[0])
    found = cluster.get("jobs", "j", namespace="default")
    assert condition(found, "Failed") == ("True", "FailedIndexes") and found["status"]["succeeded"] == 1


def test_pod_failure_policy(cluster: Cluster) -> None:
    rules = [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]
    make(cluster, backoffLimit=0, podFailurePolicy={"rules": rules})
    end(cluster, waiting(cluster)[0], code=3)
    cluster.clock.advance(seconds=12)
    assert "failed" not in status(cluster)
    (pod,) = waiting(cluster)
    end(cluster, pod, code=42)
    message = next(one["message"] for one in status(cluster)["conditions"] if one["type"] == "Failed")
    assert message == f"Container c for pod default/{pod} failed with exit code 42 matching FailJob rule at index 1"


def test_a_success_policy_completes_a_job_early(cluster: Cluster) -> None:
    make(cluster, completions=3, parallelism=3, completionMode="Indexed", successPolicy={"rules": [{"succeededIndexes": "0"}]})
    end(cluster, waiting(cluster)[0])
    found = cluster.get("jobs", "j", namespace="default")
    assert condition(found, "SuccessCriteriaMet") == condition(found, "Complete") == ("True", "SuccessPolicy")
    assert not waiting(cluster)


def test_suspend_and_resume(cluster: Cluster) -> None:
    make(cluster, suspend=True, parallelism=2)
    assert not names(cluster) and "startTime" not in status(cluster)
    cluster.patch("jobs", "j", {"spec": {"suspend": False}}, namespace="default")
    cluster.settle()
    assert len(names(cluster)) == 2 and status(cluster)["startTime"]
    cluster.patch("jobs", "j", {"spec": {"suspend": True}}, namespace="default")
    cluster.settle()
    assert not names(cluster)
    assert {"Suspended", "Resumed", "SuccessfulDelete"} <= set(reasons(cluster, "j"))


def test_active_deadline_seconds(cluster: Cluster) -> None:
    make(cluster, activeDeadlineSeconds=30)
    make_ready(cluster, waiting(cluster)[0])
    cluster.clock.advance(seconds=29)
    assert status(cluster)["active"] == status(cluster)["ready"] == 1
    cluster.clock.advance(seconds=2)
    assert condition(cluster.get("jobs", "j", namespace="default"), "Failed") == ("True", "DeadlineExceeded")
    assert not names(cluster)


def test_finalizers_of_pods_of_a_deleted_job_are_removed(cluster: Cluster) -> None:
    make(cluster, parallelism=2)
    cluster.delete("jobs", "j", namespace="default", propagationPolicy="Orphan")
    cluster.settle()
    pods = cluster.list("pods", namespace="default")
    assert len(pods) == 2 and not any(pod["metadata"].get("finalizers") or pod["metadata"].get("ownerReferences") for pod in pods)


def test_managed_by_another_controller(cluster: Cluster) -> None:
    make(cluster, managedBy="example.com/queue")
    assert status(cluster) == {} and not names(cluster)


# ---------------------------------------------------------------- functions


def pod(finished: str, phase: str = "Failed", code: int = 1, **conditions: str) -> dict[str, Any]:
    ended = {"exitCode": code, "finishedAt": finished}
    return {
        "metadata": {"namespace": "ns", "name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {},
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": "c", "state": {"terminated": ended}}],
            "conditions": [{"type": type_, "status": verdict} for type_, verdict in conditions.items()],
        },
    }


@pytest.mark.parametrize(("failures", "wait"), [(0, 0), (1, 10), (2, 20), (6, 320), (7, 600), (99, 600)])
def test_the_backoff_doubles(failures: int, wait: float) -> None:
    at = parse_time("2026-01-01T00:00:00Z")
    assert get_remaining_time(failures, at, at) == wait
    assert get_remaining_time(failures, at, parse_time("2026-01-01T00:00:04Z")) == max(wait - 4, 0)


def test_a_success_resets_the_backoff() -> None:
    early, late = pod("2026-01-01T00:00:10Z"), pod("2026-01-01T00:00:30Z")
    record = BackoffRecord().with_terminated_pods([], [early, late])
    assert (record.failures, record.last_failure) == (2, get_finished_time(late))
    assert record.with_terminated_pods([], []) == record
    assert record.with_terminated_pods([pod("2026-01-01T00:00:20Z")], [late]) == BackoffRecord(1, get_finished_time(late))
    assert record.with_terminated_pods([pod("2026-01-01T00:00:40Z")], [late]) == BackoffRecord()


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [2]}}, FailurePolicyMatch(None, True, "Count")),
        (
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1], "containerName": "c"}},
            FailurePolicyMatch(None, True, "FailIndex"),
        ),
        ({"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1], "containerName": "d"}}, FailurePolicyMatch()),
        (
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            FailurePolicyMatch(None, False, "Ignore"),
        ),
        (
            {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            FailurePolicyMatch("Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0", True, "FailJob"),
        ),
    ],
)
def test_rules_of_pod_failure_policies(rule: dict[str, Any], found: FailurePolicyMatch) -> None:
    policy = {"spec": {"podFailurePolicy": {"rules": [rule]}}}
    assert match_pod_failure_policy(policy, pod("2026-01-01T00:00:10Z", DisruptionTarget="True")) == found


@pytest.mark.parametrize(
    ("rule", "succeeded", "met"),
    [
        ({"succeededCount": 2}, [0, 5], True),
        ({"succeededCount": 3}, [0, 5], False),
        ({"succeededIndexes": "0-2"}, [0, 1, 2], True),
        ({"succeededIndexes": "0-2"}, [0, 1, 3], False),
        ({"succeededIndexes": "0-2", "succeededCount": 1}, [2], True),
        ({"succeededIndexes": "20"}, [0], False),
        ({"succeededCount": 1}, [], False),
    ],
)
def test_rules_of_success_policies(rule: dict[str, Any], succeeded: list[int], met: bool) -> None:
    policy = {"spec": {"completions": 10, "successPolicy": {"rules": [rule]}}}
    assert match_success_policy(policy, OrderedIntervals.from_indexes(succeeded)) == ("Matched rules at index 0" if met else None)
