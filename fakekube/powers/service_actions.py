"""Actions of faults: malformed responses, unavailable API groups, expired tokens.

Invariant: an action never makes up state; the responses are those that clients get from broken servers and proxies.

Specified by: k8s.io/kube-aggregator/pkg/apiserver (handler_proxy.go: service unavailable; handler_discovery.go: stale versions);
k8s.io/apiserver/pkg/endpoints/filters/authentication.go.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.errors import status
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.powers.action import Action

if TYPE_CHECKING:
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault
    from fakekube.powers.faults import ActionContext
    from fakekube.powers.matching import Criteria
    from fakekube.powers.streams import ObservedStream

__all__ = ["ExpireTokens", "Malformed", "Unavailable"]


@dataclass(slots=True, frozen=True)
class Malformed(Action):
    """Performs the request and sends the first half of the response as a complete body; sends a watch half an event."""

    name = "malformed"
    on_open = True
    on_calls = True

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.halve()

    def after(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        body = response.body
        whole = body if isinstance(body, bytes) else b"".join(body)
        response.body = whole[: len(whole) // 2]


@dataclass(slots=True, frozen=True)
class Unavailable(Action):
    """Simulates an API group whose server cannot be reached: 503 for its resources and its discovery; its versions are marked as
    stale in the aggregated discovery document."""

    name = "unavailable"
    on_open = True

    def meets(self, criteria: Criteria, exchange: Exchange) -> bool:
        if criteria.matches(exchange):
            return True
        resource = criteria.resource
        if exchange.is_resource_request or resource is None or resource.plural != "*" or resource.group is None:
            return False
        root = f"/apis/{resource.group}"
        return exchange.path in ("/apis", root) or exchange.path.startswith(f"{root}/")

    def before(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        if exchange.path == "/apis":  # kube-apiserver itself serves this document
            return None
        return Response(503, [("Content-Type", "text/plain; charset=utf-8")], b"service unavailable\n")

    def after(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        resource = fault.criteria.resource
        if exchange.path == "/apis" and resource is not None and resource.group is not None:
            _mark_stale(response, resource.group)

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.cut_after_bytes(0)


def _mark_stale(response: Response, group: str) -> None:
    """Marks the versions of a group as stale, if a response is the aggregated discovery document."""
    if not isinstance(response.body, bytes) or response.status != 200:
        return
    try:
        document = json.loads(response.body)
    except ValueError:
        return
    for item in document.get("items") or ():
        if item["metadata"].get("name") == group:
            for version in item["versions"]:
                version["freshness"] = "Stale"
    body = json.dumps(document, separators=(",", ":")).encode() + b"\n"
    response.body = body
    tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    response.headers[:] = [(name, tag if name.lower() == "etag" else value) for name, value in response.headers]


@dataclass(slots=True, frozen=True)
class ExpireTokens(Action):
    """Refuses bearer tokens that were issued before the fault was armed with a 401; later ones are accepted."""

    name = "expire_tokens"
    at_authentication = True
    fresh: set[str] = field(default_factory=set, init=False, compare=False, repr=False)
    """The tokens issued since the fault was armed."""

    def __post_init__(self) -> None:
        """Accepts the field `fresh`, which is not an argument."""

    def concerns(self, exchange: Exchange) -> bool:
        return bool(exchange.token) and exchange.token not in self.fresh

    def meets(self, criteria: Criteria, exchange: Exchange) -> bool:
        misses = criteria.misses(exchange)
        everything = criteria.resource is not None and criteria.resource.text == "*"
        return not misses or (everything and misses == ["resource"])  # with "*", also requests that are not for resources

    def authenticated(self, fault: Fault, exchange: Exchange) -> None:
        raise status.unauthorized()

    def issued(self, token: str) -> None:
        self.fresh.add(token)

    def describe(self) -> dict[str, Any]:
        return {self.name: {}}
