"""The part of `Cluster` that reads and replaces the contents of the store: snapshots, saved files, history, recordings.

Invariant: revisions never decrease, whatever is restored or loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fakekube.base.objects import Object
from fakekube.base.private_files import write_private
from fakekube.cluster.testing.object_client import ObjectClient

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.apiserver.registry.scope import Settings
    from fakekube.apiserver.server import Machinery
    from fakekube.base.clock import Clock
    from fakekube.cluster_options import Source
    from fakekube.controllers.client import Client
    from fakekube.powers.history import Past, Version
    from fakekube.powers.recording import Recording
    from fakekube.powers.replay import Replay
    from fakekube.store import Snapshot


class ClusterState(ObjectClient):
    """A client of a cluster that also reads and replaces its state.

    Args:
        client: a client in the same process whose user is an administrator.
        machinery, settings, clock: of the cluster.
    """

    clock: Clock

    def __init__(self, client: Client, machinery: Machinery, settings: Settings, clock: Clock) -> None:
        super().__init__(client, machinery.backend.store)
        self._machinery = machinery
        self._settings = settings
        self.clock = clock
        self._recordings: list[Recording | Replay] = []
        """Recordings and replays that `stop` ends."""

    def snapshot(self) -> Snapshot[Document]:
        """Returns the current state, an immutable value that can be restored many times. Takes constant time."""
        return self._machinery.backend.store.snapshot()

    def restore(self, snapshot: Snapshot[Document]) -> None:
        """Restores the objects of a snapshot of this cluster or of one that it was forked from; may be called many times.

        Each object gets back its resourceVersion and uid; the revision of the cluster does not decrease. Watches end with
        410 Gone. May be called before `start` and after `stop`.
        """
        self._machinery.backend.store.restore(snapshot)
        self._note_replacement("restore", f"revision {snapshot.revision}")

    def _did(self, kind: str, text: str) -> None:
        """Called with what was done to the cluster outside of the API, for its marks (`observed.ObservedCluster`)."""

    def _note_replacement(self, kind: str, text: str) -> None:
        """Called after the objects were replaced, as `_did`."""

    def compact(self) -> None:
        """Compacts the history: lists, continue tokens and watches with an earlier revision get 410 Gone."""
        store = self._machinery.backend.store
        store.compact()
        for resource in self._machinery.backend.registry:
            store.bucket(resource.bucket).forget()
        self._did("compaction", f"up to revision {store.revision}")

    def history(self, resource: str, name: str, namespace: str | None = None) -> Sequence[Version]:
        """Returns the versions of an object that are not compacted, oldest first: each with revision, time, type,
        object and changed fields.

        Args:
            resource: a name that kubectl accepts.
            name, namespace: of the object; the default namespace is `default`.

        Raises UnknownResource.
        """
        from fakekube.powers.history import history

        found = self._client.resource(resource)
        bucket = self._machinery.backend.store.bucket(found.bucket)
        return history(bucket, found, found.key(namespace or "default", name), self.clock)

    def change(self, resource: str, name: str, namespace: str | None = None, *, revision: int) -> tuple[Object, Object] | None:
        """Returns an object before and after the write of a revision, neither of which must be changed; None if the revision is
        compacted, or did not change an object that existed. Unlike `history` it takes no longer for an object that was written
        often.

        Args:
            resource: a name that kubectl accepts.
            name, namespace: of the object; the default namespace is `default`.
            revision: the resourceVersion that the object has after the write.

        Raises UnknownResource.
        """
        from fakekube.powers.history import change

        found = self._client.resource(resource)
        bucket = self._machinery.backend.store.bucket(found.bucket)
        return change(bucket, found, found.key(namespace or "default", name), revision)

    def at(self, revision: int) -> Past:
        """Returns the state at a revision: `at(revision).get("pods", "web-0")`, `at(revision).list("pods")`.

        The methods of the result raise ApiError (410) if the revision is compacted.
        """
        from fakekube.powers.history import Past

        return Past(self._client, revision)

    def save(self, path: Path | str, *, compact: bool = False, history: bool = False) -> None:
        """Writes the whole state to a file that only its owner may read, with uids and revisions.

        Args:
            path: of the file.
            compact: compressed JSON; by default readable YAML.
            history: also write the versions of objects that are not compacted, so that `history`, `at` and watches from old
                revisions work in a fresh cluster that loads the file.

        Raises OSError.
        """
        from fakekube.powers.state import state_of, write_state

        write_private(path, write_state(state_of(self._machinery.backend, history=history), compact=compact))

    def load(self, *sources: Source | bytes) -> list[Object]:
        """Applies manifests and returns the objects, or restores a state that `save` wrote and returns an empty list.

        Definitions and namespaces are applied first, owners before their dependents. A saved state replaces all objects;
        uids and resourceVersions are those of the file, the revision of the cluster does not decrease, and watches end with
        410 Gone. Of a saved history, the part after the current revision of this cluster is kept; its times are relative to
        now. A state of another minor is taken as by an API server that is upgraded or downgraded with its etcd: fields that
        the minor does not know are dropped, and objects that its server makes at its start are added.

        Args:
            sources: manifests are files, folders, YAML text or objects; a saved state is one file, or its content; a trace file
                is a saved state, too.

        Raises:
            ManifestError: a manifest is invalid.
            ApiError: the API server refuses an object.
            UnknownResource: there is no resource for the kind of an object.
            StateError: a saved state is damaged, or has objects of kinds that the minor does not know.
        """
        from fakekube.apiserver.server import add_bootstrap_objects
        from fakekube.powers.state import read_state

        text = _saved_state(sources[0]) if len(sources) == 1 else None
        if text is None:
            return super().load(*(one.decode() + "\n" if isinstance(one, bytes) else one for one in sources))
        backend = self._machinery.backend
        saved = read_state(text, self._settings.version, self.clock.monotonic(), backend.registry)
        backend.store.restore(saved.snapshot, since=saved.since)
        if saved.version != self._settings.version:
            add_bootstrap_objects(backend)
        self._note_replacement("load", f"a state of revision {saved.snapshot.revision}")
        return []

    def record(
        self, target: Path | str | IO[bytes], *, kinds: Sequence[str] = (), namespace: str | None = None, redact: bool = False
    ) -> Recording:
        """Starts to record the present objects, and then every change with its time.

        The recording ends with its method `stop()`, at the end of its `with` block, or when the cluster stops.

        Args:
            target: a path, or a binary file. The format is that of kwokctl, see `powers.recording`.
            kinds: resources as kubectl names them; by default all but events and leases.
            namespace: record only objects in this namespace; by default all.
            redact: leave out the data of Secrets.

        Raises OSError and UnknownResource.
        """
        from fakekube.powers.recording import start_recording

        recording = start_recording(
            self._machinery.backend, self._client, target, kinds=kinds, namespace=namespace, redact=redact
        )
        self._stop_later(recording)
        return recording

    def _stop_later(self, one: Recording | Replay) -> None:
        """Registers a recording or a replay to be stopped with the cluster."""
        self._recordings = [*(other for other in self._recordings if not other.finished), one]

    def replay(self, source: Path | str | bytes, *, speed: float = 1.0) -> Replay:
        """Starts to play back a recording of `record` or of kwokctl: its initial objects at once, each change at its time by
        this cluster's clock.

        Args:
            source: a path, or the text as bytes.
            speed: recorded seconds per second of the clock; `math.inf` applies all changes at once.

        Returns the replay: `wait(timeout=10)`, `stop()`, `finished`, `applied`, `skipped`.
        Raises OSError, RecordingError for a file that is not a recording, and ValueError for a speed that is not positive.
        """
        from fakekube.powers.recording import read
        from fakekube.powers.replay import Replay

        text = source if isinstance(source, bytes) else Path(source).read_bytes()
        replay = Replay(self._machinery.backend, read(text), speed)
        self._stop_later(replay)
        return replay

    def export(self, *, namespace: str | None = None, kinds: Sequence[str] = (), redact: bool = False) -> list[Object]:
        """Returns the objects in a form that another cluster can load, without what a cluster assigns (uids, status …).

        Args:
            namespace: only objects in this namespace; by default all.
            kinds: resources as kubectl names them; by default all that can be loaded.
            redact: remove the data of Secrets.

        Raises ApiError and UnknownResource.
        """
        from fakekube.powers.export import export

        return export(self._client, namespace=namespace, kinds=kinds, redact=redact)

    def normalised(
        self, kinds: Sequence[str] | None = None, namespace: str | None = None, managed_fields: bool = False
    ) -> list[Object]:
        """Returns the objects with stable names in the place of what differs by chance, so that two runs give equal ones.

        Uids, resourceVersions, times, suffixes of generated names, allocated addresses and ports, tokens and certificates are
        replaced, references to them included (`powers.export`).

        Args:
            kinds: resources as kubectl names them; by default all except events, endpoints and leases.
            namespace: only objects in this namespace; by default all.
            managed_fields: keep metadata.managedFields.

        Raises ApiError and UnknownResource.
        """
        from fakekube.powers.export import normalise

        return normalise(self._client, kinds=kinds, namespace=namespace, managed_fields=managed_fields)


def _saved_state(source: Source | bytes) -> bytes | None:
    """Returns the text of a saved state; None if the source is something else."""
    from fakekube.powers.state import is_state_text
    from fakekube.powers.trace import is_trace_text, state_in_trace

    text = b""
    if isinstance(source, bytes):
        text = source
    elif isinstance(source, Path) or (isinstance(source, str) and "\n" not in source and not source.lstrip().startswith("{")):
        path = Path(source)
        text = path.read_bytes() if path.is_file() else b""
    elif isinstance(source, str):
        text = source.encode("utf-8", "surrogatepass")
    if is_trace_text(text):
        return state_in_trace(text)
    return text if is_state_text(text) else None
