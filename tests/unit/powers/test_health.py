"""The state of an object in one word and one line."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.powers.health import health

CRASHED = {"name": "c", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}


@pytest.mark.parametrize(
    ("bucket", "obj", "expected"),
    [
        (
            "deployments.apps",
            {"spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 3, "updatedReplicas": 3}},
            ("ok", "3/3 ready"),
        ),
        (
            "deployments.apps",
            {"spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 1, "updatedReplicas": 2}},
            ("waiting", "1/3 ready, 2 updated"),
        ),
        ("replicasets.apps", {"spec": {"replicas": 0}, "status": {"replicas": 0}}, ("ok", "0/0 ready")),
        (
            "deployments.apps",
            {
                "spec": {"replicas": 1},
                "status": {"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]},
            },
            ("bad", "0/1 ready: ProgressDeadlineExceeded"),
        ),
        (
            "pods",
            {"spec": {"containers": [{}]}, "status": {"phase": "Running", "containerStatuses": [CRASHED]}},
            ("bad", "CrashLoopBackOff 0/1"),
        ),
        (
            "pods",
            {"spec": {"containers": [{}]}, "status": {"phase": "Running", "containerStatuses": [{"ready": True}]}},
            ("ok", "Running 1/1"),
        ),
        (
            "pods",
            {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}},
            ("bad", "Unschedulable"),
        ),
        ("pods", {"status": {"phase": "Succeeded"}}, ("ok", "Succeeded")),
        ("jobs.batch", {"spec": {"completions": 2}, "status": {"succeeded": 1, "active": 1}}, ("waiting", "1/2 done, 1 active")),
        (
            "nodes",
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}, "spec": {"unschedulable": True}},
            ("ok", "Ready, cordoned"),
        ),
        ("namespaces", {"status": {"phase": "Terminating"}}, ("waiting", "Terminating")),
        (
            "widgets.example.com",
            {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NoDisk"}]}},
            ("bad", "not Ready: NoDisk"),
        ),
        ("widgets.example.com", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, ("ok", "Ready")),
        ("configmaps", {}, ("unknown", "-")),
        ("widgets.example.com", {"status": {"conditions": "none", "phase": 3}}, ("unknown", "-")),
        ("pods", {"status": {"containerStatuses": [3]}}, ("unknown", "-")),
        ("widgets.example.com", {"metadata": {"deletionTimestamp": "t"}}, ("waiting", "deleting")),
    ],
)
def test_health(bucket: str, obj: dict[str, Any], expected: tuple[str, str]) -> None:
    assert health(bucket, {"metadata": {}, **obj}) == expected
