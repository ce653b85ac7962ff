"""The record of a request and its response, and the name of the actor who sent it.

An exchange is created when a request arrives; the application and the observer fill it in while the request is processed. Bodies
are kept as the bytes that were sent, up to `KEPT_BYTES`, and decoded, in any format, when a property is read. `exchange_data` is
an exchange as plain data, which can be encoded as JSON.

An actor is named by User-Agent and user:

    kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/0000000/deployment-controller   → deployment-controller
    kubectl/v1.36.1 (linux/amd64) kubernetes/abc                                             → kubectl
    my-operator/0.1 (…)                                                                      → my-operator

If several users send the same agent, the first one has the name of the agent, and others are `agent · user`.

Invariant: nothing is parsed or decoded before a property is read, so that recording costs little; a body that cannot be decoded
is returned as the bytes that were sent.

Specified by: k8s.io/client-go/rest/config.go (DefaultKubernetesUserAgent, AddUserAgent).
"""

from __future__ import annotations

import json
import re
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from fakekube.apimachinery.codecs import DecodeError
from fakekube.apimachinery.codecs import json as deep_json
from fakekube.apimachinery.codecs.document import Chunks, CompressedText
from fakekube.apiserver.endpoints.request import RequestInfo
from fakekube.base.clock import monotonic_of, time_of
from fakekube.base.golang.timestamps import print_time
from fakekube.controllers.client.client import OWN
from fakekube.net.wsgi import Headers

if TYPE_CHECKING:
    from fakekube.base.clock import Clock


#: The length of an event precedes it in Protobuf, in this number of bytes.
_PROTOBUF_HEAD = 4


def decode_body(body: bytes, content_type: str) -> Any:
    """Returns the object in a body; None for an empty one, bytes for one that cannot be decoded."""
    if not body:
        return None
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        if "protobuf" in media_type:
            from fakekube.apimachinery.codecs import protobuf

            return protobuf.loads(body, "", "")
        if "cbor" in media_type:
            from fakekube.apimachinery.codecs import cbor

            return cbor.loads(body)
        if "yaml" in media_type:
            from fakekube.apimachinery.codecs import yaml

            return yaml.loads(body)[0]
        return deep_json.reread(body)
    except DecodeError:
        return body


def decode_event(frame: bytes, content_type: str) -> tuple[str, Any]:
    """Returns the type and the object of an event of a watch; ("", None) if it cannot be decoded."""
    if "protobuf" in content_type:
        from fakekube.apimachinery.codecs import protobuf

        try:
            type_, document = protobuf.read_event(frame[_PROTOBUF_HEAD:])
            return type_, decode_body(document, content_type)
        except DecodeError:
            return "", None
    event = decode_body(frame, content_type)
    return (str(event.get("type", "")), event.get("object")) if isinstance(event, dict) else ("", None)


#: The user agent of requests that faults send.
FAULTS_USER_AGENT = "fakekube-faults"
#: The agent with which the API server calls webhooks.
WEBHOOKS_USER_AGENT = "kube-apiserver-admission"

#: The bytes of the largest body that is kept, of a request or of a response.
KEPT_BYTES = 1 << 20


