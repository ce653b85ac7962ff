"""The interface between the API server and kubelets.

`apiserver/endpoints/` implements the protocols (log, exec, attach, portforward, proxy) and calls a `Kubelet`; `nodes/runtime/`
implements one. Neither imports the other: `Backend.kubelet_of` returns the kubelet of a node. No method blocks; data is
exchanged through pipes, and an `Execution` reports the end of a process.

Specified by: pkg/kubelet/server/server.go (HostInterface), k8s.io/cri-streaming/pkg/streaming/server.go (Runtime).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from fakekube.base.objects import Object
from fakekube.net.pipes import Pipe, TerminalSizeQueue
from fakekube.net.streams import Notifier, Stream

Destination = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]] | tuple[str, int]
"""The destination of HTTP requests: a WSGI application of this process, or a host and a port."""


class KubeletError(Exception):
    """A kubelet refuses a request: the status code and the text of its response."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class PortForwardError(Exception):
    """A port of a pod cannot be reached; the text is that of the container runtime."""


#: The value of `LogOptions.stream` for the whole log.
ALL_STREAMS: Final = "All"


@dataclass(slots=True, frozen=True)
class LogOptions:
    """The fields of PodLogOptions that concern the kubelet. Absent options are None."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_seconds: int | None = None
    since_time: datetime | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = ALL_STREAMS
    """"All", "Stdout" or "Stderr"."""


@dataclass(slots=True)
class Streams:
    """The streams of a process, which reads `stdin` and writes `stdout` and `stderr`. Streams that the client did not request are
    None."""

    stdin: Pipe | None = None
    stdout: Pipe | None = None
    stderr: Pipe | None = None
    tty: bool = False
    sizes: TerminalSizeQueue | None = None
    """The sizes of the client's terminal, if it has one."""


@dataclass(slots=True, frozen=True)
class ExitStatus:
    """How a process ended."""

    code: int = 0
    error: str = ""
    """Why it could not be run; "" if it ran and ended with `code`."""


class Execution:
    """A process that runs for exec, or an attachment to one. Every method may be called from any thread.

    The side that runs it writes its output, closes the pipes and calls `finish`; the side of the client calls `cancel`
    when it has disconnected, which closes stdin and abandons the output.

    Args:
        cancel: called once if the client disconnects before the process ends.
    """

    __slots__ = ("_cancel", "_lock", "_notifier", "exit")

    def __init__(self, cancel: Callable[[], None] | None = None) -> None:
        self._cancel = cancel
        self._lock = threading.Lock()
        self._notifier = Notifier()
        self.exit: ExitStatus | None = None
        """None until the process has ended."""

    def finish(self, exit_status: ExitStatus | None = None) -> None:
        """Records the end of the process; later output does not reach the client. The second call has no effect."""
        with self._lock:
            if self.exit is not None:
                return
            self.exit = exit_status or ExitStatus()
        self._notifier.notify()

    def cancel(self) -> None:
        """Called when the client has disconnected. Has no effect the second time, or after the end."""
        with self._lock:
            cancel, self._cancel = (None if self.exit is not None else self._cancel), None
        if cancel is not None:
            cancel()

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Calls `wake` (cheap, from any thread, never blocking) at the end, until unsubscribed."""
        self._notifier.subscribe(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """Ends a subscription; unknown ones are ignored."""
        self._notifier.unsubscribe(wake)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Connection:
    """A connection to a port of a pod.

    The pod's side ends it by closing `to_client`, the client's side by closing `from_client`; a side that disconnects completely
    also abandons the pipe that it reads.
    """

    from_client: Pipe
    to_client: Pipe
    error: str = ""
    """Set by the pod's side before it closes `to_client`, if the connection failed; the text is sent on the error stream."""

    def disconnect(self) -> None:
        """Ends the connection on the pod's side, as when its process dies; what it has written can still be read."""
        self.from_client.abandon()
        self.to_client.close()


class Kubelet(Protocol):
    """The kubelet of a node."""

    def container_logs(self, pod: Object, container: str, options: LogOptions) -> Stream | bytes:
        """Returns the log of a container: all of it, or a stream that ends when the container does (`follow`).

        Raises KubeletError, for example 400 if there is no previous container.
        """

    def exec(self, pod: Object, container: str, command: Sequence[str], streams: Streams) -> Execution:
        """Starts a program in a running container. Raises KubeletError."""

    def attach(self, pod: Object, container: str, streams: Streams) -> Execution:
        """Attaches to the main program of a running container. Raises KubeletError."""

    def port_forward(self, pod: Object, port: int) -> Connection:
        """Connects to a port of a pod. Raises PortForwardError."""

    def pod_destination(self, pod: Object, port: int) -> Destination | None:
        """Returns the destination of HTTP requests to a port of a pod; None if nothing listens there."""

    def node_destination(self, node: Object) -> Destination | None:
        """Returns the destination of requests to the kubelet's own endpoints (stats/summary, metrics, pods, healthz …) of a
        node; None if the kubelet does not run."""
