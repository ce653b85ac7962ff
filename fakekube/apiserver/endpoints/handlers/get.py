"""Handles GET of one object or of a subresource.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/get.go.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import status
from fakekube.apiserver.endpoints import projection, response_writers
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry.generic import reads, versions
from fakekube.apiserver.registry.scope import Scope


def handle(scope: Scope) -> Response:
    """Handles a GET of one object. Raises StatusError."""
    representation = response_writers.negotiate(scope)
    subresource = scope.subresource
    if subresource is not None and subresource.strategy is None and subresource.projection is None:
        raise status.method_not_supported(scope.resource.group, scope.resource.plural, "get")
    resource_version = scope.request.query.get("resourceVersion") or ""
    document = reads.get(scope, resource_version).value
    if not resource_version:  # otherwise the watch cache answers, which holds converted objects
        document = versions.fresh(scope.resource, document)
    if subresource is not None and subresource.projection is not None:
        return projection.show(scope, representation, 200, document)
    return response_writers.object_response(scope, representation, 200, document)
