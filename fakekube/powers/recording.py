"""The format of recordings: a YAML stream of objects, then of timed changes.

    apiVersion: action.kwok.x-k8s.io/v1alpha1
    kind: ResourcePatch
    resource: {version: v1, resource: configmaps}
    target: {name: a, namespace: default}
    durationNanosecond: 1500000000        # since the recording began
    method: patch                         # or create, delete
    template: {data: {x: "1"}}            # the object, or a patch

The format is that of `kwokctl snapshot record` and `replay`, which read and write the same.

Invariant: `read` returns the objects and changes that a `Writer` wrote.

Specified by: sigs.k8s.io/kwok pkg/apis/action/v1alpha1/resource_patch_types.go, pkg/kwokctl/snapshot/save.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from fakekube.apimachinery.codecs import DecodeError, yaml
from fakekube.apimachinery.patch import strategic
from fakekube.powers.state import check_depth

if TYPE_CHECKING:
    from fakekube.apimachinery.schema.model import Type
    from fakekube.controllers.client.client import RESTMapping


API_VERSION, KIND = "action.kwok.x-k8s.io/v1alpha1", "ResourcePatch"
METHODS = ("create", "patch", "delete")
#: Resources that clusters write all the time; recordings omit them by default.
NOT_RECORDED = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
NANOSECONDS = 1_000_000_000

_SEPARATOR = re.compile(rb"^---[ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)


Object = dict[str, Any]


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
