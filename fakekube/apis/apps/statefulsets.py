"""statefulsets.apps, daemonsets.apps, and controllerrevisions.apps, the immutable snapshots of the templates of both.

Specified by: pkg/registry/apps/{statefulset,daemonset,controllerrevision}; ValidateStatefulSet…, ValidateDaemonSet… and
ValidateControllerRevision… of pkg/apis/apps/validation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError, field
from fakekube.apimachinery.errors.field import IMMUTABLE as IMMUTABLE_FIELD
from fakekube.apimachinery.errors.field import forbidden, invalid, not_supported, required
from fakekube.apimachinery.errors.status import ConversionError
from fakekube.apis.core import podtemplates
from fakekube.apis.core.pods.annotations import pod_annotations
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.core.pods.warnings import template_warnings
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext, restore, spec_as_stored
from fakekube.apis.validation import names, selectors
from fakekube.apis.validation.checks import (
    StatusNumbers,
    all_non_negative,
    at_most_one_hundred_percent,
    immutable_field,
    int_or_percent,
    invalid_each,
    non_negative,
    number_of,
)
from fakekube.apis.validation.objectmeta import validate_annotations, validate_labels, validate_object_meta_update
from fakekube.apis.validation.resource_lists import fractional_bytes
from fakekube.apis.validation.rules import Change, calls_on_change, changes, from_minor, immutable
from fakekube.apis.validation.to_internal import same_as, to_internal, without_empty_fields
from fakekube.apis.well_known import DEPRECATED_TEMPLATE_GENERATION
from fakekube.base.golang.json_writer import RawObject
from fakekube.base.golang.strconv import parse_int
from fakekube.base.golang.strings import json_text
from fakekube.base.objects import Object

# --- daemonsets.apps -------------------------------------------------------------------------------------------------


DAEMON_SET_STATUS = StatusNumbers(
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
        annotations[DEPRECATED_TEMPLATE_GENERATION] = str(template_generation(obj))
        strategy = spec["updateStrategy"]
        if strategy.get("type") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        elif "rollingUpdate" in strategy:  # the internal type has no absent number
            strategy["rollingUpdate"] = {"maxUnavailable": 0, "maxSurge": 0, **strategy["rollingUpdate"]}

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        podtemplates.drop_disabled(context.emulation, obj["spec"]["template"])
        obj["metadata"]["annotations"][DEPRECATED_TEMPLATE_GENERATION] = str(max(template_generation(obj), 1))

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        podtemplates.drop_disabled(context.emulation, obj["spec"]["template"], old["spec"]["template"])
        generation = template_generation(old)
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

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


def template_generation(obj: Object) -> int:
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
    generation = template_generation(obj)
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
        return DAEMON_SET_STATUS.validate(status) + DAEMON_SET_STATUS.validate_update(status, before)


_WITHIN = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")

STATEFUL_SET_STATUS = StatusNumbers(
    not_negative=("replicas", *_WITHIN, "observedGeneration", "collisionCount"),
    within_replicas=_WITHIN,
    ready_shown="status.readyReplicas",
)

POLICIES = ("OrderedReady", "Parallel")

#: The fields of the spec that an update may change.
MUTABLE = frozenset(
    {
        "replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    }
)  # fmt: skip
IMMUTABLE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


Claims = Sequence[Mapping[str, Any]] | None
_CLAIMS = "[]k8s.io/api/core/v1.PersistentVolumeClaim"


class StatefulSetStrategy(Strategy):
    """The strategy of statefulsets."""

    has_status = True
    generation = True

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return names.dns_label(name, prefix)

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        podtemplates.default_template(spec["template"])
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
            strategy["rollingUpdate"].setdefault("partition", 0)
            if self.emulation.enabled("MaxUnavailableStatefulSet"):
                strategy["rollingUpdate"].setdefault("maxUnavailable", 1)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim.update(kind="PersistentVolumeClaim", apiVersion="v1")  # the value that the client sends is ignored

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        podtemplates.drop_disabled(context.emulation, obj["spec"]["template"])

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        podtemplates.drop_disabled(context.emulation, obj["spec"]["template"], old["spec"]["template"])

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_stateful_set_spec(
            obj["spec"], podtemplates.validation_options(None), new=True, recreates=self._recreates()
        )

    def _recreates(self, old: Object | None = None) -> bool:
        in_use = old is not None and (old["spec"].get("updateStrategy") or {}).get("type") == RECREATE
        return in_use or self.emulation.enabled("StatefulSetRecreateStrategy")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        spec, before = obj["spec"], old["spec"]
        options = podtemplates.validation_options(before["template"])
        skip = bool(_validate_stateful_set_spec(before, options))
        errors = _validate_stateful_set_spec(spec, options, skip_template=skip, recreates=self._recreates(old))
        stored = spec_as_stored(context, obj, old)
        if from_minor(37):
            return errors + STATEFUL_SET_SPEC_CHANGES.validate(spec, before, "spec")
        if any(stored.get(field) != before.get(field) for field in {*stored, *before} - MUTABLE):
            errors.append(forbidden("spec", IMMUTABLE))
        return errors

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        spec = obj["spec"]
        found = podtemplates.changed_template_warnings(spec["template"], obj, old, "spec.template")
        suffix = "" if old is None else ".Spec"
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            resources = (claim.get("spec") or {}).get("resources") or {}
            where = f"spec.volumeClaimTemplates[{index}]{suffix}.resources"
            for side in ("requests", "limits"):
                found += fractional_bytes(resources.get(side) or {}, f"{where}.{side}", ("storage",))
        if spec.get("revisionHistoryLimit", 0) < 0:
            text = "a negative value retains all historical revisions; a value >= 0 is recommended"
            found.append(f"spec.revisionHistoryLimit: {text}")
        return found

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


def _validate_stateful_set_spec(
    spec: Object, options: ValidationOptions, *, new: bool = False, skip_template: bool = False, recreates: bool = False
) -> list[FieldError]:
    """Validates the spec (ValidateStatefulSetSpec); the rules of service names and claims apply to new objects only."""
    errors = _policy(spec.get("podManagementPolicy", ""))
    errors += _update_strategy(spec.get("updateStrategy") or {}, recreates=recreates)
    errors += _retention(spec.get("persistentVolumeClaimRetentionPolicy"))
    if new and spec.get("volumeClaimTemplates") and from_minor(34):
        errors += _claims(spec["volumeClaimTemplates"])
    errors += non_negative(spec.get("replicas", 0), "spec.replicas")
    errors += non_negative(spec.get("minReadySeconds", 0), "spec.minReadySeconds")
    errors += non_negative((spec.get("ordinals") or {}).get("start", 0), "spec.ordinals.start")
    service = spec.get("serviceName", "")
    if new and service:
        errors += invalid_each("spec.serviceName", service, names.dns_label(service))
    selector = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        errors += podtemplates.validate_selector(selector, "spec.selector", "statefulset")
    parsed = podtemplates.parsed_selector(selector)
    if parsed is None:
        errors.append(invalid("spec.selector", without_empty_fields(selector), ""))
    else:
        template = _with_pod_fields(spec)
        errors += podtemplates.validate_selector_matches(parsed, template, "spec.template")
        errors += _validate_template(template, options, skip_template)
    return errors + podtemplates.validate_always_restarts(spec["template"], "spec.template", "StatefulSet")


def _policy(policy: str) -> list[FieldError]:
    path = "spec.podManagementPolicy"
    if not policy:
        return [required(path)]
    return [] if policy in POLICIES else [invalid(path, policy, "must be 'OrderedReady' or 'Parallel'")]


RECREATE = "Recreate"
"""The update strategy that deletes all pods before it makes new ones."""


def _update_strategy(strategy: Object, *, recreates: bool) -> list[FieldError]:
    path, kind, rolling = "spec.updateStrategy", strategy.get("type", ""), strategy.get("rollingUpdate")
    if not kind:
        return [required(path)]
    if kind == "OnDelete" or (kind == RECREATE and recreates):
        if rolling is None:
            return []
        shown = to_internal("RollingUpdateStatefulSetStrategy", rolling)
        return [invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")]
    if kind == "RollingUpdate":
        return [] if rolling is None else _rolling_update(rolling, f"{path}.rollingUpdate")
    shown = to_internal("StatefulSetUpdateStrategy", strategy)
    known = "'RollingUpdate', 'OnDelete', or 'Recreate'" if recreates else "'RollingUpdate' or 'OnDelete'"
    return [invalid(path, shown, f"must be {known}")]


def _rolling_update(rolling: Object, path: str) -> list[FieldError]:
    errors = non_negative(rolling.get("partition", 0), f"{path}.partition")
    unavailable, where = rolling.get("maxUnavailable"), f"{path}.maxUnavailable"
    if unavailable is None:
        return errors
    errors += int_or_percent(unavailable, where)
    if not number_of(unavailable):
        errors.append(invalid(where, unavailable, "cannot be 0"))
    return errors + at_most_one_hundred_percent(unavailable, where)


def _retention(policy: Mapping[str, Any] | None) -> list[FieldError]:
    if policy is None:
        return []
    return [
        not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{field}", policy.get(field, ""), supported)
        for supported in [("Retain", "Delete")]
        for field in ("whenDeleted", "whenScaled")
        if policy.get(field, "") not in supported
    ]


def _claims(claims: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    from fakekube.apis.core.persistentvolumeclaims import validate_claim_spec

    return [
        error
        for index, claim in enumerate(claims)
        for error in validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    ]


def _with_pod_fields(spec: Object) -> Object:
    """Returns the template with the fields that every pod gets: claims as volumes, a host name and a subdomain."""
    template = spec["template"]
    pod = {k: v for k, v in (template.get("spec") or {}).items() if k not in ("hostname", "subdomain")}
    claims = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    if claims:
        own = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claims)]
        rest = [volume for volume in pod.get("volumes") or () if volume.get("name", "") not in claims]
        pod["volumes"] = own + rest
    return {**template, "spec": pod}


def _validate_template(template: Object, options: ValidationOptions, skip: bool) -> list[FieldError]:
    """Validates the template (ValidatePodTemplateSpecForStatefulSet, which validates the metadata twice)."""
    path, meta = "spec.template", template.get("metadata") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    errors = [] if skip or not from_minor(34) else podtemplates.validate_template(template, path, options)
    errors += validate_labels(labels, f"{path}.labels")
    errors += validate_annotations(annotations, f"{path}.annotations")
    return errors + pod_annotations(annotations, template["spec"], f"{path}.annotations", options)


class StatefulSetStatusStrategy(StatusStrategy):
    """The strategy of statefulsets/status, which validates the status before the metadata."""

    checks_metadata_update = False

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        status, before = obj.get("status") or {}, old.get("status") or {}
        errors = STATEFUL_SET_STATUS.validate(status) + validate_object_meta_update(obj["metadata"], old["metadata"])
        return errors + STATEFUL_SET_STATUS.validate_update(status, before)


def validate_immutable_claims(new: Claims, old: Claims, path: str) -> list[FieldError]:
    """Validates that the templates of claims do not change; the error shows the new ones (ValidateImmutableField)."""
    if same_as(features.current().types.type_of(_CLAIMS), new, old):
        return []
    return [invalid(path, [to_internal("PersistentVolumeClaim", claim) for claim in new or ()], IMMUTABLE_FIELD)]


STATEFUL_SET_SPEC_CHANGES = changes(
    "StatefulSetSpec",
    "ValidateStatefulSetUpdate",
    Change("podManagementPolicy", immutable()),
    Change("selector", immutable()),
    Change("serviceName", immutable()),
    Change("volumeClaimTemplates", calls_on_change(validate_immutable_claims)),
)


class ControllerRevisionStrategy(Strategy):
    """The strategy of controllerrevisions."""

    checks_metadata_again = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = non_negative(obj.get("revision", 0), "revision")
        data = obj.get("data")
        if data is None:
            errors.append(required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            errors.append(required("data", "data must be a valid JSON object"))
        return errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = non_negative(obj.get("revision", 0), "revision")
        if _bytes(obj.get("data")) != _bytes(old.get("data")):
            errors.append(field.immutable("data", obj.get("data")))
        return errors


def _bytes(data: Any) -> bytes:
    """Returns the bytes of a RawExtension, in which the order of members, spaces and the forms of numbers count."""
    return data.text if isinstance(data, RawObject) else json_text(data).encode()
