"""exec and attach without a socket: WebSocket channels and SPDY, from the first frame to the exit status."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakekube.base.clock import Clock
from fakekube.net.pipes import TerminalSize
from fakekube.net.spdy import CANCEL, Data, GoAway, RstStream, SynReply
from fakekube.net.streaming.kubelet_api import Execution, ExitStatus, KubeletError, Streams
from fakekube.net.streaming.remotecommand import Action, Options, RefusedCommand, SPDYCommand, WebSocketCommand
from tests.unit.net.streaming.peers import BINARY, CLOSE, CLOSE_FRAME, SPDYClient, cut, masked, messages, taken

V5 = "v5.channel.k8s.io"
ALL = Options(stdin=True, stdout=True, stderr=True)
SUCCESS = b'{"metadata":{},"status":"Success"}'


class Process:
    """A process that does what a test says."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.started = threading.Event()
        self.cancelled = False
        self.execution = Execution(self.cancel)
        self.streams = Streams()

    def cancel(self) -> None:
        self.cancelled = True

    def begin(self, streams: Streams) -> Execution:
        if self.error is not None:
            raise self.error
        self.streams = streams
        self.started.set()
        return self.execution

    @property
    def action(self) -> Action:
        return Action(self.begin, "error executing command in container", "error executing command [x], ")

    def write(self, stdout: bytes = b"", stderr: bytes = b"") -> None:
        for pipe, data in ((self.streams.stdout, stdout), (self.streams.stderr, stderr)):
            if data:
                assert pipe is not None
                pipe.write_all(data)

    def end(self, exit_status: ExitStatus | None = None) -> None:
        for pipe in (self.streams.stdout, self.streams.stderr):
            if pipe is not None:
                pipe.close()
        self.execution.finish(exit_status)


def exec_over_websocket(process: Process, protocol: str = V5, options: Options = ALL) -> WebSocketCommand:
    return WebSocketCommand(protocol, options, process.action, Clock())


def test_exec_over_websocket() -> None:
    process = Process()
    tunnel = exec_over_websocket(process)
    assert messages(taken(tunnel)) == [(BINARY, b"\x01")]
    tunnel.receive(masked(BINARY, b"\x00in") + masked(BINARY, b"\xff\x00"))
    assert process.streams.stdin is not None
    assert (process.streams.stdin.read(), process.streams.stdin.read()) == (b"in", b"")
    process.write(b"out", b"err")
    assert messages(taken(tunnel)) == [(BINARY, b"\x01out"), (BINARY, b"\x02err")]
    process.write(b"last")
    process.end()
    assert messages(taken(tunnel)) == [(BINARY, b"\x01last"), (BINARY, b"\x03" + SUCCESS), CLOSE_FRAME]
    assert tunnel.ended


@pytest.mark.parametrize("ends_first", [True, False])
def test_exit_status_is_sent_after_output_closed_and_process_exited(ends_first: bool) -> None:
    process = Process()
    tunnel = exec_over_websocket(process)
    taken(tunnel)
    if ends_first:
        process.end()
    else:
        assert process.streams.stdout is not None
        process.streams.stdout.close()
        assert taken(tunnel) == b""
        process.execution.finish()
    assert messages(taken(tunnel)) == [(BINARY, b"\x03" + SUCCESS), CLOSE_FRAME]


def status_of(protocol: str, exit_status: ExitStatus) -> bytes:
    process = Process()
    tunnel = exec_over_websocket(process, protocol, Options(stdout=True))
    taken(tunnel)
    process.end(exit_status)
    return next((payload[1:] for opcode, payload in messages(taken(tunnel)) if opcode != CLOSE), b"")


@pytest.mark.parametrize(
    ("protocol", "exit_status", "expected"),
    [
        (
            V5, ExitStatus(3),
            {
                "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": "command terminated with non-zero exit code: command terminated with exit code 3",
                "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
            },
        ),
        (
            "v4.channel.k8s.io", ExitStatus(3),
            {
                "status": "Failure", "reason": "NonZeroExitCode",
                "message": "command terminated with non-zero exit code: error executing command [x], exit code 3",
                "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
            },
        ),
        ("v4.channel.k8s.io", ExitStatus(), {"status": "Success"}),
        (
            V5, ExitStatus(error="no <sh>"),
            {
                "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
                "message": "Internal error occurred: Internal error occurred: error executing command in container: no <sh>",
                "details": {
                    "causes": [{"message": "Internal error occurred: error executing command in container: no <sh>"}],
                },
            },
        ),
        (
            "v4.channel.k8s.io", ExitStatus(error="no <sh>"),
            {
                "status": "Failure", "reason": "InternalError", "code": 500,
                "message": "Internal error occurred: error executing command in container: no <sh>",
            },
        ),
    ],
)  # fmt: skip
def test_exit_status_is_json_since_v4(protocol: str, exit_status: ExitStatus, expected: dict[str, Any]) -> None:
    text = status_of(protocol, exit_status)
    assert json.loads(text) == expected
    assert b"<" not in text


