"""A pool of clusters: clusters for the tests of any language, made and ended over HTTP (`fakekube serve --clusters`).

A cluster of the pool is fresh, or a fork: of another one, of the pool's own cluster, or of a snapshot of it. A fork shares what
is not written to, and its controllers do not begin anew if those of its origin were idle. Every cluster has a server, recorder,
faults, clock and identities of its own; the tokens of one are invalid at the others. The endpoints of the control API for the
pool are at the end.

Invariants: the number of clusters never exceeds the limit, those that are being made included. A cluster whose creation fails
leaves nothing behind. When the pool's cluster stops, all of them do.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from fakekube.base.golang.timestamps import print_time
from fakekube.base.threads import WORKERS
from fakekube.cluster.control.flags import read_flags
from fakekube.cluster.control.members import PREFIX, Answer, BadMembers, Members
from fakekube.cluster_options import ServerFlags, unknown_options
from fakekube.controllers.manager import PREPARATION_TIMEOUT
from fakekube.net.wsgi import Application
from fakekube.powers.columns import revision_value

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.cluster import Cluster
    from fakekube.store import Snapshot


#: The default of the maximum number of clusters.
MAX_CLUSTERS: Final = 256

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
#: The arguments of `Cluster` beside flags that a client may choose.
_OPTIONS: Final = ("version", "profile", "seed", "nodes", "controllers", "feature_gates", "keep_requests", "strict")
#: The maximum number of nodes of a cluster, each of which takes milliseconds while other requests for clusters wait.
_MAX_NODES: Final = 500
#: Real seconds between two looks for idle clusters, at most.
_LONGEST_ROUND: Final = 5.0


class PoolFullError(Exception):
    """The pool has as many clusters as it may have."""


class ClusterExistsError(Exception):
    """There is a cluster with this name."""


class InvalidClusterError(ValueError):
    """A cluster with these options cannot be made; the text has the reason."""


@dataclass(slots=True)
class PooledCluster:
    """One cluster of the pool."""

    name: str
    cluster: Cluster
    created: datetime
    last_used: float = field(default_factory=time.monotonic)
    """The time of `time.monotonic` of the latest request."""

    @property
    def idle(self) -> float:
        """Real seconds since the latest request; 0 while a client is connected."""
        now = time.monotonic()
        if self.cluster.is_connected:
            self.last_used = now
        return max(now - self.last_used, 0.0)

    def watch_use(self, application: Application) -> Application:
        """Returns an application that notes the time of each request."""

        def note_and_serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            self.last_used = time.monotonic()
            return application(environ, start_response)

        return note_and_serve


class ClusterPool:
    """The clusters beside one cluster, which serves their control API.

    Args:
        cluster: the cluster of the pool itself, whose options are the defaults of the others.
        limit: the maximum number of other clusters.
        idle: real seconds after which a cluster ends that no client uses; None for never.
    """

    def __init__(self, cluster: Cluster, limit: int = MAX_CLUSTERS, idle: float | None = None) -> None:
        self._own, self._limit, self._idle = cluster, limit, idle
        self._lock = threading.Lock()
        self._clusters: dict[str, PooledCluster | None] = {}
        """By name; None while one is being made."""
        self._templates: dict[str, tuple[Snapshot[Document], Cluster]] = {}
        """Name of a snapshot → the snapshot, and a settled cluster in its state, which is never started."""
        self._numbers = 0
        self._stopped = threading.Event()
        cluster.pool = self
        if idle is not None:
            WORKERS.run(self._end_idle_clusters)

    def create(
        self,
        name: str | None = None,
        *,
        origin: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
        load: str = "",
    ) -> PooledCluster:
        """Makes and starts a cluster.

        Args:
            name: a DNS label; by default one is made up.
            origin: `{"cluster": NAME}`, or `{"snapshot": NAME}` of the pool's own cluster, or `{"cluster": ""}` for a fork of
                that itself; by default a fresh cluster.
            options: arguments of `Cluster`, which replace those of the pool's own cluster; a fork takes only `seed`.
            load: manifests in YAML.

        Raises ClusterExistsError, PoolFullError, and InvalidClusterError.
        """
        name = self._reserve(name)
        made: Cluster | None = None
        try:
            made = self._make(origin, dict(options or {}), load)
            one = PooledCluster(name, made, made.clock.now())
            made.wrap_served = one.watch_use
            made.start()
            made.url  # noqa: B018 - starts the server, so that the first request finds it
            with self._lock:
                if self._stopped.is_set():
                    raise InvalidClusterError("the pool has stopped")
                self._clusters[name] = one
        except BaseException:
            with self._lock:
                self._clusters.pop(name, None)
            if made is not None:
                made.stop()
            raise
        return one

    def find(self, name: str) -> PooledCluster | None:
        """Returns the cluster with this name; None if there is none."""
        return self._clusters.get(name)

    def list(self) -> list[PooledCluster]:
        """Returns the clusters, the oldest first."""
        with self._lock:
            return [one for one in self._clusters.values() if one is not None]

    def delete(self, name: str) -> bool:
        """Ends a cluster; returns False if there is none with this name."""
        with self._lock:
            one = self._clusters.get(name)
            if one is None:
                return False
            del self._clusters[name]
        one.cluster.stop()
        return True

    def clear(self) -> int:
        """Ends all clusters but the pool's own; returns their number."""
        return sum(self.delete(one.name) for one in self.list())

    def stop(self) -> None:
        """Ends all clusters. May be called twice."""
        with self._lock:
            self._stopped.set()
        self.clear()
        for _, template in self._templates.values():
            template.stop()
        self._templates.clear()

    def _reserve(self, name: str | None) -> str:
        if name is not None and not _NAME.fullmatch(name):
            raise InvalidClusterError(f"name {name!r} is not a DNS label: at most 63 of a-z, 0-9 and -, not - at an end")
        with self._lock:
            if name in self._clusters:
                raise ClusterExistsError(f"there is a cluster {name!r}")
            if len(self._clusters) >= self._limit:
                raise PoolFullError(f"the pool has {self._limit} clusters, which is its maximum (--max-clusters)")
            while name is None or name in self._clusters:
                self._numbers += 1
                name = f"cluster-{self._numbers}"
            self._clusters[name] = None
        return name

    def _make(self, origin: Mapping[str, str] | None, options: dict[str, Any], load: str) -> Cluster:
        """Returns a cluster that is not started. Raises InvalidClusterError."""
        seed = None if origin is None else options.pop("seed", None)
        if origin is not None and options:
            raise InvalidClusterError(f"{next(iter(options))} is that of the origin; only a fresh cluster takes it")
        options = {name.replace("-", "_"): value for name, value in options.items()}
        problem = unknown_options(options, (*ServerFlags.__annotations__, *_OPTIONS))
        if problem:
            raise InvalidClusterError(problem)
        if not 0 <= (options.get("nodes") or 0) <= _MAX_NODES:
            raise InvalidClusterError(f"nodes is {options['nodes']}, not from 0 to {_MAX_NODES}")
        defaults = self._own.options
        if "profile" in options:  # it says which controllers run, and whether there is a node
            defaults |= {"controllers": None, "nodes": None}
        try:
            made = type(self._own)(**{**defaults, **options}) if origin is None else self._origin(origin).fork(seed=seed)
        except (ValueError, TypeError, LookupError) as problem:
            raise InvalidClusterError(str(problem)) from None
        made.isolate()
        if load:
            _load(made, load)
        return made

    def _origin(self, origin: Mapping[str, str]) -> Cluster:
        """Returns the cluster to fork. Raises InvalidClusterError."""
        if "snapshot" in origin:
            return self._template(origin["snapshot"])
        name = origin["cluster"]
        if not name:
            return self._own
        found = self.find(name)
        if found is None:
            raise InvalidClusterError(f"there is no cluster {name!r}")
        return found.cluster

    def _template(self, name: str) -> Cluster:
        """Returns a cluster in the state of a snapshot, whose controllers are idle. Raises InvalidClusterError."""
        named = self._own.named_snapshots.get(name)
        if named is None:
            raise InvalidClusterError(f"there is no snapshot {name!r}")
        snapshot, _ = named
        with self._lock:
            known = self._templates.get(name)
        if known is not None and known[0] is snapshot:
            return known[1]
        template = self._own.fork()
        template.restore(snapshot)
        template.settle(PREPARATION_TIMEOUT)
        with self._lock:
            self._templates[name] = snapshot, template
        if known is not None:
            known[1].stop()
        return template

    def _end_idle_clusters(self) -> None:
        """Ends clusters that are idle, until the pool stops."""
        assert self._idle is not None
        while not self._stopped.wait(min(max(self._idle / 4, 0.05), _LONGEST_ROUND)):
            for one in self.list():
                if one.idle >= self._idle:
                    self.delete(one.name)


