"""Caches compiled schemas in the process, since test suites install the same definitions in many fresh clusters.

All values are derived from a schema and the emulated minor alone, computed on first use, and shared by all clusters of the minor
that have a definition with the schema. A served schema has been validated, so a schema in the cache need not be validated again.

Invariants: the minor and the JSON text of a schema are its key; the schema and the values derived from it are immutable. The
least recently used schemas are evicted when the total size exceeds the limit.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from fakekube.apiextensions.instances.compiled_validator import Fits, fits
from fakekube.apiextensions.instances.validation import supported_formats, unrecognized_formats
from fakekube.apiextensions.schema import has_rules, schema_type
from fakekube.apimachinery import features
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.model import Type

if TYPE_CHECKING:
    from fakekube.apimachinery.cel import Rules


Schema = Mapping[str, Any]

#: The limit of the total size of the schemas' texts, in bytes; derived values take about ten times as much.
_MAXIMUM_SIZE: Final = 8 * 1024 * 1024


class CompiledSchema:
    """A served schema, and the values derived from it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    @cached_property
    def type(self) -> Type:
        """The type of the values."""
        return schema_type(self.schema)

    @cached_property
    def keywords(self) -> Schema:
        """The schema by which values are validated."""
        return supported_formats(self.schema)

    @cached_property
    def unrecognized_formats(self) -> list[str]:
        """The unrecognized formats in the schema."""
        return unrecognized_formats(self.schema)

    @cached_property
    def fits(self) -> Fits:
        """Reports whether an object is valid by `keywords`."""
        return fits(self.keywords)

    @cached_property
    def rules(self) -> Rules | None:
        """Its x-kubernetes-validations; None if there are none."""
        if not has_rules(self.schema):
            return None
        from fakekube.apimachinery.cel import compile_rules  # imported late: that is slow, and most definitions have no rules

        return compile_rules(self.schema)


class _Cache:
    """The cached schemas by their texts, in the order of last use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._schemas: dict[bytes, CompiledSchema] = {}
        self._size = 0

    def get(self, text: bytes) -> CompiledSchema | None:
        with self._lock:
            found = self._schemas.pop(text, None)
            if found is not None:
                self._schemas[text] = found
            return found

    def add(self, text: bytes, new: CompiledSchema) -> None:
        with self._lock:
            self._remove(text)
            self._schemas[text] = new
            self._size += len(text)
            while self._size > _MAXIMUM_SIZE:
                self._remove(next(iter(self._schemas)))

    def _remove(self, text: bytes) -> None:
        if self._schemas.pop(text, None) is not None:
            self._size -= len(text)


_cache = _Cache()


def find_compiled(schema: Schema) -> CompiledSchema | None:
    """Returns the cached schema if an equal one has been served in this process (and is therefore valid), else None."""
    return _cache.get(_text(schema))


def compile_schema(schema: Schema) -> CompiledSchema:
    """Adds a served schema to the cache and returns it. The schema must not be changed any more."""
    text = _text(schema)
    found = _cache.get(text)
    if found is None:
        found = CompiledSchema(schema)
        _cache.add(text, found)
    return found


def _text(schema: Schema) -> bytes:
    """The key of a schema; minors differ in which schemas and values they accept."""
    return b"%d:%b" % (features.current().minor, json.dumps(schema, floats=False))
