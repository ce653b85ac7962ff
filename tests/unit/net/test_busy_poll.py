"""A thread of a server that has its process to itself looks for a moment before it sleeps, if that was worth it before."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import pytest

from fakekube.net import Server, busy_poll
from fakekube.net.busy_poll import PAUSE, SECONDS, BusyPoll
from fakekube.net.certificates import credentials
from fakekube.net.leader_followers import LeaderFollowers

TIMEOUT = 60.0
SHORT, LONG = SECONDS / 2, SECONDS * 2


class Waits:
    """Makes a `BusyPoll` wait, on a clock that moves by a tenth of a look whenever it is read."""

    def __init__(self) -> None:
        self.now = 0.0
        self.busy_poll = BusyPoll()

    def monotonic(self) -> float:
        self.now += SECONDS / 10
        return self.now

    def wait(self, seconds: float, *, after: int = 1000) -> tuple[int, bool]:
        """Returns how often was looked, and whether something was found, which there is `after` so many looks."""
        looks: list[int] = []

        def look(timeout: int) -> bool:
            looks.append(timeout)
            return len(looks) > after

        found = self.busy_poll.look(look)
        assert not any(looks), "it waited"
        if not found:
            self.now += seconds
            self.busy_poll.end_sleep()
        return len(looks), bool(found)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    waits = Waits()
    monkeypatch.setattr(busy_poll, "time", waits)
    return waits


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """This process may look, and every wait is short. What each look has found."""
    found: list[bool] = []
    look = BusyPoll.look

    def recorded(self: BusyPoll, *arguments: Any) -> Any:
        found.append(False)
        result = look(self, *arguments)
        found[-1] = bool(result)
        return result

    monkeypatch.setattr(busy_poll, "_is_allowed", True)
    monkeypatch.setattr(busy_poll, "SECONDS", TIMEOUT)
    monkeypatch.setattr(BusyPoll, "look", recorded)
    return found


def test_a_thread_looks_after_a_short_wait_until_it_finds_something(waits: Waits) -> None:
    assert waits.wait(SHORT) == (0, False)
    assert waits.wait(SHORT, after=3) == (4, True)
    assert waits.wait(SHORT, after=0) == (1, True)


def test_a_thread_sleeps_at_once_after_a_long_wait(waits: Waits) -> None:
    waits.wait(SHORT)
    waits.wait(SHORT, after=0)
    for _ in range(PAUSE + 2):
        waits.wait(LONG)
        assert waits.wait(LONG) == (0, False)


def test_a_look_in_vain_ends_and_there_is_none_for_some_waits(waits: Waits) -> None:
    waits.wait(SHORT)
    looks, found = waits.wait(SHORT)
    assert (0 < looks <= 10, found) == (True, False)
    assert [waits.wait(SHORT)[0] for _ in range(PAUSE)] == [0] * PAUSE
    assert waits.wait(SHORT, after=0) == (1, True)


def test_only_a_process_with_several_processors_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy_poll, "_is_allowed", False)
    assert busy_poll.busy_poll_if_allowed() is None
    for processors in ({0}, {0, 1}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _process, processors=processors: processors, raising=False)
        busy_poll.allow()
        assert (busy_poll.busy_poll_if_allowed() is not None) is (len(processors) > 1)
    monkeypatch.delattr(os, "sched_getaffinity")
    busy_poll.allow()
    assert busy_poll.busy_poll_if_allowed() is None


@pytest.mark.parametrize("is_secure", [False, True])
def test_requests_are_found_by_looks(
    serve: Callable[..., Server], connect: Callable[..., Any], found: list[bool], is_secure: bool
) -> None:
    given = credentials() if is_secure else None

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [])
        return [environ["PATH_INFO"].encode()]

    server = serve(application, tls=given.context if given else None)
    client = connect(server, ssl.create_default_context(cadata=given.ca_certificate) if given else None)
    for path in ("/1", "/2", "/3"):
        client.get(path)
        assert client.answer()[2] == path.encode()
    assert found[:3] == [False, True, True]


def test_the_leader_finds_descriptors_by_looks(found: list[bool]) -> None:
    threads, (client, server), ended = LeaderFollowers(), socket.socketpair(), threading.Event()
    client.settimeout(TIMEOUT)

    def echo() -> bool:
        data = server.recv(100)
        if data:
            server.send(data)
        else:
            ended.set()
        return bool(data)

    threads.watch(server.fileno(), echo)
    for data in (b"1", b"2", b"3"):
        client.send(data)
        assert client.recv(100) == data
    client.close()
    assert ended.wait(TIMEOUT)
    server.close()
    assert found[:4] == [False, True, True, True]
