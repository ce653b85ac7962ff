"""Describes subresources: the paths below an object, and what each of them reads and writes.

Every subresource has one of three forms:

* a *view*: the object itself through another `Strategy` (status, finalize, approval, ephemeralcontainers, resize);
* a *projection*: another kind computed from the object and written back into it (scale);
* an *action*: a POST that does something and answers with an object (binding, eviction, token).

Subresources that need a kubelet (log, exec, proxy …) have none of these forms; see `apiserver.endpoints.handlers.connect`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fakekube.apis.rest.strategy import Strategy

if TYPE_CHECKING:
    from fakekube.apimachinery.errors import FieldError
    from fakekube.apimachinery.schema.model import Type
    from fakekube.apis.rest.resource import GVK
    from fakekube.apis.rest.strategy import Object, WriteContext

__all__ = ["Action", "Projection", "Subresource"]

Action = Callable[["WriteContext", str, "Object"], "Object"]
"""(context, name of the parent, decoded body) → the answer. Raises StatusError. Honours `context.dry_run`."""


@dataclass(slots=True, frozen=True)
class Projection:
    """Another kind that is computed from the object and written back into it."""

    read: Callable[[Object], Object]
    """The projected object, complete with metadata, without kind and apiVersion. May raise StatusError."""
    write: Callable[[Object, Object], Object]
    """(stored object, changed projection) → a new object that shares what did not change."""
    validate: Callable[[Object], list[FieldError]]
    """Validates the changed projection; returns field errors."""
    replicas_path: tuple[str, ...] = ("spec", "replicas")
    """The path of the object's field behind the projection's spec.replicas."""
    read_for_update: Callable[[Object], Object] | None = None
    """Computes the projection that a patch is applied to, if it differs from the one that is read."""
    read_written: Callable[[Object], Object] | None = None
    """Computes the projection that a write returns, if it differs from the one that is read."""


@dataclass(eq=False)
class Subresource:
    """A subresource of a resource. Its implementation is imported when it is first used."""

    name: str
    gvk: GVK
    """The kind or type of request and response bodies."""
    verbs: frozenset[str]
    type_factory: Callable[[], Type]
    factory: Callable[[], Strategy | Projection | Action | None]
    tables: bool = True
    """Responses can be transformed to Tables."""

    @cached_property
    def type(self) -> Type:
        """The kind or type of request and response bodies."""
        return self.type_factory()

    @cached_property
    def _implementation(self) -> Strategy | Projection | Action | None:
        return self.factory()

    @property
    def strategy(self) -> Strategy | None:
        """If it is a view."""
        found = self._implementation
        return found if isinstance(found, Strategy) else None

    @property
    def projection(self) -> Projection | None:
        found = self._implementation
        return found if isinstance(found, Projection) else None

    @property
    def action(self) -> Action | None:
        found = self._implementation
        return None if found is None or isinstance(found, Strategy | Projection) else found
