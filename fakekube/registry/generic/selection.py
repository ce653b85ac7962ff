"""Selectors over stored objects: which objects match, and which conditions the store can find them by.

What requires a label or a field to have one of some values is a condition; the store keeps an index of each attribute
that was asked for. Everything else (`!=`, `notin`, `exists` …) is only told by a look at the object.

Specified by: k8s.io/apiserver/pkg/storage/selection_predicate.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fakekube.codecs.document import Document
from fakekube.registry.generic import versions
from fakekube.registry.options import ListOptions
from fakekube.registry.resource import Resource
from fakekube.registry.scope import Scope
from fakekube.registry.selectable_fields import FieldReader
from fakekube.store import Condition, Page, Selection

__all__ = ["Matches", "candidates", "matcher"]

Matches = Callable[[Document], bool]
"""Is a stored document among those that are asked for?"""


def matcher(resource: Resource, options: ListOptions) -> Matches | None:
    """Does a stored document match the selectors? None if there are none.

    Of a custom resource it is what the version of the request shows that must match.
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
    """The read of the collection that finds all that match, and as little else as can be: `page` or `select`."""
    conditions = _conditions(scope.resource, options)
    return partial(scope.bucket.select, conditions, scope.prefix) if conditions else partial(scope.bucket.page, scope.prefix)


def _conditions(resource: Resource, options: ListOptions) -> list[Condition[Document]]:
    """What every stored document that matches meets; none if the selectors tell nothing of that sort.

    What a webhook shows of the document is its own affair; so are the fields that a version of a custom resource shows.
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
