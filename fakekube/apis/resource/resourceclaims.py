"""ResourceClaims, ResourceClaimTemplates and DeviceClasses.

Specified by: pkg/apis/resource/{validation,v1/defaults.go}, pkg/registry/resource/{resourceclaim,
resourceclaimtemplate,deviceclass}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, immutable, invalid, not_supported, required, too_long, too_many
from fakekube.apimachinery.schema.model import Type
from fakekube.apis.core.persistentvolumeclaims import validate_template_metadata
from fakekube.apis.core.pods.volumes import validate_csi_driver_name
from fakekube.apis.resource.declared_errors import in_version_of_request
from fakekube.apis.resource.devices import (
    MAX_ITEMS,
    UNLIMITED,
    in_declared_words,
    validate_binding_conditions,
    validate_configuration,
    validate_declared_derived_attributes,
    validate_declared_driver_name,
    validate_declared_pool_name,
    validate_derived_attributes,
    validate_device_name,
    validate_fully_qualified_name,
    validate_pool_name,
    validate_raw_object,
    validate_selectors,
    validate_set,
    validate_skip_node_operations,
    validate_slice,
    validate_taint_effect,
    validate_uid,
)
from fakekube.apis.resource.status_authorization import authorize_status
from fakekube.apis.rest.strategy import RevalidatingStrategy, StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import ip, names
from fakekube.apis.validation.checks import POSITIVE, conditions, invalid_each, label_name, many_set
from fakekube.apis.validation.names import label_key
from fakekube.apis.validation.resource_lists import is_extended
from fakekube.apis.validation.rules import from_minor, holds_declared_rules
from fakekube.apis.validation.selectors import node_selector
from fakekube.apis.validation.to_internal import semantic_deep_equal, semantic_deep_equal_as, to_internal
from fakekube.base.objects import Object

OPTIONS = 8
_RESERVATIONS = 256
CONDITIONS = 8
INTERFACE_NAME_LENGTH, HARDWARE_ADDRESS_LENGTH = 256, 128
_NETWORK_ADDRESSES = 16
MODES = ("All", "ExactCount")
OPERATORS = ("Equal", "Exists")
SOURCES = ("FromClaim", "FromClass")
_ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_NOT_A_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_KIND_OF_REQUEST = "exactly one of `exactly` or `firstAvailable` is required"
_KIND_OF_CONSTRAINT = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'

_Requests = Mapping[str, frozenset[str]]
"""The name of a request → the names of its subrequests."""


class ResourceClaimStrategy(RevalidatingStrategy):
    """The strategy of resourceclaims, whose spec is immutable."""

    has_status = True
    delete_returns_object = True

    def default(self, obj: Object) -> None:
        _default(obj.get("spec") or {})

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        return _validate_admin_access(context, spec) + in_version_of_request(context, _validate_spec(spec, "spec"))

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return [] if from_minor(35) else _validate_spec(obj.get("spec") or {}, "spec")

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_immutable_spec(obj, old, "ResourceClaimSpec") + self.validate_changed(context, obj, old)


class ResourceClaimTemplateStrategy(RevalidatingStrategy):
    """The strategy of resourceclaimtemplates, whose spec is immutable."""

    delete_returns_object = True

    def default(self, obj: Object) -> None:
        _default((obj.get("spec") or {}).get("spec") or {})

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = _validate_admin_access(context, (obj.get("spec") or {}).get("spec") or {})
        return errors + in_version_of_request(context, _validate_template(obj))

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return in_version_of_request(context, _validate_template(obj))

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = _validate_immutable_spec(obj, old, "ResourceClaimTemplateSpec")
        return errors if from_minor(35) else errors + _validate_template(obj)


class DeviceClassStrategy(RevalidatingStrategy):
    """The strategy of deviceclasses."""

    generation = True
    delete_returns_object = True

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return [] if prefix and from_minor(35) else names.long_name(name)  # the generated name is validated, not its prefix

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_class(obj.get("spec") or {}, None)

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return [] if from_minor(35) else _validate_class(obj.get("spec") or {}, None)

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_class(obj.get("spec") or {}, old.get("spec") or {})


def _default(spec: Object) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for part in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if part is not None:
                part["allocationMode"] = part.get("allocationMode") or "ExactCount"
                if part["allocationMode"] == "ExactCount":
                    part["count"] = part.get("count") or 1


def _type(struct: str) -> Type:
    """Returns a type of the newest version of the minor."""
    return features.current().types.type_of(f"k8s.io/api/resource/{'v1' if from_minor(34) else 'v1beta2'}.{struct}")


def _validate_immutable_spec(obj: Object, old: Object, struct: str) -> list[FieldError]:
    spec = obj.get("spec") or {}
    type_ = _type(struct)
    if semantic_deep_equal_as(type_, spec, old.get("spec")):
        return []
    hidden = struct == "ResourceClaimSpec" and holds_declared_rules()
    return [immutable("spec", None if hidden else to_internal(struct, spec))]


def _validate_template(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = validate_template_metadata(spec.get("metadata") or {}, "spec.metadata")
    return errors + _validate_spec(spec.get("spec") or {}, "spec.spec")


def _problems_with_extended_name(name: str) -> list[str]:
    """Returns what the declared rule says of the name of an extended resource (k8s-extended-resource-name)."""
    texts = []
    if "/" not in name:
        texts.append("a name must be a domain-prefixed path, such as 'example.com/my-prop'")
    elif "kubernetes.io/" in name:
        texts.append('must not have "kubernetes.io/" domain')
    if name.startswith("requests."):
        texts.append('must not have "requests." prefix')
    return texts + names.count_in_bytes(label_key(f"requests.{name}"))  # a quota has such a name


def _validate_class(spec: Object, old: Object | None) -> list[FieldError]:
    errors = validate_selectors(spec.get("selectors") or (), "spec.selectors")
    stored = old is not None and semantic_deep_equal(spec.get("config"), old.get("config"))
    errors += validate_slice(spec.get("config") or (), "spec.config", partial(validate_configuration, stored=stored))
    name = spec.get("extendedResourceName")
    if name is not None and holds_declared_rules():
        errors += [invalid("spec.extendedResourceName", name, text) for text in _problems_with_extended_name(name)]
    elif name is not None and not is_extended(name):
        errors.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return errors


# --- Administrators ---------------------------------------------------------------------------------------------------


def _validate_admin_access(context: WriteContext, spec: Object) -> list[FieldError]:
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            return _validate_admin_namespace(context, f"spec.devices.requests[{index}].adminAccess")
    return []


def _validate_admin_namespace(context: WriteContext, path: str) -> list[FieldError]:
    namespace = context.services.get("", "namespaces", "", context.namespace) or {"metadata": {}}
    if (namespace["metadata"].get("labels") or {}).get(_ADMIN_LABEL) == "true":
        return []
    text = f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing namespace"
    return [forbidden(path, text)]


# --- Claims -----------------------------------------------------------------------------------------------------------


def _validate_spec(spec: Object, path: str) -> list[FieldError]:
    devices, path = spec.get("devices") or {}, f"{path}.devices"
    known = _request_names(spec)
    requests = [{name: value for name, value in item.items() if value != []} for item in devices.get("requests") or ()]
    check = partial(_validate_request, _used_attributes(devices.get("constraints") or ()))
    errors = validate_set(requests, f"{path}.requests", check, lambda item: item.get("name", ""), member="name")
    errors += validate_slice(devices.get("constraints") or (), f"{path}.constraints", partial(_validate_constraint, known))
    return errors + validate_slice(devices.get("config") or (), f"{path}.config", partial(_validate_configuration, known))


def _request_names(spec: Object) -> _Requests:
    return {
        request.get("name", ""): frozenset(option.get("name", "") for option in request.get("firstAvailable") or ())
        for request in (spec.get("devices") or {}).get("requests") or ()
    }


#: The attributes that constraints name, by the request or `request/option` that they are about; "": all.
_Used = Mapping[str, frozenset[str]]


def _used_attributes(constraints: Sequence[Object]) -> _Used:
    found: dict[str, frozenset[str]] = {}
    for constraint in constraints:
        name: str = constraint.get("matchAttribute") or constraint.get("distinctAttribute") or ""
        for request in constraint.get("requests") or ("",):
            found[request] = found.get(request, frozenset()) | {name}
    return found


def _attributes_for(used: _Used, *places: str) -> frozenset[str]:
    return frozenset[str]().union(*(used.get(place, ()) for place in ("", *places)))


def _validate_request(used: _Used, request: Object, path: str) -> list[FieldError]:
    name = request.get("name", "")
    errors = validate_device_name(name, f"{path}.name")
    exactly, options = request.get("exactly"), request.get("firstAvailable") or ()
    if exactly is None and not options:
        return [*errors, required(path, _KIND_OF_REQUEST)]
    if not from_minor(35):
        return errors + _validate_whole_request(exactly, options, path)
    if exactly is not None and options:
        errors.append(invalid(path, None, many_set(_KIND_OF_REQUEST)))
        if holds_declared_rules():
            return errors + _validate_declared_request(exactly, options, path)
        parts = {f"{path}.exactly": exactly, **{f"{path}.firstAvailable[{index}]": one for index, one in enumerate(options)}}
        return errors + [error for where, part in parts.items() for error in validate_declared_derived_attributes(part, where)]
    if exactly is not None:
        errors += validate_derived_attributes(exactly, f"{path}.exactly", _attributes_for(used, name))
        return errors + _validate_exact_request(exactly, f"{path}.exactly")

    def check(option: Object, where: str) -> list[FieldError]:
        places = (name, f"{name}/{option.get('name', '')}")
        return _validate_option(option, where) + validate_derived_attributes(option, where, _attributes_for(used, *places))

    where = f"{path}.firstAvailable"
    return errors + validate_set(options, where, check, lambda item: item.get("name", ""), most=OPTIONS, member="name")


def _validate_whole_request(exactly: Object | None, options: Sequence[Object], path: str) -> list[FieldError]:
    """Validates both members of a request, as 1.34 and before do."""
    where, errors = f"{path}.firstAvailable", list[FieldError]()
    if options:
        errors += validate_set(options, where, _validate_option, lambda item: item.get("name", ""), most=OPTIONS, member="name")
    if exactly is not None:
        errors += _validate_exact_request(exactly, f"{path}.exactly")
    return [*errors, invalid(path, None, many_set(_KIND_OF_REQUEST))] if exactly is not None and options else errors


def _validate_declared_request(exactly: Object, options: Sequence[Object], path: str) -> list[FieldError]:
    """Validates both members of a request by the declared rules, which do not ask which of them counts."""
    where = f"{path}.firstAvailable"
    errors = _validate_declared_part(exactly, f"{path}.exactly")
    return errors + validate_set(options, where, _validate_declared_option, lambda item: item.get("name", ""), most=OPTIONS)


def _validate_declared_option(option: Object, path: str) -> list[FieldError]:
    name, where = option.get("deviceClassName", ""), f"{path}.deviceClassName"
    errors = invalid_each(where, name, in_declared_words(names.long_name(name))) if name else [required(where)]
    return errors + _validate_declared_part(option, path)


def _validate_declared_part(request: Object, path: str) -> list[FieldError]:
    mode, selectors = request.get("allocationMode", ""), len(request.get("selectors") or ())
    errors = [too_many(f"{path}.selectors", selectors, MAX_ITEMS)] if selectors > MAX_ITEMS else []
    errors += [not_supported(f"{path}.allocationMode", mode, MODES)] if mode not in ("", *MODES) else []
    for index, toleration in enumerate(request.get("tolerations") or ()):
        where = f"{path}.tolerations[{index}]"
        errors += [error for error in _validate_toleration(toleration, where) if error.path != f"{where}.value"]
    return errors + validate_declared_derived_attributes(request, path)


def _validate_option(option: Object, path: str) -> list[FieldError]:
    errors = validate_device_name(option.get("name", ""), f"{path}.name")
    return errors + _validate_exact_request(option, path, in_declared_words)


def _validate_exact_request(request: Object, path: str, words: Callable[[list[str]], list[str]] = list) -> list[FieldError]:
    """Validates a request, or one of its options.

    Args:
        request: the request or the option.
        path: its path in the object.
        words: brings the details about the name of a class into the words of the rule: a type declares that of options.
    """
    name, where = request.get("deviceClassName", ""), f"{path}.deviceClassName"
    errors = invalid_each(where, name, words(names.dns_subdomain(name))) if name else [required(where)]
    errors += validate_selectors(request.get("selectors") or (), f"{path}.selectors")
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All" and count:
        errors.append(invalid(f"{path}.count", count, f"must not be specified when allocationMode is '{mode}'"))
    elif mode == "ExactCount" and count < 1:
        errors.append(invalid(f"{path}.count", count, POSITIVE))
    elif mode not in MODES:
        errors.append(not_supported(f"{path}.allocationMode", mode, MODES))
    for index, toleration in enumerate(request.get("tolerations") or ()):
        errors += _validate_toleration(toleration, f"{path}.tolerations[{index}]")
    return errors


def _validate_toleration(toleration: Object, path: str) -> list[FieldError]:
    key, operator, value = (toleration.get(field, "") for field in ("key", "operator", "value"))
    errors = label_name(key, f"{path}.key") if key else []
    if operator == "Exists" and value:
        errors.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        errors += invalid_each(f"{path}.value", value, names.label_value(value))
    elif not operator:
        errors.append(required(f"{path}.operator"))
    elif operator not in OPERATORS:
        errors.append(not_supported(f"{path}.operator", operator, OPERATORS))
    return errors + (validate_taint_effect(toleration["effect"], f"{path}.effect") if toleration.get("effect") else [])


def _validate_constraint(known: _Requests, constraint: Object, path: str) -> list[FieldError]:
    errors = _validate_references(known, constraint.get("requests") or (), f"{path}.requests")
    fields = [field for field in ("matchAttribute", "distinctAttribute") if field in constraint]
    for field in fields if holds_declared_rules() else fields[:1]:
        errors += validate_fully_qualified_name(constraint[field], f"{path}.{field}", is_declared=holds_declared_rules())
    if fields:
        return errors
    if features.current().enabled("DRAConsumableCapacity"):
        return [*errors, required(path, _KIND_OF_CONSTRAINT)]
    return [*errors, required(f"{path}.matchAttribute")]


def _validate_configuration(known: _Requests, item: Object, path: str) -> list[FieldError]:
    return _validate_references(known, item.get("requests") or (), f"{path}.requests") + validate_configuration(item, path)


def _validate_references(known: _Requests, requests: Sequence[str], path: str) -> list[FieldError]:
    return validate_set(requests, path, partial(_validate_reference, known), str)


def _validate_reference(known: _Requests, name: str, path: str) -> list[FieldError]:
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid(path, name, _NOT_A_REQUEST)]
    errors = [error for part in parts for error in validate_device_name(part, path)]
    found = parts[0] in known and (len(parts) == 1 or parts[1] in known[parts[0]])
    return errors if found else [*errors, invalid(path, name, _NOT_A_REQUEST)]


# --- Status -----------------------------------------------------------------------------------------------------------


class _StatusStrategy(StatusStrategy):
    """The strategy of /status: the status of a device is dropped together with its allocation."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        super().prepare_for_update(context, obj, old)
        status = obj.get("status") or {}
        gone = _allocated_identities(old.get("status") or {}) - _allocated_identities(status)
        kept = [device for device in status.get("devices") or () if _identity(device) not in gone]
        if kept:
            status["devices"] = kept
        else:
            status.pop("devices", None)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        granted, requested = (_admin_results(o.get("status") or {}) for o in (old, obj))
        path = f"status.allocation.devices.results[{requested[0]}].adminAccess" if requested else ""
        errors = _validate_admin_namespace(context, path) if requested and not granted else []
        errors += authorize_status(context, obj.get("status") or {}, old.get("status") or {})
        return errors + super().validate_update(context, obj, old)


