"""Conversion of HorizontalPodAutoscalers from and to autoscaling/v1, which supports only the CPU metric.

Fields that v1 does not have are converted to annotations with JSON: the other metrics and their status in the form of
v1, conditions, and the behavior in the form of the internal types (with Go's names). The conversion to v2 removes the
annotations.

Specified by: pkg/apis/autoscaling/v1/conversion.go, pkg/apis/autoscaling/helpers.go; pkg/apis/autoscaling/v2/defaults.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from fakekube.apimachinery.schema.quantity import QuantityError, canonical
from fakekube.base.golang.strconv import MAX_INT32
from fakekube.base.golang.strings import json_text
from fakekube.base.objects import Object

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_ANNOTATIONS = frozenset(
    {
        METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR,
        "autoscaling.alpha.kubernetes.io/scale-down-tolerance", "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
    }
)  # fmt: skip

_AFTER_ANNOTATIONS = frozenset({"ownerReferences", "finalizers", "managedFields"})

_ZERO = "0"


class _UnreadableError(Exception):
    """An annotation is not in the form of v1; the conversion ignores it."""


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _UnreadableError
    return value


def _text(value: Any) -> Any:
    return _expect(value, str)


def _mapping(value: Any) -> Any:
    return _expect(value, dict)


def _int32(value: Any) -> Any:
    if not -MAX_INT32 - 1 <= _expect(value, int) <= MAX_INT32:
        raise _UnreadableError
    return value


def _quantity(value: Any) -> str:
    """Returns a quantity as it is stored; a number is one as well."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _UnreadableError
    try:
        return canonical(str(value))
    except QuantityError:
        raise _UnreadableError from None


def _items(found: Any) -> list[Object]:
    """Returns the items of a list; an item that is null is empty."""
    return [] if found is None else [{} if item is None else _mapping(item) for item in _expect(found, list)]


def _with_lower_case_keys(found: Any) -> Object:
    """Returns an object as Go reads it, which matches names in any letter case."""
    return {key.lower(): value for key, value in _mapping(found).items()}


class _Field(NamedTuple):
    """A field of v1, and its path in v2."""

    name: str
    path: tuple[str, ...]
    read: Callable[[Any], Any]
    """Reads its value in an annotation. Raises _UnreadableError."""
    always: Any = None
    """The value in v1 if v2 has none; None for no field."""


_TARGET = _Field("target", ("describedObject",), _mapping, {})
_NAME = _Field("name", ("name",), _text, "")
_CONTAINER = _Field("container", ("container",), _text, "")
_METRIC_NAME = _Field("metricName", ("metric", "name"), _text, "")
_SELECTOR = _Field("selector", ("metric", "selector"), _mapping)
_METRIC_SELECTOR = _Field("metricSelector", ("metric", "selector"), _mapping)


def _target_field(name: str, side: str, field: str, always: Any = None) -> _Field:
    return _Field(name, (side, field), _int32 if field == "averageUtilization" else _quantity, always)


#: Source → the fields of its spec in the order of v1.
_SPECS: Mapping[str, Sequence[_Field]] = {
    "object": (
        _TARGET, _METRIC_NAME, _target_field("targetValue", "target", "value", _ZERO), _SELECTOR,
        _target_field("averageValue", "target", "averageValue"),
    ),
    "pods": (_METRIC_NAME, _target_field("targetAverageValue", "target", "averageValue", _ZERO), _SELECTOR),
    "resource": (
        _NAME, _target_field("targetAverageUtilization", "target", "averageUtilization"),
        _target_field("targetAverageValue", "target", "averageValue"),
    ),
    "containerResource": (
        _NAME, _target_field("targetAverageUtilization", "target", "averageUtilization"),
        _target_field("targetAverageValue", "target", "averageValue"), _CONTAINER,
    ),
    "external": (
        _METRIC_NAME, _METRIC_SELECTOR, _target_field("targetValue", "target", "value"),
        _target_field("targetAverageValue", "target", "averageValue"),
    ),
}  # fmt: skip

