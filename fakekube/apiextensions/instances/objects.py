"""The parts of custom resources: ObjectMeta, nulls and defaults, embedded objects, and the form in which they are stored.

Nulls that are not nullable are dropped, then the defaults of the schema are set. In the stored form all keys are sorted.
`pruning` reads bodies.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/{defaulting,objectmeta}, apiserver/customresource_handler.go.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, Final

import orjson

from fakekube.apiextensions.schema import has_default, holds
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.errors import FieldError, field
from fakekube.apimachinery.patch.apply.schema import OBJECT_META
from fakekube.apimachinery.schema import decode, printing
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.apis.validation import names
from fakekube.apis.validation.objectmeta import validate_object_meta
from fakekube.apis.validation.rules import from_minor
from fakekube.base.golang.strconv import json_kind, json_number, unmarshal_error
from fakekube.base.golang.strings import json_text
from fakekube.base.objects import Object

#: Shapes by themselves: before Python 3.12 an attribute of an Enum class is slow.
_STRUCT, _MAP, _LIST = Shape.STRUCT, Shape.MAP, Shape.LIST


class MetadataError(ValueError):
    """The metadata of an object cannot be decoded; has the error message of the real server."""


def metadata_of(value: Any) -> tuple[Object, list[str]]:
    """Decodes the metadata of an object. Returns it, and its unknown fields. Raises MetadataError."""
    type_ = type_of(OBJECT_META)
    if value is not None and not isinstance(value, dict):
        raise MetadataError(unmarshal_error(json_kind(value), "v1.ObjectMeta"))
    strict = decode.Strict()
    try:
        # The real server encodes the metadata to JSON again before it decodes them as ObjectMeta.
        printed = {name: json_number(item) if type(item) is float else item for name, item in (value or {}).items()}
        found = decode.decode(type_, printed, strict)
    except decode.DecodeError as error:
        raise MetadataError(str(error)) from None
    unknown = [text.replace('unknown field "', 'unknown field "metadata.', 1) for text in strict.messages]
    return dict(printing.normalise(type_, found)), unknown


def readable_metadata(metadata: Object) -> Object:
    """Decodes the metadata of an object without the fields that are malformed."""
    try:
        return metadata_of(metadata)[0]
    except MetadataError:
        found: Object = {}
        for name, item in metadata.items():
            with contextlib.suppress(MetadataError):
                found |= metadata_of({name: item})[0]
        return found


# --- Nulls and defaults -----------------------------------------------------------------------------------------------


def drop_nulls(type_: Type, value: Any) -> None:
    """Drops nulls that are not nullable and have no default, in place."""
    if isinstance(value, dict):
        for name, item in list(value.items()):
            if item is not None and type(item) not in CONTAINERS:
                continue
            below = _type_at(type_, name)
            if below is None:
                continue
            if item is not None:
                drop_nulls(below, item)
            elif below.keywords and not below.nullable and not has_default(below):
                del value[name]
    elif isinstance(value, list) and type_.shape is _LIST and type_.items is not None:
        for item in value:
            if type(item) in CONTAINERS:
                drop_nulls(type_.items, item)


def _type_at(type_: Type, name: str) -> Type | None:
    if type_.shape is _MAP:
        return type_.items
    found = type_.fields.get(name) if type_.shape is _STRUCT else None
    return found.type if found else None


def default(type_: Type, value: Any) -> bool:
    """Sets the defaults in place; they also replace nulls that are not nullable.

    Returns whether anything was set.
    """
    fill = _filler(type_)
    return fill is not None and type(value) in CONTAINERS and fill(value)


Fill = Callable[[Any], bool]
"""Sets the defaults in an object or a list, and returns whether it has set any; compiled once for a type."""


def _filler(type_: Type) -> Fill | None:
    """Returns the function that sets the defaults in values of a type; None if there are none."""
    if "fill" not in type_.compiled:
        type_.compiled["fill"] = _FILLERS[type_.shape](type_) if type_.shape in _FILLERS and holds(type_, has_default) else None
    found: Fill | None = type_.compiled["fill"]
    return found


def _struct_filler(type_: Type) -> Fill:
    steps = [(name, known.type, _filler(known.type)) for name, known in type_.fields.items() if holds(known.type, has_default)]

    def fill(value: Any) -> bool:
        filled = False
        if value.__class__ is dict:
            for name, below, fill_below in steps:
                if name in value:
                    filled |= _fill_item(below, fill_below, value, name, value[name])
                elif has_default(below):
                    value[name] = _make_default(below)
                    filled = True
        return filled

    return fill


def _items_filler(class_: Any, keys: Callable[[Any], Iterable[Any]], type_: Type) -> Fill | None:
    items = type_.items
    if items is None:
        return None
    fill_item = _filler(items)

    def fill(value: Any) -> bool:
        filled = False
        if value.__class__ is class_:
            for key in keys(value):
                filled |= _fill_item(items, fill_item, value, key, value[key])
        return filled

    return fill


def _fill_item(type_: Type, fill: Fill | None, container: Any, key: Any, item: Any) -> bool:
    if item is None and not type_.nullable and has_default(type_):
        container[key] = _make_default(type_)
        return True
    return fill is not None and type(item) in CONTAINERS and fill(item)


def _make_default(type_: Type) -> Any:
    made = sorted_tree(type_.default)
    default(type_, made)
    return made


_FILLERS: Final[Mapping[Shape, Callable[[Type], Fill | None]]] = {
    Shape.STRUCT: _struct_filler,
    Shape.MAP: partial(_items_filler, dict, iter),
    Shape.LIST: partial(_items_filler, list, lambda value: range(len(value))),
}


# --- The stored form --------------------------------------------------------------------------------------------------

#: Values of other types are kept as they are, without a function call.
CONTAINERS = frozenset({dict, list})
_CHANGEABLE = frozenset({dict, list, float})


def is_same(one: Any, other: Any) -> bool:
    """Reports whether two values are equal and of equal types; in Python, 1, 1.0 and True are equal."""
    if one is other:
        return True
    if type(one) is not type(other) or one != other:
        return False
    return type(one) not in CONTAINERS or json_text(one, sort_keys=True) == json_text(other, sort_keys=True)


def sorted_tree(value: Any) -> Any:
    """Returns a copy with sorted keys, like the Go maps of unstructured objects. Whole floats become integers, as in JSON."""
    if isinstance(value, dict):
        return {name: sorted_tree(item) if type(item) in _CHANGEABLE else item for name, item in sorted(value.items(), key=_KEY)}
    if isinstance(value, list):
        return [sorted_tree(item) if type(item) in _CHANGEABLE else item for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value


_KEY = itemgetter(0)


def stored_form(value: Any) -> Any:
    """Returns the same as `sorted_tree`; the value itself if it is in that form."""
    try:
        text, ordered = orjson.dumps(value), orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        if json.is_canonical(text):
            return value if text == ordered else orjson.loads(ordered)
    except orjson.JSONEncodeError:  # integers beyond 64 bits, invalid UTF-8
        pass
    return sorted_tree(value)


# --- Embedded objects -------------------------------------------------------------------------------------------------

#: An embedded object need not have a name, but the validation of metadata requires one.
_ANY_NAME = "fakename"


def embedded_errors(type_: Type, value: Any, path: str = "") -> Iterator[FieldError]:
    """Validates the embedded objects in a value."""
    if not holds(type_, _is_embedded):
        return
    if isinstance(value, dict):
        if type_.embedded_resource:
            yield from _type_meta_errors(value, path)
            if "metadata" in value:
                yield from _metadata_errors(value["metadata"], _child_path(path, "metadata"))
        fields = type_.fields if type_.shape is Shape.STRUCT else {}
        for name in sorted(value):
            if name in fields:
                yield from embedded_errors(fields[name].type, value[name], _child_path(path, name))
            elif type_.shape is Shape.MAP and type_.items is not None:
                yield from embedded_errors(type_.items, value[name], f"{path}[{name}]")
    elif isinstance(value, list) and type_.shape is Shape.LIST and type_.items is not None:
        for index, item in enumerate(value):
            yield from embedded_errors(type_.items, item, f"{path}[{index}]")


def _is_embedded(type_: Type) -> bool:
    return type_.embedded_resource


def _child_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _type_meta_errors(value: dict[str, Any], path: str) -> Iterator[FieldError]:
    checks = {"apiVersion": _version_problem, "kind": names.kind_name}
    detail = "" if from_minor(34) else "must not be empty"
    yield from (field.required(_child_path(path, name), detail) for name in checks if name not in value)
    for name, problem_of in checks.items():
        found, place = value.get(name), _child_path(path, name)
        if name in value and not isinstance(found, str):
            yield field.invalid(place, found, "must be a string")
        elif found == "":
            yield field.invalid(place, found, "must not be empty")
        elif isinstance(found, str) and (problem := problem_of(found)):
            yield field.invalid(place, found, problem)


def _version_problem(text: str) -> str:
    return f"unexpected GroupVersion string: {text}" if text.count("/") > 1 else ""


def _metadata_errors(value: Any, path: str) -> list[FieldError]:
    try:
        meta, _ = metadata_of(value)
    except MetadataError as error:
        return [field.invalid(path, value, str(error))]
    named = {**meta, "name": meta.get("name") or _ANY_NAME}
    namespaced = bool(meta.get("namespace"))
    return validate_object_meta(named, namespaced, names.path_segment, path=path, standard_finalizers=False)