class Exchange:
    """One request and its response. Attributes that are not known yet have the values of the class."""

    info: RequestInfo | None = None
    """The parsed path; None if it could not be parsed."""
    user: str = ""
    """The name of the user after impersonation; "" if the request was not authenticated."""
    status: int | None = None
    """The status code of the response; None until there is one."""
    seconds: float | None = None
    """Real seconds from the request to the response, or to the header of the response of a watch."""
    raw_body: bytes = b""
    """The body of the request as it was sent."""
    raw_answer: bytes | Chunks | CompressedText | None = None
    """The body of the response; None for a watch, and for a body that was too large to be kept."""
    answer_headers: Sequence[tuple[str, str]] = ()
    faults: Sequence[str] = ()
    """Labels or ids of all faults that happened to the request."""
    fault: str | None = None
    """The label or id of the fault that decided the response."""
    events: int | None = None
    """Of a watch: the number of events that were delivered."""
    ended: str | None = None
    """Of a watch: the reason why it ended; None while it is open."""
    ended_at: float | None = None
    """Of a watch: the time of `time.monotonic()` when it ended."""
    last_frame: bytes = b""
    """Of a watch: the last event as it was sent."""
    wrote: list[int] = []  # noqa: RUF012 - replaced, and never changed, for an exchange without changes
    """The revisions of the changes that it made, in order."""
    cause: Cause | None = None
    """What the journal knows of it; set with its first change."""
    within: Exchange | None = None
    """While it is in progress: the exchange in the same thread within which it was sent, such as by a fault."""
    frames: list[bytes] | None = None
    """Of a watch: all delivered frames, if the recorder keeps them (`Recorder.keep_frames`)."""
    frame_times: list[float] | None = None
    """The times of `time.monotonic()` at which `frames` were delivered."""
    deliveries: Deliveries | None = None
    """Of a watch of a client: which versions it got, and when."""
    _created_name: str | None = None

    def __init__(self, number: int, environ: Mapping[str, Any], path: str, clock: Clock) -> None:
        """
        Args:
            number: the sequence number among the exchanges of the cluster.
            environ: the WSGI environment of the request.
            path: the decoded path.
            clock: of the cluster.
        """
        self.number = number
        self.path = path
        self.method: str = environ["REQUEST_METHOD"]
        self.raw_query: str = environ.get("QUERY_STRING", "")
        """The query as it was sent."""
        self.began = time.monotonic()
        self._reading = clock.reading
        self._environ = environ

    @property
    def is_over(self) -> bool:
        """Whether nothing will change any more: there is the response, and of a watch its end."""
        has_end = self.raw_answer is not None or self.ended is not None or self.verb != "watch"
        return has_end and self.seconds is not None and "observer" not in self.__dict__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles an exchange that is over."""
        attributes = self.__dict__.copy()
        for name in _OF_PROGRESS:
            attributes.pop(name, None)
        return _restore, (attributes,)

    @property
    def started(self) -> datetime:
        """The time at which the request arrived, by the cluster's clock."""
        return time_of(self._reading, self.began)

    @property
    def arrived(self) -> float:
        """The time at which the request arrived, in seconds of the cluster's monotonic clock."""
        return monotonic_of(self._reading, self.began)

    @property
    def own(self) -> bool:
        """Whether the cluster's own controllers or a client in the same process sent the request."""
        return OWN in self._environ

    @property
    def of_fault(self) -> bool:
        """Whether a fault sent the request."""
        return OWN in self._environ and self.agent == FAULTS_USER_AGENT

    # --- The request --------------------------------------------------------------------------------------------------

    @property
    def verb(self) -> str:
        """The verb of a request about a resource, else the lower-case method."""
        return self.info.verb if self.info is not None else self.method.lower()

    @property
    def is_resource_request(self) -> bool:
        """Whether the request is about a resource."""
        return self.info is not None and self.info.is_resource_request

    @property
    def resource(self) -> str:
        """The plural; "" for requests that are not about resources."""
        return self.info.resource if self.info is not None else ""

    @property
    def group(self) -> str:
        """The API group; "" for the core group, and for requests that are not about resources."""
        return self.info.group if self.info is not None else ""

    @property
    def subresource(self) -> str:
        """The subresource; "" for the main resource."""
        return self.info.subresource if self.info is not None else ""

    @property
    def namespace(self) -> str:
        """The namespace; "" for all, and for resources without one."""
        return self.info.namespace if self.info is not None else ""

    @property
    def name(self) -> str:
        """The name in the path, or in the body of a create; "" if there is none."""
        if self.info is None:
            return ""
        if self.info.name or self.info.verb != "create":
            return self.info.name
        if self._created_name is None:
            if not self.raw_body:  # it may not have been read yet
                return ""
            body = self.body
            metadata = body.get("metadata") if isinstance(body, dict) else None
            self._created_name = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""
        return self._created_name

    @property
    def protocol(self) -> str:
        """The protocol, such as HTTP/1.1 or HTTP/2.0."""
        return str(self._environ.get("SERVER_PROTOCOL", ""))

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
        """The headers of the request by lower-case name."""
        return dict(Headers(self._environ))

    @property
    def content_type(self) -> str:
        """The Content-Type of the request; "" if it has none."""
        return self._environ.get("CONTENT_TYPE") or ""

    @property
    def query(self) -> dict[str, str]:
        """The first value of each query parameter."""
        query = parse_qs(self.raw_query, keep_blank_values=True)
        return {name: values[0] for name, values in query.items()}

    # --- Bodies -------------------------------------------------------------------------------------------------------

    @property
    def body(self) -> Any:
        """The decoded body of the request; None if there is none, bytes if it cannot be decoded."""
        return decode_body(self.raw_body, self.content_type)

    @property
    def answer_type(self) -> str:
        """The Content-Type of the response."""
        return next((value for name, value in self.answer_headers if name == "Content-Type"), "")

    @property
    def answer(self) -> Any:
        """The decoded body of the response; None for a watch or a body that is too large, bytes if it cannot be decoded."""
        answer = self.raw_answer
        if answer is None:
            return None
        return decode_body(answer if isinstance(answer, bytes) else b"".join(answer), self.answer_type)

    @property
    def revision(self) -> int | None:
        """The resourceVersion in the metadata of the response."""
        return _revision_of(self.answer)

    @property
    def last_revision(self) -> int | None:
        """The resourceVersion of the last event of a watch."""
        return _revision_of(decode_event(self.last_frame, self.answer_type)[1])

    def record_end(self, why: str) -> None:
        """Records the end of a watch; later calls have no effect."""
        if self.ended is None:
            self.ended_at = time.monotonic()
            self.ended = why  # from now on it is over

    def __str__(self) -> str:
        state = "in flight" if self.status is None else str(self.status)
        asked = f"?{self.raw_query}" if self.raw_query else ""
        fault = f", fault {self.fault}" if self.fault else ""
        return f"#{self.number} {self.verb} {self.path}{asked} by {self.user or 'nobody'} ({self.agent}): {state}{fault}"


