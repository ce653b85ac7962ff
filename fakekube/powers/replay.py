"""Plays a recording back by the cluster's clock, at any speed.

Changes are written directly to the store, including status: without validation and admission. Watchers get one event for each
change. Objects get new uids; every string that is a uid of the recording (owner references, claims, labels) is replaced with the
new uid.

Invariant: a change is written in full or not at all; a change that cannot be written is added to `skipped`, and the replay
continues.
"""

from __future__ import annotations

import math
import threading
import uuid
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.patch import strategic
from fakekube.apimachinery.patch.merge_patch import apply_merge_patch
from fakekube.apimachinery.schema import decode as schema_decode
from fakekube.apimachinery.schema.walk import DecodeError
from fakekube.apiserver.registry.generic import conversion
from fakekube.apiserver.registry.generic.writes import stamp_revision
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object
from fakekube.powers.journal import because
from fakekube.powers.recording import Contents, ResourcePatch

if TYPE_CHECKING:
    from fakekube.apis.rest.resource import Resource
    from fakekube.apiserver.registry.scope import Backend
    from fakekube.base.clock import Clock, Timer


_FIRST = ("CustomResourceDefinition", "Namespace")
#: The number of latest texts in `skipped`.
_KEPT_TEXTS = 100


class _SkippedError(Exception):
    """A change cannot be written; the text is the reason."""


