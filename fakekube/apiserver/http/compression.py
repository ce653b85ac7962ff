"""Compresses responses, and reads Accept-Encoding headers, which parts of the real server read in three ways.

Objects (bodies with the media type of a serializer) of more than 128 KiB are compressed, for clients that accept gzip, and since
1.37 watches that begin with the state; other watches are not, nor responses which have Content-Encoding or Content-Length.
OpenAPI of version 2 and metrics are compressed whatever their size is.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters (writers.go), pkg/endpoints/handlers/watch.go
(perFlushGzipWriter); github.com/NYTimes/gziphandler (gzip.go, acceptsGzip) for OpenAPI; github.com/prometheus/client_golang
(promhttp, and NegotiateContentEncoding of its httputil) for metrics.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from fakekube.apimachinery.codecs.document import Chunks
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.negotiation import parse_quality
from fakekube.apiserver.endpoints.request import Response
from fakekube.net.streams import StreamDecorator

#: Bytes: larger responses are compressed.
THRESHOLD: Final = 128 * 1024
_LEVEL: Final = 1
#: Makes zlib write a gzip header.
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_COMPRESSED: Final = frozenset({negotiation.JSON, negotiation.YAML, negotiation.PROTOBUF, negotiation.CBOR})


def compress(response: Response, body: bytes | Chunks, accept_encoding: str) -> bytes | Chunks:
    """Returns the body to send; sets Content-Encoding if it is compressed."""
    media_type = next((value for name, value in response.headers if name == "Content-Type"), "")
    if media_type.partition(";")[0] not in _COMPRESSED or not takes_gzip(accept_encoding):
        return body
    if any(name in ("Content-Encoding", "Content-Length") for name, _ in response.headers):
        return body
    response.headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    return gzip_body(body)


def gzip_body(body: bytes | Iterable[bytes], *, flushed: bool = False) -> bytes:
    """Compresses a body with gzip, at the fastest level.

    Args:
        body: the body, or its parts.
        flushed: whether all of the body comes before the last block. The reader of Go returns what the last block has only after
            the header of another member.
    """
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    pieces = (body,) if isinstance(body, bytes) else body
    parts = [*map(compressor.compress, pieces)]
    if flushed:
        parts.append(compressor.flush(zlib.Z_SYNC_FLUSH))
    return b"".join([*parts, compressor.flush()])


def compress_watch_list(response: Response, accept_encoding: str) -> None:
    """Compresses a watch that begins with the state, for a client that accepts gzip."""
    if not isinstance(response.body, (bytes, Chunks)) and takes_gzip(accept_encoding):
        response.headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
        response.body = GzipStream(response.body)


class GzipStream(StreamDecorator):
    """The stream of a watch, compressed.

    What is sent at a time is a member of its own, so that the client can read it at once (perFlushGzipWriter).
    """

    _latest: ClassVar[tuple[list[bytes], bytes]] = [], b""
    """The frames that were compressed last, and the member; watchers of one collection share the list of frames."""

    def take(self) -> list[bytes]:
        frames = self._stream.take()
        if not frames:
            return frames
        known, member = GzipStream._latest
        if known is not frames:
            member = gzip_body(frames, flushed=True)
            GzipStream._latest = frames, member
        return [member]

    def __iter__(self) -> Iterator[bytes]:
        return (gzip_body(frame, flushed=True) for frame in self._stream)


# --- Accept-Encoding ---------------------------------------------------------------------------------------------------


_GZIP: Final = "gzip"
_UNCOMPRESSED: Final = frozenset({"identity", "*"})
#: A coding with its quality, and the comma after it, or the character that ends the header there.
_CODING: Final = re.compile(r"([!#$%&'*+\-.^_`|~/\w]++)\s*(?:;\s*q=([01](?:\.\d*)?)|(?!\s*;))\s*(?:,\s*|(.))?", re.ASCII)


def takes_gzip(accept_encoding: str) -> bool:
    """Reports whether resources and watches are compressed: gzip is listed without parameters."""
    return any(token.strip() == _GZIP for token in accept_encoding.split(","))


def accepts_gzip(accept_encoding: str) -> bool:
    """Reports whether OpenAPI is compressed: gzip has a quality above zero; of several the last one counts."""
    accepted = False
    for part in accept_encoding.split(","):
        coding, *parameters = (parameter.strip() for parameter in part.split(";"))
        if coding.lower() == _GZIP:
            last = parameters[-1] if parameters else ""
            accepted = not last.startswith("q=") or parse_quality(last.removeprefix("q=")) > 0
    return accepted


def prefers_gzip(accept_encoding: str) -> bool:
    """Reports whether metrics are compressed: gzip has a greater quality than what is not compressed."""
    qualities = {True: 0.0, False: 0.0}
    at, more = 0, True
    while more and (found := _CODING.match(accept_encoding, at)) is not None:
        coding, quality, rest = found.groups()
        if coding == _GZIP or coding in _UNCOMPRESSED:
            compressed = coding == _GZIP
            qualities[compressed] = max(qualities[compressed], float(quality or 1))
        at, more = found.end(), rest is None
    return qualities[True] > qualities[False]
