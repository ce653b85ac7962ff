"""Packs: what only shows the past, in little memory until it is read.

The requests and changes of a busy cluster that are kept are a quarter of a million small objects, between which Python cannot
return memory. A pack holds some of them as one text, and makes equal ones of it. Bodies and objects are compressed texts before
(`apimachinery.codecs.document`), and stay such.

Invariant: what may still change, or is in use elsewhere, keeps its identity: exchanges in progress, documents that are not
compressed, and objects of all types but those of `_WRITTEN` and tuples.
"""

from __future__ import annotations

import pickle
import zlib
from array import array
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from io import BytesIO
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from fakekube.apimachinery.codecs.document import CompressedText, Document
from fakekube.apiserver.endpoints.request import RequestInfo
from fakekube.powers.exchange import Cause, Deliveries, Exchange

T = TypeVar("T")

#: The number of items of a pack, so that requests wait for a few milliseconds while it is made.
_ITEMS: Final = 500
#: The types of the objects that are always written, besides tuples with names.
_WRITTEN: Final = frozenset(
    {type(None), bool, int, float, str, bytes, tuple, list, dict, array, datetime, timedelta}
    | {RequestInfo, Cause, Deliveries, CompressedText}
)


def _is_written(value: object) -> bool:
    if isinstance(value, Exchange):
        return value.is_over
    return value.is_compressed if isinstance(value, Document) else isinstance(value, tuple)


class _Pickler(pickle.Pickler):
    def __init__(self, file: BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.kept: dict[int, object] = {}
        """The objects that are not written, by their identities."""

    def persistent_id(self, value: object) -> int | None:
        if value.__class__ in _WRITTEN or _is_written(value):
            return None
        self.kept[id(value)] = value
        return id(value)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BytesIO, kept: dict[int, object]) -> None:
        super().__init__(file)
        self._kept = kept

    def persistent_load(self, identity: Any) -> object:
        return self._kept[identity]


class Pack(Generic[T]):
    """Some items as one text."""

    __slots__ = ("_kept", "_text")

    def __init__(self, items: Sequence[T]) -> None:
        written = BytesIO()
        pickler = _Pickler(written)
        pickler.dump(items)
        self._text = zlib.compress(written.getvalue())
        self._kept = pickler.kept

    def unpack(self) -> Sequence[T]:
        """Makes the items."""
        made: Sequence[T] = _Unpickler(BytesIO(zlib.decompress(self._text)), self._kept).load()
        return made


def make_packs(items: Iterable[T]) -> list[Pack[T]]:
    """Packs items."""
    left = iter(items)
    return [Pack(some) for some in iter(lambda: list(islice(left, _ITEMS)), [])]
