"""The operations of a cluster that the actions of faults use: waiting by its clock, writing as another client, compaction.

Invariant: objects are changed only through the API, and the history only through the store.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from fakekube.controllers.client import ApiError, Client

if TYPE_CHECKING:
    from fakekube.apiserver.endpoints.request import RequestInfo
    from fakekube.apiserver.registry.scope import Backend
    from fakekube.base.clock import Clock

_log = logging.getLogger(__name__)

#: The annotation that a conflict writes by default.
ANNOTATION = "fakekube.dev/conflict"


class ActionContext:
    """The operations of a cluster that actions use.

    Args:
        backend: of the cluster.
        client: a client in the same process; its user agent is that of faults.
    """

    def __init__(self, backend: Backend, client: Client) -> None:
        self.clock: Clock = backend.clock
        self.store, self._registry = backend.store, backend.registry  # not the backend, which refers to the observer
        self._client = client
        self._conflicts = 0
        self._changed = threading.Condition()
        self._stopped = False

    def wait_until(self, is_over: Callable[[], bool], due: float | None = None, timeout: float | None = None) -> bool:
        """Waits until `is_over()`, the clock reaches `due`, or the cluster stops; returns False after `timeout` real seconds."""
        timer = None if due is None else self.clock.call_at(due, self.notify, what="a fault")
        with self._changed:
            in_time = self._changed.wait_for(
                lambda: self._stopped or is_over() or (due is not None and self.clock.monotonic() >= due), timeout
            )
        if timer is not None:
            timer.cancel()
        return in_time

    def notify(self) -> None:
        """Makes `wait_until` test its condition again."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Ends all waits, now and in future."""
        self._stopped = True
        self.notify()

    def write(self, info: RequestInfo, change: Callable[[dict[str, Any]], dict[str, Any] | None] | None) -> None:
        """Updates the object of a request through the API, as another client; does nothing if the object does not exist.

        Args:
            info: the request.
            change: changes the object, or returns another one; by default an annotation is set.
        """
        resource = self._registry.get(info.group, info.version, info.resource)
        if resource is None or not info.name:
            return
        path = self._client.path(resource, info.namespace or None, info.name)
        self._conflicts += 1
        try:
            before = self._client.call("GET", path)
            obj = deepcopy(before)
            if change is None:
                obj.setdefault("metadata", {}).setdefault("annotations", {})[ANNOTATION] = str(self._conflicts)
            else:
                obj = change(obj) or obj
            written = self._client.call("PUT", path, obj)
            if "status" in resource.subresources and obj.get("status") != before.get("status"):
                self._client.call("PUT", f"{path}/status", {**written, "status": obj.get("status")})
        except ApiError as error:
            if error.code not in (404, 409):  # the API server refuses what `change` made
                _log.warning("%s could not be written by a fault: %s", path, error)

    def compact(self) -> None:
        """Compacts the history, including the newest revision that a client can have seen."""
        store = self.store
        store.advance()
        store.compact()
        for resource in self._registry:
            store.bucket(resource.bucket).forget()

    def revision_ago(self, by: int) -> int:
        """Returns the revision `by` revisions ago, but none that is compacted."""
        store = self.store
        return max(store.revision - by, store.compacted, 1)
