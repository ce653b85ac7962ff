"""Decodes the messages of Kubernetes' types into plain JSON objects.

Each struct has a table from field numbers to decoders. Unknown fields are skipped, repeated occurrences of a
message field are merged, and of a repeated scalar field the last value is kept. Zero values that JSON omits are
dropped; `apimachinery.schema.decode` then establishes the order of fields and the zero values that are always printed.

Specified by: k8s.io/api/*/generated.pb.go (Unmarshal of gogo/protobuf), including the error messages.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fakekube.apimachinery.codecs import DecodeError, json
from fakekube.apimachinery.codecs.protobuf.wire import (
    ENTRY,
    Layout,
    Member,
    Table,
    is_wrapped,
    layout,
    read_delimited,
    read_varint,
    scan,
    signed32,
    skip,
    to_signed,
    unexpected_end,
)
from fakekube.apimachinery.schema.model import Field, Shape, Type
from fakekube.apimachinery.schema.trees import raw_value
from fakekube.base.golang.strings import text_of
from fakekube.base.golang.timestamps import print_micro_time, print_time

# --- The Go names of fields, which the error messages of the generated code contain ----------------------------------
# They follow from the JSON names by Go's conventions (`podIP` → PodIP, `dnsPolicy` → DNSPolicy); a table has the
# exceptions.
#
# Specified by: k8s.io/api/*/types.go.


#: The first words of JSON names that Go capitalizes.
_INITIALISMS: Final = frozenset((
    "api", "aws", "ca", "cel", "cidr", "csi", "dns", "fc", "fs", "gce", "gid", "gmsa", "grpc", "http", "id", "ip", "iqn",
    "iscsi", "json", "nfs", "os", "pd", "pkix", "qos", "rbd", "se", "ssl", "tcp", "tls", "ttl", "tty", "uid", "url",
))  # fmt: skip
_FIRST_WORD: Final = re.compile("[a-z]+").match

#: The exceptions that apply to all structs.
_IRREGULAR: Final = {
    "$ref": "Ref", "$schema": "Schema", "-": "Raw", "bool": "BoolValue", "bools": "BoolValues",
    "cephfs": "CephFS", "chapAuthDiscovery": "DiscoveryCHAPAuth", "chapAuthSession": "SessionCHAPAuth",
    "cidrs": "CIDRs", "diskURI": "DataDiskURI", "externalID": "DoNotUseExternalID", "int": "IntValue",
    "ints": "IntValues", "ips": "IPs", "lastState": "LastTerminationState", "metadata": "ObjectMeta",
    "pdID": "PdID", "reportingComponent": "ReportingController", "storageos": "StorageOS",
    "string": "StringValue", "strings": "StringValues", "wwids": "WWIDs",
}  # fmt: skip

#: The exceptions by the name of the struct.
_IRREGULAR_IN: Final = {
    ("APIResourceList", "resources"): "APIResources", ("AdmissionResponse", "status"): "Result",
    ("DeviceAttribute", "version"): "VersionValue", ("DeviceAttribute", "versions"): "VersionValues",
    ("GlusterfsPersistentVolumeSource", "endpoints"): "EndpointsName", ("GlusterfsVolumeSource", "endpoints"): "EndpointsName",
    ("PodSpec", "serviceAccount"): "DeprecatedServiceAccount", ("StatusCause", "reason"): "Type",
    ("SubjectAccessReviewSpec", "groups"): "Groups",
    **{
        (struct, name): go
        for struct in ("RBDVolumeSource", "RBDPersistentVolumeSource")
        for name, go in (("image", "RBDImage"), ("monitors", "CephMonitors"), ("pool", "RBDPool"), ("user", "RadosUser"))
    },
}  # fmt: skip


def go_name(name: str, struct: str = "") -> str:
    """Returns the Go name of a field.

    Args:
        name: the JSON name.
        struct: the name of the Go struct that declares it.
    """
    known = _IRREGULAR_IN.get((struct, name)) or _IRREGULAR.get(name)
    if known is not None:
        return known
    if name.startswith("x-kubernetes-"):
        return "X" + "".join(word.capitalize() for word in name.split("-")[2:])
    word = _FIRST_WORD(name)
    first = word[0] if word else ""
    return (first.upper() if first in _INITIALISMS else first[:1].upper() + first[1:]) + name[len(first) :]


Read = Callable[[Any], Any]
"""Converts the content of a field (bytes, or the number of a varint) to a value."""


_tables: dict[Type, Table] = {}


def read_struct(type_: Type, data: bytes, into: dict[str, Any] | None = None) -> dict[str, Any]:
    """Decodes a message of a struct type, merging it into the object `into`.

    Raises:
        DecodeError: the message is malformed.
    """
    table = _tables.get(type_)
    if table is None:
        table = _tables[type_] = _table(layout(type_), _struct_name(type_))
    result: dict[str, Any] = {} if into is None else into
    scan(data, table, result, _struct_name(type_))
    return result


def _struct_name(type_: Type) -> str:
    return type_.name.rpartition(".")[2]


def _table(members: Layout, struct: str) -> Table:
    fields = {number: _member(field, go_name(field.name, struct)) for number, field in members.fields.items()}
    for number, inner in members.inlined.items():
        fields[number] = _inline(inner.name, _table(inner, inner.name))
    return Table(fields)


def _inline(struct: str, table: Table) -> Member:
    return Member(2, struct, lambda into, data: scan(data, table, into, struct))


def _member(field: Field, known_as: str) -> Member:
    type_ = field.type
    if type_.shape is Shape.LIST and not is_wrapped(type_):
        assert type_.items is not None
        wire, read = _value(type_.items)
        return Member(wire, known_as, _append_to(field.name, read))
    if type_.shape is Shape.MAP:
        assert type_.items is not None
        return Member(ENTRY, known_as, _enter_in(field.name, type_.items))
    if type_.shape is Shape.STRUCT:
        return Member(2, known_as, _merge_into(field.name, type_))
    wire, read = _value(type_)
    return Member(wire, known_as, _set_text(field) if type_.shape is Shape.STRING else _set(field, read))


def _set_text(field: Field) -> Callable[[dict[str, Any], Any], None]:
    name, shows_zero = field.name, field.pointer or not field.omit_empty

    def store(into: dict[str, Any], content: bytes) -> None:
        if content or shows_zero:
            into[name] = content.decode("utf-8", "surrogateescape")
        else:
            into.pop(name, None)

    return store


def _set(field: Field, read: Read) -> Callable[[dict[str, Any], Any], None]:
    name, shows_zero = field.name, field.pointer or not field.omit_empty

    def store(into: dict[str, Any], content: Any) -> None:
        value = read(content)
        if value is None or (not shows_zero and value in _ZEROS):
            into.pop(name, None)
        else:
            into[name] = value

    return store


#: Zero values of scalars that JSON omits ("0" is a quantity, which JSON contains).
_ZEROS: Final = ("", 0, False)


def _merge_into(name: str, type_: Type) -> Callable[[dict[str, Any], Any], None]:
    def store(into: dict[str, Any], content: bytes) -> None:
        into[name] = read_struct(type_, content, into.get(name))

    return store


def _append_to(name: str, read: Read) -> Callable[[dict[str, Any], Any], None]:
    def store(into: dict[str, Any], content: Any) -> None:
        items = into.get(name)
        if items is None:
            items = into[name] = []
        items.append(read(content))

    return store


def _enter_in(name: str, items: Type) -> Callable[[dict[str, Any], Any], None]:
    wire, read = _value(items)
    zero = _zero_of(items)

    def store(into: dict[str, Any], content: tuple[bytes, int, int]) -> None:
        key, value = "", None
        data, at, end = content
        limit = len(data)
        while at < end:
            start = at
            tag, at = read_varint(data, at, limit)
            number = signed32(tag >> 3)
            if number == 1:
                begin, at = read_delimited(data, at, limit)
                key = text_of(data[begin:at])
            elif number == 2 and wire == 2:
                begin, at = read_delimited(data, at, limit)
                value = read(data[begin:at])
            elif number == 2:
                scalar, at = read_varint(data, at, limit)
                value = read(scalar)
            else:
                at = skip(data, start, limit)
                if at > end:
                    raise unexpected_end()
        members = into.get(name)
        if members is None:
            members = into[name] = {}
        members[key] = zero() if value is None else value

    return store


def _zero_of(type_: Type) -> Callable[[], Any]:
    """Makes the value of a map entry without a value."""
    made: dict[Shape, Callable[[], Any]] = {
        Shape.STRUCT: dict, Shape.LIST: list, Shape.INTEGER: int, Shape.BOOLEAN: bool,
        Shape.QUANTITY: lambda: "0",
    }  # fmt: skip
    return made.get(type_.shape, str if type_.shape in (Shape.STRING, Shape.BYTES) else lambda: None)


# --- Values -----------------------------------------------------------------------------------------------------------


def _value(type_: Type) -> tuple[int, Read]:
    """Returns the wire type and the decoder of a type."""
    shape = type_.shape
    if shape is Shape.STRUCT:
        return 2, lambda data: read_struct(type_, data)
    if is_wrapped(type_):
        return 2, _unwrap_items
    if shape is Shape.UNION:
        return 2, lambda data: _union(type_, data)
    if shape is Shape.INTEGER:
        return 0, signed32 if type_.format == "int32" else to_signed
    return _READERS[shape]


def _number(data: bytes) -> float:
    value: float = struct.unpack("<d", data)[0]
    return value


def _parts(message: str, *numbered: tuple[int, int, str]) -> Callable[[bytes], dict[str, Any]]:
    """Makes a decoder of a small message with scalar fields: (number, wire type, name)."""
    table = Table({number: Member(wire, name, _keep_as(name)) for number, wire, name in numbered})

    def read(data: bytes) -> dict[str, Any]:
        found: dict[str, Any] = {}
        scan(data, table, found, message)
        return found

    return read


def _keep_as(name: str) -> Callable[[dict[str, Any], Any], None]:
    return lambda into, content: into.__setitem__(name, content)


_timestamp: Final = _parts("Timestamp", (1, 0, "Seconds"), (2, 0, "Nanos"))
_quantity_parts: Final = _parts("Quantity", (1, 2, "String_"))
_int_or_string_parts: Final = _parts("IntOrString", (1, 0, "Type"), (2, 0, "IntVal"), (3, 2, "StrVal"))
_raw_parts: Final = _parts("RawExtension", (1, 2, "Raw"))
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(data: bytes) -> datetime | None:
    """Decodes a Timestamp; None for an empty one."""
    if not data:
        return None
    found = _timestamp(data)
    seconds, nanos = to_signed(found.get("Seconds", 0)), signed32(found.get("Nanos", 0))
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise DecodeError("Time.MarshalJSON: year outside of range [0,9999]") from None


def _time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else print_time(moment)


def _micro_time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else print_micro_time(moment)


def _quantity(data: bytes) -> str:
    return text_of(_quantity_parts(data).get("String_", b"0"))


def _int_or_string(data: bytes) -> int | str:
    found = _int_or_string_parts(data)
    if found.get("Type", 0) == 1:
        return text_of(found.get("StrVal", b""))
    return signed32(found.get("IntVal", 0))


def _raw(data: bytes) -> Any:
    raw = _raw_parts(data).get("Raw")
    if not raw:
        return None
    value = json.loads(raw, merge=False)[0]
    return raw_value(value, text_of(raw)) if isinstance(value, dict) else value


def _fields_v1(data: bytes) -> Any:
    """Decodes FieldsV1; invalid JSON is not an error."""
    raw = _raw_parts(data).get("Raw")
    try:
        return None if not raw else json.loads(raw, merge=False)[0]
    except DecodeError:
        return None


def _unwrap_items(data: bytes) -> list[str]:
    found: dict[str, Any] = {}
    scan(data, _WRAPPED, found, "ExtraValue")
    items: list[str] = found.get("items", [])
    return items


_WRAPPED: Final = Table({1: Member(2, "Items", _append_to("items", text_of))})


def _union(type_: Type, data: bytes) -> Any:
    """Decodes a struct or its alternative (see `encoder`)."""
    table = _tables.get(type_)
    if table is None:
        table = _tables[type_] = _union_table(type_)
    found: dict[str, Any] = {}
    scan(data, table, found, _struct_name(type_))
    other = found.get("other")
    return found.get("schema", bool(other)) if not isinstance(other, list) else other


def _union_table(type_: Type) -> Table:
    assert type_.items is not None
    assert type_.alternative is not None
    schema = Member(2, "Schema", _merge_into("schema", type_.items))
    if type_.alternative.shape is Shape.BOOLEAN:
        return Table({1: Member(0, "Allows", _keep_as("other")), 2: schema})
    assert type_.alternative.items is not None
    wire, read = _value(type_.alternative.items)
    return Table({1: schema, 2: Member(wire, "JSONSchemas", _append_to("other", read))})


_READERS: Final[dict[Shape, tuple[int, Read]]] = {
    Shape.STRING: (2, text_of),
    Shape.BYTES: (2, lambda data: base64.b64encode(data).decode()),
    Shape.BOOLEAN: (0, bool),
    Shape.NUMBER: (1, _number),
    Shape.TIME: (2, _time),
    Shape.MICRO_TIME: (2, _micro_time),
    Shape.QUANTITY: (2, _quantity),
    Shape.INT_OR_STRING: (2, _int_or_string),
    Shape.RAW: (2, _raw),
    Shape.FIELDS_V1: (2, _fields_v1),
    Shape.ANY: (2, _raw),
}
