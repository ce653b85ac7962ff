"""Tables: lists of objects as rows of cells, as kubectl prints them.

Every resource has a `TableConvertor`: its columns, and a function that makes the cells of a row. Built-in
ones take their columns from `apimachinery/data/` and their cells from the modules beside this one; kinds without a printer show
name and creation time. Custom resources have convertors of their own (`printers.custom`).

Specified by: k8s.io/kubernetes/pkg/printers (tablegenerator.go), k8s.io/apiserver/pkg/registry/rest
(table.go), pkg/endpoints/handlers/response.go (asTable).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, lru_cache, partial
from operator import itemgetter
from typing import Any, Final

from fakekube.apimachinery import data
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.codecs.document import (
    MAX_MISSES,
    SAMPLE,
    Chunks,
    Document,
    Items,
    enclose,
    encodings_of,
    read_description,
    read_rest,
)
from fakekube.apimachinery.codecs.formats import Kind
from fakekube.apimachinery.data import META_V1, field_text
from fakekube.apimachinery.printers import cluster, core, workloads
from fakekube.apimachinery.printers.texts import Ages, Cells, ages_at, parse_moment
from fakekube.apimachinery.schema import printing
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.base.caches import BoundedCache, forgettable
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.timestamps import ZERO_TIME
from fakekube.base.objects import Object, StoredObject, group_version_path

Column = Mapping[str, Any]


def _no_conditions(_: StoredObject) -> list[dict[str, str]]:
    return []


@dataclass(slots=True, frozen=True, eq=False)
class TableConvertor:
    """Converts the objects of one resource to rows."""

    columns: Sequence[Column]
    """name, type, format, description and priority of each."""
    cells: Cells
    """(object in its storage version, ages) → the cells of its row."""
    conditions: Callable[[StoredObject], list[dict[str, str]]] = _no_conditions
    """Returns the conditions of the row, such as Completed."""
    order: Callable[[StoredObject], Any] | None = None
    """The sort key of rows; None for the order of the list."""
    empty: Sequence[Any] | None = ()
    """The value of `rows` in an empty table."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Column → the field whose description it has (`io.k8s.api.core.v1.ConfigMap.data`), except fields of metadata."""
    minor: str = data.DEFAULT
    """The minor whose descriptions the columns have."""
    repeats_columns: bool = False
    """Whether every event of a watch has the columns, not only the first."""
    for_list: Callable[[Sequence[StoredObject]], TableConvertor] | None = None
    """Returns the convertor of a list of these objects, if the cells of one depend on the others."""
    compares_names: bool = False
    """Whether the cells depend on whether an object has a certain name."""
    custom: bool = False
    """Whether the resource is a custom one: the cells may show any field, and floats."""
    row_key: object = field(default_factory=object, init=False)
    """The cache key of its rows. The collector visits no document that has them, as it would with the convertor as the key."""


@dataclass(slots=True)
class Row:
    """A row of a table."""

    stored: StoredObject
    """The object in its storage version, from which the cells are made."""
    shown: StoredObject | None
    """The `object` of the row: the object, its metadata, or None (includeObject)."""


_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_CREATION: Final = f"{_OBJECT_META}.creationTimestamp"
#: The fields of ObjectMeta that columns show, by the names of the columns.
_OF_METADATA: Final = {"Name": f"{_OBJECT_META}.name", "Age": _CREATION, "Created At": _CREATION}


def _column_definitions(convertor: TableConvertor) -> list[dict[str, Any]]:
    """Returns the columns of a Table, with the descriptions of fields if they are installed."""
    of_fields = {**_OF_METADATA, **convertor.fields}
    return [
        {**column, "description": column["description"] or _describe(convertor.minor, of_fields.get(column["name"], ""))}
        for column in convertor.columns
    ]


def _describe(minor: str, described_field: str) -> str:
    schema, _, name = described_field.rpartition(".")
    return field_text(minor, schema, name) if name else ""


