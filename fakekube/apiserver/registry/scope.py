"""The scope of a request (resource, subresource, namespace, name and options), and the backend that serves it.

`endpoints.handlers.handle` builds the scope from the path; a handler that writes adds the decoded options (`begin_write`).
The backend of a cluster is one object that `apiserver/server.py` builds.

Invariant: nothing else changes a scope, and no handler changes the backend.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/rest.go (RequestScope) and namer.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import FieldError, StatusError, status
from fakekube.apimachinery.errors.field import limit_text
from fakekube.apimachinery.features import DEFAULT, Emulation
from fakekube.apimachinery.schema.defaults import Defaulter, defaulter
from fakekube.apimachinery.schema.known_specs import set_defaults
from fakekube.apimachinery.schema.model import Type
from fakekube.apis.rest.cluster_access import ServiceRanges
from fakekube.apis.rest.resource import GVK, Resource
from fakekube.apis.rest.strategy import Strategy, Subresource, WriteContext
from fakekube.apis.validation import names
from fakekube.apiserver.endpoints.request import Request
from fakekube.apiserver.registry.served_apis import NO_RUNTIME_CONFIG, RuntimeConfig
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object
from fakekube.store import Bucket

if TYPE_CHECKING:
    from fakekube.apis.rest.cluster_access import ClusterAccess
    from fakekube.apis.rest.resource import Registry
    from fakekube.apiserver.admission.chain import Chain
    from fakekube.base.clock import Clock
    from fakekube.net.streaming.kubelet_api import Kubelet
    from fakekube.store import Store


_DECLARED_RULES = 37
"""From this minor on, declared rules are merged with the others of built-in kinds, and each error is told once."""
_RELATIVE = (".", "..")
"""Namespaces that would make a key a relative path."""


@dataclass(slots=True)
class Settings:
    """The settings of a cluster. Times are seconds."""

    emulation: Emulation = DEFAULT
    """The emulated minor of Kubernetes and its feature gates."""
    runtime_config: RuntimeConfig = NO_RUNTIME_CONFIG
    """Which APIs are served besides, or instead of, those that are by default."""
    too_large_resource_version_wait: float = 3.0
    """The maximum wait of a read for a revision in the future (blockTimeout of the watch cache)."""
    min_request_timeout: float = 1800.0
    """A watch without timeoutSeconds lasts between one and two times this (--min-request-timeout)."""
    bookmark_period: float = 60.0
    """The interval of bookmarks."""

    service_ranges: ServiceRanges = field(default_factory=ServiceRanges)
    """The ranges of ClusterIPs and node ports of Services."""

    @property
    def version(self) -> str:
        """The emulated minor of Kubernetes."""
        return self.emulation.version

    def enabled(self, gate: str) -> bool:
        """Reports whether a feature gate is enabled."""
        return self.emulation.enabled(gate)


def _allow(request: Request) -> None:
    """Allows every request: the default if there is no authorizer."""


def _may_create(request: Request) -> tuple[bool, str]:
    """Allows every request: the default if there is no authorizer."""
    return True, ""


def _no_kubelet(_node: dict[str, Any]) -> Kubelet | None:
    """Nothing listens at the address of any node: the default if no kubelets run."""
    return None


@dataclass(slots=True)
class Backend:
    """The parts of one cluster that request handlers use."""

    store: Store[Document]
    registry: Registry
    clock: Clock
    services: ClusterAccess
    admission: Chain
    settings: Settings = field(default_factory=Settings)
    authorize_creation: Callable[[Request], None] = _allow
    """Raises StatusError 403 if the user of a PUT or apply that creates has no permission to create."""
    forwards: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    """The addresses that Services are forwarded to, by namespace and name: host and port."""
    may_create: Callable[[Request], tuple[bool, str]] = _may_create
    """Reports whether the user of a request that reads may also create, and if not, the reason of the authorizer."""
    control_loops: tuple[object, ...] = ()
    """The API server's own control loops, which run as long as they are referred to here."""
    kubelet_of: Callable[[dict[str, Any]], Kubelet | None] = _no_kubelet
    """Returns the kubelet that runs the pods of a Node; None if nothing listens at its address."""
    conversions: dict[Resource, Any] = field(default_factory=dict)
    """The conversions of resources that a webhook converts (`generic.conversion`)."""


