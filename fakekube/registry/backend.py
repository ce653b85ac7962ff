"""What a cluster gives to the verbs: one object that `cluster.py` fills and that no verb changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakekube.admission.chain import Chain
    from fakekube.clock import Clock
    from fakekube.codecs.document import Document
    from fakekube.registry.cluster_access import ClusterAccess
    from fakekube.registry.request import Request
    from fakekube.registry.resource import Registry
    from fakekube.store import Store

__all__ = ["DEFAULT_GATES", "Backend", "Settings"]

#: Feature gates that change what is served here, and are on by default in the emulated minor.
DEFAULT_GATES: frozenset[str] = frozenset()


@dataclass(slots=True)
class Settings:
    """What the owner of a cluster may choose. Times are seconds."""

    version: str = "1.36"
    """The emulated minor of Kubernetes."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    too_large_resource_version_wait: float = 3.0
    """How long a read waits for a revision that is not there yet (blockTimeout of the watch cache)."""
    min_request_timeout: float = 1800.0
    """A watch without timeoutSeconds lasts between one and two times this (--min-request-timeout)."""
    bookmark_period: float = 60.0
    """How often a watch that allows bookmarks gets one."""

    def enabled(self, gate: str) -> bool:
        """Is a feature gate on? Gates that nobody has set are as in the emulated minor."""
        return self.feature_gates.get(gate, gate in DEFAULT_GATES)


def _allow(request: Request) -> None:
    """Without an authorizer everybody may."""


@dataclass(slots=True)
class Backend:
    """The rooms behind the verbs, of one cluster."""

    store: Store[Document]
    registry: Registry
    clock: Clock
    services: ClusterAccess
    admission: Chain
    settings: Settings = field(default_factory=Settings)
    authorize_creation: Callable[[Request], None] = _allow
    """Raises StatusError 403 if the user of a PUT or apply that creates may not create."""
    forwards: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    """Where Services are really, by namespace and name: host and port."""
