"""The part of a document that a Range header asks for.

Invariant: several ranges at once are answered with the whole document, which HTTP allows; the real server sends them as
multipart/byteranges.

Specified by: net/http (fs.go, parseRange and serveContent).
"""

from __future__ import annotations

import re
from typing import Final

from fakekube.apiserver.endpoints.request import Response

_RANGE: Final = re.compile(r"\s*(\d*)\s*-\s*(\d*)\s*", re.ASCII)
_UNIT: Final = "bytes="


class _InvalidRangeError(ValueError):
    """The message is that of the response."""


class _NoOverlapError(ValueError):
    """The document is shorter than every range begins."""


def content(body: bytes, headers: list[tuple[str, str]], wanted: str) -> Response:
    """Returns the response with a document, or with a part of it.

    Args:
        body: the document.
        headers: of the response.
        wanted: the Range header of the request; "" for none.
    """
    refused = [(name, value) for name, value in headers if name == "Vary"]
    refused += [("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff")]
    try:
        found = _ranges(wanted, len(body))
    except _InvalidRangeError:
        return Response(416, refused, b"invalid range\n")
    except _NoOverlapError:
        return Response(416, [*refused, ("Content-Range", f"bytes */{len(body)}")], b"invalid range: failed to overlap\n")
    if len(found) != 1:
        return Response(200, headers, body)
    part = found[0]
    where = f"bytes {part.start}-{part.stop - 1}/{len(body)}"
    return Response(206, [*headers, ("Content-Range", where)], body[part.start : part.stop])


def _ranges(header: str, length: int) -> list[range]:
    """Returns the ranges of bytes. Raises _InvalidRangeError or _NoOverlapError."""
    if not header:
        return []
    if not header.startswith(_UNIT):
        raise _InvalidRangeError
    asked = [part for part in header.removeprefix(_UNIT).split(",") if part.strip()]
    found = [made for part in asked if (made := _range(part, length)) is not None]
    if asked and not found:
        raise _NoOverlapError
    return found


def _range(part: str, length: int) -> range | None:
    """Returns one range; None if it begins after the end. Raises _InvalidRangeError."""
    match = _RANGE.fullmatch(part)
    if match is None or not (match[1] or match[2]):
        raise _InvalidRangeError
    if not match[1]:
        return range(length - min(int(match[2]), length), length)
    start = int(match[1])
    if start >= length:
        return None
    if match[2] and int(match[2]) < start:
        raise _InvalidRangeError
    return range(start, min(int(match[2]) + 1, length) if match[2] else length)
