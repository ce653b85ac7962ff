"""list and watch: both are a GET of a collection.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/get.go (ListResource), watch.go.
"""

from __future__ import annotations

from fakekube.errors import status
from fakekube.verbs import answers, options, reading, transforming
from fakekube.verbs.request import Response
from fakekube.verbs.scope import Scope
from fakekube.verbs.watch import open_watch
from fakekube.verbs.websocket import Messages, is_web_socket

__all__ = ["handle"]


def handle(scope: Scope) -> Response:
    """Answer a GET of a collection, or a watch. Raises StatusError."""
    representation = answers.negotiate(scope)
    forced = scope.request.info.verb == "watch"  # a deprecated /watch/ path is one whatever the query says
    chosen = options.list_options(scope.request.query, scope.resource, name=scope.name, watch=forced)
    if not chosen.watch:
        return answers.list_response(scope, representation, reading.list_objects(scope, chosen))
    if "watch" not in scope.resource.verbs:
        raise status.method_not_supported(scope.resource.group, scope.resource.plural, "watch")
    if representation.target is not None:
        transforming.event_transform(scope, representation)  # what it is asked for comes first
    stream_form = answers.negotiate_stream(scope)
    stream = open_watch(scope, chosen, answers.EventEncoder(scope, stream_form))
    if is_web_socket(scope.request):
        return Response(101, [], Messages(stream, stream_form))
    return Response(200, [("Content-Type", stream_form.media_type)], stream)
