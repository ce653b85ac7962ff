"""TLS connections to webhook servers: the socket is closed on failure."""

from __future__ import annotations

import gc
import select
import socket
import struct
import warnings

import pytest

from fakekube.apiserver.webhooks import connections


def test_socket_is_closed_if_reset_before_the_tls_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    make = connections._context
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as plain:
        accepted, _ = server.accept()

        def reset(*arguments: object, **options: object) -> object:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            accepted.close()
            select.select([plain], [], [])
            return make(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(connections, "_context", reset)
        with warnings.catch_warnings(record=True) as emitted:
            warnings.simplefilter("always")
            with pytest.raises(ConnectionResetError) as caught:
                connections.shake_hands(plain, "localhost", b"", verified=False)
            assert caught.value.errno is not None
            del caught
            gc.collect()
    assert [str(one.message) for one in emitted] == []
