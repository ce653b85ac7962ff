"""Wraps JSON values as CEL values according to their schema, without copies.

Each schema is compiled to a reader: a function from a JSON value to a CEL value. Objects have the properties of the schema
under escaped names; equality of lists depends on their list-type.

Specified by: k8s.io/apiserver/pkg/cel/common/valuesunstructured.go,
apiextensions-apiserver/pkg/apiserver/schema/cel/model.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as Object
from typing import Any, Final

from fakekube.apimachinery.cel import values
from fakekube.apimachinery.cel.errors import EvaluationError, no_such_overload, unhashable
from fakekube.apimachinery.cel.libraries.standard import read_timestamp
from fakekube.apimachinery.cel.syntax import escape, unescape
from fakekube.apimachinery.cel.values import ABSENT, Duration, Opaque, Timestamp, equal, key_of, kind_of
from fakekube.apimachinery.schema.paths import Schema
from fakekube.base.golang.strconv import go_type
from fakekube.base.golang.timestamps import local_time_problem, parse_spelled_duration

Reader = Callable[[Any], Any]

_STRING: Final = {"type": "string"}
_NAMES: Final = ("name", "generateName")
_OBJECT_META: Final = {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}}


def with_object_meta(schema: Schema) -> Schema:
    """Returns the schema of a custom resource with apiVersion, kind and metadata."""
    properties = schema.get("properties") or {}
    if _is_meta(properties):
        return schema
    own = {"apiVersion": _STRING, "kind": _STRING, "metadata": _OBJECT_META}
    return {**schema, "properties": {**properties, **own}}


def _is_meta(properties: Schema) -> bool:
    """Reports whether the properties already declare apiVersion, kind and the readable fields of metadata."""
    metadata = properties.get("metadata") or {}
    named = metadata.get("properties") or {}
    texts = [*(properties.get(name) for name in ("kind", "apiVersion")), *(named.get(name) for name in _NAMES)]
    return metadata.get("type") == "object" and all((each or {}).get("type") == "string" for each in texts)


def reader(schema: Schema) -> Reader:
    """Compiles a schema to a reader. Readers raise EvaluationError."""
    read = _reader(schema)
    nullable = bool(schema.get("nullable"))

    def view(value: Any) -> Any:
        if value is not None:
            return read(value)
        if nullable:
            return None
        raise EvaluationError("invalid data, got null for schema with nullable=false")

    return view


def _reader(schema: Schema) -> Reader:
    if schema.get("x-kubernetes-int-or-string"):
        return _int_or_string
    kind = schema.get("type", "")
    if kind in _MAKERS:
        return _MAKERS[kind](schema)
    if kind in _SCALARS:
        return _scalar(kind)
    return Preserved if schema.get("x-kubernetes-preserve-unknown-fields") else _unreadable


def _unreadable(value: Any) -> Any:
    raise EvaluationError(
        "invalid type, expected object, array, number, integer, boolean or string, or no type with "
        "x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got "
    )


class Preserved(Opaque):
    """A value without a schema that x-kubernetes-preserve-unknown-fields keeps; it only supports equality."""

    __slots__ = ("_value",)
    type_name = "unknown"

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Preserved) and bool(self._value == other._value)

    __hash__ = None  # type: ignore[assignment]


def _int_or_string(value: Any) -> Any:
    if value.__class__ in (int, str):
        return value
    raise EvaluationError("invalid data, expected XIntOrString value to be either a string or integer")


_SCALARS: Final[dict[str, tuple[frozenset[Any], str]]] = {
    "number": (frozenset({int, float}), "float"),
    "integer": (frozenset({int}), "int"),
    "boolean": (frozenset({bool}), "bool"),
}


def _scalar(kind: str) -> Reader:
    classes, name = _SCALARS[kind]

    def read(value: Any) -> Any:
        if value.__class__ not in classes:
            raise EvaluationError(f"invalid data, expected {name}, got {go_type(value)}")
        return float(value) if kind == "number" else value

    return read


# --- Strings ----------------------------------------------------------------------------------------------------------


def _duration(text: str) -> Duration:
    try:
        return Duration(parse_spelled_duration(text))
    except ValueError as problem:
        raise EvaluationError(f"Invalid duration {text}: {problem}") from None


def _date(text: str) -> Timestamp:
    return _moment(f"{text}T00:00:00Z")


def _moment(text: str) -> Timestamp:
    """Parses a date-time with the layouts of strfmt in turn. The error is that of the last layout, which has no time zone."""
    try:
        return Timestamp(*read_timestamp(text))
    except ValueError:
        raise EvaluationError(f"Invalid date-time formatted string {text}: {local_time_problem(text)}") from None


def _bytes(text: str) -> bytes:
    """Decodes a byte string; as in the real server, the URL alphabet is used although the format requires the standard one."""
    wrong = re.search("[+/]", text)
    if wrong:
        raise EvaluationError(f"Invalid byte formatted string {text}: illegal base64 data at input byte {wrong.start()}")
    return b64decode(text)


_FORMATS: Final[dict[str, Callable[[str], Any]]] = {"duration": _duration, "date": _date, "date-time": _moment, "byte": _bytes}


def _string_reader(schema: Schema) -> Reader:
    special = _FORMATS.get(schema.get("format", ""))

    def read(value: Any) -> Any:
        if value.__class__ is not str:
            raise EvaluationError(f"invalid data, expected string, got {go_type(value)}")
        return special(value) if special else value

    return read


# --- Objects ----------------------------------------------------------------------------------------------------------


class ObjectView(values.Mapping):
    """An object: with `escaped` names of properties, or the keys of additionalProperties."""

    __slots__ = ("_escaped", "_read", "_reader_of", "_value")

    def __init__(self, value: dict[str, Any], reader_of: Callable[[str], Reader | None], escaped: bool) -> None:
        self._value, self._reader_of, self._escaped = value, reader_of, escaped
        self._read: dict[str, Any] = {}
        """The fields that have been read, by name."""

    def find(self, key: Any) -> Any:
        if key.__class__ is not str:
            raise no_such_overload()
        known = self._read.get(key)
        if known is not None:
            return known
        name = unescape(key) if self._escaped else key
        if name is None:
            return ABSENT
        value = self._value.get(name, ABSENT)
        if value is ABSENT or (value is None and self._escaped):
            return ABSENT
        read = self._reader_of(name)
        if read is None:
            return ABSENT
        seen = self._read[key] = read(value)
        return seen

    def to_untyped(self) -> Untyped:
        return Untyped(self._value)

    def __iter__(self) -> Iterator[Any]:
        for name in self._value:
            if self._reader_of(name):
                yield (escape(name) or name) if self._escaped else name

    def __len__(self) -> int:
        return len(self._value)

    def equals(self, other: values.Mapping) -> bool:
        """Reports equality: fields of the schema by CEL equality, and of the other fields those that both objects have."""
        if len(self) != len(other):
            return False
        for name, value in self._value.items():
            if self._reader_of(name) is None:
                if not isinstance(other, ObjectView):
                    raise no_such_overload()
                if other._value.get(name, value) != value:
                    return False
                continue
            if not self._has_equal_field(name, other):
                return False
        return True

    def _has_equal_field(self, name: str, other: values.Mapping) -> bool:
        """Reports whether a field of the schema is equal in another object.

        A scalar or a list is not equal to a value that the schema does not allow. Raises EvaluationError.
        """
        mine = self.find(name)
        try:
            theirs = other.find(name)
        except EvaluationError:
            if mine is ABSENT or kind_of(mine) is not values.Mapping:
                return False
            raise
        return mine is theirs if mine is ABSENT or theirs is ABSENT else equal(mine, theirs)


def _object_reader(schema: Schema) -> Reader:
    if schema.get("x-kubernetes-embedded-resource"):
        schema = with_object_meta(schema)
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    reader_of: Callable[[str], Reader | None]
    if properties is not None:
        reader_of = {name: reader(part) for name, part in properties.items()}.get
    elif isinstance(additional, Object):
        of_values = reader(additional)
        reader_of = lambda name: of_values  # noqa: E731
    else:
        reader_of = lambda name: None  # noqa: E731
    escaped = properties is not None

    def read(value: Any) -> ObjectView:
        if not isinstance(value, dict):
            raise EvaluationError("invalid data, expected a map for the provided schema with type=object")
        return ObjectView(value, reader_of, escaped)

    return read


class Untyped(values.Mapping):
    """An object without a schema. Each field is wrapped once, on first use."""

    __slots__ = ("_seen", "_value")

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value
        self._seen: dict[str, Any] = {}

    @property
    def raw(self) -> dict[str, Any]:
        """The JSON value, which must not be changed."""
        return self._value

    def find(self, key: Any) -> Any:
        if key.__class__ is not str or key not in self._value:
            return ABSENT
        found = self._value[key]
        if found.__class__ is not dict and found.__class__ is not list:
            return found
        if key not in self._seen:
            self._seen[key] = wrap_untyped(found)
        return self._seen[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._value)

    def __len__(self) -> int:
        return len(self._value)


def wrap_untyped(value: Any) -> Any:
    """Wraps a JSON value without a schema."""
    if isinstance(value, dict):
        return Untyped(value)
    return list(map(wrap_untyped, value)) if isinstance(value, list) else value


# --- Lists ------------------------------------------------------------------------------------------------------------


class ListView(list[Any]):
    """A list: the CEL values of its items and their JSON values."""

    def __init__(self, items: Iterable[Any], value: list[Any]) -> None:
        super().__init__(items)
        self._value = value

    def to_untyped(self) -> list[Any]:
        """Returns the list as a value without a schema."""
        return list(map(wrap_untyped, self._value))


class SetList(ListView):
    """A list of list-type set: equality ignores the order, and + adds only missing items.

    Its items are the keys of a Go map, where containers fail (getSet of unstructuredSetList).
    """

    def equals(self, other: list[Any]) -> bool:
        return len(self) == len(other) and set(map(_key_in_set, self)).issuperset(map(_key_in_set, other))

    def concatenate(self, other: list[Any]) -> SetList:
        known = set(map(_key_in_set, self))
        added = {_key_in_set(item): item for item in other}
        items = [*self, *(item for key, item in added.items() if key not in known)]
        return SetList(items, items)


def _key_in_set(item: Any) -> Any:
    """Returns the dict key of an item of a set. Raises InterpreterError for a container."""
    kind = kind_of(item)
    if kind is values.Mapping:
        raise unhashable("map[string]interface {}")
    if kind is list:
        raise unhashable("[]interface {}")
    return key_of(item)


class MapList(ListView):
    """A list of list-type map: items are identified by their keys; equality ignores the order, and + replaces items."""

    def __init__(self, items: Iterable[Any], value: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items, value)
        self._keys = keys

    def _by_key(self, items: list[Any]) -> dict[Any, Any]:
        return {tuple(key_of(item.find(key)) for key in self._keys): item for item in items}

    def equals(self, other: list[Any]) -> bool:
        if len(self) != len(other):
            return False
        mine = self._by_key(self)
        return all(key in mine and equal(mine[key], item) for key, item in self._by_key(other).items())

    def concatenate(self, other: list[Any]) -> MapList:
        items = list({**self._by_key(self), **self._by_key(other)}.values())
        return MapList(items, items, self._keys)


def _list_reader(schema: Schema) -> Reader:
    of_items = reader(schema.get("items") or {})
    list_type = schema.get("x-kubernetes-list-type")
    keys = tuple(escape(key) or key for key in schema.get("x-kubernetes-list-map-keys") or ())

    def read(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise EvaluationError("invalid data, expected an array for the provided schema with type=array")
        items = map(of_items, value)
        if list_type == "map":
            return MapList(items, value, keys)
        return SetList(items, value) if list_type == "set" else ListView(items, value)

    return read


_MAKERS: Final[dict[str, Callable[[Schema], Reader]]] = {
    "object": _object_reader,
    "array": _list_reader,
    "string": _string_reader,
}