def _admin_results(status: Object) -> list[int]:
    return [index for index, result in enumerate(_results(status)) if result.get("adminAccess")]


def _results(status: Object) -> Sequence[Object]:
    found: Sequence[Object] = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return found


def _identity(device: Object) -> str:
    parts = [device.get(field, "") for field in ("driver", "pool", "device", "shareID")]
    return "/".join(parts if parts[-1] else parts[:-1])


def _device_id(device: Object) -> dict[str, Any]:
    """Returns the identity of a device as messages show it; texts that are unique in memory have no JSON until 1.34."""
    names = {"Driver": "driver", "Pool": "pool", "Device": "device", "ShareID": "shareID"}
    return {name: device.get(field, "") if from_minor(35) else {} for name, field in names.items()}


def _allocated_identities(status: Object) -> frozenset[str]:
    return frozenset(map(_identity, _results(status)))


def _validate_status(obj: Object, old: Object) -> list[FieldError]:
    status, before = obj.get("status") or {}, old.get("status") or {}
    reserved, path = status.get("reservedFor") or (), "status.reservedFor"
    errors = validate_set(reserved, path, _validate_user, lambda user: user.get("uid", ""), most=_RESERVATIONS, member="uid")
    errors += validate_set(
        status.get("devices") or (),
        "status.devices",
        partial(_validate_device, _allocated_identities(status)),
        _identity,
        most=UNLIMITED,
        shown=_device_id,
        member="deviceID",
    )
    allocation, earlier = status.get("allocation"), before.get("allocation")
    if reserved and allocation is None:
        errors.append(forbidden(path, "may not be specified when `allocated` is not set"))
    elif reserved and "deletionTimestamp" in obj["metadata"]:
        known = before.get("reservedFor") or ()
        if any(user not in known for user in reserved):
            text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            errors.append(forbidden(path, text))
    type_ = _type("AllocationResult")
    if allocation is not None and earlier is not None and not semantic_deep_equal_as(type_, allocation, earlier):
        if holds_declared_rules():
            errors.append(invalid("status.allocation", None, "field cannot be modified once set"))
        else:
            errors.append(immutable("status.allocation", to_internal("AllocationResult", allocation)))
    elif allocation is not None and earlier is None:
        errors += _validate_allocation(allocation, "status.allocation", _request_names(obj.get("spec") or {}))
    return errors


