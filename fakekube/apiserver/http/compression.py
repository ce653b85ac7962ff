"""Compresses large responses for clients that accept gzip.

Only objects (bodies with the media type of a serializer) of more than 128 KiB are compressed. Watches are not, nor
responses which already have Content-Encoding or Content-Length.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go.
"""

from __future__ import annotations

import zlib
from typing import Final

from fakekube.apimachinery.codecs.chunks import Chunks
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.request import Response

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
    return gzipped(body)


def gzipped(body: bytes | Chunks) -> bytes:
    """Compresses a body with gzip, at the fastest level."""
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    pieces = (body,) if isinstance(body, bytes) else body
    return b"".join([*map(compressor.compress, pieces), compressor.flush()])


def takes_gzip(accept_encoding: str) -> bool:
    """Reports whether the client accepts gzip."""
    return any(token.strip() == "gzip" for token in accept_encoding.split(","))
