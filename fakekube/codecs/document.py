"""A stored object together with its encodings, each made once.

The values in the store are Documents. An object never changes once a Document holds it, so that an encoding
is valid for as long as the Document lives: a list is a join of kept bytes, an event to a thousand watchers
is encoded once.

What is kept is the *part*: the bytes that stand in a list's items. For JSON of built-in kinds these have
neither `kind` nor `apiVersion`; the answer to a get is the same bytes with both put in front
(`codecs.formats`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from fakekube.codecs import json

__all__ = ["Document", "Object", "encodings_of", "json_of"]

Object = dict[str, Any]
V = TypeVar("V")


class Document:
    """An object that is never changed, and what was made of it."""

    __slots__ = ("_json", "_made", "object")

    def __init__(self, obj: Object) -> None:
        self.object = obj
        self._json = b""  # what is asked for most has a place of its own
        self._made: dict[Hashable, Any] = {}

    def encoded(self, key: Hashable, make: Callable[[Object], V]) -> V:
        """What `make` makes of the object, made once per key.

        Threads that ask for the same at the same time may each make it; all get equal values, one is kept.
        """
        try:
            return self._made[key]  # type: ignore[no-any-return]
        except KeyError:
            return self._made.setdefault(key, make(self.object))  # type: ignore[no-any-return]

    @property
    def json(self) -> bytes:
        """The object as compact JSON, as it stands in the items of a list; no newline at the end."""
        encoded = self._json  # which another thread may drop meanwhile
        if not encoded:
            # a copy: the encoder's own bytes hold up to twice the room that they need
            encoded = self._json = memoryview(json.dumps(self.object)).tobytes()
        return encoded

    def supersede(self) -> None:
        """Keep no JSON: another version has taken the place of this one, and few ask for it any more."""
        self._json = b""

    def __repr__(self) -> str:
        metadata = self.object.get("metadata") or {}
        return f"<Document {metadata.get('namespace', '')}/{metadata.get('name', '')}>"


def json_of(documents: Iterable[Document]) -> list[bytes]:
    """The `json` of each: a list of thousands is little more than this loop."""
    return [document._json or document.json for document in documents]


def encodings_of(documents: Iterable[Document], key: Hashable, make: Callable[[Object], V]) -> list[V]:
    """The `encoded` of each, for encodings that are never empty."""
    return [document._made.get(key) or document.encoded(key, make) for document in documents]
