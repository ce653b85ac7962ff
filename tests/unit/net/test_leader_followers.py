"""One thread serves the descriptors in turn; another takes over while a callback takes long."""

from __future__ import annotations

import socket
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakekube.base.threads import WORKERS
from fakekube.net import leader_followers
from fakekube.net.leader_followers import LeaderFollowers

TIMEOUT = 60.0


def _watches_on() -> bool:
    return True


class Pair:
    """A connection whose server side is watched; what arrives is recorded with the thread that received it."""

    def __init__(self, threads: LeaderFollowers, respond: Callable[[bytes], object] = lambda data: None) -> None:
        self.client, self.server = socket.socketpair()
        self.client.settimeout(TIMEOUT)
        self.threads = threads
        self.respond = respond
        self.by: list[int] = []
        self.running = 0
        self.closed = threading.Event()
        threads.watch(self.server.fileno(), self.on_readable)

    def on_readable(self) -> bool:
        assert not self.running, "two callbacks of one descriptor at the same time"
        self.running += 1
        data = self.server.recv(100)
        self.by.append(threading.get_ident())
        if data:
            self.respond(data)
        self.running -= 1
        if not data:
            self.threads.forget(self.server.fileno())
            self.server.close()
            self.closed.set()
            return False
        self.server.send(data)
        return True

    def ask(self, data: bytes = b"x") -> bytes:
        self.client.send(data)
        return self.client.recv(100)

    def close(self) -> None:
        self.client.close()
        assert self.closed.wait(TIMEOUT)


@pytest.fixture
def threads() -> LeaderFollowers:
    return LeaderFollowers()


@pytest.fixture
def pair(threads: LeaderFollowers) -> Iterator[Callable[..., Pair]]:
    pairs: list[Pair] = []

    def make(respond: Callable[[bytes], object] = lambda data: None) -> Pair:
        pairs.append(Pair(threads, respond))
        return pairs[-1]

    yield make
    for one in pairs:
        one.close()


