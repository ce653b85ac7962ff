"""Builds the API server of a cluster (`Machinery`) from the packages; the only module that imports all of them.

A process builds one base state per minor version (the objects of a fresh server) and forks it for every cluster, so
that a cluster costs about a millisecond. `Machinery` consists of the store, the backend, access control and the WSGI
application; `cluster.components` adds controllers and kubelets.

Invariant: the parts of a stopped cluster do not refer to each other in cycles, so that it is freed without the garbage collector.
Where two parts need each other, the reference against the direction of imports is weak.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.features import Emulation
from fakekube.apis.rest.cluster_access import Call, ClusterAccess, ServiceRanges
from fakekube.apis.rest.resource import Registry
from fakekube.apiserver.admission import Chain, ConfigurationError, Plugin, UnknownPluginError, chain_of, init_plugin
from fakekube.apiserver.aggregator.aggregator import Aggregator
from fakekube.apiserver.auth.access import Access
from fakekube.apiserver.auth.options import AuthenticationOptions, OptionError, read_text
from fakekube.apiserver.controlplane.autoregister import AutoRegisterController
from fakekube.apiserver.controlplane.bootstrap_policy import bootstrap_objects
from fakekube.apiserver.controlplane.customresourcedefinitions import CustomResourceDefinitionController
from fakekube.apiserver.controlplane.default_objects import DefaultObjectsController, as_created_now, with_service_ranges
from fakekube.apiserver.controlplane.event_expiry import EventExpiry
from fakekube.apiserver.controlplane.flowschemas import DanglingConditionController
from fakekube.apiserver.http import Application
from fakekube.apiserver.options import AdmissionOptions, AuditOptions, ServerOptions
from fakekube.apiserver.registry import builtin, served_apis
from fakekube.apiserver.registry.generic.corrupt_objects import find_unready_cache
from fakekube.apiserver.registry.generic.writes import stamp_revision
from fakekube.apiserver.registry.scope import Backend, Settings
from fakekube.apiserver.registry.served_apis import RuntimeConfig
from fakekube.apiserver.registry.store_access import StoreAccess
from fakekube.apiserver.webhooks.admission import MutatingAdmissionWebhook, ValidatingAdmissionWebhook
from fakekube.apiserver.webhooks.services import ServiceResolver
from fakekube.base.chance import Chance
from fakekube.base.clock import Clock
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object, group_version_path
from fakekube.store import Retention, Store

if TYPE_CHECKING:
    from fakekube.apiserver.audit.auditor import Auditor
    from fakekube.apiserver.webhooks.caller import Caller, Observe

#: Imported only if it is enabled.
_IMAGE_POLICY = "ImagePolicyWebhook"

DEFAULT_OPTIONS = ServerOptions()
_NO_AUDIT = AuditOptions()


#: The lowest revision of a fresh server.
_FIRST_REVISION = 200


@dataclass(slots=True)
class Machinery:
    """The components of one cluster."""

    backend: Backend
    access: Access
    application: Application
    resolver: ServiceResolver
    aggregator: Aggregator
    close: Callable[[], None]
    """Closes the connections to webhooks and extension API servers, and the auditor."""
    observe_calls: Callable[[Observe], None]
    """Sets the observer of the calls of webhooks."""
    definitions: CustomResourceDefinitionController
    add_default_object: Callable[[Object], None]
    """Adds an object that the API server restores when a client deletes or changes it."""
    origin: Store[Document] | None = None
    """The base state that the cluster is a fork of."""


Prepare = Callable[[Machinery], None]
"""Changes a fresh server to the initial state of a profile."""


def build(
    *,
    clock: Clock,
    settings: Settings,
    profile: str,
    retention: Retention | None = None,
    store: Store[Document] | None = None,
    prepare: Prepare | None = None,
    tls: bool = False,
    controllers: tuple[str, ...] = (),
    nodes: int = 0,
    options: ServerOptions = DEFAULT_OPTIONS,
    authority: str = "",
    listens_on: str = "127.0.0.1",
    chance: Chance | None = None,
) -> Machinery:
    """Builds the machinery of a cluster, on a fork of the base state of its profile or on a given store.

    `prepare` makes the base state of the profile from that of a fresh server. Its result is cached by process, for
    each `authority` (PEM; set for clusters with TLS), `controllers` and `nodes`. `listens_on` is the host of the server.
    With `chance`, the base state is that of all clusters with a seed.

    Raises OptionError for invalid flags.
    """
    origin = store
    if store is None:
        has_own = not (options.authentication.client_ca_file or options.authentication.requestheader_client_ca_file)
        origin = base(
            settings,
            profile,
            tls,
            prepare,
            kind=(controllers, nodes),
            authority=authority if has_own else "",
            seeded=chance is not None,
        )
        store = origin.fork(now=clock.monotonic, retention=retention)
    registry = _builtins(settings.emulation, settings.runtime_config).copy()
    if options.authentication.requestheader_uid_headers and not settings.emulation.enabled(_UID_HEADERS):
        raise OptionError(f'--requestheader-uid-headers requires the "{_UID_HEADERS}" feature to be enabled')
    access = Access(
        store.bucket,
        clock,
        options=options.authentication,
        authorization=options.authorization,
        authority=authority,
        listens_on=listens_on,
        emulation=settings.emulation,
    )
    services = StoreAccess(store, registry, settings, weakref.proxy(access))
    access.connect(services)
    resolver = ServiceResolver(services, _own_authority)
    webhooks = _Webhooks(resolver)
    definitions = CustomResourceDefinitionController(
        store, registry, services, clock, webhooks, find_unready_cache=find_unready_cache
    )
    try:
        aggregator = Aggregator(store, services, clock, resolver, options.aggregation)
    except ValueError as error:
        raise OptionError(str(error)) from None
    default_objects = DefaultObjectsController(store, registry, services, clock)
    control_loops = (
        definitions,
        default_objects,
        EventExpiry(store, clock, options.storage.event_ttl),
        AutoRegisterController(store, services, clock),
        DanglingConditionController(store, services, clock),
        _publish_authorities(store, services, clock, options.authentication, authority),
    )
    admission = _admission(profile, options.admission, webhooks)
    backend = Backend(store, registry, clock, services, admission, settings, access.require_creation, resolver.forwards)
    backend.may_create = access.may_create
    backend.control_loops = control_loops

    auditor = _auditor(options.audit, clock)

    def close() -> None:
        webhooks.close()
        aggregator.stop()
        if auditor is not None:
            auditor.close()

    application = Application(backend, access, aggregator, auditor)
    application.chance = chance
    return Machinery(
        backend, access, application, resolver, aggregator, close, webhooks.observe, definitions, default_objects.add, origin
    )


def _auditor(options: AuditOptions, clock: Clock) -> Auditor | None:
    """Builds the auditor, if auditing is enabled; imports its module only then. Raises OptionError."""
    if options == _NO_AUDIT:
        return None
    from fakekube.apiserver.audit.auditor import auditor_of

    return auditor_of(options, clock)


def _admission(profile: str, options: AdmissionOptions, webhooks: Call) -> Chain:
    """Builds the admission chain of a cluster. Raises OptionError for invalid flags."""
    dynamic: list[Plugin] = [MutatingAdmissionWebhook(webhooks), ValidatingAdmissionWebhook(webhooks)]
    try:
        if _IMAGE_POLICY in options.enable_admission_plugins:
            from fakekube.apiserver.webhooks.admission.image_policy import ImagePolicyWebhook

            dynamic.append(init_plugin(ImagePolicyWebhook, options))
        return chain_of(profile, options, {plugin.name: plugin for plugin in dynamic})
    except (UnknownPluginError, ConfigurationError) as error:
        raise OptionError(str(error)) from None


def _publish_authorities(
    store: Store[Document], services: ClusterAccess, clock: Clock, options: AuthenticationOptions, own: str
) -> object:
    """Writes the ConfigMap extension-apiserver-authentication, if there are certificate authorities. Returns the control loop
    that maintains it. Raises OptionError."""
    clients = read_text(options.client_ca_file, "client-ca-file") or own
    proxies = read_text(options.requestheader_client_ca_file, "requestheader-client-ca-file")
    if not clients and not proxies:
        return None
    from fakekube.apiserver.controlplane.cluster_authentication_trust import (
        ClusterAuthenticationInfo,
        ClusterAuthenticationTrustController,
    )

    info = ClusterAuthenticationInfo(
        clients,
        proxies,
        options.requestheader_allowed_names,
        options.requestheader_username_headers,
        options.requestheader_uid_headers,
        options.requestheader_group_headers,
        options.requestheader_extra_headers_prefix,
    )
    return ClusterAuthenticationTrustController(store, services, clock, info)


@cache
def _builtins(emulation: Emulation, config: RuntimeConfig) -> Registry:
    """Returns the built-in resources that a server serves."""
    return Registry(builtin.resources(emulation, config))


def _own_authority() -> str:
    from fakekube.net.certificates import authority

    return authority().pem


class _Webhooks:
    """Calls webhooks; the module for it is imported for the first call. See `apis.rest.cluster_access.Call`."""

    def __init__(self, resolver: ServiceResolver) -> None:
        self._resolver = resolver
        self._caller: Caller | None = None
        self._observe: Observe | None = None

    def __call__(self, client_config: Mapping[str, Any], review: Object, *, timeout: float = 30.0) -> Object:
        return self._make_caller()(client_config, review, timeout=timeout)

    def begin(self, client_config: Mapping[str, Any], review: Object, *, timeout: float = 30.0) -> Callable[[], Object]:
        return self._make_caller().begin(client_config, review, timeout=timeout)

    def _make_caller(self) -> Caller:
        if self._caller is None:
            from fakekube.apiserver.webhooks.caller import Caller

            self._caller = Caller(self._resolver, self._observe)
        return self._caller

    def observe(self, observe: Observe) -> None:
        """Sets the observer of all later calls."""
        self._observe = observe
        if self._caller is not None:
            self._caller.observe = observe

    def close(self) -> None:
        """Closes idle connections."""
        if self._caller is not None:
            self._caller.close()


# --- The base state ---------------------------------------------------------------------------------------------------

_building = threading.Lock()
_Kind = tuple[tuple[str, ...], int]
_prepared: dict[tuple[Emulation, RuntimeConfig, ServiceRanges, str, bool, _Kind, str, bool], Store[Document]] = {}

#: The gate of --requestheader-uid-headers.
_UID_HEADERS: Final = "RemoteRequestHeaderUID"
#: When the clock of a cluster with a seed starts.
SEEDED_START: Final = datetime(2026, 1, 1, tzinfo=UTC)


def base(
    settings: Settings,
    profile: str,
    tls: bool,
    prepare: Prepare | None,
    *,
    kind: tuple[tuple[str, ...], int] = ((), 0),
    authority: str = "",
    seeded: bool = False,
) -> Store[Document]:
    """Returns the base state of a profile, in which `authority` is published. Callers fork it and never write to it.

    With `seeded`, uids and times are the same in every process.
    """
    emulation, config, ranges = settings.emulation, settings.runtime_config, settings.service_ranges
    with _building:
        key = (emulation, config, ranges, profile, tls, kind, authority, seeded)
        found = _prepared.get(key)
        if found is None:
            found = _make_store(emulation, config, ranges, seeded).fork()
            if prepare is not None or authority:
                clock = Clock.standing_at(SEEDED_START) if seeded else Clock()
                fresh = Settings(emulation=emulation, runtime_config=config, service_ranges=ranges)
                machinery = build(
                    clock=clock,
                    settings=fresh,
                    profile=profile,
                    store=found,
                    authority=authority,
                    chance=Chance(0) if seeded else None,
                )
                if prepare is not None:
                    prepare(machinery)
                clock.close()
            while found.revision < _FIRST_REVISION:
                found.advance()
            _prepared[key] = found
        return found


@cache
def _make_store(emulation: Emulation, config: RuntimeConfig, ranges: ServiceRanges, seeded: bool) -> Store[Document]:
    store: Store[Document] = Store()
    store.advance()  # nothing is at revision 1, as in a new etcd
    if seeded:
        with Chance(0).serve(lambda: b"bootstrap"):
            _commit_bootstrap(store, emulation, config, ranges, print_time(SEEDED_START))
    else:
        _commit_bootstrap(store, emulation, config, ranges, print_time(datetime.now(UTC)))
    return store


def add_bootstrap_objects(backend: Backend) -> None:
    """Adds the objects that a server makes at its start and that are absent, as one does whose etcd another minor has filled."""
    settings = backend.settings
    now = print_time(backend.clock.now())
    _commit_bootstrap(backend.store, settings.emulation, settings.runtime_config, settings.service_ranges, now)


def _commit_bootstrap(
    store: Store[Document], emulation: Emulation, config: RuntimeConfig, ranges: ServiceRanges, now: str
) -> None:
    resources = {f"{group_version_path(r.group, r.version)}/{r.plural}": r for r in builtin.resources(emulation, config)}
    served = frozenset((r.group, r.version) for r in resources.values())
    for path, objects in bootstrap_objects(emulation).items():
        resource = resources.get(path)
        if resource is None or "create" not in resource.verbs:
            continue
        bucket = store.bucket(resource.bucket)
        of_server = served_apis.api_services(emulation.version, objects, served) if path == served_apis.PATH else objects
        for obj in of_server:
            made = as_created_now(with_service_ranges(path, obj, ranges), now)
            key = resource.key(made["metadata"].get("namespace", ""), made["metadata"]["name"])
            if bucket.get(key) is None:
                bucket.commit(key, 0, partial(stamp_revision, made))
