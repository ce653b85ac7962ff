"""What a controller is: it names the resources that it watches, and brings one object at a time to its goal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from fakekube.client import Client
from fakekube.registry.resource import Resource

__all__ = ["Key", "Reconciler"]

Object = dict[str, Any]


@dataclass(slots=True, frozen=True)
class Key:
    """An object that needs a look: of the controller's main resource."""

    namespace: str
    name: str


class Reconciler:
    """A controller. One instance serves one cluster; it is called by one thread at a time.

    `reconcile` must be idempotent and may raise ApiError: it is then called again, after a while of the clock.
    """

    watches: ClassVar[tuple[str, ...]] = ()
    """Names of the resources whose changes matter."""

    def __init__(self, client: Client, *, certificate_authority: str = "") -> None:
        """
        Args:
            client: of the cluster.
            certificate_authority: the cluster's CA certificate in PEM; "" without TLS.
        """
        self.client = client
        self.certificate_authority = certificate_authority
        self.also_watch: Callable[[Resource], None] = lambda resource: None
        """Watch one more resource from now on; its changes come to `keys` under `plural.group`. Set by the manager."""

    def keys(self, resource: str, event_type: str, obj: Object) -> Iterable[Key]:
        """Which objects a change of a watched one concerns."""
        raise NotImplementedError

    def reconcile(self, key: Key) -> None:
        """Bring one object to its goal. Raises ApiError to be called again."""
        raise NotImplementedError
