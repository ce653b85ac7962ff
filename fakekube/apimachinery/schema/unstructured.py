"""Converts an unstructured object to a built-in type, like the real server after a strategic merge.

The real server converts field by field instead of decoding JSON, so errors differ: the first one in the order of the
*type* ends the conversion, and its message has no path; integers that are too large wrap around; floats without a
fraction are integers. The keys of values of any type are sorted. Valid trees take the fast path of `decode`.

Specified by: k8s.io/apimachinery/pkg/runtime/converter.go (FromUnstructuredWithValidation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakekube.apimachinery.schema.decode import decode, decoder
from fakekube.apimachinery.schema.defaults import Defaulter
from fakekube.apimachinery.schema.known_specs import decode_changes, set_defaults
from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.apimachinery.schema.printing import always_printed, zero
from fakekube.apimachinery.schema.trees import holds_any_form, in_order
from fakekube.apimachinery.schema.walk import DecodeError, SlowPathRequired
from fakekube.base.golang import base64
from fakekube.base.golang.strconv import go_integer, json_number

#: The reflect.Kind of untyped values, and of the scalars of types.
_KINDS: Final = {str: "string", bool: "bool", int: "int64", float: "float64", list: "slice", dict: "map"}
_CLASSES: Final = {Shape.STRING: str, Shape.BOOLEAN: bool}


def from_unstructured(
    type_: Type,
    value: dict[str, Any],
    unknown: list[str] | None = None,
    *,
    decoded: Mapping[str, Any] | None = None,
    default: Defaulter | None = None,
) -> Any:
    """Returns a new tree in the form of `decode`, with the constant defaults of the kind.

    Args:
        type_: the type to convert to.
        value: plain JSON data; not changed, but values of any type in it become part of the result.
        unknown: collects the messages about unknown fields (`unknown field "spec.x"`), sorted.
        decoded: a decoded object of the type; what `value` shares with it is copied without decoding.
        default: sets the constant defaults of the kind; None: they are not set.

    Raises:
        DecodeError: the value does not fit the type.
    """
    if holds_any_form(type_):
        value = in_order(value)
    else:
        try:
            return decode_changes(type_, value, decoded or {}, default)
        except (SlowPathRequired, DecodeError):
            pass  # the whole value tells the first of its errors
    tree = _read(type_, value, unknown)
    if default is not None:
        set_defaults(default, tree)
    return tree


def _read(type_: Type, value: dict[str, Any], unknown: list[str] | None) -> Any:
    try:
        return decoder(type_)(value, None)
    except (SlowPathRequired, DecodeError):
        found: list[str] = []
        tree = _convert(type_, value, "", found)
        if unknown is not None:
            unknown.extend(sorted(f'unknown field "{path}"' for path in found))
        return tree


def _convert(type_: Type, value: Any, path: str, unknown: list[str]) -> Any:
    if value is None:
        return zero(type_)
    shape = type_.shape
    if shape is Shape.STRUCT:
        return _struct(type_, value, path, unknown)
    if shape is Shape.LIST:
        return _list(type_, value, path, unknown)
    if shape is Shape.MAP:
        return _map(type_, value, path, unknown)
    if shape is Shape.BYTES:
        return _bytes(value)
    if shape in (Shape.STRING, Shape.BOOLEAN, Shape.INTEGER, Shape.NUMBER):
        return _scalar(type_, value)
    return decode(type_, json_number(value) if type(value) is float else value)


def _struct(type_: Type, value: Any, path: str, unknown: list[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DecodeError(f"cannot restore struct from: {_kind(value)}")
    tree = {}
    always = dict(always_printed(type_))
    for name, field in type_.fields.items():
        item = value.get(name)
        if item is not None:
            item = _convert(field.type, item, _join_path(path, name), unknown)
            if item or field.pointer or not field.omit_empty or type(item) in (dict, list):
                tree[name] = item
        if name not in tree and name in always:
            tree[name] = always[name]()
    unknown.extend(_join_path(path, name) for name in value if name not in type_.fields)
    return tree


def _list(type_: Type, value: Any, path: str, unknown: list[str]) -> list[Any]:
    if not isinstance(value, list):
        raise DecodeError(f"cannot restore slice from {_kind(value)}")
    assert type_.items is not None
    return [_convert(type_.items, item, f"{path}[{index}]", unknown) for index, item in enumerate(value)]


def _map(type_: Type, value: Any, path: str, unknown: list[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DecodeError(f"cannot restore map from {_kind(value)}")
    assert type_.items is not None
    # Paths in messages do not contain the keys of maps.
    return {key: _convert(type_.items, value[key], path, unknown) for key in sorted(value)}


def _bytes(value: Any) -> str:
    if isinstance(value, list):
        numbers = (0 if item is None else _integer(item, 8, "uint8", "uint8") for item in value)
        return base64.encode(bytes(number % 256 for number in numbers))
    if not isinstance(value, str):
        raise DecodeError(f"cannot restore slice from {_kind(value)}")
    try:
        return base64.canonical(value)
    except base64.Base64Error as error:
        raise DecodeError(f"error decoding from json: {error}") from None


def _scalar(type_: Type, value: Any) -> Any:
    if type(value) is _CLASSES.get(type_.shape):
        return value
    if type_.shape is Shape.NUMBER and type(value) in (int, float):
        return value
    if type_.shape is Shape.INTEGER:
        return _integer(value, 64 if type_.format == "int64" else 32, type_.go, type_.format)
    if type_.shape is Shape.STRING and type(value) is int:
        raise DecodeError(f"cannot convert int64 to {type_.go}")
    kinds = {Shape.STRING: "string", Shape.BOOLEAN: "bool"}
    raise DecodeError(f"unrecognized type: {kinds.get(type_.shape, 'float64')}")


def _integer(value: Any, bits: int, go: str, kind: str) -> int:
    """Converts a number to a signed integer of `bits` bits with overflow."""
    if type(value) is float and not value.is_integer():
        raise DecodeError(f"cannot convert float64 to {go}")
    if type(value) is not int and type(value) is not float:
        raise DecodeError(f"unrecognized type: {kind}")
    half = 1 << (bits - 1)
    return (go_integer(value) + half) % (2 * half) - half


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "float64")


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
