"""Reads and writes an object through a projection (scale): another kind, computed from the object and written back.

Specified by: pkg/registry/apps/deployment/storage/storage.go (ScaleREST) and the ScaleREST of other kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.codecs.formats import Kind
from fakekube.apimachinery.errors import status
from fakekube.apimachinery.patch.apply.updater import ScaleMapping
from fakekube.apimachinery.schema import printing
from fakekube.apimachinery.schema.trees import deep_copy
from fakekube.apis.rest.strategy import Projection, Subresource
from fakekube.apiserver.admission.chain import Operation
from fakekube.apiserver.endpoints import admission, response_writers
from fakekube.apiserver.endpoints.negotiation import MediaType
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry.generic import conversion, field_manager, writes
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.caches import forgettable
from fakekube.base.objects import Object


@forgettable
@lru_cache(maxsize=256)
def kind_of(subresource: Subresource) -> Kind:
    return Kind(subresource.gvk.api_version, subresource.gvk.kind, subresource.type)


def show(scope: Scope, chosen: MediaType, code: int, document: Document) -> Response:
    """Returns the projection of a stored object."""
    seen = project(scope, _convert_for_scale(scope, document).object)
    return response_writers.plain_response(scope, chosen, code, seen, kind_of(_subresource(scope)))


def _convert_for_scale(scope: Scope, document: Document) -> Document:
    """Converts a custom resource to the requested version, to which the paths of its scale belong."""
    return conversion.to_version(scope.resource, document) if scope.resource.custom else document


def project(scope: Scope, obj: Object) -> Object:
    """Returns the projection in its printed form. Raises StatusError if the object cannot be projected."""
    return _print_projection(scope, _projection(scope).read, obj)


def _project_for_update(scope: Scope, obj: Object) -> Object:
    projection = _projection(scope)
    return _print_projection(scope, projection.read_for_update or projection.read, obj)


def _project_as_written(scope: Scope, obj: Object) -> Object:
    projection = _projection(scope)
    return _print_projection(scope, projection.read_written or projection.read, obj)


def _print_projection(scope: Scope, read: Callable[[Object], Object], obj: Object) -> Object:
    printed: Object = printing.normalise(_subresource(scope).type, read(obj))
    return printed


def update(scope: Scope, chosen: MediaType, change: Callable[[Object], Object], *, uid: str = "") -> Response:
    """Writes a changed projection back: `change` gets the current projection and returns the new one with managedFields;
    `uid` is the uid precondition of the client."""
    projection, mapping = _projection(scope), field_manager.scale_mapping(scope)
    for record in writes.attempts(scope.main, uid=uid):
        assert record is not None
        old = conversion.to_version(scope.resource, record.value).object
        before = _project_for_update(scope, old)
        entries = mapping.to_scale(old["metadata"].get("managedFields"))
        if entries:
            before = {**before, "metadata": {**before["metadata"], "managedFields": entries}}
        changed = change(before)
        check = admission.admit(scope, Operation.UPDATE, changed, before)
        errors = projection.validate(changed)
        if errors:
            kind = scope.kind
            raise status.invalid(kind.group, kind.kind, changed["metadata"].get("name", ""), errors)
        obj = _write_projection(scope, old, changed, mapping)
        written = writes.commit(scope.main, record, obj, partial(_check_projected, scope, check))
        if written is not None:
            left = _project_as_written(scope, _convert_for_scale(scope, written.document).object)
            return response_writers.plain_response(scope, chosen, 200, left, kind_of(_subresource(scope)))
    raise AssertionError


def _check_projected(scope: Scope, check: writes.Check, obj: Object, old: Object | None) -> None:
    """Validates the projection of a write. Raises StatusError."""
    assert old is not None
    check(_project_as_written(scope, obj), _project_as_written(scope, old))


def _write_projection(scope: Scope, old: Object, changed: Object, mapping: ScaleMapping) -> Object:
    """Returns the object with a changed projection, its resourceVersion and its managedFields."""
    obj: Object = deep_copy(_projection(scope).write(old, changed))
    meta, scale = obj["metadata"], changed["metadata"]
    if scale.get("resourceVersion") or not scope.resource.custom:
        meta["resourceVersion"] = scale.get("resourceVersion", "")
    entries = mapping.to_parent(meta.pop("managedFields", None), scale.get("managedFields"))
    if entries:
        meta["managedFields"] = entries
    return obj


def _subresource(scope: Scope) -> Subresource:
    assert scope.subresource is not None
    return scope.subresource


def _projection(scope: Scope) -> Projection:
    projection = _subresource(scope).projection
    assert projection is not None
    return projection
