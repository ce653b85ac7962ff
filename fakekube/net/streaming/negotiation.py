"""The handshake of SPDY upgrades: negotiates the version of the protocol.

Specified by: k8s.io/streaming/pkg/httpstream/httpstream.go (Handshake), spdy/upgrade.go (UpgradeResponse).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fakekube.base.golang.strconv import go_quote

_VERSION_HEADER = "X-Stream-Protocol-Version"
_ACCEPTED_HEADER = "X-Accepted-Stream-Protocol-Versions"
_SPDY = "SPDY/3.1"


class HandshakeError(Exception):
    """The negotiation failed: the status code, the text and additional headers of the response."""

    def __init__(self, code: int, text: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.headers = headers


def negotiate(headers: Mapping[str, str], supported: Sequence[str]) -> str:
    """Returns the first protocol of the client that is supported.

    Args:
        headers: of the request, by names in lower case.

    Raises:
        HandshakeError: none is supported, or the request is not an upgrade to SPDY.
    """
    offered = headers.get(_VERSION_HEADER.lower())
    if offered is None:
        count = len(headers)
        raise HandshakeError(400, f"unable to upgrade: header {_VERSION_HEADER} does not exist in request with {count} headers")
    names = [name.strip(" ") for name in offered.split(",") if name.strip(" ")]
    if not names:
        raise HandshakeError(400, f"unable to upgrade: header {_VERSION_HEADER} contains [{offered}], but no valid protocols")
    chosen = next((name for name in names if name in supported), None)
    if chosen is None:
        text = f"client supports [{' '.join(names)}], server accepts [{' '.join(supported)}]"
        accepted = [(_ACCEPTED_HEADER, name) for name in supported]
        raise HandshakeError(403, f"unable to upgrade: unable to negotiate protocol: {text}", accepted)
    if _SPDY.lower() not in headers.get("upgrade", "").lower():
        pairs = [(_canonical_header_key(name), value) for name, value in sorted(headers.items())]
        dump = ", ".join(f"{go_quote(name)}:[]string{{{go_quote(value)}}}" for name, value in pairs)
        text = f"unable to upgrade: missing upgrade headers in request: http.Header{{{dump}}}"
        raise HandshakeError(400, text, [(_VERSION_HEADER, chosen)])
    return chosen


def _canonical_header_key(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))


def switching_headers(protocol: str) -> list[tuple[str, str]]:
    """Returns the headers of the 101 response."""
    return [("Connection", "Upgrade"), ("Upgrade", _SPDY), (_VERSION_HEADER, protocol)]
