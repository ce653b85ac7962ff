"""Printers of the other kinds of the core group, and of events.

Specified by: k8s.io/kubernetes/pkg/printers/internalversion (printers.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakekube.apimachinery.printers.texts import NONE, UNKNOWN, Ages, Cells, Object, age, condition, name, quantity, since


def _namespace(obj: Object, ages: Ages) -> list[Any]:
    return [name(obj), obj.get("status", {}).get("phase", ""), age(obj, ages)]


def _config_map(obj: Object, ages: Ages) -> list[Any]:
    return [name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, ages)]


def _secret(obj: Object, ages: Ages) -> list[Any]:
    return [name(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, ages)]


def _name_and_age(obj: Object, ages: Ages) -> list[Any]:
    return [name(obj), age(obj, ages)]


def _component_status(obj: Object, _: Ages) -> list[Any]:
    healthy = condition(obj.get("conditions"), "Healthy")
    if healthy is None:
        return [name(obj), "Unknown", "", ""]
    status = "Healthy" if healthy.get("status") == "True" else "Unhealthy"
    return [name(obj), status, healthy.get("message", ""), healthy.get("error", "")]


def _resource_quota(obj: Object, ages: Ages) -> list[Any]:
    status = obj.get("status", {})
    texts: dict[bool, list[str]] = {True: [], False: []}
    for resource, hard in sorted((status.get("hard") or {}).items()):
        used = quantity(status.get("used"), resource)
        texts[resource.startswith("limits.")].append(f"{resource}: {used}/{hard}")
    return [name(obj), ", ".join(texts[False]), ", ".join(texts[True]), age(obj, ages)]


# ---------------------------------------------------------------- nodes

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"


def _node(obj: Object, ages: Ages) -> list[Any]:
    status = obj.get("status", {})
    info = status.get("nodeInfo", {})
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        name(obj), _node_status(obj), _roles(obj), age(obj, ages), info.get("kubeletVersion", ""),
        _address(status, "InternalIP"), _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN, kernel, info.get("containerRuntimeVersion") or UNKNOWN,
    ]  # fmt: skip


def _node_status(obj: Object) -> str:
    ready = None
    for found in obj.get("status", {}).get("conditions") or ():
        if found.get("type") == "Ready":
            ready = found  # the last one of several
    text = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{text},SchedulingDisabled" if obj.get("spec", {}).get("unschedulable") else text


def _roles(obj: Object) -> str:
    roles = set()
    for key, value in (obj["metadata"].get("labels") or {}).items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.add(value)
    return ",".join(sorted(roles - {""})) or NONE


def _address(status: Object, type_: str) -> str:
    found = condition(status.get("addresses"), type_)
    return NONE if found is None else found.get("address", "")


# ---------------------------------------------------------------- events


def _event(obj: Object, ages: Ages) -> list[Any]:
    """Returns an event of events.k8s.io in the form of the core group."""
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), ages)
    last = since(obj["lastTimestamp"], ages) if obj.get("lastTimestamp") else first
    series = obj.get("series")
    count = obj.get("count") or 1
    if series is not None:
        last, count = since(series.get("lastObservedTime"), ages), series.get("count", 0)
    involved = obj.get("involvedObject", {})
    target = involved.get("kind", "").lower()
    if involved.get("name"):
        target += f"/{involved['name']}"
    return [
        last, obj.get("type", ""), obj.get("reason", ""), target, involved.get("fieldPath", ""), _source(obj),
        obj.get("message", "").strip(), first, count, name(obj),
    ]  # fmt: skip


def _source(obj: Object) -> str:
    source = obj.get("source", {})
    component = source.get("component") or obj.get("reportingComponent", "")
    instance = source.get("host") or obj.get("reportingInstance", "")
    return f"{component}, {instance}" if instance else component


def service_account_with_secrets(obj: Object, ages: Ages) -> list[Any]:
    """Returns the cells of a ServiceAccount in 1.34 and before, with the number of its secrets."""
    return [name(obj), len(obj.get("secrets") or ()), age(obj, ages)]


CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "componentstatuses"): _component_status,
    ("", "configmaps"): _config_map,
    ("", "events"): _event,
    ("", "namespaces"): _namespace,
    ("", "nodes"): _node,
    ("", "resourcequotas"): _resource_quota,
    ("", "secrets"): _secret,
    ("", "serviceaccounts"): _name_and_age,
    ("events.k8s.io", "events"): _event,
}
