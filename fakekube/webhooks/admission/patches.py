"""Applying the patch of a mutating webhook to the object of a request.

The object is patched as the webhook has seen it, decoded by the type of the kind that it then says it has, and given its
defaults. Custom resources have no type here: they are taken as they are.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go (callAttrMutatingHook).
"""

from __future__ import annotations

import contextlib
from typing import Any

from fakekube.admission.versioned import VersionedAttributes
from fakekube.codecs import json
from fakekube.codecs.errors import DecodeError as CodecError
from fakekube.crd.instances.objects import MetadataError, metadata_of
from fakekube.errors import StatusError, status
from fakekube.golang.quoting import go_quote
from fakekube.patch import json_patch
from fakekube.patch.json_patch import Operation, PatchRejected
from fakekube.registry.strategy import Object
from fakekube.schema import decode as schema_decode
from fakekube.schema import defaults, printing
from fakekube.schema.builtin import builtins
from fakekube.schema.model import Type
from fakekube.schema.trees import copied
from fakekube.webhooks.type_meta import TypeMetaError, not_registered, type_meta

__all__ = ["PatchDecodeError", "decoded", "patch"]


class PatchDecodeError(Exception):
    """A patch is no list of operations; the text says why in Go's words."""


def decoded(data: bytes) -> list[Operation]:
    """The operations of a patch. Raises PatchDecodeError."""
    try:
        value, _ = json.loads(data)
        return json_patch.decode(value, strict=False)[0]
    except CodecError as error:
        raise PatchDecodeError(str(error)) from None
    except StatusError as error:
        raise PatchDecodeError(error.message) from None


def patch(versioned: VersionedAttributes, operations: list[Operation], data: bytes) -> bool:
    """Apply operations to the object of a request; `data` is the patch as it was sent. Returns whether that changes it.

    Raises StatusError 500 if they do not fit, or what they make of the object is none of its kind.
    """
    before = versioned.object
    assert before is not None
    try:
        patched = json_patch.perform(before, operations)
    except PatchRejected as error:
        raise status.internal(str(error)) from None
    if versioned.resource.custom and versioned.kind == versioned.resource.gvk:
        after = _unstructured(versioned, patched)
        changed = after != before
    else:
        after, type_ = _typed(versioned, patched)
        changed = printing.normalise(type_, _without_kind(after)) != printing.normalise(type_, _without_kind(before))
    _default(versioned, after)
    versioned.object = after
    versioned.write_back()
    return changed


def _unstructured(versioned: VersionedAttributes, patched: Any) -> Object:
    """A custom resource, a tree of its own; of its metadata nothing is kept that cannot be read."""
    kind, api_version = _type_meta(patched)
    if not kind:
        raise status.internal(f"Object 'Kind' is missing in '{json.dumps(patched).decode()}'")
    if api_version.rpartition("/")[0] != versioned.kind.group:
        wanted = go_quote(versioned.attributes.resource.api_version)
        what = f"{api_version}, Kind={kind} is unstructured and is not suitable for converting to {wanted}"
        raise status.generic(500, "", what)
    metadata = patched.get("metadata")
    found: Object = copied({**patched, "metadata": _readable(metadata) if isinstance(metadata, dict) else {}})
    return found


def _type_meta(patched: Any) -> tuple[str, str]:
    """Raises StatusError 500."""
    try:
        return type_meta(patched)
    except TypeMetaError as error:
        raise status.internal(str(error)) from None


def _readable(metadata: Object) -> Object:
    kept: Object = {}
    for name, value in metadata.items():
        with contextlib.suppress(MetadataError):
            kept |= metadata_of({name: value})[0]
    return kept


def _typed(versioned: VersionedAttributes, patched: Any) -> tuple[Object, Type]:
    """The patched object, a tree of its own, and its type."""
    kind, api_version = _type_meta(patched)
    kind, api_version = kind or versioned.kind.kind, api_version or versioned.kind.api_version
    group, _, version = api_version.rpartition("/")
    type_ = builtins().kind_type(group, version, kind)
    if type_ is None:
        raise status.internal(not_registered(kind, api_version))
    try:
        found: Object = schema_decode.decode(type_, patched)
    except schema_decode.DecodeError as error:
        raise status.internal(str(error)) from None
    if (kind, api_version) != (versioned.kind.kind, versioned.kind.api_version):
        wanted = f"{versioned.kind.group or 'core'}.{versioned.kind.kind}"
        raise status.generic(500, "", f"converting ({version}.{kind}) to ({wanted}): unknown conversion")
    return {"kind": kind, "apiVersion": api_version, **_without_kind(found)}, type_


def _without_kind(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}


def _default(versioned: VersionedAttributes, obj: Object) -> None:
    """Defaults, in the version that the webhook has seen."""
    resource, kind = versioned.resource, versioned.kind
    if not resource.custom or kind != resource.gvk:
        defaults.apply(kind.group, kind.version, kind.kind, obj)
    if kind == resource.gvk:
        resource.strategy.default(obj)
