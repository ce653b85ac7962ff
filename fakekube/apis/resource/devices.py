"""Checks that the kinds of dynamic resource allocation share, and DeviceTaintRules.

Specified by: pkg/apis/resource/validation/validation.go; k8s.io/api/resource/v1/types.go (limits);
pkg/apis/resource/validation (ValidateDeviceTaintRule), pkg/registry/resource/devicetaintrule,
pkg/apis/resource/v1/defaults.go.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.cel.compilation import devices
from fakekube.apimachinery.cel.types import ANY, BOOL, DYN, INT, STRING, Type
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, not_supported, required, too_long, too_many
from fakekube.apis.core.pods.volumes import validate_csi_driver_name
from fakekube.apis.rest.strategy import ConditionalStatusStrategy, Strategy, WriteContext, spec_as_stored
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import conditions, invalid_each, label_name, repeated_indices
from fakekube.apis.validation.expressions import compiled_type, expression_error, type_name
from fakekube.apis.validation.rules import from_minor, holds_declared_rules
from fakekube.base.golang.strings import json_text
from fakekube.base.golang.timestamps import ZERO_TIME
from fakekube.base.objects import Object

Check = Callable[[Any, str], list[FieldError]]

#: The maximum length of most lists of the group; of those that have none.
MAX_ITEMS = 32
UNLIMITED = sys.maxsize
_IDENTIFIER_LENGTH = 32
_EXPRESSION_LENGTH = _PARAMETERS_LENGTH = 10 * 1024
_BINDING_CONDITIONS = 4
_DERIVED_ATTRIBUTES = 32
EFFECTS = ("NoExecute", "NoSchedule", "None")

_uid_matches = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
_UID_FORM = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"
)


# --- Collections ------------------------------------------------------------------------------------------------------


def validate_slice(items: Sequence[Any], path: str, check: Check, most: int = MAX_ITEMS) -> list[FieldError]:
    """Validates all items of a list; none of them if there are too many (validateSlice), which counts from 1.35 on."""
    crowd = [too_many(path, len(items), most)] if len(items) > most else []
    if crowd and from_minor(35):
        return crowd
    return [error for index, item in enumerate(items) for error in check(item, f"{path}[{index}]")] + crowd


def validate_set(
    items: Sequence[Any],
    path: str,
    check: Check,
    key: Callable[[Any], Any],
    *,
    most: int = MAX_ITEMS,
    shown: Callable[[Any], Any] | None = None,
    member: str = "",
    by_hand: bool = False,
) -> list[FieldError]:
    """Validates all items of a list without duplicates (validateSet); the message shows the key, or the result of
    `shown`; a declared rule, as most are from 1.37 on that are not `by_hand`, shows the item. Before 1.35, duplicates have
    the path of the `member` that is the key.
    """
    errors = validate_slice(items, path, check, most)
    if len(items) > most and from_minor(35):
        return errors
    suffix = f".{member}" if member and not from_minor(35) else ""
    seen: set[Any] = set()
    for index, item in enumerate(items):
        if key(item) in seen:
            told = (shown or key)(item) if by_hand or not holds_declared_rules() else item
            errors.append(duplicate(f"{path}[{index}]{suffix}", told))
        seen.add(key(item))
    return errors


def validate_map(
    items: Mapping[str, Any], path: str, key: Check, check: Check, *, most: int = MAX_ITEMS, longest: int
) -> list[FieldError]:
    """Validates all keys and values of a map (validateMap); long keys are truncated in paths."""
    crowd = [too_many(path, len(items), most)] if len(items) > most else []
    if crowd and from_minor(35):
        return crowd
    errors = crowd
    for name in sorted(items):
        where = f"{path}[{_truncate(name, longest)}]"
        errors += [*key(name, path if from_minor(36) else where), *check(items[name], where)]
    return errors


def _truncate(name: str, longest: int) -> str:
    if len(name) <= longest:
        return name
    kept = longest - len("...")
    return f"{name[: (kept + 1) // 2]}...{name[len(name) - kept // 2 :]}"


# --- Names ------------------------------------------------------------------------------------------------------------


def validate_device_name(value: str, path: str) -> list[FieldError]:
    """Validates the name of a device, a request …: a DNS label."""
    return invalid_each(path, value, names.dns_label(value))


def validate_declared_device_name(value: str, path: str) -> list[FieldError]:
    """Validates the name of a counter or of a set of them: by the declared rule from 1.37 on (k8s-short-name)."""
    return invalid_each(path, value, in_declared_words(names.dns_label(value)))


def in_declared_words(details: list[str]) -> list[str]:
    """Returns details of a name as the declared rules say them from 1.37 on."""
    return names.count_in_bytes(details) if holds_declared_rules() else details


def validate_pool_name(value: str, path: str) -> list[FieldError]:
    if not value:
        return [required(path)]
    errors = [] if names.fits(value, names.SUBDOMAIN_LENGTH) else [too_long(path, names.SUBDOMAIN_LENGTH)]
    return errors + [e for part in value.split("/") for e in invalid_each(path, part, names.dns_subdomain(part))]


def validate_declared_pool_name(value: str, path: str) -> list[FieldError]:
    """Validates a pool in a result: by the declared rule from 1.37 on (k8s-resource-pool-name)."""
    return validate_segments(value, path) if value and holds_declared_rules() else validate_pool_name(value, path)


def validate_segments(value: str, path: str) -> list[FieldError]:
    """Validates the segments of a pool's name with the messages of declarative validation (ResourcePoolName)."""
    errors = [] if names.fits(value, names.SUBDOMAIN_LENGTH) else [too_long(path, names.SUBDOMAIN_LENGTH)]
    for index, part in enumerate(value.split("/")):
        if not part:
            errors.append(invalid(path, value, f"segment {index}: must not be empty"))
            continue
        errors += [invalid(path, part, f"segment {index}: {detail}") for detail in names.long_name(part)]
    return errors


