"""Printers of workloads: desired, current and ready replicas, Jobs and autoscalers.

Specified by: k8s.io/kubernetes/pkg/printers/internalversion (printers.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakekube.apimachinery.printers.texts import (
    NONE,
    UNKNOWN,
    UNSET,
    Ages,
    Cells,
    age,
    condition,
    containers,
    duration_between,
    labels,
    name,
    selector,
    since,
)  # fmt: skip
from fakekube.base.objects import StoredObject, group_resource


def _parts(obj: StoredObject) -> tuple[StoredObject, StoredObject]:
    return obj.get("spec", {}), obj.get("status", {})


def _wide(spec: StoredObject) -> list[str]:
    """Returns the names and images of the containers, and the selector."""
    return [*containers(_pod_spec(spec)), selector(spec.get("selector")) or NONE]


def _pod_spec(spec: StoredObject) -> StoredObject | None:
    found: StoredObject | None = (spec.get("template") or {}).get("spec")
    return found


def _replicas(spec: StoredObject, status: StoredObject) -> list[int]:
    return [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]


def _replication_controller(obj: StoredObject, ages: Ages) -> list[Any]:
    spec, status = _parts(obj)
    wide = [*containers(_pod_spec(spec)), labels(spec.get("selector"))]
    return [name(obj), *_replicas(spec, status), age(obj, ages), *wide]


def _replica_set(obj: StoredObject, ages: Ages) -> list[Any]:
    spec, status = _parts(obj)
    return [name(obj), *_replicas(spec, status), age(obj, ages), *_wide(spec)]


def _stateful_set(obj: StoredObject, ages: Ages) -> list[Any]:
    spec, status = _parts(obj)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name(obj), ready, age(obj, ages), *containers(_pod_spec(spec))]


_DAEMONS: Final = (
    "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled",
    "numberAvailable",
)  # fmt: skip


def _daemon_set(obj: StoredObject, ages: Ages) -> list[Any]:
    spec, status = _parts(obj)
    counts = [status.get(count, 0) for count in _DAEMONS]
    nodes = labels((_pod_spec(spec) or {}).get("nodeSelector"))
    return [name(obj), *counts, nodes, age(obj, ages), *_wide(spec)]


def _deployment(obj: StoredObject, ages: Ages) -> list[Any]:
    spec, status = _parts(obj)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    wide = [*containers(_pod_spec(spec)), selector(spec.get("selector"))]
    return [name(obj), ready, *counts, age(obj, ages), *wide]


def _controller_revision(obj: StoredObject, ages: Ages) -> list[Any]:
    owners = obj["metadata"].get("ownerReferences") or ()
    owner = next((owner for owner in owners if owner.get("controller")), None)
    controller = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = group_resource(group, owner.get("kind", ""))
        controller = f"{kind.lower()}/{owner.get('name', '')}"
    return [name(obj), controller, obj.get("revision", 0), age(obj, ages)]


#: Condition of a Job → STATUS; the first one that is true counts. A deletion timestamp is checked between them.
_JOB_ENDS: Final = {"Complete": "Complete", "Failed": "Failed"}
_JOB_STATES: Final = {
    "Suspended": "Suspended", "FailureTarget": "FailureTarget", "SuccessCriteriaMet": "SuccessCriteriaMet",
}  # fmt: skip


def job_without_success_criteria(obj: StoredObject, ages: Ages) -> list[Any]:
    """Returns the cells of a Job in 1.33, to which the condition SuccessCriteriaMet says nothing."""
    found = [one for one in obj.get("status", {}).get("conditions") or () if one.get("type") != "SuccessCriteriaMet"]
    return _job({**obj, "status": {**obj.get("status", {}), "conditions": found}}, ages)


def _job(obj: StoredObject, ages: Ages) -> list[Any]:
    spec, status = _parts(obj)
    progress = [_job_status(obj), _completions(spec, status), _duration(status, ages)]
    return [name(obj), *progress, age(obj, ages), *_wide(spec)]


def _job_status(obj: StoredObject) -> str:
    conditions = obj.get("status", {}).get("conditions")

    def holds(type_: str) -> bool:
        found = condition(conditions, type_)
        return found is not None and found.get("status") == "True"

    ended = next((text for type_, text in _JOB_ENDS.items() if holds(type_)), "")
    if not ended and obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return ended or next((text for type_, text in _JOB_STATES.items() if holds(type_)), "Running")


def _completions(spec: StoredObject, status: StoredObject) -> str:
    succeeded, wanted = status.get("succeeded", 0), spec.get("completions")
    parallelism = spec.get("parallelism", 0)
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(status: StoredObject, ages: Ages) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return duration_between(start, end) if end else since(start, ages)


def _cron_job(obj: StoredObject, ages: Ages) -> list[Any]:
    spec, status = _parts(obj)
    suspend = {None: UNSET, True: "True", False: "False"}[spec.get("suspend")]
    last = status.get("lastScheduleTime")
    job = spec.get("jobTemplate", {}).get("spec", {})
    return [
        name(obj), spec.get("schedule", ""), spec.get("timeZone", NONE), suspend,
        len(status.get("active") or ()), since(last, ages) if last else NONE, age(obj, ages), *_wide(job),
    ]  # fmt: skip


# --- Autoscaling ------------------------------------------------------------------------------------------------------


def _autoscaler(obj: StoredObject, ages: Ages) -> list[Any]:
    spec, status = _parts(obj)
    target = spec.get("scaleTargetRef", {})
    minimum = str(spec.get("minReplicas", UNSET))
    counts = [minimum, spec.get("maxReplicas", 0), status.get("currentReplicas", 0)]
    reference = f"{target.get('kind', '')}/{target.get('name', '')}"
    return [name(obj), reference, _metrics(spec, status), *counts, age(obj, ages)]


def _metrics(spec: StoredObject, status: StoredObject) -> str:
    wanted, current = spec.get("metrics") or (), status.get("currentMetrics") or ()
    texts = [_metric(one, current[at] if at < len(current) else {}) for at, one in enumerate(wanted)]
    shown = ", ".join(texts[:2])
    if len(texts) > 2:
        return f"{shown} + {len(texts) - 2} more..."
    return shown or NONE


#: Type of a metric → the fields of its values; of the last two the name of the resource.
_SOURCES: Final = {
    "External": "external", "Pods": "pods", "Object": "object", "Resource": "resource",
    "ContainerResource": "containerResource",
}  # fmt: skip


def _metric(wanted: StoredObject, status: StoredObject) -> str:
    kind = wanted.get("type", "")
    if kind not in _SOURCES:
        return "<unknown type>"
    source = _SOURCES[kind]
    target = wanted.get(source, {}).get("target", {})
    reported = status.get(source)
    current = (reported or {}).get("current", {})
    if kind in ("Resource", "ContainerResource"):
        measured = wanted[source].get("name", "")
        if target.get("averageValue") is not None:
            value = UNKNOWN if reported is None else current.get("averageValue", "<nil>")
            return f"{measured}: {value}/{target['averageValue']}"
        utilization = current.get("averageUtilization")
        share = UNKNOWN if utilization is None else f"{utilization}%"
        goal = target.get("averageUtilization")
        return f"{measured}: {share}/{'<auto>' if goal is None else f'{goal}%'}"
    if kind == "Pods":
        value = UNKNOWN if reported is None else current.get("averageValue", "<nil>")
        return f"{value}/{target.get('averageValue', '<nil>')}"
    if target.get("averageValue") is not None:
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']} (avg)"
    value = UNKNOWN if reported is None else current.get("value", "<nil>")
    return f"{value}/{target.get('value', '<nil>')}"


def scale(obj: StoredObject, ages: Ages) -> list[Any]:
    """Returns the cells of a Scale."""
    spec, status = _parts(obj)
    return [name(obj), spec.get("replicas", 0), status.get("replicas", 0), age(obj, ages)]


CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "replicationcontrollers"): _replication_controller,
    ("apps", "controllerrevisions"): _controller_revision,
    ("apps", "daemonsets"): _daemon_set,
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): _replica_set,
    ("apps", "statefulsets"): _stateful_set,
    ("autoscaling", "horizontalpodautoscalers"): _autoscaler,
    ("batch", "cronjobs"): _cron_job,
    ("batch", "jobs"): _job,
}
