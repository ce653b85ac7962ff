"""Applies the mutations of a policy to an object: merges apply configurations, and applies JSON patches.

The result is decoded as the type of the object and defaulted. Nothing is changed in place.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/{dispatcher.go,patch/smd.go,patch/json_patch.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.cel.mutation import JSONPatch, NotJSONError, ObjectValue, json_value, native, type_mismatches
from fakekube.apimachinery.cel.values import ABSENT
from fakekube.apimachinery.errors import status
from fakekube.apimachinery.patch import json_patch
from fakekube.apimachinery.patch.apply.configurations import ConfigurationError, merged
from fakekube.apimachinery.schema import defaults, printing
from fakekube.apimachinery.schema.builtin import builtins
from fakekube.apimachinery.schema.decode import DecodeError, Strict, decode
from fakekube.apimachinery.schema.trees import copied
from fakekube.apimachinery.schema.unstructured import from_unstructured

if TYPE_CHECKING:
    from fakekube.apimachinery.schema.model import Type
    from fakekube.apis.rest.resource import GVK
    from fakekube.apis.rest.strategy import Object
    from fakekube.apiserver.admission.versioned import VersionedAttributes


class MutationError(Exception):
    """A mutation failed; the failure policy decides about the request."""


def _applied(versioned: VersionedAttributes, value: Any) -> Object:
    """The object with an apply configuration merged into it. Raises MutationError."""
    problems = list(type_mismatches(value))
    if problems:
        raise MutationError("type mismatch: " + "\n".join(problems))
    try:
        configuration = native(value)
    except NotJSONError as error:
        raise MutationError(str(error)) from None
    live = versioned.object
    assert live is not None
    kind = versioned.kind
    type_, custom = _type(versioned), _is_custom(versioned)
    if not _is_described(versioned):
        named = f"{kind.group}/{kind.version}, Kind={kind.kind}"
        problem = f"failed to convert patch object to typed object: no corresponding type for {named}"
        raise MutationError(f"error applying patch: {problem}")
    own = {"apiVersion": kind.api_version, "kind": kind.kind}
    try:
        if custom:
            found = merged(type_, live, {**configuration, **own}, custom=True)
            return _finished(versioned, copied(found))
        found = merged(type_, _without_kind(live), _without_kind(configuration), custom=False)
    except ConfigurationError as error:
        raise MutationError(f"error applying patch: {error}") from None
    shared = {name: item for name, item in found.items() if type(item) is dict and item is live.get(name)}
    try:
        read = from_unstructured(type_, {name: item for name, item in found.items() if name not in shared})
        return _finished(versioned, {**read, **shared}, live)
    except DecodeError as error:
        named = f"{kind.group}/{kind.version}, Kind={kind.kind}"
        raise MutationError(f"unable to convert unstructured object to {named}: {error}") from None


def _patched(versioned: VersionedAttributes, value: Any) -> Object:
    """The object with the operations of a JSON patch performed on it. Raises MutationError, StatusError 500."""
    live = versioned.object
    assert live is not None
    try:
        patched = json_patch.perform(live, [_operation(each) for each in value])
    except json_patch.TestFailed:
        return live
    except json_patch.PatchRejected as error:
        raise MutationError(f"JSON Patch: {error}") from None
    return _finished(versioned, _decoded(versioned, patched))


PATCHERS: Final[Mapping[str, tuple[str, Callable[[VersionedAttributes, Any], Object]]]] = {
    "ApplyConfiguration": ("applyConfiguration", _applied),
    "JSONPatch": ("jsonPatch", _patched),
}
"""patchType → the field with the expression, and what is done with its value."""


# ------------------------------------------------------------ JSON patches


def _operation(patch: JSONPatch) -> json_patch.Operation:
    operation: dict[str, Any] = {"op": patch.op, "path": patch.path}
    if patch.source:
        operation["from"] = patch.source
    if patch.value is not ABSENT:
        problems = list(type_mismatches(patch.value)) if isinstance(patch.value, ObjectValue) else []
        if problems:
            raise MutationError("type mismatch: " + "\n".join(problems))
        try:
            operation["value"] = json_value(patch.value)
        except NotJSONError as error:
            text = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
            raise MutationError(f"{text}: {error}") from None
    return operation


def _decoded(versioned: VersionedAttributes, patched: Any) -> Object:
    """Decodes a patched object strictly. Raises StatusError 500."""
    if not isinstance(patched, dict):
        raise status.internal(
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of "
            'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
    if _is_custom(versioned):
        own: Object = copied(patched)
        return own
    type_, claimed = _type(versioned), _claimed_type(versioned, patched)
    strict = Strict()
    try:
        obj: Object = decode(claimed, patched, strict)
    except DecodeError as error:
        raise status.internal(str(error)) from None
    if strict.messages:
        raise status.internal(f"strict decoding error: {', '.join(strict.messages)}")
    if claimed is not type_:
        wrong, right = (each.name.rpartition("/")[2] for each in (claimed, type_))
        raise status.internal(f"failed to convert object: converting ({wrong}) to ({right}): unknown conversion")
    return _without_kind(obj)


def _claimed_type(versioned: VersionedAttributes, patched: Object) -> Type:
    """Returns the type of the kind and apiVersion of a patched object. Raises StatusError 500."""
    own = versioned.kind
    api_version, kind = str(patched.get("apiVersion") or own.api_version), str(patched.get("kind") or own.kind)
    group, _, version = api_version.rpartition("/")
    if (group, version, kind) == (own.group, own.version, own.kind):
        return _type(versioned)
    found = builtins().kind_type(group, version, kind)
    if found is None:
        raise status.internal(f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"')
    return found


# ------------------------------------------------------------ types


def _type(versioned: VersionedAttributes) -> Type:
    resource = versioned.resource
    if versioned.kind == resource.gvk:
        return resource.type
    return resource.subresources[versioned.attributes.subresource].type


def _is_custom(versioned: VersionedAttributes) -> bool:
    return versioned.resource.custom and versioned.kind == versioned.resource.gvk


def _is_described(versioned: VersionedAttributes) -> bool:
    """Reports whether the OpenAPI document of the group and version of a kind has the kind."""
    kind: GVK = versioned.kind
    return (kind.group, kind.version) == (versioned.resource.group, versioned.resource.version)


def _without_kind(obj: Mapping[str, Any]) -> Object:
    return {name: item for name, item in obj.items() if name not in ("kind", "apiVersion")}


def _finished(versioned: VersionedAttributes, obj: Object, live: Object | None = None) -> Object:
    """Returns the defaulted object in the form of `VersionedAttributes.object`. Raises MutationError.

    The result is a new tree, which may share unchanged fields with `live`, the object before.
    """
    resource, kind = versioned.resource, versioned.kind
    asked = versioned.attributes.resource
    if kind == resource.gvk and resource is not asked and not resource.custom:
        wrong, right = (each.type.name.rpartition("/")[2] for each in (resource, asked))
        raise MutationError(f"converting ({wrong}) to ({right}): unknown conversion")
    defaults.apply(kind.group, kind.version, kind.kind, obj)
    if kind == resource.gvk:
        resource.strategy.default(obj)
    if resource.custom and kind == resource.gvk:
        return obj
    shared = {name: item for name, item in obj.items() if item is not None and item is (live or {}).get(name)}
    printed: Object = printing.normalise(_type(versioned), obj, stored=False, parts=shared)
    return {"kind": kind.kind, "apiVersion": kind.api_version, **printed}
