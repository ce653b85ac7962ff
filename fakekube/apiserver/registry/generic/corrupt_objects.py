"""Errors about stored objects that cannot be decoded: a definition no longer has their version, or a webhook fails.

A read of one object tells its error. The watch cache of a version begins with a list of all its objects; while one of them cannot
be decoded it is not ready, so that lists and watches of all namespaces are told to try again. Lists with a limit read the
storage, and fail only if they come across such an object. Since 1.37 (gate AllowUnsafeMalformedObjectDeletion) the errors are
those of a corrupt object, which an unsafe deletion removes.

Specified by: k8s.io/apiserver/pkg/storage/etcd3/corrupt_obj_deleter.go, pkg/registry/generic/registry/corrupt_obj_deleter.go,
pkg/storage/cacher/cacher.go (errors before it is ready).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.errors import field as fields
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.registry.generic import conversion
from fakekube.apiserver.registry.generic.conversion import UndecodableError
from fakekube.apiserver.registry.request_options import UNSAFE_DELETION, UNSAFE_DRY_RUN, ListOptions
from fakekube.apiserver.registry.scope import Scope
from fakekube.store import Bucket, Conflict, Record

_MOST_TOLD: Final = 100
"""The corrupt objects after which a list ends (maxCorruptObjErrsToAggregate)."""
_ALL_DECODABLE: Final = "all objects can be decoded"
"""The key, with a resource, under which a page keeps that it has no corrupt object."""
_TOO_MANY: Final = {"reason": "FieldValueTooMany", "message": "too many errors, the list is truncated"}


def require_decodable(scope: Scope, document: Document) -> None:
    """Raises StatusError 500, that of a read of one object, unless a stored document can be decoded."""
    try:
        conversion.to_version(scope.resource, document)
    except UndecodableError as error:
        if not scope.resource.emulation.enabled(conversion.CORRUPT_OBJECTS):
            raise
        meta = document.tree["metadata"]
        key = scope.resource.key(meta.get("namespace", ""), meta["name"])
        raise status.internal(status.corrupt_object(f"/{scope.resource.storage_prefix}/{key}", error.message)) from None


def refuse_unready_cache(scope: Scope, options: ListOptions) -> None:
    """Raises StatusError 429 for a list or watch that needs the watch cache while the cache cannot decode all objects."""
    if options.limit > 0 or options.token:
        return
    problem = find_unready_cache(scope.resource, scope.bucket)
    if problem:
        raise status.too_many_requests(problem, 1)


def find_unready_cache(resource: Resource, bucket: Bucket[Document]) -> str:
    """Returns why a list of all objects from the watch cache fails; empty if it does not."""
    found = _undecodable(resource, bucket, "") if resource.known_versions else ()
    if not found:
        return ""
    is_told_of_all = resource.emulation.enabled(conversion.CORRUPT_OBJECTS)
    what = "<unspecified>" if is_told_of_all else f"{resource.api_version}, Kind={resource.kind}"
    return f"storage is (re)initializing: failed to list {what}: {_make_list_error(resource, found).message}"


def refuse_list(scope: Scope) -> None:
    """Raises StatusError 500 for a list of the storage that would come across an object which cannot be decoded."""
    resource = scope.resource
    found = _undecodable(resource, scope.bucket, scope.prefix) if resource.known_versions else ()
    if found:
        raise _make_list_error(resource, found)


def delete_unsafely(scope: Scope) -> None:
    """Deletes an object that cannot be decoded, without regard to preconditions, finalizers and admission.

    Raises StatusError: 404, and 409 (422 before 1.37) for an object that can be decoded.
    """
    while (record := scope.bucket.get(scope.key)) is not None:
        try:
            conversion.to_version(scope.resource, conversion.uncache(scope.resource, record.value))
        except UndecodableError:
            with suppress(Conflict):
                if not scope.dry_run:
                    scope.bucket.commit(scope.key, record.revision, None)
                return
        else:
            raise _make_refusal(scope)
    raise scope.not_found()


def _make_refusal(scope: Scope) -> StatusError:
    """Returns the error of an unsafe deletion of an object that can be decoded."""
    resource = scope.resource
    if resource.emulation.minor < UNSAFE_DRY_RUN:
        text = "is exclusively used to delete corrupt object(s), try again by removing this option"
        return status.invalid(resource.group, resource.plural, scope.name, [fields.invalid(UNSAFE_DELETION, True, text)])
    key = f"/registry/{resource.storage_prefix}/{scope.key}"
    problem = status.invalid_object(key, "unsafe deletion is not allowed because the object is decodable from storage")
    return scope.conflict(problem)


def list_error(scope: Scope, error: UndecodableError) -> StatusError:
    """Returns the error of a list that came across an object which cannot be decoded."""
    found = _undecodable(scope.resource, scope.bucket, scope.prefix)
    return _make_list_error(scope.resource, found) if found else status.generic(500, "", error.problem)


def _undecodable(resource: Resource, bucket: Bucket[Document], prefix: str) -> list[tuple[Record[Document], UndecodableError]]:
    """Returns the first objects whose version is no longer in the definition, with their errors."""
    page = bucket.page(prefix)
    found: list[tuple[Record[Document], UndecodableError]] = []
    if (_ALL_DECODABLE, resource) in page.encodings:
        return found
    for record in page.records:
        if _api_version(record.value) not in resource.known_versions:
            try:
                conversion.to_version(resource, record.value)
            except UndecodableError as error:
                found.append((record, error))
                if len(found) == _MOST_TOLD:
                    break
    if not found:  # as long as nothing is written
        page.encodings[_ALL_DECODABLE, resource] = True
    return found


def _api_version(document: Document) -> str:
    (found,) = document.encoding("apiVersion", lambda obj: (str(obj.get("apiVersion", "")),))
    return found


def _make_list_error(resource: Resource, found: Sequence[tuple[Record[Document], UndecodableError]]) -> StatusError:
    """Returns the error of a list of the storage (aggregatedStorageError.NewAPIStatusError)."""
    if not resource.emulation.enabled(conversion.CORRUPT_OBJECTS):
        return found[0][1]
    causes = []
    for record, error in found:
        key = f"/registry/{resource.storage_prefix}/{record.key}"
        text = status.corrupt_object(key, error.message)
        causes.append({"reason": "UnexpectedServerResponse", "message": text, "field": key})
    message = f"failed to read one or more {resource.group_resource} from the storage: {causes[0]['message']}"
    if len(causes) > 1:
        message += f" (and {len(causes) - 1} more)"
    if len(causes) == _MOST_TOLD:
        causes.append(_TOO_MANY)
    details = {"name": "list", "group": resource.group, "kind": resource.plural, "causes": causes}
    return StatusError(500, "StorageReadError", message, details)
