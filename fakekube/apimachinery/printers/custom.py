"""Tables of custom resources: the additionalPrinterColumns of a definition, each a JSONPath (`jsonpath`).

Specified by: k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor (tableconvertor.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from fakekube.apimachinery.printers import jsonpath
from fakekube.apimachinery.printers.jsonpath import Path, PathError
from fakekube.apimachinery.printers.table import Column, TableConvertor
from fakekube.apimachinery.printers.texts import UNKNOWN, Ages, name, since
from fakekube.base.caches import BoundedCache
from fakekube.base.golang.strconv import go_integer
from fakekube.base.golang.timestamps import TimeError, parse_time
from fakekube.base.objects import StoredObject

#: The columns of a definition without additionalPrinterColumns.
_AGE: Final[Sequence[Column]] = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)

#: The columns of the scale of a custom resource.
SCALE_COLUMNS: Final[Sequence[Column]] = (
    {"name": "Desired", "type": "integer", "description": "Number of desired replicas", "jsonPath": ".spec.replicas"},
    {"name": "Available", "type": "integer", "description": "Number of actual replicas", "jsonPath": ".status.replicas"},
    *_AGE,
)

_NAME: Final[Column] = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}


#: By the columns as JSON.
_convertors: BoundedCache[bytes, TableConvertor] = BoundedCache(256)


def convertor(columns: Sequence[Column]) -> TableConvertor:
    """Returns the convertor of a version of a custom resource.

    Args:
        columns: its additionalPrinterColumns; without any, the table has the age. The same sequence gets the same convertor.
    """
    key = orjson.dumps(list(columns))
    known = _convertors.get(key)
    if known is None:
        known = _convertors.add(key, _make_convertor(columns or _AGE))
    return known


def _make_convertor(columns: Sequence[Column]) -> TableConvertor:
    """Returns the convertor of the columns before the first one with an invalid JSONPath."""
    writers = []
    for column in columns:
        try:
            writers.append(_cell(column["type"], jsonpath.parse(column["jsonPath"])))
        except PathError:
            break
    return TableConvertor(
        [_NAME, *map(_column_definition, columns[: len(writers)])],
        lambda obj, ages: [name(obj), *(write(obj, ages) for write in writers)],
        custom=True,
    )


def _column_definition(column: Column) -> Column:
    described = f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
    if column is _AGE[0]:
        described = ""  # in a real server that of the field; descriptions of fields are left out here
    return {
        "name": column["name"], "type": column["type"], "format": column.get("format", ""),
        "description": column.get("description") or described, "priority": column.get("priority", 0),
    }  # fmt: skip


def _cell(kind: str, path: Path) -> Callable[[StoredObject, Ages], Any]:
    def write(obj: StoredObject, ages: Ages) -> Any:
        found = path.find(obj)
        if not found:
            return None
        if kind == "string":
            return jsonpath.text(found[0])
        return _CELLS[kind](found[0], ages) if kind in _CELLS else None

    return write


def _integer_cell(value: Any, _: Ages) -> int | None:
    return go_integer(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number_cell(value: Any, _: Ages) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean_cell(value: Any, _: Ages) -> bool | None:
    return value if isinstance(value, bool) else None


def _date_cell(value: Any, ages: Ages) -> str | None:
    if not isinstance(value, str):
        return None
    if value in ("", "null"):
        return UNKNOWN
    try:
        return since(parse_time(value), ages)
    except TimeError:
        return "<invalid>"


_CELLS: Final[Mapping[str, Callable[[Any, Ages], Any]]] = {
    "integer": _integer_cell, "number": _number_cell, "boolean": _boolean_cell, "date": _date_cell,
}  # fmt: skip
