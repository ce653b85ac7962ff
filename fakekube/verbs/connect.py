"""connect: the subresources that only a running node could answer (log, exec, attach, portforward, proxy).

There are no nodes here, so these answer as the real server does for a pod that no node has, or a node that cannot be
reached.

Specified by: pkg/registry/core/pod/strategy.go (LogLocation, streamLocation, ResourceLocation).
"""

from __future__ import annotations

from fakekube.errors import status
from fakekube.resources.subresources import Subresource
from fakekube.verbs import reading
from fakekube.verbs.request import Response
from fakekube.verbs.scope import Scope

__all__ = ["handle", "is_connection"]

_CONNECTIONS = frozenset({"log", "exec", "attach", "portforward", "proxy"})


def is_connection(subresource: Subresource) -> bool:
    """Is this one of them?"""
    return subresource.name in _CONNECTIONS


def handle(scope: Scope) -> Response:
    """Refuse as a cluster without nodes does. Raises StatusError."""
    record = reading.get(scope, "")
    node = record.value.object.get("spec", {}).get("nodeName", "")
    assert scope.subresource is not None
    if not node:
        raise status.bad_request(f"pod {scope.name} does not have a host assigned")
    raise status.internal(f"no node {node} can be reached")