def validate_declared_driver_name(value: str, path: str) -> list[FieldError]:
    """Validates a driver in a result or configuration: by the declared rule from 1.37 on (k8s-long-name-caseless)."""
    if not value or not holds_declared_rules():
        return validate_csi_driver_name(value, path)
    errors = [] if names.fits(value, names.LABEL_LENGTH) else [too_long(path, names.LABEL_LENGTH, "characters")]
    return errors + invalid_each(path, value, names.caseless_dns_subdomain(value))


def validate_uid(value: str, path: str) -> list[FieldError]:
    if _uid_matches(value):
        return []
    if holds_declared_rules():
        return [invalid(path, value, "must be a lowercase UUID in 8-4-4-4-12 format")]
    length = len(value)
    if not re.fullmatch("[0-9A-Fa-f-]*", value) or length not in (32, 36):
        problem = "invalid UUID format" if length in (32, 36, 38, 45) else f"invalid UUID length: {length}"
        return [invalid(path, value, f"error validating uid: {problem}")]
    return [invalid(path, value, _UID_FORM)]


def validate_qualified_name(value: str, path: str) -> list[FieldError]:
    """Validates an identifier with an optional domain, the prefix (several slashes are accepted)."""
    parts = value.split("/")
    if not value and not from_minor(35):
        return [required(path, "name required")]
    if len(parts) == 1:
        return _validate_identifier(value, path)
    if len(parts) > 2:
        return []
    domain, name = parts
    errors = validate_csi_driver_name(domain, path) if domain else [_is_empty(path, "the domain must not be empty")]
    return errors + (_validate_identifier(name, path) if name else [_is_empty(path, "the name must not be empty")])


def _is_empty(path: str, detail: str) -> FieldError:
    return invalid(path, "", detail) if from_minor(35) else required(path, detail)


def _validate_declared_qualified_name(value: str, path: str) -> list[FieldError]:
    """Validates an identifier with an optional prefix as a tag of the types says it (resourcesQualifiedName)."""
    parts = value.split("/")
    if len(parts) != 2:
        return validate_qualified_name(value, path)
    prefix, name = parts
    errors = [] if prefix else [invalid(path, "", "prefix must not be empty")]
    if prefix:
        errors += [] if names.fits(prefix, 63) else [too_long(path, 63)]
        errors += [invalid(path, prefix, f"prefix: {text}") for text in in_declared_words(names.dns_subdomain(prefix))]
    return errors + (_validate_identifier(name, path) if name else [invalid(path, "", "name must not be empty")])


_PREPARE, _UNPREPARE, _ALL = "NodePrepareResources", "NodeUnprepareResources", "*"
_SKIPPED_ALONE = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"


def validate_skip_node_operations(operations: Sequence[str], path: str) -> list[FieldError]:
    """Validates the operations of the node that are skipped: a set, as its type declares it (validateSkipNodeOperations)."""
    errors: list[FieldError] = []
    if _PREPARE in operations and _UNPREPARE not in operations and _ALL not in operations:
        errors.append(invalid(path, list(operations), _SKIPPED_ALONE))
    errors += [duplicate(f"{path}[{index}]", operations[index]) for index in repeated_indices(operations)]
    allowed = (_ALL, _PREPARE, _UNPREPARE)
    unknown = ((index, each) for index, each in enumerate(operations) if each not in allowed)
    return errors + [not_supported(f"{path}[{index}]", each, allowed) for index, each in unknown]


