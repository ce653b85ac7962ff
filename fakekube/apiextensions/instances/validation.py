"""Validates values against the keywords of a schema, with the messages and in the order of the real server.

The order: type, then `allOf`, `anyOf`, `oneOf` and `not`, then the keywords of strings, formats, numbers, arrays, enums,
objects. Structural rules that are not OpenAPI keywords (list types, embedded resources) follow.

A schema has one type, two (x-kubernetes-int-or-string) or none. Values are validated by `supported_formats` of a schema,
defaults by the original schema. Whole numbers are integers; floats that are close enough to an integer are integers, too.

Numbers are compared as in Go: an integer is compared with the integer part of a bound.

If all schemas of a junctor reject a value, the errors are those of the one with the highest match count. The real server
counts the validators that it runs, whatever their result, and the types that match, recursively. So the branch that has most
of the value's properties wins; of equal ones, the first.

Specified by: k8s.io/kube-openapi/pkg/validation/validate (type.go, formats.go, values.go, schema_props.go, validator.go:
numberValidator, Result.MatchCount); k8s.io/apiextensions-apiserver/pkg/apiserver/validation (conversion to field errors;
formats.go: which formats count), schema/listtype, schema/objectmeta; github.com/go-openapi/swag (IsFloat64AJSONInteger).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

from fakekube.apiextensions.instances.formats import FORMATS
from fakekube.apiextensions.instances.objects import is_same, sorted_tree
from fakekube.apiextensions.schema import holds, schemas_in
from fakekube.apimachinery import features
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.errors import FieldError, field
from fakekube.apimachinery.errors.field import FieldErrorType
from fakekube.apimachinery.schema.model import ListType, Shape, Type
from fakekube.apimachinery.schema.paths import Schema
from fakekube.apimachinery.schema.trees import in_order
from fakekube.apis.validation.rules import from_minor
from fakekube.base.caches import BoundedCache
from fakekube.base.golang.strconv import INT32, INT64, go_integer, go_quote, plain

#: Marks the absence of an old value.
NONE_BEFORE: Final = object()


def value_errors(schema: Schema, value: Any, path: str = "", before: Any = NONE_BEFORE) -> list[FieldError]:
    """Validates a value by the keywords of a schema; errors of several branches are reported once.

    Parts that are equal in `before`, the old value, are not validated again (KEP-4008, ratcheting).
    """
    result: list[FieldError] = []
    alike: dict[tuple[object, ...], list[FieldError]] = {}  # their values cannot be hashed; there may be very many errors
    for error in _errors(schema, value, path, before):
        known = alike.setdefault((error.path, error.type, error.detail), [])
        if error not in known:
            known.append(error)
            result.append(error)
    return result


def _errors(schema: Schema, value: Any, path: str, before: Any) -> list[FieldError]:
    if before is not NONE_BEFORE and is_same(value, before) and _is_correlated(schema, value):
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


def _is_correlated(schema: Schema, value: Any) -> bool:
    """Reports whether the schema has all members of a value, which without them is never unchanged (CachedDeepEqual)."""
    if isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        parts = ((properties.get(name, others), item) for name, item in value.items())
        return all(isinstance(below, Mapping) and _is_correlated(below, item) for below, item in parts)
    if isinstance(value, list) and schema.get("x-kubernetes-list-type") == "map":
        return all(_is_correlated(schema.get("items") or {}, item) for item in value)
    return True


_COMBINING = frozenset({"anyOf", "oneOf", "allOf", "not"})


def _combined_errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    """Validates the combinations. If all branches fail, the best match reports its errors. There is no ratcheting in them."""
    branches = schema.get("anyOf")
    if branches:
        found = [_errors(branch, value, path, NONE_BEFORE) for branch in branches]
        if all(found):
            yield field.invalid("", "", f'"{path}" must validate at least one schema (anyOf)')
            yield from found[_best_match(branches, value, _is_valid)]
    branches = schema.get("oneOf")
    if branches:
        found = [_errors(branch, value, path, NONE_BEFORE) for branch in branches]
        valid = sum(not errors for errors in found)
        if valid != 1:
            suffix = ". Found none valid" if not valid else f". Found {valid} valid alternatives"
            yield field.invalid("", "", f'"{path}" must validate one and only one schema (oneOf){suffix}')
            if not valid:
                yield from found[_best_match(branches, value, _is_valid)]
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
    yield from _format_errors(schema, value, path)


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


class AllowedValues:
    """The values of an `enum`, which may be very many: a text is found at once, and the message is made once."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        self._texts = frozenset(item for item in values if isinstance(item, str))

    def __contains__(self, value: object) -> bool:
        if isinstance(value, str):
            return value in self._texts
        return any(becomes(value, item) for item in self.values)

    @cached_property
    def detail(self) -> str:
        """The detail of errors."""
        texts = [item if isinstance(item, str) else json.dumps(item).decode() for item in self.values]
        return field.not_supported("", "", texts).detail


