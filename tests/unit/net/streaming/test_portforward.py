"""Port forwarding without a socket: WebSocket channels, SPDY, and SPDY within a WebSocket."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from fakekube.base.clock import Clock
from fakekube.net.pipes import Pipe
from fakekube.net.spdy import CANCEL, Data, RstStream, SynReply
from fakekube.net.streaming.kubelet_api import Connection, PortForwardError
from fakekube.net.streaming.negotiation import TunnellingWebSocket, offered_protocols
from fakekube.net.streaming.portforward import SPDYForward, WebSocketForward, ports_of
from tests.unit.net.streaming.peers import BINARY, CLOSE, CLOSE_FRAME, PING, PONG, TEXT, SPDYClient, masked, messages, taken

REFUSED = "dial tcp4 127.0.0.1:81: connect: connection refused"
REFUSED_PORT = b"error forwarding port 81 to pod box, uid : " + REFUSED.encode()


class Pod:
    """Listens on every port but 81."""

    def __init__(self) -> None:
        self.connections: dict[int, Connection] = {}
        self.connected = threading.Condition()

    def connect(self, port: int) -> Connection:
        if port == 81:
            raise PortForwardError(REFUSED)
        with self.connected:
            made = self.connections[port] = Connection(Pipe(), Pipe())
            self.connected.notify_all()
        return made

    def wait(self, port: int) -> Connection:
        with self.connected:
            assert self.connected.wait_for(lambda: port in self.connections, 5)
        return self.connections[port]


@pytest.fixture
def pod() -> Pod:
    return Pod()


def test_port_forward_over_websocket(pod: Pod) -> None:
    tunnel = WebSocketForward("v4.channel.k8s.io", [8080, 81], "box", pod.connect, Clock())
    begins = [(BINARY, bytes([channel]) + port) for channel, port in zip(range(4), [b"\x90\x1f"] * 2 + [b"Q\0"] * 2, strict=True)]
    assert messages(taken(tunnel)) == [*begins, (BINARY, b"\x03" + REFUSED_PORT)]
    tunnel.receive(masked(BINARY, b"\x00in") + masked(BINARY, b"\x01ignored"))
    connection = pod.connections[8080]
    assert connection.from_client.read() == b"in"
    connection.to_client.write(b"out")
    assert messages(taken(tunnel)) == [(BINARY, b"\x00out")]
    connection.to_client.close()
    assert messages(taken(tunnel)) == [CLOSE_FRAME]
    assert tunnel.ended


def test_broken_connection_is_reported_on_the_error_channel(pod: Pod) -> None:
    tunnel = WebSocketForward("", [80], "box", pod.connect, Clock())
    taken(tunnel)
    pod.connections[80].error = "reset"
    pod.connections[80].to_client.close()
    assert messages(taken(tunnel))[0] == (BINARY, b"\x01error forwarding port 80 to pod box, uid : reset")


def test_client_disconnect_closes_pod_connections(pod: Pod) -> None:
    tunnel = WebSocketForward("", [80], "box", pod.connect, Clock())
    tunnel.close()
    assert pod.connections[80].from_client.read() == b""
    assert pod.connections[80].to_client.abandoned


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([], 'query parameter "port" is required'),
        ([""], 'query parameter "port" cannot be empty'),
        (["x"], 'unable to parse "x" as a port: strconv.ParseUint: parsing "x": invalid syntax'),
        (["65536"], 'unable to parse "65536" as a port: strconv.ParseUint: parsing "65536": value out of range'),
        (["80,0"], 'port "80,0" must be > 0'),
    ],
)
def test_invalid_ports_are_rejected(values: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("(", r"\(")):
        ports_of(values)
    assert ports_of(["80,81", "82"]) == [80, 81, 82]


class Session:
    """A client of SPDY."""

    def __init__(self, pod: Pod, clock: Clock | None = None) -> None:
        self.tunnel = SPDYForward("box", pod.connect, clock or Clock())
        self.client = SPDYClient()

    def open(self, kind: str, port: str = "80", request: str = "0") -> int:
        stream_id, opening = self.client.open(streamtype=kind, port=port, requestid=request)
        self.tunnel.receive(opening)
        return stream_id

    def sent(self) -> list[Any]:
        return self.client.read(taken(self.tunnel))

    def wait_for(self, count: int) -> list[Any]:
        """So many frames."""
        changed, found = threading.Event(), list[Any]()
        self.tunnel.source.subscribe(changed.set)
        while len(found := [*found, *self.sent()]) < count:
            assert changed.wait(60)
            changed.clear()
        return found


def test_port_forward_over_spdy(pod: Pod) -> None:
    session = Session(pod)
    error, data = session.open("error"), session.open("data")
    session.tunnel.receive(session.client.data(data, b"in") + session.client.data(data, b"", fin=True))
    connection = pod.wait(80)
    assert session.wait_for(2) == [SynReply(error, {}), SynReply(data, {})]
    connection.to_client.write_all(b"out")
    assert session.wait_for(1) == [Data(data, b"out")]
    assert (connection.from_client.read(), connection.from_client.read()) == (b"in", b"")
    connection.to_client.close()
    assert session.wait_for(2) == [Data(error, b"", True), Data(data, b"", True)]
    assert not session.tunnel.ended


def test_forwarded_connections_do_not_block_each_other(pod: Pod) -> None:
    session = Session(pod)
    for number in range(3):
        session.open("error", str(8000 + number), str(number))
        data = session.open("data", str(8000 + number), str(number))
        pod.wait(8000 + number)
        session.wait_for(2)
        session.tunnel.receive(session.client.data(data, b"x" * 100_000))
    session.sent()
    assert [pod.connections[8000 + number].from_client.pending for number in range(3)] == [65536] * 3
    assert not session.tunnel.full
    session.tunnel.receive(session.client.data(data, b"x" * (1 << 20)))
    assert session.tunnel.full


def test_refused_port_is_reported_and_its_streams_are_reset(pod: Pod) -> None:
    session = Session(pod)
    data, error = session.open("data", "81"), session.open("error", "81")
    assert session.wait_for(5)[2:] == [Data(error, REFUSED_PORT), RstStream(data, CANCEL), RstStream(error, CANCEL)]


@pytest.mark.parametrize(
    ("kind", "port"), [("data", ""), ("data", "x"), ("data", "0"), ("data", "65536"), ("", "80"), ("stdin", "80")]
)
def test_invalid_stream_headers_reset_the_stream(pod: Pod, kind: str, port: str) -> None:
    session = Session(pod)
    stream_id = session.open(kind, port)
    assert session.sent() == [RstStream(stream_id, CANCEL)]


def test_streams_without_request_id_are_paired_by_stream_id(pod: Pod) -> None:
    session = Session(pod)
    session.open("error", request="")
    session.open("data", request="")
    assert pod.wait(80)


def test_duplicate_error_stream_is_an_error(pod: Pod) -> None:
    session = Session(pod)
    first = session.open("error")
    session.open("error")
    assert session.sent()[1] == Data(first, b"error processing stream for request 0: error stream already assigned")


def test_missing_second_stream_times_out_after_30_seconds(pod: Pod) -> None:
    clock = Clock()
    clock.hold()
    session = Session(pod, clock)
    error = session.open("error")
    session.sent()
    assert session.tunnel.deadline == clock.monotonic() + 30
    clock.advance(seconds=30)
    assert session.sent() == [Data(error, b"(conn=spdy, request=0) timed out waiting for streams")]
    assert session.tunnel.deadline is None


def test_stream_reset_closes_the_pod_connection(pod: Pod) -> None:
    session = Session(pod)
    session.open("error")
    data = session.open("data")
    connection = pod.wait(80)
    session.tunnel.receive(session.client.encode(RstStream(data, CANCEL)))
    gone = threading.Event()
    connection.to_client.subscribe(gone.set)
    assert connection.to_client.abandoned or gone.wait(60)
    session.tunnel.close()


def test_port_forward_over_spdy_tunnelled_in_websocket(pod: Pod) -> None:
    inner = SPDYForward("box", pod.connect, Clock())
    tunnel, client = TunnellingWebSocket(inner), SPDYClient()
    error, first = client.open(streamtype="error", port="80", requestid="1")
    data, second = client.open(streamtype="data", port="80", requestid="1")
    whole = first + second + client.data(data, b"hello")
    tunnel.receive(masked(BINARY, whole[:7], final=False) + masked(0x0, whole[7:]) + masked(PING, b"p"))
    connection = pod.wait(80)
    answers = messages(taken(tunnel))
    assert (PONG, b"p") in answers
    spdy = b"".join(payload for opcode, payload in answers if opcode == BINARY)
    assert client.read(spdy) == [SynReply(error, {}), SynReply(data, {})]
    woken = threading.Event()
    connection.from_client.subscribe(woken.set)
    while not connection.from_client.pending:
        taken(tunnel)
        woken.wait(0.01)
    assert connection.from_client.read() == b"hello"
    tunnel.receive(masked(CLOSE, b"\x03\xe8"))
    assert messages(taken(tunnel)) == [CLOSE_FRAME]
    tunnel.close()
    assert connection.to_client.abandoned


BROKEN: dict[str, Callable[[], bytes]] = {
    "text": lambda: masked(TEXT, b"x"),
    "unmasked": lambda: b"\x82\x01x",
    "reserved bits": lambda: masked(BINARY | 0x40, b"x"),
    "unknown opcode": lambda: masked(0x3, b"x"),
    "continuation of nothing": lambda: masked(0x0, b"x"),
    "message within a message": lambda: masked(BINARY, b"", final=False) + masked(BINARY, b""),
    "control in pieces": lambda: masked(PING, b"", final=False),
    "long control": lambda: masked(PING, b"x" * 126),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_invalid_tunnel_input_closes_the_websocket(pod: Pod, data: Callable[[], bytes]) -> None:
    tunnel = TunnellingWebSocket(SPDYForward("box", pod.connect, Clock()))
    tunnel.receive(data())
    assert messages(taken(tunnel))[-1] == CLOSE_FRAME
    assert tunnel.ended


def test_offered_tunnelling_subprotocols() -> None:
    offered = "SPDY/3.1+portforward.k8s.io, SPDY/3.1+x, v4.channel.k8s.io"
    assert offered_protocols({"sec-websocket-protocol": offered}) == ["portforward.k8s.io"]
