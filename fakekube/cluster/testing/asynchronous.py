"""The methods of a cluster as coroutines, for tests with asyncio. Each call runs in a thread.

    await fakekube.aio.settle()
    await fakekube.aio.wait_for("pods", "web", until=is_running)
    await fakekube.aio.wait(fakekube.requests.where(verb="patch"), 1)

Invariant: no method blocks the event loop, because the client under test may run in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.powers.requests import Requests

__all__ = ["AsyncCluster"]


class AsyncCluster:
    """The public methods of `Cluster` (`settle`, `wait_for`, `load`, `create`, `get`, …) as coroutines with the same arguments,
    results and errors."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._cluster, name)
        if name.startswith("_") or not callable(method):
            raise AttributeError(f"a cluster has no method {name}")

        async def in_a_thread(*arguments: Any, **named: Any) -> Any:
            return await asyncio.to_thread(method, *arguments, **named)

        return in_a_thread

    async def wait(self, requests: Requests, count: int = 1, timeout: float = 5.0) -> Requests:
        """Waits for recorded requests, as `Requests.wait` does; `timeout` is in real seconds. Raises TimeoutError."""
        return await asyncio.to_thread(requests.wait, count, timeout)

    async def advance(self, **amount: float) -> None:
        """Moves the clock, as `Clock.advance` does."""
        await asyncio.to_thread(self._cluster.clock.advance, **amount)
