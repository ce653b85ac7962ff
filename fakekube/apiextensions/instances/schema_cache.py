"""Compiled schemas: what can be derived from a schema alone, and a cache of it in the process.

Test suites install the same definitions in many fresh clusters. All values of the cache are derived from a schema and the
emulated minor, computed on first use, and shared by all clusters of the minor that have a definition with the schema. A served
schema has been validated, so a schema in the cache need not be validated again.

Invariants: the minor and the JSON text of a schema are its key; the schema and the values derived from it are immutable. The
least recently used schemas are evicted when their total size or their number exceeds its limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from fakekube.apiextensions.instances.formats import FORMATS
from fakekube.apiextensions.instances.validation import (
    allowed_values,
    integer_limits,
    number_errors,
    supported_formats,
    type_errors,
    types_of,
    unrecognized_formats,
)
from fakekube.apiextensions.schema import META_FIELDS, has_default, has_rules, schema_type
from fakekube.apimachinery import features
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.apimachinery.schema.paths import Schema
from fakekube.base.caches import forgets_by

if TYPE_CHECKING:
    from fakekube.apimachinery.cel import Rules


# --- Validators without error messages ---------------------------------------------------------------------------------
# Invariant: `fits(schema)` returns True exactly if `validation.value_errors` returns no errors; callers get the messages from
# there if it returns False. Checks that depend only on the Python type of a value are evaluated at compile time.
#
# Specified by: as `validation`, which a test compares it with.


Fits = Callable[[Any], bool]

_TEXTS = frozenset({"maxLength", "minLength", "pattern", "format"})

_SAMPLES: Mapping[type, Any] = {str: "", int: 0, bool: True, list: [], dict: {}}
"""The Python types whose values either all have, or all do not have, a type of a schema."""


def _accept(_value: Any) -> bool:
    return True


def _reject(_value: Any) -> bool:
    return False


def fits(schema: Schema) -> Fits:
    """Returns the compiled check of a schema."""
    checks = _checks(schema)
    return lambda value: checks[type(value)](value)


def _checks(schema: Schema) -> Mapping[type, Fits]:
    """Returns the checks of a schema, by the Python type of the value; `_accept` need not be called."""
    combined = _compile_junctors(schema)
    checks = {kind: _fits_kind(schema, kind) for kind in (*_SAMPLES, float)}
    if combined is not None:
        checks = {kind: _conjunction(check, combined) for kind, check in checks.items()}
    return {**checks, type(None): _fits_kind(schema, type(None))}


def _conjunction(first: Fits, second: Fits) -> Fits:
    if first is _accept or second is _accept:
        return second if first is _accept else first
    return lambda value: first(value) and second(value)


def _fits_kind(schema: Schema, kind: type) -> Fits:
    """Returns the check of values of one Python type."""
    if kind is type(None):
        allowed = bool(schema.get("nullable")) or not types_of(schema)
        return _accept if allowed and not schema.get("enum") else _reject
    if kind in _SAMPLES and type_errors(schema, _SAMPLES[kind], ""):
        return _reject
    return _conjunction(_of_kind(schema, kind) or _accept, _of_enum(schema) or _accept)


def _of_kind(schema: Schema, kind: type) -> Fits | None:
    if kind is str:
        return _of_text(schema) if _TEXTS.intersection(schema) else None
    if kind is float:
        return lambda value: not type_errors(schema, value, "") and not any(number_errors(schema, value, ""))
    if kind is int:
        limits = integer_limits(schema)
        if limits is None:
            return lambda value: not any(number_errors(schema, value, ""))
        low, high = limits
        return lambda value: low <= value <= high
    if kind is list:
        return _of_list(schema)
    return _of_object(schema) if kind is dict else None


def _of_text(schema: Schema) -> Fits:
    from fakekube.base.golang.regexp import matcher

    shortest, longest = schema.get("minLength") or 0, schema.get("maxLength")
    matches = matcher(schema["pattern"]) if schema.get("pattern") else _accept
    is_of_format: Callable[[str], bool] = FORMATS.get(schema.get("format", "").replace("-", ""), _accept)

    def check(value: str) -> bool:
        if len(value) < shortest or (longest is not None and len(value) > longest):
            return False
        return matches(value) and is_of_format(value)

    return check


def _of_enum(schema: Schema) -> Fits | None:
    allowed = schema.get("enum")
    return allowed_values(allowed).__contains__ if allowed else None


def _of_list(schema: Schema) -> Fits:
    checks = _checks(schema["items"]) if schema.get("items") else None
    minimum, maximum = schema.get("minItems") or 0, schema.get("maxItems")

    def check(value: list[Any]) -> bool:
        if len(value) < minimum or (maximum is not None and len(value) > maximum):
            return False
        return checks is None or all(checks[type(item)](item) for item in value)

    return check


def _of_object(schema: Schema) -> Fits:
    members = {name: _checks(below) for name, below in (schema.get("properties") or {}).items()}
    values = schema.get("additionalProperties")
    others = _checks(values) if isinstance(values, Mapping) else None
    required = frozenset(schema.get("required") or ())
    minimum, maximum = schema.get("minProperties") or 0, schema.get("maxProperties")

    def check(value: dict[str, Any]) -> bool:
        if not required <= value.keys() or len(value) < minimum or (maximum is not None and len(value) > maximum):
            return False
        for name, item in value.items():
            checks = members.get(name, others)
            if checks is not None:
                fits_item = checks[type(item)]
                if fits_item is not _accept and not fits_item(item):
                    return False
        return True

    return check


def _compile_junctors(schema: Schema) -> Fits | None:
    """Returns the check of allOf, anyOf, oneOf and not."""
    checks: list[Fits] = []
    if schema.get("anyOf"):
        some = [fits(branch) for branch in schema["anyOf"]]
        checks.append(lambda value: any(branch(value) for branch in some))
    if schema.get("oneOf"):
        single = [fits(branch) for branch in schema["oneOf"]]
        checks.append(lambda value: sum(branch(value) for branch in single) == 1)
    checks += [fits(branch) for branch in schema.get("allOf") or ()]
    if "not" in schema:
        wrong = fits(schema["not"])
        checks.append(lambda value: not wrong(value))
    return (lambda value: all(check(value) for check in checks)) if checks else None


# --- Objects that are already pruned and defaulted ---------------------------------------------------------------------
# Checks are compiled once for a type, down to the depth that objects have; a positive result saves a copy of the object.
#
# Invariant: `objects.prune`, `drop_nulls` and `default` do not change an object that passes. The reverse does not hold: an
# object that fails may stay unchanged, too.


Check = Callable[[Any], bool]
"""Reports whether an object or a list is pruned, and also defaulted if it was compiled for that."""


def is_pruned_and_defaulted(type_: Type, obj: Mapping[str, Any]) -> bool:
    """Reports whether an object is certainly pruned and defaulted. Its metadata is not checked."""
    return _check(type_, True)(_without_meta_fields(obj))


def is_pruned(type_: Type, obj: Mapping[str, Any]) -> bool:
    """Reports whether an object certainly has no unknown fields and no nulls. Its metadata is not checked."""
    return _check(type_, False)(_without_meta_fields(obj))


def _without_meta_fields(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in obj.items() if name not in META_FIELDS}


def _check(type_: Type, defaulted: bool) -> Check:
    key = "pruned and defaulted" if defaulted else "pruned"
    known: Check | None = type_.compiled.get(key)
    if known is None:
        known = type_.compiled[key] = _COMPILERS.get(type_.shape, _uncertain)(type_, defaulted)
    return known


def _uncertain(_type: Type, _defaulted: bool) -> Check:
    return lambda _value: False


def _struct(type_: Type, defaulted: bool) -> Check:
    if type_.embedded_resource:
        return _uncertain(type_, defaulted)
    fields, keeps = type_.fields, type_.preserve_unknown_fields
    wanted = frozenset(name for name, field in fields.items() if defaulted and has_default(field.type))
    checks: dict[str, Check] = {}

    def check(value: Any) -> bool:
        if value.__class__ is not dict or not wanted <= value.keys():
            return False
        for name, item in value.items():
            if name not in fields:
                if not keeps:
                    return False
            elif item.__class__ is dict or item.__class__ is list:
                below = checks.get(name)
                if below is None:
                    below = checks[name] = _check(fields[name].type, defaulted)
                if not below(item):
                    return False
            elif item is None:
                return False
        return True

    return check


def _list(type_: Type, defaulted: bool) -> Check:
    assert type_.items is not None
    return _compile_items(type_.items, list, lambda value: value, defaulted)


def _map(type_: Type, defaulted: bool) -> Check:
    assert type_.items is not None
    unknown = type_.keywords.get("additionalProperties") is True  # nothing is known about its values
    return _compile_items(Type(Shape.STRING) if unknown else type_.items, dict, dict.values, defaulted)


def _compile_items(items: Type, kind: type, values_of: Callable[[Any], Any], defaulted: bool) -> Check:
    below: Check | None = None

    def check(value: Any) -> bool:
        nonlocal below
        if value.__class__ is not kind:
            return False
        for item in values_of(value):
            if item.__class__ is dict or item.__class__ is list:
                if below is None:
                    below = _check(items, defaulted)
                if not below(item):
                    return False
            elif item is None:
                return False
        return True

    return check


def _any(type_: Type, _defaulted: bool) -> Check:
    settled = type_.preserve_unknown_fields or not type_.keywords
    return lambda _value: settled


_COMPILERS: Final[Mapping[Shape, Callable[[Type, bool], Check]]] = {
    Shape.STRUCT: _struct,
    Shape.LIST: _list,
    Shape.MAP: _map,
    Shape.ANY: _any,
}
"""Objects and lists in place of other types do not pass."""


#: The limit of the total size of the schemas' texts, in bytes; derived values of large ones take about ten times as much.
_MAXIMUM_SIZE: Final = 8 * 1024 * 1024
#: The limit of their number: values derived from small ones, such as compiled rules, take up to a hundred times as much.
_MAXIMUM_COUNT: Final = 500


class CompiledSchema:
    """A served schema, and the values derived from it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    @cached_property
    def type(self) -> Type:
        """The type of the values."""
        return schema_type(self.schema)

    @cached_property
    def keywords(self) -> Schema:
        """The schema by which values are validated."""
        return supported_formats(self.schema)

    @cached_property
    def unrecognized_formats(self) -> list[str]:
        """The unrecognized formats in the schema."""
        return unrecognized_formats(self.schema)

    @cached_property
    def fits(self) -> Fits:
        """Whether an object is valid by `keywords`."""
        return fits(self.keywords)

    @cached_property
    def rules(self) -> Rules | None:
        """Its x-kubernetes-validations; None if there are none."""
        if not has_rules(self.schema):
            return None
        from fakekube.apimachinery.cel import compile_rules  # imported late: that is slow, and most definitions have no rules

        return compile_rules(self.schema)


