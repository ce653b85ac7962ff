"""Validation of the environment of containers, and of the references to objects, fields and files in it.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, not_supported, required
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each, no_backsteps
from fakekube.apis.validation.resource_lists import quantity
from fakekube.base.objects import Part

#: Fields of a pod that environment variables may refer to.
_ENVIRONMENT_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
#: Fields of a pod that files of a downward API volume may refer to.
VOLUME_FIELDS = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
)  # fmt: skip
#: Field labels that the conversion of pods knows.
_KNOWN_FIELDS = frozenset(_ENVIRONMENT_FIELDS) | frozenset(VOLUME_FIELDS) | {
    "spec.restartPolicy", "spec.schedulerName", "status.phase",
}  # fmt: skip

CONTAINER_RESOURCES = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")

_SIZES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SIZES_TEXT = f"only divisor's values {', '.join(_SIZES)} are supported with the"

#: The resource (without `limits.` or `requests.`) → its valid divisors, and the message about others.
_DIVISORS: Mapping[str, tuple[Sequence[str], str]] = {
    "cpu": (("1m", "1"), "only divisor's values 1m and 1 are supported with the cpu resource"),
    "memory": (_SIZES, f"{_SIZES_TEXT} memory resource"),
    "ephemeral-storage": (_SIZES, f"{_SIZES_TEXT} local ephemeral storage resource"),
    "hugepages": (_SIZES, f"{_SIZES_TEXT} hugepages resource"),
}


def validate_env(items: Sequence[Part], path: str) -> list[FieldError]:
    """Validates the `env` of a container (ValidateEnv)."""
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        name = item.get("name", "")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        else:
            details = names.environment_name(name)
            if details:
                errors += invalid_each(f"{path}[{index}].name", name, details)
        if "valueFrom" in item:
            errors += _validate_value_from(item, f"{path}[{index}].valueFrom")
    return errors


def _validate_value_from(item: Part, path: str) -> list[FieldError]:
    source = item["valueFrom"]
    errors: list[FieldError] = []
    count = 0
    for name, check in _VALUE_SOURCES.items():
        if name in source:
            count += 1
            errors += check(source[name], f"{path}.{name}")
    if not count:
        files = features.current().enabled("EnvFiles")
        last = "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`" if files else "`configMapKeyRef` or `secretKeyRef`"
        known = f"`fieldRef`, `resourceFieldRef`, {last}"
        errors.append(invalid(path, "", f"must specify one of: {known}"))
    elif item.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def validate_env_from(items: Sequence[Part], path: str) -> list[FieldError]:
    """Validates the `envFrom` of a container (ValidateEnvFrom)."""
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        prefix = item.get("prefix", "")
        if prefix:
            errors += invalid_each(f"{path}[{index}].prefix", prefix, names.environment_name(prefix))
        found = [name for name in ("configMapRef", "secretRef") if name in item]
        for name in found:
            errors += _validate_reference_name(item[name], f"{path}[{index}].{name}.name")
        if not found:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(found) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _validate_reference_name(reference: Part, path: str) -> list[FieldError]:
    name = reference.get("name", "")
    return invalid_each(path, name, names.dns_subdomain(name, True)) if name else [required(path)]


def validate_object_field_selector(reference: Part, path: str, allowed: Collection[str]) -> list[FieldError]:
    """Validates a reference to a field of the pod (validateObjectFieldSelector)."""
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    if version != "v1":
        text = f"error converting fieldPath: unsupported pod version: {version}"
        return [invalid(f"{path}.fieldPath", field, text)]
    base, subscript = _split_subscript(field)
    if subscript is not None:
        return _validate_subscript(field, base, subscript, path)
    if field == "spec.host":
        field = "spec.nodeName"
    if field not in _KNOWN_FIELDS:
        text = f"error converting fieldPath: field label not supported: {field}"
        return [invalid(f"{path}.fieldPath", field, text)]
    return [] if field in allowed else [not_supported(f"{path}.fieldPath", field, sorted(allowed))]


def _split_subscript(field: str) -> tuple[str, str | None]:
    """Splits `metadata.labels['x']` into ("metadata.labels", "x"); without a subscript, returns the field and None."""
    base, bracket, rest = field.partition("['")
    if base and bracket and rest.endswith("']"):
        return base, rest.removesuffix("']")
    return field, None


def _validate_subscript(field: str, base: str, subscript: str, path: str) -> list[FieldError]:
    if base == "metadata.annotations":
        subscript = subscript.lower()
    elif base != "metadata.labels":
        text = f"error converting fieldPath: field label does not support subscript: {field}"
        return [invalid(f"{path}.fieldPath", field, text)]
    return invalid_each(path, subscript, names.label_key(subscript))


def validate_container_resource_field_selector(reference: Part, path: str, *, of_volume: bool) -> list[FieldError]:
    """Validates a reference to a resource of a container (validateContainerResourceFieldSelector)."""
    errors: list[FieldError] = []
    resource = reference.get("resource", "")
    if of_volume and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in CONTAINER_RESOURCES and not resource.startswith(HUGE_PAGES):
        errors.append(not_supported(f"{path}.resource", resource, CONTAINER_RESOURCES))
    divisor = reference.get("divisor", "0")
    return errors if divisor == "0" else errors + _validate_divisor(resource, divisor, f"{path}.divisor")


def _validate_divisor(resource: str, divisor: str, path: str) -> list[FieldError]:
    name = "hugepages" if resource.startswith(HUGE_PAGES) else resource.partition(".")[2]
    if not quantity(divisor).sign or name not in _DIVISORS:
        return []
    allowed, text = _DIVISORS[name]
    return [] if divisor in allowed else [invalid(path, resource, text)]


def _validate_object_key(reference: Part, path: str) -> list[FieldError]:
    """Validates a reference to a key of a config map or secret."""
    name, key = reference.get("name", ""), reference.get("key", "")
    errors = invalid_each(f"{path}.name", name, names.dns_subdomain(name))
    if not key:
        return [*errors, required(f"{path}.key")]
    return errors + invalid_each(f"{path}.key", key, names.config_map_key(key))


def _validate_file_key(reference: Part, path: str) -> list[FieldError]:
    """Validates a reference to a variable in a file of a volume."""
    key, volume, file = (reference.get(field, "") for field in ("key", "volumeName", "path"))
    errors = invalid_each(f"{path}.key", key, names.relaxed_environment_name(key)) if key else [required(f"{path}.key")]
    if volume:
        errors += invalid_each(f"{path}.volumeName", volume, names.dns_label(volume))
    else:
        errors.append(required(f"{path}.volumeName"))
    return errors + (no_backsteps(file, f"{path}.path") if file else [required(f"{path}.path")])


_VALUE_SOURCES: Mapping[str, Callable[[Part, str], list[FieldError]]] = {
    "fieldRef": lambda reference, path: validate_object_field_selector(reference, path, _ENVIRONMENT_FIELDS),
    "resourceFieldRef": lambda reference, path: validate_container_resource_field_selector(reference, path, of_volume=False),
    "configMapKeyRef": _validate_object_key,
    "secretKeyRef": _validate_object_key,
    "fileKeyRef": _validate_file_key,
}
