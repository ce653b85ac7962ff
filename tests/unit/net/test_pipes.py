"""Pipes: what is written is read once and in order; blocking methods wake up."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.base.threads import WORKERS
from fakekube.net.pipes import Pipe, TerminalSize, TerminalSizeQueue


def in_background(task: Callable[[], None]) -> threading.Event:
    done = threading.Event()

    def run() -> None:
        task()
        done.set()

    WORKERS.run(run)
    return done


@given(
    capacity=st.integers(1, 20),
    steps=st.lists(st.one_of(st.binary(max_size=30), st.integers(1, 25)), max_size=30),
    closes=st.booleans(),
)
def test_a_pipe_is_a_bounded_queue_of_bytes(capacity: int, steps: list[bytes | int], closes: bool) -> None:
    pipe, held = Pipe(capacity), b""
    for step in steps:
        if isinstance(step, bytes):
            accepted = pipe.write(step)
            assert accepted == min(len(step), capacity - len(held))
            held += step[:accepted]
        else:
            assert pipe.read(step) == (held[:step] or None)
            held = held[step:]
        assert (pipe.pending, pipe.free) == (len(held), capacity - len(held))
    if closes:
        pipe.close()
        assert b"".join(iter(lambda: pipe.read() or b"", b"")) == held
        assert pipe.read() == b""
        with pytest.raises(BrokenPipeError):
            pipe.write(b"x")


def test_write_to_an_abandoned_pipe_raises_broken_pipe_error() -> None:
    pipe = Pipe()
    pipe.write(b"x")
    pipe.abandon()
    pipe.abandon()
    assert pipe.read() == b""
    assert pipe.pending == 0
    with pytest.raises(BrokenPipeError):
        pipe.write(b"y")


def test_every_change_notifies_subscribers() -> None:
    pipe, woken = Pipe(), list[str]()
    wake = lambda: woken.append("")  # noqa: E731
    pipe.subscribe(wake)
    pipe.write(b"x")
    pipe.read()
    pipe.read()  # nothing has changed
    pipe.close()
    pipe.abandon()
    assert len(woken) == 4
    pipe.unsubscribe(wake)
    Pipe.close(pipe)
    assert len(woken) == 4


def write_and_close(pipe: Pipe, data: bytes) -> threading.Event:
    def write() -> None:
        pipe.write_all(data)
        pipe.close()

    return in_background(write)


def test_write_all_waits_for_the_reader() -> None:
    pipe = Pipe(4)
    done = write_and_close(pipe, b"0123456789")
    assert b"".join(iter(lambda: pipe.read_blocking(3, timeout=60), b"")) == b"0123456789"
    assert done.wait(60)


def test_abandon_wakes_a_blocked_writer_with_broken_pipe_error() -> None:
    pipe, raised = Pipe(1), threading.Event()

    def write() -> None:
        with pytest.raises(BrokenPipeError):
            pipe.write_all(b"xyz")
        raised.set()

    in_background(write)
    assert pipe.read_blocking(1, timeout=60) == b"x"
    pipe.abandon()
    assert raised.wait(60)


def test_iteration_yields_lines() -> None:
    pipe = Pipe(8)
    done = write_and_close(pipe, b"one\ntwo\nlong line without an end\nlast")
    lines = list(pipe)
    assert lines[:2] == [b"one\n", b"two\n"]
    assert b"".join(lines) == b"one\ntwo\nlong line without an end\nlast"
    assert done.wait(60)


def test_blocking_reads_time_out() -> None:
    with pytest.raises(TimeoutError):
        Pipe().read_blocking(timeout=0.01)
    with pytest.raises(TimeoutError):
        Pipe().readline(timeout=0.01)


def test_terminal_size_queue() -> None:
    sizes, woken = TerminalSizeQueue(), list[str]()
    sizes.subscribe(lambda: woken.append(""))
    assert sizes.next() is None
    sizes.put(TerminalSize(80, 24))
    sizes.put(TerminalSize(100, 40))
    assert sizes.next() == (80, 24)
    assert sizes.latest == (100, 40)
    assert len(woken) == 2
