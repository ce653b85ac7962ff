"""replicasets.apps, which Deployments create, and replicationcontrollers, which are much the same.

Specified by: pkg/registry/apps/replicaset, pkg/registry/core/replicationcontroller; ValidateReplicaSet… of
pkg/apis/apps/validation, ValidateReplicationController… of pkg/apis/core/validation.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import FieldErrorType, invalid, required
from fakekube.apimachinery.selectors import LabelRequirement, LabelSelector, Operator
from fakekube.apis.apps.deployments import validate_replicated
from fakekube.apis.core import podtemplates
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import StatusNumbers, immutable_field, non_negative
from fakekube.apis.validation.rules import from_minor
from fakekube.base.objects import Object

_WITHIN = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")

_REPLICA_SET_STATUS = StatusNumbers(
    not_negative=("replicas", *_WITHIN, "observedGeneration", "terminatingReplicas"),
    within_replicas=_WITHIN,
    counts_collisions=False,
)
_CONTROLLER_STATUS = StatusNumbers(
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
        return _REPLICA_SET_STATUS.validate(obj.get("status") or {})


#: The prefix of annotations with fields of an internal object that no served version has.
_NON_CONVERTIBLE = "non-convertible.kubernetes.io"


class ReplicationControllerStrategy(_Replicated):
    """The strategy of replicationcontrollers; the selector is a map, and defaults to the labels of the template."""

    orphans_by_default = True
    validated_twice_until = 35

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        if prefix:
            return []
        return names.long_name(name) if from_minor(35) else names.dns_subdomain(name)

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
                errors += _validate_non_convertible_field(key.partition("/")[2], value, spec, before)
        return errors


def _default_from_labels_of_template(obj: Object) -> None:
    labels = ((obj["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if labels is not None:
        for part, field in ((obj["spec"], "selector"), (obj["metadata"], "labels")):
            if not part.get(field):
                part[field] = dict(labels)


def _validate_non_convertible_field(field: str, value: str, spec: Object, old: Object) -> list[FieldError]:
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
        return _CONTROLLER_STATUS.validate(obj.get("status") or {})

    def canonicalize(self, obj: Object) -> None:
        """Sets the labels, as every read from storage does: a write of the status can remove them."""
        _default_from_labels_of_template(obj)
