"""deployments.apps.

Annotations of old versions become fields of the internal type.

Specified by: pkg/registry/apps/deployment; ValidateDeployment… of pkg/apis/apps/validation; pkg/apis/apps/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from fakekube.apimachinery.errors import FieldError, status
from fakekube.apimachinery.errors.field import forbidden, invalid, not_supported, required
from fakekube.apis.core import podtemplates
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext, restore
from fakekube.apis.validation.checks import (
    StatusNumbers,
    at_most_one_hundred_percent,
    immutable_field,
    int_or_percent,
    non_negative,
    number_of,
)
from fakekube.apis.validation.to_internal import to_internal, without_empty_fields
from fakekube.apis.well_known import DEPRECATED_ROLLBACK_TO
from fakekube.base.golang.strconv import parse_int
from fakekube.base.objects import Object

STATUS = StatusNumbers(
    not_negative=(
        "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
        "unavailableReplicas", "terminatingReplicas", "collisionCount",
    ),
    within_replicas=("updatedReplicas", "readyReplicas", "availableReplicas"),
)  # fmt: skip


class DeploymentStrategy(Strategy):
    """The strategy of deployments."""

    has_status = True
    generation = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        _normalize_rollback(obj["metadata"].get("annotations") or {})
        podtemplates.default_template(spec["template"])
        strategy = spec["strategy"]
        if strategy.get("type") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        podtemplates.drop_disabled(context.emulation, obj["spec"]["template"])

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        podtemplates.drop_disabled(context.emulation, obj["spec"]["template"], old["spec"]["template"])
        meta, before = obj["metadata"], old["metadata"]
        if (meta.get("annotations") or {}) != (before.get("annotations") or {}):
            meta["generation"] = before.get("generation", 0) + 1

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_spec(obj, podtemplates.validation_options(None))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        spec, before = obj["spec"], old["spec"]
        errors = _validate_spec(obj, podtemplates.validation_options(before["template"]))
        return errors + immutable_field(spec.get("selector"), before.get("selector"), "spec.selector")

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        found = podtemplates.name_warnings(obj["metadata"]["name"]) if old is None else []
        template = obj["spec"]["template"]
        return found + podtemplates.changed_template_warnings(template, obj, old, "spec.template")


def _normalize_rollback(annotations: dict[str, str]) -> None:
    """Normalizes the rollback annotation to a decimal number, and drops an empty one.

    Raises StatusError 400 if it is not a number.
    """
    if DEPRECATED_ROLLBACK_TO not in annotations:
        return
    text = annotations.pop(DEPRECATED_ROLLBACK_TO)
    if text:
        try:
            annotations[DEPRECATED_ROLLBACK_TO] = str(parse_int(text))
        except ValueError as error:
            problem = f"failed to parse annotation[{DEPRECATED_ROLLBACK_TO}]={text} as int64: {error}"
            raise status.ConversionError("Deployment", "v1", problem) from None


def _validate_spec(obj: Object, options: ValidationOptions) -> list[FieldError]:
    """Validates the spec, to which Go's internal type adds the revision of the rollback annotation (ValidateDeploymentSpec)."""
    spec = obj["spec"]
    errors = non_negative(spec.get("replicas", 0), "spec.replicas")
    errors += validate_replicated(spec, options)
    errors += _validate_strategy(spec.get("strategy") or {}, "spec.strategy")
    ready = spec.get("minReadySeconds", 0)
    errors += non_negative(ready, "spec.minReadySeconds")
    errors += non_negative(spec.get("revisionHistoryLimit", 0), "spec.revisionHistoryLimit")
    rollback = (obj["metadata"].get("annotations") or {}).get(DEPRECATED_ROLLBACK_TO)
    if rollback is not None:
        errors += non_negative(int(rollback), "spec.rollback.version")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        where = "spec.progressDeadlineSeconds"
        errors += non_negative(deadline, where)
        if deadline <= ready:
            errors.append(invalid(where, deadline, "must be greater than minReadySeconds"))
    return errors


def validate_replicated(spec: Object, options: ValidationOptions) -> list[FieldError]:
    """Validates the selector and the template of deployments and replica sets."""
    selector = spec.get("selector")
    if selector is None:
        errors = [required("spec.selector")]
    else:
        errors = podtemplates.validate_selector(selector, "spec.selector", "deployment")
    parsed = podtemplates.parsed_selector(selector)
    if parsed is None:
        return [*errors, invalid("spec.selector", without_empty_fields(selector), "invalid label selector")]
    template, path = spec["template"], "spec.template"
    errors += podtemplates.validate_selector_matches(parsed, template, path)
    errors += podtemplates.validate_template(template, path, options)
    return errors + podtemplates.validate_always_restarts(template, path, "ReplicaSet")


def _validate_strategy(strategy: Object, path: str) -> list[FieldError]:
    """Validates the update strategy (ValidateDeploymentStrategy)."""
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden(f"{path}.rollingUpdate", text)]
    if kind != "RollingUpdate":
        shown = to_internal("DeploymentStrategy", strategy)
        return [not_supported(path, shown, ("Recreate", "RollingUpdate"))]
    unavailable, surge = (rolling or {}).get("maxUnavailable", 0), (rolling or {}).get("maxSurge", 0)
    where = f"{path}.rollingUpdate"
    errors = int_or_percent(unavailable, f"{where}.maxUnavailable")
    errors += int_or_percent(surge, f"{where}.maxSurge")
    if not number_of(unavailable) and not number_of(surge):
        text = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid(f"{where}.maxUnavailable", unavailable, text))
    return errors + at_most_one_hundred_percent(unavailable, f"{where}.maxUnavailable")


class DeploymentStatusStrategy(StatusStrategy):
    """The strategy of deployments/status."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        super().prepare_for_update(context, obj, old)
        restore(obj["metadata"], old["metadata"], "labels")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        status, before = obj.get("status") or {}, old.get("status") or {}
        return STATUS.validate(status) + STATUS.validate_update(status, before)

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("spec",), ("metadata", "labels")]
