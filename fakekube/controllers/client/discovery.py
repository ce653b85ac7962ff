"""Resources as clients know them from discovery: their names, and the paths of their collections.

Specified by: k8s.io/api/apidiscovery/v2; k8s.io/apimachinery/pkg/api/meta/interfaces.go (RESTMapping).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

__all__ = ["ACCEPT", "DiscoveredResource", "RESTMapping", "collection_path", "resources_in"]

ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class RESTMapping(Protocol):
    """The properties of a resource that a client needs for requests."""

    @property
    def group(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def plural(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def namespaced(self) -> bool: ...

    @property
    def api_version(self) -> str: ...


@dataclass(slots=True, frozen=True)
class DiscoveredResource:
    """A resource in the aggregated discovery document."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    names: frozenset[str]
    """All in lower case: plural, singular, kind, short names."""
    verbs: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        """The apiVersion of objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def is_called(self, name: str) -> bool:
        """Reports whether a name is one of the resource: a name, `name.group` or `name.version.group`, in any case."""
        first, _, group = name.lower().partition(".")
        return first in self.names and group in ("", self.group, f"{self.version}.{self.group}")


def collection_path(mapping: RESTMapping, namespace: str | None = None) -> str:
    """Returns the path of a collection; `namespace` is ignored for cluster-scoped resources."""
    root = f"/apis/{mapping.group}/{mapping.version}" if mapping.group else f"/api/{mapping.version}"
    scope = f"/namespaces/{quote(namespace)}" if mapping.namespaced and namespace else ""
    return f"{root}{scope}/{mapping.plural}"


def resources_in(document: dict[str, Any]) -> Iterator[DiscoveredResource]:
    """Returns the resources of a discovery document, in its order."""
    for group in document.get("items") or ():
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            for entry in version.get("resources") or ():
                kind = (entry.get("responseKind") or {}).get("kind", "")
                names = {entry["resource"], entry.get("singularResource", ""), kind, *(entry.get("shortNames") or ())}
                known = frozenset(one.lower() for one in names if one)
                yield DiscoveredResource(
                    name,
                    version["version"],
                    entry["resource"],
                    kind,
                    entry.get("scope") == "Namespaced",
                    known,
                    frozenset(entry.get("verbs") or ()),
                )
