"""daemonsets.apps.

Specified by: pkg/registry/apps/daemonset; ValidateDaemonSet… of pkg/apis/apps/validation.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, not_supported, required
from fakekube.apimachinery.errors.status import ConversionError
from fakekube.apis.core import podtemplates
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.core.pods.warnings import template_warnings
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext, restore, spec_as_stored
from fakekube.apis.validation import selectors
from fakekube.apis.validation.checks import (
    StatusNumbers,
    all_non_negative,
    at_most_one_hundred_percent,
    immutable_field,
    int_or_percent,
    number_of,
)
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.to_internal import to_internal, without_empty_fields
from fakekube.apis.well_known import DEPRECATED_TEMPLATE_GENERATION
from fakekube.base.golang.strconv import parse_int
from fakekube.base.objects import Object

_DAEMON_SET_STATUS = StatusNumbers(
    not_negative=(
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
        "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
        "collisionCount",
    ),
    within_replicas=(),
)  # fmt: skip


class DaemonSetStrategy(Strategy):
    """The strategy of daemonsets."""

    has_status = True
    generation = True
    validated_twice_until = 34

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        podtemplates.default_template(spec["template"])
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations[DEPRECATED_TEMPLATE_GENERATION] = str(_template_generation(obj))
        strategy = spec["updateStrategy"]
        if strategy.get("type") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        elif "rollingUpdate" in strategy:  # the internal type has no absent number
            strategy["rollingUpdate"] = {"maxUnavailable": 0, "maxSurge": 0, **strategy["rollingUpdate"]}

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        podtemplates.drop_disabled(context.emulation, obj["spec"]["template"])
        obj["metadata"]["annotations"][DEPRECATED_TEMPLATE_GENERATION] = str(max(_template_generation(obj), 1))

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        podtemplates.drop_disabled(context.emulation, obj["spec"]["template"], old["spec"]["template"])
        generation = _template_generation(old)
        if spec_as_stored(context, obj, old)["template"] != old["spec"]["template"]:
            generation += 1
        obj["metadata"]["annotations"][DEPRECATED_TEMPLATE_GENERATION] = str(generation)

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_daemon_set_spec(obj, podtemplates.validation_options(None))

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        before = old["spec"]
        return _validate_daemon_set_spec(obj, podtemplates.validation_options(before["template"], before.get("selector")))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = immutable_field(obj["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")
        changed = self.validate_changed(context, obj, old)
        return errors + changed if from_minor(34) else changed + errors

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        template = obj["spec"]["template"]
        if old is not None and spec_as_stored(context, obj, old)["template"] == old["spec"]["template"]:
            return []
        return template_warnings(template, "spec.template")


def _template_generation(obj: Object) -> int:
    """Returns the templateGeneration of an object; 0 if it is absent. Raises StatusError 400 if it is not a number."""
    text = (obj["metadata"].get("annotations") or {}).get(DEPRECATED_TEMPLATE_GENERATION, "0")
    try:
        return parse_int(text)
    except ValueError as error:
        raise ConversionError("DaemonSet", "v1", str(error)) from None


def _validate_daemon_set_spec(obj: Object, options: ValidationOptions) -> list[FieldError]:
    """Validates the spec (ValidateDaemonSetSpec)."""
    spec = obj["spec"]
    selector, template = spec.get("selector"), spec["template"]
    errors = selectors.label_selector(selector, "spec.selector", allow_invalid_values=options.selector_values)
    parsed, labels = podtemplates.parsed_selector(selector), (template.get("metadata") or {}).get("labels")
    if parsed is not None and not parsed.matches(labels):
        errors.append(invalid("spec.template.metadata.labels", labels, podtemplates.SELECTOR_MISMATCH))
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid("spec.selector", without_empty_fields(selector), "empty selector is invalid for daemonset"))
    errors += podtemplates.validate_template(template, "spec.template", options)
    errors += podtemplates.validate_always_restarts(template, "spec.template", "DaemonSet")
    errors += all_non_negative(spec, ("minReadySeconds",), "spec")
    generation = _template_generation(obj)
    errors += all_non_negative({"templateGeneration": generation}, ("templateGeneration",), "spec")
    errors += _validate_update_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    return errors + all_non_negative(spec, ("revisionHistoryLimit",), "spec")


def _validate_update_strategy(strategy: Object, path: str) -> list[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        shown = to_internal("DaemonSetUpdateStrategy", strategy)
        return [not_supported(path, shown, ("RollingUpdate", "OnDelete"))]
    if rolling is None:
        return [required(f"{path}.rollingUpdate")]
    bounds = {field: rolling.get(field, 0) for field in ("maxUnavailable", "maxSurge")}
    errors: list[FieldError] = []
    for check in (int_or_percent, at_most_one_hundred_percent):
        for name, value in bounds.items():
            errors += check(value, f"{path}.rollingUpdate.{name}")
    unavailable, surge = (number_of(value) for value in bounds.values())
    if unavailable and surge:
        text = "may not be set when maxUnavailable is non-zero"
        errors.append(invalid(f"{path}.rollingUpdate.maxSurge", bounds["maxSurge"], text))
    elif not unavailable and not surge:
        errors.append(required(f"{path}.rollingUpdate.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


class DaemonSetStatusStrategy(StatusStrategy):
    """The strategy of daemonsets/status."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        super().prepare_for_update(context, obj, old)
        before = old["metadata"].get("annotations") or {}
        restore(obj["metadata"].setdefault("annotations", {}), before, DEPRECATED_TEMPLATE_GENERATION)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        status, before = obj.get("status") or {}, old.get("status") or {}
        return _DAEMON_SET_STATUS.validate(status) + _DAEMON_SET_STATUS.validate_update(status, before)
