"""statefulsets.apps, and controllerrevisions.apps, the immutable snapshots of the templates of StatefulSets and DaemonSets.

Specified by: pkg/registry/apps/{statefulset,controllerrevision}; ValidateStatefulSet… and ValidateControllerRevision… of
pkg/apis/apps/validation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError, field
from fakekube.apimachinery.errors.field import IMMUTABLE as IMMUTABLE_FIELD
from fakekube.apimachinery.errors.field import Typed, forbidden, invalid, not_supported, required
from fakekube.apis.core import podtemplates
from fakekube.apis.core.pods.annotations import validate_pod_annotations
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext, spec_as_stored
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import (
    StatusNumbers,
    at_most_one_hundred_percent,
    int_or_percent,
    invalid_each,
    non_negative,
    number_of,
)
from fakekube.apis.validation.objectmeta import validate_annotations, validate_labels, validate_object_meta_update
from fakekube.apis.validation.resource_lists import fractional_bytes
from fakekube.apis.validation.rules import Change, calls_on_change, changes, from_minor, immutable
from fakekube.apis.validation.to_internal import semantic_deep_equal_as, to_internal, without_empty_fields
from fakekube.base.golang.json_writer import RawObject
from fakekube.base.golang.strings import json_text
from fakekube.base.objects import Object

_WITHIN = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")

_STATEFUL_SET_STATUS = StatusNumbers(
    not_negative=("replicas", *_WITHIN, "observedGeneration", "collisionCount"),
    within_replicas=_WITHIN,
    ready_shown="status.readyReplicas",
)

POLICIES = ("OrderedReady", "Parallel")

#: The fields of the spec that an update may change.
_MUTABLE = frozenset(
    {
        "replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    }
)  # fmt: skip
IMMUTABLE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


RECREATE = "Recreate"
"""The update strategy that deletes all pods before it makes new ones."""

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
        recreates = self._recreates(old)
        skip = bool(_validate_stateful_set_spec(before, options, recreates=recreates))
        errors = _validate_stateful_set_spec(spec, options, skip_template=skip, recreates=recreates)
        stored = spec_as_stored(context, obj, old)
        if from_minor(37):
            return errors + _STATEFUL_SET_SPEC_CHANGES.validate(spec, before, "spec")
        if any(stored.get(field) != before.get(field) for field in {*stored, *before} - _MUTABLE):
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


def _validate_stateful_set_spec(
    spec: Object, options: ValidationOptions, *, new: bool = False, skip_template: bool = False, recreates: bool = False
) -> list[FieldError]:
    """Validates the spec (ValidateStatefulSetSpec); the rules of service names and claims apply to new objects only."""
    errors = _validate_pod_management_policy(spec.get("podManagementPolicy", ""))
    errors += _validate_update_strategy(spec.get("updateStrategy") or {}, recreates=recreates)
    errors += _validate_retention_policy(spec.get("persistentVolumeClaimRetentionPolicy"))
    if new and spec.get("volumeClaimTemplates") and from_minor(34):
        errors += _validate_volume_claim_templates(spec["volumeClaimTemplates"])
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


def _validate_pod_management_policy(policy: str) -> list[FieldError]:
    path = "spec.podManagementPolicy"
    if not policy:
        return [required(path)]
    return [] if policy in POLICIES else [invalid(path, Typed(policy), "must be 'OrderedReady' or 'Parallel'")]


def _validate_update_strategy(strategy: Object, *, recreates: bool) -> list[FieldError]:
    path, kind, rolling = "spec.updateStrategy", strategy.get("type", ""), strategy.get("rollingUpdate")
    if not kind:
        return [required(path)]
    if kind == "OnDelete" or (kind == RECREATE and recreates):
        if rolling is None:
            return []
        shown = to_internal("RollingUpdateStatefulSetStrategy", rolling)
        return [invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")]
    if kind == "RollingUpdate":
        return [] if rolling is None else _validate_rolling_update(rolling, f"{path}.rollingUpdate")
    shown = to_internal("StatefulSetUpdateStrategy", strategy)
    known = "'RollingUpdate', 'OnDelete', or 'Recreate'" if recreates else "'RollingUpdate' or 'OnDelete'"
    return [invalid(path, shown, f"must be {known}")]


def _validate_rolling_update(rolling: Object, path: str) -> list[FieldError]:
    errors = non_negative(rolling.get("partition", 0), f"{path}.partition")
    unavailable, where = rolling.get("maxUnavailable"), f"{path}.maxUnavailable"
    if unavailable is None:
        return errors
    errors += int_or_percent(unavailable, where)
    if not number_of(unavailable):
        errors.append(invalid(where, unavailable, "cannot be 0"))
    return errors + at_most_one_hundred_percent(unavailable, where)


def _validate_retention_policy(policy: Mapping[str, Any] | None) -> list[FieldError]:
    if policy is None:
        return []
    supported = ("Retain", "Delete")
    return [
        not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{field}", policy.get(field, ""), supported)
        for field in ("whenDeleted", "whenScaled")
        if policy.get(field, "") not in supported
    ]


def _validate_volume_claim_templates(claims: Sequence[Mapping[str, Any]]) -> list[FieldError]:
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
    return errors + validate_pod_annotations(annotations, template["spec"], f"{path}.annotations", options)


class StatefulSetStatusStrategy(StatusStrategy):
    """The strategy of statefulsets/status, which validates the status before the metadata."""

    checks_metadata_update = False

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        status, before = obj.get("status") or {}, old.get("status") or {}
        errors = _STATEFUL_SET_STATUS.validate(status) + validate_object_meta_update(obj["metadata"], old["metadata"])
        return errors + _STATEFUL_SET_STATUS.validate_update(status, before)


def validate_immutable_claims(new: Claims, old: Claims, path: str) -> list[FieldError]:
    """Validates that the templates of claims do not change; the error shows the new ones (ValidateImmutableField)."""
    if semantic_deep_equal_as(features.current().types.type_of(_CLAIMS), new, old):
        return []
    value = None if new is None else [to_internal("PersistentVolumeClaim", claim) for claim in new]
    return [invalid(path, value, IMMUTABLE_FIELD)]


_STATEFUL_SET_SPEC_CHANGES = changes(
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
        if _raw_bytes(obj.get("data")) != _raw_bytes(old.get("data")):
            errors.append(field.immutable("data", obj.get("data")))
        return errors


def _raw_bytes(data: Any) -> bytes:
    """Returns the bytes of a RawExtension, in which the order of members, spaces and the forms of numbers count."""
    return data.text if isinstance(data, RawObject) else json_text(data).encode()