def validate_fully_qualified_name(value: str, path: str, *, is_declared: bool) -> list[FieldError]:
    """Validates an identifier with the domain of a driver; where a tag of the types says so, with its own texts."""
    errors = _validate_declared_qualified_name(value, path) if is_declared else validate_qualified_name(value, path)
    if "/" not in value and (value or from_minor(35)):
        text = (
            "a fully qualified name must be a domain and a name separated by a slash"
            if from_minor(35)
            else "must include a domain"
        )
        errors.append(invalid(path, value, text))
    return errors


def _validate_identifier(value: str, path: str) -> list[FieldError]:
    errors = [] if names.fits(value, _IDENTIFIER_LENGTH) else [too_long(path, _IDENTIFIER_LENGTH)]
    return errors + invalid_each(path, value, names.c_identifier(value))


# --- Parts ------------------------------------------------------------------------------------------------------------


def validate_selectors(items: Sequence[Object], path: str) -> list[FieldError]:
    """Validates CEL selectors of devices."""
    return validate_slice(items, path, _validate_selector)


def _validate_selector(item: Object, path: str) -> list[FieldError]:
    if "cel" not in item:
        return [required(f"{path}.cel")]
    return _validate_expression(item["cel"].get("expression", ""), f"{path}.cel.expression", _selects)


def _validate_expression(source: str, path: str, problem_with: Callable[[Type], str]) -> list[FieldError]:
    """Validates an expression about a device; `problem_with` tells what is wrong with its type."""
    if not names.fits(source, _EXPRESSION_LENGTH):
        return [too_long(path, _EXPRESSION_LENGTH)]
    found, problem = compiled_type(devices(), source)
    text = "" if found is None else problem_with(found)
    if text:
        return [invalid(path, source, text)]
    return [] if problem is None else [expression_error(path, source, problem)]


def _selects(found: Type) -> str:
    return "" if found in (BOOL, ANY) else f"must evaluate to bool or the unknown type, not {type_name(found)}"


def _derives(found: Type) -> str:
    lists = features.current().enabled("DRAListTypeAttributes")
    element = found.parameters[0] if lists and found.name == "list" else found
    if element in (BOOL, INT, STRING, ANY, DYN) or element.name == "kubernetes.Semver":
        return ""
    kinds = "a primitive scalar (string, integer, boolean, semver)"
    return f"must evaluate to {kinds}{' or a list of these scalars' if lists else ''}, not {type_name(found)}"


def validate_derived_attributes(request: Object, path: str, used: Container[str]) -> list[FieldError]:
    """Validates the attributes that a request derives by expressions; `used` are those of its constraints."""
    items = request.get("derivedAttributes") or ()

    def check(item: Object, where: str) -> list[FieldError]:
        name, source = item.get("name", ""), item.get("expression", "")
        errors = [] if not name or name in used else [invalid(f"{where}.name", name, _UNUSED)]
        return errors + (_validate_expression(source, f"{where}.expression", _derives) if source else [])

    where = f"{path}.derivedAttributes"
    errors = validate_set(items, where, check, lambda item: item.get("name", ""), most=UNLIMITED, by_hand=True)
    return errors + validate_declared_derived_attributes(request, path)


_UNUSED = "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request"


def validate_declared_derived_attributes(request: Object, path: str) -> list[FieldError]:
    """Validates what the types say of these attributes."""
    items, path, errors = request.get("derivedAttributes") or (), f"{path}.derivedAttributes", list[FieldError]()
    if len(items) > _DERIVED_ATTRIBUTES:
        return [too_many(path, len(items), _DERIVED_ATTRIBUTES)]
    for index, item in enumerate(items):
        name, where = item.get("name", ""), f"{path}[{index}]"
        errors += validate_fully_qualified_name(name, f"{where}.name", is_declared=True) if name else [required(f"{where}.name")]
        errors += [] if item.get("expression") else [required(f"{where}.expression")]
    return errors


def validate_configuration(item: Object, path: str, *, stored: bool = False) -> list[FieldError]:
    """Validates the parameters for a driver; `stored` ones may be longer than new ones."""
    opaque, path = item.get("opaque"), f"{path}.opaque"
    if opaque is None:
        return [required(path)]
    errors = validate_declared_driver_name(opaque.get("driver", ""), f"{path}.driver")
    longest = None if stored else _PARAMETERS_LENGTH
    return errors + validate_raw_object(opaque.get("parameters"), f"{path}.parameters", longest=longest)


