"""The WSGI environ of a request (PEP 3333), and its body as `wsgi.input`.

In addition to the variables of the PEP there are `REQUEST_URI` (path and query as sent, because PATH_INFO does not distinguish
`%2F` from `/`), `REMOTE_PORT`, `wsgi.input_terminated` (a body without a length can be read to its end), and with TLS the
variables of Apache's mod_ssl. Fields with an underscore in their names are omitted, because they would be confused with
others.

The body of a request as `wsgi.input`: received from the client while the application reads.

Invariant: at most one receive is ahead of the application, so that an application that stops reading bounds the memory of the
server.
"""

from __future__ import annotations

import io
import math
import re
import sys
from typing import IO, TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote_to_bytes

from fakekube.base.caches import LONGEST_TEXT, BoundedCache
from fakekube.net.http1 import BodyError, Fields, Request, RequestParser
from fakekube.net.transport import Transport
from fakekube.net.wsgi import HEADER_NAMES, SHARED_VARIABLES, environ_key

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


MAX_DISCARDED_BYTES = 256 << 10
"""The number of unread bytes that net/http discards to keep a connection (maxPostHandlerReadBytes)."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Waiting(Protocol):
    """What has to know that a thread waits for a client: the connection."""

    deadline: float
    """The time of `time.monotonic()` at which the server aborts the connection."""
    body_due: float
    """The deadline while it waits for the body."""


class Readable(Protocol):
    """A body that arrives in pieces."""

    def read(self, limit: int, /) -> bytes:
        """Returns up to `limit` bytes, `b""` at the end; blocks until there are some."""


def body_stream(body: Readable) -> IO[bytes]:
    """Returns a body as a file for `wsgi.input`."""
    return io.BufferedReader(_Raw(body))


class Body:
    """The body of one HTTP/1.1 request."""

    __slots__ = ("_awaited", "_error", "_framed", "_length", "_parser", "_spool", "_transport", "_waiting")

    def __init__(
        self,
        request: Request,
        parser: RequestParser,
        transport: Transport,
        waiting: Waiting | None = None,
        spool: bytearray | None = None,
    ) -> None:
        """
        Args:
            request: the request.
            parser: the parser of the connection, which has just returned the request.
            transport: the transport of the connection.
            waiting: gets its deadline for the body while this thread waits for the client, until `detach`.
            spool: what was received of the body before the application was called; then `100 Continue` was sent.
        """
        assert parser.current_body is not None
        self._framed = parser.current_body
        self._waiting = waiting
        self._spool = spool
        self._parser = parser
        self._transport = transport
        self._awaited = request.fields.expects_continue and spool is None
        self._error: BodyError | None = None
        self._length = request.fields.length

    def open(self) -> IO[bytes]:
        """Returns the file for `wsgi.input`. Called once."""
        if self._spool is not None and self._framed.unread == 0:
            return io.BytesIO(self._spool)
        length = self._length
        if length is not None and not self._awaited and length <= len(self._parser.buffer):
            return io.BytesIO(self._framed.read(length) or b"")
        return body_stream(self)

    def read(self, limit: int) -> bytes:
        """Returns up to `limit` bytes, `b""` at the end; sends `100 Continue` if the client waits for it.

        Raises BodyError if the framing is invalid, or the client has disconnected.
        """
        if self._error is not None:
            raise self._error
        if self._spool:
            piece = bytes(self._spool[:limit])
            del self._spool[:limit]
            return piece
        try:
            if self._awaited:
                self._awaited = False
                self._transport.send(CONTINUE)
            while (received := self._framed.read(limit)) is None:
                data = self._receive()
                if not data:
                    raise BodyError("unexpected EOF")
                self._parser.feed(data)
        except BodyError as error:
            self._error = error
            raise
        return received

    def _receive(self) -> bytes:
        waiting = self._waiting
        if waiting is None:
            return self._transport.receive()
        waiting.deadline = waiting.body_due
        data = self._transport.receive()
        waiting.deadline = math.inf
        return data

    def detach(self) -> None:
        """Forgets the connection, so that the recorder, which keeps environs, does not keep the server in memory."""
        self._waiting = None

    @property
    def unread(self) -> bool:
        """Whether the end of the body has not been reached."""
        return self._framed.unread != 0

    def discard(self) -> bool:
        """Reads the rest of the body; returns False if it is too long or invalid."""
        unread = self._framed.unread
        if self._awaited or self._error is not None or (unread is not None and unread >= MAX_DISCARDED_BYTES):
            return False
        budget = MAX_DISCARDED_BYTES
        try:
            while budget > 0:
                piece = self.read(budget)
                if not piece:
                    return True
                budget -= len(piece)
        except OSError:
            return False
        return self._framed.unread == 0


class NoBody(Body):
    """The body of a request without one."""

    __slots__ = ()
    unread = False

    def __init__(self) -> None:
        """All of its methods are without state."""

    def open(self) -> IO[bytes]:
        return io.BytesIO()

    def discard(self) -> bool:
        return True

    def detach(self) -> None:
        pass


NO_BODY = NoBody()


class _Raw(io.RawIOBase):
    """Adapts a body to `io.RawIOBase`, for `io.BufferedReader`."""

    def __init__(self, body: Readable) -> None:
        self._body = body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        piece = self._body.read(len(view))
        view[: len(piece)] = piece
        return len(piece)


_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?://([^/?]*))?")

_ONCE = frozenset({"accept", "accept-encoding", "authorization", "content-type", "if-none-match", "user-agent"})
"""Fields of which only the first value is used, as by Go's Header.Get; the values of others are joined (RFC 9110, 5.3)."""


