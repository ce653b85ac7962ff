from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from fakekube.base.clock import Clock
from fakekube.net.http1 import RequestParser
from fakekube.net.loop import READ, WRITE, Loop
from fakekube.net.pump import Bare, Chunked, Delivery, FrameCache, Progress, Pump
from fakekube.net.transport import Disconnected, Transport


class Still(Loop):
    """A loop without a thread: what it is asked to do is done at once, and what it watches is looked at."""

    def __init__(self) -> None:
        self.watched: dict[int, tuple[int, Callable[[int], None]]] = {}
        self.wakes = 0

    def call(self, callback: Callable[[], None]) -> bool:
        callback()
        return True

    def wake(self) -> None:
        self.wakes += 1

    def watch(self, fileno: int, events: int, callback: Callable[[int], None]) -> None:
        self.watched[fileno] = (events, callback)

    def forget(self, fileno: int) -> None:
        self.watched.pop(fileno, None)


class Wire(Transport):
    """A client that takes `room` bytes at most, and says what is put into `said`."""

    numbers = iter(range(1000, 10**9))

    def __init__(self, room: float = float("inf")) -> None:
        self.number = next(self.numbers)
        self.room = room
        self.got = b""
        self.said: list[bytes] = []
        self.broken = False

    def fileno(self) -> int:
        return self.number

    def receive_ready(self) -> bytes | None:
        if self.broken:
            raise Disconnected("broken")
        return self.said.pop(0) if self.said else None

    def send_ready(self, data: bytes | memoryview) -> int:
        if self.broken:
            raise Disconnected("broken")
        taken = int(min(self.room, len(data)))
        self.room -= taken
        self.got += data[:taken]
        return taken


class Rig:
    """A pump with deliveries of bare frames, run by hand."""

    def __init__(self, clock: Clock) -> None:
        self.loop = Still()
        self.pump = Pump(self.loop, clock)
        self.released: list[bool] = []

    def deliver(self, cursor: Any, wire: Wire, *, reusable: bool = False) -> Delivery:
        framing = Chunked(RequestParser(), True) if reusable else Bare(RequestParser())
        delivery = Delivery(cursor, framing, wire, self.released.append)
        self.pump.add(delivery)
        return delivery

    def settle(self) -> float | None:
        while (wait := self.pump.run()) == 0.0:
            pass
        return wait

    def happen(self, wire: Wire, events: int) -> None:
        watched, callback = self.loop.watched[wire.number]
        assert watched & events == events
        callback(events)
        self.settle()


@pytest.fixture
def rig(clock: Clock) -> Rig:
    return Rig(clock)


def test_frame_cache_reuses_equal_framings() -> None:
    cache = FrameCache()
    framing = Chunked(RequestParser(), True)
    one, two = b"one" * 1, b"two" * 1
    first = cache.frame(framing, [one, two])
    assert cache.frame(framing, [one, two]) is first
    assert cache.frame(framing, [two, one]) == b"3\r\ntwo\r\n3\r\none\r\n"
    assert cache.frame(Bare(RequestParser()), [one, two]) == b"onetwo"
    cache.clear()
    assert cache.frame(framing, [one, two]) is not first


def test_frame_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fakekube.net.pump._CACHE_BYTES", 100)
    cache = FrameCache()
    framing = Bare(RequestParser())
    frames = [bytes([65 + number]) * 30 for number in range(9)]
    for frame in frames:
        assert cache.frame(framing, [frame]) == frame
    assert len({payload for _, payload in cache._framed.values()}) <= 3


def test_a_list_that_streams_share_is_looked_up_as_one() -> None:
    class Counting(Bare):
        calls = 0

        def frame(self, frames: list[bytes]) -> bytes:
            self.calls += 1
            return super().frame(frames)

    cache, framing, shared = FrameCache(), Counting(RequestParser()), [b"one", b"two"]
    payloads = {id(cache.frame(framing, frames)) for frames in (shared, shared, [*shared], shared)}
    assert (len(payloads), framing.calls) == (1, 1)


