"""Admission of writes after authorization and before storage: the interface of plugins, their errors, and the chain.

A `Plugin` declares the operations and resources that it handles; the chain caches the plugins by resource and operation, so that
others cost nothing. Mutating plugins `admit` the object before it is validated, validating plugins `validate` the object that
will be stored. The mutating plugins run a second time if one of them requests it; each decides by the reinvocation context
whether it acts again.

Specified by: k8s.io/apiserver/pkg/admission (interfaces.go, attributes.go, chain.go, reinvocation.go, errors.go);
pkg/kubeapiserver/options/plugins.go for the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.selectors.labels import label_key
from fakekube.base.caches import forgettable

if TYPE_CHECKING:
    from fakekube.apis.rest.cluster_access import AdmissionSnapshot
    from fakekube.apis.rest.resource import GVK, Resource
    from fakekube.apis.rest.strategy import WriteContext
    from fakekube.base.objects import Object


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
    selected: _Halves | None = None
    """The plugins that apply to the write; None until the chain has selected them."""

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
    acts_for: ClassVar[str] = ""
    """The attribute of `AdmissionSnapshot` without which the plugin is skipped; "" if it never is."""
    dynamic: ClassVar[bool] = False
    """Each cluster has a plugin of its own."""
    repeatable: ClassVar[bool] = True
    """Whether equal writes are decided alike until something else is written, if there are no webhooks and policies."""

    @classmethod
    def from_configuration(cls, configuration: Any) -> Plugin:
        """Returns the plugin with its part of the configuration file (None: not configured). Raises ConfigurationError."""
        return cls()

    def admit(self, attributes: Attributes) -> None:
        """Mutates the new object. Raises StatusError to reject it."""

    def validate(self, attributes: Attributes) -> None:
        """Validates the write. Raises StatusError to reject it."""


def _shown_name(attributes: Attributes) -> str:
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
    return status.forbidden(resource.group, resource.plural, _shown_name(attributes), problem)


def not_found(attributes: Attributes) -> StatusError:
    """Returns a 404 for the resource of the request."""
    resource = attributes.resource
    return status.not_found(resource.group, resource.plural, _shown_name(attributes))


class Chain:
    """An ordered list of plugins."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self._plugins = tuple(plugins)
        self.repeatable = all(plugin.repeatable for plugin in self._plugins)
        """Whether all plugins are."""
        self._applying: tuple[AdmissionSnapshot | None, dict[tuple[str, str, str, Operation], _Halves]] = (None, {})
        """The plugins that apply while the cluster has configured what the snapshot says."""

    def admit(self, attributes: Attributes) -> None:
        """Runs the mutating plugins, and again if one requests reinvocation. Raises StatusError."""
        plugins = self._select_plugins(attributes).admit
        for admit in plugins:
            admit(attributes)
        reinvocation = attributes.reinvocation
        if reinvocation is not None and reinvocation.should_reinvoke:
            reinvocation.is_reinvoke = True
            for admit in plugins:
                admit(attributes)

    def validate(self, attributes: Attributes) -> None:
        """Runs the validating plugins. Raises StatusError."""
        for validate in self._select_plugins(attributes).validate:
            validate(attributes)

    def _select_plugins(self, attributes: Attributes) -> _Halves:
        if attributes.selected is not None:
            return attributes.selected
        resource, snapshot = attributes.resource, attributes.context.configured
        as_of, applying = self._applying
        if as_of is not snapshot:
            applying = {}
            self._applying = snapshot, applying
        key = (resource.group, resource.plural, attributes.subresource, attributes.operation)
        found = applying.get(key)
        if found is None:
            plugins = tuple([plugin for plugin in self._plugins if not plugin.acts_for or getattr(snapshot, plugin.acts_for)])
            if any(plugin.dynamic for plugin in plugins):  # not cached beyond this cluster
                found = _applying(plugins, *key)
            else:  # the clusters of a process share these plugins, and so the result
                found = _known(plugins, *key)
            applying[key] = found
        attributes.selected = found
        return found


class _Halves(NamedTuple):
    """The mutating and validating methods of some plugins, in order; most plugins have one of them."""

    admit: Sequence[Callable[[Attributes], None]]
    validate: Sequence[Callable[[Attributes], None]]


def _applying(plugins: tuple[Plugin, ...], group: str, plural: str, subresource: str, operation: Operation) -> _Halves:
    """Returns the methods of those plugins that apply to a resource and an operation."""
    able = [plugin for plugin in plugins if _applies(plugin, group, plural, subresource, operation)]
    return _Halves(
        [plugin.admit for plugin in able if type(plugin).admit is not Plugin.admit],
        [plugin.validate for plugin in able if type(plugin).validate is not Plugin.validate],
    )


_known = forgettable(lru_cache(maxsize=512)(_applying))


def _applies(plugin: Plugin, group: str, plural: str, subresource: str, operation: Operation) -> bool:
    if operation not in plugin.operations:
        return False
    if plugin.subresources is not None and subresource not in plugin.subresources:
        return False
    return plugin.resources is None or (group, plural) in plugin.resources