def test_exit_status_before_v4_is_an_error_text() -> None:
    assert status_of("channel.k8s.io", ExitStatus()) == b""
    expected = b"command terminated with non-zero exit code: error executing command [x], exit code 1"
    assert status_of("", ExitStatus(1)) == expected


@pytest.mark.parametrize(
    ("options", "channel"), [(Options(stdout=True, stderr=True), 1), (Options(stderr=True), 2), (Options(stdin=True), 3)]
)
def test_first_message_is_empty(options: Options, channel: int) -> None:
    assert messages(taken(exec_over_websocket(Process(), V5, options)))[0] == (BINARY, bytes([channel]))


def test_start_error_is_sent_on_the_error_channel() -> None:
    tunnel = exec_over_websocket(Process(KubeletError(500, "no runtime")))
    assert b"error executing command in container: no runtime" in messages(taken(tunnel))[-2][1]
    refused = RefusedCommand(Options(stderr=True), "no kubelet")
    expected = messages(taken(refused))
    assert expected[0] == (BINARY, b"\x02")
    assert b"Internal error occurred: no kubelet" in expected[1][1]
    assert expected[2] == CLOSE_FRAME
    assert refused.ended


def test_exception_at_start_is_logged_and_sent_on_the_error_channel(caplog: pytest.LogCaptureFixture) -> None:
    tunnel = exec_over_websocket(Process(ZeroDivisionError("oh")))
    assert b"error executing command in container: oh" in messages(taken(tunnel))[-2][1]
    assert "A command could not be started" in caplog.text


def test_client_disconnect_cancels_the_process() -> None:
    process = Process()
    tunnel = exec_over_websocket(process)
    tunnel.close()
    assert process.cancelled
    assert process.streams.stdin is not None
    assert process.streams.stdin.read() == b""
    with pytest.raises(BrokenPipeError):
        process.write(b"x")


def test_websocket_close_frame_is_answered() -> None:
    tunnel = exec_over_websocket(Process())
    tunnel.receive(masked(CLOSE, b"\x03\xe8"))
    assert messages(taken(tunnel)) == [(BINARY, b"\x01"), CLOSE_FRAME]
    assert tunnel.ended


def test_unread_stdin_pauses_receiving() -> None:
    process = Process()
    tunnel = exec_over_websocket(process)
    taken(tunnel)
    woken: list[str] = []
    tunnel.source.subscribe(lambda: woken.append(""))
    tunnel.receive(masked(BINARY, b"\x00" + b"x" * 100_000))
    assert tunnel.full
    pipe, read = process.streams.stdin, b""
    assert pipe is not None
    while (data := pipe.read()) is not None:
        woken.clear()
        read += data
        taken(tunnel)
    assert (len(read), tunnel.full) == (100_000, False)


@pytest.mark.parametrize(
    ("sent", "sizes"),
    [
        ([b'{"Width":80,"Hei', b'ght":24}{"width":1,"HEIGHT":2}'], [(80, 24), (1, 2)]),
        ([b'{"Width":80,"Height":24}', b'{"Width":70000}', b'{"Width":1,"Height":2}'], [(80, 24)]),
        ([b"{}", b"[1]", b'{"Width":1,"Height":2}'], [(0, 0)]),
        ([b"x" * 10_000, b'{"Width":1,"Height":2}'], []),
    ],
)
def test_terminal_resize_messages(sent: list[bytes], sizes: list[tuple[int, int]]) -> None:
    process = Process()
    tunnel = exec_over_websocket(process, V5, Options(stdin=True, stdout=True, stderr=True, tty=True))
    assert process.streams.stderr is None
    for data in sent:
        tunnel.receive(masked(BINARY, b"\x04" + data))
    assert process.streams.sizes is not None
    assert list(iter(process.streams.sizes.next, None)) == [TerminalSize(*size) for size in sizes]


