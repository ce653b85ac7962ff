"""The endpoints of the control API for the pool of clusters (`fakekube serve --clusters`).

    GET, POST, DELETE clusters; GET, DELETE clusters/NAME

The body of POST is {"name": "a", "from": {"snapshot": "s"} or {"cluster": "b"} or "fork" or null, "version": "1.36",
"profile": "apiserver", "nodes": 1, "flags": {…}, "feature_gates": {…}, "seed": 7,
"load": "YAML text"}; all members are optional.
`"fork"` is a fork of the pool's own cluster.

Invariant: a cluster is made as a whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.base.golang.timestamps import print_time
from fakekube.cluster.control.members import PREFIX, BadMembers
from fakekube.cluster.pool import ClusterExistsError, ClusterPool, InvalidClusterError, PooledCluster, PoolFullError
from fakekube.powers.columns import revision_value

if TYPE_CHECKING:
    from fakekube.cluster import Cluster


Answer = tuple[int, Any]
Members = Mapping[str, Any]

#: The members of a body that are arguments of `Cluster`, with their types.
_OPTIONS: Final[Mapping[str, type]] = {"version": str, "profile": str, "nodes": int, "feature_gates": dict, "seed": int}
#: The members of a body.
MEMBERS: Final = ("name", "from", "flags", "load", *_OPTIONS)
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
    found = {name: value for name, kind in _OPTIONS.items() if (value := _check_member(members, name, kind)) is not None}
    return {**(_check_member(members, "flags", dict) or {}), **found}


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
