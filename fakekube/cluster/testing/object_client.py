"""The operations on objects for tests, as one user: create, apply, get, list, patch, delete, wait; and raw requests.

`Cluster` is such a client with an administrator as its user, `Cluster.as_user` returns others. All operations use the API;
`wait_for` subscribes to the store and does not poll. A response is complete and does not change.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from fakekube.apimachinery.codecs import json
from fakekube.base.objects import group_resource
from fakekube.cluster.testing.manifests import objects
from fakekube.cluster_options import Object, Source
from fakekube.controllers.client import ApiError, Client

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.controllers.client.client import RESTMapping
    from fakekube.net.streams import Stream
    from fakekube.store import Store


class ResponseHeaders(Mapping[str, str]):
    """The headers of a response; names are case-insensitive, and a header that occurs several times has its first value.

    Args:
        fields: names and values, in their order.
    """

    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self._fields = tuple(fields)

    def __getitem__(self, name: str) -> str:
        found = self.get_all(name)
        if not found:
            raise KeyError(name)
        return found[0]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.lower() for name, _ in self._fields))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"ResponseHeaders({list(self._fields)})"

    def get_all(self, name: str) -> list[str]:
        """Returns all values of a header, in their order."""
        return [value for other, value in self._fields if other.lower() == name.lower()]


@dataclass(slots=True, frozen=True)
class Response:
    """The response to a request."""

    status: int
    """The HTTP status code."""
    headers: ResponseHeaders
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Returns the body, parsed as JSON. Raises ValueError if it is not JSON."""
        return json.reread(self.body)


#: The field manager of applies in tests.
FIELD_MANAGER = "fakekube"


_Reference = tuple[str, str, str, str]
"""apiVersion, kind, namespace and name."""


def _reference(obj: Mapping[str, Any]) -> _Reference:
    metadata = obj.get("metadata") or {}
    return obj.get("apiVersion", ""), obj.get("kind", ""), metadata.get("namespace") or "", metadata.get("name", "")


