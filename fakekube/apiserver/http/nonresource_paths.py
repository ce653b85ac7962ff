"""Serves paths that are not resources: /version, OpenID Connect discovery, /statusz, /flagz, /debug. `healthz` has health checks.

A fake has no Go profiles, flags or queues: the pages have the format of the real server without such data.

Invariant: several ranges at once are answered with the whole document, which HTTP allows; the real server sends them as
multipart/byteranges.

Specified by: k8s.io/apiserver/pkg/server/routes (version.go, profiling.go, flags.go),
pkg/util/flowcontrol (apf_controller_debug.go); k8s.io/apimachinery/pkg/version, k8s.io/component-base/zpages;
k8s.io/kubernetes/pkg/routes/openidmetadata.go and pkg/serviceaccount/openidmetadata.go; net/http (fs.go, parseRange and
serveContent).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import orjson

from fakekube.apimachinery.data import RELEASES
from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.features import Emulation
from fakekube.apiserver.auth.service_accounts import Signer
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.negotiation import HTML, PLAIN_TEXT, MediaType, Offer, Target
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.apiserver.http import responses
from fakekube.base.clock import Clock
from fakekube.base.golang.strconv import parse_int
from fakekube.base.golang.timestamps import print_time


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
    refused += [("Content-Type", PLAIN_TEXT), ("X-Content-Type-Options", "nosniff")]
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
    try:
        start, end = (parse_int(text) if text else None for text in match.groups())
    except ValueError:
        raise _InvalidRangeError from None
    if start is None:
        return range(length - min(end or 0, length), length)
    if start >= length:
        return None
    if end is not None and end < start:
        raise _InvalidRangeError
    return range(start, length if end is None else min(end + 1, length))


# --- /statusz, /flagz and /debug ---------------------------------------------------------------------------------------


_GROUP: Final = "config.k8s.io"
_VERSIONS: Final = ("v1alpha1", "v1beta1")
_DEPRECATED: Final = "v1alpha1"
_PATHS: Final = ("/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version")
#: The table headers of the debug pages of priority and fairness.
_DUMPS: Final = {
    "dump_priority_levels": (
        "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, "
        "DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests\n"
    ),
    "dump_queues": (
        "PriorityLevelName, Index,  PendingRequests, ExecutingRequests, SeatsInUse, NextDispatchR, "
        "InitialSeatsSum, MaxSeatsSum, TotalWorkSum\n"
    ),
    "dump_requests": (
        "PriorityLevelName, FlowSchemaName, QueueIndex, RequestIndexInQueue, FlowDistingsher, ArriveTime, "
        "InitialSeats, FinalSeats, AdditionalLatency, StartTime\n"
    ),
}

#: The warning of the z-pages.
_NOT_STABLE: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for "
    "debugging purposes only."
)

Handler = Callable[[Request], Response]


def document_endpoints(clock: Clock, started: datetime, emulation: Emulation, *, cbor: bool = False) -> dict[str, Handler]:
    """Returns the endpoints by exact path.

    Args:
        clock: the clock of the cluster.
        started: when the server started.
        emulation: the emulated minor version and its feature gates, of which ComponentStatusz and ComponentFlagz count.
        cbor: whether the feature gate CBORServingAndStorage is on.
    """
    pages: dict[str, Handler] = {}
    if emulation.enabled("ComponentStatusz"):
        statusz = partial(_statusz, clock, started, emulation)
        pages["/statusz"] = partial(_negotiate_page, _PageOffer(kind="Statusz", cbor=cbor), statusz)
    if emulation.enabled("ComponentFlagz"):
        pages["/flagz"] = partial(_negotiate_page, _PageOffer(kind="Flagz", cbor=cbor), partial(_flagz, emulation))
    return {
        **pages,
        "/debug/pprof": _redirect_to_profiles,
        "/debug/flags": _flags,
        "/debug/flags/v": _verbosity,
        **{f"/debug/api_priority_and_fairness/{name}": partial(_dump, head) for name, head in _DUMPS.items()},
    }


def _dump(head: str, _request: Request) -> Response:
    return responses.plain_text(head)


def _profiles(request: Request) -> Response:
    if request.info.path != "/debug/pprof/":
        response = responses.http_error(404, "Unknown profile")
        response.headers.append(("X-Go-Pprof", "1"))
        return response
    page = "<html>\n<head>\n<title>/debug/pprof/</title>\n</head>\n<body>\n/debug/pprof/\n</body>\n</html>\n"
    return Response(200, [("Content-Type", HTML), responses.NO_SNIFFING], page.encode())


def _flags(_request: Request) -> Response:
    page = (
        "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n<table>\n"
        "<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n"
    )
    return Response(200, [("Content-Type", HTML)], page.encode())


#: Endpoints by path prefix.
PREFIXES: Final[dict[str, Handler]] = {"/debug/pprof/": _profiles, "/debug/flags/": _flags}


def _redirect_to_profiles(request: Request) -> Response:
    """Redirects /debug/pprof; the body is written for GET only."""
    location = "/debug/pprof/"
    if request.method not in ("GET", "HEAD"):
        return Response(302, [("Location", location)], b"")
    body = f'<a href="{location}">Found</a>.\n\n'.encode()
    return Response(302, [("Content-Type", HTML), ("Location", location)], body)


def _verbosity(request: Request) -> Response:
    """Sets the log verbosity, which has no effect."""
    code, text = 200, ""
    if request.method != "PUT":
        code, text = 406, "unsupported http method"
    else:
        level = request.read_body().decode("utf-8", "replace")
        if level.isascii() and level.isdigit():
            text = f"successfully set klog.logging.verbosity to {level}"
        else:
            code, text = 400, f'strconv.ParseUint: parsing "{level}": invalid syntax'
    response = responses.plain_text(f"{text}\n", code)
    response.headers[:] = [("Content-Type", negotiation.TEXT), responses.NO_SNIFFING]
    return response


# --- z-pages ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class _PageOffer(Offer):
    """The media types of a z-page: plain text, and the structured types."""

    kind: str = ""

    @property
    def media_types(self) -> tuple[str, ...]:
        types = (negotiation.JSON, negotiation.YAML, negotiation.TEXT)
        return (*types, negotiation.CBOR) if self.cbor else types

    def allows(self, media_type: str, target: Target | None) -> bool:
        if target is None or media_type == negotiation.TEXT:
            return target is None and media_type == negotiation.TEXT
        return target.group == _GROUP and target.kind == self.kind and target.version in _VERSIONS


def _negotiate_page(offer: _PageOffer, page: Callable[[Request, MediaType], Response], request: Request) -> Response:
    """Returns the page as text or in a structured media type; otherwise a 406, which is never Protobuf."""
    accept = request.headers.get("accept") or "*/*"
    try:
        chosen = offer.output(accept, pretty=responses.wants_pretty(request.headers, request.query))
    except StatusError as error:
        return responses.error_response(error, request.headers, request.query, cbor=offer.cbor, protobuf=False)
    return page(request, chosen)


def _page(request: Request, kind: str, content: dict[str, Any], chosen: MediaType) -> Response:
    assert chosen.target is not None
    group, version = chosen.target.group, chosen.target.version
    if version == _DEPRECATED:
        request.warnings.append(f"This version of the {kind.lower()} endpoint is deprecated. Please use a newer version.")
    document = {"kind": kind, "apiVersion": f"{group}/{version}", "metadata": {"name": "apiserver"}, **content}
    media_type = f"{chosen.media_type};g={group};v={version};as={kind}"
    return Response(200, [("Content-Type", media_type)], responses.encode_object(document, "", chosen))


def _text_page(name: str, lines: list[str]) -> Response:
    return responses.plain_text("\n".join([f"\napiserver {name}", _NOT_STABLE, *lines, ""]))


def _statusz(clock: Clock, started: datetime, emulation: Emulation, request: Request, chosen: MediaType) -> Response:
    seconds = int((clock.now() - started).total_seconds())
    binary, go_version = git_version(emulation.version).removeprefix("v"), version_info(emulation.version)["goVersion"]
    version = emulation.emulated
    if chosen.target is None:
        hours, minutes = divmod(seconds // 60, 60)
        return _text_page(
            "statusz",
            [
                "",
                f"Started: {started.astimezone(UTC).strftime('%a %b %d %H:%M:%S UTC %Y')}",
                f"Up: {hours} hr {minutes:02} min {seconds % 60:02} sec",
                f"Go version: {go_version}",
                f"Binary version: {binary}",
                f"Emulation version: {version}",
                f"Paths: {' '.join(_PATHS)}",
            ],
        )
    return _page(
        request,
        "Statusz",
        {
            "startTime": print_time(started),
            "uptimeSeconds": seconds,
            "goVersion": go_version,
            "binaryVersion": binary,
            "emulationVersion": version,
            "paths": list(_PATHS),
        },
        chosen,
    )


def _flagz(emulation: Emulation, request: Request, chosen: MediaType) -> Response:
    return _text_page("flagz", []) if chosen.target is None else _page(request, "Flagz", {"flags": {}}, chosen)
