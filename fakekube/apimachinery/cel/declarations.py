"""Derives declarations from schemas: types for the checker, and sizes for the cost estimate.

A declaration has a type, the number of elements that a value can have at most, and the length of the shortest JSON for
it. Where a schema sets no bound, the size of a request does.

Specified by: k8s.io/apiserver/pkg/cel/common/schemas.go, pkg/cel/types.go, pkg/cel/limits.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError, no_such_overload
from fakekube.apimachinery.cel.libraries import authorization, kubernetes_types, lists, standard, strings
from fakekube.apimachinery.cel.syntax import escape, unescape
from fakekube.apimachinery.cel.types import BOOL, DYN, INT, STRING, Type, list_of, map_of
from fakekube.apimachinery.cel.values import RECEIVERS, kind_of, type_of
from fakekube.apimachinery.cel.views import with_object_meta
from fakekube.apimachinery.schema.paths import Schema

# --- The overload of a function for the types of its arguments -------------------------------------------------------
# Each library provides a table: (name, whether it is a method, argument types …) → function. `object` matches any type.
#
# Specified by: k8s.io/apiserver/pkg/cel/environment/base.go (the libraries of 1.36).


Function = Callable[..., Any]

FUNCTIONS: Final[dict[tuple[Any, ...], Function]] = {
    key: function
    for table in (
        standard.FUNCTIONS,
        strings.FUNCTIONS,
        strings.REGEX_FUNCTIONS,
        strings.FORMAT_FUNCTIONS,
        lists.FUNCTIONS,
        lists.OPTIONAL_FUNCTIONS,
        kubernetes_types.ADDRESS_FUNCTIONS,
        kubernetes_types.URL_FUNCTIONS,
        kubernetes_types.QUANTITY_FUNCTIONS,
        kubernetes_types.SEMVER_FUNCTIONS,
        authorization.FUNCTIONS,
    )
    for key, function in table.items()
}

_found: dict[tuple[Any, ...], Function | None] = {}


def call(name: str, member: bool, arguments: list[Any]) -> Any:
    """Calls a function (or method) with evaluated arguments. Raises EvaluationError."""
    key = (name, member, *map(kind_of, arguments))
    try:
        function = _found[key]
    except KeyError:
        function = _found[key] = next((FUNCTIONS[k] for k in _candidates(key) if k in FUNCTIONS), None)
    if function is None:
        raise _overload_error(name, arguments)
    return function(*arguments)


#: String functions that check the types of their arguments themselves.
_UNNAMED: Final = frozenset({"contains", "startsWith", "endsWith"})
#: Functions that dispatch on a trait of the first argument.
_RECEIVER_FUNCTIONS: Final = frozenset({"matches", "size", "sort", "@sortByAssociatedKeys"})


def _overload_error(name: str, arguments: list[Any]) -> EvaluationError:
    """Returns the error for arguments without a matching overload."""
    if name in _UNNAMED or (name in _RECEIVER_FUNCTIONS and kind_of(arguments[0]) in RECEIVERS):
        return no_such_overload()
    if name in _RECEIVER_FUNCTIONS:
        return no_such_overload(name)
    names = [type_of(argument).name for argument in arguments]
    if name == "flatten":
        shown = [_PARAMETERISED.get(each, each) for each in names]
        return no_such_overload(f"{shown[0]}.flatten({', '.join(shown[1:])})")
    return no_such_overload(f"{name}({', '.join(names)})")


_PARAMETERISED: Final = {"list": "list(dyn)", "map": "map(dyn, dyn)"}


def _candidates(key: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yields the key, and the keys with `object` in place of some types."""
    name, member, *kinds = key
    for choice in product(*((kind, object) for kind in kinds)):
        yield (name, member, *choice)


#: The default maximum size of a request in bytes; cost estimates use it with any flag.
MAX_REQUEST_SIZE: Final = 3 * 1024 * 1024

