"""Writes responses that no resource handler makes, and encodes Warning headers.

Warnings are sent once each; texts with control characters are omitted. If the texts exceed 4,096 characters in total, each is
truncated to 256, and no more are added once the truncated ones reach 4,096.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters (writers.go, errors.go), pkg/endpoints/filters/warning.go;
k8s.io/apimachinery/pkg/util/net (NewWarningHeader); net/http (Error).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.codecs import EncodeError, formats, json
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.codecs.formats import Kind
from fakekube.apimachinery.data import META_V1
from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.errors.status import GENERIC_MESSAGES, generic
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.negotiation import PLAIN_TEXT, MediaType
from fakekube.apiserver.endpoints.request import Query, Request, Response
from fakekube.base.golang.strings import bytes_of

#: The number of the first minor whose filters, router and lists of groups speak CBOR.
ALL_SPEAK_CBOR_SINCE: Final = 37

NO_SNIFFING: Final = ("X-Content-Type-Options", "nosniff")

Headers = Mapping[str, str]


def not_found() -> StatusError:
    """Returns the router's 404: the path does not exist below an API that is served."""
    return StatusError(404, "NotFound", GENERIC_MESSAGES[404], {})


def method_not_allowed() -> StatusError:
    """Returns the router's 405: the path is served, but not for this method."""
    return StatusError(405, "MethodNotAllowed", GENERIC_MESSAGES[405], {})


def page_not_found() -> Response:
    """Returns a plain text 404: the server does not serve this path."""
    return http_error(404, "404 page not found")


def http_error(code: int, text: str) -> Response:
    """Returns an error as plain text, in the form of net/http."""
    return plain_text(f"{text}\n", code, NO_SNIFFING)


def plain_text(text: str, code: int = 200, *headers: tuple[str, str]) -> Response:
    """Returns a plain text response."""
    return Response(code, [("Content-Type", PLAIN_TEXT), *headers], bytes_of(text))


def indented_json(value: Any) -> Response:
    """Returns a response with indented JSON, regardless of the Accept header (WriteRawJSON)."""
    return Response(200, [("Content-Type", negotiation.JSON)], json.dumps_pretty(value))


def wants_pretty(headers: Headers, query: Query) -> bool:
    """Reports whether the client prefers indented JSON."""
    return negotiation.is_pretty(query.get("pretty") or "", headers.get("user-agent", ""))


def error_response(
    error: StatusError, headers: Headers, query: Query, *, cbor: bool | None = None, protobuf: bool = True
) -> Response:
    """Returns an error in a media type that the client accepts.

    Until 1.36 the errors of filters and of the router, which have empty details, are never encoded as CBOR.

    Args:
        error: the error.
        headers: of the request.
        query: of the request.
        cbor: whether the endpoint speaks CBOR; None: as filters and the router do.
        protobuf: whether the endpoint speaks Protobuf.
    """
    accept, pretty = headers.get("accept", ""), wants_pretty(headers, query)
    emulation = features.current()
    if emulation.minor < ALL_SPEAK_CBOR_SINCE:
        cbor = bool(cbor) and error.details != {}
    elif cbor is None:
        cbor = emulation.enabled("CBORServingAndStorage")
    chosen = negotiation.error_output(accept, cbor=cbor, pretty=pretty)
    if chosen.format == "protobuf" and not protobuf:
        chosen = negotiation.error_output(negotiation.JSON, pretty=True)
    try:
        body = encode_object(error.status(), META_V1 + "Status", chosen)
    except EncodeError as problem:
        body = encode_object(generic(500, "", str(problem)).status(), META_V1 + "Status", chosen)
    response = Response(error.code, [("Content-Type", chosen.media_type)], body)
    if error.retry_after:
        response.headers.append(("Retry-After", str(error.retry_after)))
    return response


def negotiate_response(
    obj: dict[str, Any], go_type: str, request: Request, *, cbor: bool = False, kept: dict[MediaType, bytes] | None = None
) -> Response:
    """Returns an object that has a kind, in a media type that the client accepts; otherwise a 406 in one that the
    endpoint supports. `kept` has the encodings of this object so far, and gets those that are made."""
    offer = negotiation.plain_offer(cbor)
    accept = request.headers.get("accept", "")
    try:
        chosen = offer.output(accept, pretty=wants_pretty(request.headers, request.query))
    except StatusError as error:
        return error_response(error, request.headers, request.query, cbor=cbor)
    body = None if kept is None else kept.get(chosen)
    if body is None:
        body = encode_object(obj, go_type, chosen)
        if kept is not None:
            kept[chosen] = body
    return Response(200, [("Content-Type", chosen.media_type)], body)


def encode_object(obj: dict[str, Any], go_type: str, chosen: MediaType) -> bytes:
    """Encodes an object that has a kind."""
    form = formats.format_of(chosen.format, pretty=chosen.pretty)
    kind = _kind(obj.get("apiVersion", ""), obj["kind"], go_type if chosen.format == "protobuf" else "")
    return form.object(form.encoded_item(Document(obj), kind), kind)


@cache
def _kind(api_version: str, kind: str, go_type: str) -> Kind:
    return Kind(api_version, kind, type_of(go_type) if go_type else None, custom=True)


_CODE: Final = 299
_NO_AGENT: Final = "-"
_MAXIMUM_OF_ALL: Final = 4 * 1024
_MAXIMUM_OF_ONE_WHEN_CUT: Final = 256


def warning_headers(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Returns the headers for these texts, in order."""
    unique = [text for text in dict.fromkeys(texts) if text]
    sendable = [text for text in unique if _sendable(text)]
    if sum(map(len, sendable)) > _MAXIMUM_OF_ALL:
        sendable = _cut(sendable)
    return [("Warning", _header(text)) for text in sendable]


def _sendable(text: str) -> bool:
    """Reports whether a text has no control characters and is valid UTF-8 (no surrogates: see `base.golang.strings`)."""
    return text.isprintable() or not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


def _cut(texts: list[str]) -> list[str]:
    kept, written = [], 0
    for text in texts:
        if written >= _MAXIMUM_OF_ALL:
            break
        kept.append(text[:_MAXIMUM_OF_ONE_WHEN_CUT])
        written += len(kept[-1])
    return kept


def _header(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'{_CODE} {_NO_AGENT} "{quoted}"'.encode().decode("latin-1")