#: What the observer notes in an exchange in progress.
_OF_PROGRESS: Final = ("_hits", "request")


def _restore(attributes: dict[str, Any]) -> Exchange:
    made = Exchange.__new__(Exchange)
    made.__dict__.update(attributes)
    return made


#: The number of latest deliveries of a watch that are kept.
KEPT_DELIVERIES: Final = 10_000


class Deliveries:
    """The versions that a watch has delivered, in the batches in which it did; watches share the batches.

    Invariant: the latest `KEPT_DELIVERIES` are kept, and at most twice as many and one batch.
    """

    __slots__ = ("_columns", "_count")

    def __init__(self) -> None:
        self._columns: tuple[list[int | Sequence[int]], array[float]] = ([], array("d"))
        """The revisions of each batch, of most batches one, and the times; replaced together."""
        self._count = 0

    def add(self, revisions: Sequence[int], time: float) -> None:
        """Adds versions that were delivered at one time, in seconds of the cluster's monotonic clock."""
        count = len(revisions)
        batches, times = self._columns
        times.append(time)
        batches.append(revisions[0] if count == 1 else revisions)
        self._count += count
        if self._count > 2 * KEPT_DELIVERIES:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        batches, times = self._columns
        dropped = 0
        while self._count - (size := len(_revisions_of(batches[dropped]))) >= KEPT_DELIVERIES:
            self._count -= size
            dropped += 1
        self._columns = batches[dropped:], times[dropped:]

    def list_deliveries(self) -> list[tuple[int, float]]:
        """Returns revisions and times, the oldest first."""
        pairs = zip(*self._columns, strict=False)  # the newest may be added meanwhile
        return [(revision, time) for batch, time in pairs for revision in _revisions_of(batch)][-KEPT_DELIVERIES:]

    def find_time(self, revision: int) -> float | None:
        """Returns the time at which a revision was delivered; None if it was not, or is not kept."""
        pairs = zip(*self._columns, strict=False)
        return next((time for batch, time in pairs if revision in _revisions_of(batch)), None)


def _revisions_of(batch: int | Sequence[int]) -> Sequence[int]:
    return (batch,) if isinstance(batch, int) else batch


#: The digits of the largest revision (2^128), and one more.
REVISION_DIGITS: Final = 40


def _revision_of(value: Any) -> int | None:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    text = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) <= REVISION_DIGITS else None


def json_line(value: Any) -> bytes:
    """Encodes a value as a line of JSON; integers keep all their digits."""
    try:
        return json.dumps(value, separators=(",", ":"), default=_text_of).encode() + b"\n"
    except RecursionError:  # a client sent a deeply nested object
        return deep_json.dumps(value) + b"\n"


