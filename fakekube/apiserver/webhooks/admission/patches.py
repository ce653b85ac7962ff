"""Applies the patch of a mutating webhook to the object of a request.

The patch is applied to the object in the version that the webhook was sent. The result is decoded as the type of its own
kind and apiVersion, and defaulted. Custom resources are not decoded, since they have no type here.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go (callAttrMutatingHook).
"""

from __future__ import annotations

from typing import Any

from fakekube.apiextensions.instances.objects import readable_metadata
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.codecs.errors import DecodeError as CodecError
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.patch import json_patch
from fakekube.apimachinery.patch.json_patch import Operation, PatchRejected
from fakekube.apimachinery.schema import decode as schema_decode
from fakekube.apimachinery.schema import defaults, printing
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.trees import copied
from fakekube.apis.rest.strategy import Object
from fakekube.apiserver.admission.versioned import VersionedAttributes
from fakekube.apiserver.webhooks.admission.reviews import TypeMetaError, not_registered, type_meta
from fakekube.base.golang.strconv import go_quote


class PatchDecodeError(Exception):
    """A patch is not a list of operations; has Go's error message."""


def decoded(data: bytes) -> list[Operation]:
    """Decodes the operations of a patch. Raises PatchDecodeError."""
    try:
        value, _ = json.loads(data)
        return json_patch.decode(value, strict=False)[0]
    except CodecError as error:
        raise PatchDecodeError(str(error)) from None
    except StatusError as error:
        raise PatchDecodeError(error.message) from None


def patch(versioned: VersionedAttributes, operations: list[Operation], data: bytes) -> bool:
    """Applies operations to the object of a request. Returns whether they changed it; `data` is the encoded patch.

    Raises StatusError 500 if an operation cannot be applied, or the result is not an object of the same kind.
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
        changed = _differ(type_, _without_kind(after), _without_kind(before))
    _default(versioned, after)
    versioned.object = after
    versioned.write_back()
    return changed


def _differ(type_: Type, one: Object, other: Object) -> bool:
    """Returns whether two objects of a type differ as typed objects, where an empty value may equal a missing one."""
    names = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
    parts = ({name: obj[name] for name in names if name in obj} for obj in (one, other))
    first, second = (printing.normalise(type_, part) for part in parts)
    return bool(first != second)


def _unstructured(versioned: VersionedAttributes, patched: Any) -> Object:
    """Returns a copy of a patched custom resource without the fields of its metadata that cannot be decoded."""
    kind, api_version = _type_meta(patched)
    if not kind:
        raise status.internal(f"Object 'Kind' is missing in '{json.dumps(patched).decode()}'")
    if api_version.rpartition("/")[0] != versioned.kind.group:
        wanted = go_quote(versioned.attributes.resource.api_version)
        what = f"{api_version}, Kind={kind} is unstructured and is not suitable for converting to {wanted}"
        raise status.generic(500, "", what)
    metadata = patched.get("metadata")
    found: Object = copied({**patched, "metadata": readable_metadata(metadata) if isinstance(metadata, dict) else {}})
    return found


def _type_meta(patched: Any) -> tuple[str, str]:
    """Raises StatusError 500."""
    try:
        return type_meta(patched)
    except TypeMetaError as error:
        raise status.internal(str(error)) from None


def _typed(versioned: VersionedAttributes, patched: Any) -> tuple[Object, Type]:
    """Decodes a patched object of a built-in kind. Returns the copy and its type. Raises StatusError 500."""
    kind, api_version = _type_meta(patched)
    kind, api_version = kind or versioned.kind.kind, api_version or versioned.kind.api_version
    group, _, version = api_version.rpartition("/")
    type_ = versioned.resource.emulation.types.kind_type(group, version, kind)
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
    """Applies the defaults of the version that the webhook was sent."""
    resource, kind = versioned.resource, versioned.kind
    if not resource.custom or kind != resource.gvk:
        defaults.apply(versioned.resource.emulation.types, kind.group, kind.version, kind.kind, obj)
    if kind == resource.gvk:
        resource.strategy.default(obj)
