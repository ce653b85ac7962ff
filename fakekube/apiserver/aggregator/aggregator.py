"""The aggregator of one cluster: the interface of this package for the API and for mounted applications.

Specified by: k8s.io/kube-aggregator/pkg/apiserver/apiserver.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fakekube.apimachinery.codecs.document import Document
from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.apiserver.aggregator.backends import MountedBackend
from fakekube.apiserver.aggregator.controller import AvailableConditionController, Remote
from fakekube.apiserver.aggregator.documents import (
    DiscoveryFetcher,
    OpenAPIFetcher,
    download_documents,
    facts_of,
    facts_without_documents,
    version_discovery,
)
from fakekube.apiserver.aggregator.locations import Locations
from fakekube.apiserver.aggregator.proxy import Origin, Proxy
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.apiserver.options import AggregatorOptions
from fakekube.apiserver.webhooks.services import ServiceResolver
from fakekube.base.clock import Clock
from fakekube.base.objects import Object
from fakekube.net.wsgi import Application
from fakekube.store import Store

DEFAULT_OPTIONS = AggregatorOptions()


class Aggregator:
    """Serves the APIServices of one cluster that have a Service, by the servers behind them."""

    def __init__(
        self,
        store: Store[Document],
        services: ClusterAccess,
        clock: Clock,
        resolver: ServiceResolver,
        options: AggregatorOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Creates the aggregator. No server is requested before a first APIService has a Service.

        Args:
            store: the store of the cluster.
            services: the access of the controller to APIServices, Services and EndpointSlices.
            clock: the clock of the cluster, for the times of resyncs and conditions.
            resolver: resolves Services to addresses.
            options: the flags of the proxy client certificate.

        Raises:
            ValueError: a file of `options` cannot be used.
        """
        self._services = services
        self._bucket = store.bucket("apiservices.apiregistration.k8s.io")
        self._locations = Locations(services, resolver, _client_certificate(options))
        fetchers = (DiscoveryFetcher(self._locations), OpenAPIFetcher(self._locations))
        self._controller = AvailableConditionController(store, services, clock, self._locations, fetchers)
        self._proxy = Proxy(self._locations)

    @property
    def remotes(self) -> Mapping[str, Remote]:
        """The APIServices with a Service, by name."""
        return self._controller.remotes

    @property
    def state(self) -> object:
        """Replaced by another object when the discovery or OpenAPI documents of a server have changed."""
        return self._controller.state

    def versions(self) -> Mapping[tuple[str, str], dict[str, Any]]:
        """Returns the versions of other servers as in the aggregated discovery document, by group and version."""
        return {remote.group_version: version_discovery(remote) for remote in self.remotes.values()}

    def publisher_of(self, document: str) -> str | None:
        """Returns the name of the APIService whose server publishes an OpenAPI v3 document; None if no other server does."""
        for remote in self._controller.remotes.values():
            if document in (download_documents(remote).index or ()):
                return remote.name
        return None

    def service_of(self, path: str) -> str | None:
        """Returns the name of the APIService whose server serves a path; None if this server serves it."""
        parts = path.split("/", 4)
        if parts[0]:  # the path of `GET *` has no slash
            return None
        if len(parts) > 3 and parts[1] == "apis":
            name = f"{parts[3]}.{parts[2]}"
        else:
            name = "v1." if parts[1] == "api" else ""
        return name if name in self._controller.remotes else None

    def respond(self, name: str, request: Request, origin: Origin) -> Response | None:
        """Forwards a request to the server of an APIService. Returns None if the APIService has no Service, or was deleted."""
        record = self._bucket.get(name)
        if record is None or "service" not in record.value.object["spec"]:
            return None
        return self._proxy.respond(record.value.object, request, origin)

    def install(self, name: str, application: Application, resources: tuple[Object, ...]) -> None:
        """Serves an APIService of the base state with an application, unless another application is mounted for it.

        The application counts as available and its discovery as known: it is not requested before its APIService changes.

        Args:
            name: the name of the APIService.
            application: the WSGI application, called for each request.
            resources: its resources, in the form of the aggregated discovery document.
        """
        self._locations.installed[name] = self._locations.mounted[name] = MountedBackend(application)
        record = self._bucket.get(name)
        if record is not None:
            self._controller.install(name, record, {**facts_of(resources), **facts_without_documents()})

    def mount(self, name: str, application: Application) -> None:
        """Serves an APIService with a WSGI application instead of its Service."""
        self._locations.mounted[name] = MountedBackend(application)
        self._controller.check_mounted(name)

    def unmount(self, name: str) -> None:
        """Serves an APIService with its Service again, or with the application of `install`."""
        installed = self._locations.installed.get(name)
        if installed is not None:
            self._locations.mounted[name] = installed
        else:
            self._locations.mounted.pop(name, None)
        self._controller.check_mounted(name)

    def adopt(self, other: Aggregator) -> None:
        """Takes over the mounted applications and the known documents of the cluster from which this one was copied."""
        others = other._locations.mounted.items()
        self._locations.mounted.update({name: one for name, one in others if one is not other._locations.installed.get(name)})
        self._controller.adopt(other._controller)

    def working(self) -> list[str]:
        """Returns the names of the APIServices whose servers are being checked, or are to be checked."""
        return self._controller.working()

    def wait(self, timeout: float) -> bool:
        """Waits until no server is being checked. Returns False if `timeout` (real seconds) passed before."""
        return self._controller.wait(timeout)

    def stop(self) -> None:
        """Stops all checks and cancels the scheduled ones."""
        self._controller.stop()


def _client_certificate(options: AggregatorOptions) -> str:
    """Returns the proxy client certificate and its key, PEM; "" for none. Raises ValueError."""
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
