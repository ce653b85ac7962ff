"""Creates configured clients of common Kubernetes client packages, if they are installed.

Each function imports its package when it is called; the ImportError contains the name of a missing package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekube.cluster import Cluster

__all__ = ["Clients"]


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
        from kubernetes_asyncio import config

        return await config.new_client_from_config(config_file=str(self._cluster.kubeconfig))

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