@pytest.fixture
def long_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No follower takes the lead, however long a callback takes on this machine."""
    monkeypatch.setattr(leader_followers, "_TURN_SECONDS", TIMEOUT)


@pytest.mark.usefixtures("long_turns")
def test_one_thread_serves_all(pair: Callable[..., Pair]) -> None:
    pairs = [pair() for _ in range(5)]
    for _ in range(3):
        assert [one.ask() for one in pairs] == [b"x"] * 5
    assert len({thread for one in pairs for thread in one.by}) == 1


def test_a_follower_takes_the_lead_while_a_callback_waits(pair: Callable[..., Pair]) -> None:
    ended = threading.Event()
    slow, other = pair(lambda data: ended.wait(TIMEOUT) if data == b"wait" else None), pair()
    assert slow.ask() == b"x"
    slow.client.send(b"wait")
    assert other.ask() == b"x"
    assert not ended.is_set()
    ended.set()
    assert slow.client.recv(100) == b"wait"
    assert slow.ask(b"again") == b"again"  # it is watched again
    assert slow.by[1] != other.by[0]


def test_many_callbacks_wait_at_the_same_time(pair: Callable[..., Pair]) -> None:
    together = threading.Barrier(4)
    pairs = [pair(lambda data: together.wait(TIMEOUT)) for _ in range(4)]
    for one in pairs:
        one.client.send(b"x")
    assert [one.client.recv(100) for one in pairs] == [b"x"] * 4
    together.abort()


@pytest.mark.usefixtures("long_turns")
def test_the_lead_is_yielded(pair: Callable[..., Pair], threads: LeaderFollowers) -> None:
    ended = threading.Event()

    def wait(data: bytes) -> None:
        threads.yield_lead()
        assert ended.wait(TIMEOUT)

    slow, other = pair(wait), pair()
    slow.client.send(b"x")
    assert other.ask() == b"x"
    ended.set()
    assert slow.client.recv(100) == b"x"


@pytest.mark.usefixtures("long_turns")
def test_yielding_does_nothing_in_other_threads(threads: LeaderFollowers, pair: Callable[..., Pair]) -> None:
    threads.yield_lead()
    one = pair()
    assert one.ask() == b"x"
    threads.yield_lead()
    assert one.ask() == b"x"
    assert len(set(one.by)) == 1


@pytest.mark.usefixtures("long_turns")
def test_an_exception_of_a_callback_ends_only_its_own_watch(pair: Callable[..., Pair], caplog: pytest.LogCaptureFixture) -> None:
    def fail(data: bytes) -> None:
        raise RuntimeError("no")

    broken, other = pair(fail), pair()
    broken.closed.set()
    broken.client.send(b"x")
    try:
        assert other.ask() == b"x"
        assert other.ask() == b"x"
        assert "Unexpected error" in caplog.text
    finally:
        broken.server.close()


def test_threads_end_when_nothing_is_watched(
    pair: Callable[..., Pair], threads: LeaderFollowers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_followers, "_PATIENCE", 0.05)
    one = pair()
    assert one.ask() == b"x"
    one.close()
    ended = threading.Event()
    for _ in range(1000):
        if threads._lead is None and not threads._has_follower:
            break
        ended.wait(0.01)
    assert threads._lead is None
    assert not threads._has_follower
    assert pair().ask() == b"x"  # and begin again


def test_followers_and_many_clients_lose_nothing(pair: Callable[..., Pair]) -> None:
    """Callbacks that take about as long as a turn change the leader all the time."""
    pause = threading.Event()
    pairs = [pair(lambda data: pause.wait(0.004)) for _ in range(8)]
    results: list[list[bytes]] = []

    def use(one: Pair) -> None:
        results.append([one.ask(b"%d" % number) for number in range(20)])

    clients = [threading.Thread(target=use, args=(one,)) for one in pairs]
    for client in clients:
        client.start()
    for client in clients:
        client.join(TIMEOUT)
    assert results == [[b"%d" % number for number in range(20)]] * 8


def test_a_callback_outlasts_the_lead_of_its_successor(
    pair: Callable[..., Pair], threads: LeaderFollowers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The successor has nothing to watch and ends; the connection is served again afterwards."""
    monkeypatch.setattr(leader_followers, "_PATIENCE", 0.02)
    ended = threading.Event()

    def wait(data: bytes) -> None:
        if data == b"wait":
            threads.yield_lead()
            for _ in range(1000):
                if threads._lead is None or ended.wait(0.01):
                    break

    one = pair(wait)
    assert one.ask(b"wait") == b"wait"
    assert one.ask() == b"x"


