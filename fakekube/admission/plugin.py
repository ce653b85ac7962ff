"""What a rule of admission is, and what it sees of a write.

A `Plugin` says which operations on which resources it looks at, so that others cost nothing. Changing plugins
`admit` the object before it is validated; checking ones `validate` what will be stored.

Specified by: k8s.io/apiserver/pkg/admission (Attributes, ReinvocationContext, MutationInterface, ValidationInterface).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.selectors.syntax import label_key

if TYPE_CHECKING:
    from fakekube.registry.resource import GVK, Resource
    from fakekube.registry.strategy import Object, WriteContext

__all__ = ["Attributes", "Operation", "Plugin", "ReinvocationContext"]


class Operation(StrEnum):
    """What is done to an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


#: A patch updates or creates: admission sees the options of that.
_OPTIONS = {
    Operation.CREATE: "CreateOptions", Operation.UPDATE: "UpdateOptions", Operation.DELETE: "DeleteOptions",
}


@dataclass(slots=True)
class ReinvocationContext:
    """Tells the changing plugins of one request whether they run for the second time."""

    is_reinvoke: bool = False
    should_reinvoke: bool = False
    """A plugin has changed the object in a way that earlier plugins must see."""
    values: dict[str, Any] = field(default_factory=dict)
    """What plugins remember from the first to the second time, by the plugin's name."""


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
    reinvocation: ReinvocationContext = field(default_factory=ReinvocationContext)

    @property
    def options(self) -> Mapping[str, Any]:
        """Of the operation, with kind and apiVersion: CreateOptions, UpdateOptions, DeleteOptions; {} for connections."""
        kind = _OPTIONS.get(self.operation)
        return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **self.context.options} if kind is not None else {}

    @property
    def kind(self) -> GVK:
        """Of the body of the request: that of a subresource may be another one than that of the resource."""
        below = self.resource.subresources.get(self.subresource)
        return below.gvk if below is not None else self.resource.gvk

    def add_annotation(self, key: str, value: str, level: str = "Metadata") -> None:
        """Tell the audit log something about this request; what was told first under a key stays. A key that is no
        qualified name with a prefix is left out, as the real server does.

        Args:
            level: the audit level from which events show the annotation, `Metadata` or `Request`.
        """
        if key.count("/") == 1 and not label_key(key):
            self.context.annotations.setdefault(key, (level, value))


class Plugin:
    """One rule of admission. Without state of its own: what it needs is in the attributes' context."""

    name: ClassVar[str] = ""
    operations: ClassVar[frozenset[Operation]] = frozenset()
    resources: ClassVar[frozenset[tuple[str, str]] | None] = None
    """(group, plural) of what it looks at; None: everything."""
    subresources: ClassVar[frozenset[str] | None] = frozenset({""})
    """Through which subresources it sees them ("": the object itself); None: all."""

    @classmethod
    def configured(cls, configuration: Any) -> Plugin:
        """The plugin, with what the configuration file says to it (None: nothing). Raises ConfigurationError."""
        return cls()

    def admit(self, attributes: Attributes) -> None:
        """Change the new object, or raise StatusError."""

    def validate(self, attributes: Attributes) -> None:
        """Raise StatusError if this may not be stored."""
