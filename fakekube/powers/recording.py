"""Recordings: their format, a YAML stream of objects and then of timed changes, and the recorders of clusters.

    apiVersion: action.kwok.x-k8s.io/v1alpha1
    kind: ResourcePatch
    resource: {version: v1, resource: configmaps}
    target: {name: a, namespace: default}
    durationNanosecond: 1500000000        # since the recording began
    method: patch                         # or create, delete
    template: {data: {x: "1"}}            # the object, or a patch

The format is that of `kwokctl snapshot record` and `replay`, which read and write the same. One recorder is for a cluster of this
process; the other lists and watches every resource of any cluster, through a kubeconfig. A watch that ends is opened again; after
a 410 the collection is listed again, and differences are recorded with the present time.

Invariants: `read` returns the objects and changes that a `Writer` wrote. The initial objects and the recorded changes result in
the state that the watches have shown.

Specified by: sigs.k8s.io/kwok pkg/apis/action/v1alpha1/resource_patch_types.go, pkg/kwokctl/snapshot/save.go;
k8s.io/client-go/tools/cache/reflector.go (lists and watches).
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from fakekube.apimachinery.codecs import DecodeError, yaml
from fakekube.apimachinery.patch import strategic
from fakekube.apimachinery.schema.builtin import kind_type
from fakekube.apiserver.registry.generic import conversion
from fakekube.base.objects import Object, group_resource
from fakekube.base.private_files import open_private
from fakekube.base.threads import WORKERS
from fakekube.controllers.client.client import ApiError
from fakekube.controllers.client.remote import RemoteClient, RemoteWatch
from fakekube.powers.redaction import without_secret_data
from fakekube.powers.state import check_depth

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.apimachinery.schema.model import Type
    from fakekube.apis.rest.resource import Resource
    from fakekube.apiserver.registry.scope import Backend
    from fakekube.controllers.client import Client
    from fakekube.controllers.client.client import RESTMapping
    from fakekube.store import Event, Record


API_VERSION, KIND = "action.kwok.x-k8s.io/v1alpha1", "ResourcePatch"
METHODS = ("create", "patch", "delete")
#: Resources that clusters write all the time; recordings omit them by default.
NOT_RECORDED = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
NANOSECONDS = 1_000_000_000

_SEPARATOR = re.compile(rb"^---[ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)


class RecordingError(ValueError):
    """A file is not a valid recording; the text is the reason."""


@dataclass(slots=True, frozen=True)
class ResourcePatch:
    """One change with its time."""

    group: str
    version: str
    resource: str
    """The plural."""
    namespace: str
    name: str
    method: str
    """create, patch or delete."""
    seconds: float
    """Since the recording began."""
    template: Object = field(default_factory=dict)
    """The whole object, or a patch: strategic for built-in kinds, a JSON merge patch for others."""

    def document(self) -> Object:
        """Returns the document for the file."""
        resource = {"group": self.group, "version": self.version, "resource": self.resource}
        target = {"name": self.name, "namespace": self.namespace}
        document: Object = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "resource": {name: value for name, value in resource.items() if value},
            "target": {name: value for name, value in target.items() if value},
            "durationNanosecond": round(self.seconds * NANOSECONDS),
            "method": self.method,
        }
        return document if self.method == "delete" else {**document, "template": self.template}


@dataclass(slots=True)
class Contents:
    """The content of a recording."""

    objects: list[Object] = field(default_factory=list)
    """The initial objects."""
    patches: list[ResourcePatch] = field(default_factory=list)
    """Sorted by time."""


class Writer:
    """Writes a recording to a binary file. Not thread-safe."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._began = False
        self.changes = 0
        """The number of changes written so far."""

    def write_object(self, obj: Object) -> None:
        """Writes an initial object."""
        self._write(obj)

    def write_change(
        self, mapping: RESTMapping, type: Type | None, old: Object | None, new: Object | None, seconds: float
    ) -> None:
        """Writes the change from one state of an object to another, if they differ; see `patch_between` for the arguments."""
        patch = patch_between(mapping, type, old, new, seconds)
        if patch is not None:
            self.write_patch(patch)

    def write_patch(self, patch: ResourcePatch) -> None:
        """Writes a change."""
        self._write(patch.document())
        self.changes += 1

    def _write(self, document: Object) -> None:
        self._file.write((b"---\n" if self._began else b"") + yaml.dumps(document))
        self._began = True


