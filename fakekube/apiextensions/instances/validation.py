"""Validates values against the keywords of a schema, with the messages and in the order of the real server.

The order: type, then `allOf`, `anyOf`, `oneOf` and `not`, then the keywords of strings, formats, numbers, arrays, enums,
objects. Structural rules that are not OpenAPI keywords (list types, embedded resources) follow.

Specified by: k8s.io/kube-openapi/pkg/validation/validate, k8s.io/apiextensions-apiserver/pkg/apiserver/validation
(conversion to field errors), schema/listtype, schema/objectmeta.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakekube.apiextensions.instances.best_match import best_match
from fakekube.apiextensions.instances.number_validation import number_errors
from fakekube.apiextensions.instances.objects import is_same
from fakekube.apiextensions.instances.value_types import format_errors, type_errors
from fakekube.apiextensions.schema.structural import holds
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.errors import FieldError, field
from fakekube.apimachinery.schema.model import ListType, Shape, Type
from fakekube.apimachinery.schema.trees import in_order
from fakekube.base.golang.strconv import go_integer

__all__ = ["becomes", "list_errors", "value_errors"]

Schema = Mapping[str, Any]


#: Marks the absence of an old value.
NONE_BEFORE: Final = object()


def value_errors(schema: Schema, value: Any, path: str = "", before: Any = NONE_BEFORE) -> list[FieldError]:
    """Validates a value by the keywords of a schema; errors of several branches are reported once.

    Parts that are equal in `before`, the old value, are not validated again (KEP-4008, ratcheting).
    """
    found = _errors(schema, value, path, before)
    if len(found) < 2:
        return found
    told: list[FieldError] = []
    for error in found:
        if error not in told:
            told.append(error)
    return told


def _errors(schema: Schema, value: Any, path: str, before: Any) -> list[FieldError]:
    if before is not NONE_BEFORE and is_same(value, before):
        return []
    if value is None:  # only type and enum are validated for null
        return [*(() if schema.get("nullable") else type_errors(schema, value, path)), *_enum_errors(schema, value, path)]
    errors = type_errors(schema, value, path)
    if not _COMBINING.isdisjoint(schema):
        errors += _combined_errors(schema, value, path)
    if isinstance(value, str):
        errors += _text_errors(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        errors += number_errors(schema, value, path)
    elif isinstance(value, list):
        errors += _array_errors(schema, value, path, before)
    errors += _enum_errors(schema, value, path)
    if isinstance(value, dict):
        errors += _object_errors(schema, value, path, before)
    return errors


_COMBINING = frozenset({"anyOf", "oneOf", "allOf", "not"})


def _combined_errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    """Validates the combinations. If all branches fail, the best match reports its errors. There is no ratcheting in them."""
    branches = schema.get("anyOf")
    if branches:
        found = [_errors(branch, value, path, NONE_BEFORE) for branch in branches]
        if all(found):
            yield field.invalid("", "", f'"{path}" must validate at least one schema (anyOf)')
            yield from found[best_match(branches, value, _is_valid)]
    branches = schema.get("oneOf")
    if branches:
        found = [_errors(branch, value, path, NONE_BEFORE) for branch in branches]
        valid = sum(not errors for errors in found)
        if valid != 1:
            suffix = ". Found none valid" if not valid else f". Found {valid} valid alternatives"
            yield field.invalid("", "", f'"{path}" must validate one and only one schema (oneOf){suffix}')
            if not valid:
                yield from found[best_match(branches, value, _is_valid)]
    branches = schema.get("allOf")
    if branches:
        found = [_errors(branch, value, path, NONE_BEFORE) for branch in branches]
        for errors in found:
            yield from errors
        if any(found):
            suffix = ". None validated" if all(found) else ""
            yield field.invalid("", "", f'"{path}" must validate all the schemas (allOf){suffix}')
    if "not" in schema and not _errors(schema["not"], value, path, NONE_BEFORE):
        yield field.invalid("", "", f'"{path}" must not validate the schema (not)')


def _is_valid(schema: Schema, value: Any) -> bool:
    return not _errors(schema, value, "", NONE_BEFORE)


def _text_errors(schema: Schema, value: str, path: str) -> Iterator[FieldError]:
    """Validates length, pattern and format of a string."""
    maximum, minimum, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if maximum is not None and len(value) > maximum:
        yield field.too_long(path, maximum)
    elif minimum is not None and len(value) < minimum:
        yield field.invalid(path, value, f"{path} in body should be at least {minimum} chars long")
    elif pattern and not _search(pattern, value):
        yield field.invalid(path, value, f"{path} in body should match '{pattern}'")
    yield from format_errors(schema, value, path)


def _search(pattern: str, value: str) -> bool:
    from fakekube.base.golang.regexp import matcher

    return matcher(pattern)(value)


def _array_errors(schema: Schema, value: list[Any], path: str, before: Any) -> Iterator[FieldError]:
    items = schema.get("items")
    if items:
        known = _by_keys(schema, before)
        for index, item in enumerate(value):
            item_before = known.get(_keys_of(schema, item), NONE_BEFORE) if known else NONE_BEFORE
            yield from _errors(items, item, f"{path}[{index}]", item_before)
    minimum, maximum = schema.get("minItems"), schema.get("maxItems")
    if minimum is not None and len(value) < minimum:
        yield field.invalid(path, len(value), f"{path} in body should have at least {minimum} items")
    if maximum is not None and len(value) > maximum:
        yield field.too_many(path, len(value), maximum)


def _by_keys(schema: Schema, items: Any) -> dict[bytes, Any]:
    """Returns the items of a list of type map by their keys; items of other lists cannot be correlated."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(items, list):
        return {}
    return {_keys_of(schema, item): item for item in items}


