"""Other ways to use a cluster: configured clients of common Kubernetes client packages, and its methods as coroutines.

    CoreV1Api(cluster.clients.kubernetes())
    await cluster.aio.settle()
    await cluster.aio.wait(cluster.requests.where(verb="patch"), 1)

Invariants: a package is imported when its function is called; the ImportError contains the name of a missing one. No coroutine
blocks the event loop, because the client under test may run in it: each call runs in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.powers.requests import Requests


class Clients:
    """The attribute `clients` of a cluster: a method for each package.

    All methods raise ImportError if the package is not installed, and RuntimeError if the cluster is not started. The clients
    have the kubeconfig of the administrator.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def kubernetes(self) -> Any:
        """Returns an ApiClient of the package kubernetes: `CoreV1Api(cluster.clients.kubernetes())`."""
        from kubernetes import config

        return config.new_client_from_config(config_file=str(self._cluster.kubeconfig))  # type: ignore[no-untyped-call,unused-ignore]

    async def kubernetes_asyncio(self) -> Any:
        """Returns an ApiClient of the package kubernetes_asyncio; the caller closes it."""
        from kubernetes_asyncio import config as asyncio_config

        return await asyncio_config.new_client_from_config(config_file=str(self._cluster.kubeconfig))

    def kr8s(self) -> Any:
        """Returns an Api of the package kr8s."""
        import kr8s

        return kr8s.api(kubeconfig=str(self._cluster.kubeconfig))

    async def kr8s_asyncio(self) -> Any:
        """Returns an asynchronous Api of the package kr8s."""
        import kr8s.asyncio

        return await kr8s.asyncio.api(kubeconfig=str(self._cluster.kubeconfig))

    def lightkube(self) -> Any:
        """Returns a Client of the package lightkube."""
        from lightkube import Client, KubeConfig

        return Client(config=KubeConfig.from_file(str(self._cluster.kubeconfig)))

    def pykube(self) -> Any:
        """Returns an HTTPClient of the package pykube-ng."""
        import pykube

        return pykube.HTTPClient(pykube.KubeConfig.from_file(str(self._cluster.kubeconfig)))


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
            return await _call_in_thread(method, *arguments, **named)

        return in_a_thread

    async def wait(self, requests: Requests, count: int = 1, timeout: float = 5.0) -> Requests:
        """Waits for recorded requests, as `Requests.wait` does; `timeout` is in real seconds. Raises TimeoutError."""
        found: Requests = await _call_in_thread(requests.wait, count, timeout)
        return found

    async def advance(self, **amount: float) -> None:
        """Moves the clock, as `Clock.advance` does."""
        await _call_in_thread(self._cluster.clock.advance, **amount)


async def _call_in_thread(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    import asyncio  # few tests use it

    return await asyncio.to_thread(function, *arguments, **named)
