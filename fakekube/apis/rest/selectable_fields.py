"""Defines the field labels that field selectors support for each kind, and how their values are read.

Every kind supports metadata.name and metadata.namespace; the table adds the others, as paths into the stored object
with the text of an absent value, or as functions where a label has more than one source. Custom resources add the
selectable fields of their definition as further paths.

Specified by: ToSelectableFields / GetAttrs in pkg/registry/**/strategy.go, field label conversions in pkg/apis/**.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["LABEL_ALIASES", "FieldReader", "field_readers", "problem_with_label"]

FieldReader = Callable[[dict[str, Any]], str]
"""Reads the value of a field label from a stored object."""


def path(dotted: str, absent: str = "") -> FieldReader:
    """Returns a reader of the value at a path of field names, as text."""
    *parents, last = dotted.split(".")

    def read(obj: dict[str, Any]) -> str:
        value: Any = obj
        for name in parents:
            value = value.get(name)
            if not isinstance(value, dict):
                return absent
        return _as_text(value.get(last), absent)

    return read


def _as_text(value: Any, absent: str) -> str:
    if value is None:
        return absent
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _pod_ip(obj: dict[str, Any]) -> str:
    status = obj.get("status", {})
    addresses = status.get("podIPs")
    return str(addresses[0].get("ip", "")) if addresses else str(status.get("podIP", ""))


def _event_source(obj: dict[str, Any]) -> str:
    return str(obj.get("source", {}).get("component") or obj.get("reportingComponent", ""))


_METADATA: dict[str, FieldReader] = {"metadata.name": path("metadata.name"), "metadata.namespace": path("metadata.namespace")}

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

_EVENT: dict[str, FieldReader] = {
    **{f"involvedObject.{name}": path(f"involvedObject.{name}") for name in _INVOLVED},
    "reason": path("reason"),
    "reportingComponent": path("reportingComponent"),
    "source": _event_source,
    "type": path("type"),
}

#: Bucket → label → reader, besides metadata.name and metadata.namespace.
_READERS: Mapping[str, Mapping[str, FieldReader]] = {
    "pods": {
        "spec.nodeName": path("spec.nodeName"),
        "spec.restartPolicy": path("spec.restartPolicy"),
        "spec.schedulerName": path("spec.schedulerName"),
        "spec.serviceAccountName": path("spec.serviceAccountName"),
        "spec.hostNetwork": path("spec.hostNetwork", "false"),
        "status.phase": path("status.phase"),
        "status.podIP": _pod_ip,
        "status.nominatedNodeName": path("status.nominatedNodeName"),
    },
    "events": _EVENT,
    "namespaces": {"status.phase": path("status.phase"), "name": path("metadata.name")},
    "nodes": {"spec.unschedulable": path("spec.unschedulable", "false")},
    "replicationcontrollers": {"status.replicas": path("status.replicas", "0")},
    "secrets": {"type": path("type")},
    "services": {"spec.clusterIP": path("spec.clusterIP"), "spec.type": path("spec.type")},
    "jobs.batch": {"status.successful": path("status.succeeded", "0")},
    "certificatesigningrequests.certificates.k8s.io": {"spec.signerName": path("spec.signerName")},
    "resourceslices.resource.k8s.io": {"spec.nodeName": path("spec.nodeName"), "spec.driver": path("spec.driver")},
}

#: (group, version, kind) → field labels of this version → their names in the storage version.
LABEL_ALIASES: Mapping[tuple[str, str, str], Mapping[str, str]] = {
    ("", "v1", "Pod"): {"spec.host": "spec.nodeName"},
    ("", "v1", "ReplicationController"): {"name": "metadata.name"},
    ("events.k8s.io", "v1", "Event"): {
        **{f"regarding.{name}": f"involvedObject.{name}" for name in _INVOLVED},
        "reportingController": "reportingComponent",
    },
}

_OWN_WORDS: Mapping[str, str] = {
    "Job": 'field label "{label}" not supported for Job',
    "ResourceSlice": "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}",
}

_NO_READERS: Mapping[str, FieldReader] = {}


def field_readers(bucket: str) -> Mapping[str, FieldReader]:
    """Returns field label → reader for the objects of a bucket."""
    return {**_METADATA, **_READERS.get(bucket, _NO_READERS)}


def problem_with_label(kind: str, label: str, *, converts: bool) -> str:
    """Returns the message of the 400 for an unsupported field label (`converts`: the kind has labels besides metadata)."""
    if kind in _OWN_WORDS:
        return _OWN_WORDS[kind].format(label=label)
    if converts:
        return f"field label not supported: {label}"
    return f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'
