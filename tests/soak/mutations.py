"""Damaged HTTP/1.1 and HTTP/2 input: `python -m tests.soak.mutations [--http2] [--seconds 60] [--seed N]`.

Valid requests, and for HTTP/2 valid frames, are changed by chance: bytes flipped, removed, doubled, cut off, replaced by what often
breaks parsers. Whatever comes, the server answers with HTTP or closes the connection; it gives 500 only where the real server does
(`REAL_ERRORS`); it writes no traceback; and it answers a healthy request at once. The number of an attempt and the seed give the same bytes again.
"""

from __future__ import annotations

import argparse
import random
import socket
import ssl
import struct
import time
from dataclasses import dataclass, field

from tests.benchmarks.wire_http2 import PREFACE, frame, literal
from tests.soak.serving import CONFIGMAPS, JsonConnection, ServedCluster, untrusting_context

_BODY = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"k":"v"}},"data":{"x":"1"}}'
_HOST = b"Host: 127.0.0.1\r\n"


def _request(method: bytes, path: bytes, *fields: bytes, body: bytes = b"") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return method + b" " + path + b" HTTP/1.1\r\n" + _HOST + b"".join(one + b"\r\n" for one in fields) + length + b"\r\n" + body


_PATH = CONFIGMAPS.encode()
_CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(_BODY), _BODY)