def plain_copy(obj: Mapping[str, Any]) -> Object:
    """Returns an object without resourceVersion and selfLink, as recordings contain it."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in ("resourceVersion", "selfLink")}
    return {**obj, "metadata": metadata}


def patch_between(
    mapping: RESTMapping, type: Type | None, old: Object | None, new: Object | None, seconds: float
) -> ResourcePatch | None:
    """Returns the change from one state of an object to another; None if they are equal.

    Args:
        mapping: the resource.
        type: of built-in kinds.
        old, new: `plain_copy` of the object; None if it is absent.
        seconds: since the recording began.
    """
    present = new or old
    if present is None:
        return None
    method = "delete"
    template: Object = {}
    if new is not None:
        method, template = ("create", new) if old is None else ("patch", strategic.create(type, old, new))
        if not template:
            return None
    metadata = present["metadata"]
    name = metadata.get("namespace", ""), metadata["name"]
    return ResourcePatch(mapping.group, mapping.version, mapping.plural, *name, method, seconds, template)


def read(text: bytes) -> Contents:
    """Reads a recording. Raises RecordingError."""
    contents = Contents()
    for document in _documents(text):
        if (document.get("apiVersion"), document.get("kind")) == (API_VERSION, KIND):
            contents.patches.append(_patch_of(document))
        elif isinstance(document.get("items"), list) and str(document["kind"]).endswith("List"):
            contents.objects += map(_object_of, document["items"])
        else:
            contents.objects.append(_object_of(document))
    contents.patches.sort(key=lambda patch: patch.seconds)
    return contents


def _documents(text: bytes) -> Iterator[Object]:
    for part in _SEPARATOR.split(text):
        if not part.strip():
            continue
        try:
            document, _ = yaml.loads(part)
            check_depth(document)
        except DecodeError as error:
            raise RecordingError(f"no YAML: {error}") from None
        except RecursionError:
            raise RecordingError("a document is damaged: it is nested too deeply") from None
        except ValueError as error:
            raise RecordingError(f"a document is damaged: {error}") from None
        if document is None:
            continue
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise RecordingError("a document is not a Kubernetes object: kind is missing")
        yield document


def _object_of(value: Any) -> Object:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise RecordingError("an object has no name")
    if not isinstance(value.get("kind"), str) or not isinstance(value.get("apiVersion"), str):
        raise RecordingError(f"the object {metadata['name']} has no kind and apiVersion")
    return plain_copy(value)


def _patch_of(document: Object) -> ResourcePatch:
    try:
        resource, target = document["resource"], document["target"]
        texts = (
            resource.get("group") or "",
            resource["version"],
            resource["resource"],
            target.get("namespace") or "",
            target["name"],
            document["method"],
        )
        template = document.get("template") or {}
        patch = ResourcePatch(*texts, seconds=document.get("durationNanosecond", 0) / NANOSECONDS, template=template)
    except (KeyError, TypeError, AttributeError) as problem:
        raise RecordingError(f"a ResourcePatch is malformed: {problem!r}") from None
    if not all(isinstance(text, str) for text in texts) or not isinstance(template, dict):
        raise RecordingError("a ResourcePatch is malformed: a name or the template is of another type")
    if patch.method not in METHODS:
        raise RecordingError(f"a ResourcePatch has the method {patch.method!r}, which is none of {', '.join(METHODS)}")
    if not 0 <= patch.seconds < 1e9:
        raise RecordingError(f"a ResourcePatch is due after {patch.seconds} seconds")
    return patch


# --- The recorder of a cluster of this process -------------------------------------------------------------------------
# The store calls the recorder for every change. The recorder appends the change to a queue, and a thread of the process writes
# the queue to the file when it has grown, so that long recordings take little memory.
#
# Invariants: the initial objects and the recorded changes result in the state of the cluster when the recording stops. A file
# that was opened here is closed then, also if the recording cannot start.


#: The number of queued changes after which a thread writes them.
_BATCH = 256


class ChangeRecorder:
    """A recording in progress; a context manager that stops it.

    Args:
        backend: of the cluster.
        resources: the resources to record.
        file: a binary file, which is not closed.
        namespace: record only objects in this namespace; None for all.
        redact: leave out the data of Secrets.
    """

    def __init__(
        self,
        backend: Backend,
        resources: Collection[Resource],
        file: IO[bytes],
        *,
        namespace: str | None = None,
        redact: bool = False,
    ) -> None:
        self._backend = backend
        self._writer = Writer(file)
        self._resources = {resource.bucket: resource for resource in resources}
        self._prefix = f"{namespace}/" if namespace is not None else ""
        self._redact = redact
        self._queue: deque[tuple[str, Event[Document] | None, float]] = deque()
        self._known: dict[str, dict[str, Record[Document]]] = {}
        """The last written version of each object, by bucket and key."""
        self._floors: dict[str, int] = {}
        """The revision at which each bucket was last read as a whole; earlier changes are part of that."""
        self._writing = threading.Lock()
        self.stopped = False
        self._began_at = backend.clock.monotonic()
        backend.store.listen(self._note_change)
        with self._writing:
            self._write_beginning()

    # --- Listening ----------------------------------------------------------------------------------------------------

    def _note_change(self, bucket: str, event: Event[Document] | None) -> None:
        if bucket in self._resources:
            self._queue.append((bucket, event, self._backend.clock.monotonic() if event is None else event.time))
            if len(self._queue) % _BATCH == 0:
                WORKERS.run(self.flush)

    @property
    def changes(self) -> int:
        """The number of changes written so far."""
        return self._writer.changes

    def flush(self) -> None:
        """Writes the changes so far to the file."""
        with self._writing:
            while self._queue and not self.stopped:
                bucket, event, time = self._queue.popleft()
                if event is None:
                    self._write_replaced(bucket, time)
                elif event.revision > self._floors[bucket] and event.key.startswith(self._prefix):
                    self._write_change(bucket, event.key, event.record, time)

    def stop(self) -> None:
        """Ends the recording. May be called twice."""
        self._backend.store.unlisten(self._note_change)
        self.flush()
        with self._writing:
            self.stopped = True

    def __enter__(self) -> ChangeRecorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    # --- Writing ------------------------------------------------------------------------------------------------------

    def _write_beginning(self) -> None:
        for bucket in self._resources:
            page = self._backend.store.bucket(bucket).page(self._prefix)
            self._floors[bucket] = page.revision
            self._known[bucket] = {record.key: record for record in page.records}
            for record in page.records:
                self._writer.write_object(self._object(self._resources[bucket], record))

    def _write_replaced(self, bucket: str, time: float) -> None:
        """Writes the differences after a whole bucket was replaced (by a restore, a load or a reset)."""
        page = self._backend.store.bucket(bucket).page(self._prefix)
        self._floors[bucket] = page.revision
        now = {record.key: record for record in page.records}
        for key in [key for key in self._known[bucket] if key not in now]:
            self._write_change(bucket, key, None, time)
        for key, record in now.items():
            self._write_change(bucket, key, record, time)

    def _write_change(self, bucket: str, key: str, record: Record[Document] | None, time: float) -> None:
        resource, known = self._resources[bucket], self._known[bucket]
        before = known.pop(key, None)
        if record is not None:
            known[key] = record
        old = None if before is None else self._object(resource, before)
        new = None if record is None else self._object(resource, record)
        type_ = None if resource.custom else resource.type
        self._writer.write_change(resource, type_, old, new, max(time - self._began_at, 0.0))

    def _object(self, resource: Resource, record: Record[Document]) -> Object:
        obj = conversion.to_version(resource, record.value).object
        shown = plain_copy({"apiVersion": resource.api_version, "kind": resource.kind, **obj})
        return without_secret_data(shown) if self._redact else shown


class Recording:
    """A recording in progress; a context manager that stops it."""

    def __init__(self, recorder: ChangeRecorder, file: IO[bytes], *, closes: bool) -> None:
        self._recorder = recorder
        self._file = file
        self._closes = closes

    @property
    def changes(self) -> int:
        """The number of changes written so far."""
        return self._recorder.changes

    @property
    def finished(self) -> bool:
        """Whether the recording was stopped."""
        return self._recorder.stopped

    def flush(self) -> None:
        """Writes the changes so far to the file."""
        self._recorder.flush()
        if not self._file.closed:
            self._file.flush()

    def stop(self) -> None:
        """Ends the recording. May be called twice."""
        self._recorder.stop()
        if self._closes:
            self._file.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()


def start_recording(
    backend: Backend, client: Client, target: Path | str | IO[bytes], *, kinds: Sequence[str], namespace: str | None, redact: bool
) -> Recording:
    """Starts a recording; the arguments are those of `Cluster.record`. Raises OSError and UnknownResource."""
    wanted = [client.resource(name) for name in kinds] or [
        one for one in client.listable_resources() if one.group_resource not in NOT_RECORDED
    ]
    resources = [one for one in wanted if namespace is None or one.namespaced]
    closes = isinstance(target, str | Path)
    file = open_private(target) if isinstance(target, str | Path) else target
    try:
        recorder = ChangeRecorder(backend, resources, file, namespace=namespace, redact=redact)
    except BaseException:
        if closes:
            file.close()
        raise
    return Recording(recorder, file, closes=closes)


# --- Records the changes of any cluster -------------------------------------------------------------------------------


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
            if (namespace is None or one.namespaced) and (kinds or group_resource(one.group, one.plural) not in NOT_RECORDED)
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