@dataclass(eq=False)
class Scope:
    """The resource, names and options of a request. Not frozen, which would double the cost of making one."""

    request: Request
    backend: Backend
    resource: Resource
    subresource: Subresource | None
    namespace: str
    """The namespace of the objects: "" for cluster-scoped resources, and for lists over all namespaces."""
    name: str
    """The name in the path; "" for collections."""
    dry_run: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    """The options of the write as an object, as the client sent them."""
    requested_subresource: str = ""
    """The subresource in the path, if this scope is that of the main resource (`main`)."""
    kind: GVK = field(init=False)
    """The type of the bodies of this endpoint."""
    strategy: Strategy = field(init=False)
    """The strategy of writes through this endpoint."""
    is_custom: bool = field(init=False)
    """Whether the bodies of this endpoint are custom resources."""
    _context: WriteContext | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        resource, subresource = self.resource, self.subresource
        if subresource is None:
            self.kind, self.strategy, self.is_custom = resource.gvk, resource.strategy, resource.custom
        else:
            self.kind, self.strategy = subresource.gvk, subresource.strategy or resource.strategy
            self.is_custom = resource.custom and self.kind == resource.gvk

    @property
    def context(self) -> WriteContext:
        """The context of this request for strategies and admission; made when it is first asked for.

        functools.cached_property has a lock before Python 3.12, which costs more.
        """
        made = self._context
        if made is None:
            made = self._context = self._make_context()
        return made

    @property
    def bucket(self) -> Bucket[Document]:
        return self.backend.store.bucket(self.resource.bucket)

    def begin_write(self, dry_run: bool, options: dict[str, Any], name: str | None = None) -> None:
        """Sets the options of a write, before anything asks for its context; `name`: of the object, if the path has none."""
        self.dry_run, self.options = dry_run, options
        if name is not None:
            self.name = name

    @cached_property
    def main(self) -> Scope:
        """The scope of the main resource; strategies and admission still get the subresource."""
        return replace(self, subresource=None, requested_subresource=self.subresource.name if self.subresource else "")

    def for_namespace(self, namespace: str) -> Scope:
        """Returns the scope for the objects of one namespace."""
        return replace(self, namespace=namespace, name="")

    @property
    def constants(self) -> Defaulter:
        """Sets the constant defaults of the kind."""
        kind = self.kind
        return defaulter(self.resource.emulation.types, kind.group, kind.version, kind.kind)

    def default(self, obj: Object, *, has_constants: bool = False) -> None:
        """Sets defaults in an object, constants first. `has_constants`: the decoder has set those."""
        if not has_constants:
            set_defaults(self.constants, obj)
        if self.subresource is None or self.kind == self.resource.gvk:
            strategy = self.resource.strategy
            strategy.default(obj)
            strategy.default_times(obj, self.backend.clock)

    def require_name(self) -> None:
        """Raises StatusError 400 for a path without a name (`/pods//status`; paths of custom resources may end with a slash)."""
        if not self.name:
            raise status.bad_request("name must be provided")

    @property
    def key(self) -> str:
        """The key of the object in the path. Raises StatusError, see `key_of`."""
        return self.key_of(self.name)

    def key_of(self, name: str) -> str:
        """Returns the key of an object. Raises StatusError 400 without a name, or 500 for a namespace that no key can contain."""
        if self.resource.namespaced and not self.namespace:
            raise status.bad_request("Namespace parameter required.")
        problems = names.path_segment(name)
        if problems:
            raise status.bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(problems)}")
        if self.namespace in _RELATIVE:
            raise self._invalid_key(f"{self.namespace}/{name}")
        return self.resource.key(self.namespace, name)

    @property
    def prefix(self) -> str:
        """The common prefix of the keys of the collection. Raises StatusError 500 for a namespace that no key can contain."""
        if self.namespace in _RELATIVE:
            raise self._invalid_key(self.namespace)
        return self.resource.key_prefix(self.namespace)

    def _invalid_key(self, key: str) -> StatusError:
        return status.generic(500, "", f"invalid key: {go_quote(f'/{self.resource.storage_prefix}/{key}')}")

    @property
    def type(self) -> Type:
        """The type of the bodies of this endpoint."""
        if self.subresource is not None and self.subresource.gvk != self.resource.gvk:
            return self.subresource.type
        return self.resource.type

    def _make_context(self) -> WriteContext:
        request, services = self.request, self.backend.services
        user = request.user
        # by position: names treble the cost, which each write has
        return WriteContext(
            self.resource,
            self.namespace,
            self.backend.clock,
            services,
            user.name,
            user.groups,
            user.uid,
            user.extra,
            request.info.verb,
            self.subresource.name if self.subresource else self.requested_subresource,
            self.name,
            self.dry_run,
            self.options,
            request.warnings,
            request.deadline,
            request.annotations,
            services.admission_snapshot(),
        )

    def not_found(self, name: str | None = None) -> StatusError:
        return status.not_found(self.resource.group, self.resource.plural, self.name if name is None else name)

    def conflict(self, problem: str, name: str | None = None) -> StatusError:
        return status.conflict(self.resource.group, self.resource.plural, self.name if name is None else name, problem)

    def invalid(self, obj: Object, errors: list[FieldError]) -> StatusError:
        """Returns a 422 for the object in this request."""
        name = obj.get("metadata", {}).get("name", "")
        resource = self.resource
        if resource.custom:
            return status.invalid(obj.get("apiVersion", "").rpartition("/")[0], obj.get("kind", ""), name, errors)
        if resource.emulation.minor >= _DECLARED_RULES:
            errors = list({(error.type, error.path, error.body): error for error in reversed(limit_text(errors))}.values())[::-1]
        return status.invalid(resource.stored_group, resource.kind, name, errors)
