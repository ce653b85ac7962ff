"""Encodes OpenAPI documents in Protobuf with the messages of gnostic, the format that kubectl requests.

The messages correspond to the JSON, so each is a table of JSON name → field number and encoder of the value; combinators
make encoders of maps, alternatives and lists. Unknown members that start with "x-" are extensions, whose values are YAML.

Specified by: github.com/google/gnostic-models, openapiv2/OpenAPIv2.proto and openapiv3/OpenAPIv3.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from fakekube.apimachinery.codecs import json, yaml
from fakekube.apimachinery.codecs.protobuf.wire import encode_varint
from fakekube.base.caches import cached_bytes

Encoder = Callable[[Any], bytes]
"""Encodes a value as the fields of a message, or as the content of a scalar."""

_VARINT, _FIXED64, _BYTES = 0, 1, 2


_ONE_BYTE: Final = tuple(bytes((number,)) for number in range(0x80))
"""The encodings of small numbers: of all tags, and of most lengths."""


def _field(number: int, content: bytes, wire: int = _BYTES) -> bytes:
    tag = _ONE_BYTE[number << 3 | wire] if number < 16 else encode_varint(number << 3 | wire)
    if wire != _BYTES:
        return tag + content
    length = len(content)
    return tag + (_ONE_BYTE[length] if length <= 0x7F else encode_varint(length)) + content


def _text(value: Any) -> bytes:
    return str(value).encode()


def _any(value: Any) -> bytes:
    """Encodes any value as YAML (message Any); members keep their order."""
    if isinstance(value, dict):
        return _field(2, b"".join(yaml.dumps({key: inner}) for key, inner in value.items()))
    return _field(2, yaml.dumps(value))


class _Scalar:
    """The encoder of a scalar: its wire type, and its content."""

    def __init__(self, wire: int, content: Encoder) -> None:
        self.wire = wire
        self.content = content


_STRING: Final = _Scalar(_BYTES, _text)
_BOOLEAN: Final = _Scalar(_VARINT, lambda value: encode_varint(int(value)))
_INTEGER: Final = _Scalar(_VARINT, lambda value: encode_varint(int(value)))
_NUMBER: Final = _Scalar(_FIXED64, lambda value: struct.pack("<d", value))

Kind = _Scalar | Encoder
Entry = tuple[int, Kind]


def _encode_one(number: int, kind: Kind, value: Any) -> bytes:
    if isinstance(kind, _Scalar):
        return _field(number, kind.content(value), kind.wire)
    return _field(number, kind(value))


class _Repeated:
    """A repeated field."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind


class _Message:
    """A message; its fields are set by `define`, since messages are recursive."""

    def __init__(self, extension: int = 0) -> None:
        self._extension = extension
        self._fields: dict[str, tuple[int, Kind | _Repeated]] = {}

    def define(self, **fields: tuple[int, Kind | _Repeated]) -> None:
        """Sets the fields by JSON name; `_ref` and `_in` are $ref and in."""
        renamed = {"_ref": "$ref", "_in": "in", "_not": "not"}
        self._fields |= {renamed.get(name, name): entry for name, entry in fields.items()}

    def __call__(self, value: Mapping[str, Any]) -> bytes:
        parts: list[tuple[int, bytes]] = []
        for name, inner in value.items():
            entry = self._fields.get(name)
            if entry is None:
                if self._extension and name.startswith("x-"):
                    parts.append((self._extension, _field(self._extension, _encode_named(name, _any, inner))))
                continue
            number, kind = entry
            if isinstance(kind, _Repeated):
                parts += [(number, _encode_one(number, kind.kind, item)) for item in inner]
            else:
                parts.append((number, _encode_one(number, kind, inner)))
        parts.sort(key=lambda part: part[0])
        return b"".join(content for _, content in parts)


def _encode_named(name: str, kind: Kind, value: Any) -> bytes:
    return _field(1, _text(name)) + _encode_one(2, kind, value)


def _map(kind: Kind, number: int = 1) -> Encoder:
    """Makes a message with one repeated field of named values."""
    return lambda value: b"".join(_field(number, _encode_named(name, kind, inner)) for name, inner in value.items())


def _list(kind: Kind) -> Encoder:
    """Makes a message with one repeated field; a value that is not a list is a list of one item."""

    def encode(value: Any) -> bytes:
        items = value if isinstance(value, list) else [value]
        return b"".join(_encode_one(1, kind, item) for item in items)

    return encode


