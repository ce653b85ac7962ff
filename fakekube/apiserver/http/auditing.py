"""Collects the data of audit events from the WSGI environment of a request and from its response.

The object of a response is decoded from its bytes: responses are joined from parts that are encoded once, and only
the audit level RequestResponse needs the whole object.

Specified by: k8s.io/apiserver/pkg/endpoints/filters/{audit,authn_audit,request_deadline}.go, apimachinery/pkg/util/net/http.go
(SourceIPs).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.codecs import DecodeError, cbor, json, yaml
from fakekube.apimachinery.codecs.document import Chunks
from fakekube.apiserver.endpoints.request import RequestInfo, Response
from fakekube.apiserver.http.request_info import is_long_running
from fakekube.net.streams import StreamDecorator
from fakekube.net.wsgi import Environment, request_uri

if TYPE_CHECKING:
    from fakekube.apiserver.audit.auditor import AuditContext
    from fakekube.net.streams import Stream


_LOOPBACK: Final = "127.0.0.1"


def facts_of(environ: Environment, audit_id: str) -> dict[str, Any]:
    """Returns the fields of an event that describe the request."""
    return {
        "auditID": audit_id,
        "requestURI": request_uri(environ),
        "sourceIPs": _source_addresses(environ),
        "userAgent": environ.get("HTTP_USER_AGENT", ""),
    }


def _source_addresses(environ: Environment) -> list[str]:
    """Returns the source IPs of a request: those of X-Forwarded-For and X-Real-Ip, then the remote address."""
    named = [part.strip() for part in environ.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    real, peer = environ.get("HTTP_X_REAL_IP", "").strip(), environ.get("REMOTE_ADDR") or _LOOPBACK
    found = [address for address in named if _is_address(address)]
    if _is_address(real) and real not in found:
        found.append(real)
    if peer not in found[-1:]:
        found.append(peer)
    return found


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


# --- Responses --------------------------------------------------------------------------------------------------------


def write_event(audit: AuditContext, info: RequestInfo, annotations: Mapping[str, tuple[str, str]], response: Response) -> None:
    """Writes the audit event of a response; for a stream, when it ends."""
    for key, (level, value) in annotations.items():
        audit.annotate(key, value, level)
    body = response.body
    if not isinstance(body, bytes | Chunks):
        audit.emit_response_started(response.status)
        response.body = _AuditedStream(body, audit)
        return
    found = _object_of(response, bytes(body) if isinstance(body, bytes) else b"".join(body), wanted=audit.wants_answer)
    if found is not None:
        audit.response_object(found)
    if is_long_running(info):
        audit.emit_response_started(response.status)
    audit.emit_response_complete(response.status)


def _object_of(response: Response, body: bytes, *, wanted: bool) -> Any:
    """Decodes the object of a response; None if it has none, or the audit level does not need it. A Status is always decoded."""
    if not body or response.status == _NOT_ACCEPTABLE or not (wanted or response.status >= 400 or len(body) < _SMALL):
        return None
    media_type = next((value for name, value in response.headers if name.lower() == "content-type"), "").partition(";")[0]
    read = _READERS.get(media_type)
    if read is None:
        return None
    try:
        value = read(body)
    except (DecodeError, ValueError):
        return None
    if not isinstance(value, dict) or "kind" not in value:
        return None
    return value if wanted or value["kind"] == "Status" else None


#: The real server does not treat bodies of this media type as objects.
_NOT_ACCEPTABLE: Final = 406
#: The maximal size of a successful Status, in bytes.
_SMALL: Final = 2048

_READERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "application/json": lambda body: json.loads(body)[0],
    "application/yaml": lambda body: yaml.loads(body)[0],
    "application/cbor": cbor.loads,
}


class _AuditedStream(StreamDecorator):
    """A stream that writes an audit event when it ends."""

    def __init__(self, stream: Stream, audit: AuditContext) -> None:
        super().__init__(stream)
        self._audit = audit

    def take(self) -> list[bytes]:
        frames = self._stream.take()
        if not frames and self._stream.ended:
            self._audit.emit_response_complete()
        return frames

    def close(self) -> None:
        super().close()
        self._audit.emit_response_complete()

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._stream
        finally:
            self._audit.emit_response_complete()
