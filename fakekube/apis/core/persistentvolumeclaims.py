"""PersistentVolumeClaims, and the claim templates of pods and stateful sets.

The spec of a claim is immutable, except for the bound volume, the size and the attributes class of a bound claim, and
an unset storage class. The data source has two fields, dataSource and dataSourceRef, which the server keeps equal.

Specified by: ValidatePersistentVolumeClaim… in pkg/apis/core/validation,
pkg/api/persistentvolumeclaim/util.go, pkg/registry/core/persistentvolumeclaim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import ADDRESS, Printed, forbidden, invalid, not_supported, required
from fakekube.apis.core.volume_health import validate_health_of_claim
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext, spec_as_stored
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import immutable_annotation, immutable_field, invalid_each, one_of
from fakekube.apis.validation.differences import diff
from fakekube.apis.validation.objectmeta import validate_annotations, validate_labels
from fakekube.apis.validation.resource_lists import (
    ResourceList,
    fractional_bytes,
    is_native,
    positive_quantity,
    quantity,
    quantity_value,
)
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.selectors import label_selector
from fakekube.apis.well_known import BETA_STORAGE_CLASS_ANNOTATION
from fakekube.base.objects import Object

_CROSS_NAMESPACE_GATE = "CrossNamespaceVolumeDataSource"
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
USE_STORAGE_CLASS_NAME = 'deprecated since v1.8; use "storageClassName" attribute instead'
VOLUME_MODES = ("Block", "Filesystem")
_SNAPSHOTS = ("VolumeSnapshot", "snapshot.storage.k8s.io")
CLAIMS = ("PersistentVolumeClaim", "")
_RESIZE_STATUSES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)

_IMMUTABLE_SPEC = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


@dataclass(slots=True, frozen=True)
class ValidationOptions:
    """Rules that an update may break because the stored object breaks them already."""

    label_values: bool = False
    data_source_groups: bool = False


class PersistentVolumeClaimStrategy(Strategy):
    """The strategy of persistentvolumeclaims."""

    delete_returns_object = True
    has_status = True
    checks_metadata_again = True
    validated_twice_until = 35

    def stores_unchanged_update(self, obj: Object) -> bool:
        return True  # the stored status lacks the default phase

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}
        _normalize_data_sources(context, obj["spec"], {})

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        _normalize_data_sources(context, obj["spec"], old["spec"])

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return validate_claim_spec(obj["spec"], "spec")

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return validate_claim_spec(obj["spec"], "spec", _validation_options(old["spec"]))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return self.validate_changed(context, obj, old) + _validate_claim_change(context, obj, old)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        warnings: list[str] = []
        if BETA_STORAGE_CLASS_ANNOTATION in (obj["metadata"].get("annotations") or {}):
            warnings.append(f"metadata.annotations[{BETA_STORAGE_CLASS_ANNOTATION}]: {USE_STORAGE_CLASS_NAME}")
        return warnings + _claim_spec_warnings(obj["spec"], "spec")


def _validation_options(old_spec: Object) -> ValidationOptions:
    sources = (old_spec.get("dataSource"), old_spec.get("dataSourceRef"))
    return ValidationOptions(
        label_values=bool(label_selector(old_spec.get("selector"), "")),
        data_source_groups=any(source and source.get("apiGroup") is not None for source in sources),
    )


def _claim_spec_warnings(spec: Object, path: str) -> list[str]:
    """Returns warnings about sizes that are not a whole number of bytes."""
    resources = spec.get("resources") or {}
    return [
        warning
        for side in ("requests", "limits")
        for warning in fractional_bytes(resources.get(side) or {}, f"{path}.resources.{side}", ("storage",))
    ]


# --- Data sources -----------------------------------------------------------------------------------------------------


def _normalize_data_sources(context: WriteContext, spec: Object, old_spec: Object) -> None:
    """Drops data sources that are not supported, then copies dataSource to dataSourceRef or the reverse."""
    reference = spec.get("dataSourceRef")
    crosses = bool(reference and reference.get("namespace"))
    if crosses and old_spec.get("dataSourceRef") is None and not context.services.enabled(_CROSS_NAMESPACE_GATE):
        del spec["dataSourceRef"]
    unused = old_spec.get("dataSource") is None and old_spec.get("dataSourceRef") is None
    if unused and spec.get("dataSourceRef") is None and not _is_classic(spec.get("dataSource")):
        spec.pop("dataSource", None)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


def _is_classic(source: Mapping[str, Any] | None) -> bool:
    """Reports whether the source is a claim or a snapshot, which dataSource supports without the feature AnyVolumeDataSource."""
    return source is not None and (source.get("kind"), source.get("apiGroup") or "") in (CLAIMS, _SNAPSHOTS)


def _validate_data_source(source: Mapping[str, Any], path: str, options: ValidationOptions) -> list[FieldError]:
    errors = [required(f"{path}.{field}") for field in ("name", "kind") if not source.get(field)]
    group, kind, namespace = source.get("apiGroup") or "", source.get("kind", ""), source.get("namespace") or ""
    if not group and kind != CLAIMS[0]:
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, kind, text))
    if group and not options.data_source_groups:
        errors += invalid_each(f"{path}.apiGroup", group, names.dns_subdomain(group))
    if namespace:
        errors += invalid_each(f"{path}.namespace", namespace, names.dns_label(namespace))
    return errors


# --- The spec ---------------------------------------------------------------------------------------------------------


def validate_access_modes(modes: Iterable[str], path: str) -> list[FieldError]:
    """Validates access modes; ReadWriteOncePod cannot be combined with other modes."""
    modes = list(modes)
    errors = [not_supported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    others = any(mode in _ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes)
    if "ReadWriteOncePod" in modes and others:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def validate_claim_spec(spec: Object, path: str, options: ValidationOptions | None = None) -> list[FieldError]:
    """Validates the spec of a claim or of a claim template (ValidatePersistentVolumeClaimSpec)."""
    options = options or ValidationOptions()
    errors: list[FieldError] = []
    modes, size = spec.get("accessModes") or (), _requests(spec).get("storage")
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    errors += label_selector(spec.get("selector"), f"{path}.selector", allow_invalid_values=options.label_values)
    errors += validate_access_modes(modes, f"{path}.accessModes")
    errors += _validate_size(size, f"{path}.resources[storage]")
    errors += _validate_class_name(spec.get("storageClassName"), f"{path}.storageClassName")
    if spec.get("volumeMode") is not None:
        errors += one_of(spec["volumeMode"], f"{path}.volumeMode", VOLUME_MODES)
    errors += _validate_data_sources(spec, path, options)
    return errors + _validate_class_name(spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName")


def _requests(spec: Object) -> ResourceList:
    return (spec.get("resources") or {}).get("requests") or {}


def _validate_size(amount: str | None, path: str) -> list[FieldError]:
    if amount is None:
        return [required(path)]
    return positive_quantity(amount, path) or quantity_value("storage", amount, path)


def _validate_class_name(name: str | None, path: str) -> list[FieldError]:
    return invalid_each(path, name, names.dns_subdomain(name)) if name else []


def _validate_data_sources(spec: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        errors += _validate_data_source({**source, "namespace": ""}, f"{path}.dataSource", options)
    if reference is not None:
        errors += _validate_data_source(reference, f"{path}.dataSourceRef", options)
    if source is None or reference is None:
        return errors
    if reference.get("namespace"):
        errors.append(invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
    elif any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
        errors.append(invalid(path, {} if from_minor(34) else _GO_PATH, "must match dataSourceRef"))
    return errors


_GO_PATH = Printed(f'field.Path{{name:"dataSource", index:"", parent:(*field.Path)({ADDRESS})}}')
"""What 1.33 shows in place of the value, which is the path itself."""

#: Fields that the metadata of a template cannot have, with the names and in the order of Go's fields.
_NOT_IN_TEMPLATES = {
    "name": "name",
    "generateName": "generateName",
    "namespace": "namespace",
    "selfLink": "selfLink",
    "uid": "uID",
    "resourceVersion": "resourceVersion",
    "generation": "generation",
    "creationTimestamp": "creationTimestamp",
    "deletionTimestamp": "deletionTimestamp",
    "deletionGracePeriodSeconds": "deletionGracePeriodSeconds",
    "ownerReferences": "ownerReferences",
    "finalizers": "finalizers",
    "managedFields": "managedFields",
}


def validate_template_metadata(meta: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates that a template has only annotations and labels (ValidateTemplateObjectMeta)."""
    errors = validate_annotations(meta.get("annotations") or {}, f"{path}.annotations")
    errors += validate_labels(meta.get("labels") or {}, f"{path}.labels")
    present = {field: value for field, value in meta.items() if value not in (None, "") and (field, value) != ("generation", 0)}
    unwanted = [shown for field, shown in _NOT_IN_TEMPLATES.items() if field in present]
    return errors + [forbidden(f"{path}.{shown}", "cannot be set") for shown in unwanted]