def _encode_either(choose: Callable[[Any], int], kinds: Mapping[int, Kind]) -> Encoder:
    """Makes a message with a oneof."""

    def encode(value: Any) -> bytes:
        number = choose(value)
        return _encode_one(number, kinds[number], value)

    return encode


def _or_reference(kind: Kind, reference: Kind) -> Encoder:
    return _encode_either(lambda value: 2 if "$ref" in value else 1, {1: kind, 2: reference})


_SECURITY_REQUIREMENT: Final = _map(_list(_STRING))


def _reference(number: int = 1) -> _Message:
    message = _Message()
    message.define(_ref=(number, _STRING))
    return message


# --- OpenAPI v2 -------------------------------------------------------------------------------------------------------


def _v2_parameter() -> _Message:
    """Makes the message of a parameter; that of query parameters has an additional field."""
    message = _Message(22)
    message.define(
        required=(1, _BOOLEAN),
        _in=(2, _STRING),
        description=(3, _STRING),
        name=(4, _STRING),
        type=(5, _STRING),
        uniqueItems=(19, _BOOLEAN),
    )
    return message


def _v2_query_parameter() -> _Message:
    message = _Message(23)
    message.define(
        required=(1, _BOOLEAN),
        _in=(2, _STRING),
        description=(3, _STRING),
        name=(4, _STRING),
        type=(6, _STRING),
        uniqueItems=(20, _BOOLEAN),
    )
    return message


def _v2_schema() -> _Message:
    schema = _Message(31)
    schema.define(
        _ref=(1, _STRING),
        format=(2, _STRING),
        title=(3, _STRING),
        description=(4, _STRING),
        default=(5, _any),
        multipleOf=(6, _NUMBER),
        maximum=(7, _NUMBER),
        exclusiveMaximum=(8, _BOOLEAN),
        minimum=(9, _NUMBER),
        exclusiveMinimum=(10, _BOOLEAN),
        maxLength=(11, _INTEGER),
        minLength=(12, _INTEGER),
        pattern=(13, _STRING),
        maxItems=(14, _INTEGER),
        minItems=(15, _INTEGER),
        uniqueItems=(16, _BOOLEAN),
        maxProperties=(17, _INTEGER),
        minProperties=(18, _INTEGER),
        required=(19, _Repeated(_STRING)),
        enum=(20, _Repeated(_any)),
        additionalProperties=(21, _encode_either(lambda value: 2 if isinstance(value, bool) else 1, {1: schema, 2: _BOOLEAN})),
        type=(22, _list(_STRING)),
        items=(23, _list(schema)),
        allOf=(24, _Repeated(schema)),
        properties=(25, _map(schema)),
        example=(30, _any),
    )
    return schema


def _v2_document() -> _Message:
    schema, reference = _v2_schema(), _reference()
    body = _Message(6)
    body.define(description=(1, _STRING), name=(2, _STRING), _in=(3, _STRING), required=(4, _BOOLEAN), schema=(5, schema))
    places = {"query": 3, "path": 4}
    others = _encode_either(lambda value: places[value["in"]], {3: _v2_query_parameter(), 4: _v2_parameter()})
    parameter = _encode_either(lambda value: 1 if value["in"] == "body" else 2, {1: body, 2: others})
    parameters = _Repeated(_or_reference(parameter, reference))
    response = _Message(5)
    response.define(description=(1, _STRING), schema=(2, _encode_either(lambda _: 1, {1: schema})))
    operation = _Message(13)
    operation.define(
        tags=(1, _Repeated(_STRING)),
        description=(3, _STRING),
        operationId=(5, _STRING),
        produces=(6, _Repeated(_STRING)),
        consumes=(7, _Repeated(_STRING)),
        parameters=(8, parameters),
        responses=(9, _map(_or_reference(response, reference))),
        schemes=(10, _Repeated(_STRING)),
    )
    path = _Message(10)
    methods = ("get", "put", "post", "delete", "options", "head", "patch")
    path.define(parameters=(9, parameters), **{method: (number, operation) for number, method in enumerate(methods, 2)})
    api_key = _Message(5)
    api_key.define(type=(1, _STRING), name=(2, _STRING), _in=(3, _STRING), description=(4, _STRING))
    info = _Message(7)
    info.define(title=(1, _STRING), version=(2, _STRING))
    document = _Message(16)
    document.define(
        swagger=(1, _STRING),
        info=(2, info),
        paths=(8, _map(path, 2)),
        definitions=(9, _map(schema)),
        parameters=(10, _map(parameter)),
        security=(12, _Repeated(_SECURITY_REQUIREMENT)),
        securityDefinitions=(13, _map(_encode_either(lambda _: 2, {2: api_key}))),
    )
    return document


