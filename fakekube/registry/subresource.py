"""The paths below an object: what each of them reads and writes.

Three forms, and every subresource is one of them:

* a *view*: the object itself through another `Strategy` (status, finalize, approval, ephemeralcontainers, resize);
* a *projection*: another kind computed from the object and written back into it (scale);
* an *action*: a POST that does something and answers with an object (binding, eviction, token).

What only a running node could answer (log, exec, proxy …) has no form: those verbs answer as a server without nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fakekube.registry.strategy import Strategy

if TYPE_CHECKING:
    from fakekube.errors import FieldError
    from fakekube.registry.resource import GVK
    from fakekube.registry.strategy import Object, WriteContext
    from fakekube.schema.model import Type

__all__ = ["Action", "Projection", "Subresource"]

Action = Callable[["WriteContext", str, "Object"], "Object"]
"""(context, name of the parent, decoded body) → the answer. Raises StatusError. Honours `context.dry_run`."""


@dataclass(slots=True, frozen=True)
class Projection:
    """Another kind as a window on the object."""

    read: Callable[[Object], Object]
    """The projected object, complete with metadata, without kind and apiVersion. May raise StatusError."""
    write: Callable[[Object, Object], Object]
    """(stored object, changed projection) → a new object that shares what did not change."""
    validate: Callable[[Object], list[FieldError]]
    """Field errors of the changed projection."""
    replicas_path: tuple[str, ...] = ("spec", "replicas")
    """Where the object has what the projection's spec.replicas shows."""
    read_for_update: Callable[[Object], Object] | None = None
    """What a patch is applied to, where that is more than can be read."""
    read_written: Callable[[Object], Object] | None = None
    """What a write answers with, where that is more than can be read."""


@dataclass(eq=False)
class Subresource:
    """One path below an object. Its implementation is imported when it is first used."""

    name: str
    gvk: GVK
    """Of the bodies sent and answered."""
    verbs: frozenset[str]
    type_factory: Callable[[], Type]
    factory: Callable[[], Strategy | Projection | Action | None]
    tables: bool = True
    """Its answers can become Tables."""

    @cached_property
    def type(self) -> Type:
        """Of the bodies sent and answered."""
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
