"""deployments.apps, the replicasets.apps that they create, and replicationcontrollers.

Annotations of old versions become fields of the internal types of Deployments.

Specified by: pkg/registry/apps/{deployment,replicaset}, pkg/registry/core/replicationcontroller; ValidateDeployment… and
ValidateReplicaSet… of pkg/apis/apps/validation, ValidateReplicationController… of pkg/apis/core/validation;
pkg/apis/apps/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from fakekube.apimachinery.errors import FieldError, status
from fakekube.apimachinery.errors.field import FieldErrorType, forbidden, invalid, not_supported, required
from fakekube.apimachinery.selectors import LabelRequirement, LabelSelector, Operator
from fakekube.apis.core import podtemplates
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext, restore
from fakekube.apis.validation import names
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

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


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


# --- replicasets.apps and replicationcontrollers ---------------------------------------------------------------------


_WITHIN = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")

REPLICA_SET_STATUS = StatusNumbers(
    not_negative=("replicas", *_WITHIN, "observedGeneration", "terminatingReplicas"),
    within_replicas=_WITHIN,
    counts_collisions=False,
)
CONTROLLER_STATUS = StatusNumbers(
    not_negative=("replicas", *_WITHIN, "observedGeneration"), within_replicas=_WITHIN, counts_collisions=False
)


class _Replicated(Strategy):
    """The base strategy of both kinds."""

    has_status = True
    generation = True

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        podtemplates.drop_disabled(context.emulation, obj["spec"].get("template"))

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        podtemplates.drop_disabled(context.emulation, obj["spec"].get("template"), old["spec"].get("template"))

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        found = podtemplates.name_warnings(obj["metadata"]["name"]) if old is None else []
        template = obj["spec"].get("template") or {}
        return found + podtemplates.changed_template_warnings(template, obj, old, "spec.template")

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


class ReplicaSetStrategy(_Replicated):
    """The strategy of replicasets."""

    validated_twice_until = 34

    def default(self, obj: Object) -> None:
        podtemplates.default_template(obj["spec"].setdefault("template", {}))

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_replica_set(obj["spec"], podtemplates.validation_options(None))

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_replica_set(obj["spec"], podtemplates.validation_options(old["spec"].get("template")))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = self.validate_changed(context, obj, old)
        return errors + immutable_field(obj["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")


def _validate_replica_set(spec: Object, options: ValidationOptions) -> list[FieldError]:
    errors = non_negative(spec.get("replicas", 0), "spec.replicas")
    errors += non_negative(spec.get("minReadySeconds", 0), "spec.minReadySeconds")
    return errors + validate_replicated(spec, options)


class ReplicaSetStatusStrategy(StatusStrategy):
    """The strategy of replicasets/status."""

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return REPLICA_SET_STATUS.validate(obj.get("status") or {})


#: The prefix of annotations with fields of an internal object that no served version has.
_NON_CONVERTIBLE = "non-convertible.kubernetes.io"


class ReplicationControllerStrategy(_Replicated):
    """The strategy of replicationcontrollers; the selector is a map, and defaults to the labels of the template."""

    orphans_by_default = True
    validated_twice_until = 35

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return [] if prefix else names.dns_subdomain(name)

    def default(self, obj: Object) -> None:
        template = obj["spec"].get("template")
        if template is not None:
            podtemplates.default_template(template)
            _default_from_labels_of_template(obj)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        if old is None:
            return super().warnings(context, obj, None)
        template = old["spec"].get("template") or {}  # the real server uses the wrong one of the two
        return podtemplates.changed_template_warnings(template, obj, old, "spec.template")

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_controller(obj["spec"], podtemplates.validation_options(None))

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_controller(obj["spec"], podtemplates.validation_options(old["spec"].get("template")))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        spec, before = obj["spec"], old["spec"]
        errors = self.validate_changed(context, obj, old)
        for key, value in (old["metadata"].get("annotations") or {}).items():
            if key.startswith(_NON_CONVERTIBLE) and key.count("/") == 1:
                errors += _non_convertible(key.partition("/")[2], value, spec, before)
        return errors


def _default_from_labels_of_template(obj: Object) -> None:
    labels = ((obj["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if labels is not None:
        for part, field in ((obj["spec"], "selector"), (obj["metadata"], "labels")):
            if not part.get(field):
                part[field] = dict(labels)


def _non_convertible(field: str, value: str, spec: Object, old: Object) -> list[FieldError]:
    if "selector" not in field:
        return [FieldError(FieldErrorType.NOT_FOUND, field, value, "unknown non-convertible field")]
    if spec.get("selector") == old.get("selector"):
        return []
    return [invalid("spec.selector", spec.get("selector"), "cannot update non-convertible selector")]


def _validate_controller(spec: Object, options: ValidationOptions) -> list[FieldError]:
    """Validates the spec (ValidateReplicationControllerSpec)."""
    selector, replicas, template = spec.get("selector") or {}, spec.get("replicas"), spec.get("template")
    errors = non_negative(spec.get("minReadySeconds", 0), "spec.minReadySeconds")
    if not selector:
        errors.append(required("spec.selector"))
    errors += [required("spec.replicas")] if replicas is None else non_negative(replicas, "spec.replicas")
    path = "spec.template"
    if template is None:
        return [*errors, required(path)]
    parsed = LabelSelector(tuple(LabelRequirement(key, Operator.EQUALS, (selector[key],)) for key in sorted(selector)))
    errors += podtemplates.validate_selector_matches(parsed, template, path)  # labels of a selector are not validated here
    errors += podtemplates.validate_template(template, path, options)
    return errors + podtemplates.validate_always_restarts(template, path, "ReplicationController")


class ReplicationControllerStatusStrategy(StatusStrategy):
    """The strategy of replicationcontrollers/status."""

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return CONTROLLER_STATUS.validate(obj.get("status") or {})

    def canonicalize(self, obj: Object) -> None:
        """Sets the labels, as every read from storage does: a write of the status can remove them."""
        _default_from_labels_of_template(obj)
