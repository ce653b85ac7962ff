"""Who manages which fields: the verbs' way to `patch.apply`.

Specified by: "Server-Side Apply" in the Kubernetes documentation; k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager
and create.go (prefixFromUserAgent).
"""

from __future__ import annotations

from fakekube.resources.strategy import Object
from fakekube.verbs.options import FIELD_MANAGER_MAX_LENGTH
from fakekube.verbs.scope import Scope

__all__ = ["applied", "updated"]


def updated(scope: Scope, live: Object, new: Object, manager: str) -> Object:
    """The new object with the managedFields of a plain write; `live` is {} for a create."""
    return new


def applied(scope: Scope, live: Object | None, configuration: Object, manager: str, *, force: bool) -> Object:
    """What an apply makes of the live object. Raises StatusError 400, 409 or 500."""
    raise NotImplementedError


def manager_name(scope: Scope, manager: str) -> str:
    """The field manager that a client names, or what it calls itself before the slash of its user agent."""
    if manager:
        return manager
    name, length = "", 0
    for character in scope.request.headers.get("user-agent", "").partition("/")[0]:
        if not character.isprintable():
            continue
        length += len(character.encode())
        if length > FIELD_MANAGER_MAX_LENGTH:
            break
        name += character
    return name
