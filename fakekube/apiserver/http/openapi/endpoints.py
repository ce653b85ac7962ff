"""Serves /openapi/v2 and /openapi/v3 in all formats, with cache headers and conditional requests.

A document that is requested with its hash is immutable for caches; a request with another hash is redirected. Both endpoints
have a negotiation of their own, and respond with an empty 406.

Specified by: k8s.io/kube-openapi/pkg/handler and pkg/handler3; net/http (ServeContent, for conditional
requests).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from fakekube.apimachinery.data import published_document
from fakekube.apimachinery.features import Emulation
from fakekube.apis.rest.resource import Registry
from fakekube.apiserver.aggregator.documents import OPENAPI_V3_ROOT
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.negotiation import PLAIN_TEXT
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.apiserver.http import nonresource_paths
from fakekube.apiserver.http.compression import accepts_gzip, gzip_body
from fakekube.apiserver.registry.served_apis import RuntimeConfig
from fakekube.base.clock import Clock

if TYPE_CHECKING:
    from fakekube.apiserver.aggregator.aggregator import Aggregator
    from fakekube.apiserver.http.openapi.documents import AggregatedDocuments, Lookup, OpenAPIDocuments


Handler = Callable[[Request], Response]
Headers = list[tuple[str, str]]

_log = logging.getLogger(__name__)

_INDEX: Final = "/openapi/v3"
_SHORT: Final = 2048
_YEAR: Final = timedelta(days=365)
_JSON_SUBTYPE: Final = "json"


def _protobuf_subtypes(version: str) -> tuple[str, str]:
    """Returns the media subtype of responses, and its deprecated alias."""
    family = f"com.github.proto-openapi.spec.{version}"
    return f"{family}.v1.0+protobuf", f"{family}@v1.0+protobuf"


def _protobuf(document: bytes, version: str) -> bytes:
    """Encodes a document of an OpenAPI version in Protobuf."""
    from fakekube.apiserver.http.openapi import gnostic

    return gnostic.v2(document) if version == "v2" else gnostic.v3(document)


class OpenAPIEndpoints:
    """Serves the paths of OpenAPI.

    Args:
        emulation, config, registry, definition_of: those of `OpenAPIDocuments`.
        clock: the clock of the cluster.
        started: when the server started.
        aggregator: the documents of other servers.
    """

    def __init__(
        self,
        emulation: Emulation,
        config: RuntimeConfig,
        registry: Registry,
        definition_of: Lookup,
        *,
        clock: Clock,
        started: datetime,
        aggregator: Aggregator,
    ) -> None:
        self._emulation, self._config = emulation, config
        self._registry = registry
        self._definition_of = definition_of
        self._clock = clock
        self._aggregator = aggregator
        self._started_at = started
        self._has_mentioned = False

    @cached_property
    def _started(self) -> str:
        from wsgiref.handlers import format_date_time

        return format_date_time(self._started_at.timestamp())

    @cached_property
    def _documents(self) -> OpenAPIDocuments:
        from fakekube.apiserver.http.openapi.documents import OpenAPIDocuments

        return OpenAPIDocuments(self._emulation, self._config, self._registry, self._definition_of)

    @cached_property
    def _aggregated(self) -> AggregatedDocuments:
        from fakekube.apiserver.http.openapi.documents import AggregatedDocuments

        return AggregatedDocuments(self._aggregator)

    def has(self, name: str) -> bool:
        """Reports whether this server has a document of that name."""
        return self._documents.current().document(name) is not None

    def endpoints(self) -> dict[str, Handler]:
        """Returns the endpoints by exact path."""
        return {"/openapi/v2": self._v2, _INDEX: self._index}

    def prefixes(self) -> dict[str, Handler]:
        """Returns the endpoints by path prefix."""
        return {OPENAPI_V3_ROOT: self._group_version}

    def _index(self, request: Request) -> Response:
        index = self._documents.current().index
        if self._aggregator.remotes:
            index = self._aggregated.index(index)
        # The real server sends this content with a sniffed Content-Type.
        headers = [("Content-Type", PLAIN_TEXT)]
        return self._content(request, index.json, headers)

    def _v2(self, request: Request) -> Response:
        vary: Headers = [("Vary", "Accept-Encoding"), ("Vary", "Accept")]
        chosen = _choose_media_type(request.headers.get("accept", ""), _protobuf_subtypes("v2"))
        if chosen is None:
            return Response(406, vary, b"")
        document = self._documents.current().v2
        if self._aggregator.remotes:
            document = self._aggregated.v2(document)
        body = document.json if chosen == negotiation.JSON else _protobuf(document.json, "v2")
        headers = [("Content-Type", chosen), ("Etag", document.etag), *vary]
        response = self._content(request, body, headers)
        if response.status == 200 and request.method != "HEAD" and accepts_gzip(request.headers.get("accept-encoding", "")):
            response.headers = [entry for entry in response.headers if entry[0] != "Content-Length"]
            response.headers.append(("Content-Encoding", "gzip"))
            response.body = gzip_body(body)
        return response

    def _mention_descriptions(self, request: Request) -> None:
        """Logs once how `kubectl explain` gets its texts, if it asks for a document and there are none."""
        if self._has_mentioned or not request.headers.get("kubectl-command", "").startswith("kubectl explain"):
            return
        self._has_mentioned = True
        if not published_document(self._emulation.version):
            _log.warning("kubectl explain shows no texts without descriptions: pip install 'fakekube[descriptions]'")

    def _group_version(self, request: Request) -> Response:
        self._mention_descriptions(request)
        name = request.info.path[len(OPENAPI_V3_ROOT) :]
        current = self._documents.current()
        document = current.document(name)
        if document is None and self._aggregator.remotes:
            document = self._aggregated.converted_document(name)
        if document is None:
            return Response(404, [], b"")
        accept = request.headers.get("accept", "")
        vary: Headers = [("Vary", "Accept")]
        chosen = _choose_media_type(accept, _protobuf_subtypes("v3"))
        if chosen is None:
            return Response(406, vary, b"") if negotiation.clauses(accept) else Response(200, [], b"")
        headers = [("Content-Type", chosen), ("Etag", document.etag), *vary]
        wanted = request.query.get("hash")
        if wanted and wanted != document.hash:
            return Response(301, [*headers, ("Location", f"{OPENAPI_V3_ROOT}{quote(name)}?hash={document.hash}")], b"")
        if wanted:
            from wsgiref.handlers import format_date_time

            expires = format_date_time((self._clock.now() + _YEAR).timestamp())
            headers += [("Cache-Control", "public, immutable"), ("Expires", expires)]
        body = document.json if chosen == negotiation.JSON else _protobuf(document.json, "v3")
        return self._content(request, body, headers)

    def _content(self, request: Request, body: bytes, headers: Headers) -> Response:
        """Returns the response, or a 304 if the request has the ETag in `headers`."""
        etag = next((value for name, value in headers if name == "Etag"), "")
        headers = [*headers, ("Last-Modified", self._started), ("Accept-Ranges", "bytes")]
        if etag and _matches(request.headers.get("if-none-match", ""), etag):
            kept = [header for header in headers if header[0] not in ("Content-Type", "Last-Modified", "Accept-Ranges")]
            return Response(304, kept, b"")
        response = nonresource_paths.content(body, headers, request.headers.get("range", ""))
        if isinstance(response.body, bytes):
            response.headers += _length(response.body)
        return response


def _length(body: bytes) -> Headers:
    """Returns the Content-Length header of a large document; for a short one the server adds it."""
    return [("Content-Length", str(len(body)))] if len(body) > _SHORT else []


def _matches(if_none_match: str, etag: str) -> bool:
    """Reports whether the header has the ETag, weak or strong."""
    if if_none_match.strip() == "*":
        return True
    return any(candidate.strip().removeprefix("W/") == etag for candidate in if_none_match.split(","))


def _choose_media_type(accept: str, protobuf: Sequence[str]) -> str | None:
    """Returns the media type of the response: that of the first range that matches an offered one."""
    offered = ((_JSON_SUBTYPE, negotiation.JSON), *((subtype, f"application/{protobuf[0]}") for subtype in protobuf))
    for clause in negotiation.clauses(accept or "*/*"):
        for subtype, media_type in offered:
            if clause.type in ("application", "*") and clause.subtype in (subtype, "*"):
                return media_type
    return None
