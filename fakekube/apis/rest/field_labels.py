"""The field labels of kinds: by which fields objects can be selected, and how their values are read.

Every kind supports metadata.name and metadata.namespace; the table adds the others, as paths into the stored object with the text
of an absent value, or as functions where a label has more than one source. Custom resources add the selectable fields of their
definition as further paths.

Specified by: ToSelectableFields / GetAttrs in pkg/registry/**/strategy.go,
AddFieldLabelConversionFunc in pkg/apis/**/conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import status
from fakekube.base.objects import StoredObject

METADATA_LABELS = ("metadata.name", "metadata.namespace")
"""The field labels that every kind supports."""

FieldReader = Callable[[StoredObject], str]
"""Reads the value of a field label from a stored object."""


def field_path(dotted: str, absent: str = "") -> FieldReader:
    """Returns a reader of the value at a path of field names, as text."""
    *parents, last = dotted.split(".")

    def read(obj: StoredObject) -> str:
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


def _pod_ip(obj: StoredObject) -> str:
    found = obj.get("status", {})
    addresses = found.get("podIPs")
    return str(addresses[0].get("ip", "")) if addresses else str(found.get("podIP", ""))


def _event_source(obj: StoredObject) -> str:
    return str(obj.get("source", {}).get("component") or obj.get("reportingComponent", ""))


_METADATA: dict[str, FieldReader] = {label: field_path(label) for label in METADATA_LABELS}

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

_EVENT: dict[str, FieldReader] = {
    **{f"involvedObject.{name}": field_path(f"involvedObject.{name}") for name in _INVOLVED},
    "reason": field_path("reason"),
    "reportingComponent": field_path("reportingComponent"),
    "source": _event_source,
    "type": field_path("type"),
}

#: Bucket → label → reader, besides metadata.name and metadata.namespace.
_READERS: Mapping[str, Mapping[str, FieldReader]] = {
    "pods": {
        "spec.nodeName": field_path("spec.nodeName"),
        "spec.restartPolicy": field_path("spec.restartPolicy"),
        "spec.schedulerName": field_path("spec.schedulerName"),
        "spec.serviceAccountName": field_path("spec.serviceAccountName"),
        "spec.hostNetwork": field_path("spec.hostNetwork", "false"),
        "status.phase": field_path("status.phase"),
        "status.podIP": _pod_ip,
        "status.nominatedNodeName": field_path("status.nominatedNodeName"),
    },
    "events": _EVENT,
    "namespaces": {"status.phase": field_path("status.phase"), "name": field_path("metadata.name")},
    "nodes": {"spec.unschedulable": field_path("spec.unschedulable", "false")},
    "replicationcontrollers": {"status.replicas": field_path("status.replicas", "0")},
    "secrets": {"type": field_path("type")},
    "services": {"spec.clusterIP": field_path("spec.clusterIP"), "spec.type": field_path("spec.type")},
    "jobs.batch": {"status.successful": field_path("status.succeeded", "0")},
    "certificatesigningrequests.certificates.k8s.io": {"spec.signerName": field_path("spec.signerName")},
    "clustertrustbundles.certificates.k8s.io": {"spec.signerName": field_path("spec.signerName")},
    "podcertificaterequests.certificates.k8s.io": {
        name: field_path(name) for name in ("spec.signerName", "spec.podName", "spec.nodeName")
    },
    "resourceslices.resource.k8s.io": {name: field_path(name) for name in ("spec.nodeName", "spec.driver", "spec.pool.name")},
}

#: (group, version, kind) → supported field labels that the facts of a minor (`data/*/kinds.json`) do not contain.
_MORE_LABELS: Mapping[tuple[str, str, str], tuple[str, ...]] = {
    ("batch", "v1", "Job"): ("status.successful",),
    ("", "v1", "Pod"): ("spec.host",),  # of old clients; the storage version calls it spec.nodeName
}

#: (group, version, kind) → field labels of this version → their names in the storage version.
_ALIASES: Mapping[tuple[str, str, str], Mapping[str, str]] = {
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


def convert_field_label(gvk: tuple[str, str, str], supported: Sequence[str], label: str, *, custom: bool) -> str:
    """Returns the storage version's name of a field label of a version (ConvertFieldLabel).

    Raises StatusError 400 for a label that the kind does not support.
    """
    if label not in supported:
        converts = custom or supported != METADATA_LABELS
        raise status.bad_request(_unsupported_label(gvk[2], label, converts=converts))
    return _ALIASES.get(gvk, {}).get(label, label)


def _unsupported_label(kind: str, label: str, *, converts: bool) -> str:
    """Returns the message of the 400 for an unsupported field label (`converts`: the kind has labels besides metadata)."""
    if kind in _OWN_WORDS:
        return _OWN_WORDS[kind].format(label=label)
    if converts:
        return f"field label not supported: {label}"
    return f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def supported_labels(group: str, version: str, kind: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the field labels of a built-in kind; `known`: those that the facts of the minor contain, if any."""
    return (known or METADATA_LABELS) + _MORE_LABELS.get((group, version, kind), ())
