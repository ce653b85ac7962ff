"""What a kubelet's server answers by itself, by the status of a pod, before it asks the container runtime.

Specified by: pkg/kubelet/server/server.go; pkg/kubelet/kubelet_pods.go (validateContainerLogStatus, findContainer).
"""

from __future__ import annotations

from typing import Any

from fakekube.apis.rest.strategy import Object
from fakekube.base.golang.quoting import go_quote
from fakekube.net.streaming.kubelet_api import KubeletError

_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_SPECS = ("initContainers", "containers", "ephemeralContainers")
_WAITING = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}


def require_log(pod: Object, container: str, *, previous: bool) -> None:
    """Checks that a container has a log. Raises KubeletError 400."""
    problem = _log_problem(_status_of(pod, container), previous=previous)
    if problem:
        where = f"container {go_quote(container)} in pod {go_quote(pod['metadata']['name'])}"
        raise KubeletError(400, problem.format(where))


def _log_problem(found: Object | None, *, previous: bool) -> str:
    """Returns why there is no log, with {} for the container; "" if there is one."""
    if found is None:
        return "{} is not available"
    state, last = found.get("state") or {}, (found.get("lastState") or {}).get("terminated") or {}
    ended = state.get("terminated")
    if previous:
        return "" if last.get("containerID") else "previous terminated {} not found"
    if "running" in state or last.get("containerID") or (ended or {}).get("containerID"):
        return ""
    if ended is not None or last:
        return "{} is terminated"
    if "waiting" not in state:
        return "{} is waiting to start - no logs yet"
    reason = state["waiting"].get("reason", "")
    return f"{{}} is waiting to start: {_WAITING.get(reason, reason)}"


def require_running(pod: Object, container: str, *, attaches: bool) -> None:
    """Checks that a container runs. Raises KubeletError 500."""
    found = _status_of(pod, container) or {}
    if "running" in (found.get("state") or {}):
        return
    if attaches:
        raise KubeletError(500, f"container {container} not found in pod {_full_name(pod)}")
    raise KubeletError(500, f"container not found ({go_quote(container)})")


def require_running_pod(pod: Object) -> None:
    """Checks that some container of a pod runs. Raises KubeletError 500."""
    if not any("running" in (one.get("state") or {}) for one in _statuses(pod)):
        raise KubeletError(500, f"pod not found ({go_quote(_full_name(pod))})")


def spec_of(pod: Object, container: str) -> Object:
    """Returns the container's part of the spec; {} if there is none."""
    found = (one for kind in _SPECS for one in pod["spec"].get(kind, ()) if one["name"] == container)
    return next(found, {})


def sandbox_of(pod: Object) -> str:
    """Returns the id of a pod's sandbox, which the runtime's messages name."""
    return str(pod["metadata"]["uid"]).replace("-", "") * 2


def _full_name(pod: Object) -> str:
    return f"{pod['metadata']['name']}_{pod['metadata']['namespace']}"


def _statuses(pod: Object) -> list[Any]:
    return [one for kind in _STATUSES for one in (pod.get("status") or {}).get(kind) or ()]


def _status_of(pod: Object, container: str) -> Object | None:
    return next((one for one in _statuses(pod) if one.get("name") == container), None)