_known_enums: Final[BoundedCache[int, AllowedValues]] = BoundedCache(64)
"""By the identity of the list in the schema."""


def allowed_values(values: Sequence[Any]) -> AllowedValues:
    """Returns the values of an `enum` in a schema; those of the latest schemas are kept."""
    found = _known_enums.get(id(values))
    if found is None or found.values is not values:
        found = AllowedValues(values)
        if len(values) >= _MIN_CACHED_VALUES:
            _known_enums.add(id(values), found, size=len(values) * _BYTES_PER_VALUE)
    return found


_MIN_CACHED_VALUES: Final = 16
"""The number of values from which on they are kept."""
_BYTES_PER_VALUE: Final = 200


def _enum_errors(schema: Schema, value: Any, path: str) -> list[FieldError]:
    values = schema.get("enum")
    if not values or value in (allowed := allowed_values(values)):
        return []
    return [FieldError(FieldErrorType.NOT_SUPPORTED, path, value, allowed.detail)]


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
        for name in sorted(value):  # a schema has either properties or values
            yield from _errors(values, value[name], f"{path}.{name}", old.get(name, NONE_BEFORE))
    for name in sorted(value.keys() & properties.keys()):
        yield from _errors(properties[name], value[name], _child_path(path, name), old.get(name, NONE_BEFORE))
    for name in schema.get("required") or ():
        if name not in value:
            yield field.required(_child_path(path, name))


def _child_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


# --- List types -------------------------------------------------------------------------------------------------------


def list_errors(type_: Type, value: Any, path: str = "") -> list[FieldError]:
    """Returns errors for duplicate items of sets, and duplicate keys of maps."""
    if not holds(type_, _has_unique_items):
        return []
    if isinstance(value, dict):
        if type_.shape is Shape.MAP and type_.items is not None:
            items = type_.items
            return [e for name in sorted(value) for e in list_errors(items, value[name], f"{path}[{name}]")]
        fields = type_.fields if type_.shape is Shape.STRUCT else {}
        return [e for n in sorted(value) if n in fields for e in list_errors(fields[n].type, value[n], _child_path(path, n))]
    if isinstance(value, list) and type_.shape is Shape.LIST and type_.items is not None:
        errors = _duplicates(type_, value, path)
        for index, item in enumerate(value):
            errors += list_errors(type_.items, item, f"{path}[{index}]")
        return errors
    return []


def _has_unique_items(type_: Type) -> bool:
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
        known_as = _hashable(identity)
        seen[known_as] = seen.get(known_as, 0) + 1
        if seen[known_as] == 2:
            errors.append(field.duplicate(f"{path}[{index}]", identity))
    return errors


def _hashable(identity: Any) -> Any:
    """Returns a hashable value that only equal items share; 1, 1.0 and true are different."""
    return repr(in_order(identity)) if isinstance(identity, dict | list) else (type(identity), identity)


_KINDS = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", type(None): "null", float: "number"}

#: JSON type → format of the value; other types have none.
_INFERRED = {"integer": "int64", "number": "float64"}

_FORMATS_OF_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}

#: The range in which a float can be an integer.
_SAFE = float(2**53 - 1)
_CLOSE = 1e-9


def types_of(schema: Schema) -> tuple[str, ...]:
    """Returns the types that a schema allows; empty means any."""
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    type_ = schema.get("type")
    return (type_,) if type_ else ()


def supported_formats(schema: Schema) -> Schema:
    """Returns a copy of the schema without the formats that its types do not support, recursively.

    Whole numbers in enums are integers, as they are read from the storage.
    """
    found = {name: _nested_types(name, value) for name, value in schema.items()}
    if "format" in found and not _is_supported(found["format"], types_of(schema)):
        del found["format"]
    return found


def _nested_types(keyword: str, value: Any) -> Any:
    if keyword == "properties":
        return {name: supported_formats(schema) for name, schema in value.items()}
    if keyword == "enum":
        return sorted_tree(value)
    if keyword in ("allOf", "anyOf", "oneOf"):
        return [supported_formats(schema) for schema in value]
    return supported_formats(value) if keyword in ("items", "additionalProperties", "not") and isinstance(value, dict) else value