#: Requests that are valid before they are changed.
REQUESTS = (
    _request(b"GET", _PATH + b"?limit=5&labelSelector=a%3Db"),
    _request(b"GET", _PATH + b"?watch=1&timeoutSeconds=1&resourceVersion=0"),
    _request(b"GET", b"/openapi/v2", b"Accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf", b"Accept-Encoding: gzip"),
    _request(b"GET", b"/api/v1/pods", b"Accept: application/json;as=Table;v=v1;g=meta.k8s.io"),
    _request(b"POST", _PATH, b"Content-Type: application/json", body=_BODY),
    _request(b"POST", _PATH + b"?fieldValidation=Strict", b"Content-Type: application/yaml", body=b"metadata: {name: &a b, x: *a}\n"),
    _request(b"POST", _PATH, b"Content-Type: application/json", b"Transfer-Encoding: chunked") + _CHUNKED,
    _request(b"POST", _PATH, b"Content-Type: application/vnd.kubernetes.protobuf", body=b"k8s\0\n\r\n\x02v1\x12\tConfigMap\x12\x05\n\x03\n\x01a"),
    _request(b"PATCH", _PATH + b"/a", b"Content-Type: application/json-patch+json", body=b'[{"op":"add","path":"/data/y","value":"2"}]'),
    _request(b"PATCH", _PATH + b"/a?fieldManager=m&force=true", b"Content-Type: application/apply-patch+yaml", body=_BODY),
    _request(b"DELETE", _PATH + b"/a", b"Content-Type: application/json", body=b'{"propagationPolicy":"Background"}'),
    _request(b"GET", b"/api/v1/namespaces/default/pods/a/exec?command=ls", b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Protocol: v5.channel.k8s.io"),
)  # fmt: skip

_FRAGMENTS = (b"\0", b"\r\n", b"\n", b"\r\n\r\n", b" ", b"\t", b":", b"%00", b"%ff%fe", b"..", b"/", b"?", b"\xff" * 9, b"-1", b"9" * 40,
              b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"Expect: 100-continue\r\n", b"{" * 300,
              b"[" * 2000, b"1e999", b"\xed\xa0\x80", b"ffffffffffffffff\r\n", b"HTTP/9.9", b"&" * 100, b"Host: b\r\n")  # fmt: skip


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Returns the data with one to four changes."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(changed) + 1)
        match chance.randrange(6):
            case 0:
                changed[place:place] = chance.choice(_FRAGMENTS)
            case 1:
                del changed[place : place + chance.randint(1, 20)]
            case 2 if changed:
                changed[place % len(changed)] ^= 1 << chance.randrange(8)
            case 3:
                changed[place:place] = changed[place : place + chance.randint(1, 60)]
            case 4:
                del changed[place:]
            case _:
                changed[place : place + 1] = chance.randbytes(chance.randint(1, 8))
    return bytes(changed)


#: What a kube-apiserver answers with 500 to damaged bodies: errors of its reader and of server-side apply that have no status.
REAL_ERRORS = (
    b"chunk length too large",
    b"chunked line ends with bare LF",
    b"empty hex number for chunk length",
    b"failed to create typed patch object",
    b"invalid CR in chunked line",
    b"invalid byte in chunk length",
    b"malformed MIME header",
    b"malformed chunked encoding",
    b"resourceVersion: Invalid value",
    b"unexpected EOF",
)

# HTTP/2


def _block(method: str, path: str) -> bytes:
    fields = (
        (":method", method),
        (":path", path),
        (":scheme", "https"),
        (":authority", "127.0.0.1"),
        ("authorization", "Bearer admin-token"),
    )
    return b"".join(literal(name, value) for name, value in fields)


def _frames(chance: random.Random) -> bytes:
    """Valid frames: settings, requests with and without a body, and what a client may send between them."""
    sent = [frame(4, 0, 0, struct.pack(">HI", 4, 1 << 20))]
    for place in range(chance.randint(1, 5)):
        stream = 2 * place + 1
        extra = chance.choice(
            (b"", frame(6, 0, 0, b"12345678"), frame(8, 0, 0, struct.pack(">I", 1000)), frame(8, 0, stream, struct.pack(">I", 1)))
        )
        if chance.random() < 0.5:
            sent += [frame(1, 5, stream, _block("GET", CONFIGMAPS)), extra]
        else:
            sent += [
                frame(1, 4, stream, _block("POST", CONFIGMAPS)),
                frame(0, 0, stream, _BODY[:40]),
                frame(0, 1, stream, _BODY[40:]),
                extra,
            ]
        if chance.random() < 0.3:
            sent.append(frame(3, 0, stream, struct.pack(">I", 8)))
    return b"".join(sent)


def _exchange(server: ServedCluster, data: bytes, *, http2: bool) -> bytes:
    """Sends bytes, and returns what comes until the server closes or is silent for a moment."""
    connection: socket.socket = socket.create_connection((server.host, server.port), 10)
    if http2:
        connection = untrusting_context().wrap_socket(connection)
    received = bytearray()
    with connection:
        try:
            connection.sendall(data)
            if not http2:
                connection.shutdown(socket.SHUT_WR)
            connection.settimeout(0.05 if http2 else 5)
            while part := connection.recv(1 << 16):
                received += part
        except (OSError, ssl.SSLError):
            pass
    return bytes(received)


@dataclass(slots=True)
class Outcome:
    attempts: int = 0
    wrong: list[str] = field(default_factory=list)


def play(*, http2: bool = False, seconds: float = 60, seed: int = 0, attempts: int | None = None) -> Outcome:
    """Sends damaged input for some seconds, or a number of times; returns what was wrong."""
    outcome = Outcome()
    with ServedCluster(*(["--tls"] if http2 else [])) as server:
        healthy = None if http2 else JsonConnection(server)
        end = time.monotonic() + seconds
        while time.monotonic() < end and outcome.attempts != attempts:
            number, outcome.attempts = outcome.attempts, outcome.attempts + 1
            chance = random.Random(f"{seed}-{number}")
            data = PREFACE + mutate(_frames(chance), chance) if http2 else mutate(chance.choice(REQUESTS), chance)
            received = _exchange(server, data, http2=http2)
            if not http2 and received and not received.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")):
                outcome.wrong.append(f"attempt {number}: not HTTP: {received[:80]!r} for {data!r}")
            if (b"HTTP/1.1 500" in received or b'"code":500' in received) and not any(text in received for text in REAL_ERRORS):
                outcome.wrong.append(f"attempt {number}: 500: {received[-300:]!r} for {data!r}")
            if healthy is not None and number % 20 == 0 and healthy.request("GET", "/version")[0] != 200:
                outcome.wrong.append(f"attempt {number}: a healthy request failed")
            if not server.is_running:
                outcome.wrong.append(f"attempt {number}: the server has ended after {data!r}")
                break
        if healthy is not None:
            healthy.close()
    if "Traceback" in server.output:
        outcome.wrong.append(f"the server wrote {server.output[-2000:]}")
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http2", action="store_true")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    outcome = play(http2=options.http2, seconds=options.seconds, seed=options.seed)
    print(f"{outcome.attempts} damaged inputs over HTTP/{2 if options.http2 else 1.1}")
    print("\n".join(outcome.wrong[:20]) or "all were answered or refused")
    return bool(outcome.wrong)


if __name__ == "__main__":
    raise SystemExit(main())