def validate_claim_template(template: Object, path: str) -> list[FieldError]:
    """Validates the claim template of an ephemeral volume of a pod."""
    errors = validate_template_metadata(template.get("metadata") or {}, f"{path}.metadata")
    return errors + validate_claim_spec(template.get("spec") or {}, f"{path}.spec")


# --- Changes ----------------------------------------------------------------------------------------------------------


def _validate_claim_change(context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
    spec, old_spec = obj["spec"], old["spec"]
    annotations = obj["metadata"].get("annotations") or {}
    old_annotations = old["metadata"].get("annotations") or {}
    compared, old_compared = dict(spec), dict(old_spec)
    errors: list[FieldError] = []
    if not old_spec.get("volumeName") and spec.get("volumeName"):
        old_compared["volumeName"] = spec["volumeName"]
    if _is_class_moved_from_annotation(spec, old_spec, annotations, old_annotations):
        compared.pop("storageClassName", None)
    else:
        errors += immutable_annotation(obj["metadata"], old["metadata"], BETA_STORAGE_CLASS_ANNOTATION, "metadata")
        if _sets_storage_class(spec, old_spec, old_annotations):
            compared.pop("storageClassName", None)
    if (obj.get("status") or {}).get("phase") == "Bound":
        _restore_mutable_fields(compared, old_compared)
    if spec_as_stored(context, {**obj, "spec": compared}, {"spec": old_compared}) != old_compared:
        lines = diff("PersistentVolumeClaimSpec", old_compared, compared)
        errors.append(forbidden("spec", f"{_IMMUTABLE_SPEC}\n{lines}"))
    errors += _validate_size_update(spec, old_spec, old.get("status") or {})
    errors += immutable_field(spec.get("volumeMode"), old_spec.get("volumeMode"), "volumeMode")
    return errors + _validate_attributes_class_update(spec, old_spec, old.get("status") or {})


def _is_class_moved_from_annotation(spec: Object, old_spec: Object, annotations: Object, old_annotations: Object) -> bool:
    """Reports whether the class moved from the annotation to the field."""
    named = old_annotations.get(BETA_STORAGE_CLASS_ANNOTATION)
    return (
        named is not None
        and old_spec.get("storageClassName") is None
        and spec.get("storageClassName") == named
        and annotations.get(BETA_STORAGE_CLASS_ANNOTATION, named) == named
    )


def _sets_storage_class(spec: Object, old_spec: Object, old_annotations: Object) -> bool:
    """Reports whether an update sets a storage class that was not set."""
    named = spec.get("storageClassName")
    if named is None or old_spec.get("storageClassName") is not None:
        return False
    return bool(old_annotations.get(BETA_STORAGE_CLASS_ANNOTATION, named) == named)


def _restore_mutable_fields(compared: Object, old_compared: Object) -> None:
    """Restores the mutable fields of a bound claim in `compared` to the old values: the size and the attributes class."""
    resources = compared.get("resources") or {}
    if resources.get("requests") is not None:
        size = _requests(old_compared).get("storage", "0")
        compared["resources"] = {**resources, "requests": {**resources["requests"], "storage": size}}
    compared.pop("volumeAttributesClassName", None)
    if old_compared.get("volumeAttributesClassName") is not None:
        compared["volumeAttributesClassName"] = old_compared["volumeAttributesClassName"]


def _validate_size_update(spec: Object, old_spec: Object, old_status: Object) -> list[FieldError]:
    """Validates a reduced size: it may cancel an expansion, but not fall below the capacity."""
    new, before = (quantity(_requests(each).get("storage", "0")) for each in (spec, old_spec))
    there = quantity((old_status.get("capacity") or {}).get("storage", "0"))
    if new < before and not there < new:
        return [forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]
    return []


def _validate_attributes_class_update(spec: Object, old_spec: Object, old_status: Object) -> list[FieldError]:
    name, path = spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"
    if name == old_spec.get("volumeAttributesClassName") or name:
        return []
    if old_status.get("currentVolumeAttributesClassName") is None:
        return []
    what = "nil" if name is None else "empty string"
    return [forbidden(path, f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil")]


# --- Status -----------------------------------------------------------------------------------------------------------


def validate_basic_resource(amount: str, path: str) -> list[FieldError]:
    """Validates a quantity that is not negative; the message shows it as a whole number."""
    value = quantity(amount).value()
    return [invalid(path, value, "must be a valid resource quantity")] if value < 0 else []


def _validate_status(obj: Object, old: Object) -> list[FieldError]:
    status = obj.get("status") or {}
    errors: list[FieldError] = []
    if not obj["spec"].get("accessModes"):
        errors.append(required("Spec.accessModes"))
    for name, amount in (status.get("capacity") or {}).items():
        errors += validate_basic_resource(amount, f"status.capacity[{name}]")
    path = f"status.{'allocatedResourceStatuses' if from_minor(34) else 'allocatedResourceStatus'}"
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        errors += _validate_resource_key(name, path)
        if state not in _RESIZE_STATUSES:
            errors.append(not_supported(path, name if from_minor(34) else Printed(name), sorted(_RESIZE_STATUSES)))
    path = "status.allocatedResources"
    for name, amount in (status.get("allocatedResources") or {}).items():
        wrong = _validate_resource_key(name, path) or validate_basic_resource(amount, f"{path}[{name}]")
        errors += wrong or quantity_value("storage", amount, f"{path}[{name}]")
    return errors + validate_health_of_claim(status, old.get("status") or {})


def _validate_resource_key(name: str, path: str) -> list[FieldError]:
    errors = invalid_each(path, name, names.label_key(name))
    if errors or not is_native(name):
        return errors
    return one_of(name, path, ("storage",))


STATUS = StatusStrategy(_validate_status)
