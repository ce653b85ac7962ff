"""ResourceSlices: the devices that drivers publish.

Specified by: pkg/apis/resource/{validation,v1/defaults.go}, pkg/registry/resource/resourceslice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, immutable, invalid, required, too_long
from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.core.pods.volumes import validate_csi_driver_name
from fakekube.apis.resource.declared_errors import in_version_of_request
from fakekube.apis.resource.devices import (
    UNLIMITED,
    validate_binding_conditions,
    validate_declared_device_name,
    validate_device_name,
    validate_fully_qualified_name,
    validate_map,
    validate_pool_name,
    validate_qualified_name,
    validate_set,
    validate_skip_node_operations,
    validate_slice,
    validate_taint_effect,
)
from fakekube.apis.resource.node_allocatable import set_default_multipliers, validate_node_allocatable_resources
from fakekube.apis.rest.strategy import Strategy, WriteContext, spec_as_stored
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import NOT_BELOW_ZERO, NOT_NEGATIVE, POSITIVE, invalid_each, label_name, many_set, one_member
from fakekube.apis.validation.resource_lists import quantity
from fakekube.apis.validation.rules import from_minor, holds_declared_rules
from fakekube.apis.validation.selectors import node_selector
from fakekube.apis.validation.to_internal import semantic_deep_equal, to_internal
from fakekube.base.clock import Clock
from fakekube.base.golang.strconv import MAX_INT64
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object

DEVICES, COMPLICATED_DEVICES = 128, 64
_COUNTER_SETS = 8
_COMPATIBILITY_GROUPS = 2
_COUNTER_SETS_OF_DEVICE = 2
_ATTRIBUTES_AND_CAPACITIES = 32
_ATTRIBUTE_VALUES = 48
_ATTRIBUTE_LENGTH = 64
_MAX_KEY_LENGTH = 63 + 1 + 32
TAINTS = 16
OPTIONS = 10
LISTS = ("bools", "ints", "strings", "versions")
_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_ONE_PLACE_OF_DEVICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)

_version_matches = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
).fullmatch


class ResourceSliceStrategy(Strategy):
    """The strategy of resourceslices.

    Alpha fields (list attributes, node allocatable mappings) are dropped unless the old object has them.
    """

    generation = True
    delete_returns_object = True

    generation_counts_disabled_fields = True

    def default(self, obj: Object) -> None:
        for device in _devices(obj):
            set_default_multipliers(device)

    def default_times(self, obj: Object, clock: Clock) -> None:
        for device in _devices(obj):
            for taint in (device.get("basic") or device).get("taints") or ():  # basic: in v1beta1
                taint.setdefault("timeAdded", print_time(clock.now()))

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        if spec_as_stored(context, obj, old) != old.get("spec"):  # the generation has counted the dropped fields
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return in_version_of_request(context, _validate_spec(obj.get("spec") or {}, None))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return in_version_of_request(context, _validate_spec(obj.get("spec") or {}, old.get("spec") or {}))

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        driver = (obj.get("spec") or {}).get("driver", "")
        if driver == driver.lower():
            return []
        return [f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase characters']


def _devices(obj: Object) -> Sequence[Object]:
    found: Sequence[Object] = (obj.get("spec") or {}).get("devices") or ()
    return found


def _validate_spec(spec: Object, old: Object | None) -> list[FieldError]:
    errors = validate_csi_driver_name(spec.get("driver", ""), "spec.driver") + _validate_pool(spec.get("pool") or {}, "spec.pool")
    if old is not None:
        name = (spec.get("pool") or {}).get("name", "")
        if name != (old.get("pool") or {}).get("name", ""):
            errors.append(immutable("spec.pool.name", name))
        if spec.get("driver") != old.get("driver"):
            errors.append(immutable("spec.driver", spec.get("driver", "")))
        if spec.get("nodeName") != old.get("nodeName"):
            errors.append(immutable("spec.nodeName", spec.get("nodeName")))
    errors += _validate_node_selection(spec)
    if "sharedCounters" in spec and "devices" in spec:
        errors.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    devices = spec.get("devices") or ()
    before = {device["name"]: device for device in (old or {}).get("devices") or ()}
    complicated = any(device.get("taints") or device.get("consumesCounters") or _has_lists(device) for device in devices)
    check = partial(_validate_device, before, bool(spec.get("perDeviceNodeSelection")))
    most = COMPLICATED_DEVICES if complicated else DEVICES
    errors += validate_set(
        devices, "spec.devices", check, lambda device: device.get("name", ""), most=most, member="name", by_hand=True
    )
    errors += validate_set(
        spec.get("sharedCounters") or (), "spec.sharedCounters", partial(_validate_counters, "name"),
        lambda item: item.get("name", ""), most=_COUNTER_SETS, member="name",
    )  # fmt: skip
    if "partitionTypeAttribute" in spec:
        errors += _validate_partition_type_attribute(spec)
    return errors + validate_skip_node_operations(spec.get("skipNodeOperations") or (), "spec.skipNodeOperations")


def _validate_partition_type_attribute(spec: Object) -> list[FieldError]:
    """Validates that all devices that consume counters have the attribute, as a string (validatePartitionTypeAttribute)."""
    name, path = spec["partitionTypeAttribute"], "spec.partitionTypeAttribute"
    errors = validate_fully_qualified_name(name, path, is_declared=True)
    devices = [(index, device) for index, device in enumerate(spec.get("devices") or ()) if device.get("consumesCounters")]
    if not devices:
        return [*errors, invalid(path, name, "may only be set on a slice which declares devices that consume counters")]
    if errors:
        return errors
    bare_name = name.removeprefix(f"{spec.get('driver', '')}/")  # the domain of the driver may be left out
    for index, device in devices:
        attributes, where = device.get("attributes") or {}, f"spec.devices[{index}].attributes[{name}]"
        attribute = attributes.get(name) or attributes.get(bare_name)
        if attribute is None:
            errors.append(required(where, _ABSENT_PARTITION_TYPE))
        elif "string" not in attribute:
            errors.append(invalid(where, to_internal("DeviceAttribute", attribute), _NO_PARTITION_TYPE))
    return errors


_ABSENT_PARTITION_TYPE = "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"
_NO_PARTITION_TYPE = "must be a string value because `partitionTypeAttribute` names this attribute"


def _has_lists(device: Object) -> bool:
    return any(name in attribute for attribute in (device.get("attributes") or {}).values() for name in LISTS)


def _validate_pool(pool: Object, path: str) -> list[FieldError]:
    errors = validate_pool_name(pool.get("name", ""), f"{path}.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        errors.append(invalid(f"{path}.resourceSliceCount", count, POSITIVE))
    if generation < 0:
        errors.append(invalid(f"{path}.generation", generation, NOT_BELOW_ZERO))
    return errors


# --- Where devices are ------------------------------------------------------------------------------------------------


def _validate_node_selection(spec: Object) -> list[FieldError]:
    """Validates that exactly one field selects the nodes that can access the devices."""
    chosen, errors = _node_choice(spec, "spec", "must be either unset or set to a non-empty string", one_term=True)
    if spec.get("perDeviceNodeSelection"):
        chosen.append("`perDeviceNodeSelection`")
    elif "perDeviceNodeSelection" in spec:
        errors.append(invalid("spec.perDeviceNodeSelection", False, "must be either unset or set to true"))
    return errors + _validate_one_choice(chosen, "spec", _ONE_PLACE, many_set(_ONE_PLACE))


def _validate_device_node_selection(device: Object, path: str, per_device: bool) -> list[FieldError]:
    if per_device:
        chosen, errors = _node_choice(device, path, "must not be empty")
        return errors + _validate_one_choice(chosen, path, _ONE_PLACE_OF_DEVICE, _ONE_PLACE_OF_DEVICE)
    if any(field in device for field in ("nodeName", "nodeSelector", "allNodes")):
        text = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
            "the ResourceSlice spec"
        )
        return [invalid(path, None, text)]
    return []


def _node_choice(part: Object, path: str, empty: str, *, one_term: bool = False) -> tuple[list[str], list[FieldError]]:
    chosen: list[str] = []
    errors: list[FieldError] = []
    node = part.get("nodeName")
    if node:
        chosen.append("`nodeName`")
        errors += invalid_each(f"{path}.nodeName", node, names.dns_subdomain(node))
    elif node is not None:
        errors.append(invalid(f"{path}.nodeName", node, empty))
    if "nodeSelector" in part:
        chosen.append("`nodeSelector`")
        errors += node_selector(part["nodeSelector"], f"{path}.nodeSelector")
        terms = part["nodeSelector"].get("nodeSelectorTerms")
        if one_term and len(terms or ()) != 1:
            shown = None if terms is None else [to_internal("NodeSelectorTerm", term) for term in terms]
            text = "must have exactly one node selector term"
            errors.append(invalid(f"{path}.nodeSelector.nodeSelectorTerms", shown, text))
    if part.get("allNodes"):
        chosen.append("`allNodes`")
    elif "allNodes" in part:
        errors.append(invalid(f"{path}.allNodes", False, "must be either unset or set to true"))
    return chosen, errors


def _validate_one_choice(chosen: Sequence[str], path: str, none: str, many: str) -> list[FieldError]:
    if not chosen:
        return [required(path, none)]
    return [] if len(chosen) == 1 else [invalid(path, f"{{{', '.join(chosen)}}}", many)]


# --- Devices ----------------------------------------------------------------------------------------------------------


def _validate_device(before: Mapping[str, Object], per_device: bool, device: Object, path: str) -> list[FieldError]:
    name = device.get("name", "")
    errors = validate_device_name(name, f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    count = len(attributes) + len(capacity)
    if count > _ATTRIBUTES_AND_CAPACITIES:
        text = f"the total number of attributes and capacities must not exceed {_ATTRIBUTES_AND_CAPACITIES}"
        errors.append(invalid(path, count, text))
    values = sum(sum(len(item.get(field) or ()) for field in LISTS) or 1 for item in attributes.values())
    if values > _ATTRIBUTE_VALUES:
        text = f"the total number of attribute values must not exceed {_ATTRIBUTE_VALUES}"
        errors.append(invalid(path, values, text))
    everything = partial(validate_map, key=validate_qualified_name, most=UNLIMITED, longest=_MAX_KEY_LENGTH)
    errors += everything(attributes, f"{path}.attributes", check=_validate_attribute)
    shared = partial(_validate_capacity, bool(device.get("allowMultipleAllocations")))
    is_kept = name in before and from_minor(37) and semantic_deep_equal(before[name].get("capacity"), device.get("capacity"))
    errors += [] if is_kept else everything(capacity, f"{path}.capacity", check=shared)
    if name not in before or not semantic_deep_equal(before[name].get("taints"), device.get("taints")):
        errors += validate_slice(device.get("taints") or (), f"{path}.taints", _validate_taint, TAINTS)
    errors += validate_set(
        device.get("consumesCounters") or (), f"{path}.consumesCounters", _validate_consumption,
        lambda item: item.get("counterSet", ""), most=_COUNTER_SETS_OF_DEVICE, member="counterSet",
    )  # fmt: skip
    errors += _validate_device_node_selection(device, path, per_device) + validate_binding_conditions(device, path)
    return errors + validate_node_allocatable_resources(device, path)


def _validate_consumption(item: Object, path: str) -> list[FieldError]:
    """Validates the counters that a device consumes, and with which devices it shares them."""
    groups, where = item.get("compatibilityGroups") or (), f"{path}.compatibilityGroups"
    errors = _validate_counters("counterSet", item, path)
    return errors + validate_set(groups, where, validate_declared_device_name, lambda group: group, most=_COMPATIBILITY_GROUPS)


def _validate_counters(field: str, item: Object, path: str) -> list[FieldError]:
    """Validates shared counters, or the counters that a device consumes; `field` is the name of the set."""
    name, counters = item.get(field, ""), item.get("counters") or {}
    errors = validate_declared_device_name(name, f"{path}.{field}") if name else [required(f"{path}.{field}")]
    if not counters:
        return [*errors, required(f"{path}.counters")]
    return errors + validate_map(
        counters, f"{path}.counters", validate_declared_device_name, lambda _value, _path: [], longest=names.LABEL_LENGTH
    )


#: The fields of an attribute of which exactly one is set, in the order of Go's struct.
VALUES = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")


def _validate_attribute(attribute: Object, path: str) -> list[FieldError]:
    checks: Mapping[str, Callable[[str, str], list[FieldError]]] = {"string": _validate_string, "version": _validate_version}
    errors = [error for field in checks if field in attribute for error in checks[field](attribute[field], f"{path}.{field}")]
    for field in LISTS:
        if field not in attribute:
            continue
        if not attribute[field]:
            errors.append(invalid(f"{path}.{field}", attribute[field], "must not be empty if specified"))
        check = checks.get(field.removesuffix("s"))
        if check is not None:
            errors += validate_slice(attribute[field], f"{path}.{field}", check, UNLIMITED)
    if holds_declared_rules():  # which do not count empty lists
        declared = one_member((field for field in VALUES if attribute.get(field, []) != []), VALUES, path)
        if declared:
            return errors + declared
    chosen = [field for field in VALUES if field in attribute]
    if len(chosen) == 1:
        return errors
    detail = "exactly one value must be specified"
    if not chosen and not from_minor(35):
        return [*errors, required(path, detail)]
    shown: Any = to_internal("DeviceAttribute", attribute) if chosen else ""
    return [*errors, invalid(path, shown, detail)]


def _validate_string(value: str, path: str) -> list[FieldError]:
    return [] if names.fits(value, _ATTRIBUTE_LENGTH) else [too_long(path, _ATTRIBUTE_LENGTH)]


def _validate_version(value: str, path: str) -> list[FieldError]:
    fine = _version_matches(value)
    errors = [] if fine else [invalid(path, value, "must be a string compatible with semver.org spec 2.0.0")]
    return errors + _validate_string(value, path)


def _validate_taint(taint: Object, path: str) -> list[FieldError]:
    errors = label_name(taint.get("key", ""), f"{path}.key")
    value = taint.get("value", "")
    errors += invalid_each(f"{path}.value", value, names.label_value(value)) if value else []
    kind = taint.get("effect", "")
    return errors + (validate_taint_effect(kind, f"{path}.effect") if kind else [required(f"{path}.effect")])


# --- Capacity ---------------------------------------------------------------------------------------------------------


def _validate_capacity(shared: bool, capacity: Object, path: str) -> list[FieldError]:
    policy, path = capacity.get("requestPolicy"), f"{path}.requestPolicy"
    if policy is None:
        return []
    if not shared:
        return [forbidden(path, "allowMultipleAllocations must be true")]
    whole = quantity(capacity.get("value", "0"))
    values, span, default = policy.get("validValues") or (), policy.get("validRange"), policy.get("default")
    if values and span is not None:
        text = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [forbidden(path, text)]
    if not values and span is None:
        return []
    field = "validValues" if values else "validRange"
    if default is None:
        return [required(f"{path}.default", f"required when {field} is defined")]
    if values:
        return _validate_values(list(map(quantity, values)), quantity(default), whole, f"{path}.{field}")
    return _validate_range(span or {}, quantity(default), whole, f"{path}.{field}")


def _validate_values(values: Sequence[Quantity], default: Quantity, whole: Quantity, path: str) -> list[FieldError]:
    errors = [
        invalid(f"{path}[{index}]", str(values[index]), "values must be sorted in ascending order")
        for index in range(1, len(values))
        if values[index - 1] > values[index]
    ]

    def fits(value: Quantity, where: str) -> list[FieldError]:
        text = f"option is larger than capacity value: {whole}"
        return [invalid(where, str(value), text)] if value > whole else []

    fractions = features.current().enabled("DRAFractionalCapacityRange")
    errors += validate_set(values, path, fits, _decimal_text if fractions else _whole_text, most=OPTIONS, by_hand=True)
    if len(values) > OPTIONS or default not in values:
        errors.append(invalid(path, str(default), "default value is not valid according to the requestPolicy"))
    return errors


def _whole_text(value: Quantity) -> str:
    return str(value.value())


def _decimal_text(value: Quantity) -> str:
    """Returns a number with the digits after the point with which it was written (inf.Dec)."""
    if value.scale >= 0:
        return _whole_text(value)
    digits = f"{abs(value.unscaled):0{1 - value.scale}d}"
    return f"{'-' if value.sign < 0 else ''}{digits[: value.scale]}.{digits[value.scale :]}"


def _validate_range(span: Object, default: Quantity, whole: Quantity, path: str) -> list[FieldError]:
    if "min" not in span:
        return [required(f"{path}.min", "required when validRange is defined")]
    least, most = quantity(span["min"]), quantity(span["max"]) if "max" in span else None
    errors: list[FieldError] = []
    if least > whole:
        errors.append(invalid(f"{path}.min", str(least), f"min is larger than capacity value: {whole}"))
    if default < least:
        blamed = "default" if from_minor(37) else "min"
        errors.append(invalid(f"{path}.{blamed}", str(default), f"default is less than min: {least}"))
    if most is not None:
        where = f"{path}.max"
        if least > most:
            errors.append(invalid(where, str(least), f"min is larger than max: {most}"))
        if most > whole:
            errors.append(invalid(where, str(most), f"max is larger than capacity value: {whole}"))
        if default > most:
            blamed = "default" if from_minor(37) else "max"
            errors.append(invalid(f"{path}.{blamed}", str(default), f"default is more than max: {most}"))
    named = {"default": default, "min": least}
    named |= {name: quantity(span[name]) for name in ("max", "step") if name in span}
    if from_minor(37):
        return errors + _validate_counts(named, whole, path)
    return errors + (_validate_step(named, whole, path, Quantity.value) if "step" in named else [])


def _validate_counts(named: Mapping[str, Quantity], whole: Quantity, path: str) -> list[FieldError]:
    """Validates that the numbers of a range can be counted in steps, of thousandths where one is a fraction (from 1.37 on)."""
    milli = features.current().enabled("DRAFractionalCapacityRange") and any(map(_is_fractional, named.values()))
    if milli:
        unsafe = [(name, one) for name, one in named.items() if Quantity(one.milli_value(), -3) != one]
        if unsafe:
            text = "value cannot be represented as a milli value"
            return [invalid(f"{path}.{name}", str(one), text) for name, one in unsafe]
    if "step" not in named:
        return []
    if named["step"].sign <= 0:
        return [invalid(f"{path}.step", str(named["step"]), POSITIVE)]
    unusable = [] if milli else [error for name, one in named.items() for error in _validate_int64(one, f"{path}.{name}")]
    if unusable:
        return _validate_first_step(named, whole, path) + unusable
    return _validate_step(named, whole, path, Quantity.milli_value if milli else Quantity.value)


def _is_fractional(number: Quantity) -> bool:
    return number.amount.denominator != 1


def _validate_int64(number: Quantity, path: str) -> list[FieldError]:
    """Validates that a number can be counted (validateInt64Range)."""
    if number.sign < 0:
        return [invalid(path, str(number), NOT_NEGATIVE)]
    if number.amount > MAX_INT64:
        return [invalid(path, str(number), f"must not be larger than {MAX_INT64}")]
    return []


def _validate_first_step(named: Mapping[str, Quantity], whole: Quantity, path: str) -> list[FieldError]:
    first = named["min"] + named["step"]
    text = f"one step {first} is larger than capacity value: {whole}"
    return [invalid(f"{path}.step", str(named["step"]), text)] if first > whole else []


def _validate_step(
    named: Mapping[str, Quantity], whole: Quantity, path: str, count: Callable[[Quantity], int]
) -> list[FieldError]:
    least, step = named["min"], named["step"]
    text = f"value is not a multiple of a given step ({step}) from ({least})"
    bounds = [named[name] for name in ("default", "max") if name in named]
    return _validate_first_step(named, whole, path) + [
        invalid(f"{path}.step", str(value), text) for value in bounds if (count(value) - count(least)) % (count(step) or 1)
    ]