#: Source → the fields of its status in the order of v1.
_STATUSES: Mapping[str, Sequence[_Field]] = {
    "object": (
        _TARGET, _METRIC_NAME, _target_field("currentValue", "current", "value", _ZERO), _SELECTOR,
        _target_field("averageValue", "current", "averageValue"),
    ),
    "pods": (_METRIC_NAME, _target_field("currentAverageValue", "current", "averageValue", _ZERO), _SELECTOR),
    "resource": (
        _NAME, _target_field("currentAverageUtilization", "current", "averageUtilization"),
        _target_field("currentAverageValue", "current", "averageValue", _ZERO),
    ),
    "containerResource": (
        _NAME, _target_field("currentAverageUtilization", "current", "averageUtilization"),
        _target_field("currentAverageValue", "current", "averageValue", _ZERO), _CONTAINER,
    ),
    "external": (
        _METRIC_NAME, _METRIC_SELECTOR, _target_field("currentValue", "current", "value", _ZERO),
        _target_field("currentAverageValue", "current", "averageValue"),
    ),
}  # fmt: skip

#: Fields of the rules of a direction, and of a policy of them → what reads their values in an annotation.
_RULES: Mapping[str, Callable[[Any], Any]] = {
    "stabilizationWindowSeconds": _int32, "selectPolicy": _text, "policies": _items, "tolerance": _quantity,
}  # fmt: skip
_POLICY: Mapping[str, Callable[[Any], Any]] = {"type": _text, "value": _int32, "periodSeconds": _int32}


def drop_annotations(obj: Object) -> None:
    """Drops the annotations of the conversion, which are never stored."""
    annotations = obj.get("metadata", {}).get("annotations")
    if annotations and not _ANNOTATIONS.isdisjoint(annotations):
        kept = {key: value for key, value in annotations.items() if key not in _ANNOTATIONS}
        obj["metadata"] = {**obj["metadata"], "annotations": kept}


# --- v2 → v1 ----------------------------------------------------------------------------------------------------------