_BRACKETS: Final = 2
_COMMA: Final = 1
#: The minimum JSON size of a map entry besides its value: an empty key, quotes, colon, comma.
_KEY: Final = 6
#: The JSON size of a property besides its name and value: quotes, colon, comma.
_PUNCTUATION: Final = 4
#: The maximum number of bytes of a character.
_WIDEST: Final = 4


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of the values of a schema."""

    kind: Type
    """The type; for objects, lists and maps without parameters (see `type`)."""
    max_elements: int = 0
    """Characters, bytes, items or entries; 0 where there is nothing to count."""
    min_size: int = _BRACKETS
    """The minimum size as JSON, in bytes."""
    items: Declaration | None = None
    """The declaration of the elements of a list or map."""
    keys: Declaration | None = None
    """The declaration of the keys of a map."""
    fields: Mapping[str, Declaration] = field(default_factory=dict)
    """The declarations of the fields of an object, by escaped names."""

    def type(self, name: str) -> Type:
        """Returns the type; an object type gets the name `name`."""
        if self.kind.name == "object":
            return Type(name, (), _Fields(name, self.fields))
        if self.items is None:
            return self.kind
        if self.keys is None:
            return list_of(self.items.type(f"{name}.@idx"))
        return map_of(self.keys.kind, self.items.type(f"{name}.@elem"))

    @property
    def max_cardinality(self) -> int:
        """The maximum number of such values in a request."""
        return MAX_REQUEST_SIZE // (self.min_size + _COMMA)


class _Fields(Mapping[str, Type]):
    """The types of the fields of an object, made on first use."""

    def __init__(self, name: str, declarations: Mapping[str, Declaration]) -> None:
        self._name, self._declarations = name, declarations
        self._known: dict[str, Type] = {}

    def __getitem__(self, name: str) -> Type:
        if name not in self._known:
            self._known[name] = self._declarations[name].type(f"{self._name}.{name}")
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._declarations)

    def __len__(self) -> int:
        return len(self._declarations)


_LIST: Final = Type("list")
_MAP: Final = Type("map")
_OBJECT: Final = Type("object")
_ANY_STRING: Final = Declaration(STRING, 0, 2)
_SCALARS: Final = {
    "boolean": Declaration(BOOL, 0, 4),
    "number": Declaration(Type("double"), 0, 1),
    "integer": Declaration(INT, 0, 1),
}
#: String format → declaration of its CEL type.
_FORMATS: Final = {
    "duration": Declaration(Type("duration"), 32, 3),
    "date": Declaration(Type("timestamp"), 12, 12),
    "date-time": Declaration(Type("timestamp"), 32, 21),
}


def declaration(schema: Schema, root: bool = False) -> Declaration | None:
    """Returns the declaration of a schema (`root`: that of a whole resource); None if expressions cannot access its values."""
    if schema.get("x-kubernetes-int-or-string"):
        return Declaration(DYN, _max_length(schema), 1)
    kind = schema.get("type", "")
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind == "string":
        return _string(schema)
    if kind == "array":
        return _list(schema)
    return _object(schema, root) if kind == "object" or root else None


def _declare_child(schema: Schema) -> Declaration | None:
    return declaration(schema, bool(schema.get("x-kubernetes-embedded-resource")))


def _string(schema: Schema) -> Declaration:
    known = _FORMATS.get(schema.get("format", ""))
    if known is not None:
        return known
    if schema.get("format") == "byte":
        limit = schema.get("maxLength")
        return Declaration(Type("bytes"), _make_unbounded() if limit is None else max(limit, 0), 2)
    if schema.get("maxLength") is None and schema.get("enum"):
        longest = max((len(each.encode()) for each in schema["enum"] if isinstance(each, str)), default=0)
        return Declaration(STRING, longest, 2)
    return Declaration(STRING, _max_length(schema), 2)


def _max_length(schema: Schema) -> int:
    limit = schema.get("maxLength")
    return _make_unbounded() if limit is None else max(limit, 0) * _WIDEST


def _make_unbounded() -> int:
    return MAX_REQUEST_SIZE - _BRACKETS


def _list(schema: Schema) -> Declaration | None:
    items = _declare_child(schema["items"]) if isinstance(schema.get("items"), Mapping) else None
    if items is None:
        return None
    limit = schema.get("maxItems")
    most = _make_unbounded() // (items.min_size + _COMMA) if limit is None else max(limit, 0)
    return Declaration(_LIST, most, items=items)


def _object(schema: Schema, root: bool) -> Declaration | None:
    if isinstance(schema.get("additionalProperties"), Mapping):
        values = _declare_child(schema["additionalProperties"])
        if values is None:
            return None
        limit = schema.get("maxProperties")
        most = _make_unbounded() // (values.min_size + _KEY) if limit is None else max(limit, 0)
        return Declaration(_MAP, most, items=values, keys=_ANY_STRING)
    known = with_object_meta(schema) if root else schema
    properties = known.get("properties") or {}
    size = _BRACKETS
    for name in {name for name in known.get("required") or () if name in properties}:
        part = properties[name]
        seen = _declare_child(part) if part.get("default") is None else None
        if seen is not None:
            size += len(name.encode()) + seen.min_size + _PUNCTUATION
    return Declaration(_OBJECT, 0, size, fields=_Properties(properties))


class _Properties(Mapping[str, Declaration]):
    """The declarations of properties by escaped names, made on first use."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._known: dict[str, Declaration | None] = {}

    def __getitem__(self, escaped: str) -> Declaration:
        if escaped not in self._known:
            name = unescape(escaped)
            schema = self._schemas.get(name) if name is not None and escape(name) == escaped else None
            self._known[escaped] = _declare_child(schema) if schema is not None else None
        found = self._known[escaped]
        if found is None:
            raise KeyError(escaped)
        return found

    def __iter__(self) -> Iterator[str]:
        return (escaped for escaped in map(escape, self._schemas) if escaped is not None and escaped in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
