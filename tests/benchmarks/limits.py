"""What the machine allows: an echo over loopback, the same with TLS, and JSON alone; `python -m tests.benchmarks.limits`.

No server of this kind can be quicker than its client, the system calls and the encoding of what it sends. The echo is a process that
sends back prepared bytes of the size of a get, or of the aggregated discovery; the JSON is a pod of the usual size.
"""

from __future__ import annotations

import json
import multiprocessing
import socket
import ssl
import statistics
import time
from collections.abc import Iterator

import orjson

from fakekube.net.certificates import credentials
from tests.benchmarks.against_oracle import Row, pod

ROUNDS = 2000
_REQUEST = b"x" * 200
_RESPONSE = b"y" * 1200
_DISCOVERY = b"y" * 20_000


def _echo(listener: socket.socket, secure: bool, response: bytes) -> None:
    connection = listener.accept()[0]
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with credentials().context.wrap_socket(connection, server_side=True) if secure else connection as one:
        while one.recv(1 << 14):
            one.sendall(response)


def round_trip(*, secure: bool, response: bytes = _RESPONSE) -> float:
    """Milliseconds of a round trip to another process: the median."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = multiprocessing.get_context("fork").Process(target=_echo, args=(listener, secure, response), daemon=True)
        server.start()
        connection: socket.socket = socket.create_connection(listener.getsockname())
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = context.wrap_socket(connection)
        times = []
        with connection:
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                connection.sendall(_REQUEST)
                received = 0
                while received < len(response):
                    received += len(connection.recv(1 << 14))
                times.append(time.perf_counter() - begin)
        server.join(10)
    return statistics.median(times) * 1000


def json_of_a_pod() -> float:
    """Microseconds to decode and encode a pod of the usual size with orjson: the minimum."""
    text = json.dumps(pod("p", 1)).encode()
    times = []
    for _ in range(20):
        begin = time.thread_time()
        for _ in range(200):
            orjson.dumps(orjson.loads(text))
        times.append((time.thread_time() - begin) / 200 * 1e6)
    return min(times)


def measurements() -> Iterator[Row]:
    """All rows."""
    yield Row("limit: echo over loopback", "ms", (round_trip(secure=False),))
    yield Row("limit: echo over loopback with TLS", "ms", (round_trip(secure=True),))
    yield Row("limit: echo of 20 kB with TLS", "ms", (round_trip(secure=True, response=_DISCOVERY),))
    yield Row("limit: JSON of a pod, both ways", "us", (json_of_a_pod(),))


def main() -> None:
    for row in measurements():
        print(row)


if __name__ == "__main__":
    main()
