"""Criteria for requests: verbs, resources with subresources, namespaces, names, users, user agents.

Invariant: matching changes nothing; an absent criterion matches every request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakekube.powers.exchange import Exchange


#: The verb of calls of webhooks by the API server.
CALL = "call"
#: The verbs of requests about resources; others are lower-case methods of requests about other paths.
VERBS = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy", "connect", CALL})


@dataclass(slots=True, frozen=True)
class ResourceName:
    """A resource as tests name it: `pods` (of any group), `deployments.apps`, `pods/status`, `pods/*`, `*.apps`, `*`."""

    plural: str
    group: str | None
    """None: of any group."""
    subresource: str
    """"" for the main resource, "*" for all subresources."""
    text: str

    @classmethod
    def parse(cls, text: str, resolve: Callable[[str], str] = str) -> ResourceName:
        """Parses a name; `resolve` returns the plural for a short name, a kind or a singular."""
        resource, _, subresource = text.partition("/")
        plural, _, group = resource.partition(".")
        return cls(plural if plural == "*" else resolve(plural), group or None, subresource, text)

    def matches(self, exchange: Exchange) -> bool:
        """Reports whether the exchange is a request for this resource."""
        if self.text == "*":
            return exchange.is_resource_request
        if self.plural not in ("*", exchange.resource) or self.group not in (None, exchange.group):
            return False
        if self.plural == "*" and not self.subresource:  # all resources and subresources of a group
            return exchange.is_resource_request
        return self.subresource == exchange.subresource or (self.subresource == "*" and bool(exchange.subresource))


@dataclass(slots=True, frozen=True)
class Criteria:
    """The properties that a request must have; None matches any value."""

    verb: tuple[str, ...] | None = None
    resource: ResourceName | None = None
    namespace: str | None = None
    name: str | None = None
    user: str | None = None
    agent: str | None = None
    """A prefix of the user agent."""
    status: int | None = None
    path: str | None = None
    """A glob, for requests that are not about resources."""

    def misses(self, exchange: Exchange) -> list[str]:
        """Returns the names of the criteria that an exchange does not meet."""
        return [field.name for field in fields(self) if not self._meets(field.name, exchange)]

    def matches(self, exchange: Exchange) -> bool:
        """Reports whether the exchange meets all criteria."""
        return all(self._meets(field.name, exchange) for field in fields(self))

    def _meets(self, criterion: str, exchange: Exchange) -> bool:
        wanted = getattr(self, criterion)
        if wanted is None:
            return True
        if criterion == "verb":
            return exchange.verb in wanted
        if criterion == "resource":
            return bool(wanted.matches(exchange))
        if criterion == "agent":
            return exchange.agent.startswith(wanted)
        if criterion == "path":
            return (not exchange.is_resource_request or exchange.verb == CALL) and fnmatchcase(exchange.path, wanted)
        return bool(getattr(exchange, criterion) == wanted)

    def __str__(self) -> str:
        shown = {field.name: getattr(self, field.name) for field in fields(self)}
        texts = (f"{name}={_text(value)}" for name, value in shown.items() if value is not None)
        return ", ".join(texts) or "any request"


def _text(value: object) -> str:
    if isinstance(value, ResourceName):
        return value.text
    return ",".join(value) if isinstance(value, tuple) else str(value)


def verbs_of(text: str | Iterable[str]) -> tuple[str, ...] | None:
    """Parses verbs (`get,list`); returns None for `*`. Raises ValueError for a verb that does not exist."""
    verbs = tuple(part.strip() for part in (text.split(",") if isinstance(text, str) else text))
    if verbs == ("*",):
        return None
    methods = {"get", "head", "post", "put", "patch", "delete", "options"}
    unknown = [verb for verb in verbs if verb not in VERBS | methods]
    if unknown:
        raise ValueError(f"there is no verb {', '.join(unknown)}; verbs are {', '.join(sorted(VERBS))}")
    return verbs
