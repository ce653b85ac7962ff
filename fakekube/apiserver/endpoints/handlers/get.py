"""Handles GET: of one object, of a subresource, and of a collection, which is a list or a watch.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/get.go (GetResource, ListResource), watch.go.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import status
from fakekube.apiserver.endpoints import negotiation, projection, response_writers
from fakekube.apiserver.endpoints.handlers.watch import Messages, is_web_socket, open_watch
from fakekube.apiserver.endpoints.negotiation import MediaType
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry import request_options
from fakekube.apiserver.registry.generic import conversion, corrupt_objects, reads
from fakekube.apiserver.registry.generic.conversion import UndecodableError
from fakekube.apiserver.registry.scope import Scope


def get(scope: Scope) -> Response:
    """Handles a GET of one object. Raises StatusError."""
    representation = negotiation.negotiate(scope)
    subresource = scope.subresource
    if subresource is not None and subresource.strategy is None and subresource.projection is None:
        raise status.method_not_supported(scope.resource.group, scope.resource.plural, "get")
    resource_version = scope.request.query.get("resourceVersion") or ""
    document = reads.get(scope, resource_version).value
    if not resource_version:  # otherwise the watch cache answers, which holds converted objects
        document = conversion.uncache(scope.resource, document)
    if scope.resource.custom:
        corrupt_objects.require_decodable(scope, document)
    if subresource is not None and subresource.projection is not None:
        return projection.show(scope, representation, 200, document)
    return response_writers.object_response(scope, representation, 200, document)


def list_or_watch(scope: Scope) -> Response:
    """Handles a GET of a collection, or a watch. Raises StatusError."""
    representation = _negotiate_list(scope)
    forced = scope.request.info.verb == "watch"  # a deprecated /watch/ path is a watch, even with watch=false in the query
    chosen = request_options.list_options(scope.request.query, scope.resource, name=scope.name, watch=forced)
    corrupt_objects.refuse_unready_cache(scope, chosen)
    if not chosen.watch:
        try:
            return response_writers.list_response(scope, representation, reads.list_objects(scope, chosen))
        except UndecodableError as error:
            raise corrupt_objects.list_error(scope, error) from None
    if "watch" not in scope.resource.verbs:
        raise status.method_not_supported(scope.resource.group, scope.resource.plural, "watch")
    # The transformation is negotiated before the format of the stream.
    transform = response_writers.event_transform(scope, representation) if representation.target is not None else None
    stream_form = negotiation.negotiate_stream(scope)
    reused = transform if stream_form.target == representation.target else None
    stream = open_watch(scope, chosen, response_writers.EventEncoder(scope, stream_form, reused))
    if is_web_socket(scope.request):
        return Response(101, [], Messages(stream, stream_form))
    return Response(200, [("Content-Type", stream_form.media_type)], stream, chosen.is_watch_list)


#: The first minor that negotiates the representation of a list before it decodes the options.
_NEGOTIATES_FIRST_SINCE = 36


def _negotiate_list(scope: Scope) -> MediaType:
    try:
        return negotiation.negotiate(scope)
    except status.StatusError:
        if scope.resource.emulation.minor < _NEGOTIATES_FIRST_SINCE:
            request_options.decode_list_options(scope.request.query)  # its errors come first
        raise
