"""Strategies of pods and of their subresources status, ephemeralcontainers and resize.

Specified by: pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden
from fakekube.apimachinery.schema.known_specs import text_of_spec
from fakekube.apis.core.pods import status_validation, update_validation
from fakekube.apis.core.pods.annotations import (
    annotation_of_profile,
    concerns_pods,
    profile_of_annotation,
    validate_annotations_update,
    validate_pod_annotations,
    validate_profiles_match,
)
from fakekube.apis.core.pods.defaults import (
    DROPS_ON_WRITES_SINCE,
    FIX_DEFAULTING,
    default_pod,
    default_pod_level_resources,
    default_pod_requests,
    default_pod_spec,
    drop_old_annotations,
    raise_grace_period,
    sync_pod_ips,
)
from fakekube.apis.core.pods.resize import drop_non_resize_updates, unresizable_error, validate_resize
from fakekube.apis.core.pods.resources import qos_class
from fakekube.apis.core.pods.security_context import validate_apparmor_profile
from fakekube.apis.core.pods.spec import validate_pod_spec
from fakekube.apis.core.pods.validation_options import (
    NEW_POD,
    KnownSpecs,
    ValidationOptions,
    merges_spread_keys,
    pod_affinity_terms,
)
from fakekube.apis.core.pods.visitor import NIL_PATH, containers
from fakekube.apis.core.pods.warnings import USE_APPARMOR, hostname_warnings, pod_warnings
from fakekube.apis.disabled_fields import drop_disabled_pod_fields, drop_disabled_pod_status
from fakekube.apis.rest.strategy import Strategy, WriteContext, keep_all_but, keep_metadata, restore, spec_as_stored
from fakekube.apis.validation import ip
from fakekube.apis.validation.differences import diff
from fakekube.apis.well_known import DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX, MIRROR_POD_ANNOTATION_KEY
from fakekube.base.objects import Object

_CLASSIFIES_COMPLETE_PODS: Final = 37
"""The first minor whose QoS class is that of the pod with all its defaults and without disabled fields."""


class PodStrategy(Strategy):
    """The strategy of pods."""

    delete_returns_object = True
    has_status = True
    graceful = True
    generation = True
    checks_metadata_again = True

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_pod_spec(spec)
        default_pod(self.emulation, spec)
        raise_grace_period(spec)
        sync_pod_ips(obj.get("status") or {})
        if self.emulation.minor < DROPS_ON_WRITES_SINCE:
            drop_old_annotations(obj["metadata"])

    def read_back(self, obj: Object) -> Object:
        """Adds the requests that LimitRanger has given to the containers to those of the whole pod."""
        resources = obj["spec"].get("resources")
        if not resources or self.emulation.enabled(FIX_DEFAULTING):
            return obj
        spec = {**obj["spec"], "resources": dict(resources)}
        default_pod_requests(spec, spec["resources"])
        if "requests" in spec["resources"]:
            spec["resources"]["requests"] = dict(sorted(spec["resources"]["requests"].items()))
        return {**obj, "spec": spec}

    def reset_status(self, obj: Object) -> None:
        """Resets the status on create; before 1.37 a qosClass that the client sends is kept."""
        sent = (obj.get("status") or {}).get("qosClass")
        obj["status"] = {"phase": "Pending"}
        if self.emulation.minor < _CLASSIFIES_COMPLETE_PODS:
            obj["status"]["qosClass"] = sent or qos_class(obj["spec"])

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        spec, status = obj["spec"], obj["status"]
        drop_old_annotations(obj["metadata"])
        text = text_of_spec(context.resource.type, obj)
        key = _PREPARED.key(spec, text, of_pod=True)
        known, annotations = _PREPARED.get(key), obj["metadata"].get("annotations")
        if known is None or (annotations and concerns_pods(annotations)):
            self._prepare_spec(context, obj)
            known = qos_class(spec)
            before, text = text, text_of_spec(context.resource.type, obj)
            if key is not None and text == before and not _depends_on_metadata(spec):
                _PREPARED.add(key, known)
        context.spec_text = text
        if self.emulation.minor >= _CLASSIFIES_COMPLETE_PODS:
            status["qosClass"] = known

    def _prepare_spec(self, context: WriteContext, obj: Object) -> None:
        spec, meta = obj["spec"], obj["metadata"]
        drop_disabled_pod_fields(self.emulation, spec, None)
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [_scheduling_gated(context)]
        _merge_label_keys(spec, meta.get("labels") or {})
        _profiles_from_annotations(context, meta.get("annotations") or {}, spec)
        if context.emulation.minor < 34:
            _annotate_profiles(meta, spec)
        default_pod_level_resources(self.emulation, spec)

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        _keep_pod_level_resources(context, obj, old)
        drop_disabled_pod_fields(context.emulation, obj["spec"], old["spec"])
        drop_old_annotations(obj["metadata"])

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        annotations = obj["metadata"].get("annotations") or {}
        errors = _validate_whole(obj, NEW_POD, context.spec_text)
        if spec.get("ephemeralContainers"):
            errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            text = "cannot be set until all schedulingGates have been cleared"
            errors.append(forbidden("spec.nodeName", text))
        return errors + validate_profiles_match(annotations, spec, "spec") if annotations else errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        annotations, old_annotations = (one["metadata"].get("annotations") for one in (obj, old))
        if obj["spec"] == old["spec"] and annotations == old_annotations:
            return []  # it was valid when it was stored
        options = _validation_options(old)
        context.spec_text = text_of_spec(context.resource.type, obj)
        errors = _validate_whole(obj, options, context.spec_text) + _validate_annotations_update(obj, old, options)
        return errors + update_validation.validate_spec_update(
            obj["spec"], old["spec"], options, lambda spec: spec_as_stored(context, {**obj, "spec": spec}, old)
        )

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        if old is not None:
            return []
        meta = obj["metadata"]
        return hostname_warnings(meta["name"], "the Pod's hostname") + pod_warnings(obj["spec"], meta, context.spec_text)

    def grace_period(self, context: WriteContext, old: Object, options: Object) -> int:
        spec, status = old.get("spec") or {}, old.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
            return 0
        period: int = options.get("gracePeriodSeconds", spec.get("terminationGracePeriodSeconds", 0))
        return period if period >= 0 else 1


_PREPARED: Final = KnownSpecs()
"""The specs that `prepare_for_create` does not change, each with its QoS class."""


def _depends_on_metadata(spec: dict[str, Any]) -> bool:
    """Reports whether the preparation of a spec may depend on the labels of its pod, or on the time."""
    return "schedulingGates" in spec or "affinity" in spec or "topologySpreadConstraints" in spec


def _validation_options(old: Object) -> ValidationOptions:
    return ValidationOptions(old["spec"], old["metadata"], of_pod=True)


def _validate_whole(obj: Object, options: ValidationOptions, text: bytes | None = None) -> list[FieldError]:
    """Validates a new or updated pod, without its metadata (validatePodMetadataAndSpec). `text`: that of the spec, if known."""
    spec, meta = obj["spec"], obj["metadata"]
    annotations = meta.get("annotations")
    errors: list[FieldError] = []
    if annotations:
        errors += validate_pod_annotations(annotations, spec, "metadata.annotations", options)
    return errors + validate_pod_spec(spec, "spec", options, meta, text=text)


def _validate_annotations_update(obj: Object, old: Object, options: ValidationOptions) -> list[FieldError]:
    """Validates updates of annotations (ValidatePodSpecificAnnotationUpdates)."""
    new, before = (one["metadata"].get("annotations") or {} for one in (obj, old))
    if not new and not before:
        return []
    errors = validate_annotations_update(new, before, "metadata.annotations")
    return errors + validate_pod_annotations(new, obj["spec"], "metadata.annotations", options)


def _scheduling_gated(context: WriteContext) -> dict[str, Any]:
    """Returns the PodScheduled condition of a pod that has scheduling gates."""
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": context.now(),
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def _merge_label_keys(spec: dict[str, Any], labels: dict[str, str]) -> None:
    """Converts matchLabelKeys to requirements with the label values of this pod."""
    for _, term in pod_affinity_terms(spec):
        _add_requirements(term, "matchLabelKeys", "In", labels)
        _add_requirements(term, "mismatchLabelKeys", "NotIn", labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        if not merges_spread_keys():
            break
        _add_requirements(constraint, "matchLabelKeys", "In", labels)


def _add_requirements(holder: dict[str, Any], field: str, operator: str, labels: dict[str, str]) -> None:
    selector = holder.get("labelSelector")
    found = [key for key in holder.get(field) or () if key in labels]
    if selector is None or not found:
        return
    added = [{"key": key, "operator": operator, "values": [labels[key]]} for key in found]
    selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]


def _profiles_from_annotations(context: WriteContext, annotations: dict[str, str], spec: dict[str, Any]) -> None:
    """Copies AppArmor annotations to fields (applyAppArmorVersionSkew)."""
    if not annotations or (spec.get("os") or {}).get("name") == "windows":
        return
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container in containers(spec):
        key = f"{DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX}{container.get('name', '')}"
        security = container.get("securityContext") or {}
        if key not in annotations or "appArmorProfile" in security:
            continue
        profile = profile_of_annotation(annotations[key])
        if profile is not None and validate_apparmor_profile(profile, ""):
            profile = None
        if profile is not None and profile == of_pod:
            continue
        if profile is not None:
            container["securityContext"] = {**security, "appArmorProfile": profile}
        context.warnings.append(f"metadata.annotations[{key}]: {USE_APPARMOR}")


def _annotate_profiles(meta: dict[str, Any], spec: dict[str, Any]) -> None:
    """Copies AppArmor fields to annotations, for nodes that are older than the fields (applyAppArmorVersionSkew)."""
    if (spec.get("os") or {}).get("name") == "windows":
        return
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container in containers(spec):
        key = f"{DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX}{container.get('name', '')}"
        profile = (container.get("securityContext") or {}).get("appArmorProfile") or of_pod
        annotation = annotation_of_profile(profile) if profile else ""
        if annotation and key not in (meta.get("annotations") or {}):
            meta["annotations"] = {**(meta.get("annotations") or {}), key: annotation}


def _keep_pod_level_resources(context: WriteContext, obj: Object, old: Object) -> None:
    """Keeps the resources of the whole pod that a client dropped which may not know them."""
    if (
        context.emulation.enabled(FIX_DEFAULTING)
        and obj["spec"].get("resources") is None
        and old["spec"].get("resources") is not None
    ):
        obj["spec"]["resources"] = old["spec"]["resources"]


_KEEPS_CLAIM_STATUSES: Final = 37
"""The first minor whose pods keep the statuses of claims that a writer of the status does not send."""
_CLAIM_STATUSES: Final = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")


class PodStatusStrategy(Strategy):
    """The strategy of pods/status."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        keep_all_but(obj, old, "status")
        meta = obj["metadata"]
        meta.pop("deletionTimestamp", None)
        restore(meta, old["metadata"], "ownerReferences")
        drop_old_annotations(meta)
        status, before = obj.setdefault("status", {}), old.get("status") or {}
        if not status.get("qosClass"):
            restore(status, before, "qosClass")
        if context.emulation.minor >= _KEEPS_CLAIM_STATUSES:
            for field in _CLAIM_STATUSES:
                if field not in status:
                    restore(status, before, field)
        _keep_observed_generations(status, before)
        drop_disabled_pod_status(context.emulation, status, before)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = _validate_annotations_update(obj, old, _validation_options(old))
        return errors + status_validation.validate_status_update(obj, old)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        status = obj.get("status") or {}
        return [
            warning
            for field in ("podIPs", "hostIPs")
            for index, item in enumerate(status.get(field) or ())
            for warning in ip.ip_warnings(f"status.{field}[{index}].ip", item.get("ip", ""))
        ]

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")]


