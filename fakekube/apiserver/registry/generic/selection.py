"""Evaluates selectors over stored objects, and derives index conditions for the store from them.

A requirement that a label or field has one of some values is a condition; the store has an index for each attribute
that was selected by. Other requirements (`!=`, `notin`, `exists` …) are evaluated on each object.

Specified by: k8s.io/apiserver/pkg/storage/selection_predicate.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fakekube.apimachinery.codecs.document import Document
from fakekube.apis.rest.resource import Resource
from fakekube.apis.rest.selectable_fields import FieldReader
from fakekube.apiserver.registry.generic import versions
from fakekube.apiserver.registry.options import ListOptions
from fakekube.apiserver.registry.scope import Scope
from fakekube.store import Condition, Page, Selection

Matches = Callable[[Document], bool]
"""Reports whether a stored document matches."""


def matcher(resource: Resource, options: ListOptions) -> Matches | None:
    """Returns the predicate of the selectors; None if there are none.

    Custom resources are matched in the version of the request.
    """
    labels, fields = options.labels, options.fields
    if not options.selects:
        return None
    read = resource.read_field
    if fields.empty and not resource.converts_by_call:
        return lambda document: labels.matches(document.object["metadata"].get("labels"))

    def matches(document: Document) -> bool:
        obj = versions.shown(resource, document).object if resource.custom else document.object
        return labels.matches(obj["metadata"].get("labels")) and fields.matches(lambda name: read(name, obj))

    return matches


@dataclass(frozen=True, slots=True)
class _Label:
    """Reads one label of a stored document."""

    key: str

    def __call__(self, document: Document) -> str | None:
        labels: dict[str, str] | None = document.object["metadata"].get("labels")
        return labels.get(self.key) if labels else None


@dataclass(frozen=True, slots=True)
class _Field:
    """Reads one field of a stored document."""

    read: FieldReader

    def __call__(self, document: Document) -> str:
        return self.read(document.object)


def candidates(scope: Scope, options: ListOptions) -> Callable[..., Page[Document] | Selection[Document]]:
    """Returns the store's read (`page` or `select`) that finds all matching objects, and few others."""
    conditions = _conditions(scope.resource, options)
    return partial(scope.bucket.select, conditions, scope.prefix) if conditions else partial(scope.bucket.page, scope.prefix)


def _conditions(resource: Resource, options: ListOptions) -> list[Condition[Document]]:
    """Returns the conditions that every matching stored document meets; may be empty.

    There are none for documents that a webhook converts; for custom resources only those of labels.
    """
    if resource.converts_by_call:
        return []
    labels = [Condition(_Label(one.key), one.allowed_values) for one in options.labels.requirements if one.allowed_values]
    if resource.custom:
        return labels
    readers = resource.field_readers
    fields = [
        Condition(_Field(readers[one.field]), (one.value,))
        for one in options.fields.requirements
        if one.operator == "=" and one.field in readers
    ]
    return [*labels, *fields]
