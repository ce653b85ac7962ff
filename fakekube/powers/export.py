"""What a cluster holds as manifests that another cluster can load.

Invariant: an export contains what was asked for, and nothing that only had a meaning in its cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fakekube.codecs import json, yaml

if TYPE_CHECKING:
    from fakekube.client.elsewhere import Place

__all__ = ["NOT_EXPORTED", "as_list", "as_yaml", "export", "without_secret_data"]

Object = dict[str, Any]

#: What an export leaves out: it is made anew in every cluster, or says what was and not what should be.
NOT_EXPORTED = frozenset(
    {"events", "events.events.k8s.io", "endpoints", "endpointslices.discovery.k8s.io", "leases.coordination.k8s.io"}
)

#: Metadata that says what happened in the cluster that an object comes from.
_NOT_EXPORTED_METADATA = frozenset(
    {
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    }
)


class Reader(Protocol):
    """What an export asks of a client, of this cluster (`client.Client`) or of another one (`client.remote`)."""

    def resource(self, name: str, /) -> Place:
        """The resource of a name that kubectl knows."""

    def listable_resources(self) -> Sequence[Place]:
        """One version of every resource whose objects are stored."""

    def path(self, resource: Place, namespace: str | None = None, /) -> str:
        """The path of a collection."""

    def call(self, method: str, path: str, /) -> Object:
        """The answer to a request."""


def export(client: Reader, *, namespace: str | None = None, kinds: Sequence[str] = (), redact: bool = True) -> list[Object]:
    """What a cluster holds, as objects that can be loaded into another one: definitions and namespaces first.

    Args:
        client: reads the cluster.
        namespace: only what is in it.
        kinds: resources as kubectl names them; all by default, but for events, endpoints and leases.
        redact: leave out the data of Secrets.

    Raises ApiError and UnknownResource.
    """
    wanted = [client.resource(name) for name in kinds] or list(client.listable_resources())
    found: list[Object] = []
    for resource in wanted:
        name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        if (not kinds and name in NOT_EXPORTED) or (namespace is not None and not resource.namespaced):
            continue
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        items = client.call("GET", client.path(resource, namespace))["items"]
        found += [_exported({**kind, **item}, redact) for item in items]
    first = ("CustomResourceDefinition", "Namespace")
    return sorted(found, key=lambda obj: first.index(obj["kind"]) if obj["kind"] in first else len(first))


def _exported(obj: Object, redact: bool) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _NOT_EXPORTED_METADATA}
    exported = {**obj, "metadata": metadata}
    return without_secret_data(exported) if redact else exported


def without_secret_data(obj: Object) -> Object:
    """Returns an object; of a Secret, without the values of its data."""
    return {**obj, "data": dict.fromkeys(obj["data"], "")} if obj["kind"] == "Secret" and obj.get("data") else obj


def as_yaml(objects: Sequence[Object]) -> bytes:
    """A stream of YAML documents."""
    return b"---\n".join(yaml.dumps(obj) for obj in objects)


def as_list(objects: Sequence[Object]) -> bytes:
    """A v1 List as JSON."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}) + b"\n"
