"""The whole state of a cluster as a YAML document, and what a cluster holds as manifests.

    apiVersion: fakekube.dev/v1
    kind: ClusterState
    version: "1.36"
    revision: 260
    resources:
      configmaps:
        - {key: default/a, created: 240, revision: 251, object: {…}}

Invariant: loading a document that was saved gives objects with the same uids and revisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from fakekube.codecs import json, yaml
from fakekube.codecs.document import Document
from fakekube.codecs.errors import DecodeError
from fakekube.store import Snapshot, Store

if TYPE_CHECKING:
    from fakekube.client.elsewhere import Place
    from fakekube.registry.backend import Backend

__all__ = ["StateError", "as_list", "as_yaml", "export", "is_state", "read_state", "state_of", "without_secret_data"]

API_VERSION, KIND = "fakekube.dev/v1", "ClusterState"

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


class StateError(ValueError):
    """A document that is no state of a cluster of this minor; says why."""


def is_state(value: object) -> bool:
    """Is this a document that `state_of` has made?"""
    return isinstance(value, Mapping) and (value.get("apiVersion"), value.get("kind")) == (API_VERSION, KIND)


def state_of(backend: Backend) -> Object:
    """The state of a cluster as plain data."""
    store = backend.store
    resources = {
        bucket.name: [
            {"key": record.key, "created": record.created, "revision": record.revision, "object": record.value.object}
            for record in bucket.page().records
        ]
        for bucket in store.buckets()
        if not bucket.is_empty
    }
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "version": backend.settings.version,
        "revision": store.revision,
        "resources": resources,
    }


def read_state(text: bytes, version: str) -> Snapshot[Document]:
    """The snapshot in a document. Raises StateError."""
    try:
        value, _ = yaml.loads(text)
    except DecodeError as error:
        raise StateError(f"no YAML: {error}") from None
    if not is_state(value):
        raise StateError(f"no {KIND} of {API_VERSION}")
    if value.get("version") != version:
        raise StateError(f"the state is one of Kubernetes {value.get('version')}, the cluster is one of {version}")
    try:
        return _snapshot(value["resources"], int(value["revision"]))
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise StateError(f"the state is damaged: {problem!r}") from None


def _snapshot(resources: Mapping[str, Sequence[Mapping[str, Any]]], revision: int) -> Snapshot[Document]:
    store: Store[Document] = Store()
    for at, bucket, key, document in sorted(_writes(resources), key=lambda write: write[0]):
        store.skip(at - 1)
        store.bucket(bucket).commit(key, None, partial(_kept, document))
    store.skip(max(revision, store.revision))
    return store.snapshot()


def _kept(document: Document, _revision: int) -> Document:
    return document


def _writes(resources: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[tuple[int, str, str, Document]]:
    """Every object twice, if it was changed: what was created at one revision and is what it is since another."""
    for bucket, rows in resources.items():
        for row in rows:
            document = Document(row["object"])
            for at in {int(row["created"]), int(row["revision"])}:
                yield at, bucket, str(row["key"]), document


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