def table(
    convertor: TableConvertor,
    api_version: str,
    rows: Sequence[Row],
    metadata: StoredObject,
    now: datetime,
    *,
    headers: bool = True,
) -> dict[str, Any]:
    """Makes a Table.

    Args:
        convertor: the table convertor of the resource.
        api_version: meta.k8s.io/v1 or meta.k8s.io/v1beta1.
        rows: the objects.
        metadata: the ListMeta of the list, or of a single object its resourceVersion.
        now: the time of the cluster, for ages.
        headers: whether it has the columns; in a watch only the first event has them.
    """
    if convertor.order is not None:
        order = convertor.order
        rows = sorted(rows, key=lambda row: order(row.stored))
    columns = _column_definitions(convertor) if headers or convertor.repeats_columns else None
    ages = ages_at(now)
    made = [_row(convertor, row, ages) for row in rows]
    empty = None if convertor.empty is None else list(convertor.empty)
    return {
        "kind": "Table", "apiVersion": api_version, "metadata": metadata,
        "columnDefinitions": columns, "rows": made or empty,
    }  # fmt: skip


def _row(convertor: TableConvertor, row: Row, ages: Ages) -> dict[str, Any]:
    made: dict[str, Any] = {"cells": convertor.cells(row.stored, ages)}
    conditions = convertor.conditions(row.stored)
    if conditions:
        made["conditions"] = conditions
    made["object"] = row.shown
    return made


_INCLUDED: Final = ("", "Metadata", "Object", "None")
_CHOICE: Final = "'Metadata', 'Object', 'None', or empty"


def include_object_error(include_object: str) -> str:
    """Returns the error for an invalid query parameter includeObject; "" if it is valid."""
    if include_object in _INCLUDED:
        return ""
    problem = f"includeObject: Invalid value: {go_quote(include_object)}: must be {_CHOICE}"
    return f"Unable to convert to Table as requested: {problem}"


# --- The convertors of built-in resources -----------------------------------------------------------------------------

_CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    **cluster.CELLS, **core.CELLS, **core.NETWORK_CELLS, **core.POD_CELLS, **cluster.STORAGE_CELLS, **workloads.CELLS,
}  # fmt: skip


#: (group, plural) → the number of the minor from which on the cells are those of `_CELLS`, and of older ones (None: `DEFAULT`).
_OLDER_CELLS: Final[Mapping[tuple[str, str], tuple[int, Cells | None]]] = {
    ("", "nodes"): (36, core.node_without_architecture),
    ("", "pods"): (35, core.pod_without_errors),
    ("", "serviceaccounts"): (35, core.service_account_with_secrets),
    ("apiextensions.k8s.io", "customresourcedefinitions"): (37, None),
    ("batch", "jobs"): (34, workloads.job_without_success_criteria),
    ("networking.k8s.io", "ingressclasses"): (36, core.ingress_class_without_default),
    ("storage.k8s.io", "storageclasses"): (37, cluster.storage_class_with_default),
    ("storage.k8s.io", "volumeattributesclasses"): (34, cluster.attributes_class_with_default),
}


def _of_storage_classes(convertor: TableConvertor, objects: Sequence[StoredObject]) -> TableConvertor:
    """Returns the convertor of a list of StorageClasses, which marks one default (getEffectiveDefaultStorageClass)."""
    default = cluster.effective_default(objects)
    return _with_default(convertor, default) if default else convertor


@lru_cache(maxsize=64)
def _with_default(convertor: TableConvertor, default: str) -> TableConvertor:
    return replace(convertor, cells=partial(cluster.storage_class, default=default), compares_names=True)


def _column(name: str, type_: str = "string", format_: str = "", priority: int = 0) -> Column:
    return {"name": name, "type": type_, "format": format_, "description": "", "priority": priority}


def _name_and_time(obj: StoredObject, _: Ages) -> list[Any]:
    metadata = obj["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp") or ZERO_TIME]


#: The columns of resources without a printer.
DEFAULT: Final = TableConvertor((_column("Name", format_="name"), _column("Created At", "date")), _name_and_time, empty=None)

_SCALE: Final = TableConvertor(
    (_column("Name"), _column("Desired", "integer"), _column("Available", "integer"), _column("Age")), workloads.scale
)


@cache
def convertor_for(group: str, version: str, plural: str, *, scale: bool = False, minor: str = data.DEFAULT) -> TableConvertor:
    """Returns the convertor of a built-in resource of a minor, or of its scale."""
    if scale:
        return _SCALE
    older = _OLDER_CELLS.get((group, plural))
    cells = older[1] if older and int(minor.partition(".")[2]) < older[0] else _CELLS.get((group, plural))
    if cells is None:
        return DEFAULT
    path = f"{group_version_path(group, version)}/{plural}"
    rows = data.minor(minor).columns(path)
    made = TableConvertor(
        [_column(row["name"], row["type"], row["format"], row["priority"]) for row in rows],
        cells,
        conditions=core.pod_conditions if (group, plural) == ("", "pods") else _no_conditions,
        order=cluster.flow_order if plural == "flowschemas" else None,
        fields={row["name"]: row["field"] for row in rows if "field" in row},
        repeats_columns=plural == "apiservices",
        empty=None if plural == "customresourcedefinitions" else (),
        minor=minor,
    )
    return replace(made, for_list=partial(_of_storage_classes, made)) if cells is cluster.storage_class else made