def _is_supported(format_: str, types: tuple[str, ...]) -> bool:
    type_ = types[0] if len(types) == 1 else ""
    if format_.startswith("k8s-") and not from_minor(35):
        return False
    if type_ in ("", "string") or not from_minor(36):
        return format_.replace("-", "") in FORMATS or format_ == "password"
    return format_ in _FORMATS_OF_NUMBERS.get(type_, ())


def unrecognized_formats(schema: Schema) -> list[str]:
    """Returns the unrecognized formats anywhere in a schema; older minors look at those of strings only."""
    every = from_minor(36)
    parts = (part for part in schemas_in(schema) if part.get("format") and (every or part.get("type") == "string"))
    return [part["format"] for part in parts if not _is_supported(part["format"], (part["type"],) if part.get("type") else ())]


def _is_near_integer(value: float) -> bool:
    """Reports whether a float is an integer, or close enough to one: since 1.37 to the nearest one, before to that below."""
    if abs(value) > _SAFE:
        return False
    if value.is_integer():
        return True
    if from_minor(37):
        nearest = round(value)
        return abs(value - nearest) < _CLOSE * abs(nearest)
    below = float(int(value))
    return below > 0 and (value - below) / (value + below) < _CLOSE


def type_errors(schema: Schema, value: Any, path: str) -> list[FieldError]:
    """Returns at most one error."""
    types = types_of(schema)
    kind = _KINDS[type(value)]
    if kind in types or (not types and "format" not in schema):
        return []
    if value is None:
        return [_misfit(path, ",".join(types), "null")] if types else []
    if kind == "integer" and "number" in types:
        return []
    if kind == "number" and "integer" in types and _is_near_integer(value):
        return []
    format_ = schema.get("format", "")
    if format_ and kind in ("string", "array"):
        if not {"integer", "number"}.intersection(types):
            return []
    elif format_ and format_ != _INFERRED.get(kind):
        return [_misfit(path, format_, _INFERRED.get(kind, ""))]
    return [_misfit(path, ",".join(types), kind)] if types else []


def _format_errors(schema: Schema, value: str, path: str) -> list[FieldError]:
    """Returns one error if a string does not have the format, or none."""
    format_ = schema.get("format", "")
    check = FORMATS.get(format_.replace("-", ""))
    if check is None or check(value):
        return []
    return [field.type_invalid(path, value, f"{path} in body must be of type {format_}: {go_quote(value)}")]


def _misfit(path: str, wanted: str, found: str) -> FieldError:
    return field.type_invalid(path, found, f'{path} in body must be of type {wanted}: "{found}"')


_INTEGERS = {"int32": INT32, "int64": INT64}

#: The number of the first minor that validates the range of a number's type and format.
_RANGES_SINCE = 36

#: The largest number whose shortest decimal Go rounds to a 32-bit float.
_LARGEST_FLOAT = float.fromhex("0x1.ffffffp127")

_BOUNDS = (("maximum", "exclusiveMaximum", "less"), ("minimum", "exclusiveMinimum", "greater"))


def number_errors(schema: Schema, value: float, path: str) -> Iterator[FieldError]:
    """Validates a number. The bounds themselves must fit the type, too."""
    problem = _range_problem(schema, value, "Checked", path)
    if problem:
        yield field.invalid("", "", problem)
    step = schema.get("multipleOf")
    if step is not None:
        step = float(step)
        problem = _range_problem(schema, step, "MultipleOf", path)
        if problem:
            yield field.invalid("", "", problem)
        yield from _multiple_errors(float(value) if problem else value, step, path)
    for name, exclusive_name, word in _BOUNDS:
        bound = schema.get(name)
        if bound is None:
            continue
        problem = _range_problem(schema, float(bound), f"{name.capitalize()} boundary", path)
        if problem:
            yield field.invalid("", "", problem)
        yield from _bound_errors(float(value) if problem else value, float(bound), path, word, bool(schema.get(exclusive_name)))


def integer_limits(schema: Schema) -> tuple[int, int] | None:
    """Returns the minimum and maximum valid integer; None if `number_errors` has other checks for the schema."""
    bounds = {name: float(schema[name]) for name, _, _ in _BOUNDS if schema.get(name) is not None}
    if schema.get("multipleOf") is not None or any(_range_problem(schema, bound, "", "") for bound in bounds.values()):
        return None
    is_integer = types_of(schema) == ("integer",)
    if not is_integer and schema.get("format") == "float":
        return None
    if features.current().minor < _RANGES_SINCE:
        is_integer = False
    allowed = _INTEGERS.get(schema.get("format", "") if is_integer else "", _INTEGERS["int64"])
    low, high = allowed[0], allowed[-1]
    if "minimum" in bounds:
        low = max(low, go_integer(bounds["minimum"]) + bool(schema.get("exclusiveMinimum")))
    if "maximum" in bounds:
        high = min(high, go_integer(bounds["maximum"]) - bool(schema.get("exclusiveMaximum")))
    return low, high


