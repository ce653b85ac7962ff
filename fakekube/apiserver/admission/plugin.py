"""Defines the interface of admission plugins, and the attributes of a write.

A `Plugin` declares the operations and resources that it handles, so that others cost nothing. Mutating plugins
`admit` the object before validation; validating plugins `validate` the object that will be stored.

Specified by: k8s.io/apiserver/pkg/admission (Attributes, ReinvocationContext, MutationInterface, ValidationInterface).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.selectors.labels import label_key

if TYPE_CHECKING:
    from fakekube.apis.rest.resource import GVK, Resource
    from fakekube.apis.rest.strategy import Object, WriteContext


class Operation(StrEnum):
    """The operation of a write."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


#: The members by themselves, for what every write does: before Python 3.12 an attribute of an Enum class is slow.
CREATE, UPDATE, DELETE, CONNECT = Operation

#: A patch updates or creates: admission gets UpdateOptions or CreateOptions.
_OPTIONS = {Operation.CREATE: "CreateOptions", Operation.UPDATE: "UpdateOptions", Operation.DELETE: "DeleteOptions"}


@dataclass(slots=True)
class ReinvocationContext:
    """Reports to the mutating plugins of a request whether they are reinvoked."""

    is_reinvoke: bool = False
    should_reinvoke: bool = False
    """Whether a plugin has requested reinvocation, because earlier plugins must see its change."""
    values: dict[str, Any] = field(default_factory=dict)
    """The state that plugins keep between the two runs, by plugin name."""


@dataclass(slots=True)
class Attributes:
    """The attributes of one write."""

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
    reinvocation: ReinvocationContext | None = None
    """None until a plugin asks for the context (`reinvocation_context`)."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the operation, with kind and apiVersion: CreateOptions, UpdateOptions, DeleteOptions; {} for
        connections."""
        kind = _OPTIONS.get(self.operation)
        return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **self.context.options} if kind is not None else {}

    @property
    def kind(self) -> GVK:
        """The kind of the request's body, which may differ from the kind of the resource for subresources."""
        below = self.resource.subresources.get(self.subresource)
        return below.gvk if below is not None else self.resource.gvk

    def reinvocation_context(self) -> ReinvocationContext:
        """Returns the reinvocation context of the write, made on first use (GetReinvocationContext)."""
        if self.reinvocation is None:
            self.reinvocation = ReinvocationContext()
        return self.reinvocation

    def add_annotation(self, key: str, value: str, level: str = "Metadata") -> None:
        """Adds an audit annotation; the first value of a key wins. Keys that are not qualified names with a prefix
        are ignored, as in the real server.

        Args:
            level: the audit level from which events show the annotation, `Metadata` or `Request`.
        """
        if key.count("/") == 1 and not label_key(key):
            self.context.annotations.setdefault(key, (level, value))


class Plugin:
    """An admission plugin. Plugins are stateless: data is in the context of the attributes."""

    name: ClassVar[str] = ""
    operations: ClassVar[frozenset[Operation]] = frozenset()
    resources: ClassVar[frozenset[tuple[str, str]] | None] = None
    """(group, plural) of what it looks at; None: everything."""
    subresources: ClassVar[frozenset[str] | None] = frozenset({""})
    """Through which subresources it sees them ("": the object itself); None: all."""
    dynamic: ClassVar[bool] = False
    """It acts for webhook configurations or bindings of policies, and is skipped while the cluster has none of them."""

    @classmethod
    def configured(cls, configuration: Any) -> Plugin:
        """Returns the plugin with its part of the configuration file (None: not configured). Raises
        ConfigurationError."""
        return cls()

    def admit(self, attributes: Attributes) -> None:
        """Mutates the new object. Raises StatusError to reject it."""

    def validate(self, attributes: Attributes) -> None:
        """Validates the write. Raises StatusError to reject it."""


# ---------------------------------------------------------------------------------------------------------------------
# The errors by which admission plugins reject requests.
#
# Specified by: k8s.io/apiserver/pkg/admission/errors.go.


def shown_name(attributes: Attributes) -> str:
    """Returns the name of the object in an error: its name, its generateName, or ""."""
    if attributes.name:
        return attributes.name
    if attributes.object is None:
        return "Unknown"
    meta = attributes.object.get("metadata") or {}
    return meta.get("name") or meta.get("generateName") or "Unknown"


def forbidden(attributes: Attributes, problem: str) -> StatusError:
    """Returns a 403 for the resource of the request."""
    resource = attributes.resource
    return status.forbidden(resource.group, resource.plural, shown_name(attributes), problem)


def not_found(attributes: Attributes) -> StatusError:
    """Returns a 404 for the resource of the request."""
    resource = attributes.resource
    return status.not_found(resource.group, resource.plural, shown_name(attributes))