def test_a_callback_that_begins_while_the_lead_is_taken_is_left_to_the_successor(
    threads: LeaderFollowers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The follower saw the turn of one descriptor; the leader begins that of another one before it sees its successor."""
    first, other = socket.socketpair()
    threads.watch(first.fileno(), _watches_on)
    assert threads._lead is not None
    watch = threads._selector.get_map()[first.fileno()].data  # type: ignore[union-attr]
    run_turn, seen = threads._run_turn, leader_followers._Turn(other.fileno(), leader_followers._Watch(_watches_on))

    class Lead(leader_followers._Lead):
        """Its turn changes between the two times that the follower looks at it."""

        looks = 0

        @property
        def turn(self) -> leader_followers._Turn | None:  # type: ignore[override]
            self.looks += 1
            return seen if self.looks == 1 else self.begun

        @turn.setter
        def turn(self, turn: leader_followers._Turn | None) -> None:
            self.begun = turn

    lead = Lead()
    lead.turn = leader_followers._Turn(first.fileno(), watch)
    threads._lead = lead
    monkeypatch.setattr(leader_followers, "_Turn", lambda fileno, watch: lead.begun)
    assert threads._take_lead(lead, seen)
    assert not run_turn(lead, first.fileno(), watch)
    assert threads._selector is not None
    assert first.fileno() in threads._selector.get_map()
    threads.forget(first.fileno())
    for one in (first, other):
        one.close()


def test_a_callback_that_ends_while_the_lead_is_taken_is_watched_again(threads: LeaderFollowers) -> None:
    """The follower takes the lead between the end of the callback and the look of the leader at who leads."""
    client, server = socket.socketpair()
    served = threading.Semaphore(0)

    class Verdict:
        """The result of the callback; while the leader looks at it, the follower takes the lead, if it can."""

        def __bool__(self) -> bool:
            lead = threads._lead
            if lead is not None and (turn := lead.turn) is not None and (successor := threads._take_lead(lead, turn)) is not None:
                threading.Thread(target=threads._run_lead, args=(successor,), daemon=True).start()
            return True

    def receive() -> Verdict:
        server.recv(1)
        served.release()
        return Verdict()

    threads.watch(server.fileno(), receive)  # type: ignore[arg-type]
    for _ in range(3):
        client.send(b"x")
        assert served.acquire(timeout=TIMEOUT)
    threads.forget(server.fileno())
    client.close()
    server.close()


def test_a_taken_lead_leaves_a_new_connection_with_the_same_descriptor_watched(threads: LeaderFollowers) -> None:
    """The callback has closed its connection, whose number a new connection has by now."""
    first, other = socket.socketpair()
    threads.watch(first.fileno(), _watches_on)
    old = leader_followers._Turn(first.fileno(), leader_followers._Watch(lambda: False))
    threads._unregister_turn(old)
    assert threads._selector is not None
    assert first.fileno() in threads._selector.get_map()
    threads.forget(first.fileno())
    first.close()
    other.close()


def test_a_follower_stays_awake_beside_a_callback_that_began_before_it_fell_asleep(
    pair: Callable[..., Pair], threads: LeaderFollowers, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait_if_told(data: bytes) -> None:
        if data == b"wait":
            begun.set()
            go_on.wait(3 * TIMEOUT)  # longer than a client waits for its answer

    waiting, other = pair(wait_if_told), pair()
    fall_asleep = threads._sleep

    def fall_asleep_late(*arguments: Any) -> bool:
        if not begun.is_set():
            waiting.client.send(b"wait")
            begun.wait(TIMEOUT)
        return fall_asleep(*arguments)

    monkeypatch.setattr(threads, "_sleep", fall_asleep_late)  # not that of the process, which other servers use
    assert other.ask(b"x") == b"x"
    assert begun.wait(TIMEOUT)
    try:
        assert other.ask(b"y") == b"y"
    finally:
        go_on.set()
    assert waiting.client.recv(100) == b"wait"


class _Workers:
    """Runs tasks as the pool does, after `before` was called and until `after` returns."""

    def __init__(self, before: Callable[[], object] = lambda: None, after: Callable[[], object] = lambda: None) -> None:
        self._before, self._after = before, after

    def run(self, task: Callable[[], None]) -> None:
        self._before()
        WORKERS.run(task)
        self._after()


def test_a_new_leader_may_begin_before_the_thread_that_started_it_goes_on(
    pair: Callable[..., Pair], threads: LeaderFollowers, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()
    run_turn = LeaderFollowers._run_turn

    def run_turn_and_tell(self: LeaderFollowers, lead: Any, fileno: int, watch: Any) -> bool:
        if fileno == other.server.fileno():
            begun.set()
        return run_turn(self, lead, fileno, watch)

    def yield_the_lead(data: bytes) -> None:
        other.client.send(b"y")  # the new leader finds it at once
        with monkeypatch.context() as patch:
            patch.setattr(leader_followers, "WORKERS", _Workers(after=lambda: begun.wait(TIMEOUT)))
            threads.yield_lead()

    yielding, other = pair(yield_the_lead), pair()
    monkeypatch.setattr(LeaderFollowers, "_run_turn", run_turn_and_tell)
    assert yielding.ask(b"x") == b"x"
    assert other.client.recv(100) == b"y"
    assert other.ask(b"z") == b"z"


@pytest.mark.usefixtures("long_turns")
def test_a_lead_that_cannot_be_yielded_leaves_its_connection_watched(
    pair: Callable[..., Pair], threads: LeaderFollowers, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[bytes] = []

    def refuse() -> None:
        refused.append(b"")
        raise RuntimeError("can't start new thread")

    def yield_the_lead(data: bytes) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(leader_followers, "WORKERS", _Workers(before=refuse))
            threads.yield_lead()

    one = pair(yield_the_lead)
    assert one.ask(b"x") == b"x"
    assert one.ask(b"y") == b"y"
    assert len(refused) == 2


@pytest.mark.usefixtures("long_turns")
def test_an_owner_is_told_that_its_descriptor_is_not_watched_any_more(threads: LeaderFollowers) -> None:
    client, server = socket.socketpair()
    taken, served = threading.Event(), threading.Event()

    def receive() -> bool:
        server.recv(1)
        threads.yield_lead()
        threads.yield_lead()  # which does nothing any more
        served.set()
        return True

    def note() -> None:
        assert not taken.is_set()
        assert threads._selector is not None
        assert server.fileno() not in threads._selector.get_map()
        taken.set()

    threads.watch(server.fileno(), receive, note)
    client.send(b"x")
    assert taken.wait(TIMEOUT)
    assert served.wait(TIMEOUT)
    threads.watch(server.fileno(), receive, taken.set)
    served.clear()
    client.send(b"y")
    assert served.wait(TIMEOUT)
    for one in (client, server):
        one.close()


def test_a_follower_tells_the_owner_of_a_descriptor(threads: LeaderFollowers) -> None:
    client, server = socket.socketpair()
    taken = threading.Event()
    threads.watch(server.fileno(), lambda: taken.wait(TIMEOUT), taken.set)
    client.send(b"x")
    assert taken.wait(TIMEOUT)
    for one in (client, server):
        one.close()


def test_what_cannot_be_watched_for_lack_of_threads_can_be_watched_later(
    threads: LeaderFollowers, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, server = socket.socketpair()
    served = threading.Event()

    def refuse() -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(leader_followers, "WORKERS", _Workers(before=refuse))
        with pytest.raises(RuntimeError):
            threads.watch(server.fileno(), _watches_on)
    threads.watch(server.fileno(), lambda: served.set() or False)  # type: ignore[func-returns-value]
    client.send(b"x")
    assert served.wait(TIMEOUT)
    for one in (client, server):
        one.close()


class _Callback:
    """A callback that ends its watch; a long one waits until a follower has taken the lead."""

    def __init__(self, is_long: bool) -> None:
        self.taken = threading.Event()
        if not is_long:
            self.taken.set()

    def __call__(self) -> bool:
        assert self.taken.wait(TIMEOUT)
        return False


@pytest.mark.parametrize("is_long", [False, True])
def test_a_thread_that_waits_refers_to_no_callback(threads: LeaderFollowers, pair: Callable[..., Pair], is_long: bool) -> None:
    pair()  # so that somebody waits
    client, server = socket.socketpair()
    callback, dropped = _Callback(is_long), threading.Event()
    weakref.finalize(callback, dropped.set)
    threads.watch(server.fileno(), callback, callback.taken.set)
    del callback
    client.send(b"x")
    assert dropped.wait(TIMEOUT)
    for one in (client, server):
        one.close()


def test_a_leader_whose_lead_was_taken_while_it_began_to_wait_ends(pair: Callable[..., Pair], threads: LeaderFollowers) -> None:
    assert pair().ask() == b"x"
    assert threads._end_if_unused(leader_followers._Lead())
    assert pair().ask() == b"x"