# --- Rows as compact JSON --------------------------------------------------------------------------------------------
# Everything except the ages is encoded once and cached with the Document.
#
# Only the ages in the cells of an object change with time. So a row is encoded once as a template: its text, with the times whose
# ages stand there. A table is a join of the pieces of templates, the formatted ages, and the cached JSON of the objects; a cached
# `Rows` only has to format the ages. A template is one text: as tuples of pieces, those of a large list made the cyclic collector
# run.


Around = tuple[bytes, bytes]
"""What is before and after a part that differs."""
Template = bytes
"""A row up to its object: JSON, in which each time whose age is shown stands between two `_AGE`s."""

#: Cannot be in JSON.
_AGE: Final = b"\0"
#: Random, so that no text in an object equals it.
_SECRET: Final = secrets.token_hex(8)
_split_at_marks: Final = re.compile(rf"{_SECRET}(\d[^;]+);".encode()).split


class Rows:
    """The encoded rows of a table without the ages."""

    __slots__ = ("_ages", "_parts")

    def __init__(
        self, convertor: TableConvertor, documents: Sequence[Document], carried: Sequence[bytes], around: Around = (b"", b"")
    ) -> None:
        """
        Args:
            convertor: of the resource.
            documents: the objects of the rows.
            carried: the JSON of the `object` of each row.
            around: what each of these stands between.
        """
        templates = encodings_of(documents, *template_maker(convertor), _template_maker_of_parts(convertor))
        if convertor.order is not None:
            keys = [convertor.order(document.object) for document in documents]
            order = sorted(range(len(keys)), key=keys.__getitem__)
            templates, carried = [templates[index] for index in order], [carried[index] for index in order]
        self._parts: list[bytes] = []
        """The pieces of the table, with times at the positions of ages."""
        self._ages: dict[int, bytes] = {}
        """The positions of ages among the pieces, with the times whose ages are inserted there."""
        opening, closing = around[0], around[1] + b"},"
        for template, whole in zip(templates, carried, strict=True):
            first = len(self._parts)
            pieces = template.split(_AGE)
            self._parts += (*pieces, opening, whole, closing)
            for place in range(1, len(pieces), 2):
                self._ages[first + place] = pieces[place]
        if self._parts:
            self._parts[-1] = closing[:-1]

    def __len__(self) -> int:
        return len(self._parts)

    def encode_at(self, now: datetime) -> Items:
        """Returns the JSON of the rows at a time."""
        parts, texts = self._parts.copy(), _Ages(now)
        for place, moment in self._ages.items():
            parts[place] = texts[moment]
        return Items(parts)


def table_json(convertor: TableConvertor, api_version: str, rows: Rows, *, metadata: Object, now: datetime) -> bytes | Chunks:
    """Encodes a Table with its columns like `table.table`, followed by a newline.

    Args:
        convertor: the table convertor of the resource.
        api_version: meta.k8s.io/v1 or meta.k8s.io/v1beta1.
        rows: the rows.
        metadata: the ListMeta.
        now: the time of the cluster, for ages.
    """
    head: Object = {"kind": "Table", "apiVersion": api_version, "metadata": metadata}
    head["columnDefinitions"] = _column_definitions(convertor)
    opening = json.dumps(head)[:-1]
    if not rows and convertor.empty is None:
        return opening + b',"rows":null}\n'
    return enclose(opening + b',"rows":[', rows.encode_at(now), b"]}\n")


class _Ages(dict[bytes, bytes]):
    """A cache of formatted ages, by the times."""

    def __init__(self, now: datetime) -> None:
        super().__init__()
        self._text = ages_at(now)

    def __missing__(self, moment: bytes) -> bytes:
        text = self[moment] = json.dumps(self._text(parse_moment(moment.decode())))[1:-1]  # the age can be <invalid>
        return text


def template_maker(convertor: TableConvertor) -> tuple[Hashable, Callable[[StoredObject], Template]]:
    """Returns the cache key of rows, and the function that makes the row of an object up to the `object` in it."""
    return convertor.row_key, partial(_template, convertor)


