"""Exports the objects of a cluster as manifests that another cluster can load.

Invariant: an export contains no field that the exported cluster assigned (uids, revisions, timestamps, managedFields).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from fakekube.apimachinery.codecs import json, yaml
from fakekube.base.objects import Object

if TYPE_CHECKING:
    from fakekube.controllers.client.client import RESTMapping


#: Resources that an export omits by default: controllers create their objects in every cluster, or they record the past.
NOT_EXPORTED = frozenset(
    {"events", "events.events.k8s.io", "endpoints", "endpointslices.discovery.k8s.io", "leases.coordination.k8s.io"}
)

#: ConfigMaps with the certificate authorities of a cluster, which every cluster makes for itself.
_OWN_AUTHORITIES = frozenset({"kube-root-ca.crt", "extension-apiserver-authentication"})

#: Fields of metadata that the API server assigns.
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
    """The part of a client that an export uses; `client.Client` and `controllers.client.remote.RemoteClient` have it."""

    def resource(self, name: str, /) -> RESTMapping:
        """Returns the resource for a name that kubectl accepts. Raises UnknownResource."""

    def listable_resources(self) -> Sequence[RESTMapping]:
        """Returns one version of every resource whose objects are stored."""

    def path(self, resource: RESTMapping, namespace: str | None = None, /) -> str:
        """Returns the path of a collection."""

    def call(self, method: str, path: str, /) -> Object:
        """Sends a request and returns the object in the response. Raises ApiError."""


def export(client: Reader, *, namespace: str | None = None, kinds: Sequence[str] = (), redact: bool = True) -> list[Object]:
    """Returns the objects of a cluster in a form that another one can load: definitions and namespaces first.

    Args:
        client: reads the cluster.
        namespace: only objects in this namespace; by default all.
        kinds: resources as kubectl names them; by default all except events, endpoints and leases.
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
        found += [_export_object({**kind, **item}, redact) for item in items if not _has_own_authority(kind, item)]
    first = ("CustomResourceDefinition", "Namespace")
    return sorted(found, key=lambda obj: first.index(obj["kind"]) if obj["kind"] in first else len(first))


def _has_own_authority(kind: Object, obj: Object) -> bool:
    """Reports whether an object only has the certificate authority of its cluster."""
    return kind["kind"] == "ConfigMap" and obj["metadata"]["name"] in _OWN_AUTHORITIES


def _export_object(obj: Object, redact: bool) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _NOT_EXPORTED_METADATA}
    exported = {**obj, "metadata": metadata}
    return without_secret_data(exported) if redact else exported


def without_secret_data(obj: Object) -> Object:
    """Returns the object; if it is a Secret, with empty values in its data."""
    return {**obj, "data": dict.fromkeys(obj["data"], "")} if obj["kind"] == "Secret" and obj.get("data") else obj


def as_yaml(objects: Sequence[Object]) -> bytes:
    """Encodes objects as a stream of YAML documents."""
    return b"---\n".join(yaml.dumps(obj) for obj in objects)


def as_list(objects: Sequence[Object]) -> bytes:
    """Encodes objects as a v1 List in JSON."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}) + b"\n"
