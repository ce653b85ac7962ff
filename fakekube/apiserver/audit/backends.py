"""The backends of audit logging: a log file, and a webhook.

The log file gets a line for each event. The webhook gets batches; in the mode `batch` a thread sends them, which starts with the
first event and ends with the cluster, and requests do not wait for it.

Specified by: k8s.io/apiserver/plugin/pkg/audit (log, webhook, buffered), pkg/audit/format.go.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from fakekube.apimachinery.codecs import json
from fakekube.apis.rest.cluster_access import CallError
from fakekube.apiserver.options import AuditOptions
from fakekube.base.golang.strconv import go_quote
from fakekube.base.private_files import open_private

if TYPE_CHECKING:
    from fakekube.apiserver.webhooks.transport import Endpoint

Event = dict[str, Any]
"""An audit.k8s.io/v1 Event as JSON."""


class Backend(Protocol):
    """A destination of events."""

    def process(self, event: Event) -> None:
        """Processes one event. May be called from several threads."""

    def close(self) -> None:
        """Processes queued events and releases resources."""


class LogBackend:
    """Appends lines to a file, which is opened for the first one.

    Args:
        path: the path of the file; "-" is standard output.
        form: json or legacy.
    """

    def __init__(self, path: str, form: str) -> None:
        self._path = path
        self._line = LOG_FORMATS[form]
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None

    def process(self, event: Event) -> None:
        """Writes an event."""
        line = self._line(event)
        with self._lock:
            if self._file is None:
                self._file = self._open()
            self._file.write(line)
            self._file.flush()

    def _open(self) -> IO[bytes]:
        if self._path == "-":
            return sys.stdout.buffer
        Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        return open_private(self._path, append=True)

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            if self._file is not None and self._path != "-":
                self._file.close()
            self._file = None


def _legacy(event: Event) -> bytes:
    """Formats an event as a line of text."""
    user, other = event.get("user") or {}, event.get("impersonatedUser")
    answer = event.get("responseStatus")
    shown = {
        "id": event["auditID"],
        "stage": event["stage"],
        "ip": (event.get("sourceIPs") or ("<unknown>",))[0],
        "method": event["verb"],
        "user": user.get("username") or "<none>",
        "groups": ",".join(map(go_quote, user.get("groups") or ())) or "<none>",
        "as": "<self>" if other is None else other.get("username", ""),
        "asgroups": ",".join(map(go_quote, (other or {}).get("groups") or ())) or "<lookup>",
        "user-agent": event.get("userAgent", ""),
        "namespace": (event.get("objectRef") or {}).get("namespace") or "<none>",
        "uri": event["requestURI"],
    }
    text = " ".join(f"{name}={go_quote(value)}" for name, value in shown.items())
    code = "<deferred>" if answer is None else str(answer.get("code", 0))
    return f'{event["requestReceivedTimestamp"]} AUDIT: {text} response="{code}"\n'.encode("utf-8", "surrogateescape")


#: Name of a format of the log → how it writes an event.
LOG_FORMATS: Final[Mapping[str, Callable[[Event], bytes]]] = {"legacy": _legacy, "json": lambda event: json.dumps(event) + b"\n"}

WEBHOOK_MODES: Final = ("batch", "blocking", "blocking-strict")
#: The seconds that the webhook has for an answer, and the maximum number of attempts, with the seconds before the second one.
_TIMEOUT: Final = 30.0
_TRIES: Final = 5
_DELAY: Final = 0.5


class WebhookBackend:
    """Posts EventLists to a webhook.

    Args:
        endpoint: where the webhook is.
        options: the mode, and the limits of batches and of the queue.
    """

    def __init__(self, endpoint: Endpoint, options: AuditOptions) -> None:
        from fakekube.apiserver.webhooks.transport import Transport

        self._endpoint = endpoint
        self._options = options
        self._transport = Transport()
        self._waiting: deque[Event] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False

    def process(self, event: Event) -> None:
        """Sends an event, or adds it to the queue."""
        if self._options.audit_webhook_mode != "batch":
            self._send([event], tries=1)
            return
        with self._changed:
            if self._closing or len(self._waiting) >= self._options.audit_webhook_batch_buffer_size:
                return
            self._waiting.append(event)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="fakekube-audit-webhook", daemon=True)
                self._thread.start()
            if len(self._waiting) >= self._options.audit_webhook_batch_max_size:
                self._changed.notify_all()

    def _run(self) -> None:
        size, patience = self._options.audit_webhook_batch_max_size, self._options.audit_webhook_batch_max_wait
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or len(self._waiting) >= size, patience)
                batch = [self._waiting.popleft() for _ in range(min(size, len(self._waiting)))]
                ended = self._closing and not batch
            if ended:
                return
            if batch:
                self._send(batch, tries=_TRIES)

    def _send(self, events: Sequence[Event], tries: int) -> None:
        """Posts events. As in kube-apiserver, they are dropped if no attempt succeeds; after `close` attempts follow at once."""
        body: dict[str, Any] = {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": list(events)}
        data, delay = json.dumps(body) + b"\n", _DELAY
        for _ in range(tries):
            try:
                answer = self._transport.post(self._endpoint, data, _TIMEOUT)
            except CallError:
                answer = None
            if answer is not None and answer.status < 500 and answer.status != 429:
                return
            with self._changed:
                self._changed.wait_for(lambda: self._closing, delay)
            delay *= 1.5

    def close(self) -> None:
        """Sends queued events, and ends the thread; waits for both at most `_TIMEOUT` seconds."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(_TIMEOUT)
        self._transport.close()