def _template(convertor: TableConvertor, obj: StoredObject) -> Template:
    made: Object = {"cells": convertor.cells(obj, _mark)}
    conditions = convertor.conditions(obj)
    if conditions:
        made["conditions"] = conditions
    return _AGE.join(_split_at_marks(json.dumps(made, floats=convertor.custom)[:-1] + b',"object":'))


def _mark(moment: datetime) -> str:
    """Returns what stands in a cell in place of an age."""
    return _SECRET + moment.isoformat().replace("+00:00", "Z") + ";"


# --- Rows of objects with equal parts ---------------------------------------------------------------------------------
# The cells of an object of a built-in kind show its name, its time of creation, what describes it (labels, annotations, owners),
# and what follows its metadata. So the row of one object, with marks in place of its name and time, is made into those of all
# that equal it in the rest. What describes an object is only compared if a cell has read it.


_NAME: Final = f"{_SECRET}-name"
#: A time that no object has.
_CREATED: Final = f"9{secrets.randbelow(900) + 100}-12-31T23:59:59.{secrets.randbelow(900_000) + 100_000}Z"
_MAX_SHARED: Final = 256
#: The marks of what a row is filled with, in the order of the arguments of `fill`.
_FILLINGS: Final = (_NAME.encode(), _CREATED.encode())
_split_at_fillings: Final = re.compile(b"(%b|%b)" % (_FILLINGS[0], re.escape(_FILLINGS[1]))).split


class _Metadata(dict[str, Any]):
    """Metadata with marks, which note what else is read."""

    def __init__(self, description: Object) -> None:
        super().__init__(description, name=_NAME, creationTimestamp=_CREATED)
        self.read: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)


class _SharedRow:
    """The row of objects that differ in their identities only."""

    __slots__ = ("_choose", "_text", "is_described")

    def __init__(self, convertor: TableConvertor, description: bytes, rest: bytes) -> None:
        metadata = _Metadata(read_description(description))
        pieces = _split_at_fillings(_template(convertor, {"metadata": metadata, **read_rest(rest)}).replace(b"%", b"%%"))
        self._text: bytes = b"%b".join(pieces[::2])
        self._choose = itemgetter(*map(_FILLINGS.index, pieces[1::2]))
        self.is_described = bool(metadata.read - {"name", "creationTimestamp", "deletionTimestamp"})
        """Whether it depends on what describes the objects."""

    def fill(self, *identity: bytes) -> Template:
        """Returns the row of an object.

        Args:
            identity: its name and creationTimestamp.
        """
        made: bytes = self._text % self._choose(identity)
        return made


def _template_maker_of_parts(convertor: TableConvertor) -> Callable[[Document], Template] | None:
    """Returns the function that makes the row of a document, if possible from its parts.

    None if the cells of a resource show other things of an object, or more of its identity.
    """
    return None if convertor.custom or convertor.compares_names else _make_template_maker(convertor)


@forgettable
@lru_cache(maxsize=256)
def _make_template_maker(convertor: TableConvertor) -> Callable[[Document], Template]:
    shared: BoundedCache[Hashable, _SharedRow | None] = BoundedCache(_MAX_SHARED)
    misses = 0
    last: tuple[bytes, _SharedRow | None] = (b"", None)
    """What neighbours of one workload have in common: texts are compared faster than they are hashed."""

    def print_alone(document: Document) -> Template:
        return _template(convertor, document.tree_to_print)

    def make(document: Document) -> Template:
        nonlocal misses, last
        if misses > MAX_MISSES and misses % SAMPLE:
            misses += 1
            return print_alone(document)
        head = document.find_head()
        if head is None:
            return print_alone(document)
        name, created, is_being_deleted, rest = head
        if is_being_deleted:
            return print_alone(document)
        known, row = last
        if row is not None and known == rest:
            misses = 0
            return row.fill(name, created)
        description = document.find_description()
        if description is None:
            return print_alone(document)
        key: Hashable = rest
        row = shared.get(key)
        if row is not None and row.is_described:
            key = description, rest
            row = shared.get(key)
        if row is None and key not in shared:  # most statuses of running pods are seen once
            misses += 1
            shared.add(key, None, len(rest))
            return print_alone(document)
        misses = 0
        if row is None:
            row = _SharedRow(convertor, description, rest)
            shared.add(key, row, len(rest))
        if not row.is_described:
            last = rest, row
        return row.fill(name, created)

    return make


