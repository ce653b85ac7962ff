"""The backend of a cluster for request handlers: one object that `apiserver/server.py` builds and that no handler changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fakekube.apis.rest.service_ranges import ServiceRanges

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.apis.rest.cluster_access import ClusterAccess
    from fakekube.apis.rest.resource import Registry
    from fakekube.apiserver.admission.chain import Chain
    from fakekube.apiserver.endpoints.request import Request
    from fakekube.base.clock import Clock
    from fakekube.net.streaming.kubelet_api import Kubelet
    from fakekube.store import Store


#: Feature gates with an effect here that are enabled by default in the emulated minor version.
DEFAULT_GATES: frozenset[str] = frozenset()


@dataclass(slots=True)
class Settings:
    """The settings of a cluster. Times are seconds."""

    version: str = "1.36"
    """The emulated minor of Kubernetes."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    too_large_resource_version_wait: float = 3.0
    """The maximum wait of a read for a revision in the future (blockTimeout of the watch cache)."""
    min_request_timeout: float = 1800.0
    """A watch without timeoutSeconds lasts between one and two times this (--min-request-timeout)."""
    bookmark_period: float = 60.0
    """The interval of bookmarks."""

    service_ranges: ServiceRanges = field(default_factory=ServiceRanges)
    """The ranges of ClusterIPs and node ports of Services."""

    def enabled(self, gate: str) -> bool:
        """Reports whether a feature gate is enabled; the default is that of the emulated minor version."""
        return self.feature_gates.get(gate, gate in DEFAULT_GATES)


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