def _range_problem(schema: Schema, value: float, what: str, path: str) -> str:
    """Returns the error for a number that does not fit the type or format."""
    if features.current().minor < _RANGES_SINCE:
        return ""
    types, format_ = types_of(schema), schema.get("format", "")
    if types == ("integer",):
        format_ = format_ if format_ in _INTEGERS else ""
        fits = not (isinstance(value, float) and not value.is_integer()) and _whole_number(value) in _INTEGERS[format_ or "int64"]
    elif types == ("number",) and format_ == "float":
        fits = abs(value) <= _LARGEST_FLOAT
    else:
        return ""
    if fits:
        return ""
    named = f"with format {format_}" if format_ else "(default format)"
    return f"{what} value must be of type {types[0]} {named} in {path}"


def _whole_number(value: float) -> int:
    """Returns the integer as Go prints a whole number: digits of a large float beyond its precision are zero."""
    return int(Decimal(repr(value)))


def _multiple_errors(value: float, step: float, path: str) -> Iterator[FieldError]:
    factor: float = go_integer(step) if isinstance(value, int) else step
    if factor <= 0:
        yield field.invalid(path, factor, f"factor MultipleOf declared for {path} must be positive: {plain(factor)}")
    elif not _is_multiple(value, factor):
        yield field.invalid(path, value, f"{path} in body should be a multiple of {plain(factor)}")


def _is_multiple(value: float, factor: float) -> bool:
    if isinstance(value, int):
        return not value % factor
    return _is_near_integer(1 / factor * value if factor < 1 else value / factor)


def _bound_errors(value: float, bound: float, path: str, word: str, exclusive: bool) -> Iterator[FieldError]:
    limit = go_integer(bound) if isinstance(value, int) else bound
    beyond = value > limit if word == "less" else value < limit
    if beyond or (exclusive and value == limit):
        suffix = "" if exclusive else " or equal to"
        yield field.invalid(path, value, f"{path} in body should be {word} than{suffix} {plain(limit)}")


IsValid = Callable[[Schema, Any], bool]

#: Validators that run for every value: combinations, enum, and the schema itself.
_ALWAYS = 3


def _best_match(schemas: Sequence[Schema], value: Any, is_valid: IsValid) -> int:
    """Returns the index of the best match among schemas that all reject the value."""
    counts = [_count(schema, value, is_valid) for schema in schemas]
    return counts.index(max(counts))


def _count(schema: Schema, value: Any, is_valid: IsValid) -> int:
    types = types_of(schema)
    if value is None:
        return 1 if schema.get("nullable") or not types else 0
    count = _ALWAYS + 1  # combinations add their own counts
    if types or schema.get("format"):
        count += 1 if type_errors(schema, value, "") else 2
    count += sum(_count(branch, value, is_valid) for branch in schema.get("allOf") or ())
    for name in ("anyOf", "oneOf"):
        branches = schema.get(name)
        if branches:
            count += _count_branches(branches, value, is_valid, one=name == "oneOf")
    if isinstance(value, str):
        count += 2 if schema.get("format") else 1
    elif isinstance(value, list):
        items = schema.get("items")
        count += 2 + (sum(_count(items, item, is_valid) for item in value) if items else 0)
    elif isinstance(value, dict):
        count += 1 + _count_members(schema, value, is_valid)
    elif not isinstance(value, bool):
        count += 2
    return count


def _count_branches(branches: Sequence[Schema], value: Any, is_valid: IsValid, *, one: bool) -> int:
    """Returns the count of the first valid branch, or else of the best match; 0 if too many are valid."""
    valid = [branch for branch in branches if is_valid(branch, value)]
    if one and len(valid) > 1:
        return 0
    return _count(valid[0] if valid else branches[_best_match(branches, value, is_valid)], value, is_valid)


def _count_members(schema: Schema, value: Mapping[str, Any], is_valid: IsValid) -> int:
    properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
    schemas = ((properties.get(name, values), item) for name, item in value.items())
    return sum(_count(schema_of, item, is_valid) for schema_of, item in schemas if isinstance(schema_of, Mapping))
