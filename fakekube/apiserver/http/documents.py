"""Serves /version and OpenID Connect discovery, and the ranges of documents.

Serves OpenID Connect discovery for service account tokens: the provider configuration and the keys.

The part of a document that a Range header asks for.

Invariant: several ranges at once are answered with the whole document, which HTTP allows; the real server sends them as
multipart/byteranges.

Specified by: k8s.io/apiserver/pkg/server/routes/version.go, k8s.io/apimachinery/pkg/version;
k8s.io/kubernetes/pkg/routes/openidmetadata.go and pkg/serviceaccount/openidmetadata.go; net/http (fs.go, parseRange and
serveContent).
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from fakekube.apimachinery.data import RELEASES
from fakekube.apiserver.auth.service_accounts import Signer
from fakekube.apiserver.endpoints.request import Request, Response


def git_version(minor: str) -> str:
    """Returns the release, for example v1.36.3."""
    return f"v{minor}.{RELEASES[minor]}"


def user_agent(program: str, minor: str) -> str:
    """Returns the User-Agent of client-go (DefaultKubernetesUserAgent) for a program of a release."""
    info = version_info(minor)
    return f"{program}/{info['gitVersion']} ({info['platform']}) kubernetes/{info['gitCommit'][:7]}"


def version_info(minor: str, emulated: str = "") -> dict[str, str]:
    """Returns the content of /version for a minor version ("1.36") that emulates one. Build fields are placeholders."""
    major, _, number = minor.partition(".")
    emulated_number = (emulated or minor).partition(".")[2]
    return {
        "major": major,
        "minor": number,
        "emulationMajor": major,
        "emulationMinor": emulated_number,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(emulated_number) - 1),
        "gitVersion": git_version(minor),
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "go1.26.8",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
KEYS_PATH: Final = "/openid/v1/jwks"
KEYS_TYPE: Final = "application/jwk-set+json"

_CACHING: Final = ("Cache-Control", "public, max-age=3600")


def configuration(signer: Signer, request: Request) -> Response:
    """Returns the provider configuration; the URL of the keys is on the host of the request."""
    document = {
        "issuer": signer.issuer,
        "jwks_uri": f"https://{request.headers.get('host', '')}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": signer.algorithms,
    }
    return Response(200, [("Content-Type", "application/json"), _CACHING], orjson.dumps(document))


def keys(signer: Signer) -> Response:
    """Returns the public keys as a JSON Web Key Set."""
    return Response(200, [("Content-Type", KEYS_TYPE), _CACHING], orjson.dumps(signer.key_set()))


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
