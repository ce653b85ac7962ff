"""Converts the objects of a write to the version that a webhook or policy expects.

The attributes of a write contain built-in objects in storage form, and custom resources in the version of the request
or of the storage. `VersionedAttributes` provides both objects with kind and apiVersion in one version, in the form of
responses. A mutating plugin sets `object` to a new tree and calls `write_back` at the end.

Specified by: k8s.io/apiserver/pkg/admission/conversion.go (VersionedAttributes, ConvertToGVK).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.schema import printing
from fakekube.apis.rest.resource import GVK, Resource

if TYPE_CHECKING:
    from fakekube.apis.rest.strategy import Object
    from fakekube.apiserver.admission.plugin import Attributes


_UNSET: Any = object()


class VersionedAttributes:
    """The attributes of a write, with its objects in one version.

    Args:
        attributes: The attributes of the write.
        resource: The version of the resource, or an equivalent resource; None: that of the request.
    """

    __slots__ = ("_object", "_old", "attributes", "dirty", "kind", "resource", "views")

    def __init__(self, attributes: Attributes, resource: Resource | None = None) -> None:
        self.attributes = attributes
        self.resource = resource or attributes.resource
        self.kind: GVK = _kind(self.resource, attributes.subresource)
        self.dirty = False
        self._object: Object | None = _UNSET
        self._old: Object | None = _UNSET
        self.views: dict[str, Any] = {}
        """A cache for readers of the objects, by their own names; cleared when the object changes."""

    @property
    def object(self) -> Object | None:
        """The new object. Callers must not mutate it, but set another one."""
        if self._object is _UNSET:
            self._object = self._shown(self.attributes.object, stored=False)
        return self._object

    @object.setter
    def object(self, new: Object) -> None:
        self._object = new
        self.dirty = True
        self.views.clear()

    @property
    def old(self) -> Object | None:
        """The stored object. Callers must not mutate it."""
        if self._old is _UNSET:
            self._old = self._shown(self.attributes.old, stored=True)
        return self._old

    def write_back(self) -> None:
        """Converts a changed object back to the form of the attributes and sets it there."""
        target = self.attributes.object
        if not self.dirty or target is None or self._object is None:
            return
        found: Mapping[str, Any] = self._object
        if self.resource.custom and self.kind == self.resource.gvk:
            convert = self.attributes.resource.convert
            wanted = self.attributes.resource.api_version
            if found["apiVersion"] != wanted and convert is not None:
                found = convert(dict(found), wanted)
        else:
            found = {name: item for name, item in found.items() if name not in ("kind", "apiVersion")}
            if self.kind == self.resource.gvk and self.resource.to_storage is not None:
                found = self.resource.to_storage(found)
        target.clear()
        target.update(found)
        self.dirty = False

    def _shown(self, obj: Object | None, *, stored: bool) -> Object | None:
        if obj is None:
            return None
        resource, kind = self.resource, self.kind
        if kind != resource.gvk:  # the body of a subresource, of which there is one version
            type_ = resource.subresources[self.attributes.subresource].type
            return _with_kind(kind, printing.normalise(type_, obj, stored=stored))
        if resource.custom:
            if obj.get("apiVersion") == resource.api_version or resource.convert is None:
                return obj
            return resource.convert(obj, resource.api_version)
        if resource.from_storage is not None:
            return _with_kind(kind, printing.normalise(resource.type, resource.from_storage(obj), stored=stored))
        return _with_kind(kind, obj if stored else printing.normalise(resource.type, obj, stored=False))


def _kind(resource: Resource, subresource: str) -> GVK:
    below = resource.subresources.get(subresource)
    return below.gvk if below is not None else resource.gvk


def _with_kind(kind: GVK, obj: Object) -> Object:
    return {"kind": kind.kind, "apiVersion": kind.api_version, **obj}