def validate_raw_object(value: Any, path: str, *, longest: int | None = _PARAMETERS_LENGTH) -> list[FieldError]:
    """Validates that the value is a JSON object."""
    if value is None:
        return [required(path)]
    if longest is not None and len(json_text(value).encode()) > longest:
        return [too_long(path, longest)]
    return [] if isinstance(value, dict) else [invalid(path, "<value omitted>", "must be a valid JSON object")]


def validate_taint_effect(value: str, path: str) -> list[FieldError]:
    """Validates the effect of a taint or toleration."""
    effects = EFFECTS if from_minor(35) else EFFECTS[:2]
    return [] if value in effects else [not_supported(path, value, effects)]


def validate_binding_conditions(item: Object, path: str) -> list[FieldError]:
    """Validates binding conditions and binding failure conditions; either both lists are set, or none."""
    binding, failure = item.get("bindingConditions") or [], item.get("bindingFailureConditions") or []
    binding_path, fatal_path = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    errors = validate_slice(binding, binding_path, label_name, _BINDING_CONDITIONS)
    errors += validate_slice(failure, fatal_path, label_name, _BINDING_CONDITIONS)
    errors += [duplicate(f"{binding_path}[{index}]", binding[index]) for index in repeated_indices(binding)]
    repeated, bound = set(repeated_indices(failure)), set(binding)
    for index, kind in enumerate(failure):
        where = f"{fatal_path}[{index}]"
        if index in repeated:
            errors.append(duplicate(where, kind))
        if kind in bound:
            errors.append(invalid(where, kind, "bindingFailureConditions must not overlap with bindingConditions"))
    if not binding and failure:
        errors.append(
            invalid(binding_path, item.get("bindingConditions"), "bindingConditions are required to use bindingFailureConditions")
        )
    if not failure and binding:
        errors.append(
            invalid(
                fatal_path, item.get("bindingFailureConditions"), "bindingFailureConditions are required to use bindingConditions"
            )
        )
    return errors


# --- DeviceTaintRules -------------------------------------------------------------------------------------------------

_MAX_CONDITIONS: Final = 8


class DeviceTaintRuleStrategy(Strategy):
    """The strategy of devicetaintrules."""

    has_status = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        _taint_of(obj).setdefault("timeAdded", ZERO_TIME)

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        obj["metadata"]["generation"] = 1
        _set_date(context, obj)

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        taint, before = _taint_of(obj), (old.get("spec") or {}).get("taint") or {}
        _set_date(context, obj)
        if taint.get("effect") != before.get("effect") and taint["timeAdded"] == before.get("timeAdded"):
            taint["timeAdded"] = context.now()
        if spec_as_stored(context, obj, old) != old.get("spec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_spec(obj.get("spec") or {}, None)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_spec(obj.get("spec") or {}, old.get("spec") or {})


def _set_date(context: WriteContext, obj: Object) -> None:
    taint = _taint_of(obj)
    if taint.get("timeAdded") in (None, ZERO_TIME):
        taint["timeAdded"] = context.now()


def _taint_of(obj: Object) -> Object:
    taint: Object = obj.setdefault("spec", {}).setdefault("taint", {})
    return taint


def _validate_spec(spec: Object, old: Object | None) -> list[FieldError]:
    selector, taint = spec.get("deviceSelector") or {}, spec.get("taint") or {}
    errors: list[FieldError] = []
    for field, check in (("driver", validate_csi_driver_name), ("pool", validate_pool_name), ("device", validate_device_name)):
        if selector.get(field) is not None:
            errors += check(selector[field], f"spec.deviceSelector.{field}")
    errors += label_name(taint.get("key", ""), "spec.taint.key")
    if taint.get("value"):
        errors += invalid_each("spec.taint.value", taint["value"], names.label_value(taint["value"]))
    kind = taint.get("effect", "")
    if old is None or (old.get("taint") or {}).get("effect", "") != kind:
        errors += validate_taint_effect(kind, "spec.taint.effect") if kind else [required("spec.taint.effect")]
    return errors


def _validate_status(obj: Object, _old: Object) -> list[FieldError]:
    items = (obj.get("status") or {}).get("conditions") or []
    errors = conditions(items, "status.conditions")
    if len(items) > _MAX_CONDITIONS:
        errors.append(too_many("status.conditions", len(items), _MAX_CONDITIONS))
    return errors


STATUS = ConditionalStatusStrategy(_validate_status)