def from_storage(obj: Object) -> Object:
    """Converts a stored autoscaler to v1."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    metrics, current = spec.get("metrics") or (), status.get("currentMetrics") or ()
    cpu = next((item["resource"]["target"]["averageUtilization"] for item in metrics if _is_cpu_target(item)), None)
    others = [_to_v1(item, _SPECS) for item in metrics if not _is_cpu_target(item)]
    converted = {
        METRICS: others,
        CURRENT_METRICS: [_to_v1(item, _STATUSES) for item in current],
        BEHAVIOR: _internal_behavior(spec["behavior"]) if spec.get("behavior") is not None else None,
        CONDITIONS: [_condition(item) for item in status.get("conditions") or ()],
    }
    shown = {
        **{key: value for key, value in obj.items() if key not in ("spec", "status")},
        "spec": _v1_spec(spec, cpu),
        "status": _v1_status(status, current),
    }
    values = {key: _go_json(value) for key, value in converted.items() if value}
    if values:
        shown["metadata"] = _with_annotations(obj["metadata"], values)
    return shown


def _with_annotations(meta: Object, values: Mapping[str, str]) -> Object:
    """Returns the metadata with more annotations, with the fields in order."""
    annotations = dict(sorted({**(meta.get("annotations") or {}), **values}.items()))
    after = {name: value for name, value in meta.items() if name in _AFTER_ANNOTATIONS}
    before = {name: value for name, value in meta.items() if name not in after}
    return {**before, "annotations": annotations, **after}


def _is_cpu_target(metric: Object) -> bool:
    resource = metric.get("resource") or {}
    is_cpu = metric.get("type") == "Resource" and resource.get("name") == "cpu"
    return is_cpu and resource.get("target", {}).get("averageUtilization") is not None


def _v1_spec(spec: Object, cpu: int | None) -> Object:
    shown: Object = {key: spec[key] for key in ("scaleTargetRef", "minReplicas", "maxReplicas") if key in spec}
    return shown if cpu is None else {**shown, "targetCPUUtilizationPercentage": cpu}


def _v1_status(status: Object, current: Sequence[Object]) -> Object:
    shown: Object = {key: status[key] for key in ("observedGeneration", "lastScaleTime") if key in status}
    shown |= {key: status.get(key, 0) for key in ("currentReplicas", "desiredReplicas")}
    for item in current:
        resource = item.get("resource") or {}
        used = (resource.get("current") or {}).get("averageUtilization")
        if item.get("type") == "Resource" and resource.get("name") == "cpu" and used is not None:
            shown["currentCPUUtilizationPercentage"] = used
    return shown


def _condition(item: Object) -> Object:
    first = ("type", "status", "lastTransitionTime")
    return {**{key: item.get(key) for key in first}, **{key: item[key] for key in item if key not in first}}


def _to_v1(metric: Object, table: Mapping[str, Sequence[_Field]]) -> Object:
    """Converts a metric to v1; its type comes first, then its sources in order."""
    shown: Object = {"type": metric.get("type", "")}
    for source, fields in table.items():
        if metric.get(source) is not None:
            found = {field.name: _read(metric[source], field) for field in fields}
            shown[source] = {name: value for name, value in found.items() if value is not None}
    return shown


def _read(source: Object, field: _Field) -> Any:
    value: Any = source
    for name in field.path:
        value = (value or {}).get(name)
    return field.always if value is None else value


def _internal_behavior(behavior: Object) -> Object:
    return {go: _internal_rules(behavior.get(name)) for go, name in (("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown"))}


def _internal_rules(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    policies = rules.get("policies")
    shown = None if policies is None else [
        {"Type": item.get("type", ""), "Value": item.get("value", 0), "PeriodSeconds": item.get("periodSeconds", 0)}
        for item in policies
    ]  # fmt: skip
    return {
        "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
        "SelectPolicy": rules.get("selectPolicy"),
        "Policies": shown, "Tolerance": rules.get("tolerance"),
    }  # fmt: skip


def _go_json(value: Any) -> str:
    """Returns compact JSON with the escapes of Go's encoder."""
    text = json_text(value)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


# --- v1 → v2 ----------------------------------------------------------------------------------------------------------


def default_target(obj: Object) -> None:
    """Adds the default metric, CPU, if there is none."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    spec = obj.setdefault("spec", {})
    others = _from_annotation(annotations, METRICS, lambda found: _from_v1(found, _SPECS, _target_type))
    if spec.get("targetCPUUtilizationPercentage") is None and not others:
        spec["targetCPUUtilizationPercentage"] = DEFAULT_CPU_UTILIZATION


def to_storage(obj: Object) -> Object:
    """Converts an autoscaler of v1 to the stored form."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations: Mapping[str, str] = (obj.get("metadata") or {}).get("annotations") or {}
    cpu, used = spec.pop("targetCPUUtilizationPercentage", None), status.pop("currentCPUUtilizationPercentage", None)
    metrics = [] if cpu is None else [_cpu({"target": {"type": "Utilization", "averageUtilization": cpu}})]
    others = _from_annotation(annotations, METRICS, lambda found: _from_v1(found, _SPECS, _target_type))
    metrics = [*(others or ()), *metrics]
    spec["metrics"] = metrics
    behavior = _from_annotation(annotations, BEHAVIOR, _v2_behavior)
    if behavior:
        spec["behavior"] = behavior
    current = [] if used is None else [_cpu({"current": {"averageUtilization": used}})]
    values = _from_annotation(annotations, CURRENT_METRICS, lambda found: _from_v1(found, _STATUSES, _set_zero_value))
    status["currentMetrics"] = (current or None) if values is None else values
    conditions = _from_annotation(annotations, CONDITIONS, _conditions)
    if conditions is not None:
        status["conditions"] = conditions
    stored = {**obj, "spec": spec, "status": status}
    drop_annotations(stored)
    return stored


