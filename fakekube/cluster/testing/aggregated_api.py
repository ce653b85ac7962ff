"""Serves a WSGI application of the test process as an aggregated API, with its APIService."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from fakekube.controllers.client import ApiError, Client

if TYPE_CHECKING:
    from fakekube.apiserver.aggregator.aggregator import Aggregator

__all__ = ["AggregatedAPI"]

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_RESOURCE = "apiservices.apiregistration.k8s.io"
_NAMESPACE = "kube-system"
_PRIORITIES = {"groupPriorityMinimum": 100, "versionPriority": 100}


class AggregatedAPI:
    """An aggregated API that is served; a context manager that removes it. See `Cluster.aggregate` for arguments and errors."""

    def __init__(
        self, client: Client, aggregator: Aggregator, group_version: str, application: Application, timeout: float
    ) -> None:
        group, slash, version = group_version.partition("/")
        if not (group and slash and version) or "/" in version:
            raise ValueError(f"a group version has the form group/version: {group_version!r}")
        self.name = f"{version}.{group}"
        """The name of the APIService."""
        self._client, self._aggregator = client, aggregator
        self._registered = self._register(group, version)
        aggregator.mount(self.name, application)
        aggregator.wait(timeout)
        problem = self._problem()
        if problem:
            self.remove()
            raise RuntimeError(problem)

    def remove(self) -> None:
        """Stops serving the API, and deletes the APIService if this object created it. May be called twice."""
        self._aggregator.unmount(self.name)
        if self._registered:
            self._registered = False
            with suppress(ApiError):  # it may be deleted already
                self._client.delete(_RESOURCE, self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.remove()

    def _register(self, group: str, version: str) -> bool:
        """Creates the APIService; returns False if there is one with a Service already."""
        service = {"namespace": _NAMESPACE, "name": group.replace(".", "-"), "port": 443}
        spec = {"group": group, "version": version, "service": service, "insecureSkipTLSVerify": True, **_PRIORITIES}
        obj = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": self.name}, "spec": spec}
        try:
            self._client.create(obj)
        except ApiError as error:
            if error.code != 409:
                raise ValueError(str(error)) from None
            if "service" not in self._client.get(_RESOURCE, self.name)["spec"]:
                raise ValueError(f"{group}/{version} is served by the cluster itself") from None
            return False
        return True

    def _problem(self) -> str:
        """Returns the reason why requests do not reach the application; "" if they do."""
        conditions = self._client.get(_RESOURCE, self.name).get("status", {}).get("conditions", [])
        found = next((one for one in conditions if one["type"] == "Available"), None)
        if found is None:
            return f"{self.name} did not respond in time"
        return "" if found["status"] == "True" else str(found["message"])