def _keep_observed_generations(status: dict[str, Any], before: dict[str, Any]) -> None:
    """Keeps observedGeneration if a client does not send it (preserveOldObservedGeneration)."""
    if not status.get("observedGeneration"):
        restore(status, before, "observedGeneration")
    old: dict[str, list[int]] = {}
    for condition in before.get("conditions") or ():
        old.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        generations = old.get(condition.get("type", ""))
        generation = generations.pop(0) if generations else 0
        if not condition.get("observedGeneration") and generation:
            condition["observedGeneration"] = generation


class EphemeralContainersStrategy(Strategy):
    """The strategy of pods/ephemeralcontainers, which only adds containers."""

    generation = True
    validates_unchanged_update = True
    checks_metadata_again = True

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        sent = obj["spec"]
        keep_all_but(obj, old)
        obj["spec"] = dict(old["spec"])
        restore(obj["spec"], sent, "ephemeralContainers")
        keep_metadata(obj, old)
        drop_disabled_pod_fields(context.emulation, obj["spec"], old["spec"])
        drop_old_annotations(obj["metadata"])

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        if MIRROR_POD_ANNOTATION_KEY in (old["metadata"].get("annotations") or {}):
            return [forbidden(NIL_PATH, "static pods do not support ephemeral containers")]
        options = _validation_options(old)
        errors = _validate_whole(obj, options)
        before = old["spec"].get("ephemeralContainers") or ()
        if not before:
            return errors
        stored = {item.get("name"): item for item in spec_as_stored(context, obj, old).get("ephemeralContainers") or ()}
        sent = {item.get("name"): item for item in obj["spec"].get("ephemeralContainers") or ()}
        for container in before:
            name = container.get("name")
            errors += _validate_ephemeral_container_update(container, stored.get(name), sent.get(name))
        return errors


