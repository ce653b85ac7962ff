"""What a controller is: it names the resources that it watches, and brings one object at a time to its goal.

Invariant: the events of a watched resource come to `keys` in order and all of them, and the cache shows at least every
write that had returned when `reconcile` is called, the controller's own included.

Specified by: the controllers of pkg/controller and their event handlers; controller-runtime's reconcile.Reconciler for
the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from fakekube.client import Client
    from fakekube.clock import Clock
    from fakekube.controllers.informers import Cache
    from fakekube.controllers.recorder import Recorder
    from fakekube.registry.cluster_access import ClusterAccess
    from fakekube.registry.resource import Registry
    from fakekube.server.certificates import Authority

__all__ = ["Context", "Key", "Object", "Reconciler"]

Object = dict[str, Any]


class Key(NamedTuple):
    """An object that needs a look. What it names is the controller's own business."""

    namespace: str
    name: str


@dataclass(slots=True, frozen=True)
class Context:
    """What controllers are told of the cluster beside its API."""

    services: ClusterAccess
    """What the API server offers to its strategies: token signing, feature gates."""
    registry: Registry
    """All resources that are served, in every version."""
    certificate_authority: str = ""
    """The cluster's CA certificate in PEM; "" without TLS."""
    version: str = "1.36"
    """The emulated minor."""
    controllers: frozenset[str] = frozenset()
    """The names of those that are switched on."""
    settled_at: int | None = None
    """The revision at which all of them had nothing to do when the cluster was made, if that is known."""
    authority: Callable[[], Authority] | None = None
    """The CA of the cluster, which signs certificates; made when it is first asked for."""
    deletion_grace: float = 0.0
    """Seconds that clients have to empty and finalize a namespace, or to delete dependents, before controllers do. Suites
    that were written for a server without controllers do so. If this is set, owners that never existed are no reason
    to delete their dependents, because such suites make references to owners up."""
    shared: Mapping[str, Any] = field(default_factory=dict)
    """What a test hands to controllers, by name: `pods` are the rules of `cluster.pods`."""

    @property
    def root_certificate(self) -> str:
        """The certificate of the CA in PEM, also where the cluster serves without TLS."""
        return self.certificate_authority or (self.authority().pem if self.authority is not None else "")


class Reconciler:
    """A controller. One instance serves one cluster; it is called by one thread at a time.

    The manager sets the attributes that are declared here before it calls `started`. `reconcile` must be idempotent. It
    may raise ApiError: after a 404 nothing more is done, after a conflict the key is tried again at once, after
    anything else with the work queue's back-off, by the clock.
    """

    name: ClassVar[str] = ""
    """As --controllers of kube-controller-manager has it, e.g. "replicaset-controller"."""
    watches: ClassVar[tuple[str, ...]] = ()
    """Names of the resources whose changes come to `keys`: `plural` for the core group, else `plural.group`."""
    program: ClassVar[str] = "kube-controller-manager"
    """The first part of the user agent, and so the field manager of what the controller writes."""
    client_name: ClassVar[str] = ""
    """The last part of the user agent; the controller's name if ""."""
    component: ClassVar[str] = ""
    """Who its events say they come from; the controller's name if ""."""

    client: Client
    clock: Clock
    cache: Cache
    recorder: Recorder
    context: Context
    enqueue: Callable[[Key], None]
    """Look at a key soon."""
    requeue_after: Callable[[Key, float], None]
    """Look at a key when so many seconds of the clock have passed, if nothing asks for it earlier."""
    requeue_routinely: Callable[[Key, float], None]
    """The same for what is done again and again, such as heartbeats: nobody who waits for quiet waits for it."""
    requeue_rate_limited: Callable[[Key], None]
    """Look at a key again after its back-off."""
    also_watch: Callable[[str], None]
    """Let the changes of one more resource, by its name, come to `keys`, beginning with what is new since the cluster
    was settled."""

    def started(self) -> None:
        """Called once, before the first event."""

    def resources_changed(self) -> None:
        """Called when other resources are served than before (`context.registry`)."""

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        """Returns the keys that a change of a watched object concerns; by default that of the object, unless it was deleted.

        Args:
            resource: as `watches` names it.
            event_type: ADDED, MODIFIED or DELETED.
            obj: the object, after a deletion its last state; never to be changed.
            old: the object before a modification.
        """
        metadata = obj["metadata"]
        return () if event_type == "DELETED" else (Key(metadata.get("namespace", ""), metadata["name"]),)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        """Must the controller wake up for this change? Called in the thread of whoever writes: only look, quickly.

        What does not concern any controller waits until something does. `old` is the object before, None for a new one;
        after a deletion both are the last state. Objects are as stored: without kind and apiVersion.
        """
        return True

    def reconcile(self, key: Key) -> None:
        """Bring one object to its goal. Raises ApiError: see the class."""
        raise NotImplementedError