def _validate_user(user: Object, path: str) -> list[FieldError]:
    return [required(f"{path}.{field}") for field in ("resource", "name", "uid") if not user.get(field)]


def _validate_device(allocated: frozenset[str], device: Object, path: str) -> list[FieldError]:
    errors = validate_csi_driver_name(device.get("driver", ""), f"{path}.driver")
    errors += validate_pool_name(device.get("pool", ""), f"{path}.pool")
    errors += validate_device_name(device.get("device", ""), f"{path}.device")
    if "shareID" in device:
        errors += validate_uid(device["shareID"], f"{path}.shareID")
    if _identity(device) not in allocated:
        errors.append(invalid(path, _device_id(device), "must be an allocated device in the claim"))
    device_conditions = device.get("conditions") or ()
    if len(device_conditions) > CONDITIONS:
        errors.append(too_many(f"{path}.conditions", len(device_conditions), CONDITIONS))
    errors += conditions(device_conditions, f"{path}.conditions")
    if "data" in device:
        errors += validate_raw_object(device["data"], f"{path}.data")
    return errors + _validate_network(device.get("networkData") or {}, f"{path}.networkData")


def _validate_network(network: Object, path: str) -> list[FieldError]:
    limits = {"interfaceName": INTERFACE_NAME_LENGTH, "hardwareAddress": HARDWARE_ADDRESS_LENGTH}
    errors = [
        too_long(f"{path}.{field}", longest)
        for field, longest in limits.items()
        if not names.fits(network.get(field, ""), longest)
    ]

    def address(text: Any, where: str) -> list[FieldError]:
        return ip.interface_address(where, text)

    return errors + validate_set(network.get("ips") or (), f"{path}.ips", address, str, most=_NETWORK_ADDRESSES)


