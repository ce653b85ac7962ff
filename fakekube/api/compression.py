"""Large answers are compressed for clients that say they take gzip.

Only objects are (what has a serializer's media type), and only from 128 KiB on; watches never are, nor what has its encoding
or length told already.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go.
"""

from __future__ import annotations

import zlib
from typing import Final

from fakekube.codecs.pieces import Pieces
from fakekube.endpoints import negotiation
from fakekube.registry.request import Response

__all__ = ["THRESHOLD", "compress", "gzipped", "takes_gzip"]

#: Answers of more bytes are compressed.
THRESHOLD: Final = 128 * 1024
_LEVEL: Final = 1
#: Tells zlib to write a gzip header.
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_COMPRESSED: Final = frozenset({negotiation.JSON, negotiation.YAML, negotiation.PROTOBUF, negotiation.CBOR})


def compress(response: Response, body: bytes | Pieces, accept_encoding: str) -> bytes | Pieces:
    """The large body of an answer as it is to be sent; says so in the headers if that is compressed."""
    media_type = next((value for name, value in response.headers if name == "Content-Type"), "")
    if media_type.partition(";")[0] not in _COMPRESSED or not takes_gzip(accept_encoding):
        return body
    if any(name in ("Content-Encoding", "Content-Length") for name, _ in response.headers):
        return body
    response.headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    return gzipped(body)


def gzipped(body: bytes | Pieces) -> bytes:
    """A body with gzip, quickly rather than well."""
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    pieces = (body,) if isinstance(body, bytes) else body
    return b"".join([*map(compressor.compress, pieces), compressor.flush()])


def takes_gzip(accept_encoding: str) -> bool:
    """Does the client say that it takes gzip?"""
    return any(token.strip() == "gzip" for token in accept_encoding.split(","))
