"""The server: listens, serves every connection in a thread, enforces timeouts, and closes all connections.

The thread of the loop accepts connections, serves streams and ends connections that are idle or slow; it never blocks on a
client. A connection has a thread of its own, or waits for its turn with others (`leader_followers`). All threads belong to the
process and outlive a server. While a server runs, the switch interval is short (`leader_followers`).
"""

from __future__ import annotations

import errno
import math
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from fakekube.base.threads import WORKERS
from fakekube.net.connection import Connection, ServingLimits
from fakekube.net.environ import base_environ
from fakekube.net.leader_followers import SWITCH_INTERVAL
from fakekube.net.loop import READ, joined_loop
from fakekube.net.pump import Clock, Pump
from fakekube.net.transport import Transport
from fakekube.net.wsgi import Application

if TYPE_CHECKING:
    import ssl


DEFAULT_MAX_STREAMS = 100
"""The default of kube-apiserver for --http2-max-streams-per-connection (secure_serving.go)."""


_BACKLOG = 1024
_ACCEPTED_AT_ONCE = 8
"""The number of connections that are accepted between two looks at streams."""
_ACCEPT_PAUSE_SECONDS = 0.05
"""How long no connection is accepted after the process had no descriptor for one."""
_ROUND_SECONDS = 2.0
"""The interval at which the deadlines of connections are checked."""
_STOP_PATIENCE = 0.25
"""Seconds that `stop` waits for requests in progress."""

_NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_WILDCARDS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Server:
    """Serves one WSGI application over HTTP; a context manager that starts and stops it."""

    def __init__(
        self,
        application: Application,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        clock: Clock,
        tls: ssl.SSLContext | None = None,
        max_streams: int = DEFAULT_MAX_STREAMS,
        goaway_chance: float = 0.0,
    ) -> None:
        """
        Args:
            application: the WSGI application; may return a `fakekube.net.streams.Stream`.
            host: a name or an address of this machine.
            port: 0 is a free one.
            clock: the clock for the deadlines of streams and the Date of responses.
            tls: a context of `tls.server_context`, to serve HTTPS, and HTTP/2 if the context offers it.
            max_streams: the maximum number of concurrent requests on a connection with HTTP/2.
            goaway_chance: the probability with which a request over HTTP/2 is the last one of its connection.
        """
        self.application = application
        self.host = host
        self.port = port
        self.max_streams = max_streams
        self.goaway_chance = goaway_chance
        self.limits = ServingLimits()
        self._clock = clock
        self._tls = tls
        self._connections: set[Connection] = set()
        self._accepting = threading.Lock()
        """Held to accept a connection and to close the listener; after the latter, no connection is added to `_connections`."""
        self._none_left = threading.Condition()
        self._next_round = 0.0
        self._accept_again_at = math.inf
        self._date = ""
        self._date_until = 0.0
        self._running = False

    @property
    def url(self) -> str:
        """The URL of the server, without a slash at the end."""
        host = _WILDCARDS.get(self.host, self.host)
        return f"http{'s' if self._tls else ''}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def start(self) -> None:
        """Starts to listen and to serve, and sets `port`. May be called once. Raises OSError if the address is not available."""
        self._listener = self._listen()
        self.port = self._listener.getsockname()[1]
        self._base = base_environ(self.host, self.port, "https" if self._tls else "http")
        self._process = os.getpid()
        self._loop = joined_loop(self._before_wait)
        self.pump = Pump(self._loop, self._clock)
        self._clock.subscribe(self._forget_date)
        self._clock.subscribe(self._loop.wake)
        self._running = True
        self._change_loop(self._listen_to_clients)
        SWITCH_INTERVAL.shorten()

    @property
    def is_connected(self) -> bool:
        """Whether there is any connection, including streams."""
        return bool(self._connections)

    @property
    def connections(self) -> int:
        """The number of connections, including streams."""
        return len(self._connections)

    def drop(self) -> None:
        """Drops all connections and streams, except that of a request which calls this method; new ones are served."""
        self._in_loop(self.pump.drop)
        me = threading.get_ident()
        with self._none_left:
            for connection in self._connections:
                if connection.served_by != me:
                    connection.abort()

    def pause(self) -> None:
        """Drops all connections, and does not listen until `resume`."""
        self._change_loop(self._close_listener)
        self.drop()

    def resume(self) -> None:
        """Listens again at the same address. Raises OSError if the port is in use."""
        if not self._running or self._listener.fileno() >= 0:
            return
        self._listener = self._listen()
        self._change_loop(self._listen_to_clients)

    def _listen_to_clients(self) -> None:
        self._loop.watch(self._listener.fileno(), READ, self._accept)

    def _close_listener(self) -> None:
        with self._accepting:
            if self._listener.fileno() < 0:
                return
            self._loop.forget(self._listener.fileno())
            with suppress(OSError):
                while True:  # clients in the backlog get a normal end of the connection, and no reset
                    self._listener.accept()[0].close()
            self._listener.close()

    def _change_loop(self, task: Callable[[], None]) -> None:
        """Runs a task that changes what the loop watches: in this thread if the loop is concurrent, which avoids waking it."""
        if self._loop.is_concurrent:
            task()
        else:
            self._in_loop(task)

    def _in_loop(self, task: Callable[[], None]) -> None:
        """Runs a task in the loop's thread, and waits for its end."""
        if self._loop.is_current:
            task()
            return
        done = threading.Event()

        def run() -> None:
            try:
                task()
            finally:
                done.set()

        if self._loop.call(run):
            done.wait()

    def stop(self) -> None:
        """Ends streams and connections, and closes the port. May be called twice, from any thread."""
        if not self._running:
            return
        self._running = False
        if os.getpid() != self._process:
            # In a forked process only the descriptor is its own; the rest belongs to the parent.
            self._listener.close()
            return
        self._change_loop(self._close_listener)
        if self.pump.close_unused():
            self._loop.leave(self._before_wait)
        else:
            self._in_loop(self._end_streams)
        with self._none_left:
            for connection in self._connections:
                connection.abort()
            me = threading.get_ident()  # an application may stop its own server
            self._none_left.wait_for(lambda: all(one.served_by == me for one in self._connections), _STOP_PATIENCE)
        self._clock.unsubscribe(self._forget_date)
        self._clock.unsubscribe(self._loop.wake)
        SWITCH_INTERVAL.restore()

    def _end_streams(self) -> None:
        """Ends all streams, and then leaves the loop: one without members may end before it has run a task."""
        self.pump.close()
        self._loop.leave(self._before_wait)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def date(self) -> str:
        """Returns the time in the format of HTTP (RFC 9110, 5.6.7); cached for a second of the clock, or until it jumps."""
        if time.monotonic() >= self._date_until:
            now = self._clock.now()
            self._date_until = time.monotonic() + (1 - now.microsecond / 1e6) / self._clock.factor
            day, month = _DAYS[now.weekday()], _MONTHS[now.month]
            self._date = f"{day}, {now.day:02} {month} {now.year:04} {now:%H:%M:%S} GMT"
        return self._date

    def _forget_date(self) -> None:
        self._date_until = 0.0

    def serve(self, connection: Connection) -> None:
        """Serves a connection in a thread; closes it if no thread can be started."""
        try:
            WORKERS.run(connection.serve)
        except RuntimeError:
            connection.close()

    def on_connection_closed(self, connection: Connection) -> None:
        """Called when a connection is closed."""
        with self._none_left:
            self._connections.discard(connection)
            if not self._connections:
                self._none_left.notify_all()

    def _accept(self, _events: int) -> None:
        """Accepts a few connections; the loop calls it again while there are more."""
        for _ in range(_ACCEPTED_AT_ONCE):
            connection = self._accept_one()
            if connection is None:
                return
            self.serve(connection)

    def _accept_one(self) -> Connection | None:
        try:
            with self._accepting:
                connected, address = self._listener.accept()
                base: dict[str, Any] = self._base | {"REMOTE_ADDR": address[0], "REMOTE_PORT": str(address[1])}
                connection = Connection(self._transport(connected), self, base)
                with self._none_left:
                    self._connections.add(connection)
        except OSError as error:  # BlockingIOError: there is none left
            if error.errno in _NO_RESOURCES:
                self._pause_accepting()
            return None
        return connection

    def _pause_accepting(self) -> None:
        """Stops watching the listener until there may be resources again; what is open is served meanwhile."""
        with self._accepting:
            if self._listener.fileno() >= 0:
                self._loop.forget(self._listener.fileno())
                self._accept_again_at = time.monotonic() + _ACCEPT_PAUSE_SECONDS

    def _accept_again(self) -> float | None:
        """Watches the listener again after a lack of resources; returns the seconds until then."""
        left = self._accept_again_at - time.monotonic()
        if left <= 0:
            self._accept_again_at = math.inf
            with self._accepting:
                if self._listener.fileno() >= 0:
                    self._listen_to_clients()
            return None
        return left if left < math.inf else None

    def _transport(self, connected: socket.socket) -> Transport:
        if self._tls is None:
            return Transport(connected)
        from fakekube.net.tls import TLSTransport

        return TLSTransport(connected, self._tls)

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            listener = socket.create_server((self.host, self.port), family=family, backlog=_BACKLOG)
        except OSError as error:  # the rest of its text is the address, which callers tell themselves
            raise OSError(error.errno, str(error.strerror).partition(" (while ")[0]) from None
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # the sockets of its connections inherit it
        listener.setblocking(False)
        return listener

    def _before_wait(self) -> float | None:
        if not self._running:
            return None
        waits = [wait for wait in (self.pump.run(), self._abort_expired(), self._accept_again()) if wait is not None]
        return min(waits, default=None)

    def _abort_expired(self) -> float | None:
        """Aborts connections after their deadlines; returns the seconds until the next check."""
        if not self._connections:
            return None
        now = time.monotonic()
        if now >= self._next_round:
            self._next_round = now + _ROUND_SECONDS
            for connection in list(self._connections):
                if connection.deadline < now:
                    connection.abort()
        return self._next_round - now
