"""Records the changes of any cluster, through a kubeconfig: lists every resource, then watches it.

A watch that ends is opened again. After a 410 the collection is listed again, and differences are recorded with the present
time.

Invariant: the initial objects and the recorded changes result in the state that the watches have shown.

Specified by: sigs.k8s.io/kwok pkg/kwokctl/snapshot/save.go; k8s.io/client-go/tools/cache/reflector.go (lists and watches).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from fakekube.apimachinery.schema.builtin import kind_type
from fakekube.base.objects import Object
from fakekube.controllers.client.client import ApiError
from fakekube.controllers.client.remote import RemoteClient, RemoteWatch
from fakekube.powers.export import without_secret_data
from fakekube.powers.recording import NOT_RECORDED, Writer, plain_copy

#: Seconds before a watch that failed is opened again.
_RETRY = 1.0


class RemoteRecorder:
    """A recording in progress of another cluster.

    Args:
        client: reads the cluster.
        file: a binary file, which is not closed.
        kinds: resources as kubectl names them; by default all except events and leases.
        namespace: record only objects in this namespace; None for all.
        redact: leave out the data of Secrets.

    Raises ApiError and UnknownResource.
    """

    def __init__(
        self,
        client: RemoteClient,
        file: IO[bytes],
        *,
        kinds: Sequence[str] = (),
        namespace: str | None = None,
        redact: bool = True,
    ) -> None:
        self._client = client
        self._writer = Writer(file)
        self._file = file
        self._writing = threading.Lock()
        self._stopping = threading.Event()
        self._redact = redact
        wanted = [client.resource(name) for name in kinds] or client.listable_resources()
        self._resources = [
            one
            for one in wanted
            if (namespace is None or one.namespaced)
            and (kinds or (f"{one.plural}.{one.group}" if one.group else one.plural) not in NOT_RECORDED)
        ]
        self._namespace = namespace
        self._watches: dict[int, RemoteWatch] = {}
        known = [self._list(number) for number in range(len(self._resources))]
        for objects, _ in known:
            for obj in objects.values():
                self._writer.write_object(obj)
        file.flush()
        self._began_at = time.monotonic()
        self._threads = [
            threading.Thread(target=self._follow, args=(number, *state), name="fakekube-record", daemon=True)
            for number, state in enumerate(known)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def changes(self) -> int:
        """The number of changes written so far."""
        return self._writer.changes

    def stop(self) -> None:
        """Ends the recording. May be called twice."""
        self._stopping.set()
        for watch in list(self._watches.values()):
            watch.close()
        for thread in self._threads:
            thread.join(timeout=10.0)
        self._file.flush()

    def _path(self, number: int) -> str:
        return self._client.path(self._resources[number], self._namespace)

    def _list(self, number: int) -> tuple[dict[tuple[str, str], Object], str]:
        """Returns the objects of a collection by namespace and name, and its revision."""
        resource = self._resources[number]
        answer = self._client.call("GET", self._path(number))
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        objects = [self._copy({**kind, **item}) for item in answer["items"]]
        return {_key(obj): obj for obj in objects}, (answer.get("metadata") or {}).get("resourceVersion", "")

    def _copy(self, obj: Object) -> Object:
        copy = plain_copy(obj)
        return without_secret_data(copy) if self._redact else copy

    def _follow(self, number: int, known: dict[tuple[str, str], Object], revision: str) -> None:
        """Watches one collection until the recording stops."""
        while revision and not self._stopping.is_set():
            try:
                revision = self._watch(number, known, revision)
            except ApiError as error:
                if error.code == 410:
                    with suppress(ApiError):
                        revision = self._list_again(number, known)
                elif error.code in (403, 404, 405):
                    return
                self._stopping.wait(_RETRY)

    def _watch(self, number: int, known: dict[tuple[str, str], Object], revision: str) -> str:
        """Follows one watch to its end; returns the revision that it reached. Raises ApiError."""
        watch = self._watches[number] = self._client.watch(self._path(number), revision)
        if self._stopping.is_set():
            watch.close()
        for event in watch:
            obj = event.get("object") or {}
            if event.get("type") == "ERROR":
                raise ApiError(obj)
            revision = obj["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                copy = self._copy(obj)
                self._change(number, known, _key(copy), None if event["type"] == "DELETED" else copy)
        return revision

    def _list_again(self, number: int, known: dict[tuple[str, str], Object]) -> str:
        objects, revision = self._list(number)
        for key in [key for key in known if key not in objects]:
            self._change(number, known, key, None)
        for key, obj in objects.items():
            self._change(number, known, key, obj)
        return revision

    def _change(self, number: int, known: dict[tuple[str, str], Object], key: tuple[str, str], new: Object | None) -> None:
        resource = self._resources[number]
        old = known.pop(key, None)
        if new is not None:
            known[key] = new
        type_ = kind_type(resource.group, resource.version, resource.kind)
        with self._writing:
            if not self._stopping.is_set():
                self._writer.write_change(resource, type_, old, new, time.monotonic() - self._began_at)
                self._file.flush()


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
