"""What follows from schemas, remembered by the process: test suites install the same definitions in one fresh cluster
after another.

Everything here follows from a schema alone, is made when it is first asked for, and is shared by all clusters in which
somebody defines the same. What is served has been accepted: so a schema that is known need not be judged again.

Invariants: a schema is known by what it prints as; it, and what follows from it, are never changed (the walks that types
compile come to the same, whoever adds them). The least recently used are forgotten when all together get too long.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from fakekube.codecs import json
from fakekube.crd.instances.compiled_validator import Fits, fits
from fakekube.crd.instances.value_types import supported_formats, unrecognized_formats
from fakekube.crd.schema.structural import schema_type
from fakekube.crd.schema.visitor import has_rules
from fakekube.schema.model import Type

if TYPE_CHECKING:
    from fakekube.cel import Rules

__all__ = ["KnownSchema", "known", "recalled"]

Schema = Mapping[str, Any]

#: Of the texts of all schemas that are remembered, in bytes; what follows from them takes some ten times as much.
_MOST: Final = 16 * 1024 * 1024


class KnownSchema:
    """A schema that is served, and what follows from it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    @cached_property
    def type(self) -> Type:
        """The type of the values."""
        return schema_type(self.schema)

    @cached_property
    def keywords(self) -> Schema:
        """The schema by which values are judged."""
        return supported_formats(self.schema)

    @cached_property
    def unrecognized_formats(self) -> list[str]:
        """The formats in it that nothing checks."""
        return unrecognized_formats(self.schema)

    @cached_property
    def fits(self) -> Fits:
        """Does an object fit `keywords`? Most do."""
        return fits(self.keywords)

    @cached_property
    def rules(self) -> Rules | None:
        """Its x-kubernetes-validations; None if there are none."""
        if not has_rules(self.schema):
            return None
        from fakekube.cel import compile_rules  # which takes a while, and most definitions do without

        return compile_rules(self.schema)


class _Memory:
    """The schemas that are known, by their texts; those used last come last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[bytes, KnownSchema] = {}
        self._size = 0

    def get(self, text: bytes) -> KnownSchema | None:
        with self._lock:
            found = self._known.pop(text, None)
            if found is not None:
                self._known[text] = found
            return found

    def add(self, text: bytes, new: KnownSchema) -> None:
        with self._lock:
            self._forget(text)
            self._known[text] = new
            self._size += len(text)
            while self._size > _MOST:
                self._forget(next(iter(self._known)))

    def _forget(self, text: bytes) -> None:
        if self._known.pop(text, None) is not None:
            self._size -= len(text)


_memory = _Memory()


def recalled(schema: Schema) -> KnownSchema | None:
    """What is known of a schema if one that prints alike has been served in this process: then nothing is wrong with it."""
    return _memory.get(_text(schema))


def known(schema: Schema) -> KnownSchema:
    """What is known of a schema that is served. It is kept, and must not be changed any more."""
    text = _text(schema)
    found = _memory.get(text)
    if found is None:
        found = KnownSchema(schema)
        _memory.add(text, found)
    return found


def _text(schema: Schema) -> bytes:
    return json.dumps(schema, floats=False)
