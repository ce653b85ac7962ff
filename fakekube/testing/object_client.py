"""The operations on objects for tests, with one user: create, apply, get, list, patch, delete, wait.

`Cluster` is such a client for its administrator, `Cluster.as_user` makes others. All operations use the API;
`wait_for` is
notified by the store, so that it does not poll.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fakekube.client import ApiError, Client
from fakekube.testing.manifests import Source, objects

if TYPE_CHECKING:
    from fakekube.codecs.document import Document
    from fakekube.store import Store

__all__ = ["ObjectClient"]

Object = dict[str, Any]

#: The field manager of applies in tests.
FIELD_MANAGER = "fakekube"


_Reference = tuple[str, str, str]
"""apiVersion, kind and name."""


def _reference(obj: Mapping[str, Any]) -> _Reference:
    return obj.get("apiVersion", ""), obj.get("kind", ""), (obj.get("metadata") or {}).get("name", "")


def _owners(obj: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return (obj.get("metadata") or {}).get("ownerReferences") or []


def _owner(owner: Mapping[str, Any]) -> _Reference:
    return owner.get("apiVersion", ""), owner.get("kind", ""), owner.get("name", "")


def _owners_first(found: list[Object]) -> list[Object]:
    """Sorts objects so that owners come before dependents; otherwise, and in cycles, the order is kept."""
    if not any(map(_owners, found)):
        return found
    waiting, ordered = found, list[Object]()
    while waiting:
        missing = {_reference(obj) for obj in waiting}
        ready = [obj for obj in waiting if not any(_owner(owner) in missing for owner in _owners(obj))]
        if not ready:
            return [*ordered, *waiting]
        ordered += ready
        taken = set(map(id, ready))
        waiting = [obj for obj in waiting if id(obj) not in taken]
    return ordered


def _relinked(obj: Object, loaded: Mapping[_Reference, Object]) -> Object:
    """Returns the object with the uids of the owners that were loaded before it."""
    if not any(_owner(owner) in loaded for owner in _owners(obj)):
        return obj
    owners = [
        {**owner, "uid": loaded[_owner(owner)]["metadata"]["uid"]} if _owner(owner) in loaded else owner for owner in _owners(obj)
    ]
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": owners}}


class ObjectClient:
    """Works with the objects of one cluster, with one user.

    Args:
        client: The client with that user.
        store: The store of the cluster.
    """

    def __init__(self, client: Client, store: Store[Document]) -> None:
        self._client = client
        self._store = store

    def load(self, *sources: Source) -> list[Object]:
        """Applies manifests: files, folders, YAML text or objects; definitions and namespaces first, owners before
        dependents.

        Owner references to objects of the same call get the new uids of those.
        Raises ManifestError for an invalid manifest, and ApiError for an error response.
        """
        made: list[Object] = []
        loaded: dict[_Reference, Object] = {}
        for obj in _owners_first(objects(*sources)):
            made.append(self.apply(_relinked(obj, loaded), field_manager=FIELD_MANAGER))
            loaded[_reference(made[-1])] = made[-1]
        return made

    def create(self, obj: Object, *, namespace: str | None = None) -> Object:
        """Creates an object. Raises ApiError."""
        return self._client.create(obj, namespace=namespace)

    def apply(
        self, obj: Object, *, field_manager: str = FIELD_MANAGER, force: bool = True, namespace: str | None = None
    ) -> Object:
        """Applies an object (server-side apply). Raises ApiError."""
        return self._client.apply(obj, field_manager=field_manager, force=force, namespace=namespace)

    def get(self, resource: str, name: str, *, namespace: str | None = None) -> Object:
        """Gets one object; the resource has a name that kubectl accepts. Raises ApiError and UnknownResource."""
        return self._client.get(resource, name, namespace=namespace)

    def list(
        self, resource: str, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> list[Object]:
        """Lists the objects of one namespace, or of all if it is None. Raises ApiError and UnknownResource."""
        return self._client.list(resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector)

    def patch(self, resource: str, name: str, patch: Object, *, namespace: str | None = None, subresource: str = "") -> Object:
        """Patches an object, or its status with `subresource="status"`. Raises ApiError."""
        return self._client.patch(resource, name, patch, namespace=namespace, subresource=subresource)

    def delete(self, resource: str, name: str, *, namespace: str | None = None, **options: Any) -> Object:
        """Deletes an object; `options` are fields of DeleteOptions. Raises ApiError."""
        return self._client.delete(resource, name, namespace=namespace, **options)

    def resource_name(self, obj: Mapping[str, Any]) -> str:
        """Returns the name of an object's resource, such as `pods` or `deployments.apps`. Raises UnknownResource."""
        resource = self._client.resource(obj["kind"], obj["apiVersion"])
        return f"{resource.plural}.{resource.group}" if resource.group else resource.plural

    def request(self, method: str, path: str, body: Object | None = None, query: Mapping[str, str] | None = None) -> Object:
        """Sends any request and returns the object in the response. Raises ApiError."""
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
        """Waits until an object exists and `until` is true for it, or until it is `gone` (then returns None).

        `timeout` is in real seconds. Raises TimeoutError, with the last state of the object.
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
                    goal = "is still there" if gone else "is not as it should be" if obj else "is not there"
                    raise TimeoutError(f"{resource} {name} {goal} after {timeout} s: {obj}")
        finally:
            bucket.unsubscribe(changed.set)

    def _find(self, resource: str, name: str, namespace: str | None) -> Object | None:
        try:
            return self._client.get(resource, name, namespace=namespace)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
