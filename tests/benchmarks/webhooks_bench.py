"""Writes through admission webhooks against the real server: ratios of medians (ours / theirs).

    python -m tests.benchmarks.webhooks_bench                                   # only ours
    python -m tests.benchmarks.webhooks_bench --oracle URL --token TOKEN        # one that runs
    python -m tests.benchmarks.webhooks_bench --oracle-command 'oracle serve --dir {dir} --port {port}'

The webhook answers at once, from a thread of this process, over TLS and on connections that are kept; what it takes itself
is in the figures of both sides. Nothing is asserted: the targets stand beside the figures.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fakekube.net.certificates import credentials
from tests.benchmarks.against_oracle import Bench, Row, common_parser, in_turns, report

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
_UID, _LENGTH = re.compile(rb'"uid":"([^"]+)"'), re.compile(rb"(?i)content-length: (\d+)")
_PATCH = base64.b64encode(json.dumps([{"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}}]).encode()).decode()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table row by row."""
    report(common_parser(__doc__, rounds=200).parse_args(arguments), measurements)


def measurements(benches: list[Bench], options: argparse.Namespace) -> Iterator[Row]:
    """A create with nothing configured, and with more and more webhooks."""
    rounds = options.rounds
    yield Row("create, nothing configured", "ms", in_turns(benches, rounds, _create("none")), "0.4")
    with answering({}) as allowing, answering({"patchType": "JSONPatch", "patch": _PATCH}) as patching:
        for name, kind, server, count in (
            ("create, one validating webhook", "Validating", allowing, 1),
            ("create, five validating webhooks", "Validating", allowing, 5),
            ("create, one mutating webhook that patches", "Mutating", patching, 1),
            ("create, five mutating webhooks that patch", "Mutating", patching, 5),
        ):
            for bench in benches:
                _configure(bench, kind, server, count)
            yield Row(name, "ms", in_turns(benches, rounds, _create(f"{kind.lower()}{count}")), "0.4")
            for bench in benches:
                bench.connection.request("DELETE", _path(bench, kind))
            time.sleep(0.5)


def _create(prefix: str) -> Callable[[Bench, int], float]:
    def step(bench: Bench, number: int) -> float:
        body = {"metadata": {"name": f"{prefix}-{number}"}, "data": {"a": "first", "b": "x" * 400}}
        return bench.time("POST", "configmaps", body)

    return step


def _path(bench: Bench, kind: str) -> str:
    return f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations/{bench.namespace}"


def _configure(bench: Bench, kind: str, client_config: dict[str, Any], count: int) -> None:
    """Make the configuration, and give the server time to see it."""
    hook = {
        "clientConfig": client_config,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": bench.namespace}},
    }
    hooks = [{"name": f"hook{index}.example.com", **hook} for index in range(count)]
    body = {"metadata": {"name": bench.namespace}, "webhooks": hooks}
    bench.connection.request("POST", _path(bench, kind).rpartition("/")[0], body)
    time.sleep(1)


# ---------------------------------------------------------------- the webhook


@contextmanager
def answering(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A webhook that allows everything, with more in its response; its clientConfig."""
    made = credentials("127.0.0.1")
    with tempfile.TemporaryDirectory() as folder:
        chain, key = Path(folder) / "certificate.pem", Path(folder) / "key.pem"
        chain.write_text(made.server_certificate)
        key.write_text(made.server_key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(listener, context, response), daemon=True).start()
    url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
    try:
        yield {"url": url, "caBundle": base64.b64encode(made.ca_certificate.encode()).decode()}
    finally:
        listener.close()


def _accept(listener: socket.socket, context: ssl.SSLContext, response: dict[str, Any]) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_serve, args=(connection, context, response), daemon=True).start()


def _serve(plain: socket.socket, context: ssl.SSLContext, response: dict[str, Any]) -> None:
    with suppress(OSError), context.wrap_socket(plain, server_side=True) as connection:
        data = b""
        while received := connection.recv(65536):
            data += received
            head, end, body = data.partition(b"\r\n\r\n")
            length = _LENGTH.search(head)
            if not end or length is None or len(body) < int(length[1]):
                continue
            uid = _UID.search(body)
            found = {"uid": uid[1].decode() if uid else "", "allowed": True, **response}
            answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": found}
            sent = json.dumps(answer).encode()
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(sent), sent)
            )
            data = b""


if __name__ == "__main__":
    main()
