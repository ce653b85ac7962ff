"""HorizontalPodAutoscalers, in the form of autoscaling/v2.

Specified by: pkg/apis/autoscaling (validation, v2/defaults.go), pkg/registry/autoscaling/horizontalpodautoscaler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, not_supported, required
from fakekube.apis.autoscaling.v1_conversion import DEFAULT_CPU_UTILIZATION, default_behavior, default_target, drop_annotations
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext, spec_as_stored
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import ABOVE_0, NOT_BELOW_ZERO, POSITIVE, all_non_negative, invalid_each
from fakekube.apis.validation.resource_lists import container_resource_name, non_negative_quantity, quantity
from fakekube.apis.validation.rules import (
    LABEL,
    SEGMENT,
    Check,
    Rule,
    Rules,
    at_least,
    at_most,
    calls,
    each,
    from_minor,
    holds_declared_rules,
    needed,
    one_of,
    optional,
    rules,
    says,
    set_,
    then,
)
from fakekube.base.objects import Object

_SCALE_TO_ZERO_GATE = "HPAScaleToZero"
_MAX_PERIOD = 1800
_MAX_WINDOW = 3600
_SELECT_POLICIES = ("Disabled", "Max", "Min")
POLICY_TYPES = ("Percent", "Pods")
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")


@dataclass(slots=True, frozen=True)
class ValidationOptions:
    """Rules that feature gates or the stored object relax."""

    minor: int
    """The number of the emulated minor."""
    min_replicas: int = 1
    any_target_version: bool = False
    any_object_version: bool = False


_GENERATION_GATE = "HPAGeneration"


class HorizontalPodAutoscalerV1Strategy(Strategy):
    """The strategy of both versions; the rules apply to the stored form."""

    has_status = True

    def default(self, obj: Object) -> None:
        default_target(obj)

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        if context.emulation.enabled(_GENERATION_GATE):
            obj["metadata"]["generation"] = 1

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        if context.emulation.enabled(_GENERATION_GATE) and spec_as_stored(context, obj, old) != old.get("spec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def canonicalize(self, obj: Object) -> None:
        behavior = obj["spec"].get("behavior")
        if behavior is not None:  # the stored version, v2, sets it
            obj["spec"]["behavior"] = default_behavior(behavior)

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        least = 0 if context.emulation.enabled(_SCALE_TO_ZERO_GATE) else 1
        return _validate_spec(obj["spec"], ValidationOptions(context.emulation.minor, least))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        spec, old_spec = obj["spec"], old["spec"]
        to_zero = context.emulation.enabled(_SCALE_TO_ZERO_GATE) or old_spec.get("minReplicas") == 0
        new_target, old_target = spec.get("scaleTargetRef") or {}, old_spec.get("scaleTargetRef") or {}
        same_target = all(new_target.get(field) == old_target.get(field) for field in ("apiVersion", "kind"))
        objects = [item["object"] for item in old_spec.get("metrics") or () if item.get("object") is not None]
        wrong = any(_api_version(item.get("describedObject") or {}, group_required=False) for item in objects)
        return _validate_spec(spec, ValidationOptions(context.emulation.minor, 0 if to_zero else 1, same_target, wrong))


class HorizontalPodAutoscalerStrategy(HorizontalPodAutoscalerV1Strategy):
    """The strategy of autoscaling/v2, which has defaults of its own."""

    def default(self, obj: Object) -> None:
        drop_annotations(obj)
        spec = obj.setdefault("spec", {})
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": DEFAULT_CPU_UTILIZATION}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        behavior = spec.get("behavior")
        if behavior is not None:
            spec["behavior"] = default_behavior(behavior)


def _validate_spec(spec: Object, options: ValidationOptions) -> list[FieldError]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    errors: list[FieldError] = []
    if least is not None and least < options.min_replicas:
        errors.append(invalid("spec.minReplicas", least, names.min_error(options.min_replicas)))
    if most <= 0 and options.minor < 36:
        errors.append(invalid("spec.maxReplicas", most, ABOVE_0))
    elif most == 0:
        errors.append(required("spec.maxReplicas", "" if holds_declared_rules() else "must be set and greater than 0"))
    elif most < 1:
        errors.append(invalid("spec.maxReplicas", most, names.min_error(1)))
    if least is not None and most < least:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or {}
    group_required = target.get("kind") != "ReplicationController"
    errors += _validate_reference(target, "spec.scaleTargetRef", group_required, options.any_target_version)
    errors += _validate_metrics(spec.get("metrics") or (), least, options)
    for direction in ("scaleUp", "scaleDown"):
        scaling = (spec.get("behavior") or {}).get(direction)
        if scaling is not None:
            errors += _SCALING_RULES.validate(scaling, f"spec.behavior.{direction}")
    return errors


def _validate_reference(target: Object, path: str, group_required: bool, any_version: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("kind", "name"):
        value, where = target.get(field, ""), f"{path}.{field}"
        errors += invalid_each(where, value, names.path_segment(value)) if value else [required(where)]
    problem = "" if any_version or not from_minor(34) else _api_version(target, group_required=group_required)
    if problem:
        errors.append(invalid(f"{path}.apiVersion", target.get("apiVersion", ""), problem))
    return errors


def _api_version(target: Object, *, group_required: bool) -> str:
    """Returns the error text of the apiVersion of a reference; "" if it is valid."""
    text = target.get("apiVersion", "")
    if text not in ("", "/") and text.count("/") > 1:
        return f"unexpected GroupVersion string: {text}"
    group = text.rpartition("/")[0]
    return "apiVersion must specify API group" if group_required and not group else ""


# --- Behavior ---------------------------------------------------------------------------------------------------------

_SCALING_POLICY = rules(
    "HPAScalingPolicy",
    "validateScalingPolicy",
    Rule("type", one_of(*POLICY_TYPES)),
    Rule("value", at_least(1, POSITIVE)),
    Rule("periodSeconds", at_least(1, POSITIVE)),
    Rule("periodSeconds", at_most(_MAX_PERIOD)),
)
_SCALING_RULES = rules(
    "HPAScalingRules",
    "validateScalingRules",
    Rule("stabilizationWindowSeconds", at_least(0, NOT_BELOW_ZERO)),
    Rule("stabilizationWindowSeconds", at_most(_MAX_WINDOW)),
    Rule("selectPolicy", optional(one_of(*_SELECT_POLICIES))),
    Rule("policies", needed("must specify at least one Policy")),
    Rule("policies", each(_SCALING_POLICY)),
    Rule("tolerance", optional(calls(non_negative_quantity))),
)

# --- Metrics ----------------------------------------------------------------------------------------------------------


def _validate_metrics(metrics: Sequence[Object], least: int | None, options: ValidationOptions) -> list[FieldError]:
    errors = [error for i, item in enumerate(metrics) for error in _validate_metric(item, f"spec.metrics[{i}]", options)]
    if least == 0 and not any(item.get("type") in ("Object", "External") for item in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", text))
    return errors


def _validate_metric(metric: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    kind = metric.get("type", "")
    errors: list[FieldError] = []
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    unknown = [] if kind in TYPES else [not_supported(f"{path}.type", kind, sorted(TYPES))]
    errors += unknown
    present = [source for source in SOURCES if metric.get(source) is not None]
    if present[:1] == ["object"]:
        described = metric["object"].get("describedObject") or {}
        errors += _validate_reference(described, f"{path}.object.describedObject", False, options.any_object_version)
    for source in present[:1]:
        errors += SOURCES[source].validate(metric[source], f"{path}.{source}")
    expected = TYPES.get(kind, "")
    if expected and metric.get(expected) is None:
        text = "must populate information for the given metric source"
        errors.append(required(f"{path}.{expected}", text))
    errors += unknown
    if len(present) == 1:
        return errors
    text = "must populate the given metric source only"
    return errors + [forbidden(f"{path}.{source}", text) for source in present if source != expected]


#: The type of a metric → its field.
TYPES: Mapping[str, str] = {
    "Object": "object", "Pods": "pods", "Resource": "resource", "External": "external",
    "ContainerResource": "containerResource",
}  # fmt: skip

_POSITIVE_AMOUNT = optional(says("positive", lambda amount: quantity(amount).sign != 1, "must be positive"))
#: validateMetricIdentifier, then validateMetricTarget: of a source that has both.
IDENTIFIER = (Rule("metric.name", then(needed("must specify a metric name"), SEGMENT)),)
TARGET = (
    Rule("target.type", needed("must specify a metric target type")),
    Rule(
        "target.type",
        says(
            "a type of target",
            lambda kind: kind not in _TARGET_TYPES,
            "must be either Utilization, Value, or AverageValue",
            absent="",
            typed=True,
        ),
    ),
    Rule("target.value", _POSITIVE_AMOUNT),
    Rule("target.averageValue", _POSITIVE_AMOUNT),
    Rule("target.averageUtilization", at_least(1, ABOVE_0, absent=None)),
)


def _needs_one_of(field: str, other: str, text: str) -> Check:
    """One of two fields of a target must be set; the error is told of the first."""

    def run(target: Object | None, path: str) -> list[FieldError]:
        absent = all((target or {}).get(name) is None for name in (field, other))
        return [required(f"{path}.{field}", text)] if absent else []

    return Check(f"{field} or {other} is set", run)


def _forbids_both(field: str, other: str, text: str) -> Check:
    """Two fields of a target must not both be set; the error is told of the first."""

    def run(target: Object | None, path: str) -> list[FieldError]:
        both = all((target or {}).get(name) is not None for name in (field, other))
        return [forbidden(f"{path}.{field}", text)] if both else []

    return Check(f"not both {field} and {other}", run)


_RAW_OR_SHARE = "must set either a target raw value or a target utilization"
_RAW_AND_SHARE = "may not set both a target raw value and a target utilization"
_UTILIZATION = (
    Rule("target", _needs_one_of("averageUtilization", "averageValue", _RAW_OR_SHARE)),
    Rule("target", _forbids_both("averageValue", "averageUtilization", _RAW_AND_SHARE)),
)
_VALUE_OR_AVERAGE = "must set either a target value or averageValue"
_VALUE_OR_PER_POD = "must set either a target value for metric or a per-pod target"
_VALUE_AND_PER_POD = "may not set both a target value for metric and a per-pod target"
#: Source → its rules, in the order of the real server.
SOURCES: Mapping[str, Rules] = {
    "object": rules(
        "ObjectMetricSource",
        "validateObjectSource",
        *IDENTIFIER,
        *TARGET,
        Rule("target", _needs_one_of("averageValue", "value", _VALUE_OR_AVERAGE)),
    ),
    "external": rules(
        "ExternalMetricSource",
        "validateExternalSource",
        *IDENTIFIER,
        *TARGET,
        Rule("target", _needs_one_of("averageValue", "value", _VALUE_OR_PER_POD)),
        Rule("target", _forbids_both("value", "averageValue", _VALUE_AND_PER_POD)),
    ),
    "pods": rules(
        "PodsMetricSource",
        "validatePodsSource",
        *IDENTIFIER,
        *TARGET,
        Rule("target.averageValue", set_("must specify a positive target averageValue")),
    ),
    "resource": rules(
        "ResourceMetricSource",
        "validateResourceSource",
        Rule("name", needed("must specify a resource name")),
        *TARGET,
        *_UTILIZATION,
    ),
    "containerResource": rules(
        "ContainerResourceMetricSource",
        "validateContainerResourceSource",
        Rule("name", then(needed("must specify a resource name"), calls(container_resource_name))),
        Rule("container", then(needed("must specify a container"), LABEL)),
        *TARGET,
        *_UTILIZATION,
    ),
}


_CONDITION = rules(
    "HorizontalPodAutoscalerCondition",
    "ValidateHorizontalPodAutoscalerStatusUpdate",
    Rule("observedGeneration", at_least(0), since=37),
)


def _validate_status(obj: Object, old: Object) -> list[FieldError]:
    status: Mapping[str, Any] = obj.get("status") or {}
    errors = all_non_negative(status, ("currentReplicas", "desiredReplicas"), "status")
    for index, condition in enumerate(status.get("conditions") or ()):
        errors += _CONDITION.validate(condition, f"status.conditions[{index}]")
    return errors


STATUS = StatusStrategy(_validate_status)