def _text_of(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def exchange_data(one: Exchange) -> dict[str, Any]:
    """Returns an exchange as plain data; bodies that cannot be decoded are strings."""
    found: dict[str, Any] = {
        "number": one.number,
        "verb": one.verb,
        "group": one.group,
        "resource": one.resource,
        "subresource": one.subresource,
        "namespace": one.namespace,
        "name": one.name,
        "user": one.user,
        "agent": one.agent,
        "method": one.method,
        "path": one.path,
        "query": one.query,
        "headers": one.headers,
        "body": _printable(one.body),
        "status": one.status,
        "answer": _printable(one.answer),
        "revision": one.revision,
        "started": print_time(one.started),
        "seconds": one.seconds,
        "fault": one.fault,
        "faults": list(one.faults),
    }
    if one.verb == "watch":
        found |= {"events": one.events, "last_revision": one.last_revision, "ended": one.ended}
    return found


def _printable(value: Any) -> Any:
    return _text_of(value) if isinstance(value, bytes) else value


@dataclass(slots=True, eq=False)  # not frozen: it is made for every write
class Cause:
    """The cause of a change: what remains known of a request after it was dropped, or the reason of a change without one.

    It is immutable, and refers to no body.
    """

    number: int
    """Of the request; -1 if there is none."""
    info: RequestInfo | None = None
    agent: str = ""
    user: str = ""
    own: bool = False
    key: str = ""
    """The bucket and the key of the first change: `pods default/web`."""
    fault: str = ""
    """The label or id of the fault that sent the request."""
    reason: str = ""
    """Why there was a change without a request: `load`, `replay`, `cluster` …"""


# --- The actor of a request: who sent it, by User-Agent and user -----------------------------------------------------


CLIENT, CLUSTER, FAULT = "client", "cluster", "fault"

#: The part of a User-Agent that names the component, after that with the commit.
_COMPONENT: Final = re.compile(r" kubernetes/[^/ ]+/(?:.*/)?([^/ ]+)\s*$")
#: What the agents of the cluster's own controllers, nodes and API servers contain, and those of a test's clients in the same
#: process do not.
_OF_KUBERNETES: Final = " kubernetes/"
#: The numbers of names that are kept, and of characters of one.
_MAX_NAMES: Final = 10_000
_MAX_LENGTH: Final = 200


class Actors:
    """The names of the actors of one cluster."""

    def __init__(self) -> None:
        self._users: dict[str, str] = {}
        """Name of an agent → its first user."""
        self._names: dict[tuple[str, str, bool, str], tuple[str, str]] = {}

    def name_actor(self, agent: str, user: str, own: bool, fault: str = "") -> tuple[str, str]:
        """Returns the name of an actor, and its side: `client`, `cluster` or `fault`.

        Args:
            agent, user: of the request.
            own: whether it came from this process.
            fault: the label or id of the fault that sent it.
        """
        known = self._names.get((agent, user, own, fault))
        if known is None:
            known = self._name(agent, user, own, fault)
            if len(self._names) < _MAX_NAMES:
                self._names[agent, user, own, fault] = known
        return known

    def list_actors(self) -> list[dict[str, str]]:
        """Returns the actors so far, with their sides."""
        return [{"name": name, "side": side} for name, side in dict.fromkeys(list(self._names.values()))]

    def _name(self, agent: str, user: str, own: bool, fault: str) -> tuple[str, str]:
        if own and agent == FAULTS_USER_AGENT:
            return f"fault {fault}".strip(), FAULT
        name = agent_name(agent)
        first = self._users.setdefault(name, user) if len(self._users) < _MAX_NAMES else user
        shown = name if not user or user == first else f"{name} · {user[:_MAX_LENGTH]}"
        return shown, CLUSTER if own and (_OF_KUBERNETES in agent or agent == WEBHOOKS_USER_AGENT) else CLIENT


def agent_name(agent: str) -> str:
    """Returns the short name of a User-Agent."""
    component = _COMPONENT.search(agent)
    if component is not None:
        return component[1][:_MAX_LENGTH]
    first = agent.split(" ", 1)[0].partition("/")[0]
    return first[:_MAX_LENGTH] or "no agent"
