"""The aggregator of one cluster: the interface of this package for the API and for mounted applications.

Specified by: k8s.io/kube-aggregator/pkg/apiserver/apiserver.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from fakekube.aggregator.controller import AvailableConditionController, Remote
from fakekube.aggregator.discovery import DiscoveryInquiry, told, version_discovery
from fakekube.aggregator.locations import Locations
from fakekube.aggregator.mounted import MountedBackend
from fakekube.aggregator.openapi import OpenAPIInquiry, published, told_nothing
from fakekube.aggregator.options import AggregatorOptions
from fakekube.aggregator.proxy import Origin, Proxy
from fakekube.clock import Clock
from fakekube.codecs.document import Document
from fakekube.registry.cluster_access import ClusterAccess
from fakekube.registry.request import Request, Response
from fakekube.registry.strategy import Object
from fakekube.store import Store
from fakekube.webhooks.services import ServiceResolver

__all__ = ["Aggregator"]

DEFAULT_OPTIONS = AggregatorOptions()

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Aggregator:
    """APIServices with a Service behind."""

    def __init__(
        self,
        store: Store[Document],
        services: ClusterAccess,
        clock: Clock,
        resolver: ServiceResolver,
        options: AggregatorOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Raises ValueError for files that cannot be used."""
        self._services = services
        self._bucket = store.bucket("apiservices.apiregistration.k8s.io")
        self._locations = Locations(services, resolver, _client_certificate(options))
        inquiries = (DiscoveryInquiry(self._locations), OpenAPIInquiry(self._locations))
        self._controller = AvailableConditionController(store, services, clock, self._locations, inquiries)
        self._proxy = Proxy(self._locations)

    @property
    def remotes(self) -> Mapping[str, Remote]:
        """The APIServices with a Service, by name."""
        return self._controller.remotes

    @property
    def state(self) -> object:
        """Another one when what is served elsewhere has changed."""
        return self._controller.state

    def versions(self) -> Mapping[tuple[str, str], dict[str, Any]]:
        """Returns the versions of other servers as in the aggregated discovery document, by group and version."""
        return {remote.group_version: version_discovery(remote) for remote in self.remotes.values()}

    def publisher_of(self, document: str) -> str | None:
        """The name of the APIService whose server publishes an OpenAPI v3 document; None if no other server does."""
        for remote in self._controller.remotes.values():
            if document in (published(remote).index or ()):
                return remote.name
        return None

    def service_of(self, path: str) -> str | None:
        """The name of the APIService whose server answers for a path; None if no other server does."""
        remotes, parts = self._controller.remotes, path.split("/", 4)
        if len(parts) > 3 and parts[1] == "apis":
            name = f"{parts[3]}.{parts[2]}"
        else:
            name = "v1." if parts[1] == "api" else ""
        return name if name in remotes and not parts[0] else None

    def respond(self, name: str, request: Request, origin: Origin) -> Response | None:
        """The answer of the server of an APIService; None if that has gone."""
        record = self._bucket.get(name)
        if record is None or "service" not in record.value.object["spec"]:
            return None
        return self._proxy.respond(record.value.object, request, origin)

    def install(self, name: str, application: Application, resources: tuple[Object, ...]) -> None:
        """Let an application answer for an APIService of the base state, whenever nothing else is mounted for it.

        It is known what it serves and that it is there: it is not asked before its APIService changes.

        Args:
            name: of the APIService.
            application: called for each request.
            resources: what it serves, as the aggregated discovery document tells it.
        """
        self._locations.installed[name] = self._locations.mounted[name] = MountedBackend(application)
        record = self._bucket.get(name)
        if record is not None:
            self._controller.install(name, record, {**told(resources), **told_nothing()})

    def mount(self, name: str, application: Application) -> None:
        """Let an application answer for an APIService, instead of its Service."""
        self._locations.mounted[name] = MountedBackend(application)
        self._controller.mounted(name)

    def unmount(self, name: str) -> None:
        """Let it no more."""
        installed = self._locations.installed.get(name)
        if installed is not None:
            self._locations.mounted[name] = installed
        else:
            self._locations.mounted.pop(name, None)
        self._controller.mounted(name)

    def adopt(self, other: Aggregator) -> None:
        """Answer as another cluster's does, whose state this one shares."""
        others = other._locations.mounted.items()
        self._locations.mounted.update({name: one for name, one in others if one is not other._locations.installed.get(name)})
        self._controller.adopt(other._controller)

    def working(self) -> list[str]:
        """The names of the APIServices whose servers are being asked whether they are there."""
        return self._controller.working()

    def wait(self, timeout: float) -> bool:
        """Wait until no server is being asked; see the controller."""
        return self._controller.wait(timeout)

    def stop(self) -> None:
        """Ask no more servers."""
        self._controller.stop()


def _client_certificate(options: AggregatorOptions) -> str:
    """The certificate and its key, PEM; "" for none. Raises ValueError."""
    files = options.proxy_client_cert_file, options.proxy_client_key_file
    if not any(files):
        return ""
    if not all(files):
        raise ValueError("--proxy-client-cert-file and --proxy-client-key-file must be given together")
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(*files)
        return "\n".join(Path(file).read_text(encoding="ascii") for file in files)
    except (OSError, ValueError) as error:
        raise ValueError(f"--proxy-client-cert-file={files[0]}: {error}") from None