def base_environ(server_name: str, server_port: int, scheme: str) -> dict[str, Any]:
    """Returns the variables that are the same for all requests to a server."""
    return {
        "SCRIPT_NAME": "",
        "SERVER_NAME": server_name,
        "SERVER_PORT": str(server_port),
        "SERVER_SOFTWARE": "fakekube",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scheme,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }


_MAX_BLOCKS = 16
#: The variables that `make_environ` sets: it takes less time to copy a dict that has the keys already than to add them.
_OF_ONE_REQUEST = dict.fromkeys(("REQUEST_METHOD", "REQUEST_URI", "PATH_INFO", "QUERY_STRING", "wsgi.input", "wsgi.errors"))


class ConnectionVariables:
    """The variables of a connection, and the environs of the header blocks that its client repeats."""

    __slots__ = ("_by_block", "_of_connection")

    def __init__(self, of_connection: dict[str, Any]) -> None:
        self._of_connection = of_connection
        self._by_block: BoundedCache[tuple[Fields, tuple[int, int]], dict[str, Any]] = BoundedCache(_MAX_BLOCKS)
        """By header block and version; without long blocks, and without those that differ only in their Content-Length."""

    def add(self, variables: dict[str, str]) -> None:
        """Adds variables of the connection, before its first request."""
        self._of_connection |= variables

    def begin_environ(self, request: Request) -> dict[str, Any]:
        """Returns an environ of which only the variables of `_OF_ONE_REQUEST` are to be set.

        What requests with the headers and the version of this one have in common is made once, unless the headers are long.
        """
        fields = request.fields
        model = fields.model or fields
        key = model, request.version
        known = self._by_block.get(key)
        environ = (self._make_common(*key) if known is None else known).copy()
        if fields is not model:
            environ["CONTENT_LENGTH"] = length = str(fields.length)
            if SHARED_VARIABLES in environ:
                environ[SHARED_VARIABLES] = shared = environ[SHARED_VARIABLES].copy()
                shared["CONTENT_LENGTH"] = length
        return environ

    def _make_common(self, fields: Fields, version: tuple[int, int]) -> dict[str, Any]:
        """Makes what the environs of requests with some headers and a version have in common, None for the rest."""
        major, minor = version
        common = {**self._of_connection, **_variables(fields), "SERVER_PROTOCOL": f"HTTP/{major}.{minor}"}
        made = {**common, **_OF_ONE_REQUEST}
        if sum([len(name) + len(value) for name, value in fields.pairs]) <= LONGEST_TEXT:
            made[SHARED_VARIABLES] = common
            self._by_block.add((fields, version), made)
        return made


def make_environ(variables: ConnectionVariables, request: Request, body: IO[bytes]) -> dict[str, Any]:
    """Returns the environ of a request.

    Args:
        variables: those of its connection.
        request: the request.
        body: the value of `wsgi.input`.
    """
    target = request.target
    authority, uri = (None, target) if target.startswith("/") else _split_target(target)
    path, _, query = uri.partition("?")
    if "%" in path:
        path = unquote_to_bytes(path.encode("latin-1")).decode("latin-1")
    environ = variables.begin_environ(request)
    environ["REQUEST_METHOD"] = request.method
    environ["REQUEST_URI"] = uri
    environ["PATH_INFO"] = path
    environ["QUERY_STRING"] = query
    environ["wsgi.input"] = body
    environ["wsgi.errors"] = sys.stderr
    if authority is not None:
        environ["HTTP_HOST"] = authority
        environ.pop(SHARED_VARIABLES, None)
    return environ


def _variables(fields: Fields) -> dict[str, str]:
    """Returns the variables for a header block; computed once for each block."""
    if not fields.variables:
        fields.variables.update(_make_variables(fields))
    return fields.variables


def _make_variables(fields: Fields) -> dict[str, str]:
    variables: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    for name, value in fields.pairs:
        if "_" in name:
            continue
        key = environ_key(name)
        if key not in variables:
            variables[key] = value
        elif name not in _ONCE:
            repeated.setdefault(key, [variables[key]]).append(value)
    for key, values in repeated.items():
        variables[key] = ("; " if key == "HTTP_COOKIE" else ",").join(values)
    if fields.length is None:
        variables.pop("CONTENT_LENGTH", None)
    elif "CONTENT_LENGTH" in variables:
        variables["CONTENT_LENGTH"] = str(fields.length)
    variables[HEADER_NAMES] = " ".join(variables)
    return variables


def _split_target(target: str) -> tuple[str | None, str]:
    """Splits a target that is not a path into its authority, if it has one, and its path with the query."""
    absolute = _ABSOLUTE.match(target)
    if absolute is None:
        return None, target if target == "*" else ""
    uri = target[absolute.end() :]
    return absolute[1], uri if uri.startswith(("/", "?")) else ""
