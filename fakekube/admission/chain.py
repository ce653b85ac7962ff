"""The admission chain: what may change or refuse a write after authorization and before it is stored.

A `Plugin` says which operations on which resources it looks at, so that others cost nothing; the chain
keeps, for each of them, the plugins that apply. Changing plugins run first (`admit`), on the object before
it is validated; checking ones (`validate`) see what will be stored.

Specified by: k8s.io/apiserver/pkg/admission; pkg/kubeapiserver/options/plugins.go for the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from fakekube.resources.registry import Resource
    from fakekube.resources.strategy import Object, WriteContext

__all__ = ["Attributes", "Chain", "Operation", "Plugin"]


class Operation(Enum):
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


class Chain:
    """Plugins in their order."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self._plugins = tuple(plugins)
        self._applying: dict[tuple[str, str, str, Operation], Sequence[Plugin]] = {}

    @classmethod
    def of_profile(cls, profile: str) -> Chain:
        """The chain of a plain kube-apiserver (`apiserver`: as envtest runs it; `cluster`: with every
        default plugin)."""
        from fakekube.admission.profiles import plugins

        return cls(plugins(profile))

    def admit(self, attributes: Attributes) -> None:
        """Run the changing half. Raises StatusError."""
        for plugin in self._for(attributes):
            plugin.admit(attributes)

    def validate(self, attributes: Attributes) -> None:
        """Run the checking half. Raises StatusError."""
        for plugin in self._for(attributes):
            plugin.validate(attributes)

    def _for(self, attributes: Attributes) -> Sequence[Plugin]:
        resource = attributes.resource
        key = (resource.group, resource.plural, attributes.subresource, attributes.operation)
        found = self._applying.get(key)
        if found is None:
            found = self._applying[key] = [p for p in self._plugins if _applies(p, *key)]
        return found


def _applies(plugin: Plugin, group: str, plural: str, subresource: str, operation: Operation) -> bool:
    if operation not in plugin.operations:
        return False
    if plugin.subresources is not None and subresource not in plugin.subresources:
        return False
    return plugin.resources is None or (group, plural) in plugin.resources
