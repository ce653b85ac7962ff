"""Handles PATCH: every patch type, on objects and on subresources.

A patch is a function from the current object, in the version of the request, to the patched one; the result is decoded
by its schema and written as an update. After a conflict with another writer the patch is applied again; only a patch
with a resourceVersion can fail with 409. An apply to an absent object creates it.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

from fakekube.apimachinery.codecs.document import Document
from fakekube.apis.rest.strategy import Object
from fakekube.apiserver.admission.plugin import CREATE, UPDATE
from fakekube.apiserver.endpoints import admission, negotiation, projection, response_writers
from fakekube.apiserver.endpoints.handlers.patchers import Patch, patch_document, patch_for
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry import options
from fakekube.apiserver.registry.generic import system_fields, versions, writes
from fakekube.apiserver.registry.scope import Scope


def handle(scope: Scope) -> Response:
    """Handles a PATCH. Raises StatusError."""
    types = negotiation.patch_types(strategic=not scope.resource.custom, cbor=negotiation.offer_of(scope).cbor)
    content_type = negotiation.patch_input(scope.request.headers.get("content-type", ""), types)
    scope.require_name()
    representation = response_writers.negotiate(scope)
    body = scope.request.read_body()
    chosen = options.patch_options(scope.request.query, apply=content_type.startswith("application/apply-patch"))
    scope = scope.for_write(dry_run=chosen.dry_run, options=chosen.raw)
    if scope.request.audit is not None:
        scope.request.audit.request_patch(patch_document(content_type, body))
    patch = patch_for(scope, content_type, body, chosen)
    if scope.subresource is not None and scope.subresource.projection is not None:
        return projection.update(scope, representation, patch)
    return _patch_object(scope, representation, patch)


def _patch_object(scope: Scope, representation: negotiation.MediaType, patch: Patch) -> Response:
    def build(stored: Document | None) -> Object:
        old = None if stored is None else stored.object
        if old is None and not patch.creates:  # kinds that a PUT creates: NotFound is reported before the patch is decoded
            raise scope.not_found()
        live = None if stored is None else versions.shown(scope.resource, versions.fresh(scope.resource, stored)).object
        obj = versions.to_storage(scope.resource, patch(live))
        admission.admit(scope, CREATE if old is None else UPDATE, obj, live if scope.resource.custom else old)
        system_fields.deduplicate_owners(obj["metadata"], scope.request.warnings, after_admission=True)
        return obj

    written = writes.update(
        scope,
        build,
        admission.checker(scope, UPDATE),
        create_absent=patch.creates,
        check_created=admission.creation_checker(scope),
    )
    return response_writers.object_response(scope, representation, 201 if written.created else 200, written.document)
