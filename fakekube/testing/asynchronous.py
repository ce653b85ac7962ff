"""The methods of a cluster as coroutines, for tests with asyncio: they run in a thread, and the event loop goes on.

    await fakekube.aio.settle()
    await fakekube.aio.wait_for("pods", "web", until=is_running)
    await fakekube.aio.wait(fakekube.requests.where(verb="patch"), 1)

Invariant: no method blocks the event loop, in which the client under test may run.
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
    """Every method of `Cluster` that may take time (`settle`, `wait_for`, `load`, `create`, `get`, …) as a coroutine."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._cluster, name)
        if name.startswith("_") or not callable(method):
            raise AttributeError(f"{name} is no method of a cluster")

        async def in_a_thread(*arguments: Any, **named: Any) -> Any:
            return await asyncio.to_thread(method, *arguments, **named)

        return in_a_thread

    async def wait(self, requests: Requests, count: int = 1, timeout: float = 5.0) -> Requests:
        """Waits for recorded requests, as `Requests.wait`. Raises TimeoutError."""
        return await asyncio.to_thread(requests.wait, count, timeout)

    async def advance(self, **amount: float) -> None:
        """Moves the clock, as `Clock.advance`; what becomes due runs in a thread."""
        await asyncio.to_thread(self._cluster.clock.advance, **amount)
