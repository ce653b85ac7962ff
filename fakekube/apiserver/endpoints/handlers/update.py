"""Handles PUT of an object or of a subresource.

Invariant: the tree of an attempt is its own: it is decoded again after a conflict, since the write path changes it.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/update.go.
"""

from __future__ import annotations

from fakekube.apimachinery.schema.trees import deep_copy
from fakekube.apiserver.endpoints import admission, bodies, negotiation, projection, response_writers
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry import request_options
from fakekube.apiserver.registry.generic import conversion, field_manager, writes
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.objects import Object


def update(scope: Scope) -> Response:
    """Handles a PUT. Raises StatusError."""
    scope.require_name()
    offer = negotiation.offer_of(scope)
    representation = negotiation.negotiate(scope, offer)
    data = scope.request.read_body()
    chosen = request_options.update_options(scope.request.query)
    scope.begin_write(chosen.dry_run, chosen.raw)
    form = offer.input(scope.request.content_type)
    body = bodies.decode(scope, form, data, chosen.field_validation, _live(scope))
    meta = body.setdefault("metadata", {})
    writes.match_namespace(meta, scope.namespace)
    writes.match_name(meta, scope.name)
    writes.deduplicate_owners(meta, scope.request.warnings, after_admission=False)
    uid = meta.get("uid", "")
    if scope.subresource is not None and scope.subresource.projection is not None:
        return projection.update(
            scope,
            representation,
            lambda shown: field_manager.update(scope, shown, deep_copy(body), chosen.field_manager),
            uid=uid,
        )
    for record in writes.attempts(scope, uid=uid):
        live = conversion.live_object(scope.resource, record)
        obj = conversion.to_storage(scope.resource, field_manager.update(scope, live, body, chosen.field_manager))
        check = admission.admit_update(scope, record, obj, live)
        written = writes.commit(scope, record, obj, check)
        if written is not None:
            return response_writers.object_response(scope, representation, 201 if written.created else 200, written.document)
        # The write path has changed the tree: the next attempt starts from the object that the client sent.
        body = bodies.decode(scope, form, data, "Ignore")
        writes.match_namespace(body["metadata"], scope.namespace)
    raise AssertionError


def _live(scope: Scope) -> Object | None:
    """Returns the object that a PUT is likely to replace, if it is of the type of the body."""
    resource = scope.resource
    if resource.custom or resource.from_storage is not None or scope.type is not resource.type:
        return None
    record = scope.bucket.get(resource.key(scope.namespace, scope.name))
    return None if record is None else record.value.object
