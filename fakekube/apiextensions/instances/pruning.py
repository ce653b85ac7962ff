"""Reads the objects in bodies of custom resources, and prunes the fields that the schema does not have.

Pruning copies the object, and reports the path of each field that it leaves out. The metadata of embedded objects is read as
ObjectMeta.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/{pruning,objectmeta}, apiserver/customresource_handler.go
(schemaCoercingDecoder).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fakekube.apiextensions.instances.objects import CONTAINERS, MetadataError, drop_nulls, metadata_of, sorted_tree
from fakekube.apiextensions.instances.schema_cache import is_pruned
from fakekube.apimachinery.errors import field
from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.apimachinery.schema.trees import copy_metadata
from fakekube.apis.validation.rules import from_minor
from fakekube.base.golang.strconv import go_syntax
from fakekube.base.objects import Object

#: Shapes by themselves: before Python 3.12 an attribute of an Enum class is slow.
_STRUCT, _MAP, _LIST, _ANY = Shape.STRUCT, Shape.MAP, Shape.LIST, Shape.ANY
_TYPE_META = ("apiVersion", "kind", "metadata")


def read(
    type_: Type, value: Object, *, known: bool, live: Object | None = None, is_own: bool = False
) -> tuple[Object, list[str]]:
    """Returns the object in a body, and the strict decoding errors. Raises MetadataError.

    Args:
        type_: the schema of its version.
        known: its kind is the one of the schema; for other kinds only the metadata is decoded.
        live: a stored object; the metadata that a value shares with it are copied, not decoded.
        is_own: nothing else has parts of the value, so that one without anything to prune need not be copied.
    """
    findings: list[str] = []
    if known and not (is_own and is_pruned(type_, value)):
        value, pruned = prune(type_, value)
        drop_nulls(type_, value)
        findings = [f'unknown field "{path}"' for path in pruned]
    if "metadata" in value:
        if live is not None and value["metadata"] is live["metadata"]:
            return {**value, "metadata": copy_metadata(value["metadata"])}, findings
        meta, unknown = metadata_of(value["metadata"])
        value = {**value, "metadata": meta}
        findings = [*unknown, *findings]
    return value, findings


def prune(type_: Type, value: Any, *, is_resource: bool = True) -> tuple[Any, list[str]]:
    """Returns the value without unknown fields, and their paths: those in the metadata of embedded objects come last."""
    fields: list[str] = []
    metadata: list[str] = []
    left = _prune(type_, value, None, _Pruned(fields, metadata), is_resource=is_resource)
    return left, [*sorted(fields), *sorted(metadata)]


def has_unknown_fields(type_: Type, value: Any, *, is_resource: bool) -> bool:
    """Reports whether a value has fields that the schema lacks; the metadata of embedded objects is not read."""
    pruned = _Pruned([], None)
    _prune(type_, value, None, pruned, is_resource=is_resource)
    return bool(pruned.fields)


class _Pruned(NamedTuple):
    """Paths of unknown fields: those that the schema lacks, and those in the metadata of embedded objects, if it is read."""

    fields: list[str]
    metadata: list[str] | None


_Place = tuple[Any, str, str | int] | None
"""The place of a value: that of its container, the sort of member (field, map entry, item), its name. None is the root."""


_FIELD, _ENTRY, _ITEM = ".", "entry", "item"


def _path(place: _Place, *, entries: str = ".") -> str:
    """Returns the path of a place: map entries are printed as fields for unknown fields, in brackets otherwise."""
    if place is None:
        return ""
    parent, how, name = place
    before = _path(parent, entries=entries)
    if how is _ITEM or (how is _ENTRY and entries == "[]"):
        return f"{before}[{name}]"
    return f"{before}.{name}" if before else str(name)


def _prune(type_: Type, value: Any, place: _Place, pruned: _Pruned, *, is_resource: bool = False) -> Any:
    if isinstance(value, dict):
        return _prune_object(type_, value, place, pruned, is_resource=is_resource or type_.embedded_resource)
    if isinstance(value, list):
        items = type_.items if type_.shape is _LIST and type_.items else None
        if items is None:
            if _keeps_all(type_):
                return value
            items = _NOTHING
        return [
            _prune(items, item, (place, _ITEM, index), pruned) if type(item) in CONTAINERS else item
            for index, item in enumerate(value)
        ]
    return value


#: The type of values without a schema: no field is known.
_NOTHING = Type(Shape.STRUCT)


def _keeps_all(type_: Type) -> bool:
    return type_.preserve_unknown_fields or (type_.shape is _ANY and not type_.keywords)


def _prune_object(type_: Type, value: Object, place: _Place, pruned: _Pruned, *, is_resource: bool) -> Object:
    if type_.shape is _MAP:
        items = _NOTHING if type_.keywords.get("additionalProperties") is True else type_.items
        assert items is not None
        return {name: _prune(items, item, (place, _ENTRY, name), pruned) for name, item in value.items()}
    metadata = None if place is None else pruned.metadata
    if is_resource and metadata is not None:
        _check_type_meta(value, place)
    fields = type_.fields if type_.shape is _STRUCT else {}
    keeps = _keeps_all(type_)
    result: Object = {}
    for name, item in value.items():
        known = fields.get(name)
        if is_resource and name in _TYPE_META:
            result[name] = _embedded_metadata(item, place, metadata) if metadata is not None and name == "metadata" else item
        elif known is not None:
            is_container = type(item) in CONTAINERS
            result[name] = _prune(known.type, item, (place, _FIELD, name), pruned) if is_container else item
        elif keeps:
            result[name] = item
        else:
            pruned.fields.append(_path((place, _FIELD, name)))
    return result


def _check_type_meta(value: Object, place: _Place) -> None:
    """Checks that kind and apiVersion of an embedded object are strings. Raises MetadataError."""
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str):
            at = f"{_path(place, entries='[]')}.{name}"
            raise _invalid(at, value[name], "must be a string")


def _embedded_metadata(value: Any, place: _Place, unknown_fields: list[str]) -> Any:
    """Returns the metadata of an embedded object, and adds its unknown fields. Raises MetadataError."""
    path = _path(place, entries="[]")
    try:
        meta, unknown = metadata_of(value)
    except MetadataError as error:
        raise _invalid(f"{path}.metadata", sorted_tree(value), str(error)) from None
    unknown_fields.extend(text.replace('unknown field "', f"{path}.", 1).removesuffix('"') for text in unknown)
    return sorted_tree(meta)


def _invalid(path: str, value: Any, detail: str) -> MetadataError:
    """Returns the error of a bad value, which messages before 1.34 show in Go's syntax."""
    shown = value if from_minor(34) else field.Printed(go_syntax(value))
    return MetadataError(field.invalid(path, shown, detail).message)
