"""Serves the discovery paths: /api, /apis, groups and group versions.

In the real server, three chained servers handle these paths, which differ: /apis and /apis/GROUP accept every method, /api,
group versions and the group of the aggregator only GET; for an unknown version of a built-in group the response is a
Status, otherwise plain text; custom groups do not support CBOR.

Specified by: k8s.io/apiserver/pkg/endpoints/discovery (root.go, group.go, version.go,
aggregated/wrapper.go, etag.go), k8s.io/kube-aggregator/pkg/apiserver/handler_apis.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.errors import StatusError
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.negotiation import MediaType, Offer, Target
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.apiserver.http import responses
from fakekube.apiserver.http.discovery.documents import Documents, Snapshot
from fakekube.apiserver.http.request_info import split_path

_META: Final = "k8s.io/apimachinery/pkg/apis/meta/v1."
_AGGREGATED: Final = Target("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
_AGGREGATED_TYPE: Final = "k8s.io/api/apidiscovery/v2.APIGroupDiscoveryList"
_AGGREGATED_PARAMETERS: Final = f"g={_AGGREGATED.group};v={_AGGREGATED.version};as={_AGGREGATED.kind}"


@dataclass(slots=True, frozen=True)
class _AggregatedOffer(Offer):
    """An offer of only the aggregated form."""

    def allows(self, media_type: str, target: Target | None) -> bool:
        return target == _AGGREGATED


#: The media types of the lists of groups and versions, which do not support CBOR.
_OLD: Final = Offer(transforms=False)


class DiscoveryEndpoints:
    """Serves the discovery paths.

    Args:
        documents: the documents of the cluster.
        is_builtin: reports whether a group is built in.
        cbor: whether the feature gate CBORServingAndStorage is enabled.
    """

    def __init__(self, documents: Documents, is_builtin: Callable[[str], bool], *, cbor: bool = False) -> None:
        self._documents = documents
        self._is_builtin = is_builtin
        self._cbor = cbor
        self._offer = Offer(cbor=cbor, transforms=False)
        self._aggregated_offer = _AggregatedOffer(cbor=cbor)

    def respond(self, request: Request) -> Response | None:
        """Returns the response for a path that starts with /api or /apis; None if it is not a discovery path. Raises
        StatusError.
        """
        path = request.info.path
        parts = split_path(path)
        if path == "/apis":
            return self._aggregated(request, self._documents.current().group_names) or self._groups(request)
        if path == "/apis/":
            return self._groups(request)
        if path.startswith("//") or not parts:
            return None
        if parts[0] == "api":
            return self._core(request, parts)
        if parts[0] != "apis" or len(parts) < 2 or not parts[1]:
            return None
        group = parts[1]
        return self._group(request, group) if len(parts) == 2 else self._version(request, group, parts[2])

    def _core(self, request: Request, parts: list[str]) -> Response:
        if len(parts) == 1:
            self._check(request, _OLD)
            return self._aggregated(request, [""]) or self._negotiated(_core_versions(request), "APIVersions", request)
        document = self._documents.current().resources("", parts[1]) if len(parts) == 2 else None
        if document is None:
            raise responses.not_found()
        return self._resources(document, request)

    def _groups(self, request: Request) -> Response:
        return self._negotiated(self._documents.current().groups, "APIGroupList", request)

    def _group(self, request: Request, group: str) -> Response | None:
        current = self._documents.current()
        if not current.is_registered(group) and self._is_builtin(
            group
        ):  # the router answers, since no aggregator is in front of it
            self._check(request, _OLD)
        document = current.group(group)
        return None if document is None else self._negotiated(document, "APIGroup", request)

    def _version(self, request: Request, group: str, version: str) -> Response | None:
        document = self._documents.current().resources(group, version)
        if self._is_builtin(group):
            if document is None:
                raise responses.not_found()
            return self._resources(document, request)
        return None if document is None else self._negotiated(document, "APIResourceList", request)

    def _resources(self, document: dict[str, Any], request: Request) -> Response:
        """Returns the resources of a built-in group version."""
        self._check(request, self._offer)
        return responses.negotiated(document, f"{_META}APIResourceList", request, cbor=self._cbor)

    def _check(self, request: Request, offer: Offer) -> None:
        """Checks the method and the Accept header like the router. Raises StatusError 405 or 406."""
        if request.method != "GET":
            raise responses.method_not_allowed()
        negotiation.route(request.headers.get("accept", ""), offer.media_types)

    # ------------------------------------------------------------ encodings

    def _negotiated(self, document: dict[str, Any], kind: str, request: Request) -> Response:
        return responses.negotiated(document, _META + kind, request)

    def _aggregated(self, request: Request, groups: list[str]) -> Response | None:
        """Returns the aggregated form of these groups if the client prefers it, else None."""
        headers = request.headers
        try:
            pretty = responses.wants_pretty(headers, request.query)
            chosen = self._aggregated_offer.output(headers.get("accept") or "*/*", pretty=pretty)
        except StatusError:
            return None
        body, etag = _aggregated_answer(self._documents.current(), groups, chosen)
        caching = [("Cache-Control", "public"), ("Etag", etag), ("Vary", "Accept")]
        if headers.get("if-none-match") == etag:
            return Response(304, caching, b"")
        return Response(200, [("Content-Type", f"{chosen.media_type};{_AGGREGATED_PARAMETERS}"), *caching], body)


def _aggregated_answer(current: Snapshot, groups: list[str], chosen: MediaType) -> tuple[bytes, str]:
    """Returns the cached body and ETag. The ETag is that of the content in any format."""
    key = (groups == [""], chosen)
    found = current.encodings.get(key)
    if found is None:
        document = current.aggregated(groups)
        json = responses.encoded(document, _AGGREGATED_TYPE, MediaType("json", negotiation.JSON))
        etag = f'"{hashlib.sha512(json).hexdigest().upper()}"'
        found = current.encodings[key] = (responses.encoded(document, _AGGREGATED_TYPE, chosen), etag)
    return found


def _core_versions(request: Request) -> dict[str, Any]:
    """Returns the APIVersions of /api; the server address is that of the request."""
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": request.headers.get("host", "")}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}