class Replay:
    """A replay in progress. The initial objects are written when it is created.

    Args:
        backend: of the cluster.
        contents: the recording.
        speed: recorded seconds per second of the clock; `math.inf` writes all changes at once.

    Raises ValueError for a speed that is not positive.
    """

    def __init__(self, backend: Backend, contents: Contents, speed: float = 1.0) -> None:
        if isinstance(speed, bool) or not isinstance(speed, int | float) or not speed > 0:
            raise ValueError(f"the speed must be a positive number, not {speed!r}")
        self._clock: Clock = backend.clock
        self._writes = _StoreWrites(backend)
        self._speed = speed
        self._left = deque(contents.patches)
        self._changed = threading.Condition()
        self._playing = threading.RLock()
        self._timer: Timer | None = None
        self.total = len(contents.patches)
        """The number of changes in the recording."""
        self.applied = 0
        """The number of changes written so far."""
        self.skipped_count = 0
        self.skipped: deque[str] = deque(maxlen=_KEPT_TEXTS)
        """The latest changes that could not be written, with the reasons."""
        self._writes.prepare(contents.objects)
        for obj in sorted(contents.objects, key=lambda obj: _FIRST.index(obj["kind"]) if obj["kind"] in _FIRST else len(_FIRST)):
            self._attempt(partial(self._writes.put, obj), f"{obj['kind']} {obj['metadata']['name']}")
        self._began_at = self._clock.monotonic()
        self._play()

    @property
    def finished(self) -> bool:
        """Whether all changes have been played, or `stop` was called."""
        return not self._left

    def wait(self, timeout: float = 10.0) -> Replay:
        """Waits until the last change is written. `timeout` is in real seconds. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.finished, timeout):
                raise TimeoutError(f"{self.applied} of {self.total} changes were played after {timeout} s")
        return self

    def stop(self) -> None:
        """Plays no further change. May be called twice."""
        with self._playing:
            self._left.clear()
            if self._timer is not None:
                self._timer.cancel()
        self._tell()

    def _play(self) -> None:
        """Writes the changes that are due, and sets the timer for the next one."""
        with self._playing:
            self._timer = None
            reached = math.inf if self._speed == math.inf else (self._clock.monotonic() - self._began_at) * self._speed
            while self._left and self._left[0].seconds <= reached + 1e-9:
                patch = self._left[0]
                if self._attempt(partial(self._writes.change, patch), f"{patch.method} {patch.resource} {patch.name}"):
                    self.applied += 1
                self._left.popleft()
            if self._left:
                due = self._began_at + self._left[0].seconds / self._speed
                self._timer = self._clock.call_at(due, self._play, what="the replay")
        if not self._left:
            self._tell()

    def _attempt(self, write: Callable[[], None], what: str) -> bool:
        try:
            with because("replay"):
                write()
        except (
            _SkippedError,
            StatusError,
            DecodeError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            RecursionError,
        ) as problem:
            self.skipped_count += 1
            self.skipped.append(f"{what}: {problem}")
            return False
        return True

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def describe(self) -> dict[str, Any]:
        """Returns the replay as the control API shows it."""
        return {
            "total": self.total,
            "applied": self.applied,
            "skipped": self.skipped_count,
            "problems": list(self.skipped),
            "finished": self.finished,
            "speed": None if self._speed == math.inf else self._speed,
        }


class _StoreWrites:
    """Writes recorded objects to the store."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._registry = backend.registry
        self._uids: dict[str, str] = {}
        """uid of the recording → uid in this cluster."""

    def prepare(self, objects: list[Object]) -> None:
        """Chooses the uids of all objects first, because references may precede the objects that they refer to."""
        for obj in objects:
            resource = self._of_kind(obj)
            if resource is not None:
                self._adopt_uid(resource, obj)

    def put(self, obj: Object) -> None:
        """Creates or replaces an object. Raises _SkippedError and errors of the decoder."""
        resource = self._of_kind(obj)
        if resource is None:
            raise _SkippedError(f"{obj['apiVersion']} {obj['kind']} is not served")
        self._store(resource, obj)

    def change(self, patch: ResourcePatch) -> None:
        """Performs a change. Raises _SkippedError and errors of the decoder and of patches."""
        resource = self._registry.get(patch.group, patch.version, patch.resource)
        if resource is None or "create" not in resource.verbs:
            raise _SkippedError(f"{patch.group}/{patch.version} {patch.resource} is not served")
        bucket, key = self._backend.store.bucket(resource.bucket), resource.key(patch.namespace, patch.name)
        record = bucket.get(key)
        if patch.method == "create":
            self._store(resource, patch.template)
        elif record is None:
            raise _SkippedError("there is no such object")
        elif patch.method == "delete":
            bucket.commit(key, None, None)
        else:
            template = _replace_uids(patch.template, self._uids)
            old = {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                **conversion.to_version(resource, record.value).object,
            }
            new = apply_merge_patch(old, template) if resource.custom else strategic.merge(resource.type, old, template)
            self._store(resource, {**new, "metadata": {**new["metadata"], "uid": old["metadata"].get("uid", "")}}, linked=True)

    def _store(self, resource: Resource, obj: Object, *, linked: bool = False) -> None:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "") if resource.namespaced else ""
        if resource.namespaced:
            self._ensure_namespace(namespace)
        if not linked:
            self._adopt_uid(resource, obj)
            obj = _replace_uids(obj, self._uids)
            if not obj["metadata"].get("uid"):
                obj = {**obj, "metadata": {**obj["metadata"], "uid": str(uuid.uuid4())}}
        bucket, key = self._backend.store.bucket(resource.bucket), resource.key(namespace, metadata["name"])
        bucket.commit(key, None, partial(stamp_revision, _document_of(resource, obj)))

    def _adopt_uid(self, resource: Resource, obj: Object) -> None:
        """Chooses the uid for a recorded object: that of the existing object of its name, else a new one."""
        metadata = obj["metadata"]
        uid = metadata.get("uid")
        if not isinstance(uid, str) or not uid:
            return
        key = resource.key(metadata.get("namespace", ""), metadata["name"])
        record = self._backend.store.bucket(resource.bucket).get(key)
        if record is not None:
            self._uids[uid] = record.value.object["metadata"].get("uid") or str(uuid.uuid4())
        else:
            self._uids.setdefault(uid, str(uuid.uuid4()))

    def _ensure_namespace(self, name: str) -> None:
        """Creates a namespace that the recording does not contain."""
        namespaces = self._registry.get("", "v1", "namespaces")
        assert namespaces is not None
        if not name:
            raise _SkippedError("the object has no namespace")
        if self._backend.store.bucket(namespaces.bucket).get(name) is None:
            now = print_time(self._backend.clock.now())
            metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name}, "creationTimestamp": now}
            obj = {"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
            self._store(namespaces, obj)

    def _of_kind(self, obj: Object) -> Resource | None:
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = self._registry.of_kind(group, version, obj["kind"])
        return resource if resource is not None and "create" in resource.verbs else None


def _document_of(resource: Resource, obj: Object) -> Object:
    """Converts an object to its stored form. Raises DecodeError."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    obj = {**obj, "metadata": {**metadata, "resourceVersion": "0"}}
    if not resource.custom:
        obj = schema_decode.decode(resource.type, obj)
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
    return resource.to_stored_form(conversion.to_storage(resource, obj))


def _replace_uids(value: Any, uids: dict[str, str]) -> Any:
    """Replaces the uids of the recording in a value; unchanged parts are shared."""
    if isinstance(value, str):
        return uids.get(value, value)
    if isinstance(value, dict):
        made = {name: _replace_uids(part, uids) for name, part in value.items()}
        return made if any(made[name] is not part for name, part in value.items()) else value
    if isinstance(value, list):
        items = [_replace_uids(part, uids) for part in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value
