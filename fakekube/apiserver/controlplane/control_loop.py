"""The control loops that run inside kube-apiserver.

A loop writes what the API server itself maintains. The real server has asynchronous controllers; here a loop runs in the thread
that wrote one of its sources, right after the write, so that the client sees its result as soon as it has the response.

Invariant: one thread at a time runs a loop; changes caused by its own writes are processed in the same run.

Specified by: pkg/controlplane, k8s.io/apiextensions-apiserver/pkg/controller, k8s.io/kube-aggregator/pkg/controllers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from fakekube.base.depth import with_deep_stack
from fakekube.net.streams import Source, subscribe_weakly


class ControlLoop:
    """A control loop that runs after every change of its sources, as long as something refers to it: the sources do not."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._working = threading.RLock()
        self._busy = False
        subscribe_weakly(self, ControlLoop.refresh, sources)

    @with_deep_stack
    def refresh(self) -> None:
        """Runs steps until there is nothing left to do."""
        with self._working:
            if self._busy:  # a write of this loop has called it; the loop below processes the change
                return
            self._busy = True
            try:
                while self.step():
                    pass
            finally:
                self._busy = False

    def step(self) -> bool:
        """Reconciles once; returns whether there was anything to do."""
        raise NotImplementedError
