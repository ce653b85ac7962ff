"""Values against the keywords of a schema, each fault in the real server's words and order.

The order: type, then what `allOf`, `anyOf`, `oneOf` and `not` say, then the keywords of strings, formats, numbers,
arrays, enums, objects. Structural rules that are no keywords of OpenAPI (unique lists, embedded resources) come after.

Specified by: k8s.io/kube-openapi/pkg/validation/validate, k8s.io/apiextensions-apiserver/pkg/apiserver/validation
(how faults become field errors), schema/listtype, schema/objectmeta.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakekube.codecs import json
from fakekube.crd.formats import FORMATS
from fakekube.errors import FieldError, field
from fakekube.errors.field import go_quote
from fakekube.schema.model import ListType, Shape, Type

__all__ = ["list_errors", "value_errors"]

Schema = Mapping[str, Any]


#: In the place of a value that was not there before.
NONE_BEFORE: Final = object()


def value_errors(schema: Schema, value: Any, path: str = "", before: Any = NONE_BEFORE) -> list[FieldError]:
    """What the keywords of a schema find wrong with a value.

    A part that is as it was `before` is not looked at again (KEP-4008, ratcheting).
    """
    if (before is not NONE_BEFORE and _same_tree(value, before)):
        return []
    if value is None:  # of which only the type and the enumeration are asked
        return [*(() if schema.get("nullable") else _type_errors(schema, value, path)), *_enum_errors(schema, value, path)]
    errors = list(_type_errors(schema, value, path))
    errors += _combined_errors(schema, value, path, before)
    if isinstance(value, str):
        errors += _string_errors(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        errors += _number_errors(schema, value, path)
    elif isinstance(value, list):
        errors += _array_errors(schema, value, path, before)
    errors += _enum_errors(schema, value, path)
    if isinstance(value, dict):
        errors += _object_errors(schema, value, path, before)
    return errors


def _same_tree(one: Any, other: Any) -> bool:
    return bool(one == other) and json.dumps(one) == json.dumps(other)  # 1, 1.0 and True are equal in Python


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", type(None): "null"}
    return kinds.get(type(value), "number")


def _type_errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    wanted = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [schema["type"]] if schema.get("type") else []
    kind = _kind(value)
    if isinstance(value, float) and value.is_integer() and "integer" in wanted:
        if abs(value) < 2**63:
            kind = "integer"
        elif schema.get("format"):
            wanted, kind = [schema["format"]], "float64"
    if wanted and kind not in wanted and not (kind == "integer" and "number" in wanted):
        yield field.type_invalid(path, kind, f'{path} in body must be of type {",".join(wanted)}: "{kind}"')
        return
    format_ = str(schema.get("format", "")).replace("-", "")
    check = FORMATS.get(format_)
    if isinstance(value, str) and check is not None and wanted == ["string"] and not check(value):
        yield field.type_invalid(path, value, f"{path} in body must be of type {schema['format']}: {go_quote(value)}")


def _combined_errors(schema: Schema, value: Any, path: str, before: Any) -> Iterator[FieldError]:
    branches = schema.get("anyOf")
    if branches:
        found = [value_errors(branch, value, path, before) for branch in branches]
        if all(found):
            yield field.invalid("", "", f'"{path}" must validate at least one schema (anyOf)')
            yield from min(found, key=len)
    branches = schema.get("oneOf")
    if branches:
        found = [value_errors(branch, value, path, before) for branch in branches]
        valid = sum(not errors for errors in found)
        if valid != 1:
            suffix = ". Found none valid" if not valid else f". Found {valid} valid alternatives"
            yield field.invalid("", "", f'"{path}" must validate one and only one schema (oneOf){suffix}')
            if not valid:
                yield from min(found, key=len)
    branches = schema.get("allOf")
    if branches:
        found = [value_errors(branch, value, path, before) for branch in branches]
        if any(found):
            suffix = ". None validated" if all(found) else ""
            yield field.invalid("", "", f'"{path}" must validate all the schemas (allOf){suffix}')
            for errors in found:
                yield from errors
    if "not" in schema and not value_errors(schema["not"], value, path):
        yield field.invalid("", "", f'"{path}" must not validate the schema (not)')


def _string_errors(schema: Schema, value: str, path: str) -> Iterator[FieldError]:
    maximum, minimum, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if maximum is not None and len(value) > maximum:
        yield field.too_long(path, maximum)
    elif minimum is not None and len(value) < minimum:
        yield field.invalid(path, value, f"{path} in body should be at least {minimum} chars long")
    elif pattern and not _search(pattern, value):
        yield field.invalid(path, value, f"{path} in body should match '{pattern}'")


def _search(pattern: str, value: str) -> bool:
    import re2

    return re2.search(pattern, value) is not None


_INTEGERS = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}

#: Of 32 bits.
_LARGEST_FLOAT = float.fromhex("0x1.fffffep127")


def _number_errors(schema: Schema, value: float, path: str) -> Iterator[FieldError]:
    if schema.get("type") == "integer":
        allowed = _INTEGERS.get(schema.get("format", ""), _INTEGERS["int64"])
        if (isinstance(value, float) and not value.is_integer()) or int(value) not in allowed:
            named = f"with format {schema['format']}" if schema.get("format") else "(default format)"
            yield field.invalid("", "", f"Checked value must be of type integer {named} in {path}")
    elif schema.get("format") == "float" and abs(value) > _LARGEST_FLOAT:
        yield field.invalid("", "", f"Checked value must be of type number with format float in {path}")
    step = schema.get("multipleOf")
    if step is not None and not _is_multiple(value, step):
        yield field.invalid(path, value, f"{path} in body should be a multiple of {_number(step)}")
    maximum, minimum = schema.get("maximum"), schema.get("minimum")
    if maximum is not None:
        if schema.get("exclusiveMaximum") and value >= maximum:
            yield field.invalid(path, value, f"{path} in body should be less than {_number(maximum)}")
        elif not schema.get("exclusiveMaximum") and value > maximum:
            yield field.invalid(path, value, f"{path} in body should be less than or equal to {_number(maximum)}")
    if minimum is not None:
        if schema.get("exclusiveMinimum") and value <= minimum:
            yield field.invalid(path, value, f"{path} in body should be greater than {_number(minimum)}")
        elif not schema.get("exclusiveMinimum") and value < minimum:
            yield field.invalid(path, value, f"{path} in body should be greater than or equal to {_number(minimum)}")


def _is_multiple(value: float, step: float) -> bool:
    quotient = value / step
    return abs(quotient - round(quotient)) < 1e-9 * max(abs(quotient), 1)


def _number(value: float) -> str:
    return json.dumps(value).decode()


def _array_errors(schema: Schema, value: list[Any], path: str, before: Any) -> Iterator[FieldError]:
    items = schema.get("items")
    if items:
        known = _by_keys(schema, before)
        for index, item in enumerate(value):
            yield from value_errors(items, item, f"{path}[{index}]", known.get(_keys_of(schema, item), NONE_BEFORE))
    minimum, maximum = schema.get("minItems"), schema.get("maxItems")
    if minimum is not None and len(value) < minimum:
        yield field.invalid(path, len(value), f"{path} in body should have at least {minimum} items")
    if maximum is not None and len(value) > maximum:
        yield field.too_many(path, len(value), maximum)
    if schema.get("uniqueItems") and len({json.dumps(item) for item in value}) < len(value):
        yield field.invalid(path, value, f"{path} in body shouldn't contain duplicates")


def _by_keys(schema: Schema, items: Any) -> dict[bytes, Any]:
    """The items of a list that is a map, by their keys; of no other list is it known which item became which."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(items, list):
        return {}
    return {_keys_of(schema, item): item for item in items}


