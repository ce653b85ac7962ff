"""HTTP/2 options of a cluster and flags of the command lines."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apiserver.auth.options import OptionError
from fakekube.cli.arguments import parse
from fakekube.cli.envtest.command_line import read


def chosen(**flags: Any) -> str | None:
    """The protocol that a client gets who would like HTTP/2."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    with Cluster(profile="apiserver", tls=True, **flags) as cluster:
        port = int(cluster.url.rpartition(":")[2])
        with context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10)) as client:
            return client.selected_alpn_protocol()


def test_http2_is_offered_unless_disabled() -> None:
    assert chosen() == "h2"
    assert chosen(http2=False) == "http/1.1"
    assert chosen(disable_http2_serving=True) == "http/1.1"


def test_max_concurrent_streams_is_sent_in_settings() -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with Cluster(profile="apiserver", tls=True, http2_max_streams_per_connection=250) as cluster:
        port = int(cluster.url.rpartition(":")[2])
        with context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10)) as client:
            assert b"\x00\x03\x00\x00\x00\xfa" in client.recv(1000)


def test_http2_flags_on_the_command_lines() -> None:
    assert parse(["serve", "--tls", "--http2=false"]).flags == {"http2": False}
    assert parse(["serve", "--tls", "--goaway-chance=0.01"]).flags == {"goaway_chance": 0.01}
    line = read(["--disable-http2-serving", "--http2-max-streams-per-connection=250", "--goaway-chance", "0.02"])
    assert line.flags == {"disable_http2_serving": True, "http2_max_streams_per_connection": 250, "goaway_chance": 0.02}


@pytest.mark.parametrize("chance", [-0.1, 0.021])
def test_goaway_chance_out_of_bounds_is_rejected(chance: float) -> None:
    with pytest.raises(OptionError, match=r"--goaway-chance can not be less than 0 or greater than 0\.02"):
        Cluster(profile="apiserver", goaway_chance=chance)
