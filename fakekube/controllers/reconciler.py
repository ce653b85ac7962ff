"""The interface of controllers: a controller lists the resources that it watches, and reconciles one object at a time.

Invariant: `keys` receives all events of a watched resource in order. When `reconcile` is called, the cache contains every
write that has returned, those of the controller included.

Specified by: controller-runtime's reconcile.Reconciler for the shape; pkg/controller for the event handlers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from fakekube.apimachinery.data import DEFAULT
from fakekube.base.objects import StoredObject

if TYPE_CHECKING:
    from fakekube.apimachinery.features import Emulation
    from fakekube.apis.rest.cluster_access import ClusterAccess
    from fakekube.apis.rest.resource import Registry
    from fakekube.base.clock import Clock
    from fakekube.controllers.client import Client
    from fakekube.controllers.informers import Cache
    from fakekube.controllers.recorder import Recorder
    from fakekube.net.certificates import Authority


class Key(NamedTuple):
    """Identifies what a controller has to reconcile, mostly an object by namespace and name."""

    namespace: str
    name: str


@dataclass(slots=True, frozen=True)
class Context:
    """What controllers know of the cluster beside its API."""

    services: ClusterAccess
    """What the API server offers to its strategies, such as token signing and feature gates."""
    registry: Registry
    """All resources that are served, in every version."""
    certificate_authority: str = ""
    """The certificate of the cluster's CA in PEM; "" without TLS."""
    version: str = DEFAULT
    """The emulated minor version."""
    controllers: frozenset[str] = frozenset()
    """The names of the controllers that are switched on."""
    settled_at: int | None = None
    """The revision at which no controller had work left when the cluster was made; None if that is not known."""
    authority: Callable[[], Authority] | None = None
    """Returns the CA of the cluster, which signs certificates; it is made at the first call."""
    deletion_grace: float = 0.0
    """Seconds for which the namespace controller and the garbage collector wait, so that a test suite which was written
    for a server without controllers can delete contents, finalizers and dependents itself. If this is not 0, dependents of
    owners that never existed are kept, because such suites invent owner references."""
    shared: object = None
    """What the controllers of the nodes share (`nodes.node_state.NodeState`); no other controller looks into it."""
    event_numbers: Iterator[int] = field(default_factory=itertools.count)
    """The numbers in the names of events, which tell apart those of one microsecond. They begin at a revision of the cluster,
    so that they are those of no event that a fork has from before."""
    scheduled: set[str] = field(default_factory=set)
    """The uids of pods that the scheduler has bound and their kubelet has not seen: they fit their nodes."""

    @property
    def emulation(self) -> Emulation:
        """The minor and the gates that controllers follow, too."""
        return self.services.emulation

    @property
    def root_certificate(self) -> str:
        """The certificate of the CA in PEM; unlike `certificate_authority` also if the cluster serves without TLS."""
        return self.certificate_authority or (self.authority().pem if self.authority is not None else "")


class Reconciler:
    """A controller. An instance belongs to one cluster; one thread at a time calls it.

    The manager sets the attributes that are declared here before it calls `on_start`. `reconcile` must be idempotent. If it
    raises ApiError, the manager retries the key: at once after a conflict, never after a 404, and after any other error
    with the back-off of the work queue.
    """

    name: ClassVar[str] = ""
    """The name in --controllers, e.g. "replicaset-controller"."""
    watches: ClassVar[tuple[str, ...]] = ()
    """The resources whose events `keys` receives: `plural` for the core group, else `plural.group`."""
    program: ClassVar[str] = "kube-controller-manager"
    """The first part of the user agent, which is the field manager of the controller's writes."""
    client_name: ClassVar[str] = ""
    """The last part of the user agent; "" stands for the controller's name."""
    component: ClassVar[str] = ""
    """The source of the controller's events; "" stands for the controller's name."""

    client: Client
    clock: Clock
    cache: Cache
    recorder: Recorder
    context: Context
    enqueue: Callable[[Key], None]
    """Adds a key to the work queue."""
    requeue_after: Callable[[Key, float], None]
    """Adds a key to the work queue after so many seconds of the clock. Of two times for a key the earlier counts."""
    requeue_periodically: Callable[[Key, float], None]
    """As `requeue_after`, for work that never ends, such as heartbeats: `Manager.settle` does not wait for it."""
    requeue_within_settle: Callable[[Key, float], None]
    """As `requeue_after`, for work that `Manager.settle` waits for, however late it is due."""
    requeue_rate_limited: Callable[[Key], None]
    """Adds a key to the work queue after its back-off."""
    also_watch: Callable[[str], None]
    """Lets `keys` receive the events of one more resource, those since the controllers had no work left included. Raises
    UnknownResource."""

    def on_start(self) -> None:
        """Called once, before the first event."""

    def on_resources_changed(self) -> None:
        """Called when the set of served resources (`context.registry`) has changed."""

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        """The event handler: returns the keys to reconcile after a change of a watched object.

        By default the key of the object, unless it was deleted.

        Args:
            resource: the resource, named as in `watches`.
            event_type: ADDED, MODIFIED or DELETED.
            obj: the object, after a deletion its last state. It must not be changed.
            old: the object before a modification, else None.
        """
        metadata = obj["metadata"]
        return () if event_type == "DELETED" else (Key(metadata.get("namespace", ""), metadata["name"]),)

    def forget(self, obj: StoredObject) -> None:
        """Called after `keys` when a watched object was deleted; drops what is kept of it."""
        self.recorder.forget(obj)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        """Reports whether the controller must run because of this change.

        It is called in the thread of the writer, so it must be fast. A change that concerns no controller is read when the
        next one does.

        Args:
            resource: the resource, named as in `watches`.
            obj: the object as it is stored, without kind and apiVersion; after a deletion its last state.
            old: the object before the change: None after a creation, the last state after a deletion.
        """
        return True

    def reconcile(self, key: Key) -> None:
        """Brings one object to its desired state. Raises ApiError, see the class."""
        raise NotImplementedError