# --- OpenAPI v3 -------------------------------------------------------------------------------------------------------


def _v3_default(value: Any) -> bytes:
    """Encodes a default that is a number, a boolean or a string; others are omitted."""
    if isinstance(value, bool):
        return _encode_one(2, _BOOLEAN, value)
    if isinstance(value, int | float):
        return _encode_one(1, _NUMBER, value)
    return _encode_one(3, _STRING, value) if isinstance(value, str) else b""


def _v3_schema() -> Encoder:
    schema, reference = _Message(36), _reference()
    either = _or_reference(schema, reference)
    schema.define(
        nullable=(1, _BOOLEAN),
        example=(7, _any),
        title=(9, _STRING),
        multipleOf=(10, _NUMBER),
        maximum=(11, _NUMBER),
        exclusiveMaximum=(12, _BOOLEAN),
        minimum=(13, _NUMBER),
        exclusiveMinimum=(14, _BOOLEAN),
        maxLength=(15, _INTEGER),
        minLength=(16, _INTEGER),
        pattern=(17, _STRING),
        maxItems=(18, _INTEGER),
        minItems=(19, _INTEGER),
        uniqueItems=(20, _BOOLEAN),
        maxProperties=(21, _INTEGER),
        minProperties=(22, _INTEGER),
        required=(23, _Repeated(_STRING)),
        enum=(24, _Repeated(_any)),
        type=(25, _STRING),
        allOf=(26, _Repeated(either)),
        oneOf=(27, _Repeated(either)),
        anyOf=(28, _Repeated(either)),
        _not=(29, schema),
        items=(30, _list(either)),
        properties=(31, _map(either)),
        additionalProperties=(32, _encode_either(lambda value: 2 if isinstance(value, bool) else 1, {1: either, 2: _BOOLEAN})),
        default=(33, _v3_default),
        description=(34, _STRING),
        format=(35, _STRING),
    )
    return either


def _v3_document() -> _Message:
    schema, reference = _v3_schema(), _reference()
    media_type = _Message(5)
    media_type.define(schema=(1, schema))
    content = _map(media_type)
    parameter = _Message(14)
    parameter.define(name=(1, _STRING), _in=(2, _STRING), description=(3, _STRING), required=(4, _BOOLEAN), schema=(10, schema))
    parameters = _Repeated(_or_reference(parameter, reference))
    body = _Message(4)
    body.define(description=(1, _STRING), content=(2, content), required=(3, _BOOLEAN))
    response = _Message(5)
    response.define(description=(1, _STRING), content=(3, content))
    operation = _Message(13)
    operation.define(
        tags=(1, _Repeated(_STRING)),
        description=(3, _STRING),
        operationId=(5, _STRING),
        parameters=(6, parameters),
        requestBody=(7, _or_reference(body, reference)),
        responses=(8, _map(_or_reference(response, reference), 2)),
    )
    path = _Message(14)
    methods = ("get", "put", "post", "delete", "options", "head", "patch")
    path.define(parameters=(13, parameters), **{method: (number, operation) for number, method in enumerate(methods, 4)})
    scheme = _Message(9)
    scheme.define(type=(1, _STRING), description=(2, _STRING), name=(3, _STRING), _in=(4, _STRING))
    components = _Message(10)
    components.define(schemas=(1, _map(schema)), securitySchemes=(7, _map(_or_reference(scheme, reference))))
    info = _Message(7)
    info.define(title=(1, _STRING), version=(6, _STRING))
    document = _Message(9)
    document.define(openapi=(1, _STRING), info=(2, info), paths=(4, _map(path)), components=(5, components))
    return document


_V2: Final = _v2_document()
_V3: Final = _v3_document()

#: The bound of each of the two caches: documents of several clusters with built-in resources only.
_CACHE_BYTES: Final = 16 << 20


@cached_bytes(_CACHE_BYTES)
def v2(document: bytes) -> bytes:
    """Encodes a v2 document (JSON data) in Protobuf."""
    return _V2(json.reread(document))


@cached_bytes(_CACHE_BYTES)
def v3(document: bytes) -> bytes:
    """Encodes a v3 document (JSON data) in Protobuf."""
    return _V3(json.reread(document))
