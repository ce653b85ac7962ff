"""Handles POST to a collection, or to a subresource that is an action.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/create.go.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fakekube.apimachinery.codecs.formats import Kind
from fakekube.apimachinery.errors import status
from fakekube.apimachinery.schema import printing
from fakekube.apis.rest.strategy import Action
from fakekube.apiserver.admission.chain import CREATE
from fakekube.apiserver.endpoints import admission, bodies, negotiation, response_writers
from fakekube.apiserver.endpoints.negotiation import MediaType
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry import request_options
from fakekube.apiserver.registry.generic import conversion, deletion, field_manager, writes
from fakekube.apiserver.registry.request_options import WriteOptions
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.objects import Object

#: Kinds of actions whose body may have uid and resourceVersion as preconditions.
_KEEPS_SYSTEM_FIELDS = frozenset({"Binding", "TokenRequest"})


def create(scope: Scope) -> Response:
    """Handles a POST. Raises StatusError."""
    subresource = scope.subresource
    if subresource is None and scope.resource.action is None:
        return _create(scope)
    action = subresource.action if subresource is not None else scope.resource.action
    if action is None:
        raise status.method_not_supported(scope.resource.group, scope.resource.plural, "create")
    return _act(scope, action)


def _create(scope: Scope) -> Response:
    representation, chosen, body = _read(scope)
    meta = body.setdefault("metadata", {})
    scope.begin_write(chosen.dry_run, chosen.raw, meta.get("name", ""))
    writes.wipe(meta)
    writes.match_namespace(meta, scope.namespace)
    writes.deduplicate_owners(meta, scope.request.warnings, after_admission=False)
    tracked = field_manager.update(scope, None, body, chosen.field_manager)
    obj = tracked if scope.resource.to_storage is None else conversion.to_storage(scope.resource, tracked)
    check = admission.admit(scope, CREATE, obj, None)
    writes.deduplicate_owners(obj["metadata"], scope.request.warnings, after_admission=True)
    written = writes.create(scope, obj, check)
    return response_writers.object_response(scope, representation, 201, written.document)


def _read(scope: Scope) -> tuple[MediaType, WriteOptions, Object]:
    """Returns the media type of the response, the options, and the object in the body.

    Other than for a PUT, an unknown Content-Type is refused before the options are read.
    """
    offer = negotiation.offer_of(scope)
    representation = negotiation.negotiate(scope, offer)
    form = offer.input(scope.request.content_type)
    data = scope.request.read_body()
    chosen = request_options.create_options(scope.request.query)
    return representation, chosen, bodies.decode(scope, form, data, chosen.field_validation)


def _act(scope: Scope, action: Action) -> Response:
    representation, chosen, body = _read(scope)
    meta = body.get("metadata")
    if meta is not None:
        if scope.kind.kind not in _KEEPS_SYSTEM_FIELDS:
            writes.wipe(meta)
        writes.match_namespace(meta, scope.namespace)
    body = field_manager.update(scope, None, {"metadata": {}, **body}, chosen.field_manager)
    scope.begin_write(chosen.dry_run, chosen.raw, scope.name or body["metadata"].get("name", ""))
    check = admission.admit(scope, CREATE, body, None)
    context = replace(scope.context, check=lambda obj: check(obj, None), remove=partial(_remove, scope))
    answer = action(context, scope.name, body)
    if answer.get("kind") == "Status":
        return response_writers.plain_response(scope, representation, 201, answer)
    kind = Kind(scope.kind.api_version, scope.kind.kind, scope.type)
    return response_writers.plain_response(scope, representation, 201, printing.normalise(scope.type, answer), kind)


def _remove(scope: Scope, name: str, raw: Object) -> None:
    """Deletes an object of the resource for an action, without admission."""
    chosen = request_options.delete_options_from_body(raw)
    deletion.remove(replace(scope, subresource=None, dry_run=chosen.dry_run), name, chosen, lambda _: None)