def test_source_is_subscribed_once_for_all_its_streams(rig: Rig, topic: Any, make_cursor: Any) -> None:
    wires = [Wire(), Wire(), Wire()]
    cursors = [make_cursor(topic) for _ in wires]
    for cursor, wire in zip(cursors, wires, strict=True):
        rig.deliver(cursor, wire)
    assert topic.subscriptions == len(topic.wakes) == 1
    topic.publish(b"a", b"b")
    rig.settle()
    assert [wire.got for wire in wires] == [b"ab"] * 3
    topic.publish(make_cursor.END)
    rig.settle()
    assert rig.released == [False] * 3
    assert topic.wakes == []
    assert [cursor.closings for cursor in cursors] == [1] * 3
    assert rig.loop.watched == {}


def test_unused_pump_closes_without_the_loop(rig: Rig, topic: Any, make_cursor: Any) -> None:
    assert rig.pump.close_unused()
    rig.deliver(make_cursor(topic), Wire())
    assert topic.subscriptions == 0
    assert not rig.pump.close_unused()


def test_several_changes_wake_the_loop_once(rig: Rig, topic: Any, make_cursor: Any) -> None:
    rig.deliver(make_cursor(topic), Wire())
    rig.settle()
    before = rig.loop.wakes
    for _ in range(5):
        topic.publish(b"a")
    assert rig.loop.wakes == before + 1


def test_changes_before_the_subscription_are_delivered(rig: Rig, topic: Any, make_cursor: Any) -> None:
    cursor, wire = make_cursor(topic), Wire()
    assert cursor.take() == []
    topic.publish(b"a")
    rig.deliver(cursor, wire)
    rig.settle()
    assert wire.got == b"a"


def test_no_frames_are_taken_for_a_client_with_pending_output(rig: Rig, topic: Any, make_cursor: Any) -> None:
    slow, fast = Wire(room=3), Wire()
    cursor = make_cursor(topic)
    delivery = rig.deliver(cursor, slow)
    rig.deliver(make_cursor(topic), fast)
    topic.publish(b"abcde")
    rig.settle()
    takes = cursor.takes
    for number in range(10):
        topic.publish(b"%d" % number)
        rig.settle()
    assert fast.got == b"abcde0123456789"
    assert cursor.takes == takes
    assert len(delivery.output) == 2
    slow.room = float("inf")
    rig.happen(slow, WRITE)
    assert slow.got == b"abcde0123456789"
    assert rig.loop.watched[slow.number][0] == READ