def _keys_of(schema: Schema, item: Any) -> bytes:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    return json.dumps([item.get(key) for key in keys]) if keys and isinstance(item, dict) else b""


def _enum_errors(schema: Schema, value: Any, path: str) -> list[FieldError]:
    allowed = schema.get("enum")
    if not allowed or any(becomes(value, item) for item in allowed):
        return []
    told = [item if isinstance(item, str) else json.dumps(item).decode() for item in allowed]
    return [field.not_supported(path, value, told, plain=True)]


def becomes(value: Any, item: Any) -> bool:
    """Reports whether a value, converted to the type of an allowed one, equals it. Null is never allowed, even if listed."""
    if value is None or item is None:
        return False
    if type(value) is type(item):
        return is_same(value, item)
    if isinstance(value, bool) or isinstance(item, bool):
        return False
    if isinstance(item, int) and isinstance(value, float):
        return go_integer(value) == item
    if isinstance(item, float) and isinstance(value, int):
        return float(value) == item
    return isinstance(item, str) and isinstance(value, int) and item == _character(value)


def _character(code: int) -> str:
    """Returns the result of Go's string(i) for an integer."""
    return chr(code) if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\N{REPLACEMENT CHARACTER}"


def _object_errors(schema: Schema, value: Mapping[str, Any], path: str, before: Any) -> Iterator[FieldError]:
    """Validates objects. The real server visits properties in the random order of a Go map; here they are sorted."""
    minimum, maximum = schema.get("minProperties"), schema.get("maxProperties")
    if minimum is not None and len(value) < minimum:
        yield field.invalid(path, len(value), f"{path} in body should have at least {minimum} properties")
    if maximum is not None and len(value) > maximum:
        yield field.too_many(path, len(value), maximum)
    properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
    old: Mapping[str, Any] = before if isinstance(before, dict) else {}
    if isinstance(values, Mapping):
        for name in sorted(value.keys() - properties.keys()):
            yield from _errors(values, value[name], f"{path}.{name}", old.get(name, NONE_BEFORE))
    for name in sorted(value.keys() & properties.keys()):
        yield from _errors(properties[name], value[name], _below(path, name), old.get(name, NONE_BEFORE))
    for name in schema.get("required") or ():
        if name not in value:
            yield field.required(_below(path, name))


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


# ---------------------------------------------------------------- list types


def list_errors(type_: Type, value: Any, path: str = "") -> list[FieldError]:
    """Returns errors for duplicate items of sets, and duplicate keys of maps."""
    if not holds(type_, _is_list_of_ones):
        return []
    if isinstance(value, dict):
        if type_.shape is Shape.MAP and type_.items is not None:
            items = type_.items
            return [e for name in sorted(value) for e in list_errors(items, value[name], f"{path}[{name}]")]
        fields = type_.fields if type_.shape is Shape.STRUCT else {}
        return [e for n in sorted(value) if n in fields for e in list_errors(fields[n].type, value[n], _below(path, n))]
    if isinstance(value, list) and type_.shape is Shape.LIST and type_.items is not None:
        errors = _duplicates(type_, value, path)
        for index, item in enumerate(value):
            errors += list_errors(type_.items, item, f"{path}[{index}]")
        return errors
    return []


def _is_list_of_ones(type_: Type) -> bool:
    """Reports whether the items of a list must be unique."""
    return type_.shape is Shape.LIST and type_.list_type is not ListType.ATOMIC


def _duplicates(type_: Type, value: list[Any], path: str) -> list[FieldError]:
    if type_.list_type is ListType.ATOMIC:
        return []
    is_map = type_.list_type is ListType.MAP
    if is_map:
        wrong = next((i for i, item in enumerate(value) if not isinstance(item, dict | None)), None)
        if wrong is not None:
            return [field.invalid(f"{path}[{wrong}]", value[wrong], "must be an object for an array of list-type map")]
    seen: dict[Any, int] = {}
    errors = []
    for index, item in enumerate(value):
        identity = {key: item[key] for key in type_.list_map_keys if key in (item or ())} if is_map else item
        known_as = _known_as(identity)
        seen[known_as] = seen.get(known_as, 0) + 1
        if seen[known_as] == 2:
            errors.append(field.duplicate(f"{path}[{index}]", identity))
    return errors


def _known_as(identity: Any) -> Any:
    """Returns a hashable value that only equal items share; 1, 1.0 and true are different."""
    return repr(in_order(identity)) if isinstance(identity, dict | list) else (type(identity), identity)
