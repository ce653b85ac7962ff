"""The status of a pod in one word; the real server gave the same for the same statuses."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.printers.core import pod_conditions
from tests.unit.apimachinery.printers.rows import ago, cells

SPEC: dict[str, Any] = {
    "containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j:2"}],
    "initContainers": [{"name": "x", "image": "k"}, {"name": "s", "image": "l", "restartPolicy": "Always"}],
    "readinessGates": [{"conditionType": "g/a"}, {"conditionType": "g/b"}],
}
RUNNING: dict[str, Any] = {"running": {"startedAt": ago(hours=1)}}


def container(
    name: str,
    state: dict[str, Any] | None = None,
    *,
    ready: bool = False,
    restarts: int = 0,
    last: Any = None,
    started: bool = False,
) -> dict[str, Any]:
    return {
        "name": name,
        "ready": ready,
        "restartCount": restarts,
        "state": state or {},
        "lastState": last or {},
        "started": started,
    }


def terminated(code: int = 0, reason: str = "", signal: int = 0, *, hours: float = 1) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "signal": signal, "finishedAt": ago(hours=hours)}}


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason} if reason else {}}


def condition(type_: str, status: str = "True", reason: str = "") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason}


PHASES: list[tuple[str, dict[str, Any], tuple[str, str, str]]] = [
    ("nothing", {}, ("0/3", "", "0")),
    ("phase", {"phase": "Running"}, ("0/3", "Running", "0")),
    ("reason", {"phase": "Failed", "reason": "Evicted"}, ("0/3", "Evicted", "0")),
    (
        "gated",
        {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "SchedulingGated")]},
        ("0/3", "SchedulingGated", "0"),
    ),
]
INITIALIZING: list[tuple[str, list[dict[str, Any]], tuple[str, str, str]]] = [
    ("first", [container("x", waiting("PodInitializing"))], ("0/3", "Init:0/2", "0")),
    ("pull", [container("x", waiting("ImagePullBackOff"), restarts=3)], ("0/3", "Init:ImagePullBackOff", "3")),
    ("exit code", [container("x", terminated(1)), container("s")], ("0/3", "Init:ExitCode:1", "0")),
    ("signal", [container("x", terminated(1, signal=9))], ("0/3", "Init:Signal:9", "0")),
    ("reason", [container("x", terminated(1, "Error"))], ("0/3", "Init:Error", "0")),
    ("second", [container("x", terminated()), container("s", waiting(""))], ("0/3", "Init:1/2", "0")),
]
RAN: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]], list[dict[str, str]], tuple[str, str, str]]] = [
    (
        "sidecar",
        [
            container("x", terminated(), restarts=2, last=terminated(1, hours=3)),
            container("s", RUNNING, ready=True, started=True, restarts=4, last=terminated(1, hours=2.5)),
        ],
        [container("a", RUNNING, ready=True, restarts=1, last=terminated(2, hours=5)), container("b", RUNNING, ready=True)],
        [],
        ("3/3", "Running", "5 (150m ago)"),
    ),
    (
        "crash loop",
        [container("x", terminated()), container("s", RUNNING, started=True)],
        [
            container("a", RUNNING, ready=True, restarts=1),
            container("b", waiting("CrashLoopBackOff"), restarts=7, last=terminated(1, hours=0.05)),
        ],
        [],
        ("1/3", "CrashLoopBackOff", "8 (3m ago)"),
    ),
    (
        "last word",
        [],
        [container("a", RUNNING, ready=True), container("b", terminated(0, "Completed"), ready=True)],
        [],
        ("1/3", "NotReady", "0"),
    ),
    (
        "ready",
        [],
        [container("a", terminated(0, "Completed")), container("b", RUNNING, ready=True)],
        [condition("Ready")],
        ("1/3", "Running", "0"),
    ),
    (
        "not ready",
        [],
        [container("a", terminated(0, "Completed")), container("b", RUNNING, ready=True)],
        [],
        ("1/3", "NotReady", "0"),
    ),
    (
        "error behind",
        [],
        [container("a", terminated(0, "Completed")), container("b", terminated(3))],
        [],
        ("0/3", "ExitCode:3", "0"),
    ),
    ("exit code 0", [], [container("a", terminated(0)), container("b", terminated(0))], [], ("0/3", "ExitCode:0", "0")),
]


def shown(status: dict[str, Any], **metadata: Any) -> tuple[Any, ...]:
    return tuple(cells("/v1/pods", {"spec": SPEC, "status": status}, **metadata)[1:4])


@pytest.mark.parametrize(("status", "expected"), [case[1:] for case in PHASES], ids=[case[0] for case in PHASES])
def test_pods_before_container_statuses(status: dict[str, Any], expected: tuple[str, str, str]) -> None:
    assert shown(status) == expected


@pytest.mark.parametrize(("init", "expected"), [case[1:] for case in INITIALIZING], ids=[case[0] for case in INITIALIZING])
def test_initializing_pods(init: list[dict[str, Any]], expected: tuple[str, str, str]) -> None:
    assert shown({"phase": "Pending", "initContainerStatuses": init}) == expected


@pytest.mark.parametrize(("init", "main", "conditions", "expected"), [case[1:] for case in RAN], ids=[case[0] for case in RAN])
def test_initialized_pods(
    init: list[dict[str, Any]], main: list[dict[str, Any]], conditions: list[dict[str, str]], expected: tuple[str, str, str]
) -> None:
    status = {"phase": "Running", "initContainerStatuses": init, "containerStatuses": main, "conditions": conditions}
    assert shown(status) == expected


def test_initialized_pod_with_restarting_init_container() -> None:
    status = {
        "phase": "Pending",
        "initContainerStatuses": [container("x", waiting("Foo"))],
        "conditions": [condition("Initialized")],
        "containerStatuses": [container("a", RUNNING, ready=True, restarts=2, last=terminated(1, hours=30))],
    }
    assert shown(status) == ("1/3", "Init:Foo", "2 (30h ago)")


@pytest.mark.parametrize(
    ("status", "expected"),
    [({"phase": "Running"}, "Terminating"), ({"reason": "NodeLost"}, "Unknown"), ({"phase": "Succeeded"}, "Succeeded")],
)
def test_deleted_pods(status: dict[str, Any], expected: str) -> None:
    assert shown(status, deletionTimestamp=ago(minutes=1))[1] == expected


def test_wide_columns() -> None:
    spec = {**SPEC, "nodeName": "n"}
    status = {
        "podIPs": [{"ip": "1.2.3.4"}, {"ip": "::1"}],
        "nominatedNodeName": "nn",
        "conditions": [condition("g/a"), condition("g/b", "False")],
    }
    assert cells("/v1/pods", {"spec": spec, "status": status})[4:] == ["60m", "1.2.3.4", "n", "nn", "1/2"]
    assert cells("/v1/pods", {"spec": {}, "status": {}})[4:] == ["60m", "<none>", "<none>", "<none>", "<none>"]


def test_completed_pod_rows_have_a_condition() -> None:
    assert pod_conditions({"status": {"phase": "Running"}}) == []
    assert pod_conditions({"status": {"phase": "Failed"}}) == [
        {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
    ]
    assert pod_conditions({"status": {"phase": "Succeeded"}})[0]["message"] == "The pod has completed successfully."


def test_pod_templates_and_disruption_budgets() -> None:
    template = {"spec": SPEC, "metadata": {"labels": {"b": "1", "a": "2"}}}
    assert cells("/v1/podtemplates", {"template": template}) == ["x", "a,b", "i:1,j:2", "a=2,b=1"]
    budget = {"spec": {"maxUnavailable": "30%"}, "status": {"disruptionsAllowed": 2}}
    assert cells("policy/v1/poddisruptionbudgets", budget) == ["x", "N/A", "30%", 2, "60m"]
