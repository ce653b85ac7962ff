"""Migrates objects from client-side apply to server-side apply.

Client-side `kubectl apply` stores the last configuration in an annotation. When the manager `kubectl` applies on the
server, it takes over the unchanged fields of that configuration without a conflict, and the annotation is updated if
it exists.

Specified by: k8s.io/apimachinery/pkg/util/managedfields/internal (lastappliedmanager.go,
lastappliedupdater.go, lastapplied.go).
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from fakekube.apimachinery.patch.apply.atoms import TypingError
from fakekube.apimachinery.patch.apply.fields import FieldSet
from fakekube.apimachinery.patch.apply.updater import Typed
from fakekube.apimachinery.patch.literals import go_json
from fakekube.base.golang.strings import bytes_of

#: The only manager that is migrated.
KUBECTL: Final = "kubectl"

_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"

#: The maximum size of the annotations of an object in bytes.
_MAX_ANNOTATIONS: Final = 256 * 1024


def annotation(obj: Any) -> str:
    """Returns the last-applied-configuration annotation of an object, or ""."""
    metadata = obj.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    value = annotations.get(_ANNOTATION, "")
    return value if isinstance(value, str) else ""


def fields_taken_over(live: Typed, kind: str) -> FieldSet | None:
    """Returns the fields of the last applied configuration that are unchanged in the object; None without a valid annotation."""
    text = annotation(live.value)
    try:
        last = orjson.loads(text) if text else None
    except ValueError:
        return None
    if not isinstance(last, dict) or last.get("kind") != kind or last.get("apiVersion") != live.api_version:
        return None
    if "kind" not in live.value:
        last = {key: value for key, value in last.items() if key not in ("kind", "apiVersion")}
    configuration = Typed(last, live.api_version, live.atom)
    try:
        live.check()
        difference = configuration.check().compare(live)
    except TypingError:
        return None
    return configuration.field_set() - difference.changed - difference.removed


def with_annotation(obj: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    """Returns the object with an updated annotation, if it has one."""
    if not annotation(obj):
        return obj
    text = _configuration(applied)
    annotations = {**obj["metadata"]["annotations"], _ANNOTATION: text}
    if sum(len(bytes_of(key)) + len(bytes_of(value)) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
        del annotations[_ANNOTATION]
    if annotations == obj["metadata"]["annotations"]:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _configuration(applied: dict[str, Any]) -> str:
    """Returns the applied configuration as JSON without the annotation."""
    metadata = applied.get("metadata") or {}
    if "annotations" in metadata:
        metadata = dict(metadata)
        annotations = metadata.pop("annotations")
        if annotations is not None:
            metadata["annotations"] = {key: value for key, value in annotations.items() if key != _ANNOTATION}
        applied = {**applied, "metadata": metadata}
    return go_json(applied) + "\n"
