"""Discovery: finds the path of a resource, from aggregated discovery or, as a fallback, from the unaggregated documents.

Discovery is repeated when a resource is missing. A group whose server does not answer is skipped; only requests for resources of
this group fail.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from defects import active
from transport import Api, ApiError, Broken, crash

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@dataclass(frozen=True, slots=True)
class Served:
    """A resource of the preferred version of its group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"

    def collection(self, namespace: str = "") -> str:
        inner = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{self.path}{inner}/{self.plural}"


class Discovery:
    """The served resources, by `plural.group`. Thread-safe."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._known: dict[str, Served] | None = None
        self._asked = False

    def forget(self) -> None:
        """Drops the cached documents, because an expected resource is missing."""
        if not active("D1-once"):
            with self._lock:
                self._known = None

    def find(self, name: str) -> Served:
        """Returns the resource `plural.group`.

        Raises:
            ApiError: nobody serves it now (404).
            Broken: the server did not answer.
        """
        with self._lock:
            if self._known is None:
                self._known = self._read()
            found = self._known.get(name)
            if found is None and not active("D1-once"):
                self._known = None
        if found is None:
            if active("D1-crash"):
                crash(f"no matches for {name}")
            raise ApiError({"message": f"no matches for {name}"}, 404)
        return found

    def _read(self) -> dict[str, Served]:
        known: dict[str, Served] = {}
        for root in ("/api", "/apis"):
            document = self._api.request("GET", root, accept=AGGREGATED)
            if document.get("kind") == "APIGroupDiscoveryList":
                self._read_aggregated(document, known)
            elif root == "/api":
                self._read_version("", "v1", known)
            else:
                for group in document.get("groups") or ():
                    preferred = (group.get("preferredVersion") or group["versions"][0])["version"]
                    self._read_version(group["name"], preferred, known)
        return known

    @staticmethod
    def _read_aggregated(document: dict, known: dict[str, Served]) -> None:
        for group in document.get("items") or ():
            name = (group.get("metadata") or {}).get("name", "")
            for version in group.get("versions") or ():
                if version.get("freshness") == "Stale":
                    _dead_group(f"{name}/{version['version']} is stale", known)
                for resource in version.get("resources") or ():
                    plural = resource["resource"]
                    served = Served(
                        name, version["version"], plural, resource["responseKind"]["kind"], resource["scope"] == "Namespaced"
                    )
                    known.setdefault(f"{plural}.{name}" if name else plural, served)

    def _read_version(self, group: str, version: str, known: dict[str, Served]) -> None:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            document = self._api.request("GET", path)
        except (ApiError, Broken) as error:
            _dead_group(f"{path}: {error}", known)
            return
        for resource in document.get("resources") or ():
            plural = resource["name"]
            if "/" not in plural:
                served = Served(group, version, plural, resource["kind"], resource["namespaced"])
                known.setdefault(f"{plural}.{group}" if group else plural, served)


def _dead_group(message: str, known: dict[str, Served]) -> None:
    print(f"discovery: {message}", flush=True)
    if active("D2-crash"):
        crash(message)
    if active("D2-empty"):
        known.clear()
        raise ApiError({"message": message}, 503)
