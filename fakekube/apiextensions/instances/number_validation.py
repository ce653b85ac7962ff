"""Validates numbers against the keywords of a schema, as in Go: an integer is compared with the integer part of a bound.

Specified by: k8s.io/kube-openapi/pkg/validation/validate (validator.go: numberValidator; values.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from fakekube.apiextensions.instances.value_types import is_near_integer, types_of
from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError, field
from fakekube.base.golang.fmt import plain
from fakekube.base.golang.strconv import go_integer

__all__ = ["integer_limits", "number_errors"]

Schema = Mapping[str, Any]

_INTEGERS = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}

#: The number of the first minor that validates the range of a number's type and format.
_RANGES_SINCE = 36

#: The largest 32-bit float.
_LARGEST_FLOAT = float.fromhex("0x1.fffffep127")

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
        fits = not (isinstance(value, float) and not value.is_integer()) and _written(value) in _INTEGERS[format_ or "int64"]
    elif types == ("number",) and format_ == "float":
        fits = abs(value) <= _LARGEST_FLOAT
    else:
        return ""
    if fits:
        return ""
    named = f"with format {format_}" if format_ else "(default format)"
    return f"{what} value must be of type {types[0]} {named} in {path}"


def _written(value: float) -> int:
    """Returns the integer as Go prints a whole number: digits of a large float beyond its precision are zero."""
    return int(Decimal(repr(value)))


def _multiple_errors(value: float, step: float, path: str) -> Iterator[FieldError]:
    if isinstance(value, int):
        factor: float = go_integer(step)
        if factor > 0:
            fits = not value % factor
    else:
        factor = step
        if factor > 0:
            fits = is_near_integer(1 / factor * value if factor < 1 else value / factor)
    if factor <= 0:
        yield field.invalid(path, factor, f"factor MultipleOf declared for {path} must be positive: {plain(factor)}")
    elif not fits:
        yield field.invalid(path, value, f"{path} in body should be a multiple of {plain(factor)}")


def _bound_errors(value: float, bound: float, path: str, word: str, exclusive: bool) -> Iterator[FieldError]:
    limit = go_integer(bound) if isinstance(value, int) else bound
    beyond = value > limit if word == "less" else value < limit
    if beyond or (exclusive and value == limit):
        suffix = "" if exclusive else " or equal to"
        yield field.invalid(path, value, f"{path} in body should be {word} than{suffix} {plain(limit)}")