def test_run_takes_once_from_each_stream(rig: Rig, topic: Any, make_cursor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fakekube.net.pump.time.monotonic", lambda: 0.0)  # the round does not end early
    long, short = Wire(), Wire()
    rig.deliver(make_cursor(topic, limit=1), long)
    rig.deliver(make_cursor(topic), short)
    rig.settle()
    topic.publish(*[b"x"] * 5)
    assert rig.pump.run() == 0.0
    assert (long.got, short.got) == (b"x", b"xxxxx")
    rig.settle()
    assert long.got == b"xxxxx"


def test_a_drained_stream_is_not_asked_again_before_its_source_changes(rig: Rig, topic: Any, make_cursor: Any) -> None:
    cursor, wire = make_cursor(topic), Wire()
    rig.deliver(cursor, wire)
    rig.settle()
    for is_drained, takes in ((True, 1), (False, 2)):
        cursor.is_drained, cursor.takes = is_drained, 0
        topic.publish(b"a")
        rig.settle()
        assert cursor.takes == takes
    assert wire.got == b"aa"


@pytest.mark.parametrize("how", ["end", "error", "send"])
def test_client_disconnect_closes_its_stream(rig: Rig, topic: Any, make_cursor: Any, how: str) -> None:
    cursor, wire = make_cursor(topic), Wire()
    rig.deliver(cursor, wire)
    rig.settle()
    if how == "end":
        wire.said.append(b"")
        rig.happen(wire, READ)
    elif how == "error":
        wire.broken = True
        rig.happen(wire, READ)
    else:
        wire.broken = True
        topic.publish(b"a")
        rig.settle()
    assert cursor.closings == 1
    assert rig.released == [False]


def test_finished_response_releases_the_connection_for_reuse(rig: Rig, topic: Any, make_cursor: Any) -> None:
    wire = Wire()
    rig.deliver(make_cursor(topic), wire, reusable=True)
    topic.publish(b"a", make_cursor.END)
    rig.settle()
    assert wire.got == b"1\r\na\r\n0\r\n\r\n"
    assert rig.released == [True]


def test_last_chunk_waits_for_a_slow_client(rig: Rig, topic: Any, make_cursor: Any) -> None:
    cursor, wire = make_cursor(topic), Wire(room=2)
    rig.deliver(cursor, wire, reusable=True)
    topic.publish(b"abc", make_cursor.END)
    rig.settle()
    assert rig.released == []
    wire.room = float("inf")
    rig.happen(wire, WRITE)
    assert wire.got == b"3\r\nabc\r\n0\r\n\r\n"
    assert rig.released == [True]


def test_failing_stream_does_not_affect_other_streams(
    rig: Rig, topic: Any, make_cursor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OSError("of its own")

    bad, good = make_cursor(topic), make_cursor(topic)
    wire = Wire()
    rig.deliver(bad, Wire())
    rig.deliver(good, wire)
    bad.on_take = fail
    with caplog.at_level(logging.ERROR):
        topic.publish(b"a")
        rig.settle()
    assert "A stream failed" in caplog.text
    assert bad.closings == 1
    assert wire.got == b"a"


def test_deadlines_follow_the_clock(rig: Rig, clock: Clock, topic: Any, make_cursor: Any) -> None:
    clock.hold()
    start = clock.monotonic()
    cursor = make_cursor(topic, deadline=start + 10)

    def at_deadline() -> None:
        if clock.monotonic() >= cursor.deadline:
            topic.frames.append(b"bookmark")
            cursor.deadline += 10

    cursor.on_take = at_deadline
    wire = Wire()
    rig.deliver(cursor, wire)
    assert rig.settle() == pytest.approx(10)
    clock.advance(seconds=9)
    rig.settle()
    assert wire.got == b""
    clock.advance(seconds=1)
    assert rig.settle() == pytest.approx(10)
    assert wire.got == b"bookmark"


def test_deadlines_of_a_clock_that_runs_faster_are_due_earlier(rig: Rig, clock: Clock, topic: Any, make_cursor: Any) -> None:
    clock.scale(100)
    rig.deliver(make_cursor(topic, deadline=clock.monotonic() + 100_000), Wire())
    assert rig.settle() == pytest.approx(1000, abs=100)


def test_unchanged_past_deadline_is_due_once(rig: Rig, clock: Clock, topic: Any, make_cursor: Any) -> None:
    cursor = make_cursor(topic, deadline=clock.monotonic() - 1)
    rig.deliver(cursor, Wire())
    assert rig.settle() is None
    takes = cursor.takes
    rig.settle()
    assert cursor.takes == takes


def test_held_clock_is_polled_at_most_every_50_milliseconds(rig: Rig, clock: Clock, topic: Any, make_cursor: Any) -> None:
    clock.hold()
    rig.deliver(make_cursor(topic, deadline=clock.monotonic() + 1e-6), Wire())
    rig.settle()
    assert rig.settle() == pytest.approx(0.05)


def test_ended_streams_are_removed_from_the_deadline_queue(
    rig: Rig, clock: Clock, topic: Any, make_cursor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fakekube.net.pump._DEADLINES_BOUND", 10)
    rig.pump._deadlines_bound = 10
    for _ in range(100):
        wire = Wire()
        rig.deliver(make_cursor(topic, deadline=clock.monotonic() + 3600), wire)
        wire.said.append(b"")
        rig.happen(wire, READ)
    assert len(rig.pump._deadlines) <= 11


def test_socket_is_not_read_after_too_much_pipelined_input(rig: Rig, topic: Any, make_cursor: Any) -> None:
    wire = Wire()
    rig.deliver(make_cursor(topic), wire, reusable=True)
    wire.said.append(b"x" * 100_000)
    rig.happen(wire, READ)
    assert wire.number not in rig.loop.watched
    topic.publish(b"a")
    rig.settle()
    assert wire.got == b"1\r\na\r\n"


def test_close_sends_the_last_chunk_to_clients_without_pending_output(rig: Rig, topic: Any, make_cursor: Any) -> None:
    idle, stuck = Wire(), Wire(room=2)
    cursors = [make_cursor(topic), make_cursor(topic)]
    rig.deliver(cursors[0], idle, reusable=True)
    rig.deliver(cursors[1], stuck, reusable=True)
    topic.publish(b"abc")
    rig.settle()
    stuck.room = 100
    rig.pump.close()
    assert idle.got.endswith(b"0\r\n\r\n")
    assert stuck.got == b"3\r"
    assert [cursor.closings for cursor in cursors] == [1, 1]
    assert rig.released == [False, False]
    assert topic.wakes == []


def test_first_write_includes_available_frames(topic: Any, make_cursor: Any) -> None:
    topic.publish(b"a", b"b")
    wire = Wire()
    delivery = Delivery(make_cursor(topic, limit=1), Bare(RequestParser()), wire, lambda reusable: None)
    assert delivery.begin(b"head:") is Progress.WAITING
    assert wire.got == b"head:ab"
    topic.publish(make_cursor.END)
    assert delivery.advance() is Progress.ENDED


def test_round_ends_after_a_portion_and_the_turn_goes_on(
    rig: Rig, topic: Any, make_cursor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New connections are accepted between rounds; no stream gets a second turn before each had its first."""
    now = [0.0]
    monkeypatch.setattr("fakekube.net.pump.time.monotonic", lambda: now[0])
    cursors = [make_cursor(topic, limit=1) for _ in range(10)]

    def spend() -> None:
        now[0] += 0.0011

    wires = [Wire() for _ in cursors]
    for cursor, wire in zip(cursors, wires, strict=True):
        rig.deliver(cursor, wire)
    rig.settle()
    for cursor in cursors:
        cursor.takes, cursor.on_take = 0, spend
    topic.publish(b"1", b"2", b"3")
    assert rig.pump.run() == 0.0
    assert [cursor.takes for cursor in cursors] == [1] * 2 + [0] * 8
    for _ in range(4):
        rig.pump.run()
    assert [cursor.takes for cursor in cursors] == [1] * 10
    rig.settle()
    assert all(wire.got == b"123" for wire in wires)


def test_changes_during_a_turn_are_sent_together_after_a_pause(
    rig: Rig, topic: Any, make_cursor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [10.0]
    monkeypatch.setattr("fakekube.net.pump.time.monotonic", lambda: now[0])
    cursor, wire = make_cursor(topic), Wire()
    rig.deliver(cursor, wire)
    rig.settle()

    def change_meanwhile() -> None:
        cursor.on_take = lambda: None
        now[0] += 0.004
        topic.publish(b"2")

    cursor.on_take = change_meanwhile
    topic.publish(b"1")
    assert rig.settle() == pytest.approx(0.008)  # twice as long as the turn
    sent = len(wire.got)
    topic.publish(b"3")
    assert rig.settle() == pytest.approx(0.008)
    assert len(wire.got) == sent
    now[0] += 0.009
    assert rig.settle() is None
    assert wire.got == b"123"
    topic.publish(b"4")  # nothing changed during the last turn
    assert rig.pump.run() == 0.0
    assert wire.got == b"1234"


def test_a_pause_is_bounded(rig: Rig, topic: Any, make_cursor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0]
    monkeypatch.setattr("fakekube.net.pump.time.monotonic", lambda: now[0])
    cursor, wire = make_cursor(topic), Wire()
    rig.deliver(cursor, wire)
    rig.settle()

    def change_after_a_second() -> None:
        cursor.on_take = lambda: None
        now[0] += 1.0
        topic.publish(b"2")

    cursor.on_take = change_after_a_second
    topic.publish(b"1")
    assert rig.settle() == pytest.approx(0.02)


def test_stream_whose_receiver_fails_is_removed(rig: Rig, topic: Any, make_cursor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cursor, wire = make_cursor(topic), Wire()
    delivery = rig.deliver(cursor, wire)
    rig.settle()

    def fail(data: bytes) -> bytes:
        raise ValueError("a defect")

    monkeypatch.setattr(delivery.framing, "receive", fail)
    wire.said.append(b"x")
    rig.happen(wire, READ)
    assert cursor.closed.is_set()
    assert rig.released == [False]
