"""One exchange: a request, and its answer as far as it has come.

An exchange is made when a request comes in and filled in on the way. Bodies are kept as the bytes that were sent and decoded when
somebody looks; those beyond `KEPT_BYTES` are not kept.

Invariant: nothing here is read before a test looks at it, so that recording costs next to nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from fakekube.client.client import OWN
from fakekube.clock import time_of
from fakekube.codecs.chunks import Chunks
from fakekube.powers.bodies import decoded, decoded_event
from fakekube.registry.request import RequestInfo

if TYPE_CHECKING:
    from fakekube.clock import Clock

__all__ = ["FAULTS_USER_AGENT", "KEPT_BYTES", "Exchange"]

#: Of the writes of faults.
FAULTS_USER_AGENT = "fakekube-faults"

#: The largest body that is kept, of a request or of an answer.
KEPT_BYTES = 1 << 20

_PREFIX = "HTTP_"


class Exchange:
    """See the module. What is not known yet has the value of the class."""

    info: RequestInfo | None = None
    """What the request is about; None if that could not be told."""
    user: str = ""
    """Who asks, after impersonation; "" if nobody was authenticated."""
    status: int | None = None
    """Of the answer; None until there is one."""
    seconds: float | None = None
    """Real time from the request to the answer, or to the head of a watch."""
    raw_body: bytes = b""
    raw_answer: bytes | Chunks | None = None
    """None for a watch, and for a body that was too large to be kept."""
    answer_headers: Sequence[tuple[str, str]] = ()
    faults: Sequence[str] = ()
    """Labels or ids of all faults that met the request."""
    fault: str | None = None
    """Of the fault that decided the answer."""
    events: int | None = None
    """Of a watch: how many events it has delivered."""
    ended: str | None = None
    """Of a watch: why it ended; None while it is open."""
    ended_at: float | None = None
    """Of a watch: when it ended, by `time.monotonic()`."""
    last_frame: bytes = b""
    frames: list[bytes] | None = None
    """Of a watch: all that it has delivered, if the recorder keeps them (`Recorder.keep_frames`)."""
    _created_name: str | None = None

    def __init__(self, number: int, environ: Mapping[str, Any], path: str, clock: Clock) -> None:
        """
        Args:
            number: counts the exchanges of a cluster.
            environ: the WSGI environment of the request.
            path: decoded.
            clock: of the cluster.
        """
        self.number = number
        self.path = path
        self.began = time.monotonic()
        self._reading = clock.reading
        self._environ = environ

    @property
    def started(self) -> datetime:
        """When the request came in, by the cluster's clock."""
        return time_of(self._reading, self.began)

    @property
    def method(self) -> str:
        return str(self._environ["REQUEST_METHOD"])

    @property
    def own(self) -> bool:
        """Was it asked by the cluster's own controllers, or by a client of the same process?"""
        return OWN in self._environ

    @property
    def of_fault(self) -> bool:
        """Was it sent by a fault, as somebody else?"""
        return OWN in self._environ and self.agent == FAULTS_USER_AGENT

    # ------------------------------------------------------------ what it is about

    @property
    def verb(self) -> str:
        """The verb of a request about a resource, else the lower-case method."""
        return self.info.verb if self.info is not None else self.method.lower()

    @property
    def is_resource_request(self) -> bool:
        return self.info is not None and self.info.is_resource_request

    @property
    def resource(self) -> str:
        """The plural; "" for requests that are not about resources."""
        return self.info.resource if self.info is not None else ""

    @property
    def group(self) -> str:
        return self.info.group if self.info is not None else ""

    @property
    def subresource(self) -> str:
        return self.info.subresource if self.info is not None else ""

    @property
    def namespace(self) -> str:
        return self.info.namespace if self.info is not None else ""

    @property
    def name(self) -> str:
        """In the path, or in the body of a create."""
        if self.info is None or self.info.name or self.info.verb != "create":
            return self.info.name if self.info is not None else ""
        if self._created_name is None:
            if not self.raw_body:  # it may not have been read yet
                return ""
            body = self.body
            metadata = body.get("metadata") if isinstance(body, dict) else None
            self._created_name = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""
        return self._created_name

    @property
    def agent(self) -> str:
        """The User-Agent."""
        return str(self._environ.get("HTTP_USER_AGENT", ""))

    @property
    def token(self) -> str:
        """The bearer token of the request; "" without one."""
        kind, _, token = str(self._environ.get("HTTP_AUTHORIZATION", "")).partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""

    @property
    def headers(self) -> dict[str, str]:
        """Of the request, by lower-case name."""
        return {
            name.removeprefix(_PREFIX).replace("_", "-").lower(): value
            for name, value in self._environ.items()
            if name.startswith(_PREFIX)
        }

    @property
    def content_type(self) -> str:
        """Of the body of the request; "" if it has none."""
        return self._environ.get("CONTENT_TYPE") or ""

    @property
    def query(self) -> dict[str, str]:
        """The first value of each parameter."""
        query = parse_qs(self._environ.get("QUERY_STRING", ""), keep_blank_values=True)
        return {name: values[0] for name, values in query.items()}

    # ------------------------------------------------------------ bodies

    @property
    def body(self) -> Any:
        """The decoded body of the request; None if there is none, bytes if it cannot be decoded."""
        return decoded(self.raw_body, self.content_type)

    @property
    def answer_type(self) -> str:
        """The Content-Type of the answer."""
        return next((value for name, value in self.answer_headers if name == "Content-Type"), "")

    @property
    def answer(self) -> Any:
        """The decoded body of the answer; None for a watch or one that was too large, bytes if it cannot be decoded."""
        answer = self.raw_answer
        if answer is None:
            return None
        return decoded(answer if isinstance(answer, bytes) else b"".join(answer), self.answer_type)

    @property
    def revision(self) -> int | None:
        """The resourceVersion in the metadata of the answer."""
        return _revision_of(self.answer)

    @property
    def last_revision(self) -> int | None:
        """Of a watch: the resourceVersion of the last event."""
        return _revision_of(decoded_event(self.last_frame, self.answer_type))

    def end(self, why: str) -> None:
        """Of a watch: it ends now, unless it has ended before."""
        if self.ended is None:
            self.ended = why
            self.ended_at = time.monotonic()

    def __str__(self) -> str:
        state = "in flight" if self.status is None else str(self.status)
        query = self._environ.get("QUERY_STRING")
        asked = f"?{query}" if query else ""
        fault = f", fault {self.fault}" if self.fault else ""
        return f"#{self.number} {self.verb} {self.path}{asked} by {self.user or 'nobody'} ({self.agent}): {state}{fault}"


def _revision_of(value: Any) -> int | None:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    text = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return int(text) if isinstance(text, str) and text.isdigit() else None