# --- PartialObjectMetadata and lists of it ---------------------------------------------------------------------------
# For built-in kinds it has the metadata of the internal version, whichever version was requested. So it has no annotations that
# represent a field of the internal version, nor those that the conversion to an old version adds.
#
# Specified by: k8s.io/apimachinery/pkg/apis/meta/v1 (types.go),
# k8s.io/apiserver/pkg/endpoints/handlers/response.go.


#: By (group, plural): the annotation that is a field in the internal version.
_FIELDS_IN_ANNOTATIONS: Final = {
    ("apps", "daemonsets"): "deprecated.daemonset.template.generation",
    ("apps", "deployments"): "deprecated.deployment.rollback.to",
}


def partial_metadata(
    obj: StoredObject, api_version: str, resource: tuple[str, str] = ("", ""), *, custom: bool = False
) -> Object:
    """Returns the metadata of an object, in the order of ObjectMeta.

    Args:
        obj: any object in its storage version, with or without kind and apiVersion.
        api_version: meta.k8s.io/v1 or meta.k8s.io/v1beta1.
        resource: its group and plural.
        custom: whether it is a custom resource, whose keys are sorted; the keys of others are in order.
    """
    metadata: dict[str, Any] = obj.get("metadata") or {}
    field, annotations = _FIELDS_IN_ANNOTATIONS.get(resource), metadata.get("annotations") or {}
    hides_field = field in annotations
    if hides_field:
        metadata = {**metadata, "annotations": {name: annotations[name] for name in annotations if name != field}}
    if custom or hides_field:
        metadata = printing.normalise(type_of(f"{META_V1}ObjectMeta"), metadata)
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata}


def json_maker(resource: tuple[str, str] = ("", ""), *, custom: bool = False) -> tuple[Hashable, Callable[[StoredObject], bytes]]:
    """Returns the cache key of the compact JSON of the metadata of stored objects, and the function that makes it."""

    def make(obj: StoredObject) -> bytes:
        return json.dumps(partial_metadata(obj, "", resource, custom=custom)["metadata"], floats=False)

    return "metadata json", make


def metadata_json(documents: Sequence[Document], resource: tuple[str, str] = ("", ""), *, custom: bool = False) -> list[bytes]:
    """Returns the compact JSON of the metadata of stored objects, which is cut out of theirs where that is possible."""
    key, make = json_maker(resource, custom=custom)
    if custom:
        return encodings_of(documents, key, make)
    hidden = _FIELDS_IN_ANNOTATIONS.get(resource, "").encode()
    cuts = [document.cut_metadata() for document in documents]
    return [
        document.encoding(key, make) if cut is None or (hidden and hidden in cut) else cut
        for document, cut in zip(documents, cuts, strict=True)
    ]


def around_metadata(api_version: str) -> Around:
    """Returns what the metadata stands between in a PartialObjectMetadata as compact JSON."""
    return json.dumps(partial_metadata({}, api_version))[: -len(b"{}}")], b"}"


def metadata_items(
    documents: Sequence[Document], api_version: str, resource: tuple[str, str] = ("", ""), *, custom: bool = False
) -> Items:
    """Returns the PartialObjectMetadata of stored objects as the items of a list in compact JSON."""
    parts, (opening, closing) = metadata_json(documents, resource, custom=custom), around_metadata(api_version)
    if parts:
        parts[0] = opening + parts[0]
        parts[-1] += closing
    return Items(parts, b"%b,%b" % (closing, opening))


def reader(api_version: str, resource: tuple[str, str] = ("", ""), *, custom: bool = False) -> Callable[[Document], Document]:
    """Returns a function that makes the metadata document of a stored object, cached in its Document."""
    key = ("partial", api_version)

    def make(obj: StoredObject) -> Document:
        return Document(partial_metadata(obj, api_version, resource, custom=custom))

    return lambda document: document.encoding(key, make)


@cache
def kind(api_version: str) -> Kind:
    """Returns the encoding properties of PartialObjectMetadata."""
    type_ = type_of(f"{META_V1}PartialObjectMetadata")
    return Kind(api_version, "PartialObjectMetadata", type_, custom=True)


@cache
def list_kind(api_version: str) -> Kind:
    """Returns the encoding properties of its list."""
    return Kind(api_version, "PartialObjectMetadataList")
