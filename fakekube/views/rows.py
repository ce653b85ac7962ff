"""Rows of Tables as compact JSON, of which all but the ages is made once and kept with the Document.

The cells of an object change with nothing but the time: so they are made once with a mark in the place of
each age, and what is kept are the pieces between the marks and the times that they stand for. A table of
thousands of rows is a join of such pieces, of ages, and of the kept JSON of what the rows carry.

Specified by: as `views.table`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from fakekube.codecs import json
from fakekube.codecs.document import Document, Object, encodings_of
from fakekube.views.printers.texts import ages_at
from fakekube.views.table import TableConvertor

__all__ = ["table_json"]

Template = tuple[bytes | datetime, ...]
"""A row up to its object; a time stands for how long ago it was."""

#: No object can have foreseen it, so that what looks like a mark is one.
_SECRET: Final = secrets.token_hex(8)
_MARKS: Final = re.compile(rf"{_SECRET}(\d+);".encode()).split


def table_json(
    convertor: TableConvertor, api_version: str, documents: Sequence[Document], carried: Sequence[bytes], *,
    metadata: Object, now: datetime,
) -> bytes:
    """A Table with its columns, as `table.table` makes it; no newline at the end.

    Args:
        convertor: of the resource.
        api_version: meta.k8s.io/v1 or meta.k8s.io/v1beta1.
        documents: what the cells of each row are made of.
        carried: the JSON of what each row carries.
        metadata: the ListMeta.
        now: the cluster's time, for ages.
    """
    templates = encodings_of(documents, ("row", convertor), partial(_template, convertor))
    rows = list(zip(templates, carried, strict=True))
    if convertor.order is not None:
        keys = [convertor.order(document.object) for document in documents]
        rows = [rows[index] for index in sorted(range(len(rows)), key=keys.__getitem__)]
    head: Object = {"kind": "Table", "apiVersion": api_version, "metadata": metadata}
    head["columnDefinitions"] = [dict(column) for column in convertor.columns]
    parts = [json.dumps(head)[:-1], b',"rows":[']
    ages = _Ages(now)
    for template, whole in rows:
        parts += [piece if type(piece) is bytes else ages[piece] for piece in template]
        parts += (whole, b"},")
    if len(parts) == 2:
        return b'%b,"rows":%b}' % (parts[0], b"null" if convertor.empty is None else b"[]")
    parts[-1] = b"}]}"
    return b"".join(parts)


class _Ages(dict[Any, bytes]):
    """The ages of times, each made once."""

    def __init__(self, now: datetime) -> None:
        super().__init__()
        self._text = ages_at(now)

    def __missing__(self, moment: datetime) -> bytes:
        text = self[moment] = json.dumps(self._text(moment))[1:-1]  # it can be <invalid>
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