@settings(max_examples=25, deadline=None)
@given(
    typed=st.lists(st.binary(max_size=200), max_size=4),
    places=st.lists(st.integers(0, 2000), max_size=6),
    protocol=st.sampled_from([V5, "v4.channel.k8s.io", "channel.k8s.io"]),
)
def test_echoed_stdin_is_independent_of_chunk_boundaries(typed: list[bytes], places: list[int], protocol: str) -> None:
    process = Process()
    tunnel = exec_over_websocket(process, protocol)
    answered = taken(tunnel)
    for piece in cut(b"".join(masked(BINARY, b"\x00" + data) for data in typed), places):
        tunnel.receive(piece)
        assert process.streams.stdin is not None
        process.write(process.streams.stdin.read() or b"")
        answered += taken(tunnel)
    process.end()
    answered += taken(tunnel)
    assert b"".join(payload[1:] for _, payload in messages(answered) if payload[:1] == b"\x01") == b"".join(typed)


# ---------------------------------------------------------------- SPDY


class Session:
    """A client of SPDY, and a process that starts when all streams are there."""

    def __init__(self, protocol: str = "v4.channel.k8s.io", options: Options = ALL, clock: Clock | None = None) -> None:
        self.process = Process()
        self.tunnel = SPDYCommand(protocol, options, self.process.action, clock or Clock())
        self.client = SPDYClient()
        self.ids: dict[str, int] = {}

    def open(self, *kinds: str) -> None:
        for kind in kinds:
            self.ids[kind], opening = self.client.open(streamtype=kind)
            self.tunnel.receive(opening)

    def sent(self) -> list[Any]:
        return self.client.read(taken(self.tunnel))

    def until(self, done: Callable[[], bool]) -> None:
        changed = threading.Event()
        self.tunnel.source.subscribe(changed.set)
        while not done():
            assert changed.wait(60)
            changed.clear()


def test_exec_over_spdy() -> None:
    session = Session()
    session.open("error", "stdin", "stdout", "stderr")
    assert session.process.started.wait(60)
    assert session.sent() == [SynReply(1, {}), SynReply(3, {}), SynReply(5, {}), SynReply(7, {})]
    session.tunnel.receive(session.client.data(3, b"in") + session.client.data(3, b"", fin=True))
    assert session.process.streams.stdin is not None
    assert (session.process.streams.stdin.read(), session.process.streams.stdin.read()) == (b"in", b"")
    session.process.write(b"out", b"err")
    assert session.sent() == [Data(5, b"out"), Data(7, b"err")]
    session.process.end(ExitStatus(2))
    session.until(lambda: session.process.execution.exit is not None)
    *ends, status, reset_error, reset_stdin, goaway = session.sent()
    assert ends == [Data(5, b"", True), Data(7, b"", True)]
    assert json.loads(status.data)["details"]["causes"][0]["message"] == "2"
    assert (status.stream_id, reset_error, reset_stdin, goaway) == (1, RstStream(1, CANCEL), RstStream(3, CANCEL), GoAway(7))
    assert session.tunnel.ended


def test_v1_protocol_resets_the_error_stream() -> None:
    session = Session("channel.k8s.io", Options(stdin=True, stdout=True))
    session.open("error", "stdin", "stdout")
    assert session.process.started.wait(60)
    assert session.sent()[3:] == [RstStream(1, CANCEL), Data(3, b"", True)]


def test_v1_protocol_without_an_error_stream_is_served() -> None:
    """A client opens a stream twice instead: the counted streams are complete, and nothing is reset."""
    session = Session("channel.k8s.io", Options(stdin=True, stdout=True))
    session.open("stdin", "stdout", "stdout")
    assert session.process.started.wait(60)
    assert session.sent()[3:] == [Data(1, b"", True)]


def test_terminal_size_over_spdy_resize_stream() -> None:
    session = Session(options=Options(stdin=True, stdout=True, stderr=True, tty=True))
    session.open("error", "stdin", "stdout")
    assert not session.process.started.is_set()
    session.open("resize")
    assert session.process.started.wait(60)
    session.tunnel.receive(session.client.data(session.ids["resize"], b'{"Width":9,"Height":8}'))
    assert session.process.streams.sizes is not None
    assert session.process.streams.sizes.latest == (9, 8)


def test_missing_streams_time_out() -> None:
    clock = Clock()
    clock.hold()
    session = Session(clock=clock)
    session.open("error", "unknown")
    session.sent()
    clock.advance(seconds=31)
    assert session.sent() == [RstStream(1, CANCEL), RstStream(3, CANCEL), GoAway(3)]
    assert session.tunnel.ended
    session.tunnel.close()
    assert not session.process.started.is_set()


def test_invalid_spdy_frames_end_the_session() -> None:
    session = Session(options=Options(stdout=True))
    session.open("error", "stdout")
    assert session.process.started.wait(60)
    session.tunnel.receive(b"\xff" * 16)
    taken(session.tunnel)
    assert session.tunnel.ended
    session.tunnel.close()
    session.until(lambda: session.process.cancelled)
