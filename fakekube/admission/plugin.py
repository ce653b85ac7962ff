"""What a rule of admission is, and what it sees of a write.

A `Plugin` says which operations on which resources it looks at, so that others cost nothing. Changing plugins
`admit` the object before it is validated; checking ones `validate` what will be stored.

Specified by: k8s.io/apiserver/pkg/admission (Attributes, MutationInterface, ValidationInterface).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from fakekube.resources.registry import Resource
    from fakekube.resources.strategy import Object, WriteContext

__all__ = ["Attributes", "Operation", "Plugin"]


class Operation(StrEnum):
    """What is done to an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(slots=True)
class Attributes:
    """One write, as plugins see it."""

    resource: Resource
    subresource: str
    namespace: str
    """"" for cluster-scoped resources."""
    name: str
    """"" while a name is still to be generated, and for objects of a deleted collection."""
    operation: Operation
    object: Object | None
    """The new object; plugins that admit change it in place. None for deletions."""
    old: Object | None
    """The stored object; None for creations. Never changed."""
    context: WriteContext


class Plugin:
    """One rule of admission. Without state of its own: what it needs is in the attributes' context."""

    name: ClassVar[str] = ""
    operations: ClassVar[frozenset[Operation]] = frozenset()
    resources: ClassVar[frozenset[tuple[str, str]] | None] = None
    """(group, plural) of what it looks at; None: everything."""
    subresources: ClassVar[frozenset[str] | None] = frozenset({""})
    """Through which subresources it sees them ("": the object itself); None: all."""

    def admit(self, attributes: Attributes) -> None:
        """Change the new object, or raise StatusError."""

    def validate(self, attributes: Attributes) -> None:
        """Raise StatusError if this may not be stored."""
