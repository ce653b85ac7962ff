"""The printers of pods and PodDisruptionBudgets. The STATUS of a pod is computed from its conditions and container statuses.

Specified by: k8s.io/kubernetes/pkg/printers/internalversion/printers.go (printPod).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.printers.texts import NONE, Ages, Cells, Object, age, condition, containers, labels, name, since

_COMPLETED: Final = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def pod_conditions(pod: Object) -> list[dict[str, str]]:
    """Returns the conditions of a pod's row: Completed for one that has succeeded or failed."""
    phase = pod.get("status", {}).get("phase", "")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


@dataclass(slots=True)
class _Summary:
    """The status, and the numbers of containers, restarts and so on of a pod."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""
    """The time at which the last restarted container had terminated."""

    def count(self, container: Object) -> None:
        self.restarts += container.get("restartCount", 0)
        terminated = _terminated(container.get("lastState"))
        ended = terminated.get("finishedAt") if terminated else None
        if ended and ended > self.last_restart:
            self.last_restart = ended


def _pod(pod: Object, ages: Ages) -> list[Any]:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    sidecars = {c["name"] for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    summary = _summary(pod, sidecars)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts = f"{summary.restarts} ({since(summary.last_restart, ages)} ago)"
    total = len(spec.get("containers") or ()) + len(sidecars)
    ready = f"{summary.ready}/{total}"
    addresses = status.get("podIPs") or [{}]
    return [
        name(pod), ready, _reason_of_deletion(pod) or summary.reason, restarts, age(pod, ages),
        addresses[0].get("ip") or NONE, spec.get("nodeName") or NONE, status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec, status),
    ]  # fmt: skip


def _summary(pod: Object, sidecars: set[str]) -> _Summary:
    status = pod.get("status", {})
    conditions = status.get("conditions")
    reason = status.get("reason") or status.get("phase", "")
    gated = ("PodScheduled", "SchedulingGated")
    if any((found.get("type"), found.get("reason")) == gated for found in conditions or ()):
        reason = "SchedulingGated"
    summary, of_sidecars = _Summary(reason), _Summary(reason)
    initializing = _initialization(pod, sidecars, summary, of_sidecars)
    initialized = condition(conditions, "Initialized")
    if not initializing or (initialized is not None and initialized.get("status") == "True"):
        of_sidecars.reason, of_sidecars.ready = summary.reason, summary.ready
        _running(status, of_sidecars)
        return of_sidecars
    return summary


def _initialization(pod: Object, sidecars: set[str], summary: _Summary, of_sidecars: _Summary) -> bool:
    """Evaluates the init containers up to the first that is not complete. Returns whether the pod is still initializing."""
    total = len(pod.get("spec", {}).get("initContainers") or ())
    for number, container in enumerate(pod.get("status", {}).get("initContainerStatuses") or ()):
        summary.count(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            of_sidecars.count(container)
        state = container.get("state") or {}
        terminated, waiting = _terminated(state), state.get("waiting")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            summary.ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            summary.reason = f"Init:{_reason_of_end(terminated)}"
        elif waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            summary.reason = f"Init:{waiting['reason']}"
        else:
            summary.reason = f"Init:{number}/{total}"
        return True
    return False


def _running(status: Object, summary: _Summary) -> None:
    """Evaluates the containers from the last to the first, so that the status of the first one takes precedence."""
    has_running = False
    error = ""
    for container in reversed(status.get("containerStatuses") or ()):
        summary.count(container)
        state = container.get("state") or {}
        terminated, waiting = _terminated(state), state.get("waiting")
        if waiting is not None and waiting.get("reason"):
            summary.reason = waiting["reason"]
        elif terminated is not None:
            summary.reason = _reason_of_end(terminated)
            if terminated.get("exitCode"):
                error = summary.reason
        elif container.get("ready") and state.get("running") is not None:
            has_running = True
            summary.ready += 1
    if summary.reason == "Completed":
        if has_running and _is_ready(status.get("conditions")):
            summary.reason = "Running"
        elif error or has_running:
            summary.reason = error or "NotReady"


def _terminated(state: Object | None) -> Object | None:
    found: Object | None = (state or {}).get("terminated")
    return found


def _reason_of_end(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _is_ready(conditions: Sequence[Object] | None) -> bool:
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions or ())


def _reason_of_deletion(pod: Object) -> str:
    status = pod.get("status", {})
    if not pod["metadata"].get("deletionTimestamp"):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in _COMPLETED else "Terminating"


def _readiness_gates(spec: Object, status: Object) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return NONE
    found = (condition(status.get("conditions"), gate["conditionType"]) for gate in gates)
    passed = sum(one is not None and one.get("status") == "True" for one in found)
    return f"{passed}/{len(gates)}"


def _pod_template(obj: Object, _: Ages) -> list[Any]:
    template = obj.get("template", {})
    return [name(obj), *containers(template.get("spec")), labels(template.get("metadata", {}).get("labels"))]


def _disruption_budget(obj: Object, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    bounds = [str(spec.get(bound, "N/A")) for bound in ("minAvailable", "maxUnavailable")]
    return [name(obj), *bounds, obj.get("status", {}).get("disruptionsAllowed", 0), age(obj, ages)]


CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "pods"): _pod,
    ("", "podtemplates"): _pod_template,
    ("policy", "poddisruptionbudgets"): _disruption_budget,
}
