"""Asks a server in a pod for its health: one call of grpc.health.v1.Health/Check over HTTP/2.

Invariant: a call ends within its limit, and reads at most `_MAX_BYTES`.

Specified by: pkg/probe/grpc; grpc.health.v1 (HealthCheckRequest, HealthCheckResponse), PROTOCOL-HTTP2 of gRPC.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import hpack

from fakekube.apimachinery.codecs.protobuf.wire import encode_varint
from fakekube.net.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADER_BYTES,
    HEADERS,
    MAX_FRAME_BYTES,
    PADDED,
    PING,
    PREFACE,
    PRIORITY_FLAG,
    RST_STREAM,
    SETTINGS,
    frame,
    remove_padding,
)

#: The bytes that are read at most of an answer.
_MAX_BYTES: Final = 1 << 20
#: The length of the prefix of a message, and of the priority in a HEADERS frame.
_PREFIX = _PRIORITY = 5
_PATH: Final = "/grpc.health.v1.Health/Check"
#: grpc.health.v1.HealthCheckResponse.ServingStatus
_STATUSES: Final = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_SERVING: Final = 1
#: google.golang.org/grpc/codes
_UNIMPLEMENTED: Final = 12
_CODES: Final = (
    *("OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied"),
    *("ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss"),
    "Unauthenticated",
)


class NoHTTP2Error(Exception):
    """The server does not speak HTTP/2; gRPC tries again until the probe's time is over."""


def check_health(
    send: Callable[[bytes], None],
    receive: Callable[[float], bytes],
    *,
    authority: str,
    service: str,
    agent: str,
    limit: float,
    patience: float,
) -> str | None:
    """Calls Check. Returns why the server is not healthy; None if it is.

    Args:
        send: writes to the server.
        receive: reads from the server: waits at most some real seconds; returns b"" at the end. Raises TimeoutError, OSError.
        authority: host and port of the server.
        service: the name that the probe asks for.
        agent: the User-Agent.
        limit: the maximum time of the whole call, in seconds, as the message says.
        patience: the same in real seconds.

    Raises NoHTTP2Error, OSError.
    """
    end = time.monotonic() + patience
    fields = [(":method", "POST"), (":scheme", "http"), (":path", _PATH), (":authority", authority)]
    fields += [("content-type", "application/grpc"), ("user-agent", agent), ("te", "trailers")]
    block = hpack.Encoder().encode(fields)
    send(PREFACE + frame(SETTINGS, 0, 0))
    frames = _frames(lambda: receive(max(end - time.monotonic(), 0.001)))
    if next(frames)[0] != SETTINGS:
        raise NoHTTP2Error
    send(frame(SETTINGS, ACK, 0) + frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, END_STREAM, 1, _request(service)))
    try:
        headers, body = _answer(frames, send)
    except TimeoutError:
        return f"timeout: health rpc did not complete within {limit:g}s"
    return _verdict(headers, body)


def _request(service: str) -> bytes:
    name = service.encode()
    message = b"\x0a" + encode_varint(len(name)) + name if name else b""
    return b"\0" + len(message).to_bytes(4, "big") + message


def _frames(receive: Callable[[], bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Yields type, flags and payload of frames. Raises NoHTTP2Error if there is none, and ConnectionError at the end."""
    buffer, total = b"", 0
    while True:
        while len(buffer) < HEADER_BYTES or len(buffer) < HEADER_BYTES + int.from_bytes(buffer[:3], "big"):
            if len(buffer) >= HEADER_BYTES and int.from_bytes(buffer[:3], "big") > MAX_FRAME_BYTES:
                raise NoHTTP2Error
            data = receive()
            total += len(data)
            if not data and total <= len(buffer):
                raise NoHTTP2Error
            if not data or total > _MAX_BYTES:
                raise ConnectionError("error reading from server: EOF")
            buffer += data
        end = HEADER_BYTES + int.from_bytes(buffer[:3], "big")
        yield buffer[3], buffer[4], buffer[HEADER_BYTES:end]
        buffer = buffer[end:]


def _answer(frames: Iterator[tuple[int, int, bytes]], send: Callable[[bytes], None]) -> tuple[dict[str, str], bytes]:
    """Returns header fields with trailers, and the body."""
    decoder, headers, body, block, ends = hpack.Decoder(), dict[str, str](), b"", b"", False
    for kind, flags, content in frames:
        padded = kind in (DATA, HEADERS) and flags & PADDED
        payload = remove_padding(content) if padded else content
        if kind in (DATA, HEADERS):
            ends = bool(flags & END_STREAM)
        if kind == DATA:
            body += payload
        elif kind in (HEADERS, CONTINUATION):
            block += payload[_PRIORITY:] if kind == HEADERS and flags & PRIORITY_FLAG else payload
            if flags & END_HEADERS:
                headers.update((str(name), str(value)) for name, value in decoder.decode(block))
                block = b""
        elif kind == SETTINGS and not flags & ACK:
            send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            send(frame(PING, ACK, 0, payload))
        elif kind in (RST_STREAM, GOAWAY):
            raise ConnectionError("the connection is draining")
        if ends and not block:
            break
    return headers, body


def _verdict(headers: dict[str, str], body: bytes) -> str | None:
    if headers.get(":status", "200") != "200":
        text = f"unexpected HTTP status code received from server: {headers[':status']}"
        return f"error: health rpc probe failed: rpc error: code = Unknown desc = {text}"
    code, text = int(headers.get("grpc-status") or 2), headers.get("grpc-message", "")
    if code == _UNIMPLEMENTED:
        return f"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {text}"
    if code:
        name = _CODES[code] if code < len(_CODES) else f"Code({code})"
        return f"error: health rpc probe failed: rpc error: code = {name} desc = {text}"
    status = _status(body[_PREFIX:])
    if status == _SERVING:
        return None
    shown = _STATUSES[status] if status < len(_STATUSES) else str(status)
    return f'service unhealthy (responded with "{shown}")'


def _status(message: bytes) -> int:
    """Returns the member `status` of a HealthCheckResponse: its only one, an enumeration with the number 1."""
    return message[1] if len(message) > 1 and message[0] == 0x08 else 0