def _load(cluster: Cluster, text: str) -> None:
    """Loads manifests as the initial state. Raises InvalidClusterError."""
    from fakekube.cluster.testing.manifests import ManifestError
    from fakekube.controllers.client import ApiError, UnknownResource

    try:
        cluster.load(text + "\n")
    except (ManifestError, ApiError, UnknownResource, ValueError) as problem:
        raise InvalidClusterError(f"load: {problem}") from None
    cluster.keep_initial()


# --- The endpoints of the control API for the pool of clusters --------------------------------------------------------


#: The members of a body that are arguments of `Cluster`, with their types.
_MEMBERS: Final[Mapping[str, type]] = {"version": str, "profile": str, "nodes": int, "feature_gates": dict, "seed": int}
#: The members of a body.
MEMBERS: Final = ("name", "from", "flags", "load", *_MEMBERS)
_TYPE_NAMES: Final[Mapping[type, str]] = {str: "a string", int: "an integer", dict: "an object"}


def _pool(cluster: Cluster) -> ClusterPool:
    if cluster.pool is None:
        raise LookupError("this server has no pool of clusters; start it with `fakekube serve --clusters`")
    return cluster.pool


def create_cluster(cluster: Cluster, members: Members) -> Answer:
    pool = _pool(cluster)
    try:
        made = pool.create(
            _check_member(members, "name", str),
            origin=_origin(members.get("from")),
            options=_options(members),
            load=_check_member(members, "load", str) or "",
        )
    except ClusterExistsError as problem:
        return 409, {"error": str(problem)}
    except PoolFullError as problem:
        return 429, {"error": str(problem)}
    except InvalidClusterError as problem:
        return 422, {"error": str(problem)}
    one = made.cluster
    return 201, {
        "name": made.name,
        "url": one.url,
        "kubeconfig": one.kubeconfig_text,
        "token": one.token,
        "control": f"{one.url}{PREFIX}v1",
    }


