"""The paths below an object: what each of them reads and writes.

Three forms, and every subresource is one of them:

* a *view*: the object itself through another strategy (status, finalize, approval, ephemeralcontainers, resize);
* a *projection*: another kind computed from the object and written back into it (scale);
* an *action*: a POST that does something and answers with an object (binding, eviction, token).

What only a running cluster could answer (log, exec, proxy …) has no form: `connect` answers as a server without nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakekube.resources.registry import GVK

if TYPE_CHECKING:
    from fakekube.resources.strategy import Object, Strategy, WriteContext

__all__ = ["Action", "Projection", "Subresource"]

Action = Callable[["WriteContext", str, "Object"], "Object"]
"""(context, name of the parent, decoded body) → the answer. Raises StatusError. Honours `context.dry_run`."""


@dataclass(slots=True, frozen=True)
class Projection:
    """Another kind as a window on the object."""

    read: Callable[[Object], Object]
    """The projected object, complete with metadata, without kind and apiVersion."""
    write: Callable[[Object, Object], Object]
    """(stored object, changed projection) → a new object that shares what did not change."""
    validate: Callable[[Object], list[object]]
    """Field errors of the changed projection."""


@dataclass(slots=True, frozen=True)
class Subresource:
    """One path below an object. Exactly one of strategy, projection and action is set, or none (connect)."""

    name: str
    gvk: GVK
    """Of the bodies sent and answered."""
    verbs: frozenset[str]
    strategy: Strategy | None = None
    projection: Projection | None = None
    action: Action | None = None
