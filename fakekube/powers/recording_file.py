"""Records the changes of a cluster of this process to a file, with their times by the cluster's clock.

The store calls the recorder for every change. The recorder appends the change to a queue, and a thread of the process writes the
queue to the file when it has grown, so that long recordings take little memory.

Invariants: the initial objects and the recorded changes result in the state of the cluster when the recording stops. A file that
was opened here is closed then, also if the recording cannot start.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from fakekube.apiserver.registry.generic import versions
from fakekube.base.private_files import open_private
from fakekube.base.threads import WORKERS
from fakekube.powers.export import without_secret_data
from fakekube.powers.recording import NOT_RECORDED, Writer, plain_copy

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.apis.rest.resource import Resource
    from fakekube.apiserver.registry.scope import Backend
    from fakekube.controllers.client import Client
    from fakekube.store import Event, Record


Object = dict[str, Any]

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

    # ------------------------------------------------------------ listening

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

    # ------------------------------------------------------------ writing

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
        obj = versions.to_version(resource, record.value).object
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
        """Reports whether the recording was stopped."""
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