def _validate_ephemeral_container_update(old: Object, stored: Object | None, sent: Object | None) -> list[FieldError]:
    """Validates that an ephemeral container is neither removed nor changed; `sent` is shown, `stored` is compared."""
    path, name = "spec.ephemeralContainers", old.get("name", "")
    if stored is None or sent is None:
        return [forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n')]
    if stored == old:
        return []
    text = f'existing ephemeral containers "{name}" may not be changed'
    return [forbidden(path, f"{text}\n{diff('EphemeralContainer', old, sent)}")]


class ResizeStrategy(Strategy):
    """The strategy of pods/resize."""

    generation = True
    checks_metadata_again = True
    validates_unchanged_update = True

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        sent = obj["spec"]
        drop_non_resize_updates(obj, old)
        if obj["spec"] is not sent:
            keep_all_but(obj, old, "spec")
            keep_metadata(obj, old)
        _keep_pod_level_resources(context, obj, old)
        default_pod_level_resources(context.emulation, obj["spec"])
        drop_disabled_pod_fields(context.emulation, obj["spec"], old["spec"])
        drop_old_annotations(obj["metadata"])

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        refused = unresizable_error(old)
        if refused:
            return [refused]
        stored = {**obj, "spec": spec_as_stored(context, obj, old)}
        return _validate_whole(obj, _validation_options(old)) + validate_resize(stored, old)