def _validate_allocation(allocation: Object, path: str, known: _Requests) -> list[FieldError]:
    devices = allocation.get("devices") or {}
    errors = validate_slice(devices.get("results") or (), f"{path}.devices.results", partial(_validate_result, known))
    where = f"{path}.devices.config"
    errors += validate_slice(devices.get("config") or (), where, partial(_validate_allocated_configuration, known), 2 * MAX_ITEMS)
    if "nodeSelector" in allocation:
        errors += node_selector(allocation["nodeSelector"], f"{path}.nodeSelector")
    return errors


def _validate_result(known: _Requests, result: Object, path: str) -> list[FieldError]:
    errors = _validate_reference(known, result.get("request", ""), f"{path}.request")
    errors += validate_declared_driver_name(result.get("driver", ""), f"{path}.driver")
    errors += validate_declared_pool_name(result.get("pool", ""), f"{path}.pool")
    errors += validate_device_name(result.get("device", ""), f"{path}.device")
    errors += validate_binding_conditions(result, path)
    if from_minor(37):
        for index, toleration in enumerate(result.get("tolerations") or ()):
            errors += _validate_toleration(toleration, f"{path}.tolerations[{index}]")
    errors += validate_skip_node_operations(result.get("skipNodeOperations") or (), f"{path}.skipNodeOperations")
    return errors + (validate_uid(result["shareID"], f"{path}.shareID") if "shareID" in result else [])


def _validate_allocated_configuration(known: _Requests, item: Object, path: str) -> list[FieldError]:
    source, where = item.get("source", ""), f"{path}.source"
    errors = [required(where)] if not source else []
    if source and source not in SOURCES:
        errors.append(not_supported(where, source, SOURCES))
    return errors + _validate_configuration(known, item, path)


STATUS: Strategy = _StatusStrategy(_validate_status, keeps_metadata=True, resets=(("metadata",), ("spec",)))
