"""Events of core/v1, which is the stored form, and of events.k8s.io/v1.

The core group keeps its old rules. The events.k8s.io group requires a complete event on create, and updates can change
only the series. All rules apply to the stored form.

Specified by: pkg/apis/core/validation/events.go, pkg/apis/events/v1/conversion.go, pkg/registry/core/event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import immutable, invalid, required
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each, label_name
from fakekube.apis.validation.objectmeta import validate_object_meta, validate_object_meta_update
from fakekube.apis.validation.to_internal import semantic_deep_equal, to_internal
from fakekube.base.objects import Object

#: events.k8s.io name → core name, in the order in which the new group prints them.
_STORED_NAMES = {
    "metadata": "metadata",
    "eventTime": "eventTime",
    "series": "series",
    "reportingController": "reportingComponent",
    "reportingInstance": "reportingInstance",
    "action": "action",
    "reason": "reason",
    "regarding": "involvedObject",
    "related": "related",
    "note": "message",
    "type": "type",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}

_TEXT_LIMIT = 128
NOTE_LIMIT = 1024


def to_storage(obj: Object) -> Object:
    """Converts an event of events.k8s.io/v1 to core/v1."""
    return {_STORED_NAMES[name]: value for name, value in obj.items()}


def from_storage(obj: Object) -> Object:
    """Converts a stored event to events.k8s.io/v1, without empty fields, but with the count of a series."""
    event = {served: obj[name] for served, name in _STORED_NAMES.items() if obj.get(name, "") != ""}
    if event.get("series"):
        event["series"] = {"count": 0, **event["series"]}
    return event


class EventStrategy(Strategy):
    """The strategy of events; events.k8s.io validates the metadata after the legacy rules."""

    create_on_update = True
    cached = False
    collects_garbage = False
    checks_metadata = False
    checks_metadata_update = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        strict = _is_strict(context)
        errors = _validate_legacy_event(obj, strict)
        if not strict:
            return errors
        errors += validate_object_meta(obj["metadata"], True, names.dns_subdomain)
        errors += _validate_series(obj)
        if not obj.get("eventTime"):
            errors.append(required("eventTime"))
        kind = obj.get("type", "")
        if kind not in ("Normal", "Warning"):
            errors.append(invalid("type", "", f"has invalid value: {kind}"))
        source = obj.get("source") or {}
        unwanted = {
            "firstTimestamp": obj.get("firstTimestamp"),
            "lastTimestamp": obj.get("lastTimestamp"),
            "count": obj.get("count"),
            "source": source.get("component") or source.get("host"),
        }
        return errors + [invalid(field, "", "needs to be unset") for field, value in unwanted.items() if value]

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        strict = _is_strict(context)
        errors = _validate_legacy_event(obj, strict)
        if not strict:
            return errors
        errors += validate_object_meta_update(obj["metadata"], old["metadata"])
        if not semantic_deep_equal(obj.get("series"), old.get("series")):
            errors += _validate_series(obj)
        return errors + [
            immutable(path, shown(obj.get(field)))
            for path, field, shown in _IMMUTABLE
            if not semantic_deep_equal(obj.get(field) or None, old.get(field) or None)
            or shown(obj.get(field)) != shown(old.get(field))
        ]


def _is_strict(context: WriteContext) -> bool:
    return context.resource.group == "events.k8s.io"


def _text(value: Any) -> Any:
    return value or ""


def _reference(value: Any) -> Any:
    return to_internal("ObjectReference", value or {})


def _related_reference(value: Any) -> Any:
    return None if value is None else _reference(value)


def _source(value: Any) -> Any:
    return {"Component": (value or {}).get("component", ""), "Host": (value or {}).get("host", "")}


#: (path in messages, stored field, how a message shows its value), in the order of the checks.
_IMMUTABLE: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("involvedObject", "involvedObject", _reference),
    ("reason", "reason", _text),
    ("message", "message", _text),
    ("source", "source", _source),
    ("firstTimestamp", "firstTimestamp", lambda value: value),
    ("lastTimestamp", "lastTimestamp", lambda value: value),
    ("count", "count", lambda value: value or 0),
    ("reason", "reason", _text),
    ("type", "type", _text),
    ("eventTime", "eventTime", lambda value: value),
    ("action", "action", _text),
    ("related", "related", _related_reference),
    ("reportingController", "reportingComponent", _text),
    ("reportingInstance", "reportingInstance", _text),
)


def _validate_legacy_event(obj: Object, strict: bool) -> list[FieldError]:
    """Validates the rules of both groups (legacyValidateEvent); an event with an eventTime has to meet the new ones."""
    namespace = obj["metadata"].get("namespace", "")
    involved = (obj.get("involvedObject") or {}).get("namespace", "")
    if obj.get("eventTime"):
        errors = _validate_new_event(obj, namespace, involved, "reportingController" if strict else "reportingComponent")
    else:
        fits = namespace in ("", "default") if not involved else namespace == involved
        errors = [] if fits else [_mismatch(involved)]
    return errors + invalid_each("namespace", namespace, names.dns_subdomain(namespace))


def _mismatch(namespace: str) -> FieldError:
    return invalid("involvedObject.namespace", namespace, "does not match event.namespace")


def _validate_new_event(obj: Object, namespace: str, involved: str, controller_path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not involved and namespace not in ("default", "kube-system"):
        errors.append(_mismatch(involved))
    controller = obj.get("reportingComponent", "")
    if not controller:
        errors.append(required(controller_path))
    errors += label_name(controller, controller_path)
    for field in ("reportingInstance", "action", "reason"):
        if not obj.get(field):
            errors.append(required(field))
        errors += _validate_length(obj.get(field, ""), field, _TEXT_LIMIT)
    return errors + _validate_length(obj.get("message", ""), "message", NOTE_LIMIT)


def _validate_length(value: str, path: str, limit: int) -> list[FieldError]:
    return [] if names.fits(value, limit) else [invalid(path, "", f"can have at most {limit} characters")]


def _validate_series(obj: Object) -> list[FieldError]:
    series = obj.get("series")
    if series is None:
        return []
    errors: list[FieldError] = []
    if series.get("count", 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))
    return errors