def _cpu(rest: Object) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", **rest}}


def _from_annotation(annotations: Mapping[str, str], key: str, read: Callable[[Any], Any]) -> Any:
    """Returns the value of an annotation; None if it is absent or invalid."""
    if key not in annotations:
        return None
    try:
        return read(orjson.loads(annotations[key]))
    except (orjson.JSONDecodeError, _UnreadableError):
        return None


def _from_v1(found: Any, table: Mapping[str, Sequence[_Field]], finish: Callable[[str, Object], None]) -> list[Object]:
    metrics = []
    for item in map(_with_lower_case_keys, _items(found)):
        metric: Object = {"type": _text(item.get("type") or "")}
        for source, fields in table.items():
            if item.get(source.lower()) is not None:
                metric[source] = _source(_with_lower_case_keys(item[source.lower()]), fields)
                finish(source, metric[source])
        metrics.append(metric)
    return metrics


def _source(values: Object, fields: Sequence[_Field]) -> Object:
    """Returns the source of a metric, from its values by names in lower case."""
    source: Object = {}
    for field in fields:
        value = values.get(field.name.lower())
        if value is None:
            continue
        place = source
        for name in field.path[:-1]:
            place = place.setdefault(name, {})
        place[field.path[-1]] = field.read(value)
    return source


def _target_type(source: str, found: Object) -> None:
    """Sets the type of a target: v1 has no such field, so it follows from the field that is set."""
    target = found.setdefault("target", {})
    if source == "object" and target.get("averageValue") is not None and target.get("value") in (None, _ZERO):
        target.pop("value", None)
    if source == "object" and "averageValue" not in target:
        target.setdefault("value", _ZERO)
        target["type"] = "Value"
    elif source == "external" and "value" in target:
        target["type"] = "Value"
    elif source in ("resource", "containerResource") and "averageUtilization" in target:
        target["type"] = "Utilization"
    else:
        target["type"] = "AverageValue"
    if source == "pods":
        target.setdefault("averageValue", _ZERO)


def _set_zero_value(source: str, found: Object) -> None:
    field = "value" if source in ("object", "external") else "averageValue"
    found.setdefault("current", {}).setdefault(field, _ZERO)


def _v2_behavior(found: Any) -> Object | None:
    """Converts the behavior to v2."""
    values = _with_lower_case_keys(found)
    rules = {name: _v2_rules(values[name.lower()]) for name in ("scaleUp", "scaleDown") if values.get(name.lower()) is not None}
    return rules or None


def _v2_rules(found: Any) -> Object:
    rules = _read_fields(found, _RULES)
    if "policies" in rules:
        rules["policies"] = [_read_fields(item, _POLICY) for item in rules["policies"]]
    return rules


def _read_fields(found: Any, fields: Mapping[str, Callable[[Any], Any]]) -> Object:
    values = _with_lower_case_keys(found)
    present = [(name, read) for name, read in fields.items() if values.get(name.lower()) is not None]
    return {name: read(values[name.lower()]) for name, read in present}


def _conditions(found: Any) -> list[Object]:
    return [{key: value for key, value in item.items() if value is not None} for item in _items(found)]


DEFAULT_CPU_UTILIZATION = 80


_PERIOD = {"periodSeconds": 15}


_SCALING_RULES: Mapping[str, Object] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, **_PERIOD}, {"type": "Percent", "value": 100, **_PERIOD}],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, **_PERIOD}]},
}


def default_behavior(behavior: Object) -> Object:
    """Returns the behavior with the default rules of both directions."""
    specified = {
        direction: {key: value for key, value in (behavior.get(direction) or {}).items() if value is not None}
        for direction in _SCALING_RULES
    }
    return {direction: {**rules, **specified[direction]} for direction, rules in _SCALING_RULES.items()}