class _Cache:
    """The cached schemas by their texts, in the order of last use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._schemas: dict[bytes, CompiledSchema] = {}
        self._size = 0

    def get(self, text: bytes) -> CompiledSchema | None:
        with self._lock:
            found = self._schemas.pop(text, None)
            if found is not None:
                self._schemas[text] = found
            return found

    def add(self, text: bytes, new: CompiledSchema) -> None:
        with self._lock:
            self._remove(text)
            self._schemas[text] = new
            self._size += len(text)
            while self._size > _MAXIMUM_SIZE or len(self._schemas) > _MAXIMUM_COUNT:
                self._remove(next(iter(self._schemas)))

    def forget(self) -> None:
        """Removes all schemas; those of definitions that are served stay with these."""
        with self._lock:
            self._schemas.clear()
            self._size = 0

    def _remove(self, text: bytes) -> None:
        if self._schemas.pop(text, None) is not None:
            self._size -= len(text)


_cache = _Cache()
forgets_by(_cache.forget)


def find_compiled(schema: Schema) -> CompiledSchema | None:
    """Returns the cached schema if an equal one has been served in this process (and is therefore valid), else None."""
    return _cache.get(_text(schema))


def compile_schema(schema: Schema) -> CompiledSchema:
    """Adds a served schema to the cache and returns it. The schema must not be changed any more."""
    text = _text(schema)
    found = _cache.get(text)
    if found is None:
        found = CompiledSchema(schema)
        _cache.add(text, found)
    return found


def _text(schema: Schema) -> bytes:
    """Returns the key of a schema; minors differ in which schemas and values they accept."""
    return b"%d:%b" % (features.current().minor, json.dumps(schema, floats=False))
