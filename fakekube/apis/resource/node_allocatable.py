"""What devices take of resources that nodes allocate themselves: cpu, memory and huge pages.

1.37 has a mapping and an overhead for each resource (`nodeAllocatableResources`), 1.36 a mapping
(`nodeAllocatableResourceMappings`).

Specified by: pkg/apis/resource/validation (validateNodeAllocatableResources, validateNodeAllocatableResourceMappings).
"""

from __future__ import annotations

from collections.abc import Mapping

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, not_found, required
from fakekube.apis.core.pods.status_validation import (
    NOT_NODE_ALLOCATABLE,
    validate_node_allocatable_name,
    validate_overhead_is_set,
    validate_quantity,
)
from fakekube.apis.validation.checks import one_member
from fakekube.apis.validation.resource_lists import is_native, quantity
from fakekube.base.objects import Object

_Capacity = Mapping[str, Object]
_MEMBERS = ("capacityKey", "deviceMultiplier")


def set_default_multipliers(device: Object) -> None:
    """Sets the default of a mapping of 1.36 (SetDefaults_NodeAllocatableResourceMapping)."""
    for mapping in (device.get("nodeAllocatableResourceMappings") or {}).values():
        if mapping.get("allocationMultiplier") is None:
            mapping["allocationMultiplier"] = "1"


def validate_node_allocatable_resources(device: Object, path: str) -> list[FieldError]:
    """Validates the mappings and the overheads of a device, of both fields."""
    capacity: _Capacity = device.get("capacity") or {}
    errors: list[FieldError] = []
    for name, mapping in sorted((device.get("nodeAllocatableResourceMappings") or {}).items()):
        errors += _validate_first_mapping(name, mapping, capacity, f"{path}.nodeAllocatableResourceMappings[{name}]")
    for name, resource in sorted((device.get("nodeAllocatableResources") or {}).items()):
        errors += _validate_resource(name, resource, capacity, f"{path}.nodeAllocatableResources[{name}]")
    return errors


def _validate_first_mapping(name: str, mapping: Object, capacity: _Capacity, path: str) -> list[FieldError]:
    errors = [] if is_native(name) else [invalid(path, name, NOT_NODE_ALLOCATABLE)]
    errors += _validate_positive(mapping.get("allocationMultiplier"), f"{path}.allocationMultiplier")
    return errors + _validate_key(mapping.get("capacityKey"), capacity, path)


def _validate_resource(name: str, resource: Object, capacity: _Capacity, path: str) -> list[FieldError]:
    mapping, overhead = resource.get("mapping"), resource.get("overhead")
    errors = validate_node_allocatable_name(name, path)
    if mapping is None and overhead is None:
        errors.append(required(path, "at least one of mapping or overhead must be set"))
    if mapping is not None:
        errors += _validate_mapping(mapping, capacity, f"{path}.mapping")
    if overhead is not None:
        where = f"{path}.overhead"
        errors += validate_overhead_is_set(overhead, where)
        errors += [
            error for side in ("perPod", "perContainer") for error in validate_quantity(overhead.get(side), f"{where}.{side}")
        ]
    return errors


def _validate_mapping(mapping: Object, capacity: _Capacity, path: str) -> list[FieldError]:
    key, multiplier = mapping.get("capacityKey"), mapping.get("capacityMultiplier")
    errors = one_member((member for member in _MEMBERS if mapping.get(member) is not None), _MEMBERS, path)
    errors += _validate_key(key, capacity, path)
    if key is not None and multiplier is None:
        errors.append(required(f"{path}.capacityMultiplier", "capacityMultiplier is required when capacityKey is set"))
    elif key is not None:
        errors += _validate_positive(multiplier, f"{path}.capacityMultiplier")
    errors += _validate_positive(mapping.get("deviceMultiplier"), f"{path}.deviceMultiplier")
    if multiplier is not None and key is None:
        errors.append(required(f"{path}.capacityKey", "capacityKey is required when capacityMultiplier is set"))
    return errors


def _validate_key(key: str | None, capacity: _Capacity, path: str) -> list[FieldError]:
    where = f"{path}.capacityKey"
    if key == "":
        return [invalid(where, "", "capacityKey must not be an empty string")]
    return [] if key is None or key in capacity else [not_found(where, key)]


def _validate_positive(amount: str | None, path: str) -> list[FieldError]:
    return [] if amount is None or quantity(amount).sign > 0 else [invalid(path, amount, "must be positive")]
