"""Encodes rows of Tables as compact JSON; everything except the ages is encoded once and cached with the Document.

Only the ages in the cells of an object change with time. So a row is encoded once as a template: the encoded pieces between
the ages, and the times of the ages. A table is a join of such pieces, the formatted ages, and the cached JSON of the
objects; a cached `Rows` only has to format the ages.

Specified by: as `apimachinery.printers.table`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.codecs.document import Document, Object, encodings_of
from fakekube.apimachinery.codecs.framing import Chunks, Items, enclosed
from fakekube.apimachinery.printers.table import TableConvertor, column_definitions
from fakekube.apimachinery.printers.texts import ages_at

Template = tuple[bytes | datetime, ...]
"""A row up to its object; a datetime is the position of an age."""

#: Random, so that no text in an object equals it.
_SECRET: Final = secrets.token_hex(8)
_MARKS: Final = re.compile(rf"{_SECRET}(\d+);".encode()).split


class Rows:
    """The encoded rows of a table without the ages."""

    __slots__ = ("_ages", "_parts")

    def __init__(self, convertor: TableConvertor, documents: Sequence[Document], carried: Sequence[bytes]) -> None:
        """
        Args:
            convertor: of the resource.
            documents: the objects of the rows.
            carried: the JSON of the `object` of each row.
        """
        templates = encodings_of(documents, ("row", convertor), partial(_template, convertor))
        rows = list(zip(templates, carried, strict=True))
        if convertor.order is not None:
            keys = [convertor.order(document.object) for document in documents]
            rows = [rows[index] for index in sorted(range(len(rows)), key=keys.__getitem__)]
        self._parts: list[bytes] = []
        """The pieces of the table; empty at the positions of ages."""
        self._ages: list[tuple[int, datetime]] = []
        """The positions of ages among the pieces, with the times whose ages are inserted there."""
        for template, whole in rows:
            for piece in template:
                if isinstance(piece, bytes):
                    self._parts.append(piece)
                else:
                    self._ages.append((len(self._parts), piece))
                    self._parts.append(b"")
            self._parts += (whole, b"},")
        if rows:
            self._parts[-1] = b"}"

    def __len__(self) -> int:
        return len(self._parts)

    def at(self, now: datetime) -> Items:
        """Returns the JSON of the rows at a time."""
        parts, texts = self._parts.copy(), _Ages(now)
        for place, moment in self._ages:
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
    head["columnDefinitions"] = column_definitions(convertor)
    opening = json.dumps(head)[:-1]
    if not rows and convertor.empty is None:
        return opening + b',"rows":null}\n'
    return enclosed(opening + b',"rows":[', rows.at(now), b"]}\n")


class _Ages(dict[Any, bytes]):
    """A cache of formatted ages."""

    def __init__(self, now: datetime) -> None:
        super().__init__()
        self._text = ages_at(now)

    def __missing__(self, moment: datetime) -> bytes:
        text = self[moment] = json.dumps(self._text(moment))[1:-1]  # the age can be <invalid>
        return text


def _template(convertor: TableConvertor, obj: Object) -> Template:
    moments: list[datetime] = []

    def mark(moment: datetime) -> str:
        moments.append(moment)
        return f"{_SECRET}{len(moments) - 1};"

    made: Object = {"cells": convertor.cells(obj, mark)}
    conditions = convertor.conditions(obj)
    if conditions:
        made["conditions"] = conditions
    pieces = _MARKS(json.dumps(made)[:-1] + b',"object":')
    return tuple(moments[int(piece)] if at % 2 else piece for at, piece in enumerate(pieces))
