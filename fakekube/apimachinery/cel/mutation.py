"""The results of expressions in mutating policies: apply configurations, and operations of JSON patches.

`Object{…}`, `Object.spec{…}` … are objects with any fields, whose type names contain their path; `JSONPatch{…}` is one operation.
The values in them become plain ones in two ways: `native` in apply configurations, `json_value` in JSON patches.

Specified by: k8s.io/apiserver/pkg/cel/mutation (dynamic/objects.go, jsonpatch.go), cel-go/common/types (ConvertToNative).
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.cel import values
from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.values import Opaque, kind_of
from fakekube.apimachinery.cel.views import Untyped
from fakekube.base.golang.strconv import GoValue, go_quote, go_type
from fakekube.base.golang.timestamps import print_duration


@dataclass(frozen=True, slots=True)
class ObjectValue(Opaque):
    """An object that an expression constructed; it has no schema."""

    type_name = "Object"
    name: str
    """The name of its type: `Object`, or for example `Object.spec.template`."""
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JSONPatch(Opaque):
    """A JSON patch operation; `value` is ABSENT if it has none."""

    type_name = "JSONPatch"
    op: str = ""
    path: str = ""
    source: str = ""
    value: Any = values.ABSENT


Maker = Callable[[Mapping[str, Any]], Opaque]

_TEXTS: Final[Mapping[str, str]] = {"op": "op", "path": "path", "from": "source"}


def _json_patch(fields: Mapping[str, Any]) -> JSONPatch:
    arguments: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "value":
            arguments["value"] = value
        elif name not in _TEXTS:
            raise EvaluationError(f"unexpected JSONPatchType field: {name}")
        elif isinstance(value, str):
            arguments[_TEXTS[name]] = value
        else:
            raise EvaluationError(f"unexpected type {go_type(value)} for JSONPatchType '{name}' field")
    return JSONPatch(**arguments)


def maker_of(name: str) -> Maker:
    """Returns the constructor of a message type, which takes the fields."""
    return _json_patch if name == "JSONPatch" else lambda fields: ObjectValue(name, fields)


class NotJSONError(Exception):
    """A value cannot be converted to JSON."""


# --- Apply configurations ---------------------------------------------------------------------------------------------


def native(value: Any) -> Any:
    """Converts a value of an apply configuration to JSON or a `GoValue`. Raises NotJSONError."""
    if isinstance(value, ObjectValue):
        return {name: _field(part) for name, part in value.fields.items()}
    if isinstance(value, Untyped):
        return value.raw
    kind = kind_of(value)
    if kind is list:
        return [native(item) for item in value]
    if kind is values.Mapping:
        return {_text_key(key): _field(value.find(key)) for key in value}
    make = _GO_VALUES.get(kind)
    if make is not None:
        return make(value)
    return GoValue(kind.go_type, str(value), str(value), value) if issubclass(kind, Opaque) else value


def _field(value: Any) -> Any:
    """Converts a field, where null has a type of its own."""
    return GoValue("structpb.NullValue", "NULL_VALUE", "0") if value is None else native(value)


def _text_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise NotJSONError("invalid return type: *dynamic.ObjectVal")


def _bytes(value: bytes) -> GoValue:
    numbers, digits = " ".join(map(str, value)), ", ".join(f"0x{byte:x}" for byte in value)
    return GoValue("[]uint8", f"[{numbers}]", f"[]uint8{{{digits}}}", value)


def _timestamp(value: values.Timestamp) -> GoValue:
    date, _, rest = str(values.Timestamp(value.nanoseconds)).partition("T")
    text = f"{date} {rest.removesuffix('Z')} +0000 UTC"
    return GoValue("time.Time", text, text, value)


_GO_VALUES: Final[Mapping[type, Callable[[Any], Any]]] = {
    values.UInt: lambda value: GoValue("uint64", str(int(value)), f"0x{int(value):x}", int(value)),
    bytes: _bytes,
    values.Duration: lambda value: GoValue("time.Duration", print_duration(value.nanoseconds), str(value.nanoseconds), value),
    values.Timestamp: _timestamp,
    values.CelType: lambda value: value.name,
    values.Optional: lambda value: native(value.content) if value.present else None,
}


# --- JSON patches -----------------------------------------------------------------------------------------------------

#: The largest integer that JSON represents exactly; larger ones become strings.
_SAFE_INTEGER: Final = (1 << 53) - 1


def json_value(value: Any) -> Any:
    """Converts a value of a JSON patch to JSON. Raises NotJSONError."""
    if isinstance(value, ObjectValue):
        return _struct(native(value))
    kind = kind_of(value)
    if kind is list:
        return [json_value(item) for item in value]
    if kind is values.Mapping:
        return {_json_key(key): json_value(value.find(key)) for key in value}
    if kind in (int, values.UInt):
        return int(value) if abs(value) <= _SAFE_INTEGER else str(int(value))
    if kind is bytes:
        return b64encode(value).decode()
    if kind in (values.Timestamp, values.Duration):
        return str(value)
    if kind is values.Optional:
        if not value.present:
            raise NotJSONError("optional.none() dereference")
        return json_value(value.content)
    if kind is values.CelType:
        raise NotJSONError("type conversion not supported for 'type'")
    if issubclass(kind, Opaque):
        name = kind.type_name if "authorization" in kind.type_name else kind.type_name.rpartition(".")[2]
        raise NotJSONError(f"type conversion error from '{name}' to '*structpb.Value'")
    return _number(value)


def _struct(value: Any) -> Any:
    """Converts the native value of an object like structpb, where every number is a double."""
    if isinstance(value, dict):
        return {name: _struct(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_struct(item) for item in value]
    if isinstance(value, GoValue):
        if value.type == "[]uint8":
            return b64encode(value.value).decode()
        if value.type != "uint64":
            raise NotJSONError(f"proto: invalid type: {value.type}")
        value = value.value
    return _number(float(value)) if value.__class__ is int else _number(value)


def _number(value: Any) -> Any:
    """Converts a double without a fraction to an integer. Raises NotJSONError if it is not finite."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        invalid = f"google.protobuf.Value.number_value: invalid {values.double_text(value)} value"
        raise NotJSONError(f"json: error calling MarshalJSON for type *structpb.Value: proto: {invalid}")
    return int(value) if value.is_integer() else value


def _json_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise NotJSONError(f"unsupported type conversion from '{values.type_of(key).name}' to string")


# --- Names of types ---------------------------------------------------------------------------------------------------


def type_mismatches(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yields an error for each object whose type name is not the path of its field."""
    if isinstance(value, ObjectValue):
        place = path or (value.name,)
        expected = ".".join(place)
        if value.name != expected:
            yield (
                f"unexpected type name {go_quote(value.name)}, expected {go_quote(expected)}, which matches field name path "
                "from root Object type"
            )
        for name, part in value.fields.items():
            yield from type_mismatches(part, (*place, name))
        return
    kind = kind_of(value)
    if kind is list:
        for item in value:
            yield from type_mismatches(item, path)
    elif kind is values.Mapping:
        for key in value:
            yield from type_mismatches(value.find(key), path)