def list_clusters(cluster: Cluster, _members: Members) -> Answer:
    return 200, {"items": [_describe(one) for one in _pool(cluster).list()]}


def get_cluster(cluster: Cluster, members: Members) -> Answer:
    found = _pool(cluster).find(members["name"])
    if found is None:
        raise LookupError(f"there is no cluster {members['name']!r}")
    one = found.cluster
    return 200, {**_describe(found), "kubeconfig": one.kubeconfig_text, "token": one.token, "control": f"{one.url}{PREFIX}v1"}


def delete_cluster(cluster: Cluster, members: Members) -> Answer:
    if not _pool(cluster).delete(members["name"]):
        raise LookupError(f"there is no cluster {members['name']!r}")
    return 200, {}


def clear_clusters(cluster: Cluster, _members: Members) -> Answer:
    return 200, {"deleted": _pool(cluster).clear()}


def _describe(one: PooledCluster) -> dict[str, Any]:
    cluster = one.cluster
    return {
        "name": one.name,
        "url": cluster.url,
        "version": cluster.version,
        "profile": cluster.profile,
        "created": print_time(one.created),
        "idle": round(one.idle, 3),
        "objects": cluster.count_objects(),
        "revision": revision_value(cluster.snapshot().revision),
    }


def _check_member(members: Members, name: str, kind: type) -> Any:
    """Returns a member, None if it is not given. Raises BadMembers for one of a wrong type."""
    value = members.get(name)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise BadMembers(f"member {name!r} must be {_TYPE_NAMES[kind]}")
    return value


def _options(members: Members) -> dict[str, Any]:
    """Returns the arguments of the new cluster. Raises BadMembers."""
    found = {name: value for name, kind in _MEMBERS.items() if (value := _check_member(members, name, kind)) is not None}
    if "feature_gates" in found:
        found |= read_flags({"feature_gates": found["feature_gates"]})
    return {**read_flags(_check_member(members, "flags", dict) or {}), **found}


def _origin(value: Any) -> Mapping[str, str] | None:
    """Returns what the new cluster is a fork of. Raises BadMembers."""
    if value is None:
        return None
    if value == "fork":
        return {"cluster": ""}
    if isinstance(value, dict) and len(value) == 1 and set(value) <= {"snapshot", "cluster"}:
        ((kind, name),) = value.items()
        if isinstance(name, str) and name:
            return {kind: name}
    raise BadMembers('member \'from\' must be {"snapshot": NAME}, {"cluster": NAME}, "fork" or null')