def _owners(obj: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return (obj.get("metadata") or {}).get("ownerReferences") or []


def _triple(owner: Mapping[str, Any]) -> tuple[str, str, str]:
    """Returns apiVersion, kind and name of an owner reference."""
    return owner.get("apiVersion", ""), owner.get("kind", ""), owner.get("name", "")


def _find_owner(owner: Mapping[str, Any], dependent: Mapping[str, Any], found: Container[_Reference]) -> _Reference | None:
    """Returns an owner of an object among others: in its namespace, or without one."""
    namespace = (dependent.get("metadata") or {}).get("namespace") or ""
    for place in dict.fromkeys((namespace, namespace or "default", "")):
        api_version, kind, name = _triple(owner)
        reference = api_version, kind, place, name
        if reference in found:
            return reference
    return None


def _owners_first(found: list[Object]) -> list[Object]:
    """Sorts objects so that owners come before dependents; otherwise, and in cycles, the order is kept."""
    if not any(map(_owners, found)):
        return found
    waiting, ordered = found, list[Object]()
    while waiting:
        missing = {_reference(obj) for obj in waiting}
        ready = [obj for obj in waiting if not any(_find_owner(owner, obj, missing) for owner in _owners(obj))]
        if not ready:
            return [*ordered, *waiting]
        ordered += ready
        taken = set(map(id, ready))
        waiting = [obj for obj in waiting if id(obj) not in taken]
    return ordered


def _replace_owner_uids(obj: Object, loaded: Mapping[_Reference, Object]) -> Object:
    """Returns the object with the uids of the owners loaded before it: in ownerReferences, and in labels (the pods of a Job)."""
    new_uids: dict[str, str] = {}
    owners: list[Mapping[str, Any]] = []
    for owner in _owners(obj):
        reference = _find_owner(owner, obj, loaded)
        if reference is not None:
            new_uids[owner.get("uid", "")] = loaded[reference]["metadata"]["uid"]
        owners.append(owner if reference is None else {**owner, "uid": loaded[reference]["metadata"]["uid"]})
    if not new_uids:
        return obj
    metadata = {**obj["metadata"], "ownerReferences": owners}
    if metadata.get("labels"):
        metadata["labels"] = {name: new_uids.get(value, value) for name, value in metadata["labels"].items()}
    return {**obj, "metadata": metadata}


class ObjectClient:
    """Reads and writes the objects of one cluster as one user.

    Resources have the names that kubectl accepts: plural, singular, short name, kind, or plural.group. Objects are JSON data;
    returned objects belong to the caller.

    Args:
        client: sends the requests.
        store: the store of the cluster, for `wait_for`.
    """

    def __init__(self, client: Client, store: Store[Document]) -> None:
        self._client = client
        self._store = store

    def load(self, *sources: Source) -> list[Object]:
        """Applies manifests, and returns the objects: definitions and namespaces first, owners before dependents.

        Owner references to objects of the same call get the uids of these objects. From the first owner on no controller acts
        before all are loaded: it would make the dependents that are still to come.

        Args:
            sources: files, folders, YAML text or objects.

        Raises ManifestError for an invalid manifest, ApiError for an error response, and UnknownResource.
        """
        found = _owners_first(objects(*sources))
        owners = {_triple(owner) for obj in found for owner in _owners(obj)}
        made: list[Object] = []
        loaded: dict[_Reference, Object] = {}
        with ExitStack() as stack:
            for obj in found:
                if owners and (_owners(obj) or _triple({**obj, **(obj.get("metadata") or {})}) in owners):
                    stack.enter_context(self._pause_controllers())
                    owners.clear()
                made.append(self.apply(_replace_owner_uids(obj, loaded), field_manager=FIELD_MANAGER))
                loaded[_reference(made[-1])] = made[-1]
        return made

    def _pause_controllers(self) -> AbstractContextManager[None]:
        """Returns the block in which no controller acts; a client alone has none."""
        return nullcontext()

    def create(self, obj: Object, *, namespace: str | None = None) -> Object:
        """Creates an object, and returns it as stored.

        Args:
            obj: with apiVersion, kind and metadata.
            namespace: by default that of the object, else `default`.

        Raises ApiError for an error response, and UnknownResource if there is no resource for the kind.
        """
        return self._client.create(obj, namespace=namespace)

    def apply(
        self,
        obj: Object,
        *,
        field_manager: str = FIELD_MANAGER,
        force: bool = True,
        namespace: str | None = None,
        subresource: str = "",
    ) -> Object:
        """Applies an object (server-side apply), and returns it as stored.

        Args:
            obj: with apiVersion, kind and metadata.name.
            field_manager: the name of the field manager.
            force: take over fields of other managers; False raises ApiError (409) for a conflict.
            namespace: by default that of the object, else `default`.
            subresource: such as "status".

        Raises ApiError and UnknownResource.
        """
        return self._client.apply(obj, field_manager=field_manager, force=force, namespace=namespace, subresource=subresource)

    def get(self, resource: str, name: str, *, namespace: str | None = None) -> Object:
        """Gets one object; the default namespace is `default`. Raises ApiError (404 if it does not exist) and UnknownResource."""
        return self._client.get(resource, name, namespace=namespace)

    def list(
        self, resource: str, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> list[Object]:
        """Lists the objects of one namespace, or of all if it is None.

        Args:
            label_selector, field_selector: in the syntax of kubectl's -l and --field-selector.

        Raises ApiError and UnknownResource.
        """
        return self._client.list(resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector)

    def update(self, obj: Object, *, namespace: str | None = None, subresource: str = "") -> Object:
        """Replaces an object, or a subresource such as "status", and returns it as stored.

        If `obj` has a resourceVersion and the object was changed since, ApiError (409) is raised.

        Args:
            obj: with apiVersion, kind and metadata.name.
            namespace: by default that of the object, else `default`.

        Raises ApiError and UnknownResource.
        """
        return self._client.update(obj, namespace=namespace, subresource=subresource)

    def patch(self, resource: str, name: str, patch: Object, *, namespace: str | None = None, subresource: str = "") -> Object:
        """Patches an object, or a subresource such as "status", with a JSON merge patch; returns the object as stored.

        The default namespace is `default`. Raises ApiError and UnknownResource.
        """
        return self._client.patch(resource, name, patch, namespace=namespace, subresource=subresource)

    def delete(self, resource: str, name: str, *, namespace: str | None = None, **options: Any) -> Object:
        """Deletes an object, and returns the response: the object or a Status.

        The default namespace is `default`. `options` are fields of DeleteOptions, such as `gracePeriodSeconds=0`.
        Raises ApiError and UnknownResource.
        """
        return self._client.delete(resource, name, namespace=namespace, **options)

    def resource_name(self, obj: Mapping[str, Any]) -> str:
        """Returns the name of an object's resource, such as `pods` or `deployments.apps`. Raises UnknownResource."""
        resource = self._client.resource(obj["kind"], obj["apiVersion"])
        return group_resource(resource.group, resource.plural)

    def request(
        self,
        method: str,
        path: str,
        body: Object | bytes | None = None,
        query: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Sends a request as it is, and returns the response, also if it is an error.

        Args:
            method: of HTTP.
            path: such as "/api/v1/pods"; may have a query.
            body: bytes, or an object that is sent as JSON; None for no body.
            query: the query parameters, if the path has none.
            headers: by default Accept and Content-Type are application/json. With Authorization the request is authenticated
                as if it came by the network, else its user is that of this client.

        Raises ConnectionResetError if a fault drops the connection, and ValueError for a watch, which has no end.
        """
        target, _, given = path.partition("?")
        parameters = dict(parse_qsl(given, keep_blank_values=True)) if given else query
        answer = self._client.request(method, target, body, parameters, headers=headers)
        if not isinstance(answer.body, bytes):
            answer.body.close()
            raise ValueError(f"{path} is a stream; use `watch`, or a client of the server")
        return Response(answer.code, ResponseHeaders(answer.headers), answer.body)

    def mapping(self, resource: str) -> RESTMapping:
        """Returns what the API calls a resource that is named as kubectl does: group, version, plural, kind, and its scope.

        Raises UnknownResource.
        """
        return self._client.resource(resource)

    def watch(self, path: str, query: Mapping[str, str] | None = None) -> Stream:
        """Starts a watch, and returns its stream: an iterator of events as JSON lines, which blocks in between; `take()` returns
        those that are ready, `close()` ends it.

        Args:
            path: such as "/api/v1/pods".
            query: the query parameters; `watch=true` is added.

        Raises ApiError for an error response.
        """
        return self._client.watch(path, query or {})

    def call(self, method: str, path: str, body: Object | None = None, query: Mapping[str, str] | None = None) -> Object:
        """Sends a request, and returns the object in the response.

        Args:
            method: of HTTP.
            path: such as "/api/v1/pods".
            body: a JSON object; None for no body.
            query: the query parameters.

        Raises ApiError for an error response.
        """
        return self._client.call(method, path, body, query)

    def wait_for(
        self,
        resource: str,
        name: str,
        *,
        namespace: str | None = None,
        until: Callable[[Object], bool] | None = None,
        gone: bool = False,
        timeout: float = 10.0,
    ) -> Object | None:
        """Waits until an object exists and `until(object)` is true, and returns it; or until it is `gone`, and returns None.

        Args:
            resource, name, namespace: of the object; the default namespace is `default`.
            until: a condition on the object; by default none.
            gone: wait until the object does not exist.
            timeout: real seconds.

        Raises TimeoutError, with the last state of the object, ApiError and UnknownResource.
        """
        found = self._client.resource(resource)
        changed = threading.Event()
        bucket = self._store.bucket(found.bucket)
        bucket.subscribe(changed.set)
        end = time.monotonic() + timeout
        try:
            while True:
                changed.clear()
                obj = self._find(resource, name, namespace)
                if gone and obj is None:
                    return None
                if not gone and obj is not None and (until is None or until(obj)):
                    return obj
                if not changed.wait(max(end - time.monotonic(), 0)):
                    state = "still exists" if gone else "does not meet the condition" if obj else "does not exist"
                    raise TimeoutError(f"{resource} {name} {state} after {timeout} s: {obj}")
        finally:
            bucket.unsubscribe(changed.set)

    def _find(self, resource: str, name: str, namespace: str | None) -> Object | None:
        try:
            return self._client.get(resource, name, namespace=namespace)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