def _keys_of(schema: Schema, item: Any) -> bytes:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    return json.dumps([item.get(key) for key in keys]) if keys and isinstance(item, dict) else b""


def _enum_errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    allowed = schema.get("enum")
    if allowed is not None and not any(_same(value, item) for item in allowed):
        yield field.not_supported(path, value, [item if isinstance(item, str) else json.dumps(item).decode() for item in allowed])


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _object_errors(schema: Schema, value: Mapping[str, Any], path: str, before: Any) -> Iterator[FieldError]:
    minimum, maximum = schema.get("minProperties"), schema.get("maxProperties")
    if minimum is not None and len(value) < minimum:
        yield field.invalid(path, len(value), f"{path} in body should have at least {minimum} properties")
    if maximum is not None and len(value) > maximum:
        yield field.too_many(path, len(value), maximum)
    for name in schema.get("required", ()):
        if name not in value:
            yield field.required(_below(path, name))
    properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
    old: Mapping[str, Any] = before if isinstance(before, dict) else {}
    for name in sorted(value):
        schema_of = properties.get(name, values)
        if isinstance(schema_of, Mapping):
            place = _below(path, name) if name in properties else f"{path}.{name}"
            yield from value_errors(schema_of, value[name], place, old.get(name, NONE_BEFORE))


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


# ---------------------------------------------------------------- list types


def list_errors(type_: Type, value: Any, path: str = "") -> list[FieldError]:
    """Items that stand twice in sets, and keys that stand twice in maps."""
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


def _duplicates(type_: Type, value: list[Any], path: str) -> list[FieldError]:
    if type_.list_type is ListType.ATOMIC:
        return []
    seen: dict[str, int] = {}
    errors = []
    for index, item in enumerate(value):
        identity = item
        if type_.list_type is ListType.MAP:
            if item is None:
                continue
            if not isinstance(item, dict):
                errors.append(field.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map"))
                continue
            identity = {key: item[key] for key in type_.list_map_keys if key in item}
        text = repr(_sorted(identity))  # 1 and 1.0 are two values
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            errors.append(field.duplicate(f"{path}[{index}]", identity))
    return errors


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
