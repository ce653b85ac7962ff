"""Handles delete and deletecollection.

Options are read from the body, or from the query if there is no body. A collection is deleted object by object, in
pages. As in the real server, that is not atomic.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/delete.go, registry/generic/registry/store.go (DeleteCollection).
"""

from __future__ import annotations

from typing import Any

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.errors import field as fields
from fakekube.apiserver.endpoints import admission, bodies, negotiation, response_writers
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry import request_options
from fakekube.apiserver.registry.generic import corrupt_objects, reads
from fakekube.apiserver.registry.generic.deletion import Removed, remove
from fakekube.apiserver.registry.generic.reads import Listing
from fakekube.apiserver.registry.request_options import DeleteOptions, ListOptions
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.golang.strconv import go_quote
from fakekube.store import Record

#: The page size (objects) of deletecollection.
PAGE = 10_000


def delete(scope: Scope) -> Response:
    """Handles a DELETE of one object. Raises StatusError."""
    representation = negotiation.negotiate(scope)
    chosen = _options(scope)
    scope.begin_write(chosen.dry_run, chosen.raw)
    if chosen.raw.get(request_options.UNSAFE_DELETION):
        _authorize_unsafe_delete(scope)
        return response_writers.plain_response(scope, representation, 200, _delete_unsafely(scope))
    scope.context.warnings.extend(scope.strategy.delete_warnings(chosen.raw))
    refusal = scope.strategy.refused_deletion(scope.context, scope.name)
    if refusal is not None:
        raise refusal
    removed = remove(scope, scope.name, chosen, admission.deletion_checker(scope, scope.name))
    code = 202 if not removed.deleted and chosen.orphan_dependents is False else 200
    if removed.returns_object:
        return response_writers.object_response(scope, representation, code, removed.document)
    return response_writers.plain_response(scope, representation, code, _success(scope, removed))


def handle_collection(scope: Scope) -> Response:
    """Handles a DELETE of a collection. Raises StatusError."""
    representation = negotiation.negotiate(scope)
    selection = request_options.list_options(scope.request.query, scope.resource)
    chosen = _options(scope)
    if chosen.raw.get(request_options.UNSAFE_DELETION):
        text = "is not allowed with DELETECOLLECTION, try again after removing the option"
        error = fields.invalid(request_options.UNSAFE_DELETION, True, text)
        raise status.invalid(request_options.META_GROUP, "DeleteOptions", "", [error])
    scope.begin_write(chosen.dry_run, chosen.raw)
    scope.context.warnings.extend(scope.strategy.delete_warnings(chosen.raw))
    listing = _delete_all(scope, selection, chosen)
    return response_writers.list_response(scope, representation, listing)


def _delete_all(scope: Scope, selection: ListOptions, chosen: DeleteOptions) -> Listing:
    """Deletes the collection page by page and returns all deleted objects as one list."""
    limited = selection.limit > 0
    if not limited:
        selection.limit = PAGE
    found: list[Record[Document]] = []
    first: Listing | None = None
    corrupt_objects.refuse_list(scope)
    while True:
        page = reads.list_objects(scope, selection)
        first = first or page
        found += page.records
        for record in page.records:
            _delete_found(scope, record.key, chosen)
        if limited:
            return page
        if not page.token:
            return Listing(found, first.revision, first.token, first.remaining, first.shards)
        selection.token, selection.resource_version, selection.match = page.token, "", ""


def _delete_found(scope: Scope, key: str, chosen: DeleteOptions) -> None:
    namespace, _, name = key.rpartition("/")
    one = scope.for_namespace(namespace)
    try:
        remove(one, name, chosen, admission.deletion_checker(one, ""))
    except StatusError as error:
        if error.code != 404:  # another client has deleted it in the meantime
            raise


def _options(scope: Scope) -> DeleteOptions:
    data = scope.request.read_body()
    raw = bodies.decode_delete_options(scope, data) if data else request_options.delete_options_in_query(scope.request.query)
    if not scope.backend.settings.enabled("AllowUnsafeMalformedObjectDeletion"):
        raw.pop(request_options.UNSAFE_DELETION, None)
    return request_options.delete_options_from_body(raw)


def _authorize_unsafe_delete(scope: Scope) -> None:
    """Raises StatusError 403 if the user has no permission to delete objects that cannot be read (authorizeUnsafeDelete)."""
    resource = scope.resource
    verb = "unsafe-delete-ignore-read-errors"
    attributes = {
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
        "verb": verb,
        "namespace": scope.namespace,
        "name": scope.name,
    }
    allowed, reason = scope.context.authorize(attributes)
    if not allowed:
        text = f"not permitted to do {go_quote(verb)}, reason: {reason}"
        raise status.forbidden(resource.group, resource.plural, scope.name, text)


def _delete_unsafely(scope: Scope) -> dict[str, Any]:
    """Deletes an object that cannot be decoded, without regard to preconditions, finalizers and admission. Raises StatusError."""
    corrupt_objects.delete_unsafely(scope)
    details = {"name": scope.name, "kind": scope.resource.kind}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details, "code": 200}


def _success(scope: Scope, removed: Removed) -> dict[str, Any]:
    meta, resource = removed.document.object["metadata"], scope.resource
    details = {"name": meta["name"], "group": resource.group, "kind": resource.plural, "uid": meta["uid"]}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {name: value for name, value in details.items() if value},
    }
