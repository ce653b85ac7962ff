"""Fits what a strategic merge has made to its type, as the real server does where it does not go through
JSON.

The result of a strategic merge is not decoded from text but copied value by value into Go types, with rules
and messages of its own: whole floats become integers, integers wrap around, unlike shapes are refused. Only
what a patch has touched can be wrong, so only that is walked.

Specified by: k8s.io/apimachinery/pkg/runtime/converter.go (fromUnstructured).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fakekube.patch.errors import type_mismatch
from fakekube.patch.go_format import go_type
from fakekube.patch.strategic_schema import go_kind_of
from fakekube.schema.model import Shape, Type

__all__ = ["ConversionError", "convert"]


class ConversionError(Exception):
    """A value that cannot become one of its type; says so in the real server's words."""


def convert(type: Type, value: Any, patch: Any) -> Any:
    """The value with its numbers converted; shares what does not change.

    :param patch: what was merged into the value: an object stands for its members, anything else for all of
        the value.
    :raises ConversionError: for the first value that does not fit, in the order of the type's fields.
    """
    if type.shape is Shape.STRUCT and isinstance(value, dict) and isinstance(patch, dict):
        return _convert_touched(type, value, patch)
    return _CONVERTERS.get(type.shape, _keep)(type, value)


def _convert_touched(type: Type, value: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    touched = {key.rpartition("/")[2] if key.startswith("$") else key: item for key, item in patch.items()}
    if "$patch" in patch:
        touched = value
    return _with_members(type, value, {key: touched[key] for key in value.keys() & touched.keys()})


def _with_members(type: Type, value: dict[str, Any], patches: dict[str, Any]) -> dict[str, Any]:
    converted = value
    names = patches if len(patches) == 1 else [name for name in type.fields if name in patches]
    for name in names:
        field = type.fields.get(name)
        item = value[name]
        if field is None or item is None:
            continue
        new = convert(field.type, item, patches[name])
        if new is not item:
            if converted is value:
                converted = dict(value)
            converted[name] = new
    return converted


def _keep(type: Type, value: Any) -> Any:
    return value


def _struct(type: Type, value: Any) -> Any:
    if not isinstance(value, dict):
        raise ConversionError(f"cannot restore struct from: {_kind(value)}")
    return _with_members(type, value, value)


def _map(type: Type, value: Any) -> Any:
    if not isinstance(value, dict):
        raise ConversionError(f"cannot restore map from {_kind(value)}")
    assert type.items is not None
    items = type.items
    converted = {key: None if item is None else convert(items, item, item) for key, item in value.items()}
    return converted if any(converted[key] is not item for key, item in value.items()) else value


def _list(type: Type, value: Any) -> Any:
    if not isinstance(value, list):
        raise ConversionError(f"cannot restore slice from {_kind(value)}")
    assert type.items is not None
    converted = [None if item is None else convert(type.items, item, item) for item in value]
    return converted if any(a is not b for a, b in zip(converted, value, strict=True)) else value


def _bytes(type: Type, value: Any) -> Any:
    if not isinstance(value, str | list):
        raise ConversionError(f"cannot restore slice from {_kind(value)}")
    return value


def _string(type: Type, value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        raise ConversionError(f"cannot convert int64 to {type.go}")
    raise ConversionError("unrecognized type: string")


def _boolean(type: Type, value: Any) -> Any:
    if not isinstance(value, bool):
        raise ConversionError("unrecognized type: bool")
    return value


def _integer(type: Type, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConversionError(f"unrecognized type: {go_kind_of(type)}")
    if isinstance(value, float):
        if not value.is_integer():
            raise ConversionError(f"cannot convert float64 to {type.go}")
        value = int(value)
    bits = 64 if type.format != "int32" else 32
    half = 1 << (bits - 1)
    return value if -half <= value < half else (value + half) % (1 << bits) - half


def _number(type: Type, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConversionError("unrecognized type: float64")
    return value


def _quoted(type: Type, value: Any) -> Any:
    if not isinstance(value, str):
        raise ConversionError(type_mismatch(value, "Go value of type string"))
    return value


def _kind(value: Any) -> str:
    """reflect.Kind of a JSON value."""
    if isinstance(value, dict):
        return "map"
    return "slice" if isinstance(value, list) else go_type(value)


_CONVERTERS: dict[Shape, Callable[[Type, Any], Any]] = {
    Shape.STRUCT: _struct,
    Shape.MAP: _map,
    Shape.LIST: _list,
    Shape.BYTES: _bytes,
    Shape.STRING: _string,
    Shape.BOOLEAN: _boolean,
    Shape.INTEGER: _integer,
    Shape.NUMBER: _number,
    Shape.TIME: _quoted,
    Shape.MICRO_TIME: _quoted,
    Shape.DURATION: _quoted,
}
