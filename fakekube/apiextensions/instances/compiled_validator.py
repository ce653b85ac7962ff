"""Compiles a schema into closures that report whether a value is valid, without error messages.

Invariant: `fits(schema)` returns True exactly if `validation.value_errors` returns no errors; callers get the messages
from there if it returns False. Checks that depend only on the Python type of a value are evaluated at compile time.

Specified by: as `validation`, which a test compares it with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fakekube.apiextensions.instances.formats import FORMATS
from fakekube.apiextensions.instances.validation import becomes, integer_limits, number_errors, type_errors, types_of

Schema = Mapping[str, Any]
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
    return (lambda value: any(becomes(value, item) for item in allowed)) if allowed else None


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
