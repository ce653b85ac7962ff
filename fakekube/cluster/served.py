"""The part of `Cluster` about its server: start and stop, addresses, kubeconfig files, users, recorded requests and faults.

Invariants: a cluster is not started, started or stopped, in this order, and never starts again; `stop` ends all that it
started (threads, sockets, files, timers). Server and observer are made when they are first needed.
"""

from __future__ import annotations

import threading
import weakref
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from fakekube.apiserver.auth.identities import with_authenticated
from fakekube.apiserver.endpoints.request import User
from fakekube.apiserver.registry.scope import Settings
from fakekube.base.clock import Clock
from fakekube.cluster.components import Components
from fakekube.cluster.kubeconfig import Kubeconfigs
from fakekube.cluster.serving import Serving
from fakekube.cluster.state import ClusterState
from fakekube.cluster.testing.object_client import ObjectClient
from fakekube.net.wsgi import Application

if TYPE_CHECKING:
    from fakekube.net import Server
    from fakekube.powers.faults import Faults
    from fakekube.powers.observation import Observer
    from fakekube.powers.requests import Requests


class _State(Enum):
    NOT_STARTED = "not started"
    STARTED = "started"
    STOPPED = "stopped"


class ServedCluster(ClusterState):
    """A cluster that starts and stops, and records its requests.

    Args:
        components: what runs in the cluster.
        serving: its server.
        settings, clock: of the cluster.
        keep_requests: how many of the latest requests are recorded.
        strict: whether `stop` raises AssertionError if an armed fault never occurred.
    """

    def __init__(
        self, components: Components, serving: Serving, settings: Settings, clock: Clock, *, keep_requests: int, strict: bool
    ) -> None:
        super().__init__(components.client(), components.machinery, settings, clock)
        self._components = components
        self._serving = serving
        self._strict = strict
        self._requires_hits = strict
        """Whether `stop` checks that every armed fault occurred; False after the first check."""
        self._keep_requests = keep_requests
        self._observer: Observer | None = None
        if keep_requests:
            self._observe()
        self._other_servers: list[Server] = []
        self._outages = 0
        """The number of outages that have not ended."""
        self._pausing = threading.Lock()
        self._starting = threading.Lock()
        self._state = _State.NOT_STARTED
        me = weakref.proxy(self)  # no cycles: see `apiserver.server`
        self._kubeconfigs = Kubeconfigs(serving, lambda: me.url, partial(ServedCluster._add_token, me))

    # --- Requests and faults ------------------------------------------------------------------------------------------

    def _observe(self) -> Observer:
        """Returns the observer of requests; installs it on first use."""
        if self._observer is None:
            from fakekube.controllers.client import Client
            from fakekube.powers.exchange import FAULTS_USER_AGENT
            from fakekube.powers.observation import Observer

            backend, application = self._machinery.backend, self._machinery.application
            client = Client(weakref.proxy(application), backend.registry, backend.clock, user_agent=FAULTS_USER_AGENT)
            self._observer = Observer(backend, client, self._keep_requests)
            application.observer = self._observer
            self._machinery.observe_calls(self._observer.observe_call)
        return self._observer

    @property
    def requests(self) -> Requests:
        """The recorded requests and responses, oldest first: `requests.where(verb="patch").wait(1)`; see docs/powers.md."""
        return self._observe().requests

    @property
    def faults(self) -> Faults:
        """Fault injection: `faults.on("watch", "pods").gone()`; see docs/powers.md."""
        return self._observe().faults

    # --- Start and stop -----------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Starts the cluster, and returns it; does nothing if it is started.

        With port 0, the server itself starts when its address is first read.

        Raises:
            OSError: the address is not available.
            OptionError: the certificate files are invalid.
            RuntimeError: the cluster is stopped.
        """
        with self._starting:
            if self._state is _State.STOPPED:
                raise RuntimeError("the cluster is stopped; a fork of it can be started")
            if self._state is _State.STARTED:
                return self
            if self._serving.may_fail:  # so that `start` raises, and not the first use of the address
                self._serving.start(self._served)
            self._state = _State.STARTED
        self._components.start()
        return self

    def _running_server(self) -> Server:
        """Returns the server; starts it on first use. Raises RuntimeError before `start` and after `stop`."""
        if self._serving.server is not None:
            return self._serving.server
        with self._starting:
            if self._state is not _State.STARTED:
                raise RuntimeError(f"the cluster is {self._state.value}")
            return self._serving.server or self._serving.start(self._served)

    @property
    @abstractmethod
    def _served(self) -> Application:
        """The WSGI application of the server."""

    def stop(self) -> None:
        """Stops the server with all its streams, the controllers, recordings and timers, and deletes kubeconfig files.

        May be called before `start`, and twice. Raises AssertionError if the cluster is strict and an armed fault never
        occurred; the cluster is stopped nevertheless.
        """
        with self._starting:
            self._state = _State.STOPPED
            server, self._serving.server = self._serving.server, None
        observer = self._observer
        if observer is not None:
            observer.stop()
        for one in self._recordings:
            one.stop()
        for serving in (*self._other_servers, *([] if server is None else [server])):
            serving.stop()
        self._components.stop()
        self.clock.close()
        self._kubeconfigs.remove()
        if self._requires_hits and observer is not None:
            self._requires_hits = False
            observer.require_hits()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._requires_hits = (
            self._requires_hits and error is None
        )  # an error of the block is more important than a fault that did not happen
        self.stop()

    @property
    def url(self) -> str:
        """The URL of the server. Raises RuntimeError before `start` and after `stop`."""
        return self._running_server().url

    @property
    def port(self) -> int:
        """The port of the server. Raises RuntimeError before `start` and after `stop`."""
        return self._running_server().port

    @property
    def host(self) -> str:
        """The host on which the server listens."""
        return self._serving.host

    @property
    def connections(self) -> int:
        """The number of connections of the server, including streams."""
        server = self._serving.server
        return 0 if server is None else server.connections

    @property
    def is_connected(self) -> bool:
        """Whether any client has a connection to the server."""
        server = self._serving.server
        return server is not None and server.is_connected

    @property
    def application(self) -> Any:
        """The API as a WSGI application, for another server or a test client."""
        return self._machinery.application

    @property
    def kubeconfig(self) -> Path:
        """The path of a kubeconfig file for an administrator; the file is deleted when the cluster stops.

        Raises RuntimeError before `start` and after `stop`.
        """
        return self._kubeconfigs.admin

    @property
    def kubeconfig_text(self) -> str:
        """The content of a kubeconfig file for an administrator. Raises RuntimeError before `start` and after `stop`."""
        return self._kubeconfigs.text()

    def isolate(self) -> None:
        """Makes the tokens of other clusters of this process invalid here. Called before `start`.

        The administrator has a random token, and kubeconfig files have it in place of a client certificate.
        """
        self._machinery.access.isolate()
        self._kubeconfigs.isolate()

    def write_kubeconfig(self, path: Path | str, *, user: str = "", groups: Iterable[str] = ()) -> None:
        """Writes a kubeconfig file, which is kept when the cluster stops.

        Args:
            path: of the file; missing folders are created.
            user, groups: for whom; by default an administrator.

        Raises OSError, and RuntimeError before `start` and after `stop`.
        """
        self._kubeconfigs.write(Path(path), user, tuple(groups))

    @property
    def token(self) -> str:
        """A bearer token of an administrator: `admin-token`, or a random one if other hosts can reach the server."""
        return self._kubeconfigs.token

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables for a process that uses this cluster: KUBECONFIG. Raises RuntimeError before `start`."""
        return {"KUBECONFIG": str(self.kubeconfig)}

    # --- Users --------------------------------------------------------------------------------------------------------

    def as_user(
        self, name: str, groups: Iterable[str] = (), uid: str = "", extra: Mapping[str, Sequence[str]] | None = None
    ) -> ObjectClient:
        """Returns a client with the methods of this cluster for objects, whose requests have another user.

        Args:
            name: the user name; "system:serviceaccount:NAMESPACE:NAME" and "system:node:NAME" are not added to groups.
            groups: the groups of the user, in addition to system:authenticated.
            uid, extra: the other fields of UserInfo.
        """
        user = with_authenticated(User(name, uid, tuple(groups), {key: tuple(values) for key, values in (extra or {}).items()}))
        return ObjectClient(self._components.client(user=user), self._store)

    def kubeconfig_for(self, name: str, groups: Iterable[str] = ()) -> Path:
        """Returns the path of a kubeconfig file for a user: with a client certificate if the server speaks TLS, else
        with a token.

        The file is deleted when the cluster stops. Raises RuntimeError before `start`.
        """
        return self._kubeconfigs.file_of(name, tuple(groups))

    def _add_token(self, token: str, user: str, groups: Sequence[str]) -> None:
        self._machinery.access.authenticator.static.add(token, User(user, "", tuple(groups)))

    # --- Outages ------------------------------------------------------------------------------------------------------

    @overload
    def outage(self, seconds: float) -> None: ...

    @overload
    def outage(self) -> AbstractContextManager[None]: ...

    def outage(self, seconds: float | None = None) -> AbstractContextManager[None] | None:
        """Drops all connections and accepts none for a while; does not wait. Of outages that overlap, the last to end counts.

        Args:
            seconds: how long, by the clock. Without it, returns a context manager that ends the outage.

        Raises RuntimeError before `start` and after `stop`.
        """
        server = self._running_server()
        with self._pausing:
            self._outages += 1
            server.pause()
        self._did("outage", "until it is ended" if seconds is None else f"for {seconds:g} s")
        if seconds is None:
            return self._outage_of_block(server)
        self.clock.call_at(self.clock.monotonic() + seconds, partial(self._end_outage, server), what="the end of the outage")
        return None

    def _end_outage(self, server: Server) -> None:
        """Ends one outage. Raises OSError if the port is in use."""
        with self._pausing:
            self._outages -= 1
            if not self._outages:
                server.resume()

    @contextmanager
    def _outage_of_block(self, server: Server) -> Iterator[None]:
        """Ends an outage at the end of the block."""
        try:
            yield
        finally:
            self._end_outage(server)
